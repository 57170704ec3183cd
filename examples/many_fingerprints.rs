//! Writes a file of up to billions of fingerprints, and measures queries of an index that is built from this file.
//! `scripts/experiment billion` runs this example.
//!
//! ```sh
//! cargo run --release --example many_fingerprints -- make FILE 1000000000
//! cargo run --release -- build INDEX --fingerprints FILE --near within:3 --memory 8G
//! cargo run --release --example many_fingerprints -- ask INDEX 1000000000 1000000
//! cargo run --release --example many_fingerprints -- cold INDEX 1000000000 100
//! cargo run --release --example many_fingerprints -- texts INDEX 300000
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
//!
//! `cold` queries an index whose pages were dropped from the page cache: before each single query, and once before all
//! queries together. It prints the mean microseconds and pages per query, then the same with the reads and the waits of a
//! simulated device (100 us, 32 reads in parallel), and the largest number of reads that depend on each other. Needs Linux.
//! Of an index that `texts` has made, of texts of 60 words and signatures or, with `sets`, their sets, `cold` asks about
//! texts, and admits them.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use faults::{Faults, FaultyVfs};
use random::Random;
use twindex::sys::RealVfs;
use twindex::{Access, Admitted, Fingerprint, Index, Params, Snapshot, WriterOptions};

#[path = "../tests/support/faults.rs"]
mod faults;
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

/// Drops the pages of an index from the page cache, except for mapped ones.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "drops files of the library from the page cache")]
fn forget(index: &Path) -> Result<(), Box<dyn Error>> {
    for file in std::fs::read_dir(index)? {
        let file = File::open(file?.path())?;
        file.sync_all()?;
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    }
    Ok(())
}

/// Returns the number of pages that this process has read from disks.
#[cfg(target_os = "linux")]
#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn pages_read() -> Result<f64, Box<dyn Error>> {
    let counts = std::fs::read_to_string("/proc/self/io")?;
    let line = counts.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    Ok(line.ok_or("no read_bytes in /proc/self/io")?.trim().parse::<f64>()? / 4096.0)
}

/// Asks the queries of a range, whose answers must be right.
type Ask<'a> = dyn Fn(&Index, Range<usize>) -> Result<(), Box<dyn Error>> + 'a;

/// Runs queries of a cold index, `at_once` of them together, and returns the mean microseconds and pages per query, and the
/// depth.
#[cfg(target_os = "linux")]
fn run_cold(
    path: &Path,
    simulated: bool,
    (queries, at_once): (usize, usize),
    ask: &Ask<'_>,
) -> Result<[f64; 3], Box<dyn Error>> {
    let (mut micros, mut pages, mut depth) = (0.0, 0.0, 0_u64);
    for few in (0..queries).step_by(at_once) {
        forget(path)?;
        let faults = Arc::new(Faults::default());
        let index = if simulated {
            let vfs = Arc::new(FaultyVfs(Arc::clone(&faults)));
            Index::options().access(Access::Read).open_with(vfs, path)?
        } else {
            Index::options().open_with(Arc::new(RealVfs), path)?
        };
        *faults.device.lock().unwrap() = faults::Device::default();
        let (read, begun) = (pages_read()?, Instant::now());
        ask(&index, few..queries.min(few + at_once))?;
        let took = begun.elapsed();
        let device = faults.device.lock().unwrap();
        micros += if simulated { device.time } else { took }.as_secs_f64() * 1e6;
        pages += if simulated { device.reads as f64 } else { pages_read()? - read };
        depth = depth.max(device.depth);
    }
    let count = queries as f64;
    Ok([micros / count, pages / count, depth as f64])
}

#[cfg(target_os = "linux")]
fn measure_cold(
    name: &str,
    path: &Path,
    counts: (usize, usize),
    ask: &Ask<'_>,
) -> Result<(), Box<dyn Error>> {
    let [us, pages, _] = run_cold(path, false, counts, ask)?;
    let [device_us, reads, depth] = run_cold(path, true, counts, ask)?;
    println!(
        "{{\"queries\":\"{name}\",\"us\":{us:.0},\"pages\":{pages:.1},\"device_us\":{device_us:.0},\
         \"device_reads\":{reads:.1},\"depth\":{depth}}}"
    );
    Ok(())
}

