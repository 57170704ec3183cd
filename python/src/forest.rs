//! Computes spanning forests of pairs of keys. A forest has the same clusters as its pairs.

use std::sync::Mutex;

use arrow_array::{Array, ArrayRef};
use pyo3::prelude::*;
use twindex::Key;
use twindex::params::KeyKind;
use twindex_join::SpanningForest;

use crate::args;
use crate::columns::{Column, Keys, batch};
use crate::error::{Failure, Result};
use crate::stream::{BYTES, Batches, CappedCounts, ROWS};

struct UnfinishedForest {
    forest: SpanningForest,
    /// The folder for scratch files.
    scratch: tempfile::TempDir,
}

/// A spanning forest of pairs of keys. It uses about `memory` bytes of memory, and scratch files for more data.
#[pyclass(frozen, module = "twindex")]
pub(crate) struct Forest {
    kind: KeyKind,
    growing: Mutex<Option<UnfinishedForest>>,
}

fn scratch() -> Result<tempfile::TempDir> {
    tempfile::tempdir()
        .map_err(|error| Failure::io("create a scratch folder in", &std::env::temp_dir(), error))
}

#[pymethods]
impl Forest {
    #[new]
    #[pyo3(signature = (keys="bytes", memory=268_435_456))]
    fn new(keys: &str, #[pyo3(from_py_with = args::memory)] memory: usize) -> Result<Self> {
        let kind = match keys {
            "bytes" => KeyKind::Bytes,
            "u64" => KeyKind::U64,
            other => return Err(Failure::invalid(format!("keys: expected bytes or u64, found {other}"))),
        };
        let scratch = scratch()?;
        let forest = SpanningForest::new(scratch.path(), memory);
        Ok(Self { kind, growing: Mutex::new(Some(UnfinishedForest { forest, scratch })) })
    }

    /// Adds a pair of keys for each row.
    fn add(&self, py: Python<'_>, a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> Result<()> {
        let (a, b) = (Column::of("a", a)?, Column::of("b", b)?);
        a.check_len(&b)?;
        py.detach(|| {
            let mut growing = self.growing.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let Some(growing) = growing.as_mut() else { return Err(ended()) };
            for row in 0..a.len() {
                let (a, b) = (a.key(row, self.kind)?, b.key(row, self.kind)?);
                let joined = match (a, b) {
                    (Key::Bytes(a), Key::Bytes(b)) => growing.forest.join(a, b),
                    // Big-endian bytes sort in the order of the numbers.
                    (Key::U64(a), Key::U64(b)) => growing.forest.join(&a.to_be_bytes(), &b.to_be_bytes()),
                    _ => Ok(()),
                };
                joined?;
            }
            Ok(())
        })
    }

    /// Returns batches with the columns root and key: each component is a star around its smallest key. Only a small
    /// number of batches is in memory at a time.
    fn finish(&self) -> Result<Batches> {
        let taken = self.growing.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        let Some(UnfinishedForest { forest, scratch }) = taken else { return Err(ended()) };
        let kind = self.kind;
        Batches::start(false, move |out| {
            // Keeps the scratch folder as long as its files are read.
            let _scratch = scratch;
            let (mut roots, mut keys) = (Keys::new(kind), Keys::new(kind));
            let mut rows = 0;
            let flush = |roots: ArrayRef, keys: ArrayRef| -> Result<()> {
                if roots.is_empty() {
                    return Ok(());
                }
                out.push(batch(vec![("root", roots), ("key", keys)])?)
            };
            forest.finish()?.for_each(|root, key| -> Result<()> {
                roots.push(typed(kind, root));
                keys.push(typed(kind, key));
                rows += 1;
                if rows == ROWS || roots.bytes().max(keys.bytes()) >= BYTES {
                    rows = 0;
                    flush(roots.finish(), keys.finish())?;
                }
                Ok(())
            })?;
            flush(roots.finish(), keys.finish())?;
            Ok(CappedCounts::default())
        })
    }
}

/// Converts the sortable bytes of a key back to the key.
fn typed(kind: KeyKind, key: &[u8]) -> Key<'_> {
    match (kind, key.first_chunk()) {
        (KeyKind::U64, Some(number)) => Key::U64(u64::from_be_bytes(*number)),
        _ => Key::Bytes(key),
    }
}

fn ended() -> Failure {
    Failure::invalid("the forest was finished; make another")
}
