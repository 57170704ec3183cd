//! Names of the files to which documents are written.

use crate::input::content::PARQUET;
use crate::input::open::reader::Compression;

/// The start of the names of files with kept documents.
pub const KEPT: &str = "kept";
/// The start of the names of files with all documents and the decisions about them.
pub(crate) const ANNOTATED: &str = "annotated";
/// The start of the names of files with all documents and the repeated spans of their texts.
pub(crate) const MARKED: &str = "marked";

/// The suffixes of JSON Lines files and tables, which may be compressed.
const LINES: [&str; 3] = ["jsonl", "csv", "tsv"];
/// The suffixes of the other files of documents, which are never compressed.
const OTHERS: [&str; 4] = ["wet", "warc", "arc", PARQUET];

/// Returns whether files with this suffix are compressed if compression is requested.
pub(crate) fn may_be_compressed(suffix: &str) -> bool {
    LINES.contains(&suffix)
}

/// Returns the name of a file of documents. `stem` is the start of the name, and `number` is the index of the file, from 0,
/// among the files with this suffix.
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
}
