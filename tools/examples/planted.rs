//! Makes documents with planted near-duplicates, for measurements. The same arguments give the same bytes on every
//! machine.
//!
//! ```sh
//! cargo run --release -p twindex-tools --example planted -- 600000 300 0.15 truth.tsv > documents.jsonl
//! cargo run --release -p twindex-tools --example planted -- 600000 300 0.15 truth.tsv FOLDER > documents.jsonl
//! ```
//!
//! The arguments are the number of documents, the number of words of a document and the share of copies; optional
//! arguments are a file for the table of copies and a folder. Without a folder, words are drawn from a vocabulary of
//! 200,000 by Zipf's law (exponent 0.9). With a folder, documents are random walks over its text files, for example the
//! sources in cargo's cache: a word is followed by the next word of the file or, as often, by the word after another
//! occurrence of the same word. So shingles recur as they do in texts. Repeated lines are omitted, because generated
//! sources repeat lines very often. Each word is followed by the punctuation and white space that follow it in the
//! file.
//!
//! A copy is an earlier document with up to one word in 25 replaced. A row of the table has a copy, its original, and
//! the sizes of the intersection and the union of their sets of shingles of five words.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::Path;

use random::Random;

#[path = "../../tests/support/random.rs"]
mod random;

/// Number of different words if no folder is given.
const VOCABULARY: usize = 200_000;
/// Number of earlier documents in memory that can be copied.
const ORIGINALS: usize = 200_000;
/// Number of words in a shingle.
const WIDTH: usize = 5;
/// Number of entries of the sampling table for words; a power of two.
const DRAWN: usize = 1 << 20;
/// Maximum number of words read from a folder.
const READ: usize = 20_000_000;
/// Maximum length in bytes of a word read from a folder.
const LETTERS: usize = 24;
/// Maximum number of characters of a separator.
const SEPARATOR: usize = 60;

/// A random source of words.
enum Source {
    /// A table of words, in which a word occurs in proportion to its frequency.
    Zipf(Vec<u32>),
    /// The words of texts in their order, and the positions of each word in them.
    Texts { words: Vec<WordAndSeparator>, first: Vec<u32>, positions: Vec<u32> },
}

/// The number of a word, and the number of the separator that follows it.
type WordAndSeparator = (u32, u32);

/// Distinct strings, numbered from 0 in the order of their first occurrence.
#[derive(Default)]
struct Numbered {
    numbers: HashMap<String, u32>,
    names: Vec<String>,
}

impl Numbered {
    /// Returns the number of a string, and adds the string if it is new.
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// Returns a separator, encoded for a JSON string. Omits `_` and `'`, which would join two words to one, and characters that
/// are not printable ASCII. Adds a space if there is no white space.
fn separator(between: &str) -> String {
    let mut written = String::new();
    for character in between.chars().take(SEPARATOR) {
        match character {
            '_' | '\'' => {}
            '"' | '\\' => written.extend(['\\', character]),
            '\n' => written.push_str("\\n"),
            '\t' => written.push_str("\\t"),
            ' '..='~' => written.push(character),
            _ => {}
        }
    }
    if !between.chars().take(SEPARATOR).any(|character| [' ', '\n', '\t'].contains(&character)) {
        written.push(' ');
    }
    written
}

impl Source {
    fn zipf() -> (Self, Names) {
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
        let words =
            (0..VOCABULARY as u64).map(|word| format!("w{:x}", word * 2_654_435_761 % (1 << 32))).collect();
        let names = Names { words, separators: vec![" ".to_owned()] };
        (Self::Zipf((0..DRAWN).map(word).collect()), names)
    }

