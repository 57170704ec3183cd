//! Writes and reads files of pairs and of forests. `twindex pairs` and `twindex groups` write them, and `groups` reads
//! them.
//!
//! ```text
//! # twindex pairs            or: # twindex forest
//! # pairs=within 3           the kind of the pairs, and the parameters of the documents' sketches, one per line
//! # key=bytes
//! # ...
//! a<TAB>b<TAB>distance       the columns; of a forest: root<TAB>key
//! ...                        one line per pair; keys are escaped as in all tables
//! # end 1234 0123456789abcdef   number of the lines above, and xxh3-64 of all bytes above
//! ```
//!
//! The last line shows that a file is complete. Tables without such a header, as `dedup` writes, and `pairs` to
//! standard output, are also read. A line has a key, a tab, a key, and optionally further columns after another tab.
//! Such a table has no parameters to compare.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail, ensure};
use twindex::params::{KeyKind, Shingling};
use twindex::{Key, KeyBuf, Params};
use twindex_corpus::tsv;
use xxhash_rust::xxh3::Xxh3Default;

use crate::stage::{ResultKind, StageFile, WrittenFile};

/// The suffixes of files of pairs and of files of forests.
const SUFFIXES: [&str; 2] = ["pairs", "forest"];
/// The kind of file that `pairs` writes.
pub(crate) const PAIRS: ResultKind =
    ResultKind { noun: "a file of pairs", suffix: SUFFIXES[0], magic: b"# twindex pairs\n" };
/// The kind of file that `groups --as forest` writes.
pub(crate) const FOREST: ResultKind =
    ResultKind { noun: "a file of a forest", suffix: SUFFIXES[1], magic: b"# twindex forest\n" };
/// The column names of a forest.
pub(crate) const FOREST_COLUMNS: &str = "root\tkey";
/// The header lines of tables that other verbs write.
const TABLES: [&str; 4] = [
    "a\tb\tdistance",
    "a\tb\tresemblance\tintersection\tunion",
    "document\tkept\tdistance",
    "document\tkept\tresemblance\tintersection\tunion",
];
/// Maximum length of a line in bytes: two keys of maximum length with each byte escaped, and the other columns.
const LINE_BYTES_MAX: usize = 2 * 4 * 65_535 + 4096;
/// Maximum number of lines in a header.
const FIELDS_MAX: usize = 64;
const BUFFER: usize = 256 << 10;
/// Prefix of lines that are not pairs.
const MARK: &str = "# ";
const END: &str = "# end ";

/// The names and values of the header, which must be equal in all files of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PairFields(Vec<(String, String)>);

impl PairFields {
    /// Returns the header for documents with these parameters. `pairs` describes the kind of pairs.
    pub(crate) fn of(params: &Params, pairs: &str) -> Self {
        let mut fields = vec![("pairs".to_owned(), pairs.to_owned())];
        // These parameters do not affect sketches, and so do not affect pairs.
        let free = ["tables", "codec", "feature-bits", "values", "expire-after"];
        let of_sketches = params.fields().into_iter().filter(|(name, _)| !free.contains(name));
        fields.extend(of_sketches.map(|(name, value)| (name.to_owned(), value)));
        Self(fields)
    }

    /// Returns the rules by which the texts of the documents are split; `None` if the files have no parameters.
    pub(crate) fn shingling(&self) -> anyhow::Result<Option<Shingling>> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let mut lines = String::new();
        for (name, value) in self.0.iter().filter(|(name, _)| name != "pairs") {
            let _ = writeln!(lines, "{name}={value}");
            // Adds parameters that the header lacks. They do not affect how texts are split.
            if name == "within" {
                lines.push_str("tables=auto\ncodec=auto\n");
            }
        }
        let params = Params::decode(&lines).context("the parameters of the pairs")?;
        Ok(Some(params.shingling))
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, value)| value.as_str())
    }

    fn keys(&self) -> KeyText {
        KeyText { numbers: self.value("key") == Some(&KeyKind::U64.to_string()) }
    }

    /// Returns the first field that differs: its name, its value here, and its value in `other`.
    fn difference<'a>(&'a self, other: &'a Self) -> Option<(&'a str, &'a str, &'a str)> {
        let names = self.0.iter().chain(&other.0).map(|(name, _)| name.as_str());
        let value = |fields: &'a Self, name| fields.value(name).unwrap_or("absent");
        names
            .map(|name| (name, value(self, name), value(other, name)))
            .find(|(_, mine, theirs)| mine != theirs)
    }
}

