//! Writes a file of up to billions of fingerprints, and measures queries of an index that is built from this file.
//! `scripts/experiment billion` runs this example.
//!
//! ```sh
//! cargo run --release --example many_fingerprints -- make FILE 1000000000
//! cargo run --release -- build INDEX --fingerprints FILE --near within:3 --memory 8G
//! cargo run --release --example many_fingerprints -- ask INDEX 1000000000 1000000
//! ```
//!
//! `make` writes little-endian numbers of 64 bits. One in 50 differs in at most three bits from an earlier one; the
//! others are uniform. The number at each position is a function of the position, so `ask` does not need the file.
//! Every second query of `ask` differs in at most three bits from a stored fingerprint, and must find this fingerprint.
//!
//! `ask` prints one JSON line: milliseconds to open the index; microseconds per query for the first thousand queries
//! one at a time, for the first batch (which maps and verifies most pages), for a second batch of other queries, and
//! then for single queries again; the number of queries that must find a stored fingerprint, and the number that found
//! it. `ask INDEX COUNT QUERIES load` reads the index into memory when it is opened ([`Access::Load`]).

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::time::Instant;

use random::Random;
use twindex::{Access, Fingerprint, Index, Snapshot};

#[path = "../tests/support/random.rs"]
mod random;

/// On average, one in `COPIES` fingerprints is an earlier one with up to three flipped bits.
const COPIES: u64 = 50;
/// Maximum number of queries in the last pass, which runs one query at a time.
const SINGLE: usize = 100_000;

/// Returns the random fingerprint for a position. It is stored at this position unless a copy is stored there.
fn original(position: u64) -> u64 {
    Random(position.wrapping_mul(0x9E37_79B9_7F4A_7C15)).next()
}

fn is_copy(position: u64) -> bool {
    position > 0 && Random(!position).next().is_multiple_of(COPIES)
}

/// Flips a random bit `bits` times. The same bit may be drawn repeatedly, so the result differs in at most `bits` bits.
fn flip(fingerprint: u64, bits: u64, random: &mut Random) -> u64 {
    (0..bits).fold(fingerprint, |flipped, _| flipped ^ 1 << random.below(64))
}

/// Returns the fingerprint at a position.
fn at(position: u64) -> u64 {
    if !is_copy(position) {
        return original(position);
    }
    let mut random = Random(position ^ 0xC0FF_EE00_0000_0000);
    let mut of = random.next() % position;
    while is_copy(of) {
        of -= 1; // position 0 is not a copy
    }
    let bits = 1 + random.next() % 3;
    flip(original(of), bits, &mut random)
}

#[allow(clippy::disallowed_methods, reason = "an input file, which is no part of an index")]
fn make(path: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for position in 0..count {
        out.write_all(&at(position).to_le_bytes())?;
    }
    out.into_inner()?.sync_all()?;
    Ok(())
}

/// Queries. For every second one, `stored` contains the position of the stored fingerprint that it must find.
struct Questions {
    fingerprints: Vec<Fingerprint>,
    stored: Vec<Option<u64>>,
}

impl Questions {
    fn new(count: u64, queries: usize, seed: u64) -> Self {
        let mut random = Random(seed);
        let stored: Vec<_> =
            (0..queries).map(|query| query.is_multiple_of(2).then(|| random.next() % count)).collect();
        let fingerprints = stored.iter().map(|stored| {
            let bits = random.next() % 4;
            Fingerprint(match stored {
                Some(position) => flip(at(*position), bits, &mut random),
                None => random.next(),
            })
        });
        let fingerprints = fingerprints.collect();
        Self { fingerprints, stored }
    }
}

/// Microseconds per query, and the number of stored fingerprints found.
type Timed = (f64, usize);

fn together(snapshot: &Snapshot, questions: &Questions) -> Result<Timed, Box<dyn Error>> {
    let mut found = vec![false; questions.stored.len()];
    let begun = Instant::now();
    snapshot.for_each_within_any(&questions.fingerprints, 3, |query, document, _| {
        if let Some(stored) = questions.stored[query] {
            found[query] |= document.key()?.as_key() == stored.into();
        }
        Ok(())
    })?;
    let micros = begun.elapsed().as_secs_f64() * 1e6 / found.len() as f64;
    Ok((micros, found.iter().filter(|found| **found).count()))
}

fn one_at_a_time(snapshot: &Snapshot, questions: &Questions) -> Result<Timed, Box<dyn Error>> {
    let mut found = 0;
    let begun = Instant::now();
    for (&fingerprint, stored) in questions.fingerprints.iter().zip(&questions.stored) {
        let hits = snapshot.within(fingerprint, 3).run()?.hits;
        found += usize::from(
            stored.is_some_and(|stored| hits.iter().any(|hit| hit.key.as_key() == stored.into())),
        );
    }
    Ok((begun.elapsed().as_secs_f64() * 1e6 / questions.stored.len() as f64, found))
}

fn ask(path: &str, count: u64, queries: usize, access: Access) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let index = Index::options().access(access).open(path)?;
    let open_ms = begun.elapsed().as_secs_f64() * 1e3;
    let snapshot = index.snapshot();
    let passes = [1000, queries, queries, SINGLE.min(queries)];
    let [few, first, second, single] =
        [0, 1, 2, 3].map(|pass| Questions::new(count, passes[pass], 77 + pass as u64));
    let (few_us, few_found) = one_at_a_time(&snapshot, &few)?;
    let (first_us, first_found) = together(&snapshot, &first)?;
    let (second_us, second_found) = together(&snapshot, &second)?;
    let (single_us, single_found) = one_at_a_time(&snapshot, &single)?;
    let wanted: usize =
        [few, first, second, single].iter().map(|asked| asked.stored.iter().flatten().count()).sum();
    let found = few_found + first_found + second_found + single_found;
    println!(
        "{{\"documents\":{count},\"queries\":{queries},\"access\":\"{access:?}\",\"open_ms\":{open_ms:.1},\
         \"first_thousand_us\":{few_us:.2},\"first_batch_us\":{first_us:.2},\"batch_us\":{second_us:.2},\
         \"single_us\":{single_us:.2},\"wanted\":{wanted},\"found\":{found}}}"
    );
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{} stored fingerprints were not found", wanted - found).into())
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["make", path, count] => make(path, count.parse()?),
        ["ask", path, count, queries] => ask(path, count.parse()?, queries.parse()?, Access::Map),
        ["ask", path, count, queries, "load"] => ask(path, count.parse()?, queries.parse()?, Access::Load),
        _ => Err("usage: many_fingerprints make FILE COUNT | ask INDEX COUNT QUERIES [load]".into()),
    }
}
