//! Reads sets from a named scratch file, so that another process can add the same sets without computing them again.

use std::io;
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;
use zerocopy::IntoBytes;

use crate::sets::packed::{packed_words, unpack};
use crate::sets::references::{DeltaHeader, NO_REFERENCE};
use twindex::error::{Error, Result};
use twindex::sys::vfs::ReadFile;
use twindex::sys::{RealVfs, Vfs};

/// Describes the last set of a [`ShingleSets`](crate::ShingleSets), so that
/// [`push_encoded`](crate::ShingleSets::push_encoded) or [`push_stored`](crate::ShingleSets::push_stored) can add it to
/// another collection with the same earlier sets.
#[derive(Clone, Copy, Debug)]
pub enum LastSet<'s> {
    /// The set is in memory: its header and its words.
    InMemory(DeltaHeader, &'s [u64]),
    /// The set is in the scratch file.
    InFile(StoredSet),
}

/// A set in a scratch file: its header, its position, and the hash of its words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredSet {
    reference: u32,
    references: u32,
    size: u32,
    /// Number of words in the file.
    words: u32,
    /// Offset of the words in the file, in bytes.
    start: u64,
    hash: u64,
}

impl StoredSet {
    /// Returns the description of a set that has these words at offset `start` of the file; `None` if the set has 2^32
    /// words or more.
    pub(crate) fn new(header: DeltaHeader, start: u64, words: &[u64]) -> Option<Self> {
        let DeltaHeader { reference, size, references } = header;
        let (size, count) = (size.try_into().ok()?, words.len().try_into().ok()?);
        Some(Self { reference, references, size, words: count, start, hash: hash_of(words) })
    }

    /// Returns the description as numbers, from which [`from_numbers`](Self::from_numbers) restores it.
    #[must_use]
    pub fn numbers(self) -> [u64; 4] {
        let both = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
        [both(self.reference, self.references), both(self.size, self.words), self.start, self.hash]
    }

    /// Returns the description for these numbers.
    #[must_use]
    pub fn from_numbers([of_references, sizes, start, hash]: [u64; 4]) -> Self {
        let (low, high) = (|both: u64| both as u32, |both: u64| (both >> 32) as u32);
        Self {
            reference: low(of_references),
            references: high(of_references),
            size: low(sizes),
            words: high(sizes),
            start,
            hash,
        }
    }

    pub(crate) fn header(self) -> DeltaHeader {
        DeltaHeader { reference: self.reference, size: self.size as usize, references: self.references }
    }

    /// Returns the number of bytes of the words in the file.
    #[must_use]
    pub fn bytes(self) -> u64 {
        u64::from(self.words) * size_of::<u64>() as u64
    }
}

fn hash_of(words: &[u64]) -> u64 {
    xxh3_64(words.as_bytes())
}

/// Reads sets from a scratch file that an earlier process wrote. Several threads may read at the same time.
#[derive(Debug)]
pub struct StoredSets {
    path: PathBuf,
    file: Box<dyn ReadFile>,
    bytes: u64,
}

impl StoredSets {
    /// Opens the scratch file at `path`.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be opened.
    pub fn open(path: &Path) -> Result<Self> {
        let opened = || {
            let file = RealVfs.open(path)?;
            Ok((file.len()?, file))
        };
        let (bytes, file) = opened().map_err(|error: io::Error| Error::io("open", path, error))?;
        Ok(Self { path: path.to_owned(), file, bytes })
    }

    /// Appends the words of a set to `words`, in the form that [`push_stored`](crate::ShingleSets::push_stored)
    /// expects. Returns false if the file does not contain this set.
    ///
    /// # Errors
    /// [`Error::Io`] from the file.
    pub fn read(&self, set: StoredSet, words: &mut Vec<u64>) -> Result<bool> {
        let StoredSet { reference, size, words: count, start, hash, .. } = set;
        let (size, count) = (size as usize, count as usize);
        let is_packed = reference == NO_REFERENCE && packed_words(size).is_some();
        let fits = start.checked_add(set.bytes()).is_some_and(|end| end <= self.bytes);
        if !fits || is_packed && packed_words(size) != Some(count) {
            return Ok(false);
        }
        let mut stored = vec![0; count];
        let read = self.file.read_exact_at(stored.as_mut_bytes(), start);
        read.map_err(|error| Error::io("read", &self.path, error))?;
        if hash_of(&stored) != hash {
            return Ok(false);
        }
        if is_packed {
            return Ok(unpack(&stored, size, words));
        }
        words.append(&mut stored);
        Ok(true)
    }
}

#[cfg(test)]
#[allow(clippy::disallowed_methods, reason = "tests change what was written")]
mod tests {
    use super::*;
    use crate::{DeltaScratch, ShingleSets};
    use twindex_kernel::splitmix::SplitMix;

    /// The numbers and words of a set that was added.
    enum Noted {
        Held([u64; 3], Vec<u64>),
        Stored([u64; 4]),
    }

    /// Returns texts of various sizes with their anchors. Some texts are similar.
    fn texts() -> Vec<(Vec<u64>, [u64; 2])> {
        let mut random = SplitMix(7);
        let mut texts: Vec<(Vec<u64>, [u64; 2])> = Vec::new();
        for number in 0..400_u64 {
            let size = [300, 0, 5, 90, 20, 1000, 40][(number % 7) as usize];
            let family = number % 50;
            let like = texts.iter().find(|(text, anchors)| anchors[0] == family && text.len() > 50);
            let mut text = match like {
                Some((text, _)) if number % 3 > 0 => text.clone(),
                _ => std::iter::repeat_with(|| random.next()).take(size).collect(),
            };
            text.truncate(text.len().saturating_sub((number % 5) as usize));
            text.push(random.next());
            texts.push((text, [family, family + 1000]));
        }
        texts
    }