    /// Reads the words of the files below a folder, in the order of their paths.
    fn texts(folder: &Path) -> Result<(Self, Names), Box<dyn std::error::Error>> {
        let mut words: Vec<WordAndSeparator> = Vec::new();
        let (mut names, mut separators) = (Numbered::default(), Numbered::default());
        let mut lines = HashSet::new();
        let mut folders = vec![folder.to_path_buf()];
        while let Some(folder) = folders.pop() {
            let mut paths =
                std::fs::read_dir(&folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
            paths.sort();
            for path in paths {
                if path.is_dir() {
                    folders.push(path);
                } else if let Ok(text) = std::fs::read_to_string(&path) {
                    let is_new = |line: &&str| lines.insert(line.trim().to_owned());
                    let text: String = text.split_inclusive('\n').filter(is_new).collect();
                    let mut rest = &text[..];
                    while words.len() < READ {
                        rest = rest.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
                        let end = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                        let (word, after) = rest.split_at(end);
                        if word.is_empty() {
                            break;
                        }
                        let next = after.find(|c: char| c.is_ascii_alphanumeric()).unwrap_or(after.len());
                        if word.len() <= LETTERS {
                            let between = separators.number(&separator(&after[..next]));
                            words.push((names.number(&word.to_ascii_lowercase()), between));
                        }
                        rest = &after[next..];
                    }
                }
            }
        }
        if words.len() < 2 {
            return Err(format!("{}: no words in text files", folder.display()).into());
        }
        // A counting sort computes the positions of each word. The last word is omitted, because it has no successor.
        let names = Names { words: names.names, separators: separators.names };
        let mut first = vec![0; names.words.len() + 1];
        words[..words.len() - 1].iter().for_each(|&(word, _)| first[word as usize + 1] += 1);
        for word in 0..names.words.len() {
            first[word + 1] += first[word];
        }
        let (mut next, mut positions) = (first.clone(), vec![0; words.len() - 1]);
        for (at, &(word, _)) in words[..words.len() - 1].iter().enumerate() {
            positions[next[word as usize] as usize] = at as u32;
            next[word as usize] += 1;
        }
        Ok((Self::Texts { words, first, positions }, names))
    }

    /// Draws a random word.
    fn word(&self, random: &mut Random) -> u32 {
        match self {
            Self::Zipf(table) => table[(random.next() >> 44) as usize],
            Self::Texts { words, .. } => words[random.below(words.len())].0,
        }
    }

    /// Draws the words of a document at random, each with its separator.
    fn document(&self, count: usize, random: &mut Random) -> Vec<WordAndSeparator> {
        match self {
            Self::Zipf(_) => (0..count).map(|_| (self.word(random), 0)).collect(),
            Self::Texts { words, first, positions } => {
                let mut at = random.below(words.len() - 1);
                let mut row = Vec::with_capacity(count);
                for _ in 0..count {
                    row.push(words[at]);
                    if random.next().is_multiple_of(2) {
                        let word = words[at].0 as usize;
                        let same = first[word] as usize..first[word + 1] as usize;
                        at = positions[same.start + random.below(same.len())] as usize;
                    }
                    at = (at + 1) % (words.len() - 1);
                }
                row
            }
        }
    }
}

/// The words and the separators, indexed by number.
struct Names {
    words: Vec<String>,
    separators: Vec<String>,
}

fn shingles(row: &[WordAndSeparator]) -> HashSet<Vec<u32>> {
    let words: Vec<u32> = row.iter().map(|&(word, _)| word).collect();
    words.windows(WIDTH.min(words.len().max(1))).map(<[u32]>::to_vec).collect()
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
    let mut originals: Vec<(usize, Vec<WordAndSeparator>)> = Vec::new();
    let mut out = BufWriter::with_capacity(1 << 20, io::stdout().lock());
    let mut line = String::new();
    for number in 0..documents {
        let is_copy = !originals.is_empty() && (random.next() >> 11) as f64 / (1_u64 << 53) as f64 <= share;
        let row: Vec<WordAndSeparator> = if is_copy {
            let (of, original) = &originals[random.below(originals.len())];
            let mut row = original.clone();
            for _ in 0..random.below(words / 25 + 1) {
                let at = random.below(row.len());
                row[at].0 = source.word(&mut random);
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
        for (at, &(word, between)) in row.iter().enumerate() {
            line.push_str(&names.words[word as usize]);
            if at + 1 < row.len() {
                line.push_str(&names.separators[between as usize]);
            }
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
