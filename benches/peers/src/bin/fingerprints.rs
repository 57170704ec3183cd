//! Measures searches and joins of 64-bit fingerprints within 3 bits, one system per process. `scripts/experiment compare_all` runs it.
//!
//! ```text
//! fingerprints make COUNT DATA QUERIES NUMBER          writes COUNT fingerprints and NUMBER queries, little-endian
//! fingerprints index DATA DIR                          creates an index of twindex
//! fingerprints search SYSTEM DATA QUERIES [DIR]        SYSTEM: twindex, twindex-front, mih-rs, textbook, gaoya
//! fingerprints pairs SYSTEM DATA THREADS [DIR]         SYSTEM: twindex, twindex-index, mih-rs, textbook, all-pairs-hamming
//! ```
//!
//! Each measurement is a line of JSON with the wall time, the CPU time of the process, the number of answers, and a checksum
//! of the answers that does not depend on their order. `search` runs the queries one at a time and, if the system supports
//! it, as a batch, on one thread and on two. Its last line has the time to build or open, and memory. `twindex` searches the
//! segment of the index and finds positions, as the other systems do. `twindex-front` queries a snapshot and finds keys.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use gaoya::simhash::SimHashIndex;
use measure::{Answers, Random, Stopwatch, resident};
use pairs::{of_all_pairs_hamming, of_fingerprints, of_index};
use serde_json::{Value, json};
use textbook::Textbook;
use twindex::segment::{SearchOptions, SearchScratch, Segment};
use twindex::sys::RealVfs;
use twindex::{Fingerprint, Index};
use uniform::{WITHIN, clustered, index, near};

#[path = "../measure.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod measure;
#[path = "../pairs.rs"]
mod pairs;
#[path = "../textbook.rs"]
mod textbook;
#[path = "../uniform.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod uniform;

/// A function that answers queries. Its arguments are the queries, the number of the first one, and whether the queries are
/// run as a batch.
type Search<'s> = dyn Fn(&[u64], u64, bool) -> Result<Answers> + Sync + 's;

#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn read(path: &str) -> Result<Vec<u64>> {
    let bytes = std::fs::read(path).with_context(|| path.to_owned())?;
    ensure!(bytes.len().is_multiple_of(8), "{path}: {} bytes are not a multiple of 8", bytes.len());
    Ok(bytes.chunks_exact(8).filter_map(|bytes| Some(u64::from_le_bytes(bytes.try_into().ok()?))).collect())
}

#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn write(path: &str, values: &[u64]) -> Result<()> {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Ok(std::fs::write(path, bytes)?)
}

/// Returns the path of the only segment of an index, which is the largest file, and the total size of all files in bytes.
#[allow(clippy::disallowed_methods, reason = "measures an index from outside")]
fn segment_of(dir: &Path) -> Result<(PathBuf, u64)> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        files.push((entry.metadata()?.len(), entry.path()));
    }
    let bytes = files.iter().map(|(bytes, _)| bytes).sum();
    Ok((files.into_iter().max().context("an empty folder")?.1, bytes))
}

/// Prints a JSON object with the fields of all objects in `parts`, on one line.
fn show<const N: usize>(parts: [Value; N]) {
    let fields =
        parts.into_iter().filter_map(|part| if let Value::Object(part) = part { Some(part) } else { None });
    println!("{}", Value::Object(fields.flatten().collect()));
}

/// Returns the number and the checksum of answers as JSON.
fn found(answers: Answers) -> Value {
    json!({ "answers": answers.pairs, "sum": format!("{:016x}", answers.sum) })
}

/// Splits the queries into equal parts, and runs each part on a thread of its own. Systems do not split the queries
/// themselves, so this program does, as an application would.
fn run(search: &Search<'_>, queries: &[u64], together: bool, threads: usize) -> Result<Answers> {
    let size = queries.len().div_ceil(threads);
    let parts: Vec<Result<Answers>> = thread::scope(|scope| {
        let handles: Vec<_> = (0_u64..)
            .zip(queries.chunks(size))
            .map(|(part, queries)| scope.spawn(move || search(queries, part * size as u64, together)))
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked"))))
            .collect()
    });
    Ok(Answers::total(parts.into_iter().collect::<Result<Vec<_>>>()?))
}

