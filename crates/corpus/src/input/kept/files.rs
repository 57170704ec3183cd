//! The files to which documents are written: their names, and a key file next to each. A key file has the keys that the
//! lines do not contain: keys with an added number, and keys that consist of a file and a row.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};

use crate::input::content::{ARROW, PARQUET};
use crate::input::jsonl::lines::TableLines;
use crate::input::open::reader::Compression;
use crate::input::place::{Place, Problem};
use crate::work::file::{FileHash, HashedFile};
use crate::work::tsv;

/// The start of the names of files with kept documents.
pub const KEPT: &str = "kept";
/// The start of the names of files with all documents and the decisions about them.
pub(crate) const ANNOTATED: &str = "annotated";
/// The start of the names of files with all documents and the repeated spans of their texts.
pub(crate) const MARKED: &str = "marked";

/// The suffixes of JSON Lines files and tables, which may be compressed.
const LINES: [&str; 3] = ["jsonl", "csv", "tsv"];
/// The suffixes of the other files of documents, which are never compressed.
const OTHERS: [&str; 5] = ["wet", "warc", "arc", PARQUET, ARROW];

/// Returns whether files with this suffix are compressed if compression is requested.
pub(crate) fn may_be_compressed(suffix: &str) -> bool {
    LINES.contains(&suffix)
}

/// Returns the name of a file of documents, which begins with `stem`. `number` is the index of the file, from 0, among
/// the files with this suffix.
pub(crate) fn name(stem: &str, suffix: &str, number: usize, compression: Option<Compression>) -> String {
    let packed = compression.map_or("", Compression::suffix);
    if number == 0 {
        format!("{stem}.{suffix}{packed}")
    } else {
        format!("{stem}-{}.{suffix}{packed}", number + 1)
    }
}

/// Returns whether this is the name of a file with kept documents.
#[must_use]
pub(crate) fn is_name_of_kept(file: &str) -> bool {
    begins_with(file, KEPT)
}

/// Returns whether this is the name of a file with all documents and the decisions about them.
#[must_use]
pub(crate) fn is_name_of_annotated(file: &str) -> bool {
    begins_with(file, ANNOTATED)
}

/// Returns whether this is the name of a file with all documents and the repeated spans of their texts.
#[must_use]
pub(crate) fn is_name_of_marked(file: &str) -> bool {
    begins_with(file, MARKED)
}

fn begins_with(file: &str, name: &str) -> bool {
    let packed = [Compression::Gzip, Compression::Zstd].map(Compression::suffix);
    let plain = packed.iter().find_map(|packed| file.strip_suffix(packed));
    let Some((stem, suffix)) = plain.unwrap_or(file).rsplit_once('.') else { return false };
    let number = stem.strip_prefix(name).and_then(|rest| match rest {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse::<u32>().ok().filter(|number| *number > 1),
    });
    (LINES.contains(&suffix) || plain.is_none() && OTHERS.contains(&suffix)) && number.is_some()
}

/// The suffix that is appended to the name of a file of documents to name its key file.
pub(crate) const SUFFIX_OF_KEYS: &str = ".keys";
const HEADER: &str = "number\tkey";

#[must_use]
pub(crate) fn is_name_of_keys(file: &str) -> bool {
    file.strip_suffix(SUFFIX_OF_KEYS).is_some_and(is_ours)
}

fn is_ours(file: &str) -> bool {
    is_name_of_kept(file) || is_name_of_annotated(file) || is_name_of_marked(file)
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(SUFFIX_OF_KEYS);
    name.into()
}

/// Reads the key file of a file of documents, in the order of the documents.
pub(crate) struct KeptKeys {
    lines: TableLines,
    next: Option<(u64, Vec<u8>)>,
}

impl KeptKeys {
    /// Opens the key file of the file at `path`. Returns `None` if the file at `path` is not output of `dedup`, or has
    /// no key file because its lines contain all keys.
    ///
    /// # Errors
    ///
    /// The key file cannot be read.
    pub(crate) fn beside(path: &Path) -> Result<Option<Self>, Problem> {
        let is_kept = path.file_name().and_then(|name| name.to_str()).is_some_and(is_ours);
        let file = beside(path);
        if !is_kept || !file.is_file() {
            return Ok(None);
        }
        let open = || -> anyhow::Result<Self> {
            let mut lines = TableLines::open(&file)?;
            let header = lines.next_line()?.map(|(_, line)| line.to_vec());
            ensure!(header.as_deref() == Some(HEADER.as_bytes()), "not as `dedup` writes it");
            let mut keys = Self { lines, next: None };
            keys.advance()?;
            Ok(keys)
        };
        open().map(Some).map_err(|error| problem(&file, &error))
    }

    fn advance(&mut self) -> anyhow::Result<()> {
        self.next = None;
        let Some((_, line)) = self.lines.next_line()? else { return Ok(()) };
        let tab = memchr::memchr(b'\t', line).context("not as `dedup` writes it")?;
        let number = std::str::from_utf8(&line[..tab])?.parse().context("not as `dedup` writes it")?;
        let key = tsv::unescape(&line[tab + 1..])?.into_owned();
        crate::input::place::check_key(&key).map_err(anyhow::Error::msg)?;
        self.next = Some((number, key));
        Ok(())
    }

