//! The position of a document: its file, and the line, row or record in the file.

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
    /// A record of a web archive.
    Record,
    /// A row of a Parquet file.
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

    /// Replaces the position. If the path is the same, does not change its reference count, for which threads would
    /// contend.
    pub(super) fn replace(&mut self, path: &Arc<Path>, number: u64, unit: PlaceUnit) {
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

    /// Returns whether the document with this key is in a folder that was named as an input. The key is then a suffix
    /// of the path.
    #[must_use]
    pub fn is_below_a_folder(&self, key: &[u8]) -> bool {
        let path = super::folder::os_bytes(self.path.as_os_str());
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
