//! Finds near-duplicate documents of a JSONL file, exactly or with other tools, or measures only signatures.
//! `scripts/experiment compare_all` runs it.
//!
//! ```text
//! texts truth FILE.jsonl PAIRS.tsv LEAST [CHECKED]     writes all pairs with a resemblance of LEAST or more, exactly
//! texts gaoya|find-simdoc FILE.jsonl PAIRS.tsv         writes the pairs whose resemblance a tool estimates at 0.8 or more
//! texts sketch SYSTEM FILE.jsonl PAIRS.tsv ROUNDS      times signatures of 128 minima, without an index
//! ```
//!
//! The file has the fields `id` and `text`. Documents are numbered from 0. Words are separated by white space, and shingles
//! have five words; a document of fewer words is one shingle. `truth` shares no code with twindex: it compares each set of
//! shingles with the sets that share one of its rarest shingles. It also compares the first CHECKED documents with each
//! other by brute force, and fails if the answers differ. Tools use RAYON_NUM_THREADS threads.

use std::collections::HashMap;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufRead, BufReader, BufWriter, Write};

use anyhow::{Context, Result, anyhow, bail, ensure};
use find_simdoc::JaccardSearcher;
use gaoya::minhash::{MinHashIndex, MinHasher, MinHasher32, VecContainer};
use measure::{Stopwatch, median, resident};
use rayon::prelude::*;
use serde_json::json;
use twindex::Params;
use twindex::sketch::params::Family;
use twindex::sketch::{MinHasher as Kernel, Resemblance, Scratch, Sketch, Sketcher};

#[path = "../measure.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod measure;

const WIDTH: usize = 5;
const THRESHOLD: f64 = 0.8;
const MINIMA: usize = 128;

