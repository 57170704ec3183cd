//! Compares the query times of two indexes of the same documents: one that was used for long and then compacted, and
//! one that was built in one commit.
//!
//! ```sh
//! cargo run --release --example compacted -- DIRECTORY 1000000 [ROUNDS]
//! ```
//!
//! The first index gets all documents through its log in batches of 1,000. A tenth of the documents are put twice, and
//! every seventh is deleted later, so the index is flushed and merged many times. It is then closed, opened and
//! compacted. The second index gets the live documents as one batch. The segments of both must have the same bytes.
//! Then both run the same queries in turn, and their times are compared within each round. As a control, the second
//! index is also compared with itself, opened a second time.

#![allow(clippy::disallowed_methods, reason = "measures an index from outside")]

use std::path::{Path, PathBuf};
use std::time::Instant;

use random::Random;
use twindex::{Fingerprint, Index, Params, Result, Snapshot, WriterOptions};

#[path = "../tests/support/random.rs"]
mod random;

/// Number of queries in a round.
const QUERIES: u64 = 20_000;

/// Returns the fingerprint of the first or, if `again`, of the second version of a document. Half of the fingerprints
/// are near the fingerprint of an earlier document.
fn fingerprint(document: u64, again: bool) -> u64 {
    let mut random = Random(document * 2 + u64::from(again));
    let anywhere = random.next();
    if document == 0 || random.next() & 1 == 0 {
        return anywhere;
    }
    let mut near = Random(random.next() % document * 2).next();
    for _ in 0..random.next() % 4 {
        near ^= 1 << (random.next() % 64);
    }
    near
}

/// Returns the key of a document. Successive documents have keys in no particular order.
fn key(document: u64) -> u64 {
    let mixed = (document ^ document >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed ^ mixed >> 31
}

fn is_repeated(document: u64) -> bool {
    document % 10 == 3
}

fn is_deleted(document: u64) -> bool {
    document % 7 == 5
}

fn lived(path: &Path, documents: u64) -> Result<usize> {
    let params = Params::builder().u64_keys().simhash(3).build()?;
    let index = Index::create(path, params)?;
    let (mut writer, mut segments) = (index.writer()?, 0);
    for document in 0..documents {
        writer.put(key(document), Fingerprint(fingerprint(document, false)))?;
        // Replace or delete an older document, which has usually been flushed to a segment by now.
        let earlier = document.checked_sub(documents / 5);
        if let Some(document) = earlier.filter(|&document| is_repeated(document)) {
            writer.put(key(document), Fingerprint(fingerprint(document, true)))?;
        }
        if let Some(document) = earlier.filter(|&document| is_deleted(document)) {
            writer.delete(key(document))?;
        }
        if document % 1000 == 999 {
            writer.commit()?;
            segments = segments.max(index.snapshot().entries().len());
        }
        if document == documents / 2 {
            writer.commit()?;
            drop(writer);
            writer = index.writer()?;
        }
    }
    for document in documents - documents / 5..documents {
        if is_repeated(document) {
            writer.put(key(document), Fingerprint(fingerprint(document, true)))?;
        }
        if is_deleted(document) {
            writer.delete(key(document))?;
        }
    }
    writer.commit()?;
    writer.compact()?;
    Ok(segments)
}

fn fresh(path: &Path, documents: u64) -> Result<()> {
    let params = Params::builder().u64_keys().simhash(3).build()?;
    let index = Index::create(path, params)?;
    let mut writer = index.writer_with(WriterOptions::default().one_segment(true))?;
    for document in (0..documents).filter(|&document| !is_deleted(document)) {
        let fingerprint = fingerprint(document, is_repeated(document));
        writer.put(key(document), Fingerprint(fingerprint))?;
    }
    writer.commit()?;
    Ok(())
}

fn segment(path: &Path) -> PathBuf {
    let entries = std::fs::read_dir(path).expect("the index").map(|entry| entry.expect("a file").path());
    let mut segments = entries.filter(|path| path.extension().is_some_and(|end| end == "seg"));
    let only = segments.next().expect("a segment");
    assert!(segments.next().is_none(), "one segment");
    only
}

/// Runs the queries of a round. Returns the nanoseconds per query and the total number of matches.
fn ask(snapshot: &Snapshot, documents: u64, seed: u64) -> Result<(f64, u64)> {
    let mut random = Random(seed);
    let queries: Vec<Fingerprint> = (0..QUERIES)
        .map(|_| Fingerprint(fingerprint(random.next() % documents, false) ^ 1 << (random.next() % 64)))
        .collect();
    let (start, mut found) = (Instant::now(), 0);
    for &query in &queries {
        snapshot.for_each_within(query, 3, |_, _| found += 1)?;
    }
    Ok((start.elapsed().as_nanos() as f64 / QUERIES as f64, found))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let dir = Path::new(args.first().expect("usage: compacted DIRECTORY DOCUMENTS [ROUNDS]"));
    let number = |place: usize, or: u64| args.get(place).and_then(|arg| arg.parse().ok()).unwrap_or(or);
    let (documents, rounds) = (number(1, 1_000_000), number(2, 25));
    let paths = [dir.join("lived.twx"), dir.join("fresh.twx")];
    if !paths[0].exists() {
        let segments = lived(&paths[0], documents)?;
        println!("lived with up to {segments} segments");
        fresh(&paths[1], documents)?;
    }
    let bytes = paths.each_ref().map(|path| std::fs::read(segment(path)).expect("a segment"));
    assert!(bytes[0] == bytes[1], "the segments are the same bytes");
    println!("{} documents given, both segments are the same {} bytes", documents, bytes[0].len());
    drop(bytes);
    let [lived, fresh] = [Index::open(&paths[0])?.snapshot(), Index::open(&paths[1])?.snapshot()];
    let again = Index::open(&paths[1])?.snapshot();
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for round in 0..rounds + 2 {
        let mut all = None;
        // Change the order of the indexes from round to round.
        for turn in 0..3 {
            let who = ((round + turn) % 3) as usize;
            let (took, found) = ask([&lived, &fresh, &again][who], documents, round)?;
            assert_eq!(*all.get_or_insert(found), found, "the same answers");
            if round >= 2 {
                times[who].push(took);
            }
        }
    }
    let ratio = |one: usize| {
        let pairs = times[one].iter().zip(&times[1]);
        median(pairs.map(|(one, fresh)| one / fresh).collect())
    };
    let (lived, again) = (ratio(0), ratio(2));
    let fresh = median(times[1].clone());
    println!(
        "{rounds} rounds of {QUERIES} queries within 3 bits: {fresh:.0} ns a query of the fresh one; the one that \
         lived takes {lived:.3} times as long, and the fresh one opened a second time {again:.3} times"
    );
    Ok(())
}
