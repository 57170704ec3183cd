//! The writer of an index and its uncommitted documents.

use std::ffi::CString;
use std::path::Path;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use twindex::params::KeyKind;
use twindex::{Error, Writer};
use twindex_corpus::stream::{Admission, AdmitOptions, Admitted, Admitter};
use twindex_join::SharedProgress;

use crate::columns::Column;
use crate::error::{Failure, OWN, Result};
use crate::process::writer_options;
use crate::sketch::{CHUNK, sketch_rows};

/// Number of chunks of texts per thread that are sketched while the writer takes earlier chunks.
const CHUNKS: usize = 4;
/// If `put_many` was given at least this number of documents, the commit writes them as a segment. Logging them first
/// would cost as much again as the later segment. Segments of smaller batches would have to be merged more often, which
/// costs more.
const MANY: usize = 1 << 16;

/// The state of the writer of an index.
pub(crate) enum State {
    /// No writer has been opened.
    Idle,
    Writing(Box<PendingWriter>),
    /// The index was closed. Further changes would be lost, so they are refused.
    Closed,
}

/// The writer and its uncommitted changes.
pub(crate) struct PendingWriter {
    pub(crate) writer: Writer,
    /// Number of documents that were put or deleted since the last commit.
    pub(crate) uncommitted: u64,
    /// Number of documents put by `put_many` since the last commit.
    many: usize,
    /// Compares documents by containment or within values, with data of all indexed documents. `None` after documents
    /// were put in other ways, because the data then lacks them.
    admitter: Option<(AdmitOptions, Admitter)>,
    /// Buffers that are reused by later calls.
    sketches: [Vec<twindex::Sketch>; 2],
}

impl State {
    /// Returns the writer, which is opened on first use.
    pub(crate) fn writing(&mut self, index: &twindex::Index) -> Result<&mut PendingWriter> {
        if matches!(self, Self::Idle) {
            let writer = index.writer_with(writer_options()).map_err(own_lock)?;
            let writing = PendingWriter {
                writer,
                uncommitted: 0,
                many: 0,
                admitter: None,
                sketches: Default::default(),
            };
            *self = Self::Writing(Box::new(writing));
        }
        match self {
            Self::Writing(writing) => Ok(writing),
            Self::Idle | Self::Closed => Err(Failure::invalid(format!(
                "{}: this index was closed, and takes no documents any more; open it again: Index.open(path)",
                index.path().display()
            ))),
        }
    }
}

/// Adds a note to an error about a lock that this process itself holds.
pub(crate) fn own_lock(error: Error) -> Error {
    let own = std::process::id();
    match error {
        Error::Locked { path, holder } if holder.contains(&format!("(process {own})")) => {
            Error::Locked { path, holder: format!("{OWN} ({own}), by another Index object") }
        }
        error => error,
    }
}

/// Warns that uncommitted changes were lost.
pub(crate) fn warn_lost(py: Python<'_>, path: &Path, lost: u64) -> PyResult<()> {
    let why = format!(
        "{}: {lost} documents that were put or deleted were not committed, and are gone; call commit(), or use `with`, which \
         commits at its end; close(discard=True) says that they are not wanted",
        path.display()
    );
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(why).unwrap_or_default(), 1)
}

impl PendingWriter {
    /// Returns the writer for documents that are put without comparison. Discards `admitter`, whose data will lack
    /// them.
    pub(crate) fn plain(&mut self) -> &mut Writer {
        self.admitter = None;
        &mut self.writer
    }

    /// Adds a document after comparing it by containment, or only with documents of the same value.
    pub(crate) fn admit(
        &mut self,
        index: &twindex::Index,
        options: AdmitOptions,
        one: Admitted<'_>,
    ) -> Result<Admission> {
        let admitter = match self.admitter.take() {
            Some((before, admitter)) if before == options => admitter,
            _ if options.containment.is_some() && self.uncommitted > 0 => {
                return Err(Failure::invalid(
                    "containment: its lists are made of what is committed, and documents were put or deleted since; commit them \
                     first, and admit all that follows by containment",
                ));
            }
            _ => Admitter::new(index, options)?,
        };
        let (_, admitter) = self.admitter.insert((options, admitter));
        let admission = admitter.admit(&mut self.writer, one)?;
        self.uncommitted += 1;
        Ok(admission)
    }

    pub(crate) fn commit(&mut self, payload: Option<&[u8]>) -> Result<u64> {
        self.many = 0;
        let number = match payload {
            None => self.writer.commit()?,
            Some(payload) => self.writer.commit_with(payload)?,
        };
        self.uncommitted = 0;
        Ok(number)
    }

    /// Puts `count` documents with `put`, as one of [`put_in_turn`](Self::put_in_turn) and
    /// [`put_codes`](Self::put_codes).
    pub(crate) fn put_all(
        &mut self,
        count: usize,
        watched: &SharedProgress,
        put: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        watched.begin("adding", count as u64);
        self.admitter = None;
        self.many = self.many.saturating_add(count);
        self.writer.set_options(self.writer.options().logged(self.many < MANY))?;
        let put = put(self);
        // Collected documents still become a segment. With the log enabled, the commit also runs merges.
        self.writer.set_options(self.writer.options().logged(true))?;
        put
    }

    /// Puts fingerprints of this number of bits.
    pub(crate) fn put_codes(
        &mut self,
        bits: u16,
        kind: KeyKind,
        (keys, codes): (&Column, &Column),
        watched: &SharedProgress,
    ) -> Result<()> {
        for row in 0..keys.len() {
            let (key, code) = (keys.key(row, kind)?, codes.code(row, bits)?);
            self.writer.put(key, code).map_err(|error| Failure::Record(row, error))?;
            self.uncommitted += 1;
            if row.is_multiple_of(CHUNK) {
                watched.reach(row as u64)?;
            }
        }
        watched.reach(keys.len() as u64)?;
        Ok(())
    }

    /// Sketches and puts texts. Later texts are sketched while earlier ones are put.
    pub(crate) fn put_in_turn(
        &mut self,
        sketcher: &twindex::Sketcher,
        kind: KeyKind,
        (keys, texts): (&Column, &Column),
        watched: &SharedProgress,
    ) -> Result<()> {
        let Self { writer, uncommitted, sketches: [sketches, next], .. } = self;
        let together = CHUNKS * CHUNK * rayon::current_num_threads();
        let sketch = |start: usize, into: &mut Vec<twindex::Sketch>| -> Result<usize> {
            let count = together.min(keys.len().saturating_sub(start));
            if into.len() < count {
                into.resize_with(count, twindex::Sketch::default);
            }
            sketch_rows(sketcher, texts, start, &mut into[..count], watched)?;
            Ok(count)
        };
        let mut start = 0;
        let mut count = sketch(start, sketches)?;
        while count > 0 {
            let (put, sketched) = rayon::join(
                || {
                    (start..).zip(&sketches[..count]).try_for_each(|(row, sketch)| {
                        writer
                            .put(keys.key(row, kind)?, sketch)
                            .map_err(|error| Failure::Record(row, error))?;
                        *uncommitted += 1;
                        Ok::<_, Failure>(())
                    })
                },
                || sketch(start + count, next),
            );
            put?;
            start += count;
            watched.reach(start as u64)?;
            count = sketched?;
            std::mem::swap(sketches, next);
        }
        Ok(())
    }
}
