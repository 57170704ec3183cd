//! Compares the cost of building and merging segments with the cost of sorting their tables.
//!
//! ```sh
//! cargo bench --bench merge -- [FILE.u64 ...]
//! ```
//!
//! Each file contains fingerprints (little-endian u64); without files, the benchmark draws a million random ones. The
//! benchmark distributes the documents over eight segments and merges the segments. Rows:
//!
//! - `sort_unstable`: sorts the values of each table, the baseline;
//! - `radix`: the same with `segment::sorted::sort`;
//! - `merge of the tables`: merges the tables of the eight open segments and encodes them, without writing;
//! - `and their documents`: also reads, compares and merges the postings and ranks of the segments;
//! - `merge`, `build`: write and sync whole segments.
//!
//! Each number is the median of several rounds. Times are CPU times of the thread, because other load on the machine
//! increases wall time; where the system reports no CPU time, they are wall times. Memory is the maximum of anonymous
//! memory during the work, minus that at the start.

#![allow(clippy::disallowed_methods, reason = "reads files that are no index's")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use roaring::RoaringBitmap;
use twindex::design::{Design, DesignName};
use twindex::segment::merge::{MergeInput, merge, merge_tables};
use twindex::segment::records::Kept;
use twindex::segment::rows::Rows;
use twindex::segment::spilled::SpillBudget;
use twindex::segment::{Records, Segment, build, sorted};
use twindex::sys::RealVfs;
use twindex::{Key, Params};
use twindex_kernel::splitmix::SplitMix;

const SEGMENTS: usize = 8;
const ROUNDS: usize = 5;
const MEMORY: [usize; 3] = [64 << 20, 256 << 20, 1 << 30];

fn random(count: usize) -> Vec<u64> {
    let mut random = SplitMix(1);
    (0..count).map(|_| random.next()).collect()
}

/// Returns the CPU time of this thread in seconds, or the time since `since` if the system does not report CPU time.
fn worked(since: Instant) -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|first| first.parse::<u64>().ok());
    nanoseconds.map_or(since.elapsed().as_secs_f64(), |nanoseconds| nanoseconds as f64 * 1e-9)
}

fn anonymous() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap_or("0");
    line.trim().trim_end_matches("kB").trim().parse::<u64>().unwrap_or(0) << 10
}

/// Runs `work`; returns its CPU time and wall time in seconds, the maximum increase of anonymous memory in bytes, and its
/// result.
fn measured<T>(work: impl FnOnce() -> T) -> (f64, f64, u64, T) {
    let done = Arc::new(AtomicBool::new(false));
    let before = anonymous();
    let watcher = std::thread::spawn({
        let done = Arc::clone(&done);
        move || {
            let mut max = 0;
            while !done.load(Ordering::Relaxed) {
                max = max.max(anonymous());
                std::thread::sleep(Duration::from_millis(1));
            }
            max
        }
    });
    let (start, at_start) = (Instant::now(), worked(Instant::now()));
    let result = work();
    let (cpu, seconds) = (worked(start) - at_start, start.elapsed().as_secs_f64());
    done.store(true, Ordering::Relaxed);
    let max = watcher.join().unwrap_or(0);
    (cpu, seconds, max.saturating_sub(before), result)
}

fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

fn main() {
    let files: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    if files.is_empty() {
        report("random, 1 M", &random(1_000_000));
    }
    for file in files {
        let bytes = std::fs::read(&file).expect("a file of fingerprints");
        let (words, _) = bytes.as_chunks::<8>();
        let fingerprints: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        drop(bytes);
        report(Path::new(&file).file_name().and_then(|name| name.to_str()).unwrap_or(&file), &fingerprints);
    }
}

