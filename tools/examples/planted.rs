//! Makes documents with planted near-duplicates, for measurements: the same seed gives the same bytes on every machine.
//!
//! ```sh
//! cargo run --release -p twindex-tools --example planted -- 600000 300 0.15 truth.tsv > documents.jsonl
//! cargo run --release -p twindex-tools --example planted -- 600000 300 0.15 truth.tsv FOLDER > documents.jsonl
//! ```
//!
//! The arguments are the number of documents, their words, and the share of copies. Without a folder, words are drawn
//! from 200,000 with the frequencies of Zipf's law (exponent 0.9). With a folder, the words are those of its text files,
//! for example the sources and readmes in cargo's cache: after each word the document goes on with the next word of the
//! file, or, as often, with what follows another occurrence of the same word. So shingles recur as they do in texts.
//!
//! A copy is one of the 200,000 documents before it, with up to one word in 25 replaced. The table has each copy, its
//! original, and the sizes of the intersection and the union of their sets of shingles of five words.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use random::Random;

#[path = "../../tests/support/random.rs"]
mod random;

/// Number of words that are drawn without a folder.
const VOCABULARY: usize = 200_000;
/// Number of documents that may be copied.
const ORIGINALS: usize = 200_000;
/// Words of a shingle.
const WIDTH: usize = 5;
/// Number of entries of the table by which words are drawn: a power of two.
const DRAWN: usize = 1 << 20;
/// Number of words read from a folder.
const READ: usize = 20_000_000;
/// Bytes of the longest word read from a folder.
const LETTERS: usize = 24;

/// The words of documents.
enum Source {
    /// Words by their frequencies.
    Zipf(Vec<u32>),
    /// The words of texts, in order, and the positions of each word.
    Texts { words: Vec<u32>, first: Vec<u32>, positions: Vec<u32> },
}

impl Source {
    fn zipf() -> (Self, Vec<String>) {
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
        let names =
            (0..VOCABULARY as u64).map(|word| format!("w{:x}", word * 2_654_435_761 % (1 << 32))).collect();
        (Self::Zipf((0..DRAWN).map(word).collect()), names)
    }

    /// Reads the words of the files below a folder, in the order of their paths.
    fn texts(folder: &Path) -> Result<(Self, Vec<String>), Box<dyn std::error::Error>> {
        let mut numbers = HashMap::new();
        let (mut words, mut names) = (Vec::new(), Vec::new());
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let mut paths =
                std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
            paths.sort();
            for path in paths {
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(text) = std::fs::read_to_string(&path) {
                    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
                        if (1..=LETTERS).contains(&word.len()) && words.len() < READ {
                            let word = word.to_ascii_lowercase();
                            words.push(*numbers.entry(word).or_insert_with_key(|word| {
                                names.push(word.clone());
                                names.len() as u32 - 1
                            }));
                        }
                    }
                }
            }
        }
        if words.len() < 2 {
            return Err(format!("{}: no words in text files", folder.display()).into());
        }
        // Positions of each word, by counting sort. The last word has no successor.
        let mut first = vec![0; names.len() + 1];
        words[..words.len() - 1].iter().for_each(|&word| first[word as usize + 1] += 1);
        for word in 0..names.len() {
            first[word + 1] += first[word];
        }
        let (mut next, mut positions) = (first.clone(), vec![0; words.len() - 1]);
        for (at, &word) in words[..words.len() - 1].iter().enumerate() {
            positions[next[word as usize] as usize] = at as u32;
            next[word as usize] += 1;
        }
        Ok((Self::Texts { words, first, positions }, names))
    }

    /// Draws one word.
    fn word(&self, random: &mut Random) -> u32 {
        match self {
            Self::Zipf(table) => table[(random.next() >> 44) as usize],
            Self::Texts { words, .. } => words[random.below(words.len())],
        }
    }

    /// Draws the words of a document.
    fn document(&self, count: usize, random: &mut Random) -> Vec<u32> {
        match self {
            Self::Zipf(_) => (0..count).map(|_| self.word(random)).collect(),
            Self::Texts { words, first, positions } => {
                let mut at = random.below(words.len() - 1);
                let mut row = Vec::with_capacity(count);
                for _ in 0..count {
                    row.push(words[at]);
                    if random.next().is_multiple_of(2) {
                        let same = first[words[at] as usize] as usize..first[words[at] as usize + 1] as usize;
                        at = positions[same.start + random.below(same.len())] as usize;
                    }
                    at = (at + 1) % (words.len() - 1);
                }
                row
            }
        }
    }
}

fn shingles(words: &[u32]) -> HashSet<&[u32]> {
    words.windows(WIDTH.min(words.len().max(1))).collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (documents, words, share, truth, folder) = match arguments.as_slice() {
        [documents, words, share] => (documents, words, share, None, None),
        [documents, words, share, truth] => (documents, words, share, Some(truth), None),
        [documents, words, share, truth, folder] => (documents, words, share, Some(truth), Some(folder)),
        _ => return Err("expected DOCUMENTS WORDS SHARE [TRUTH.tsv [FOLDER]]".into()),
    };
    let (documents, words, share): (usize, usize, f64) = (documents.parse()?, words.parse()?, share.parse()?);
    let mut truth = truth.map(File::create).transpose()?.map(BufWriter::new);
    if let Some(truth) = &mut truth {
        writeln!(truth, "copy\toriginal\tintersection\tunion")?;
    }
    let (source, names) =
        folder.map_or_else(|| Ok(Source::zipf()), |folder| Source::texts(Path::new(folder)))?;
    let mut random = Random(7);
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
                row[at] = source.word(&mut random);
            }
            if let Some(truth) = &mut truth {
                let (copied, original) = (shingles(&row), shingles(original));
                let both = copied.intersection(&original).count();
                let all = copied.len() + original.len() - both;
                writeln!(truth, "https://example.org/{number}\thttps://example.org/{of}\t{both}\t{all}")?;
            }
            row
        } else {
            source.document(words, &mut random)
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
