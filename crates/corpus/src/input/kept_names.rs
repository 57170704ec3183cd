//! Names of the files of documents that are kept.

use super::form::PARQUET;

/// The names of these files begin so.
const STEM: &str = "kept";

/// The name of a file of documents that are kept; `number` counts those of one suffix from 0.
pub(super) fn name(suffix: &str, number: usize) -> String {
    if number == 0 { format!("{STEM}.{suffix}") } else { format!("{STEM}-{}.{suffix}", number + 1) }
}

/// Whether a file has the name of one of documents that are kept.
#[must_use]
pub fn is_name(file: &str) -> bool {
    let Some((stem, suffix)) = file.rsplit_once('.') else { return false };
    let number = stem.strip_prefix(STEM).and_then(|rest| match rest {
        "" => Some(1),
        rest => rest.strip_prefix('-')?.parse::<u32>().ok().filter(|number| *number > 1),
    });
    ["jsonl", "csv", "tsv", "wet", "warc", PARQUET].contains(&suffix) && number.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_kept_documents_are_known_and_others_are_not() {
        for (suffix, number, wanted) in [("jsonl", 0, "kept.jsonl"), ("csv", 1, "kept-2.csv")] {
            assert_eq!(name(suffix, number), wanted);
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
