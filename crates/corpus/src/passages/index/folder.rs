//! Opens the folder of a passage index, and reads its list of parts.

use std::path::{Path, PathBuf};

use twindex::sys::{RealVfs, Vfs};
use twindex::{Error, Result};

use crate::passages::find::finder::Shape;
use crate::passages::index::deletions::DeletedDocuments;
use crate::passages::index::format::{LIST_BYTES_MAX, LIST_HEAD_BYTES, PartEntry, list_from_bytes};
use crate::passages::index::part::Part;

/// File name of the list of parts.
pub const LIST: &str = "PASSAGES";
/// File name of the writer's lock.
pub(crate) const LOCK: &str = "LOCK";

pub(crate) fn part_name(number: u64) -> String {
    format!("passages-{number:06}.part")
}

/// Returns the file name of a list of deleted documents.
pub(crate) fn deletions_name(number: u64) -> String {
    format!("passages-{number:06}.gone")
}

/// Returns whether an index may contain a file with this name.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let number = name
        .strip_prefix("passages-")
        .and_then(|rest| rest.strip_suffix(".part").or_else(|| rest.strip_suffix(".gone")));
    [LIST, LOCK].contains(&name) || number.is_some_and(|number| number.parse::<u64>().is_ok())
}

/// An open index: a snapshot that does not show later changes.
#[derive(Debug)]
pub struct PassageIndex {
    pub(crate) parts: Vec<Part>,
    /// For each part, the number of its first document in the index.
    pub(crate) starts: Vec<u32>,
    pub(crate) shape: Shape,
    seed: u64,
}

impl PassageIndex {
    /// Opens an index.
    ///
    /// # Errors
    ///
    /// [`Error::NotAnIndex`] if the folder has no index; [`Error::Corrupt`] if the list or a header is damaged, or if parts
    /// do not belong together; [`Error::Io`].
    pub fn open(folder: &Path) -> Result<Self> {
        let mut before = None;
        loop {
            let Some(entries) = read_list(folder)? else {
                let why = format!("there is no file {LIST} in it; `twindex passages --index` makes an index");
                return Err(Error::NotAnIndex { path: folder.to_owned(), why });
            };
            match Self::of_list(folder, &entries) {
                // A writer may have replaced the list and removed files of the old list: retry with the new list.
                Err(Error::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::NotFound && before.as_ref() != Some(&entries) =>
                {
                    before = Some(entries);
                }
                opened => return opened,
            }
        }
    }

    /// Opens the parts of a list.
    fn of_list(folder: &Path, entries: &[PartEntry]) -> Result<Self> {
        let list = folder.join(LIST);
        let corrupt = |number: usize, expected: String, found: String| Error::Corrupt {
            path: list.clone(),
            section: "entries",
            offset: (LIST_HEAD_BYTES + number * PartEntry::bytes_of(entries)) as u64,
            expected,
            found,
        };
        let (mut parts, mut starts, mut documents) = (Vec::new(), Vec::new(), 0_u64);
        for (number, entry) in entries.iter().enumerate() {
            let mut part = Part::open(&folder.join(part_name(entry.number)))?;
            if part.identity() != (entry.bytes, entry.documents, entry.header) {
                let found = format!("{:?}", part.identity());
                return Err(corrupt(number, format!("part {} as it is", entry.number), found));
            }
            if entry.deletions > 0 {
                part.deletions = read_deletions(folder, entry)?;
            }
            if u64::from(part.deletions.count()) != entry.deleted {
                let found = format!("{} of them", part.deletions.count());
                return Err(corrupt(number, format!("{} deleted documents", entry.deleted), found));
            }
            starts.push(documents as u32);
            documents += entry.documents;
            if documents > u64::from(u32::MAX) {
                return Err(Error::Limit {
                    what: "documents of an index",
                    limit: u32::MAX.into(),
                    found: documents,
                });
            }
            parts.push(part);
        }
        let Some(first) = parts.first() else {
            return Err(corrupt(0, "one part or more".into(), "none".into()));
        };
        let (t, k) = first.header.widths;
        let (shape, seed) = (Shape::words_by(t as usize, k as usize), first.header.seed);
        for (number, part) in parts.iter().enumerate() {
            let (own, others) = ((part.header.widths, part.header.seed), (first.header.widths, seed));
            if own != others || part.settings()? != first.settings()? {
                return Err(corrupt(number, "parts made with the same options".into(), format!("{own:?}")));
            }
        }
        Ok(Self { parts, starts, shape, seed })
    }

    /// Opens the index in a folder, or returns `None` if the folder has no index.
    ///
    /// # Errors
    ///
    /// Same as [`open`](Self::open), if the folder has an index.
    pub fn open_if_there(folder: &Path) -> Result<Option<Self>> {
        if read_list(folder)?.is_some() { Self::open(folder).map(Some) } else { Ok(None) }
    }

    /// Checks that the index was created with the given options.
    ///
    /// # Errors
    ///
    /// [`Error::ParamsMismatch`] with the first option that differs.
    pub fn check(&self, shape: Shape, seed: u64, settings: &str) -> Result<()> {
        let differs = |field: &str, index: String, given: String| {
            Err(Error::ParamsMismatch { field: field.to_owned(), index, given })
        };
        if self.shape != shape {
            let words = |shape: Shape| format!("{} by {}", shape.width(), shape.fingerprint_width());
            return differs("min-words", words(self.shape), words(shape));
        }
        if self.seed != seed {
            return differs("seed", self.seed.to_string(), seed.to_string());
        }
        if self.settings()? != settings {
            let line = |text: &str| text.trim().replace('\n', "; ");
            return differs("text options", line(self.settings()?), line(settings));
        }
        Ok(())
    }

    /// Returns the text options, which determine how texts are split into units.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`].
    pub fn settings(&self) -> Result<&str> {
        self.parts.first().map_or(Ok(""), Part::settings)
    }

    /// Returns the shape: the number of units in runs and in fingerprints.
    #[must_use]
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Returns the seed of the hashes.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns the number of documents, including deleted documents that a merge has not removed yet.
    #[must_use]
    pub fn documents(&self) -> u32 {
        let last = self.starts.last().copied().unwrap_or(0);
        last + self.parts.last().map_or(0, Part::documents)
    }

    /// Returns the number of deleted documents that a merge has not removed yet.
    #[must_use]
    pub fn deleted(&self) -> u32 {
        self.parts.iter().map(|part| part.deletions.count()).sum()
    }

    /// Returns the number of parts.
    #[must_use]
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// Returns the total size of all parts in bytes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.parts.iter().map(|part| part.identity().0).sum()
    }

