//! The position of a document: its file, and the line, row or record in the file. Also errors that name the position.

use std::borrow::Cow;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

/// The position from which a document was read: a file, and a line, row or record in it.
///
/// Displayed as `path:line`, as `path, record N`, or as `path` alone if the whole file is one document. Clones share
/// the path, so that the positions of all records in a large corpus can be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    path: Arc<Path>,
    /// The number of the line, record or row, from 1; 0 for the whole file.
    number: u64,
    unit: PlaceUnit,
}

/// The unit of the number in a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlaceUnit {
    Line,
    /// A record of a web archive or of a JSON array.
    Record,
    /// A row of a Parquet or Arrow file.
    Row,
}

impl Place {
    /// The name of standard input in messages.
    pub const STDIN: &str = "<stdin>";

    /// Returns the position of a file that is a single document, or of an error that concerns a whole file.
    #[must_use]
    pub fn file(path: Arc<Path>) -> Self {
        Self { path, number: 0, unit: PlaceUnit::Line }
    }

    /// Returns the position of line `line`, from 1.
    #[must_use]
    pub fn line(path: Arc<Path>, line: u64) -> Self {
        Self::of(path, line, PlaceUnit::Line)
    }

    /// Returns the position of the line, record or row with this number, from 1.
    #[must_use]
    pub fn of(path: Arc<Path>, number: u64, unit: PlaceUnit) -> Self {
        debug_assert!(number > 0, "lines, records and rows count from 1");
        Self { path, number, unit }
    }

    /// Replaces the position. If the path is the same object, does not change its reference count, because threads
    /// would contend for the count.
    pub(crate) fn replace(&mut self, path: &Arc<Path>, number: u64, unit: PlaceUnit) {
        if !Arc::ptr_eq(&self.path, path) {
            self.path = Arc::clone(path);
        }
        (self.number, self.unit) = (number, unit);
    }

    /// Returns the file, and the unit and number packed into one integer.
    pub(crate) fn packed(&self) -> (&Arc<Path>, u64) {
        let unit = match self.unit {
            PlaceUnit::Line => 0,
            PlaceUnit::Record => 1,
            PlaceUnit::Row => 2,
        };
        (&self.path, self.number << 2 | unit)
    }

    /// Restores a position that was [packed](Self::packed).
    pub(crate) fn unpacked(path: Arc<Path>, packed: u64) -> Self {
        let unit = match packed & 3 {
            0 => PlaceUnit::Line,
            1 => PlaceUnit::Record,
            _ => PlaceUnit::Row,
        };
        Self { path, number: packed >> 2, unit }
    }

    /// Returns whether a [packed](Self::packed) position is that of a record in a file, not of a whole file.
    pub(crate) fn is_of_record(packed: u64) -> bool {
        packed >> 2 > 0
    }

    /// Returns whether the document with this key is a file in a folder that was named as an input. In this case, the
    /// key is the end of the path.
    #[must_use]
    pub fn is_below_a_folder(&self, key: &[u8]) -> bool {
        let path = os_bytes(self.path.as_os_str());
        let above = path.strip_suffix(key).and_then(|above| above.last());
        self.number == 0 && above.is_some_and(|&last| std::path::is_separator(last.into()))
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, number) = (self.path.display(), self.number);
        match self.unit {
            _ if number == 0 => write!(f, "{path}"),
            PlaceUnit::Line => write!(f, "{path}:{number}"),
            PlaceUnit::Record => write!(f, "{path}, record {number}"),
            PlaceUnit::Row => write!(f, "{path}, row {number}"),
        }
    }
}

/// Returns the bytes of a path as the system stores them.
#[cfg(unix)]
pub(crate) fn os_bytes(name: &OsStr) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(name).to_vec()
}

/// Returns the bytes of a path in UTF-8. Parts that are not valid Unicode are replaced.
#[cfg(not(unix))]
pub(crate) fn os_bytes(name: &OsStr) -> Vec<u8> {
    name.to_string_lossy().into_owned().into_bytes()
}

/// Maximum length of a key in bytes; it is the limit of the index.
pub(crate) const KEY_BYTES_MAX: usize = 65_535;
/// Maximum number of column names that the message about a missing column lists, and maximum length of each name in
/// characters.
const NAMES_SHOWN: usize = 8;
const NAME_CHARACTERS_SHOWN: usize = 40;
/// Number of bytes at the start and at the end of a reason that a message shows, if the reason is long.
const REASON_BEGINNING: usize = 600;
const REASON_END: usize = 300;

/// The advice in messages about texts with invalid bytes.
pub(crate) const LOSSY_ADVICE: &str = "--encoding LABEL, if it is in another encoding; --invalid-utf8 replace takes it, and compares it by \
                            its bytes alone";

/// Returns the message about records in UTF-16 or UTF-32.
pub(crate) fn not_utf8(encoding: &str) -> String {
    format!("{encoding}, in which records are not read: convert it, as `iconv -f {encoding} -t UTF-8` does")
}