/// Reads the texts of a JSONL file. Each run of white space is replaced by one space.
#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn read(path: &str) -> Result<Vec<String>> {
    let lines = BufReader::new(File::open(path).with_context(|| path.to_owned())?).lines();
    lines
        .map(|line| {
            let document: serde_json::Value = serde_json::from_str(&line?)?;
            let text = document["text"].as_str().context("a line without text")?;
            Ok(text.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

/// Returns the shingles of a text whose words are separated by one space. They are slices of the text.
fn shingles(text: &str) -> Vec<&str> {
    let starts: Vec<usize> =
        std::iter::once(0).chain(text.match_indices(' ').map(|(at, _)| at + 1)).collect();
    if starts.len() <= WIDTH {
        return vec![text];
    }
    let end = |word: usize| starts.get(word).map_or(text.len(), |start| start - 1);
    (0..=starts.len() - WIDTH).map(|word| &text[starts[word]..end(word + WIDTH)]).collect()
}

#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn write(path: &str, pairs: &mut [(u32, u32, f64)]) -> Result<()> {
    pairs.sort_by_key(|pair| (pair.0, pair.1));
    let mut out = BufWriter::new(File::create(path)?);
    for (a, b, resemblance) in pairs {
        writeln!(out, "{a}\t{b}\t{resemblance:.6}")?;
    }
    Ok(out.flush()?)
}

/// Returns the resemblance (Jaccard similarity) of two sorted sets without repeated elements.
fn resemblance(a: &[u32], b: &[u32]) -> f64 {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        both += usize::from(a[i] == b[j]);
        let (x, y) = (a[i], b[j]);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    both as f64 / (a.len() + b.len() - both) as f64
}

/// Returns all pairs of sets with a resemblance of `least` or more, with the resemblance. Shingles are numbered by
/// frequency, rarest first, so near sets share one of their lowest numbers (a prefix join).
fn join(sets: &[Vec<u32>], least: f64) -> Vec<(u32, u32, f64)> {
    let mut order: Vec<usize> = (0..sets.len()).collect();
    order.sort_by_key(|&set| sets[set].len());
    let mut with: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut seen = vec![u32::MAX; sets.len()];
    let mut pairs = Vec::new();
    for set in order {
        let mine = &sets[set];
        let needed = (least * mine.len() as f64).ceil() as usize;
        for shingle in &mine[..(mine.len() + 1).saturating_sub(needed)] {
            let others = with.entry(*shingle).or_default();
            for &other in others.iter() {
                if seen[other as usize] == set as u32 || sets[other as usize].len() < needed {
                    continue;
                }
                seen[other as usize] = set as u32;
                let found = resemblance(mine, &sets[other as usize]);
                if found >= least {
                    pairs.push((other.min(set as u32), other.max(set as u32), found));
                }
            }
            others.push(set as u32);
        }
    }
    pairs
}

fn truth(texts: &[String], out: &str, least: f64, checked: usize) -> Result<()> {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut frequencies: Vec<u32> = Vec::new();
    let mut sets: Vec<Vec<u32>> = Vec::new();
    for text in texts {
        let mut set: Vec<u32> = shingles(text)
            .into_iter()
            .map(|shingle| {
                *numbers.entry(shingle).or_insert_with(|| {
                    frequencies.push(0);
                    frequencies.len() as u32 - 1
                })
            })
            .collect();
        set.sort_unstable();
        set.dedup();
        set.iter().for_each(|&shingle| frequencies[shingle as usize] += 1);
        sets.push(set);
    }
    let shingle_count: usize = sets.iter().map(Vec::len).sum();
    drop(numbers);
    let mut by_frequency: Vec<u32> = (0..frequencies.len() as u32).collect();
    by_frequency.sort_by_key(|&shingle| frequencies[shingle as usize]);
    let mut rank = vec![0; frequencies.len()];
    (0..).zip(&by_frequency).for_each(|(place, &shingle)| rank[shingle as usize] = place);
    for set in &mut sets {
        set.iter_mut().for_each(|shingle| *shingle = rank[*shingle as usize]);
        set.sort_unstable();
    }
    // Equal sets are joined as one set, because many documents with equal sets form very many pairs.
    let mut groups: HashMap<&[u32], Vec<u32>> = HashMap::new();
    for (document, set) in (0..).zip(&sets) {
        groups.entry(set).or_default().push(document);
    }
    let mut groups: Vec<(&[u32], Vec<u32>)> = groups.into_iter().collect();
    groups.sort_by_key(|group| group.1[0]);
    let unique: Vec<Vec<u32>> = groups.iter().map(|(set, _)| set.to_vec()).collect();
    let mut pairs = Vec::new();
    for (_, group) in &groups {
        for (at, &a) in group.iter().enumerate() {
            pairs.extend(group[at + 1..].iter().map(|&b| (a, b, 1.0)));
        }
    }
    for (a, b, found) in join(&unique, least) {
        for &a in &groups[a as usize].1 {
            pairs.extend(groups[b as usize].1.iter().map(|&b| (a.min(b), a.max(b), found)));
        }
    }
    let checked = checked.min(sets.len());
    let mut expected: Vec<(u32, u32)> = Vec::new();
    for (b, second) in sets[..checked].iter().enumerate() {
        for (a, first) in sets[..b].iter().enumerate() {
            if resemblance(first, second) >= least {
                expected.push((a as u32, b as u32));
            }
        }
    }
    let mut joined: Vec<(u32, u32)> =
        pairs.iter().map(|pair| (pair.0, pair.1)).filter(|pair| (pair.1 as usize) < checked).collect();
    expected.sort_unstable();
    joined.sort_unstable();
    ensure!(expected == joined, "brute force finds {} pairs, the join {}", expected.len(), joined.len());
    write(out, &mut pairs)?;
    println!(
        "{}",
        json!({ "documents": sets.len(), "shingles": shingle_count, "pairs": pairs.len(), "checked": checked, "checked_pairs": expected.len() })
    );
    Ok(())
}

/// Finds pairs with gaoya: 16 bands of 8 minima of 32 bits. Candidates are accepted by their estimated resemblance.
fn by_gaoya(texts: &[String]) -> Vec<(u32, u32, f64)> {
    let hasher = MinHasher32::new(MINIMA);
    let signatures: Vec<Vec<u32>> =
        texts.par_iter().map(|text| hasher.create_signature(shingles(text).into_iter())).collect();
    let mut index = MinHashIndex::<u32, u32, VecContainer<u32>>::new_index(16, 8, THRESHOLD);
    index.par_bulk_insert((0..texts.len() as u32).collect(), signatures.clone());
    let found: Vec<Vec<(u32, f64)>> =
        signatures.par_iter().map(|signature| index.query_owned_return_similarity(signature)).collect();
    (0..)
        .zip(found)
        .flat_map(|(a, found)| {
            found.into_iter().filter(move |&(b, _)| b > a).map(move |(b, found)| (a, b, found))
        })
        .collect()
}

/// Finds pairs with find-simdoc: sketches of 20 chunks of 64 bits, as in its documentation.
fn by_find_simdoc(texts: &[String]) -> Result<Vec<(u32, u32, f64)>> {
    let searcher =
        JaccardSearcher::new(WIDTH, Some(' '), Some(42)).map_err(|error| anyhow!("find-simdoc: {error}"))?;
    let searcher = searcher
        .build_sketches_in_parallel(texts.iter(), 20)
        .map_err(|error| anyhow!("find-simdoc: {error}"))?;
    let found = searcher.search_similar_pairs(1.0 - THRESHOLD);
    Ok(found.into_iter().map(|(a, b, distance)| (a as u32, b as u32, 1.0 - distance)).collect())
}

#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn sketch(system: &str, texts: &[String], pairs: &str, rounds: usize) -> Result<()> {
    let params = |family| Params::builder().words(WIDTH as u8).minhash(16, 8).family(family).build();
    let family = match system {
        "twindex-multiply-shift" => Family::MultiplyShift,
        _ => Family::OnePermutationFilled,
    };
    let sketcher = Sketcher::new(&params(family)?)?;
    let kernel = Kernel::of(family, MINIMA);
    let gaoya = MinHasher32::new(MINIMA);
    let prepared: Vec<Vec<&str>> = texts.iter().map(|text| shingles(text)).collect();
    let count: usize = prepared.iter().map(Vec::len).sum();
    let (mut scratch, mut whole, mut hashes) = (Scratch::default(), Sketch::default(), Vec::new());
    let (mut from_text, mut from_shingles, mut signatures) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..rounds {
        let watch = Stopwatch::start();
        for text in texts {
            if system == "gaoya" {
                black_box(gaoya.create_signature(shingles(black_box(text)).into_iter()));
            } else {
                sketcher.sketch_into(black_box(text), &mut scratch, &mut whole)?;
                black_box(&whole);
            }
        }
        from_text.push(watch.read()["cpu"].as_f64().unwrap_or_default());
        signatures.clear();
        let watch = Stopwatch::start();
        for shingles in &prepared {
            let mut signature = Vec::new();
            if system == "gaoya" {
                signature = gaoya.create_signature(shingles.iter());
            } else {
                hashes.clear();
                hashes.extend(shingles.iter().map(|shingle| sketcher.feature(shingle.as_bytes())));
                kernel.signature(&hashes, &mut signature);
            }
            signatures.push(signature);
        }
        from_shingles.push(watch.read()["cpu"].as_f64().unwrap_or_default());
    }
    // Computes the root mean square error of the estimates, over pairs of known resemblance.
    let (mut squares, mut compared) = (0.0, 0);
    for line in std::fs::read_to_string(pairs)?.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [a, b, exact] = fields.as_slice() else { bail!("{pairs}: a line of three fields") };
        let (a, b): (usize, usize) = (a.parse()?, b.parse()?);
        let estimate = Resemblance::of_signatures(&signatures[a], &signatures[b]).value();
        squares += (estimate - exact.parse::<f64>()?).powi(2);
        compared += 1;
    }
    println!(
        "{}",
        json!({
            "shingles": count, "from_text": median(from_text).0, "from_shingles": median(from_shingles).0,
            "error": (squares / f64::from(compared.max(1))).sqrt(), "compared": compared, "peak": resident(true)?,
        })
    );
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["truth", file, out, least] => truth(&read(file)?, out, least.parse()?, 0),
        ["truth", file, out, least, checked] => truth(&read(file)?, out, least.parse()?, checked.parse()?),
        ["gaoya", file, out] => write(out, &mut by_gaoya(&read(file)?)),
        ["find-simdoc", file, out] => write(out, &mut by_find_simdoc(&read(file)?)?),
        ["sketch", system, file, pairs, rounds] => sketch(system, &read(file)?, pairs, rounds.parse()?),
        _ => bail!("expected truth, gaoya, find-simdoc or sketch, and their arguments"),
    }
}