    fn check_same(found: &ShingleSets, expected: &ShingleSets) {
        assert_eq!(found.len(), expected.len());
        for number in 0..expected.len() as u32 {
            let (mut of_found, mut of_expected) = (Vec::new(), Vec::new());
            let expected = expected.set(number, &mut of_expected).unwrap();
            assert_eq!(found.set(number, &mut of_found).unwrap(), expected, "{number}");
        }
    }

    #[test]
    fn sets_added_again_from_the_file_are_equal_and_leave_the_file_unchanged() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sets");
        let texts = texts();
        let mut alone = ShingleSets::new(dir.path(), usize::MAX);
        for (text, anchors) in &texts {
            alone.push_like(text, anchors).unwrap();
        }
        for budget in [0, 60_000, 300_000, usize::MAX] {
            let mut sets = ShingleSets::new(dir.path(), budget).with_file(&path);
            let (mut scratch, mut noted, mut stored) = (DeltaScratch::default(), Vec::new(), 0);
            let references = sets.references();
            // Encodes some sets before earlier sets are added, as several threads do.
            for some in texts.chunks(9) {
                let encoded = some.iter().map(|(text, anchors)| {
                    let mut words = Vec::new();
                    let header = references.encode(text, anchors, &mut scratch, &mut words);
                    (header, words, anchors)
                });
                for (header, words, anchors) in encoded.collect::<Vec<_>>() {
                    sets.push_encoded(header, &words, anchors).unwrap();
                    noted.push(match sets.last().unwrap() {
                        LastSet::InMemory(header, words) => Noted::Held(header.numbers(), words.to_vec()),
                        LastSet::InFile(set) => {
                            stored += 1;
                            assert_eq!(StoredSet::from_numbers(set.numbers()), set);
                            Noted::Stored(set.numbers())
                        }
                    });
                }
            }
            assert!((stored > 100) == (budget < usize::MAX), "{budget}: {stored}");
            sets.flush().unwrap();
            let bytes = std::fs::read(&path).unwrap_or_default();

            // Overwrites everything in the file after the first 300 sets.
            let mut changed = bytes.clone();
            let ends = noted[..300].iter().map(|noted| match noted {
                Noted::Held(..) => 0,
                Noted::Stored(numbers) => {
                    let set = StoredSet::from_numbers(*numbers);
                    set.start + set.bytes()
                }
            });
            let end = ends.max().unwrap() as usize;
            changed[end..].fill(7);
            std::fs::write(&path, changed).unwrap();
            let file = StoredSets::open(&path).unwrap();
            let mut again = ShingleSets::new(dir.path(), budget).with_file(&path);
            for (noted, (text, anchors)) in noted.iter().zip(&texts) {
                let mut words = Vec::new();
                match noted {
                    Noted::Held(numbers, held) => {
                        let header = DeltaHeader::from_numbers(*numbers).unwrap();
                        again.push_encoded(header, held, anchors).unwrap();
                    }
                    Noted::Stored(numbers) if again.len() < 300 => {
                        let set = StoredSet::from_numbers(*numbers);
                        assert!(file.read(set, &mut words).unwrap());
                        again.push_stored(set, &words, anchors).unwrap();
                        assert!(!again.is_appending(), "{budget}");
                    }
                    Noted::Stored(_) => {
                        again.push_like(text, anchors).unwrap();
                        assert!(again.is_appending());
                    }
                }
            }
            check_same(&again, &alone);
            again.flush().unwrap();
            assert!(std::fs::read(&path).unwrap()[..end] == bytes[..end], "{budget}");
            let _ = std::fs::remove_file(&path);
        }
    }

    #[test]
    fn changed_or_missing_words_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sets");
        let mut sets = ShingleSets::new(dir.path(), 0).with_file(&path);
        let mut all = Vec::new();
        for (text, anchors) in texts() {
            sets.push_like(&text, &anchors).unwrap();
            let Some(LastSet::InFile(set)) = sets.last() else { panic!("in memory") };
            all.push(set);
        }
        sets.flush().unwrap();
        let whole = std::fs::read(&path).unwrap();
        let read = |set| StoredSets::open(&path).unwrap().read(set, &mut Vec::new()).unwrap();
        for &set in all.iter().step_by(29) {
            assert!(read(set));
            let mut changed = whole.clone();
            changed[(set.start + set.bytes() / 2) as usize] ^= 4;
            std::fs::write(&path, &changed).unwrap();
            assert!(!read(set), "{set:?}");
            std::fs::write(&path, &whole[..(set.start + set.bytes() - 1) as usize]).unwrap();
            assert!(!read(set), "{set:?}");
            std::fs::write(&path, &whole).unwrap();
            for wrong in [
                StoredSet { words: set.words + 1, ..set },
                StoredSet { size: set.size + 200, ..set },
                StoredSet { start: u64::MAX - 8, ..set },
                StoredSet { hash: set.hash ^ 1, ..set },
            ] {
                assert!(!read(wrong), "{wrong:?}");
            }
        }
    }
}
