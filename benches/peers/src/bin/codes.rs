//! Measures searches of fingerprints of 256 bits at any radius. `scripts/experiment compare_all` runs it.
//!
//! ```text
//! codes make COUNT DATA QUERIES NUMBER      writes COUNT fingerprints and NUMBER queries of 32 bytes
//! codes index DATA DIR                      creates an index of twindex
//! codes search DIR QUERIES WITHIN           times queries one at a time, and as a batch, on one thread and on two
//! ```
//!
//! Three in ten fingerprints are copies of earlier ones with up to 60 bits flipped. Half of the queries are stored
//! fingerprints with up to 60 bits flipped, and half are random. Each measurement is a line of JSON, as of `fingerprints`.

use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use measure::{Answers, Random, Stopwatch, resident};
use serde_json::{Value, json};
use twindex::{Code, Index, Params, Snapshot};

#[path = "../measure.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod measure;

const BITS: usize = 256;
const BYTES: usize = BITS / 8;
/// Documents within this distance are near in the index; queries have radii of their own.
const NEAR: u16 = 31;
const FLIPPED: usize = 60;

fn random_code(random: &mut Random) -> [u64; BITS / 64] {
    std::array::from_fn(|_| random.next())
}

/// Returns the code after at most [`FLIPPED`] flips of random bits.
fn flip(random: &mut Random, mut code: [u64; BITS / 64]) -> [u64; BITS / 64] {
    for _ in 0..random.below(FLIPPED + 1) {
        let bit = random.below(BITS);
        code[bit / 64] ^= 1 << (bit % 64);
    }
    code
}

#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn write(path: &str, codes: &[[u64; BITS / 64]]) -> Result<()> {
    let bytes: Vec<u8> = codes.iter().flatten().flat_map(|word| word.to_be_bytes()).collect();
    Ok(std::fs::write(path, bytes)?)
}

#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn read(path: &str) -> Result<Vec<Code>> {
    let bytes = std::fs::read(path).with_context(|| path.to_owned())?;
    ensure!(bytes.len().is_multiple_of(BYTES), "{path}: {} bytes are not a multiple of {BYTES}", bytes.len());
    bytes.chunks_exact(BYTES).map(|bytes| Code::of_bytes(bytes).context("a width of fingerprints")).collect()
}

#[allow(clippy::disallowed_methods, reason = "measures an index from outside")]
fn bytes_of(dir: &str) -> Result<u64> {
    std::fs::read_dir(dir)?.map(|entry| Ok(entry?.metadata()?.len())).sum()
}

fn show(line: Value, more: Value) {
    let fields = [line, more].into_iter().filter_map(|part| match part {
        Value::Object(part) => Some(part),
        _ => None,
    });
    println!("{}", Value::Object(fields.flatten().collect()));
}

fn make(count: usize, number: usize) -> (Vec<[u64; BITS / 64]>, Vec<[u64; BITS / 64]>) {
    let mut random = Random(1);
    let mut codes = Vec::with_capacity(count);
    while codes.len() < count {
        let is_copy = !codes.is_empty() && random.below(10) < 3;
        let next = if is_copy {
            let earlier = codes[random.below(codes.len())];
            flip(&mut random, earlier)
        } else {
            random_code(&mut random)
        };
        codes.push(next);
    }
    let mut queries = Vec::with_capacity(number);
    for at in 0..number {
        let stored = codes[random.below(count)];
        queries.push(if at % 2 == 0 { random_code(&mut random) } else { flip(&mut random, stored) });
    }
    (codes, queries)
}

fn index(data: &str, dir: &str) -> Result<()> {
    let codes = read(data)?;
    let watch = Stopwatch::start();
    let index = Index::create(dir, Params::builder().u64_keys().codes(BITS as u16, NEAR).build()?)?;
    let mut writer = index.writer()?;
    for (key, &code) in (0_u64..).zip(&codes) {
        writer.put(key, code)?;
    }
    writer.commit()?;
    drop(writer);
    index.compact()?;
    show(json!({ "built": watch.read(), "disk": bytes_of(dir)? }), json!({ "peak": resident(true)? }));
    Ok(())
}

/// Answers queries; `first` is the number of the first one.
fn answer(snapshot: &Snapshot, queries: &[Code], first: u64, within: u32, together: bool) -> Result<Answers> {
    let mut found = Answers::default();
    let mut add = |number: u64, answers: &twindex::Answers| -> Result<()> {
        for hit in &answers.hits {
            found.add(number, hit.key.as_u64().context("a key that is a number")? + (1 << 31));
        }
        Ok(())
    };
    if together {
        for (number, answers) in (first..).zip(&snapshot.codes_within(queries, within, usize::MAX)?) {
            add(number, answers)?;
        }
    } else {
        for (number, query) in (first..).zip(queries) {
            add(number, &snapshot.within(*query, within).run()?)?;
        }
    }
    Ok(found)
}

fn search(dir: &str, queries: &str, within: u32) -> Result<()> {
    let (queries, watch) = (read(queries)?, Stopwatch::start());
    let snapshot = Index::open(dir)?.snapshot();
    let built = watch.read();
    let found =
        |answers: Answers| json!({ "answers": answers.pairs, "sum": format!("{:016x}", answers.sum) });
    // Reads the pages once, before measuring, and prints the answers for tools that run no more queries.
    for first in [100, queries.len()] {
        let queries = &queries[..first.min(queries.len())];
        show(json!({ "first": queries.len() }), found(answer(&snapshot, queries, 0, within, true)?));
    }
    for (together, threads) in [(false, 1), (false, 2), (true, 1), (true, 2)] {
        let queries = if together { &queries[..] } else { &queries[..queries.len().min(100)] };
        let (size, watch) = (queries.len().div_ceil(threads), Stopwatch::start());
        let parts = thread::scope(|scope| {
            let handles: Vec<_> = (0..)
                .zip(queries.chunks(size))
                .map(|(part, queries)| {
                    let snapshot = &snapshot;
                    scope.spawn(move || answer(snapshot, queries, part * size as u64, within, together))
                })
                .collect();
            let join = |handle: thread::ScopedJoinHandle<'_, _>| {
                handle.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")))
            };
            handles.into_iter().map(join).collect::<Result<Vec<_>>>()
        })?;
        let (taken, way) = (watch.read(), if together { "together" } else { "one at a time" });
        let mut line = json!({ "way": way, "threads": threads, "queries": queries.len() });
        for (name, value) in taken.as_object().context("an object")? {
            line[name] = value.clone();
        }
        show(line, found(Answers::total(parts)));
    }
    show(
        json!({ "built": built, "disk": bytes_of(dir)? }),
        json!({ "resident": resident(false)?, "peak": resident(true)? }),
    );
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["make", count, data, queries, number] => {
            let (codes, asked) = make(count.parse()?, number.parse()?);
            write(data, &codes)?;
            write(queries, &asked)
        }
        ["index", data, dir] => index(data, dir),
        ["search", dir, queries, within] => search(dir, queries, within.parse()?),
        _ => bail!("expected make, index or search, and their arguments"),
    }
}