/// Converts keys from text to bytes, and back. The bytes sort in the order of the keys.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KeyText {
    numbers: bool,
}

impl KeyText {
    /// Converts a field of a line to a key.
    fn read(self, field: &[u8]) -> anyhow::Result<Cow<'_, [u8]>> {
        if self.numbers {
            let number = str::from_utf8(field).ok().and_then(|text| text.parse::<u64>().ok());
            let number = number.with_context(|| {
                format!("expected a key from 0 to {}, found `{}`", u64::MAX, field.escape_ascii())
            })?;
            return Ok(Cow::Owned(number.to_be_bytes().to_vec()));
        }
        let key = tsv::unescape(field)?;
        ensure!(!key.is_empty(), "expected a key, found an empty field");
        Ok(key)
    }

    /// Returns the hash of a key by which `--keep key-hash` orders documents.
    pub(crate) fn hash(self, key: &[u8]) -> u64 {
        match <[u8; 8]>::try_from(key) {
            Ok(number) if self.numbers => Key::U64(u64::from_be_bytes(number)).priority_hash(),
            _ => Key::Bytes(key).priority_hash(),
        }
    }

    /// Returns the key of a document.
    pub(crate) fn owned(self, key: &[u8]) -> KeyBuf {
        match <[u8; 8]>::try_from(key) {
            Ok(number) if self.numbers => KeyBuf::U64(u64::from_be_bytes(number)),
            _ => KeyBuf::Bytes(key.into()),
        }
    }

    /// Writes a key as a field of a line.
    pub(crate) fn write(self, out: &mut impl Write, key: &[u8]) -> io::Result<()> {
        match <[u8; 8]>::try_from(key) {
            Ok(number) if self.numbers => write!(out, "{}", u64::from_be_bytes(number)),
            _ => tsv::write_field(out, key),
        }
    }
}

/// A file of pairs that is being written.
pub(crate) struct PairWriter {
    out: StageFile,
    hash: Xxh3Default,
    lines: u64,
    line: Vec<u8>,
}

impl PairWriter {
    /// Writes the header.
    pub(crate) fn begin(
        out: StageFile,
        what: ResultKind,
        fields: &PairFields,
        columns: &str,
    ) -> anyhow::Result<Self> {
        let mut writer = Self { out, hash: Xxh3Default::new(), lines: 0, line: what.magic.to_vec() };
        for (name, value) in &fields.0 {
            writeln!(writer.line, "{MARK}{name}={value}")?;
        }
        writeln!(writer.line, "{columns}")?;
        writer.put()?;
        Ok(writer)
    }

    /// Writes a line. `write` appends the line, without its newline, to a buffer.
    pub(crate) fn line(&mut self, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> anyhow::Result<()> {
        write(&mut self.line)?;
        self.line.push(b'\n');
        self.lines += 1;
        self.put()
    }

    /// Writes `count` complete lines.
    pub(crate) fn lines(&mut self, count: u64, lines: &[u8]) -> anyhow::Result<()> {
        self.lines += count;
        self.put_text(lines)
    }

    fn put(&mut self) -> anyhow::Result<()> {
        let line = std::mem::take(&mut self.line);
        self.put_text(&line)?;
        self.line = line;
        self.line.clear();
        Ok(())
    }

    fn put_text(&mut self, text: &[u8]) -> anyhow::Result<()> {
        self.hash.update(text);
        self.out.write_all(text).context("cannot write the results")
    }

    /// Writes the last line, and renames the file to its final name.
    pub(crate) fn finish(mut self) -> anyhow::Result<WrittenFile> {
        writeln!(self.line, "{END}{} {:016x}", self.lines, self.hash.digest())?;
        self.put()?;
        self.out.finish()
    }
}

/// Files of pairs with equal parameters.
pub(crate) struct PairFiles {
    files: Vec<PairSource>,
    fields: PairFields,
}

struct PairSource {
    path: PathBuf,
    is_forest: bool,
    /// The reader of an open pipe, after its header; `None` for a file, which is opened when it is read.
    pipe: Option<PairFileLines>,
}

/// A line of a file: both keys, and the third field.
pub(crate) struct PairLine<'l> {
    pub(crate) a: &'l [u8],
    pub(crate) b: &'l [u8],
    /// The third field; `None` if the line has only two.
    pub(crate) score: Option<&'l [u8]>,
    /// Whether the line is an edge of a forest. Its documents are in one component, but need not be near.
    pub(crate) is_edge: bool,
}

