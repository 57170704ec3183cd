//! What the living index does under load: admits clustered fingerprints into an empty index, in durable batches, and
//! says how many a second, how long the longest pause was, and what was written and kept for it.
//!
//! ```sh
//! cargo run --release --example living -- DIRECTORY 10000000 1000 [READERS]
//! ```
//!
//! Half of the documents are within 3 bits of an earlier one. With readers, as many other processes refresh and query
//! all the time.

#![allow(clippy::disallowed_methods, reason = "measures an index from outside")]

use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use random::Random;
use twindex::{Admitted, Fingerprint, Index, Params};

#[path = "../tests/support/random.rs"]
mod random;

/// The fingerprint of a document: near that of an earlier one, or anywhere.
fn fingerprint(document: u64) -> u64 {
    let mut random = Random(document);
    let anywhere = random.next();
    if document == 0 || random.next() & 1 == 0 {
        return anywhere;
    }
    let mut near = Random(random.next() % document).next();
    for _ in 0..random.next() % 4 {
        near ^= 1 << (random.next() % 64);
    }
    near
}

fn bytes_in(dir: &Path) -> u64 {
    let Ok(entries) = std::fs::read_dir(dir) else { return 0 };
    entries.filter_map(|entry| Some(entry.ok()?.metadata().ok()?.len())).sum()
}

/// Bytes that this process has given to files so far.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|line| line.parse().ok()).unwrap_or(0)
}

fn read(dir: &Path) -> twindex::Result<()> {
    let index = Index::open(dir)?;
    let (mut queries, mut refreshes, mut random) = (0_u64, 0_u64, Random(1));
    let (mut seen, start) = (0, Instant::now());
    while dir.join("reading").exists() {
        refreshes += u64::from(index.refresh()?);
        let snapshot = index.snapshot();
        assert!(snapshot.generation() >= seen, "commits come in order");
        seen = snapshot.generation();
        for _ in 0..200 {
            let document = random.next() % snapshot.documents().max(1);
            let hits = snapshot.within(Fingerprint(fingerprint(document)), 3).limit(10).run()?;
            assert!(snapshot.documents() == 0 || !hits.hits.is_empty(), "{document} is near itself");
            queries += 1;
        }
    }
    let micros = start.elapsed().as_secs_f64() * 1e6 / queries as f64;
    println!("  reader: {queries} queries, {micros:.1} us each with refreshing, {refreshes} refreshes");
    Ok(())
}

fn main() -> twindex::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, or: u64| args.get(place).and_then(|arg| arg.parse().ok()).unwrap_or(or);
    let dir = args.first().expect("usage: living DIRECTORY DOCUMENTS BATCH READERS");
    let path = Path::new(dir).join("living.twx");
    if args.get(1).is_some_and(|arg| arg == "read") {
        return read(&path);
    }
    let (documents, batch, readers) = (number(1, 1_000_000), number(2, 1000), number(3, 0));
    let index = Index::create(&path, Params::builder().u64_keys().simhash(3).build()?)?;
    let _ = std::fs::write(path.join("reading"), "");
    let mut writer = index.writer()?;
    let others: Vec<Child> = (0..readers)
        .filter_map(|_| Command::new(std::env::current_exe().ok()?).arg(dir).arg("read").spawn().ok())
        .collect();
    let (start, before) = (Instant::now(), written());
    let (mut longest_admit, mut longest_commit) = (Duration::ZERO, Duration::ZERO);
    let (mut duplicates, mut space, mut at) = (0_u64, 0, start);
    let mut most_segments = 0;
    for document in 0..documents {
        let began = Instant::now();
        let admitted = writer.admit_fingerprint(document, Fingerprint(fingerprint(document)))?;
        longest_admit = longest_admit.max(began.elapsed());
        duplicates += u64::from(matches!(admitted, Admitted::Duplicate(_)));
        if (document + 1).is_multiple_of(batch) {
            let began = Instant::now();
            writer.commit()?;
            longest_commit = longest_commit.max(began.elapsed());
        }
        if (document + 1).is_multiple_of(100_000) {
            space = space.max(bytes_in(&path));
            most_segments = most_segments.max(index.snapshot().entries().len());
        }
        if (document + 1).is_multiple_of(1_000_000) {
            println!(
                "  {:>4} M: the last million took {:.2} s",
                (document + 1) / 1_000_000,
                at.elapsed().as_secs_f64()
            );
            at = Instant::now();
        }
    }
    writer.commit()?;
    let seconds = start.elapsed().as_secs_f64();
    writer.wait_for_merge()?;
    let all = written() - before;
    let _ = std::fs::remove_file(path.join("reading"));
    for mut other in others {
        let _ = other.wait();
    }
    if let Some(failure) = writer.take_merge_failure() {
        println!("  merges stopped: {failure}");
    }
    writer.compact()?;
    let compact = bytes_in(&path);
    println!(
        "{documents} documents in batches of {batch}, {readers} readers: {:.0} a second, {duplicates} duplicates\n  \
         longest pause {:.0} ms (commit), {:.0} ms (admit); at most {most_segments} segments\n  \
         written {:.2} times, at most {:.2} times on disk, of {compact} bytes when compacted",
        documents as f64 / seconds,
        longest_commit.as_secs_f64() * 1e3,
        longest_admit.as_secs_f64() * 1e3,
        all as f64 / compact as f64,
        space as f64 / compact as f64,
    );
    Ok(())
}
