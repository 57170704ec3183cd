//! Helpers for the tests of the command: a folder to run it in, inputs, and brute-force results.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

// Shared with the tests of the engine.
#[path = "../../../../tests/support/marks.rs"]
pub mod marks;
#[path = "../../../../tests/support/random.rs"]
mod random;
#[path = "../../../../tests/support/skip.rs"]
pub mod skip;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use assert_cmd::Command;
use serde_json::Value;

pub use random::Random;

/// The path of the command built for the tests.
pub const TWINDEX: &str = env!("CARGO_BIN_EXE_twindex");

/// Returns a folder of corpora that are not in this repository; `None`, with a notice, if it does not exist.
pub fn corpora() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    if folder.is_dir() {
        return Some(folder);
    }
    skip::skip(skip::Missing::Elsewhere("no corpora at ../shared/data beside the workspace"));
    None
}

/// Runs strace; `None`, with a notice, if it is missing or not permitted to trace.
pub fn strace(command: &mut std::process::Command) -> Option<std::process::Output> {
    let Ok(output) = command.output() else {
        skip::skip(skip::Missing::Program("strace"));
        return None;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("strace:") {
        skip::skip(skip::Missing::Elsewhere(&format!("strace cannot trace here: {said}")));
        return None;
    }
    assert!(output.status.success(), "{said}");
    Some(output)
}

/// A temporary folder for one test. Commands run in it, so that messages have short paths.
pub struct Bench {
    folder: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Returns the command with the arguments in `line`, which are separated by spaces.
    pub fn command(&self, line: &str) -> Command {
        let mut command = Command::new(TWINDEX);
        command.current_dir(self.root()).args(line.split_whitespace()).timeout(Duration::from_secs(60));
        command
    }

    /// Runs the command and returns its standard output. Expects success and no output on standard error.
    pub fn ok(&self, line: &str) -> String {
        succeeded(line, &mut self.command(line))
    }

    /// Runs the command and returns its message. Expects exit code 1 and no standard output.
    pub fn refused(&self, line: &str) -> String {
        refused(line, &mut self.command(line))
    }

    /// Runs the command and returns its message. Expects exit code 2, for options that do not fit together or the inputs.
    pub fn misused(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        message
    }

    /// Runs the command and returns its message. Expects exit code 1; standard output is ignored.
    pub fn failed(&self, line: &str) -> String {
        let output = self.command(line).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}: {message}");
        message
    }

    /// Runs the command with `--json` and returns the last line, which has the statistics.
    pub fn json(&self, line: &str) -> Value {
        self.json_lines(line).pop().unwrap()
    }

    /// Runs the command with `--json` and returns all lines: the results, and the statistics last.
    pub fn json_lines(&self, line: &str) -> Vec<Value> {
        let out = self.ok(&format!("{line} --json"));
        out.lines().map(|line| serde_json::from_str(line).expect("a document on each line")).collect()
    }

    /// Returns the lines of a table in a file after its header, which must equal `header`.
    pub fn rows(&self, name: &str, header: &str) -> Vec<String> {
        rows(&self.read(name), header)
    }

    /// Returns all files below a folder with their bytes, and all empty folders. The lock file is omitted: it is not
    /// part of the index's content, and contains the id of the last process that locked it.
    pub fn contents(&self, name: &str) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.path(name)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.file_name().unwrap() == "LOCK" {
                    continue;
                }
                if path.is_dir() {
                    folders.push(path.clone());
                    found.insert(path, Vec::new());
                } else {
                    let bytes = if path.is_file() { fs::read(&path).unwrap() } else { Vec::new() };
                    found.insert(path, bytes);
                }
            }
        }
        found
    }

    /// Returns the names in the folder, sorted.
    pub fn names(&self, name: &str) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path(name))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Returns the lines of a table after its header, which must equal `header`.
pub fn rows(table: &str, header: &str) -> Vec<String> {
    assert!(table.is_empty() || table.ends_with('\n'), "the last line ends too");
    let mut lines = table.lines();
    assert_eq!(lines.next(), Some(header));
    lines.map(str::to_owned).collect()
}

pub fn succeeded(what: &str, command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""), "{what}");
    String::from_utf8(output.stdout).unwrap()
}

pub fn refused(what: &str, command: &mut Command) -> String {
    let output = command.output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{what}: {stderr}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "", "{what}: nothing but results on standard output");
    assert!(stderr.starts_with("twindex: ") && stderr.ends_with('\n'), "{what}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{what}: {stderr}");
    stderr
}

/// Checks that a message contains all of these parts.
#[track_caller]
pub fn says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "`{part}` is not in: {message}");
    }
}

/// Checks the fields of a JSON object. `fields` has each name and the name of its type.
#[track_caller]
pub fn has_fields(value: &Value, fields: &[(&str, &str)]) {
    for (name, kind) in fields {
        let field = &value[name];
        let right = match *kind {
            "count" => field.is_u64(),
            "number" => field.is_number(),
            "text" => field.is_string(),
            "bool" => field.is_boolean(),
            "list" => field.is_array(),
            "object" => field.is_object(),
            "checksum" => field.as_str().is_some_and(|text| {
                text.len() == 16 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            }),
            other => panic!("{other}"),
        };
        assert!(right, "{name} is not a {kind} in {value}");
    }
}