impl PairFiles {
    /// Opens the files and checks their headers. For a folder, opens its files named `*.pairs` and `*.forest`.
    ///
    /// # Errors
    ///
    /// An input cannot be opened, or its parameters differ from those of the first file; the error names the parameter.
    pub(crate) fn open(inputs: &[PathBuf]) -> anyhow::Result<Self> {
        let mut files = Vec::new();
        for input in inputs {
            if input.is_dir() {
                files.extend(files_in(input)?);
            } else {
                files.push(input.clone());
            }
        }
        let mut all: Option<(PathBuf, Option<PairFields>)> = None;
        let mut sources = Vec::new();
        for path in &files {
            let lines = PairFileLines::open(path)?;
            let (fields, is_forest) = (lines.fields.clone(), lines.is_forest);
            let pipe = if path.is_file() { None } else { Some(lines) };
            sources.push(PairSource { path: path.clone(), is_forest, pipe });
            let Some((first, expected)) = &all else {
                all = Some((path.clone(), fields));
                continue;
            };
            let (shown, first) = (path.display(), first.display());
            match (expected, &fields) {
                (None, None) => {}
                (Some(expected), Some(found)) => {
                    if let Some((field, expected, found)) = expected.difference(found) {
                        bail!(
                            "{shown}: made with other parameters than {first}: {field}: expected {expected}, \
                             found {found}; make all of them with the same options"
                        );
                    }
                }
                (Some(_), None) => bail!(
                    "{shown}: parameters: expected those of {first}, found none; take files that `twindex pairs` \
                     and `groups` wrote with --out or --into, or tables alone"
                ),
                (None, Some(_)) => bail!(
                    "{shown}: parameters: expected none, as in {first}, found some; take files that `twindex \
                     pairs` and `groups` wrote with --out or --into, or tables alone"
                ),
            }
        }
        Ok(Self { files: sources, fields: all.and_then(|(_, fields)| fields).unwrap_or_default() })
    }

    /// Returns whether `path` is a file that `pairs` wrote with `--out` or `--into`, and not a table.
    pub(crate) fn is_one(path: &Path) -> bool {
        let mut start = [0; PAIRS.magic.len()];
        // Reading a pipe would consume its first bytes.
        path.is_file()
            && File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok()
            && start == *PAIRS.magic
    }

    /// Returns the description of the pairs in the header; `None` for tables.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.fields.value("pairs")
    }

    /// Returns the path of the first forest; `None` if there is none.
    pub(crate) fn forest(&self) -> Option<&Path> {
        self.files.iter().find(|file| file.is_forest).map(|file| file.path.as_path())
    }

    pub(crate) fn count(&self) -> u64 {
        self.files.len() as u64
    }

    pub(crate) fn fields(&self) -> &PairFields {
        &self.fields
    }

    /// Returns an error if the parameters of `other` differ.
    pub(crate) fn check_same(&self, other: &Self) -> anyhow::Result<()> {
        let (Some(mine), Some(theirs)) = (self.files.first(), other.files.first()) else { return Ok(()) };
        match self.fields.difference(&other.fields) {
            None => Ok(()),
            Some((field, expected, found)) => bail!(
                "{}: made with other parameters than {}: {field}: expected {expected}, found {found}; make all of \
                 them with the same options",
                theirs.path.display(),
                mine.path.display()
            ),
        }
    }

    pub(crate) fn keys(&self) -> KeyText {
        self.fields.keys()
    }

    /// Passes every line of all files to `each`, in order, and returns the number of lines.
    ///
    /// # Errors
    ///
    /// A line is invalid, a file was truncated or changed, or a pipe was already read; errors of `each`. The error names
    /// the file and line.
    pub(crate) fn for_each(
        &mut self,
        mut each: impl FnMut(PairLine<'_>) -> anyhow::Result<()>,
    ) -> anyhow::Result<u64> {
        let mut count = 0;
        for PairSource { path, is_forest, pipe } in &mut self.files {
            let mut lines = match pipe.take() {
                Some(lines) => lines,
                None if path.is_file() => PairFileLines::open(path)?,
                None => bail!("{}: is a pipe, and can be read only once; name a file", path.display()),
            };
            while lines.next()? {
                let (a, b, score) = lines.pair()?;
                each(PairLine { a: &a, b: &b, score, is_edge: *is_forest })
                    .with_context(|| format!("{}, line {}", path.display(), lines.number))?;
                count += 1;
            }
        }
        Ok(count)
    }
}

