//! Measures an index under load: admits clustered fingerprints in durable batches, starting with an empty index.
//! Reports the documents per second, the longest pause, and the bytes written and stored.
//!
//! ```sh
//! cargo run --release --example living -- DIRECTORY 10000000 1000 [READERS] [ascending|random]
//! ```
//!
//! Half of the documents are within 3 bits of an earlier one. Keys are ascending or random. `READERS` other processes
//! refresh and query continuously. At every commit that a reader sees, it runs the same queries, compares the answers
//! with a scan of the documents of that commit, and records a digest of the answers. At the end, all records of a
//! commit must have the same digest, and the number of documents that the writer had when it committed.

#![allow(clippy::disallowed_methods, reason = "measures an index from outside")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use random::Random;
use twindex::{Admitted, Fingerprint, Index, Params};
use xxhash_rust::xxh3::xxh3_64;

#[path = "../tests/support/random.rs"]
mod random;

/// Returns the fingerprint of a document: a random one, or one near an earlier document.
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

/// Returns the number of bytes that this process has written so far.
fn written() -> u64 {
    let io = std::fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("wchar: "));
    line.and_then(|line| line.parse().ok()).unwrap_or(0)
}

/// Returns the key of a document: its number, or a unique pseudorandom number.
fn key(document: u64, ascending: bool) -> u64 {
    if ascending {
        return document;
    }
    let mixed = (document ^ document >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 31
}

/// Number of queries that a reader runs at each commit.
const QUERIES: u64 = 64;

/// Returns each query with all documents of the run that are within 3 bits of it, and their distances.
fn scan(documents: u64) -> Vec<(u64, Vec<(u64, u32)>)> {
    let mut queries: Vec<(u64, Vec<(u64, u32)>)> = (0..QUERIES)
        .map(|query| (fingerprint(query * query * documents / QUERIES / QUERIES), Vec::new()))
        .collect();
    for document in 0..documents {
        let fingerprint = fingerprint(document);
        for (query, near) in &mut queries {
            let distance = (*query ^ fingerprint).count_ones();
            if distance <= 3 {
                near.push((document, distance));
            }
        }
    }
    queries
}

fn read(dir: &Path, documents: u64, ascending: bool) -> twindex::Result<()> {
    let queries = scan(documents);
    let index = Index::open(dir)?;
    let (mut asked, mut refreshes, mut compared) = (0_u64, 0_u64, 0_u64);
    let (mut seen, start, mut asking) = (0, Instant::now(), Duration::ZERO);
    let mut log = String::new();
    while dir.join("reading").exists() {
        refreshes += u64::from(index.refresh()?);
        let snapshot = index.snapshot();
        let (generation, there) = (snapshot.generation(), snapshot.documents());
        assert!(generation >= seen, "commits come in order");
        let is_new = generation > seen;
        seen = generation;
        let began = Instant::now();
        let mut answers = String::new();
        for (query, near) in &queries {
            let hits = snapshot.within(Fingerprint(*query), 3).run()?.hits;
            asked += 1;
            let mut found: Vec<(u64, u32)> =
                hits.iter().filter_map(|hit| Some((hit.key.as_u64()?, hit.distance?))).collect();
            found.sort_unstable();
            let committed = near.iter().take_while(|&&(document, _)| document < there);
            let mut expected: Vec<(u64, u32)> =
                committed.map(|&(document, distance)| (key(document, ascending), distance)).collect();
            expected.sort_unstable();
            assert_eq!(found, expected, "generation {generation} of {there} documents");
            let _ = write!(answers, "{found:?}");
        }
        asking += began.elapsed();
        if is_new {
            compared += 1;
            let _ = writeln!(log, "{generation} {there} {:016x}", xxh3_64(answers.as_bytes()));
        }
    }
    let _ = std::fs::write(dir.join(format!("digests-{}", std::process::id())), log);
    let micros = asking.as_secs_f64() * 1e6 / asked as f64;
    println!(
        "  reader: {asked} queries of {micros:.1} us, {refreshes} refreshes in {:.0} s; the answers at {compared} \
         commits were those of a scan",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Compares the records of the readers with each other and with the writer's commits, and deletes the records.
fn compare(dir: &Path, commits: &BTreeMap<u64, u64>) -> u64 {
    let mut known: BTreeMap<u64, String> = BTreeMap::new();
    let mut both = 0;
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if !entry.file_name().to_string_lossy().starts_with("digests-") {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).unwrap_or_default();
        for line in text.lines() {
            let mut fields = line.split(' ').map(str::to_owned);
            let (Some(generation), Some(there), Some(digest)) = (fields.next(), fields.next(), fields.next())
            else {
                panic!("a line of three fields: {line}");
            };
            let generation: u64 = generation.parse().expect("a number");
            // A flush or a merge also starts a generation. It has the documents of the last commit before it.
            let (_, documents) = commits.range(..=generation).next_back().expect("a commit before it");
            assert_eq!(there, documents.to_string(), "documents of generation {generation}");
            match known.insert(generation, digest.clone()) {
                None => {}
                Some(other) => {
                    assert_eq!(other, digest, "answers at generation {generation}");
                    both += 1;
                }
            }
        }
        let _ = std::fs::remove_file(entry.path());
    }
    both
}

fn main() -> twindex::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let number = |place: usize, or: u64| args.get(place).and_then(|arg| arg.parse().ok()).unwrap_or(or);
    let dir = args.first().expect("usage: living DIRECTORY DOCUMENTS BATCH READERS");
    let path = Path::new(dir).join("living.twx");
    let (documents, batch, readers) = (number(1, 1_000_000), number(2, 1000), number(3, 0));
    let ascending = args.get(4).is_none_or(|arg| arg == "ascending");
    let keys = if ascending { "ascending" } else { "random" };
    if args.get(5).is_some_and(|arg| arg == "read") {
        return read(&path, documents, ascending);
    }
    let index = Index::create(&path, Params::builder().u64_keys().simhash(3).build()?)?;
    let _ = std::fs::write(path.join("reading"), "");
    let mut writer = index.writer()?;
    let others: Vec<Child> = (0..readers)
        .filter_map(|_| {
            let mut reader = Command::new(std::env::current_exe().ok()?);
            reader.arg(dir).args([documents.to_string(), batch.to_string(), readers.to_string()]);
            reader.args([keys, "read"]).spawn().ok()
        })
        .collect();
    let (start, before) = (Instant::now(), written());
    let (mut longest_admit, mut longest_commit) = (Duration::ZERO, Duration::ZERO);
    let (mut duplicates, mut space, mut at) = (0_u64, 0, start);
    let (mut most_segments, mut commits) = (0, BTreeMap::from([(1, 0)]));
    for document in 0..documents {
        let began = Instant::now();
        let admitted = writer.admit(key(document, ascending), Fingerprint(fingerprint(document)))?;
        longest_admit = longest_admit.max(began.elapsed());
        duplicates += u64::from(matches!(admitted, Admitted::Duplicate(_)));
        if (document + 1).is_multiple_of(batch) {
            let began = Instant::now();
            let generation = writer.commit()?;
            longest_commit = longest_commit.max(began.elapsed());
            commits.insert(generation, document + 1);
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
        assert!(other.wait().is_ok_and(|status| status.success()), "a reader failed");
    }
    let both = compare(&path, &commits);
    if let Some(failure) = writer.take_merge_failure() {
        println!("  merges stopped: {failure}");
    }
    writer.compact()?;
    let compact = bytes_in(&path);
    println!(
        "{documents} documents in batches of {batch}, keys {keys}, {readers} readers: {:.0} a second, {duplicates} \
         duplicates\n  {both} commits seen by more than one reader, with the same answers\n  \
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
