//! Reads files of raw 64-bit numbers: fingerprints, and keys of fingerprints.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use byteorder::{ByteOrder, LittleEndian};
use rayon::prelude::*;
use twindex::sys::vfs::ReadFile;

/// Size of a number in bytes.
const NUMBER: u64 = size_of::<u64>() as u64;
/// Number of values that one thread reads at a time.
const PIECE: usize = 1 << 17;

/// A file of little-endian 64-bit numbers.
pub(crate) struct RawColumn {
    pub(crate) path: PathBuf,
    /// Number of values in the file.
    pub(crate) rows: u64,
    /// Number of values that have not been read yet.
    rest: u64,
    file: File,
}

impl RawColumn {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let file = File::open(path).with_context(|| format!("{}: cannot open", path.display()))?;
        let metadata = file.metadata().with_context(|| format!("{}: cannot look at it", path.display()))?;
        ensure!(metadata.is_file(), "{}: not a regular file", path.display());
        let length = metadata.len();
        ensure!(
            length.is_multiple_of(NUMBER),
            "{}: {length} bytes are not a whole number of 64-bit fingerprints; {} bytes too many",
            path.display(),
            length % NUMBER
        );
        let rows = length / NUMBER;
        Ok(Self { path: path.to_owned(), rows, rest: rows, file })
    }

    /// Reads the next `most` values with all threads. Returns fewer values at the end of the file, and none after it.
    pub(crate) fn wave(&mut self, most: usize) -> anyhow::Result<Vec<u64>> {
        let count = self.rest.min(most as u64);
        let start = (self.rows - self.rest) * NUMBER;
        let mut numbers = vec![0; usize::try_from(count)?];
        let file = &self.file;
        let read = |bytes: &mut Vec<u8>, (piece, numbers): (usize, &mut [u64])| {
            bytes.resize(size_of_val(numbers), 0);
            file.read_exact_at(bytes, start + piece as u64 * PIECE as u64 * NUMBER)?;
            LittleEndian::read_u64_into(bytes, numbers);
            Ok(())
        };
        let pieces = numbers.par_chunks_mut(PIECE).enumerate();
        let read: io::Result<()> = pieces.try_for_each_init(Vec::new, read);
        self.rest -= count;
        read.with_context(|| format!("{}: cannot read", self.path.display()))?;
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_order_in_batches_of_any_size() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.u64");
        let all: Vec<u64> =
            (0..3 * PIECE as u64 + 5).map(|number| number.wrapping_mul(0x0123_4567_89AB)).collect();
        let bytes: Vec<u8> = all.iter().flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(&path, &bytes).unwrap();
        let mut column = RawColumn::open(&path).unwrap();
        assert_eq!(column.rows, all.len() as u64);
        let mut found = column.wave(1).unwrap();
        found.extend(column.wave(3).unwrap());
        found.extend(column.wave(2 * PIECE).unwrap());
        found.extend(column.wave(1).unwrap());
        found.extend(column.wave(usize::MAX).unwrap());
        assert!(found == all && column.wave(7).unwrap().is_empty());
        // Reading fails if the file is truncated in the meantime.
        let mut column = RawColumn::open(&path).unwrap();
        std::fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
        let error = format!("{:#}", column.wave(usize::MAX).unwrap_err());
        assert!(error.contains("numbers.u64: cannot read"), "{error}");
    }
}
