//! Names of the files of documents that are written.

use super::form::PARQUET;

/// The names of files of documents that are kept begin so.
pub const KEPT: &str = "kept";
/// The names of files of all documents, with what was decided about them, begin so.
pub const ANNOTATED: &str = "annotated";
/// The names of files of all documents, with the repeated spans of their texts, begin so.
pub const MARKED: &str = "marked";

/// The name of a file of documents; `number` counts those of one suffix from 0.
pub(super) fn name(stem: &str, suffix: &str, number: usize) -> String {
    if number == 0 { format!("{stem}.{suffix}") } else { format!("{stem}-{}.{suffix}", number + 1) }
}

/// Whether a file has the name of one of documents that are kept.
#[must_use]
pub fn is_name(file: &str) -> bool {
    begins_with(file, KEPT)
}

/// Whether a file has the name of one of all documents.
#[must_use]
pub fn is_name_of_annotated(file: &str) -> bool {
    begins_with(file, ANNOTATED)
}

/// Whether a file has the name of one of all documents with the repeated spans of their texts.
#[must_use]
pub fn is_name_of_marked(file: &str) -> bool {
    begins_with(file, MARKED)
}

fn begins_with(file: &str, name: &str) -> bool {
    let Some((stem, suffix)) = file.rsplit_once('.') else { return false };
    let number = stem.strip_prefix(name).and_then(|rest| match rest {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse::<u32>().ok().filter(|number| *number > 1),
    });
    ["jsonl", "csv", "tsv", "wet", "warc", "arc", PARQUET].contains(&suffix) && number.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kept_files_are_recognised_and_others_are_not() {
        for (suffix, number, wanted) in [("jsonl", 0, "kept.jsonl"), ("csv", 1, "kept-2.csv")] {
            assert_eq!(name(KEPT, suffix, number), wanted);
            assert!(is_name_of_annotated(&name(ANNOTATED, suffix, number)));
            assert!(!is_name_of_annotated(wanted));
            assert!(is_name(wanted));
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
        ] {
            assert!(!is_name(other), "{other}");
        }
    }
}