/// Runs `one` for each query. `first` is the number of the first query.
fn each(
    queries: &[u64],
    first: u64,
    mut one: impl FnMut(u64, &mut dyn FnMut(u64)) -> Result<()>,
) -> Result<Answers> {
    let mut answers = Answers::default();
    for (number, &query) in (first..).zip(queries) {
        // `add` ignores the order of its arguments. So positions are shifted out of the range of query numbers.
        one(query, &mut |position| answers.add(number, position + (1 << 31)))?;
    }
    Ok(answers)
}

fn search(system: &str, data: &str, queries: &str, dir: Option<&String>) -> Result<()> {
    let queries = read(queries)?;
    let measure = |built: Value, disk: u64, ways: &[bool], search: &Search<'_>| -> Result<()> {
        run(search, &queries[..queries.len().min(1000)], false, 1)?; // reads the pages once, before measuring
        for &together in ways {
            for threads in [1, 2] {
                let watch = Stopwatch::start();
                let answers = run(search, &queries, together, threads)?;
                let way = if together { "together" } else { "one at a time" };
                show([
                    watch.read(),
                    found(answers),
                    json!({ "way": way, "threads": threads, "queries": queries.len() }),
                ]);
            }
        }
        show([
            json!({ "built": built, "disk": disk, "resident": resident(false)?, "peak": resident(true)? }),
        ]);
        Ok(())
    };
    let dir = || dir.map(Path::new).context("expected the folder of an index");
    let watch = Stopwatch::start();
    match system {
        "twindex" => {
            let (path, disk) = segment_of(dir()?)?;
            let segment = Segment::open(&RealVfs, &path)?;
            measure(watch.read(), disk, &[false, true], &|queries, first, together| {
                if !together {
                    return each(queries, first, |query, hit| {
                        Ok(segment.documents_within(query, WITHIN, |ordinal, _| hit(ordinal.into()))?)
                    });
                }
                let mut answers = Answers::default();
                let mut scratch = SearchScratch::default();
                segment.search_documents(
                    queries,
                    SearchOptions::within(WITHIN),
                    &mut scratch,
                    |at, ordinal, _| {
                        answers.add(first + at as u64, u64::from(ordinal) + (1 << 31));
                        Ok(ControlFlow::Continue(()))
                    },
                )?;
                Ok(answers)
            })
        }
        "twindex-front" => {
            let (_, disk) = segment_of(dir()?)?;
            let snapshot = Index::open(dir()?)?.snapshot();
            measure(watch.read(), disk, &[false], &|queries, first, _| {
                each(queries, first, |query, hit| {
                    for found in snapshot.within(Fingerprint(query), WITHIN).run()?.hits {
                        hit(found.key.as_u64().context("a key that is a number")?);
                    }
                    Ok(())
                })
            })
        }
        "mih-rs" => {
            let index = mih_rs::Index::new(read(data)?).map_err(|error| anyhow!("mih-rs: {error}"))?;
            let built = watch.read();
            let mut bytes = Vec::new();
            index.serialize_into(&mut bytes).map_err(|error| anyhow!("mih-rs: {error}"))?;
            let disk = bytes.len() as u64;
            drop(bytes);
            measure(built, disk, &[false], &|queries, first, _| {
                let mut searcher = index.range_searcher();
                each(queries, first, |query, hit| {
                    searcher.run(query, WITHIN as usize).iter().for_each(|&position| hit(position.into()));
                    Ok(())
                })
            })
        }
        "textbook" => {
            let tables = Textbook::new(&read(data)?);
            let built = watch.read();
            // Prints the expected answers to the first queries, for tools that run no more queries.
            for first in [1_000, 20_000, 100_000] {
                if first <= queries.len() {
                    let answers = each(&queries[..first], 0, |query, hit| {
                        tables.within(query, |position| hit(position.into()));
                        Ok(())
                    })?;
                    show([json!({ "first": first }), found(answers)]);
                }
            }
            measure(built, 0, &[false], &|queries, first, _| {
                each(queries, first, |query, hit| {
                    tables.within(query, |position| hit(position.into()));
                    Ok(())
                })
            })
        }
        "gaoya" => {
            let fingerprints = read(data)?;
            // gaoya finds signatures at a distance below the given one.
            let mut index = SimHashIndex::<u64, u32>::new(6, WITHIN as usize + 1);
            for (position, &fingerprint) in (0..).zip(&fingerprints) {
                index.insert(position, fingerprint);
            }
            measure(watch.read(), 0, &[false], &|queries, first, _| {
                each(queries, first, |query, hit| {
                    index.query(&query).into_iter().for_each(|&position| hit(position.into()));
                    Ok(())
                })
            })
        }
        other => bail!("{other}: an unknown system"),
    }
}