    /// Returns the key of the document with this number; `None` if the document's line contains the key. Each call must
    /// have a greater number than the previous one.
    ///
    /// # Errors
    ///
    /// The key file cannot be read to its end.
    pub(crate) fn of(&mut self, number: u64) -> Result<Option<Vec<u8>>, Problem> {
        while let Some((next, key)) = &mut self.next {
            if *next > number {
                break;
            }
            let found = (*next == number).then(|| std::mem::take(key));
            let name = self.lines.name();
            self.advance().map_err(|error| problem(&name, &error))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

fn problem(file: &Path, error: &anyhow::Error) -> Problem {
    Problem { place: Place::file(Arc::from(file)), reason: format!("{error:#}") }
}

/// Writes the key file of a file of documents.
pub(crate) struct KeyWriter {
    file: HashedFile,
    waiting: Vec<u8>,
}

/// Number of bytes written at a time.
const TOGETHER: usize = 1 << 16;

impl KeyWriter {
    /// Creates the key file of the file `kept` in a folder. If an earlier writer of this key file was finished, opens
    /// the key file to append keys; `earlier` is the hash that the earlier writer returned.
    ///
    /// # Errors
    ///
    /// The file cannot be created or opened.
    pub(crate) fn open(folder: &Path, kept: &str, earlier: Option<FileHash>) -> std::io::Result<Self> {
        let path = beside(&folder.join(kept));
        if let Some(hash) = earlier {
            return Ok(Self { file: HashedFile::append(&path, hash)?, waiting: Vec::new() });
        }
        let waiting = [HEADER.as_bytes(), b"\n"].concat();
        Ok(Self { file: HashedFile::create_new(&path)?, waiting })
    }

    /// Adds the key of the document with this number.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn push(&mut self, number: u64, key: &[u8]) -> std::io::Result<()> {
        self.waiting.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        self.waiting.push(b'\t');
        tsv::write_field(&mut self.waiting, key)?;
        self.waiting.push(b'\n');
        if self.waiting.len() >= TOGETHER {
            self.file.write_all(&self.waiting)?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Writes the keys in the buffer, syncs the file, and returns the hash of the file.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub(crate) fn finish(mut self) -> std::io::Result<FileHash> {
        self.file.write_all(&self.waiting)?;
        self.file.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_kept_files_are_recognised() {
        for (suffix, number, compression, wanted) in [
            ("jsonl", 0, None, "kept.jsonl"),
            ("csv", 1, None, "kept-2.csv"),
            ("tsv", 0, Some(Compression::Gzip), "kept.tsv.gz"),
            ("jsonl", 10, Some(Compression::Zstd), "kept-11.jsonl.zst"),
        ] {
            assert_eq!(name(KEPT, suffix, number, compression), wanted);
            assert!(is_name_of_annotated(&name(ANNOTATED, suffix, number, compression)));
            assert!(!is_name_of_annotated(wanted));
            assert!(is_name_of_kept(wanted));
        }
        for other in [
            "kept",
            "kept.txt",
            "keptx.csv",
            "kept-a.csv",
            "kept-.csv",
            "kept2.csv",
            "kept-1.csv",
            "my.csv",
            "kept.parquet.bak",
            "kept.parquet.zst",
            "kept.warc.gz",
            "kept.jsonl.zst.gz",
            "kept.zst",
        ] {
            assert!(!is_name_of_kept(other), "{other}");
        }
    }

    #[test]
    fn kept_keys_are_found_by_document_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut earlier = None;
        for some in [&[(2, &b"a\tb#2"[..]), (3, b"c\xff")][..], &[(900, b"d")]] {
            let mut writer = KeyWriter::open(folder.path(), "kept.jsonl", earlier.take()).unwrap();
            for (number, key) in some {
                writer.push(*number, key).unwrap();
            }
            earlier = Some(writer.finish().unwrap());
        }
        let open = || KeptKeys::beside(&folder.path().join("kept.jsonl"));
        let mut keys = open().unwrap().unwrap();
        let found: Vec<_> = [1, 2, 3, 5, 900, 902].map(|number| keys.of(number).unwrap()).into();
        assert_eq!(
            found,
            [None, Some(b"a\tb#2".to_vec()), Some(b"c\xff".to_vec()), None, Some(b"d".to_vec()), None]
        );
        assert!(KeptKeys::beside(&folder.path().join("kept-2.jsonl")).unwrap().is_none());
        assert!(KeptKeys::beside(&folder.path().join("mine.jsonl")).unwrap().is_none());
        std::fs::write(folder.path().join("kept.jsonl.keys"), "other\n").unwrap();
        assert!(open().err().unwrap().to_string().contains("kept.jsonl.keys: not as `dedup` writes it"));
        assert!(
            is_name_of_keys("kept.jsonl.keys")
                && is_name_of_keys("kept-2.parquet.keys")
                && !is_name_of_keys("mine.jsonl.keys")
        );
    }
}
