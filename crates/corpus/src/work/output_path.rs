//! Checks the path of an output: it must not replace an input of the run or a file inside an index. Resolves links, so
//! that other names of the same file or folder are recognised.

use std::fs::{self, File, Metadata};
use std::io::Read;
use std::path::{Path, PathBuf};

use twindex::format::header::MAGIC;

use crate::error::InvalidOptions;

/// The files that identify an index and an index of passages, each with its magic number.
const MARKS: [(&str, &[u8]); 2] = [("CURRENT", &MAGIC), ("PASSAGES", b"TWXPSG")];

/// Returns an error if the output file `out` would replace a file that the run reads, or would lie inside an index.
/// `reads` are all files and folders that the run reads.
///
/// # Errors
///
/// `out` conflicts with an input or an index, which the message names.
pub fn check_file<P: AsRef<Path>>(
    out: &Path,
    reads: impl IntoIterator<Item = P>,
) -> Result<(), InvalidOptions> {
    check(out, "name", reads)
}

/// Returns an error if the output folder `out` would replace a file or folder that the run reads, or would lie inside
/// an index. `reads` are all files and folders that the run reads.
///
/// # Errors
///
/// `out` conflicts with an input or an index, which the message names.
pub fn check_folder<P: AsRef<Path>>(
    out: &Path,
    reads: impl IntoIterator<Item = P>,
) -> Result<(), InvalidOptions> {
    check(out, "folder", reads)
}

fn check<P: AsRef<Path>>(
    out: &Path,
    kind: &str,
    reads: impl IntoIterator<Item = P>,
) -> Result<(), InvalidOptions> {
    let shown = out.display();
    let refuse = |why: String| Err(InvalidOptions::new(format!("{shown}: {why}; choose another {kind}")));
    let own = places(out);
    if let Some(index) = own.iter().find_map(|own| index_around(own)) {
        return refuse(format!(
            "is inside the index {}, where only the index has its files",
            index.display()
        ));
    }
    let is_there = out.symlink_metadata().is_ok();
    let mut files = None;
    for read in reads {
        let read = read.as_ref();
        if read.as_os_str() == "-" {
            continue; // standard input
        }
        let others = places(read);
        let any =
            |is: fn(&Path, &Path) -> bool| own.iter().any(|own| others.iter().any(|other| is(own, other)));
        if any(|own, other| own == other) {
            return refuse(format!("the run reads {}, which is the same", read.display()));
        }
        if any(|own, other| other.starts_with(own)) {
            return refuse(format!("the run reads inside it: {}", read.display()));
        }
        if !is_there {
            continue;
        }
        if any(|own, other| own.starts_with(other)) {
            return refuse(format!(
                "is there already, inside the input {}, and would be read as documents",
                read.display()
            ));
        }
        let identity = fs::metadata(read).ok().filter(Metadata::is_file).and_then(|file| identity(&file));
        if let Some(identity) = identity
            && files.get_or_insert_with(|| identities(out)).contains(&identity)
        {
            return refuse(format!("the run reads {}, a hard link to the same file", read.display()));
        }
    }
    Ok(())
}

/// Returns the absolute path of a file or folder, with links in the parent folders resolved. If the file itself is a
/// link, also returns its target. The file need not exist.
fn places(path: &Path) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = fs::canonicalize(path).into_iter().collect();
    if let Some(name) = path.file_name() {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let place = fs::canonicalize(parent)
            .ok()
            .or_else(|| places_of_parent(parent))
            .map(|parent| parent.join(name));
        places.extend(place);
    }
    places.dedup();
    places
}

fn places_of_parent(parent: &Path) -> Option<PathBuf> {
    places(parent).into_iter().next().or_else(|| std::path::absolute(parent).ok())
}

/// Returns whether `path`, which need not exist, is inside this folder.
#[must_use]
pub fn is_inside(path: &Path, folder: &Path) -> bool {
    let folders = places(folder);
    places(path).iter().any(|path| folders.iter().any(|folder| path != folder && path.starts_with(folder)))
}

/// Returns the index that contains `path`: the nearest folder above `path` that is an index, if any.
fn index_around(path: &Path) -> Option<&Path> {
    path.ancestors().skip(1).find(|folder| is_index(folder))
}

/// Returns whether the folder is an index or an index of passages.
fn is_index(folder: &Path) -> bool {
    MARKS.iter().any(|(name, head)| begins_with(&folder.join(name), head))
}

/// Returns whether `path` is a regular file, not a link, that begins with these bytes.
#[must_use]
pub fn begins_with(path: &Path, head: &[u8]) -> bool {
    let mut found = Vec::new();
    path.symlink_metadata().is_ok_and(|metadata| metadata.is_file())
        && File::open(path).is_ok_and(|file| file.take(head.len() as u64).read_to_end(&mut found).is_ok())
        && found == head
}

/// The device and inode number of a file, which are the same for all of its hard links.
type Identity = (u64, u64);

#[cfg(unix)]
#[allow(clippy::unnecessary_wraps, reason = "other systems have no such identity")]
fn identity(file: &Metadata) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    Some((file.dev(), file.ino()))
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Option<Identity> {
    None
}

/// Returns the identity of the file `path`, or the identities of all files in the folder `path` and its subfolders.
fn identities(path: &Path) -> Vec<Identity> {
    let walk = walkdir::WalkDir::new(path).max_depth(2).into_iter();
    let files = walk.filter_map(|entry| entry.ok()?.metadata().ok()).filter(Metadata::is_file);
    files.filter_map(|file| identity(&file)).collect()
}
