//! Measures the speed of this machine, for `plan --measure`.

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use twindex::design::{CodecChoice, DesignChoice, Scheme};
use twindex::planner::cost::{REFERENCE, Speed, cost};
use twindex::segment::records::Kept;
use twindex::segment::{Records, SearchOptions, SearchScratch, Segment, build};
use twindex::{Key, MemoryVfs, Params, Result};

/// Number of fingerprints that are searched. Their tables fit into the level 2 cache.
const FINGERPRINTS: u64 = 100_000;
const WITHIN: u8 = 3;
/// Number of queries of a pass, as in the measurements to which the model was fitted.
const QUERIES: usize = 1 << 17;
/// Number of passes. The fastest one counts.
const PASSES: usize = 3;
/// Number of 8-byte words of the memory that is read, more than caches hold.
const WORDS: usize = 64 << 20 >> 3;
/// Number of words of a page.
const PAGE_WORDS: usize = 4096 >> 3;
const READS: usize = 1 << 18;

/// Returns the speed of this machine with the kernel that this process uses. Takes about a tenth of a second.
pub(super) fn speed() -> Result<Speed> {
    Ok(Speed { compute: compute()?, line_nanos: line_nanos()? })
}

/// Describes a measured speed.
pub(super) fn text(Speed { compute, line_nanos }: Speed) -> String {
    format!(
        "this machine, measured: {compute:.2} of the time on {REFERENCE}, and {line_nanos:.1} ns a line of memory"
    )
}

/// The xorshift generator of Marsaglia.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// Returns the time in nanoseconds of the fastest of several passes, divided by the number of its steps.
fn fastest(steps: usize, mut pass: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut nanos = f64::INFINITY;
    for _ in 0..PASSES {
        let start = Instant::now();
        pass()?;
        nanos = nanos.min(start.elapsed().as_secs_f64() * 1e9 / steps as f64);
    }
    Ok(nanos)
}

/// Returns the measured time of queries in a small segment, divided by the predicted one.
fn compute() -> Result<f64> {
    let mut random = Random(0x2545_F491_4F6C_DD1D);
    let params = Params::builder().u64_keys().simhash(WITHIN);
    let params = params.tables(DesignChoice::Auto, CodecChoice::Auto).build()?;
    let fingerprints: Vec<u64> = (0..FINGERPRINTS).map(|_| random.next()).collect();
    let mut records = Records::new(&params);
    for (key, &fingerprint) in (0..).zip(&fingerprints) {
        records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() }))?;
    }
    let (disk, path) = (MemoryVfs::default(), Path::new("/measured.seg"));
    build::build(&records, &disk, Path::new("/"))?.publish(path)?;
    let segment = Segment::open(&disk, path)?;
    // Half of the queries are 0 to 3 bits from a fingerprint.
    let mut near = || (0..random.next() % 4).fold(0, |bits, _| bits | 1 << (random.next() >> 58));
    let differs: Vec<u64> = (0..QUERIES).map(|_| near()).collect();
    let query = |(at, differs): (usize, u64)| match at % 2 {
        0 => fingerprints[at % fingerprints.len()] ^ differs,
        _ => random.next(),
    };
    let queries: Vec<u64> = differs.into_iter().enumerate().map(query).collect();
    let mut scratch = SearchScratch::default();
    let nanos = fastest(QUERIES, || {
        segment.search(&queries, SearchOptions::within(WITHIN.into()), &mut scratch, |_, found| {
            black_box(found);
            Ok(ControlFlow::Continue(()))
        })
    })?;
    let scheme = Scheme::choose(DesignChoice::Auto, CodecChoice::Auto, WITHIN, FINGERPRINTS);
    Ok(nanos / cost(scheme, WITHIN.into(), FINGERPRINTS)?.nanos())
}

/// Returns the time of reading a random line of memory, if the addresses do not depend on each other.
fn line_nanos() -> Result<f64> {
    let mut words = vec![0_u64; WORDS];
    for at in (0..WORDS).step_by(PAGE_WORDS) {
        words[at] = 1; // so that the page exists
    }
    let mut random = Random(1);
    let pass = || {
        let sum = (0..READS).fold(0_u64, |sum, _| sum.wrapping_add(words[random.next() as usize % WORDS]));
        black_box(sum);
        Ok(())
    };
    fastest(READS, pass)
}
