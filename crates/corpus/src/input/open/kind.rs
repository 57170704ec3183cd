//! Detects the format of a file from its name or its first bytes, and the format that the files of a folder share.

use std::path::Path;
use std::sync::Arc;

use anyhow::bail;
use serde::de::IgnoredAny;

use crate::input::archives::http;
use crate::input::content;
use crate::input::open::folder;
use crate::input::open::reader::{self, Origin, Reader};
use crate::input::place::Problem;
use crate::work::numbers::counted;

/// The format of files that contain records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// JSON lines.
    Jsonl,
    /// Comma-separated values.
    Csv,
    /// Tab-separated values.
    Tsv,
    /// Texts in WET files.
    Wet,
    /// Pages in WARC files.
    Warc,
    /// Rows of Parquet files.
    Parquet,
    /// Pages in ARC files.
    Arc,
    /// Rows of Arrow IPC files.
    Arrow,
}

impl Kind {
    pub(crate) const ALL: [Self; 8] =
        [Self::Jsonl, Self::Csv, Self::Tsv, Self::Wet, Self::Warc, Self::Parquet, Self::Arc, Self::Arrow];

    /// Returns whether files of this format store values column by column. They are read in parts, so that they must be
    /// regular files that are not compressed as a whole.
    pub(crate) fn is_of_columns(self) -> bool {
        matches!(self, Self::Parquet | Self::Arrow)
    }

    /// Returns the file name suffixes of this format, without suffixes for compression.
    pub(crate) fn suffixes(self) -> &'static [&'static str] {
        match self {
            Self::Jsonl => &["jsonl", "ndjson", "json", "jl", "jsonlines"],
            Self::Csv => &["csv"],
            Self::Tsv => &["tsv"],
            Self::Wet => &["wet"],
            Self::Warc => &["warc"],
            Self::Parquet => &[content::PARQUET, "pq"],
            Self::Arc => &["arc"],
            Self::Arrow => &[content::ARROW, "feather", "ipc", "arrows"],
        }
    }

    /// Returns the format that a file name indicates; `None` if it indicates no format, or a file of columns that
    /// is compressed as a whole.
    pub(crate) fn of_name(path: &Path) -> Option<Self> {
        let plain = reader::without_compression(path);
        let suffix = plain.extension()?;
        let named = |kind: &Self| kind.suffixes().iter().any(|name| suffix.eq_ignore_ascii_case(name));
        Self::ALL.into_iter().find(named).filter(|kind| !kind.is_of_columns() || plain == path)
    }
}

/// Returns whether a file has the suffix of a text format, including HTML.
pub(crate) fn is_named_as_text(path: &Path) -> bool {
    let plain = reader::without_compression(path);
    let is_one =
        |suffix: &std::ffi::OsStr| TEXT_SUFFIXES.iter().any(|name| suffix.eq_ignore_ascii_case(name));
    plain.extension().is_some_and(is_one) || http::is_named_html(&plain)
}

const TEXT_SUFFIXES: [&str; 7] = ["txt", "text", "md", "markdown", "rst", "tex", "log"];

/// Returns whether a file has the suffix `.json`. Such a file may be an array of records, objects of several lines, or
/// JSON lines.
pub(crate) fn is_named_json(path: &Path) -> bool {
    let plain = reader::without_compression(path);
    plain.extension().is_some_and(|suffix| suffix.eq_ignore_ascii_case("json"))
}

/// Returns whether a file is named like an output file that has no suffix: `part-00000` of Hadoop and Spark, `000000_0`
/// of Hive.
pub(crate) fn is_part(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_digit = |rest: &str| rest.starts_with(|first: char| first.is_ascii_digit());
    let of_hive = name
        .split_once('_')
        .filter(|(task, _)| task.len() >= 6 && task.bytes().all(|byte| byte.is_ascii_digit()));
    name.strip_prefix("part-").is_some_and(is_digit) || of_hive.is_some_and(|(_, attempt)| is_digit(attempt))
}

/// Returns the record format that the files of a folder share; `None` if each file is one document, or no file exists.
///
/// A mix of several record formats, or of record files and other files, is an error: record files would be read as
/// texts, or files would be skipped. If the only record files are `.json` files, all files are read as texts, because
/// folders of texts often contain such files.
///
/// Files with a name that begins with `_` are left out of records, so they decide only if the others are texts.
pub(crate) fn kind_of_folder(root: &Path, listing: &folder::Listing) -> anyhow::Result<Option<Kind>> {
    let files = || listing.files.iter().map(|file| &*file.below);
    let shown = kind_of_files(root, files().filter(|file| !folder::is_hidden(file, b'_')))?;
    shown.map_or_else(|| kind_of_files(root, files()), |kind| Ok(Some(kind)))
}

