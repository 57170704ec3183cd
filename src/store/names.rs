//! File names in an index directory.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use crate::sys::vfs::TEMPORARY_PREFIX;

/// The prefix of an IDF table's file name; the 32 hexadecimal digits of its digest follow.
const IDF_PREFIX: &str = "IDF-";

/// The kind of a file in an index directory, derived from its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    /// `CURRENT`, which points to the newest manifest.
    Current,
    /// The manifest of the generation with this number.
    Manifest(u64),
    Segment(u64),
    Log(u64),
    /// The IDF table with this digest.
    Idf(u128),
    /// The lock file of the writer.
    Lock,
    /// A temporary file, in use or left by a crash.
    Temporary,
}

pub(super) fn current(dir: &Path) -> PathBuf {
    dir.join("CURRENT")
}

pub(super) fn lock(dir: &Path) -> PathBuf {
    dir.join("LOCK")
}

pub(super) fn manifest(dir: &Path, generation: u64) -> PathBuf {
    dir.join(format!("MANIFEST-{generation:06}"))
}

pub(super) fn segment(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{number:06}.seg"))
}

pub(super) fn log(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("LOG-{number:06}"))
}

pub(super) fn idf(dir: &Path, digest: u128) -> PathBuf {
    dir.join(format!("{IDF_PREFIX}{digest:032x}"))
}

/// Returns the kind of a file, derived from its name; `None` for a name that twindex does not use. The caller must not
/// change a file with an unknown name.
pub(super) fn parse(name: &OsStr) -> Option<FileKind> {
    let name = name.to_str()?;
    // Accepts only the form that twindex writes: `000007.seg`, not `7.seg`.
    let number = |digits: &str| {
        let number = digits.parse().ok()?;
        // guard: only names that are ours are ours
        // without it: format!("{number:06}") == digits -> true
        (format!("{number:06}") == digits).then_some(number)
    };
    match name {
        "CURRENT" => Some(FileKind::Current),
        "LOCK" => Some(FileKind::Lock),
        _ => {
            if name.starts_with(TEMPORARY_PREFIX) {
                Some(FileKind::Temporary)
            } else if let Some(digits) = name.strip_prefix("MANIFEST-") {
                number(digits).map(FileKind::Manifest)
            } else if let Some(digits) = name.strip_prefix("LOG-") {
                number(digits).map(FileKind::Log)
            } else if let Some(digits) = name.strip_prefix(IDF_PREFIX) {
                let digest = u128::from_str_radix(digits, 16).ok()?;
                (format!("{digest:032x}") == digits).then_some(FileKind::Idf(digest))
            } else {
                number(name.strip_suffix(".seg")?).map(FileKind::Segment)
            }
        }
    }
}

/// Returns whether this version of twindex gives this name to files in an index directory, including temporary files.
#[must_use]
pub fn is_of_an_index(name: &OsStr) -> bool {
    parse(name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_round_trip_and_other_names_are_rejected() {
        let dir = Path::new("x");
        for (path, name) in [
            (current(dir), FileKind::Current),
            (lock(dir), FileKind::Lock),
            (manifest(dir, 7), FileKind::Manifest(7)),
            (manifest(dir, 12_345_678), FileKind::Manifest(12_345_678)),
            (segment(dir, 0), FileKind::Segment(0)),
            (log(dir, 12), FileKind::Log(12)),
            (idf(dir, 0xab), FileKind::Idf(0xab)),
            (idf(dir, u128::MAX), FileKind::Idf(u128::MAX)),
        ] {
            assert_eq!(parse(path.file_name().unwrap()), Some(name), "{path:?}");
        }
        for other in [
            "7.seg",
            "+00007.seg",
            "0000007.seg",
            ".DS_Store",
            "._000001.seg",
            "MANIFEST-",
            "LOG-",
            "LOG-7",
            "IDF-ab",
            "IDF-000000000000000000000000000000AB",
            "IDF-+00000000000000000000000000000ab",
            "manifest-000001",
            "",
        ] {
            assert_eq!(parse(OsStr::new(other)), None, "{other}");
        }
    }
}