/// An error that concerns a record or a whole input.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    pub(crate) place: Place,
    pub(crate) reason: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // guard: a message names its input
        // without it: return f.write_str(&for_people(&self.reason));
        write!(f, "{}: {}", self.place, for_people(&self.reason))
    }
}

/// Formats a reason, which may quote the input or a parser's message, as a single line without control characters.
/// Shortens a long reason in the middle: its end is kept, because it has the advice to the user.
pub(crate) fn for_people(reason: &str) -> Cow<'_, str> {
    let mut shown = Cow::Borrowed(reason);
    // guard: a message has nothing that a terminal obeys
    if reason.contains(char::is_control) {
        let escaped = |character: char| match character {
            control if control.is_control() => control.escape_default().to_string(),
            other => other.to_string(),
        };
        shown = reason.chars().map(escaped).collect::<String>().into();
    }
    // guard: a message is not as long as its input
    if shown.len() > REASON_BEGINNING + REASON_END {
        let boundary = |at: &usize| shown.is_char_boundary(*at);
        let beginning = (0..=REASON_BEGINNING).rev().find(boundary).unwrap_or(0);
        let end = (shown.len() - REASON_END..shown.len()).find(boundary).unwrap_or(shown.len());
        shown = format!("{} ... {}", &shown[..beginning], &shown[end..]).into();
    }
    shown
}

impl std::error::Error for Problem {}

/// Returns an error that makes the record at this position a bad record.
pub fn bad_at(place: &Place, reason: &impl fmt::Display) -> anyhow::Error {
    Problem { place: place.clone(), reason: reason.to_string() }.into()
}

/// Returns an error if an index does not allow the key.
pub(crate) fn check_key(key: &[u8]) -> Result<(), String> {
    match key.len() {
        // guard: an empty key is refused
        // without it: Err("the key is empty".to_owned()) -> Ok(())
        0 => Err("the key is empty".to_owned()),
        1..=KEY_BYTES_MAX => Ok(()),
        // guard: a key of more than 65,535 bytes is refused
        // without it: _ => Ok(()),
        bytes => Err(format!("the key has {bytes} bytes, {KEY_BYTES_MAX} is the most")),
    }
}

/// Returns a list of the first few `names` for a message.
pub(crate) fn listed<'n>(names: impl ExactSizeIterator<Item = &'n str>) -> String {
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let mut shown: Vec<String> = names
        .take(NAMES_SHOWN)
        .map(|name| {
            let start: String = name.chars().take(NAME_CHARACTERS_SHOWN).collect();
            let dots = if start.len() < name.len() { "..." } else { "" };
            format!("{start:?}{dots}")
        })
        .collect();
    match (shown.len(), more) {
        (0, _) => "none".to_owned(),
        (_, 0) => shown.join(", "),
        _ => {
            shown.push(format!("and {more} more"));
            shown.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_is_displayed_as_path_with_line_or_record_number() {
        let path: Arc<Path> = Arc::from(Path::new("a/b.jsonl"));
        assert_eq!(Place::line(Arc::clone(&path), 17).to_string(), "a/b.jsonl:17");
        assert_eq!(Place::of(Arc::clone(&path), 3, PlaceUnit::Record).to_string(), "a/b.jsonl, record 3");
        assert_eq!(Place::of(Arc::clone(&path), 4, PlaceUnit::Row).to_string(), "a/b.jsonl, row 4");
        assert_eq!(Place::file(path).to_string(), "a/b.jsonl");
    }

    #[test]
    fn file_is_below_a_folder_only_if_its_key_is_the_end_of_its_path() {
        let path: Arc<Path> = Arc::from(Path::new("in/a/b.txt"));
        let place = Place::file(Arc::clone(&path));
        assert!(place.is_below_a_folder(b"b.txt") && place.is_below_a_folder(b"a/b.txt"));
        for key in [&b"in/a/b.txt"[..], b".txt", b"c.txt", b"in/a/b"] {
            assert!(!place.is_below_a_folder(key));
        }
        assert!(!Place::line(path, 3).is_below_a_folder(b"b.txt"));
    }

    #[test]
    fn packed_position_unpacks_to_the_original() {
        let path: Arc<Path> = Arc::from(Path::new("a"));
        let units = [PlaceUnit::Line, PlaceUnit::Record, PlaceUnit::Row];
        let places = units.map(|unit| Place::of(Arc::clone(&path), 1 << 60, unit));
        for place in places.into_iter().chain([Place::file(Arc::clone(&path))]) {
            let (path, packed) = place.packed();
            assert_eq!(Place::unpacked(Arc::clone(path), packed), place);
        }
    }

    #[test]
    fn clones_share_their_path() {
        let place = Place::line(Arc::from(Path::new("corpus.jsonl")), 1);
        let clone = place.clone();
        assert!(Arc::ptr_eq(&place.path, &clone.path));
        assert_eq!(place, clone);
    }
}
