//! Compares a sample of documents with all documents by brute force, to check the results of `twindex dedup`.
//!
//! ```sh
//! cargo run --release -p twindex-tools --example sampled -- documents.jsonl.zst 50000 0.8 > near.tsv
//! ```
//!
//! The arguments are a file, n, and a threshold. Reads the file twice: JSON lines with the field `text`, also as
//! `.zst`. On average, the sample has one in n documents. Compares each document of the sample with all others, and
//! prints the pairs whose resemblance reaches the threshold: both line numbers, from 0, and the sizes of the
//! intersection and the union of their sets of shingles of five words. A word is a run of ASCII letters and digits. The
//! last line is `sampled`, followed by the line numbers of the sample.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write as _};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

/// Number of words in a shingle.
const WIDTH: usize = 5;

#[derive(serde::Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    text: std::borrow::Cow<'a, str>,
}

/// Returns whether a document is in the sample.
fn is_sampled(number: u64, every: u64) -> bool {
    xxh3_64(&number.to_le_bytes()).is_multiple_of(every)
}

/// Replaces `set` with the sorted hashes of the distinct shingles of a text. `words` and `ends` are buffers.
fn shingles(text: &str, (words, ends): (&mut String, &mut Vec<(usize, usize)>), set: &mut Vec<u64>) {
    words.clear();
    ends.clear();
    set.clear();
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        ends.push((words.len(), words.len() + word.len()));
        words.push_str(word);
        words.push(' ');
    }
    let width = WIDTH.min(ends.len().max(1));
    let hash = |shingle: &[(usize, usize)]| xxh3_64(&words.as_bytes()[shingle[0].0..shingle[width - 1].1]);
    set.extend(ends.windows(width).map(hash));
    set.sort_unstable();
    set.dedup();
}

fn each_line(
    path: &str,
    mut each: impl FnMut(u64, &str) -> io::Result<()>,
) -> Result<(), Box<dyn std::error::Error>> {
    let file = File::open(path)?;
    let mut lines: Box<dyn BufRead> =
        if Path::new(path).extension().is_some_and(|extension| extension == "zst") {
            Box::new(BufReader::with_capacity(1 << 20, zstd::Decoder::new(file)?))
        } else {
            Box::new(BufReader::with_capacity(1 << 20, file))
        };
    let (mut line, mut number) = (String::new(), 0);
    while lines.read_line(&mut line)? > 0 {
        each(number, &line)?;
        number += 1;
        line.clear();
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, every, threshold] = arguments.as_slice() else {
        return Err("expected FILE EVERY THRESHOLD".into());
    };
    let (every, threshold): (u64, f64) = (every.parse()?, threshold.parse()?);
    let (mut words, mut ends, mut set) = (String::new(), Vec::new(), Vec::new());
    // Maps each shingle to the documents of the sample that contain it.
    let mut having: HashMap<u64, Vec<u32>> = HashMap::new();
    let mut sampled: Vec<(u64, usize)> = Vec::new();
    each_line(path, |number, line| {
        if is_sampled(number, every) {
            let parsed: Line<'_> = serde_json::from_str(line)?;
            shingles(&parsed.text, (&mut words, &mut ends), &mut set);
            for &shingle in &set {
                having.entry(shingle).or_default().push(sampled.len() as u32);
            }
            sampled.push((number, set.len()));
        }
        Ok(())
    })?;
    let mut out = BufWriter::new(io::stdout().lock());
    let mut shared = vec![0_usize; sampled.len()];
    let mut touched = HashSet::new();
    each_line(path, |number, line| {
        let parsed: Line<'_> = serde_json::from_str(line)?;
        shingles(&parsed.text, (&mut words, &mut ends), &mut set);
        for &sample in set.iter().filter_map(|shingle| having.get(shingle)).flatten() {
            shared[sample as usize] += 1;
            touched.insert(sample);
        }
        for sample in touched.drain() {
            let (of, length) = sampled[sample as usize];
            let both = std::mem::take(&mut shared[sample as usize]);
            let either = length + set.len() - both;
            if of != number && both as f64 >= threshold * either as f64 {
                writeln!(out, "{of}\t{number}\t{both}\t{either}")?;
            }
        }
        Ok(())
    })?;
    let numbers: Vec<String> = sampled.iter().map(|(number, _)| number.to_string()).collect();
    writeln!(out, "sampled\t{}", numbers.join("\t"))?;
    out.flush()?;
    Ok(())
}
