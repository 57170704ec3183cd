//! Names of the files to which documents are written.

use super::form::PARQUET;

/// The start of the names of files with kept documents.
pub const KEPT: &str = "kept";
/// The start of the names of files with all documents and the decisions about them.
pub const ANNOTATED: &str = "annotated";
/// The start of the names of files with all documents and the repeated spans of their texts.
pub const MARKED: &str = "marked";

/// Returns the name of a file of documents. `number` is its index, from 0, among the files with this suffix.
pub(super) fn name(stem: &str, suffix: &str, number: usize) -> String {
    if number == 0 { format!("{stem}.{suffix}") } else { format!("{stem}-{}.{suffix}", number + 1) }
}

/// Returns whether a file name is that of a file with kept documents.
#[must_use]
pub fn is_name(file: &str) -> bool {
    begins_with(file, KEPT)
}

/// Returns whether a file name is that of a file with all documents and the decisions about them.
#[must_use]
pub fn is_name_of_annotated(file: &str) -> bool {
    begins_with(file, ANNOTATED)
}

/// Returns whether a file name is that of a file with all documents and the repeated spans of their texts.
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
    fn only_names_of_kept_files_are_recognised() {
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