fn report(name: &str, fingerprints: &[u64]) {
    let params = Params::builder().u64_keys().simhash(3).build().expect("parameters");
    let dir = tempfile::tempdir().expect("a directory");
    let mut segments = Vec::new();
    for part in 0..SEGMENTS {
        let mut records = Records::new(&params);
        for (key, &fingerprint) in (0..).zip(fingerprints).skip(part).step_by(SEGMENTS) {
            records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() })).expect("a record");
        }
        let path = dir.path().join(format!("{part}.seg"));
        build::build(&records, &RealVfs, dir.path())
            .and_then(|built| built.publish(&path))
            .expect("a segment");
        segments.push(Segment::open(&RealVfs, &path).expect("the segment"));
    }
    let none = RoaringBitmap::new();
    let inputs: Vec<MergeInput<'_>> =
        segments.iter().map(|segment| MergeInput { segment, deleted: &none }).collect();
    let roomy = SpillBudget::new(4 << 30, dir.path());

    // The sort keys of the tables of the default design.
    let design = Design::new(segments[0].scheme().map_or(DesignName::Blocks(4), |scheme| scheme.design))
        .expect("a design");
    let mut distinct = fingerprints.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    let tables: Vec<Vec<u64>> = design
        .tables
        .iter()
        .map(|table| {
            fingerprints_in_input_order(fingerprints, &distinct).map(|f| table.order.apply(f)).collect()
        })
        .collect();
    let entries = (distinct.len() * tables.len()) as f64;
    let [mut comparison, mut radix] = [(); 2].map(|()| Vec::new());
    let mut merged = [(); 2].map(|()| Vec::new());
    for _ in 0..ROUNDS {
        let mut copies = tables.clone();
        comparison.push(measured(|| copies.iter_mut().for_each(|table| table.sort_unstable())).0);
        black_box(&copies);
        let mut copies = tables.clone();
        radix.push(
            measured(|| {
                let mut scratch = Vec::new();
                for table in &mut copies {
                    sorted::sort(table, &mut scratch);
                }
            })
            .0,
        );
        black_box(&copies);
        drop(copies);
        for (documents, merged) in [false, true].into_iter().zip(&mut merged) {
            let tables = merge_tables(&inputs, roomy, documents).expect("segments that merge");
            let (cpu, _, _, count) = measured(|| tables().expect("tables"));
            assert!((count as f64 - entries).abs() < 0.5, "{count} of {entries}");
            merged.push(cpu);
        }
    }
    let [comparison, radix] = [comparison, radix].map(median);
    let merged = merged.map(median);
    println!("{name}: {} fingerprints, {} tables, {entries} entries", distinct.len(), tables.len());
    let row = |what: &str, seconds: f64| {
        let rate = entries / seconds * 1e-6;
        println!("  {what:<22} {rate:6.1} M entries/s, {:.2} times sort_unstable", comparison / seconds);
    };
    row("sort_unstable", comparison);
    row("radix", radix);
    row("merge of the tables", merged[0]);
    row("and their documents", merged[1]);
    drop((tables, distinct));

    let to = dir.path().join("one.seg");
    let whole = |what: &str,
                 memory: usize,
                 work: &dyn Fn(SpillBudget<'_>) -> twindex::Result<build::BuiltSegment>| {
        let (cpu, seconds, max, built) = measured(|| work(SpillBudget::new(memory, dir.path())));
        built.and_then(|built| built.publish(&to)).expect("a segment");
        std::fs::remove_file(&to).expect("the segment");
        println!(
            "  {what:<22} {cpu:5.2} s of work, {seconds:5.2} s, {:5} MiB of {} MiB",
            max >> 20,
            memory >> 20
        );
    };
    for memory in MEMORY {
        whole("merge", memory, &|budget| merge(&inputs, &RealVfs, dir.path(), budget));
        whole("build", memory, &|budget| {
            let mut rows = Rows::new(budget)?;
            for (start, part) in (0..).step_by(1 << 16).zip(fingerprints.chunks(1 << 16)) {
                let mut records = Records::new(&params);
                for (key, &fingerprint) in (start..).zip(part) {
                    records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() }))?;
                }
                rows.append(&records, budget)?;
            }
            rows.build(&params, &RealVfs, dir.path(), budget, |_| Ok(()))
        });
    }
}

/// Returns the distinct fingerprints in the order of their first occurrence.
fn fingerprints_in_input_order<'a>(
    fingerprints: &'a [u64],
    distinct: &'a [u64],
) -> impl Iterator<Item = u64> + 'a {
    let mut seen = vec![false; distinct.len()];
    fingerprints.iter().copied().filter(move |fingerprint| {
        distinct.binary_search(fingerprint).is_ok_and(|place| !std::mem::replace(&mut seen[place], true))
    })
}