#[cfg(target_os = "linux")]
fn cold(path: &str, count: u64, queries: usize) -> Result<(), Box<dyn Error>> {
    let path = Path::new(path);
    if Index::open(path)?.snapshot().params().minhash.is_some() {
        return cold_texts(path, count, queries);
    }
    let questions = Questions::new(count, queries, 81);
    let ask = |index: &Index, few: Range<usize>| {
        let few = Questions {
            fingerprints: questions.fingerprints[few.clone()].to_vec(),
            stored: questions.stored[few].to_vec(),
        };
        let together = if few.stored.len() > 1 { together } else { one_at_a_time };
        let (_, found) = together(&index.snapshot(), &few)?;
        assert_eq!(found, few.stored.iter().flatten().count(), "stored fingerprints were not found");
        Ok(())
    };
    measure_cold("one at a time", path, (queries, 1), &ask)?;
    measure_cold("together", path, (queries, queries), &ask)
}

/// Returns a text of 60 words. The texts of ten consecutive numbers differ in one word.
fn text(number: u64) -> String {
    let mut random = Random(number / 10 + 1);
    let mut words: Vec<String> = (0..60).map(|_| format!("w{}", random.below(50_000))).collect();
    words[(number % 10) as usize] = format!("v{number}");
    words.join(" ")
}

/// Makes an index of `count` texts. Each has nine near ones.
fn texts(path: &str, count: u64, sets: bool) -> Result<(), Box<dyn Error>> {
    let params = Params::builder().words(2).minhash(20, 4);
    let index = Index::create(path, if sets { params.sets() } else { params }.build()?)?;
    let sketcher = index.sketcher()?;
    let mut writer = index.writer_with(WriterOptions::default().logged(false))?;
    for number in 0..count {
        writer.put(format!("{number:09}").as_str(), &sketcher.sketch(&text(number))?)?;
    }
    writer.commit()?;
    Ok(())
}

#[cfg(target_os = "linux")]
fn cold_texts(path: &Path, count: u64, queries: usize) -> Result<(), Box<dyn Error>> {
    let sketcher = Index::open(path)?.sketcher()?;
    let mut random = Random(82);
    let sketches = (0..queries).map(|_| sketcher.sketch(&text(random.next() % count)));
    let sketches = sketches.collect::<Result<Vec<_>, _>>()?;
    let near = |index: &Index, few: Range<usize>| {
        for sketch in &sketches[few] {
            assert!(!index.snapshot().near(sketch).run()?.hits.is_empty(), "a stored text was not found");
        }
        Ok(())
    };
    let admit = |index: &Index, few: Range<usize>| {
        let mut writer = index.writer_with(WriterOptions::default().logged(false))?;
        for (number, sketch) in few.clone().zip(&sketches[few]) {
            let admitted = writer.admit(format!("{:09}", number as u64 * 7 + count).as_str(), sketch)?;
            assert!(matches!(admitted, Admitted::Duplicate(_)), "a near text was not found");
        }
        Ok(())
    };
    measure_cold("one at a time", path, (queries, 1), &near)?;
    measure_cold("one after the other", path, (queries, queries), &near)?;
    measure_cold("admit, one at a time", path, (queries, 1), &admit)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["make", path, count] => make(path, count.parse()?),
        ["ask", path, count, queries] => ask(path, count.parse()?, queries.parse()?, Access::Map),
        #[cfg(target_os = "linux")]
        ["cold", path, count, queries] => cold(path, count.parse()?, queries.parse()?),
        ["texts", path, count] => texts(path, count.parse()?, false),
        ["texts", path, count, "sets"] => texts(path, count.parse()?, true),
        ["ask", path, count, queries, "load"] => ask(path, count.parse()?, queries.parse()?, Access::Load),
        _ => Err("usage: many_fingerprints make FILE COUNT | ask INDEX COUNT QUERIES [load] | cold INDEX COUNT QUERIES | texts INDEX COUNT [sets]".into()),
    }
}
