//! The main loop of a crawler that never ends. Each arriving page is looked up and stored in one step. After a crash,
//! the loop continues from the last commit.
//!
//! ```sh
//! cargo run --release --example crawler -- INDEX FOLDER
//! ```

#![allow(
    clippy::disallowed_methods,
    reason = "reads the pages of somebody else, which are no files of an index"
)]

use std::path::{Path, PathBuf};

use twindex::{Admitted, Index, Params};

/// Number of pages per commit.
const BATCH: usize = 1000;

fn open(path: &Path) -> twindex::Result<Index> {
    let params = Params::builder().words(5).simhash(3).minhash(20, 6).build()?;
    Index::open_or_create(path, params)
}

/// Returns all files below a folder, in a deterministic order.
fn pages(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                pages.push(entry.path());
            }
        }
    }
    pages.sort();
    Ok(pages)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(index), Some(folder)) = (arguments.next(), arguments.next()) else {
        return Err("expected an index and a folder of pages".into());
    };
    let (index, folder) = (open(Path::new(&index))?, PathBuf::from(folder));
    let sketcher = index.sketcher()?;
    let done =
        index.snapshot().payload().and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes);
    let mut writer = index.writer()?;
    let (mut new, mut near, mut number) = (0, 0, done);
    let pages = pages(&folder)?;
    for batch in pages[pages.len().min(done as usize)..].chunks(BATCH) {
        for page in batch {
            number += 1;
            let Ok(text) = std::fs::read_to_string(page) else { continue };
            let key = page.strip_prefix(&folder)?.to_string_lossy().into_owned();
            match writer.admit(key.as_str(), &sketcher.sketch(&text)?)? {
                Admitted::New => new += 1,
                Admitted::Duplicate(hit) => {
                    near += 1;
                    println!("{key}\t{}", hit.key);
                }
                _ => {} // `Updated`, `Known`: a page with this key was already stored
            }
        }
        writer.commit_with(&number.to_le_bytes())?;
    }
    eprintln!("{new} new pages, {near} near others, {done} done before");
    Ok(())
}