/// Calls `of_thread` on each of `threads` threads, with the number of the thread.
fn threaded(threads: usize, of_thread: impl Fn(usize) -> Answers + Sync) -> Result<Answers> {
    let of_thread = &of_thread;
    let parts = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || of_thread(thread))).collect();
        handles
            .into_iter()
            .map(|handle| handle.join().map_err(|_| anyhow!("a thread panicked")))
            .collect::<Vec<_>>()
    });
    Ok(Answers::total(parts.into_iter().collect::<Result<Vec<_>>>()?))
}

fn pairs(system: &str, data: &str, threads: usize, dir: Option<&String>) -> Result<()> {
    let scratch = tempfile::tempdir()?;
    let fingerprints = if system == "twindex-index" { Vec::new() } else { read(data)? };
    let watch = Stopwatch::start();
    let answers = match system {
        "twindex" => of_fingerprints(&fingerprints, scratch.path(), threads)?,
        "twindex-index" => {
            let snapshot = Index::open(dir.context("expected the folder of an index")?)?.snapshot();
            of_index(&snapshot, scratch.path(), threads)?
        }
        "all-pairs-hamming" => {
            ensure!(threads == 1, "all-pairs-hamming has no threads");
            of_all_pairs_hamming(&fingerprints)?
        }
        "mih-rs" => {
            let index =
                mih_rs::Index::new(fingerprints.clone()).map_err(|error| anyhow!("mih-rs: {error}"))?;
            threaded(threads, |thread| {
                let mut searcher = index.range_searcher();
                let mut found = Answers::default();
                for at in (thread..fingerprints.len()).step_by(threads) {
                    for &other in searcher.run(fingerprints[at], WITHIN as usize) {
                        if other as usize > at {
                            found.add(at as u64, other.into());
                        }
                    }
                }
                found
            })?
        }
        "textbook" => {
            let tables = Textbook::new(&fingerprints);
            threaded(threads, |thread| tables.pairs(thread, threads))?
        }
        other => bail!("{other}: an unknown system"),
    };
    show([watch.read(), found(answers), json!({ "threads": threads, "peak": resident(true)? })]);
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["make", count, data, queries, number] => {
            let fingerprints = clustered(count.parse()?);
            write(data, &fingerprints)?;
            write(queries, &near(&fingerprints, number.parse()?, &mut Random(2)))
        }
        ["index", data, dir] => {
            let fingerprints = read(data)?;
            let watch = Stopwatch::start();
            drop(index(Path::new(dir), &fingerprints)?);
            let built = watch.read();
            show([json!({ "built": built, "disk": segment_of(Path::new(dir))?.1, "peak": resident(true)? })]);
            Ok(())
        }
        ["search", system, data, queries, ..] => search(system, data, queries, arguments.get(4)),
        ["pairs", system, data, threads, ..] => pairs(system, data, threads.parse()?, arguments.get(4)),
        _ => bail!("expected make, index, search or pairs, and their arguments"),
    }
}