    /// Returns the part that contains a document, and the document's number within the part.
    pub(super) fn part_of(&self, document: u32) -> Result<(&Part, u32)> {
        let number = self.starts.partition_point(|&start| start <= document).checked_sub(1);
        let found = number.map(|number| (&self.parts[number], document - self.starts[number]));
        found
            .filter(|(part, own)| *own < part.documents())
            .ok_or_else(|| Error::Invalid(format!("there is no document {document} in the index")))
    }

    /// Returns the key of a document.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`], or [`Error::Invalid`] if the document does not exist.
    pub fn key(&self, document: u32) -> Result<&[u8]> {
        let (part, own) = self.part_of(document)?;
        part.key(own)
    }

    /// Returns the byte range of each unit of a document in its text. Takes time linear in the length of the document.
    ///
    /// # Errors
    ///
    /// Same as [`key`](Self::key).
    pub fn places(&self, document: u32) -> Result<Vec<(u32, u32)>> {
        let (part, own) = self.part_of(document)?;
        part.places(own)
    }

    /// Verifies all bytes: the checksum of each block, and the consistency of the sections.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] for the first damage found.
    pub fn verify(&self) -> Result<()> {
        self.parts.iter().try_for_each(Part::verify)
    }
}

/// Reads the file of deleted documents of the part that `entry` describes.
fn read_deletions(folder: &Path, entry: &PartEntry) -> Result<DeletedDocuments> {
    let path = folder.join(deletions_name(entry.deletions));
    let bytes = read_small(&path, 4 * entry.documents + 64)?;
    // The cast loses no bits: the part has `entry.documents` documents, and the header limits them to 32 bits.
    DeletedDocuments::from_bytes(&bytes, entry.number, entry.documents as u32).map_err(
        |(offset, expected, found)| Error::Corrupt {
            path,
            section: "deleted documents",
            offset,
            expected,
            found,
        },
    )
}

/// Reads a whole file into memory; fails if it is longer than `max` bytes.
fn read_small(path: &Path, max: u64) -> Result<Vec<u8>> {
    let file = RealVfs.open(path).map_err(|error| Error::io("open", path, error))?;
    let length = file.len().map_err(|error| Error::io("read the length of", path, error))?;
    let Some(length) = usize::try_from(length).ok().filter(|&length| length as u64 <= max) else {
        return Err(Error::Corrupt {
            path: path.to_owned(),
            section: "list",
            offset: 0,
            expected: format!("up to {max} bytes"),
            found: length.to_string(),
        });
    };
    let mut bytes = vec![0; length];
    file.read_exact_at(&mut bytes, 0).map_err(|error| Error::io("read", path, error))?;
    Ok(bytes)
}

/// Returns the entries of the list of parts, or `None` if there is no list.
pub(crate) fn read_list(folder: &Path) -> Result<Option<Vec<PartEntry>>> {
    let path: PathBuf = folder.join(LIST);
    if !RealVfs.exists(&path).map_err(|error| Error::io("look for", &path, error))? {
        return Ok(None);
    }
    let bytes = read_small(&path, LIST_BYTES_MAX)?;
    let corrupt = |(offset, expected, found)| {
        Err(Error::Corrupt { path: path.clone(), section: "list", offset, expected, found })
    };
    list_from_bytes(&bytes).map(Some).or_else(corrupt)
}