fn kind_of_files<'f>(root: &Path, files: impl Iterator<Item = &'f Path>) -> anyhow::Result<Option<Kind>> {
    let mut found = [0_u64; Kind::ALL.len()];
    let (mut others, mut objects) = (0_u64, 0_u64);
    for file in files {
        let kind = match Kind::of_name(file) {
            None if is_part(file) => kind(&root.join(file)).ok().flatten(),
            named => named,
        };
        objects += u64::from(is_named_json(file));
        match kind {
            Some(kind) => found[kind as usize] += 1,
            None => others += 1,
        }
    }
    if others > 0 && found.iter().sum::<u64>() == objects {
        return Ok(None);
    }
    let found: Vec<(Kind, u64)> = Kind::ALL.into_iter().zip(found).filter(|(_, files)| *files > 0).collect();
    if others == 0 && found.len() < 2 {
        return Ok(found.first().map(|(kind, _)| *kind));
    }
    let root = root.display();
    let named = if others == 0 {
        "its files are records of several formats".to_owned()
    } else {
        let files: u64 = found.iter().map(|(_, files)| files).sum();
        let are = if files == 1 { "is" } else { "are" };
        format!(
            "a folder of texts is expected, and {} beside {} {are} records",
            counted(files, "file"),
            counted(others, "other")
        )
    };
    if let [(kind, _)] = found[..] {
        let name = kind.suffixes()[0];
        bail!(
            "{root}: {named}: --format {name} reads their records, and leaves out the others, --glob PATTERN \
             selects files, --format text takes each file as one document"
        );
    }
    let formats: Vec<&str> = found.iter().map(|(kind, _)| kind.suffixes()[0]).collect();
    let kinds: Vec<String> = formats
        .iter()
        .zip(&found)
        .map(|(name, (_, files))| format!("{} of {name}", counted(*files, "file")))
        .collect();
    bail!(
        "{root}: {named}, {}: name the files one by one to read all records; --format {} reads those of one kind and \
         leaves out the others, --glob PATTERN selects files, --format text takes each file as one document",
        kinds.join(", "),
        formats.join(" or ")
    )
}

/// Number of bytes that are read to detect the format. A JSON line that is longer is recognized by its start.
const LOOKED_AT: usize = 64 << 10;

/// Returns the record format that the first decompressed bytes of a file indicate; `None` if they indicate no format.
///
/// # Errors
///
/// The file cannot be read, or its compression is not supported.
pub(crate) fn kind(path: &Path) -> Result<Option<Kind>, Problem> {
    let mut reader = Reader::open(Origin::File(path.to_owned()), &Arc::default())?;
    let is_plain = reader.plain_bytes().is_some();
    let (mut start, mut filled) = (vec![0; LOOKED_AT], 0);
    while filled < start.len() {
        match reader.read_once(&mut start[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(kind_of(&start[..filled]).filter(|kind| !kind.is_of_columns() || is_plain))
}

fn kind_of(start: &[u8]) -> Option<Kind> {
    let text = start.strip_prefix(b"\xef\xbb\xbf").unwrap_or(start).trim_ascii_start();
    match text {
        [b'P', b'A', b'R', b'1', ..] => Some(Kind::Parquet),
        // The second pattern is the start of a stream: no text, and a length below 2^24.
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] | [0xff, 0xff, 0xff, 0xff, _, _, _, 0, ..] => {
            Some(Kind::Arrow)
        }
        [b'W', b'A', b'R', b'C', b'/', b'0'..=b'9', b'.', ..] => Some(Kind::Warc),
        [b'f', b'i', b'l', b'e', b'd', b'e', b's', b'c', b':', ..] => Some(Kind::Arc),
        [b'{', ..] => is_line_of_json(text, start.len() == LOOKED_AT).then_some(Kind::Jsonl),
        _ => None,
    }
}

/// Returns whether the first line is a JSON object. If the line has no end in `text` and the file `continues`, checks
/// only the start of the line.
fn is_line_of_json(text: &[u8], continues: bool) -> bool {
    match memchr::memchr(b'\n', text) {
        Some(end) => serde_json::from_slice::<IgnoredAny>(&text[..end]).is_ok(),
        None if continues => text[1..].trim_ascii_start().starts_with(b"\""),
        None => serde_json::from_slice::<IgnoredAny>(text).is_ok(),
    }
}

impl Kind {
    /// Returns the name of the format for messages.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Jsonl => "JSONL",
            Self::Csv => "CSV",
            Self::Tsv => "TSV",
            Self::Wet => "WET",
            Self::Warc => "WARC",
            Self::Parquet => "Parquet",
            Self::Arc => "ARC",
            Self::Arrow => "Arrow",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_recognised_by_their_first_bytes_and_texts_are_not() {
        for (start, wanted) in [
            (&b"{\"id\":1}\n{\"id\":2}\n"[..], Some(Kind::Jsonl)),
            (b"\xef\xbb\xbf{\"id\":1}", Some(Kind::Jsonl)),
            (b"{\n  \"id\": 1\n}\n", None),
            (b"{% template %}\n", None),
            (b"WARC/1.0\r\n", Some(Kind::Warc)),
            (b"PAR1\x15\x04", Some(Kind::Parquet)),
            (b"ARROW1\0\0", Some(Kind::Arrow)),
            (b"\xff\xff\xff\xff\x90\0\0\0", Some(Kind::Arrow)),
            (b"\xff\xff\xff\xffabcd", None),
            (b"filedesc://a.arc 0.0.0.0 ", Some(Kind::Arc)),
            (b"WARCs are archives", None),
            (b"plain", None),
            (b"", None),
        ] {
            assert_eq!(kind_of(start), wanted, "{}", start.escape_ascii());
        }
        let long = [b"{\"id\":\"".to_vec(), vec![b'x'; LOOKED_AT]].concat();
        assert_eq!(kind_of(&long[..LOOKED_AT]), Some(Kind::Jsonl));
    }
}
