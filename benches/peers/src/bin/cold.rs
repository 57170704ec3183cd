//! Compares three ways to run cold queries within radius 3: buckets prefetched before they are read, a map with only
//! `MADV_RANDOM` advice, and a map without advice.
//!
//! `cargo run --release --manifest-path benches/peers/Cargo.toml --bin cold -- FINGERPRINTS [ROUNDS]`
//!
//! One segment has uniform fingerprints. Of the 10,000 queries, half have a match; the queries run in batches of
//! several sizes. Before each run, the segment is closed and its file is removed from the page cache (`posix_fadvise`,
//! which needs no root). The run opens the segment and queries it. All contestants must find the same number of
//! matches, and must read from the disk. Times are wall times; ratios are medians of the ratios within a round. Needs
//! Linux, and a temporary directory (TMPDIR) on a disk.

use std::fs;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use measure::{count_and_rounds, median};
use twindex::design::DesignChoice;
use twindex::segment::{SearchOptions, SearchScratch, Segment};
use twindex::sys::lock::{HeldLock, LockFailure};
use twindex::sys::vfs::{AppendFile, ReadFile, TemporaryFile};
use twindex::sys::{Access, Bytes, RealVfs, Vfs};
use uniform::{WITHIN, forget, segment, uniform};

#[path = "../measure.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod measure;
#[path = "../uniform.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod uniform;

const QUERIES: usize = 10_000;
const TOGETHER: [usize; 4] = [16, 64, 1_000, 10_000];
const NAMES: [&str; 3] = ["announced", "MADV_RANDOM alone", "plain map"];

/// The real file system, except that maps get the advice `MADV_RANDOM`.
#[derive(Debug)]
struct Random;

#[derive(Debug)]
struct RandomFile(Box<dyn ReadFile>);

impl ReadFile for RandomFile {
    fn len(&self) -> io::Result<u64> {
        self.0.len()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.0.read_exact_at(buffer, offset)
    }

    fn map(&self, len: usize) -> io::Result<Bytes> {
        let bytes = self.0.map(len)?;
        if let Bytes::Mapped(map) = &bytes {
            map.advise(memmap2::Advice::Random)?;
        }
        Ok(bytes)
    }
}

impl Vfs for Random {
    fn open(&self, path: &Path) -> io::Result<Box<dyn ReadFile>> {
        Ok(Box::new(RandomFile(RealVfs.open(path)?)))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        RealVfs.create_dir(path)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        RealVfs.exists(path)
    }

    fn create_temporary(&self, dir: &Path) -> io::Result<Box<dyn TemporaryFile>> {
        RealVfs.create_temporary(dir)
    }

    fn create_append(&self, path: &Path) -> io::Result<Box<dyn AppendFile>> {
        RealVfs.create_append(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        RealVfs.sync_dir(dir)
    }

    fn rename_dir(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealVfs.rename_dir(from, to)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        RealVfs.remove_dir(path)
    }

    fn unlink(&self, path: &Path) -> io::Result<()> {
        RealVfs.unlink(path)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<std::ffi::OsString>> {
        RealVfs.list(dir)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn HeldLock>, LockFailure> {
        RealVfs.lock(path)
    }
}

/// Returns the number of bytes that this process has read from disks.
fn bytes_read() -> Result<u64> {
    #[allow(clippy::disallowed_methods, reason = "no file of an index")]
    let counts = fs::read_to_string("/proc/self/io")?;
    let line = counts.lines().find_map(|line| line.strip_prefix("read_bytes: "));
    Ok(line.context("no read_bytes in /proc/self/io")?.trim().parse()?)
}

/// Runs one contestant with a cold page cache. Returns the seconds, the megabytes read, and the number of matches.
fn run(path: &Path, contestant: usize, queries: &[u64], together: usize) -> Result<(f64, f64, u64)> {
    forget(path)?;
    let read = bytes_read()?;
    let start = Instant::now();
    let segment = match contestant {
        0 => Segment::open(&RealVfs, path)?,
        1 => Segment::open_with(&Random, path, Access::PlainMap)?,
        _ => Segment::open_with(&RealVfs, path, Access::PlainMap)?,
    };
    let (mut hits, mut scratch) = (0, SearchScratch::default());
    for queries in queries.chunks(together) {
        segment.search(queries, SearchOptions::within(WITHIN), &mut scratch, |_, _| {
            hits += 1;
            Ok(ControlFlow::Continue(()))
        })?;
    }
    let seconds = start.elapsed().as_secs_f64();
    let read = bytes_read()? - read;
    ensure!(read > 0, "nothing was read from a disk: set TMPDIR to a folder on one");
    Ok((seconds, read as f64 / 1e6, hits))
}

fn main() -> Result<()> {
    let (count, rounds) = count_and_rounds()?;
    let (fingerprints, queries) = uniform(count, QUERIES);
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("cold.seg");
    let length = {
        let built = segment(&path, &fingerprints, DesignChoice::Auto)?;
        built.length() as f64 / 1e6
    };
    drop(fingerprints);
    println!(
        "{count} fingerprints, {length:.0} MB, {} cold queries within {WITHIN}, medians of {rounds} rounds",
        queries.len()
    );
    let mut found = None;
    for together in TOGETHER {
        let mut taken = vec![Vec::new(); NAMES.len()];
        let mut megabytes = [0.0; NAMES.len()];
        for _ in 0..rounds {
            for contestant in 0..NAMES.len() {
                let (seconds, read, hits) = run(&path, contestant, &queries, together)?;
                taken[contestant].push(seconds);
                megabytes[contestant] = read;
                let expected = *found.get_or_insert(hits);
                ensure!(hits == expected, "{}: {hits} answers, another one {expected}", NAMES[contestant]);
            }
        }
        for (contestant, name) in NAMES.iter().enumerate() {
            let seconds = median(taken[contestant].clone()).0;
            print!(
                "{together:>6} together  {name:<18} {seconds:>7.3} s  {:>7.1} MB read",
                megabytes[contestant]
            );
            if contestant > 0 {
                let ratios =
                    taken[contestant].iter().zip(&taken[0]).map(|(other, own)| other / own).collect();
                let (ratio, least, most) = median(ratios);
                print!("  {ratio:>5.1} x ({least:.1}..{most:.1})");
            }
            println!();
        }
    }
    println!("{} answers", found.unwrap_or_default());
    Ok(())
}