fn files_in(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let shown = folder.display();
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).with_context(|| format!("{shown}: cannot list it"))? {
        let path = entry.with_context(|| format!("{shown}: cannot list it"))?.path();
        if path.extension().is_some_and(|suffix| SUFFIXES.iter().any(|ours| suffix == *ours)) {
            files.push(path);
        }
    }
    ensure!(
        !files.is_empty(),
        "{shown}: expected files named *.pairs or *.forest in this folder, found none"
    );
    files.sort_unstable();
    Ok(files)
}

/// A file of pairs that is being read, line by line.
struct PairFileLines {
    path: PathBuf,
    reader: BufReader<File>,
    /// The parameters; `None` if the file has no header.
    fields: Option<PairFields>,
    /// Whether the file is a forest.
    is_forest: bool,
    keys: KeyText,
    hash: Xxh3Default,
    /// The most recently read line, without its newline, and its number, from 1.
    line: Vec<u8>,
    number: u64,
    /// Number of pairs read so far.
    pairs: u64,
    /// Whether `line` has been read in advance and is the next pair.
    waits: bool,
}

impl PairFileLines {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let shown = path.display();
        let metadata = fs::metadata(path).with_context(|| format!("{shown}: cannot open"))?;
        ensure!(!metadata.is_dir(), "{shown}: is a folder, not a file of pairs");
        let file = File::open(path).with_context(|| format!("{shown}: cannot open"))?;
        let mut lines = Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(BUFFER, file),
            fields: None,
            is_forest: false,
            keys: KeyText::default(),
            hash: Xxh3Default::new(),
            line: Vec::new(),
            number: 0,
            pairs: 0,
            waits: false,
        };
        lines.read_head()?;
        Ok(lines)
    }

    fn at(&self, why: impl std::fmt::Display) -> anyhow::Error {
        anyhow!("{}, line {}: {why}", self.path.display(), self.number)
    }

    fn read_head(&mut self) -> anyhow::Result<()> {
        if !self.read_line()? {
            return Ok(()); // the table is empty
        }
        let is = |what: ResultKind, line: &[u8]| what.magic.strip_suffix(b"\n") == Some(line);
        if !is(PAIRS, &self.line) && !is(FOREST, &self.line) {
            let line = self.line.strip_suffix(b"\tdecided").unwrap_or(&self.line);
            let is_head = TABLES.iter().any(|head| line == head.as_bytes());
            self.waits = !is_head;
            return Ok(());
        }
        self.is_forest = is(FOREST, &self.line);
        let mut fields = Vec::new();
        loop {
            if !self.read_line()? || fields.len() > FIELDS_MAX {
                self.number += 1;
                return Err(
                    self.at("expected the names of columns, found the end of the file; it was cut off")
                );
            }
            let Some(field) = self.line.strip_prefix(MARK.as_bytes()) else { break };
            let field = str::from_utf8(field).ok().and_then(|text| text.split_once('='));
            let Some((name, value)) = field else {
                return Err(self.at(format_args!(
                    "expected a parameter, `{MARK}name=value`, found `{}`",
                    self.line.escape_ascii()
                )));
            };
            fields.push((name.to_owned(), value.to_owned()));
        }
        let fields = PairFields(fields);
        self.keys = fields.keys();
        self.fields = Some(fields);
        Ok(())
    }

    /// Reads the next line; false at the end of the file.
    fn read_line(&mut self) -> anyhow::Result<bool> {
        if self.number > 0 {
            self.hash.update(&self.line);
            self.hash.update(b"\n");
        }
        self.line.clear();
        self.number += 1;
        let most = LINE_BYTES_MAX as u64 + 1;
        let read = self.reader.by_ref().take(most).read_until(b'\n', &mut self.line);
        read.with_context(|| format!("{}: cannot read", self.path.display()))?;
        match self.line.pop() {
            None => return Ok(false),
            Some(b'\n') => {}
            Some(_) if self.line.len() as u64 + 1 == most => {
                return Err(self.at(format_args!("expected at most {LINE_BYTES_MAX} bytes, found more")));
            }
            Some(_) => {
                return Err(
                    self.at("expected the end of the line, found the end of the file; it was cut off")
                );
            }
        }
        Ok(true)
    }

    /// Advances to the next pair; false at the end.
    fn next(&mut self) -> anyhow::Result<bool> {
        if std::mem::take(&mut self.waits) {
            self.pairs += 1;
            return Ok(true);
        }
        if !self.read_line()? {
            return match self.fields {
                None => Ok(false),
                Some(_) => Err(self.at(format_args!(
                    "expected `{END}...`, found the end of the file; it was cut off: copy it again, or make it again"
                ))),
            };
        }
        if self.fields.is_none() || !self.line.starts_with(END.as_bytes()) || self.line.contains(&b'\t') {
            self.pairs += 1;
            return Ok(true);
        }
        let expected = format!("{END}{} {:016x}", self.pairs, self.hash.digest());
        if self.line != expected.as_bytes() {
            return Err(self.at(format_args!(
                "expected `{expected}`, found `{}`; the file was changed: copy it again, or make it again",
                self.line.escape_ascii()
            )));
        }
        if self.read_line()? {
            return Err(self.at("expected the end of the file, found more"));
        }
        Ok(false)
    }

    /// Returns the keys and the third field of the current line.
    #[allow(clippy::type_complexity, reason = "two keys and a field")]
    fn pair(&self) -> anyhow::Result<(Cow<'_, [u8]>, Cow<'_, [u8]>, Option<&[u8]>)> {
        let mut fields = self.line.split(|&byte| byte == b'\t');
        let (Some(a), Some(b)) = (fields.next(), fields.next()) else {
            return Err(self.at(format_args!(
                "expected two keys with a tab between them, found `{}`",
                String::from_utf8_lossy(&self.line[..self.line.len().min(80)]).escape_debug()
            )));
        };
        let key = |field| self.keys.read(field).map_err(|why| self.at(why));
        Ok((key(a)?, key(b)?, fields.next()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> anyhow::Result<Vec<(String, String)>> {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), bytes).unwrap();
        let mut files = PairFiles::open(&[file.path().to_owned()])?;
        let mut pairs = Vec::new();
        files.for_each(|pair| {
            let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
            pairs.push((text(pair.a), text(pair.b)));
            Ok(())
        })?;
        Ok(pairs)
    }

    fn whole() -> Vec<u8> {
        let mut bytes = b"# twindex pairs\n# pairs=within 3\n# key=bytes\na\tb\tdistance\n".to_vec();
        bytes.extend(b"# end\tx\\ty\t2\np\tq\t0\n");
        let mut hash = Xxh3Default::new();
        hash.update(&bytes);
        writeln!(bytes, "# end 2 {:016x}", hash.digest()).unwrap();
        bytes
    }

    #[test]
    fn truncated_or_changed_pair_files_are_refused() {
        let bytes = whole();
        let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
        assert_eq!(read(&bytes).unwrap(), [pair("# end", "x\ty"), pair("p", "q")]);
        for length in 1..bytes.len() {
            let message = read(&bytes[..length]).unwrap_err().to_string();
            assert!(message.contains(", line ") && message.contains("expected"), "{length}: {message}");
        }
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 1;
            // A file without a valid header is read as a table, in which the header lines are no valid pairs.
            assert!(read(&changed).is_err(), "byte {place}");
        }
        assert!(read(&[bytes.clone(), b"p\tq\t0\n".to_vec()].concat()).is_err());
    }

    #[test]
    fn tables_are_read_with_and_without_headers_of_other_verbs() {
        let pairs = [("k".to_owned(), "l".to_owned())];
        for head in ["", "a\tb\tdistance\n", "a\tb\tresemblance\tintersection\tunion\n"] {
            assert_eq!(read(format!("{head}k\tl\t1\n").as_bytes()).unwrap(), pairs, "{head}");
        }
        assert_eq!(read(b"k\tl\n").unwrap(), pairs);
        assert_eq!(read(b"").unwrap(), []);
        for (bytes, why) in [
            (&b"k\tl\nk l\n"[..], "line 2: expected two keys with a tab between them, found `k l`"),
            (b"k\tl\nk\tl", "line 2: expected the end of the line"),
            (b"k\t\n", "line 1: expected a key, found an empty field"),
            (b"k\t\\q\n", "line 1: bad escape"),
        ] {
            let message = read(bytes).unwrap_err().to_string();
            assert!(message.contains(why), "{message}");
        }
    }

    #[test]
    fn numeric_keys_sort_as_numbers() {
        let keys = KeyText { numbers: true };
        assert!(keys.read(b"9").unwrap() < keys.read(b"10").unwrap());
        let mut out = Vec::new();
        keys.write(&mut out, &keys.read(b"18446744073709551615").unwrap()).unwrap();
        assert_eq!(out, b"18446744073709551615");
        for bad in [&b"-1"[..], b"x", b"", b"18446744073709551616"] {
            assert!(keys.read(bad).is_err());
        }
    }
}
