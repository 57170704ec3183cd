//! Records which input files are finished, so that the run after a killed one need not start again from the first file.
//!
//! `build --resume` stores the record in the index, as the payload of the commit that adds the documents, so both are
//! committed or neither is. `build --as folder` stores it next to the files of sketches: for each input, a small file that
//! is written after the result and contains the result's name.
//!
//! A file of sketches is identified by the digest at its end. Any other file is identified by its name as given, its
//! length and its modification time. In both cases, the options for reading the file are part of the identity. A changed
//! file is read again, and its documents replace those with the same keys.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::{Context, bail, ensure};
use twindex::format::sketches::END_BYTES;
use xxhash_rust::xxh3::xxh3_128;

use crate::options::Usage;

/// The first bytes of the record in an index.
const MAGIC: &[u8; 16] = b"twindex inputs 1";
/// Number of bytes of an input's entry in the record.
const ENTRY: usize = size_of::<u128>();
/// Maximum number of inputs in the record of an index, limited by the maximum payload of a commit.
const FILES_MAX: usize = (65_536 - MAGIC.len()) / ENTRY;

/// Identifies an input by a hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InputId(pub(crate) u128);

impl InputId {
    /// Returns the identity of a file of sketches, from the digest at its end and `options`.
    ///
    /// # Errors
    ///
    /// The file cannot be read.
    pub(crate) fn of_sketches(path: &Path, options: &str) -> anyhow::Result<Self> {
        let mut about = Vec::new();
        let mut read = || -> io::Result<()> {
            let mut file = File::open(path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(END_BYTES as u64)))?;
            file.read_to_end(&mut about).map(drop)
        };
        read().with_context(|| format!("{}: cannot read its end", path.display()))?;
        about.extend(options.as_bytes());
        Ok(Self(xxh3_128(&about)))
    }

    /// Returns the identity of a file in its current state. `options` are the options for reading it.
    ///
    /// # Errors
    ///
    /// The input is not a regular file and so cannot be identified, or its metadata cannot be read.
    pub(crate) fn of(path: &Path, options: &str) -> anyhow::Result<Self> {
        let shown = path.display();
        if path.as_os_str() == "-" {
            return Err(Usage::new("standard input cannot be known again; name a file").into());
        }
        let metadata = path.metadata().with_context(|| format!("{shown}: cannot open"))?;
        if !metadata.is_file() {
            let why =
                format!("{shown}: expected a regular file, found none; of a folder, name the files in it");
            return Err(Usage::new(why).into());
        }
        let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let nanos = changed.map_or(0, |time| time.as_nanos());
        // Each part has a fixed length or ends with a byte that the part cannot contain, so different inputs are
        // encoded differently.
        let mut about = path.as_os_str().as_encoded_bytes().to_vec();
        about.push(0);
        about.extend(metadata.len().to_le_bytes());
        about.extend(nanos.to_le_bytes());
        about.extend(options.as_bytes());
        Ok(Self(xxh3_128(&about)))
    }
}

/// The record of finished inputs in an index.
#[derive(Debug, Default)]
pub(crate) struct CommittedInputs(Vec<u128>);

impl CommittedInputs {
    /// Parses the record in the payload of the last commit. `path` is the index, for messages.
    pub(crate) fn of_payload(path: &Path, payload: Option<&[u8]>) -> anyhow::Result<Self> {
        let Some(payload) = payload else { return Ok(Self::default()) };
        let entries = payload.strip_prefix(MAGIC.as_slice()).filter(|rest| rest.len().is_multiple_of(ENTRY));
        let Some(entries) = entries else {
            bail!(
                "{}: expected commits with the record of --resume or without a payload, found one of another \
                 program; leave --resume out",
                path.display()
            );
        };
        let number = |bytes: &[u8]| {
            let mut number = [0; ENTRY];
            number.copy_from_slice(bytes);
            u128::from_le_bytes(number)
        };
        Ok(Self(entries.chunks_exact(ENTRY).map(number).collect()))
    }

    pub(crate) fn has(&self, input: InputId) -> bool {
        self.0.contains(&input.0)
    }

    /// Adds an input whose documents will be in the next commit.
    pub(crate) fn add(&mut self, input: InputId) -> anyhow::Result<()> {
        if !self.has(input) {
            ensure!(
                self.0.len() < FILES_MAX,
                "--resume keeps a record of {FILES_MAX} files at most; join small files, or leave it out"
            );
            self.0.push(input.0);
        }
        Ok(())
    }

    /// Returns the payload for the next commit.
    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut payload = MAGIC.to_vec();
        payload.extend(self.0.iter().flat_map(|entry| entry.to_le_bytes()));
        payload
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn record_round_trips_and_a_foreign_payload_is_refused() {
        let mut done = CommittedInputs::default();
        for number in 0..FILES_MAX as u128 {
            done.add(InputId((number << 100) + number)).unwrap();
        }
        let payload = done.payload();
        assert!(payload.len() <= 65_536);
        let read = CommittedInputs::of_payload(Path::new("x"), Some(&payload)).unwrap();
        assert!(read.has(InputId((77 << 100) + 77)) && !read.has(InputId(78)));
        assert_eq!(read.payload(), payload);
        assert!(done.add(InputId((1 << 100) + 1)).is_ok(), "a repeated input takes no memory");
        assert!(done.add(InputId(u128::MAX)).is_err());
        for other in [&b"theirs"[..], &payload[..100], b""] {
            let message = CommittedInputs::of_payload(Path::new("x"), Some(other)).unwrap_err().to_string();
            assert!(message.contains("another program"), "{message}");
        }
        assert!(CommittedInputs::of_payload(Path::new("x"), None).unwrap().0.is_empty());
    }

    #[test]
    fn input_id_changes_with_the_file_or_its_options() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let id = |options| InputId::of(&path, options).unwrap();
        let first = id("");
        assert_eq!(first, id(""));
        assert_ne!(first, id("id-field"));
        let file = std::fs::File::options().append(true).open(&path).unwrap();
        file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(5)).unwrap();
        assert_ne!(first, id(""));
        assert!(InputId::of(folder.path(), "").is_err() && InputId::of(Path::new("-"), "").is_err());
    }
}