/// A test document: key and text.
pub type Document = (String, String);

pub fn documents<const N: usize>(documents: [(&str, &str); N]) -> Vec<Document> {
    documents.map(|(key, text)| (key.to_owned(), text.to_owned())).to_vec()
}

/// Returns a JSON line for each document.
pub fn jsonl(documents: &[Document]) -> String {
    documents
        .iter()
        .map(|(id, text)| serde_json::json!({ "id": id, "text": text }).to_string() + "\n")
        .collect()
}

pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub fn words(random: &mut Random, count: usize) -> Vec<String> {
    (0..count).map(|_| format!("w{}", random.below(700))).collect()
}

/// Returns documents of every kind that deduplication must handle: copies, edited copies, copies that differ only in
/// case and punctuation, documents with fewer words than a shingle, texts without words, and empty texts. Keys are
/// unordered.
pub fn corpus(seed: u64, count: usize) -> Vec<Document> {
    let mut random = Random(seed);
    let mut texts: Vec<String> = Vec::new();
    for place in 0..count {
        let older = if place > 0 { texts[random.below(place)].clone() } else { String::new() };
        let text = match random.below(12) {
            0 => older,
            1 => older.to_uppercase().replace(' ', ", "),
            2 => ["", "", "...", "?!"][random.below(4)].to_owned(),
            3 => ["one", "One!", "one two", "two one", "a b c d", "A b: c d"][random.below(6)].to_owned(),
            4..=8 if older.len() > 60 => {
                let mut edited: Vec<&str> = older.split(' ').collect();
                for _ in 0..=random.below(3) {
                    let at = random.below(edited.len());
                    if random.below(2) == 0 {
                        edited[at] = "changed";
                    } else {
                        edited.truncate(at.max(edited.len() / 2));
                    }
                }
                edited.join(" ")
            }
            _ => {
                let length = 6 + random.below(80);
                words(&mut random, length).join(" ")
            }
        };
        texts.push(text);
    }
    texts.into_iter().enumerate().map(|(place, text)| (format!("d{}", place * 7919 % count), text)).collect()
}

/// Returns the set of 5-word shingles of an ASCII text. Words are lower-cased runs of letters, digits and underscores.
/// Fewer than five words form one shingle; a text without words has none.
pub fn shingles(text: &str) -> BTreeSet<Vec<String>> {
    let lower = text.to_ascii_lowercase();
    let words: Vec<String> = lower
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect();
    match words.len() {
        0 => BTreeSet::new(),
        1..5 => BTreeSet::from([words]),
        _ => words.windows(5).map(<[String]>::to_vec).collect(),
    }
}

/// A pair of document numbers, with the sizes of the intersection and union of their shingle sets.
pub type Pair = (usize, usize, usize, usize);

/// Returns all pairs of documents that share a shingle or have equal texts, found by comparing all pairs of sets.
pub fn resemblances(documents: &[Document]) -> Vec<Pair> {
    // Replaces words by numbers, for speed. The sets stay equivalent.
    let mut numbers: BTreeMap<Vec<String>, u32> = BTreeMap::new();
    let sets: Vec<Vec<u32>> = documents
        .iter()
        .map(|(_, text)| {
            let mut set: Vec<u32> = shingles(text)
                .into_iter()
                .map(|shingle| {
                    let next = numbers.len() as u32;
                    *numbers.entry(shingle).or_insert(next)
                })
                .collect();
            set.sort_unstable();
            set
        })
        .collect();
    let mut pairs = Vec::new();
    for (b, second) in sets.iter().enumerate() {
        for (a, first) in sets[..b].iter().enumerate() {
            let (mut i, mut j, mut both) = (0, 0, 0);
            while i < first.len() && j < second.len() {
                let (x, y) = (first[i], second[j]);
                both += usize::from(x == y);
                i += usize::from(x <= y);
                j += usize::from(y <= x);
            }
            if both > 0 || documents[a].1 == documents[b].1 {
                pairs.push((a, b, both, first.len() + second.len() - both));
            }
        }
    }
    pairs
}

/// Returns the line of `pairs.tsv` for a pair, as documented.
pub fn pair_line(documents: &[Document], pair: Pair) -> String {
    let (a, b, both, all) = pair;
    let (a, b) = (&documents[a].0, &documents[b].0);
    let (a, b) = if a < b { (a, b) } else { (b, a) };
    format!("{a}\t{b}\t{}\t{both}\t{all}", resemblance(both, all))
}

/// Formats a resemblance with six digits. Two equal texts without words have a resemblance of 1.
pub fn resemblance(both: usize, all: usize) -> String {
    if all == 0 { "1.000000".to_owned() } else { format!("{:.6}", both as f64 / all as f64) }
}

/// Returns a checksum for comparing sets of answers. The function is a copy of the command's function, so that a change in
/// the command is detected.
pub fn mix(query: u64, id: u64) -> u64 {
    let mut hash =
        query.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(id.wrapping_mul(0xC2B2_AE3D_27D4_EB4F));
    hash ^= hash >> 29;
    hash = hash.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    hash ^ (hash >> 32)
}

/// Returns the little-endian bytes of numbers, as in raw input files.
pub fn raw(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
