//! Generates documents with planted near-duplicates for measurements. The same seed gives the same bytes on every
//! machine.
//!
//! ```sh
//! cargo run --release -p twindex-tools --example planted -- 600000 300 0.15 truth.tsv > documents.jsonl
//! ```
//!
//! Words are drawn from 200,000 words with frequencies by Zipf's law (exponent 0.9). The given share of the documents
//! are copies of one of the first 200,000 documents, in which up to one word in 25 is replaced. The table lists each
//! copy, its original, and the sizes of the intersection and union of their sets of five-word shingles.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};

/// Number of different words.
const VOCABULARY: usize = 200_000;
/// Number of documents that may be copied.
const ORIGINALS: usize = 200_000;
/// Number of words in a shingle.
const WIDTH: usize = 5;
/// Number of entries in the table from which words are drawn. A power of two.
const DRAWN: usize = 1 << 20;

/// A random number generator: splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, below: usize) -> usize {
        (self.next() % below as u64) as usize
    }

    fn word(&mut self, table: &[u32]) -> u32 {
        table[(self.next() >> 44) as usize]
    }
}

/// Returns a table in which each word occurs in proportion to its frequency.
fn table() -> Vec<u32> {
    let mut sum = 0.0;
    let sums: Vec<f64> = (1..=VOCABULARY)
        .map(|rank| {
            sum += 1.0 / (rank as f64).powf(0.9);
            sum
        })
        .collect();
    let word = |at: usize| {
        let mark = (at as f64 + 0.5) / DRAWN as f64 * sum;
        sums.partition_point(|&sum| sum < mark).min(VOCABULARY - 1) as u32
    };
    (0..DRAWN).map(word).collect()
}

fn shingles(words: &[u32]) -> HashSet<&[u32]> {
    words.windows(WIDTH.min(words.len().max(1))).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (documents, words, share, truth) = match arguments.as_slice() {
        [documents, words, share] => (documents, words, share, None),
        [documents, words, share, truth] => (documents, words, share, Some(truth)),
        _ => return Err("expected DOCUMENTS WORDS SHARE [TRUTH.tsv]".into()),
    };
    let (documents, words, share): (usize, usize, f64) = (documents.parse()?, words.parse()?, share.parse()?);
    let mut truth = truth.map(File::create).transpose()?.map(BufWriter::new);
    if let Some(truth) = &mut truth {
        writeln!(truth, "copy\toriginal\tintersection\tunion")?;
    }
    let names: Vec<String> =
        (0..VOCABULARY as u64).map(|word| format!("w{:x}", word * 2_654_435_761 % (1 << 32))).collect();
    let (table, mut random) = (table(), Random(7));
    let mut originals: Vec<(usize, Vec<u32>)> = Vec::new();
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut line = String::new();
    for number in 0..documents {
        let is_copy = !originals.is_empty() && (random.next() >> 11) as f64 / (1_u64 << 53) as f64 <= share;
        let row: Vec<u32> = if is_copy {
            let (of, original) = &originals[random.below(originals.len())];
            let mut row = original.clone();
            for _ in 0..random.below(words / 25 + 1) {
                let at = random.below(row.len());
                row[at] = random.word(&table);
            }
            if let Some(truth) = &mut truth {
                let (copied, original) = (shingles(&row), shingles(original));
                let both = copied.intersection(&original).count();
                let all = copied.len() + original.len() - both;
                writeln!(truth, "https://example.org/{number}\thttps://example.org/{of}\t{both}\t{all}")?;
            }
            row
        } else {
            (0..words).map(|_| random.word(&table)).collect()
        };
        line.clear();
        write!(line, "{{\"id\":\"https://example.org/{number}\",\"text\":\"")?;
        for (at, &word) in row.iter().enumerate() {
            line.push_str(if at == 0 { "" } else { " " });
            line.push_str(&names[word as usize]);
        }
        line.push_str("\"}\n");
        out.write_all(line.as_bytes())?;
        if originals.len() < ORIGINALS {
            originals.push((number, row));
        } else {
            let at = random.below(ORIGINALS);
            originals[at] = (number, row);
        }
    }
    out.flush()?;
    truth.map_or(Ok(()), |mut truth| truth.flush())?;
    Ok(())
}
