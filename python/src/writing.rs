//! The writer of an index, and what it was given.

use std::ffi::CString;
use std::path::Path;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use twindex::params::KeyKind;
use twindex::{Error, Writer};
use twindex_corpus::admitting::{Admission, AdmitOptions, Admitted, Admitter};
use twindex_join::SharedProgress;

use crate::columns::Column;
use crate::error::{Failure, OWN, Result};
use crate::sketch::{CHUNK, sketch_rows};

/// Chunks of texts for each thread that are sketched while those before them go to the writer.
const CHUNKS: usize = 4;
/// Documents of `put_many` in one batch from which on they become a segment with the commit. The log and its table in
/// memory cost as much for each, and the segment that the table becomes comes on top; but segments of smaller batches
/// would have to be merged more often than that costs.
const MANY: usize = 1 << 16;

/// Whether an index is written to.
pub(crate) enum State {
    /// Not yet.
    Idle,
    Writing(Box<PendingWriter>),
    /// Not any more: what is given now would be lost.
    Closed,
}

/// The writer, and what it was given.
pub(crate) struct PendingWriter {
    pub(crate) writer: Writer,
    /// Documents that were put or deleted since the last commit.
    pub(crate) uncommitted: u64,
    /// Documents of `put_many` since the last commit.
    many: usize,
    /// Where containment or a value decides: how documents are compared, and the lists of those that were there. None after
    /// documents were put by other ways, which are not in the lists.
    admitter: Option<(AdmitOptions, Admitter)>,
    /// Working memory, kept from call to call.
    sketches: [Vec<twindex::Sketch>; 2],
}

impl State {
    /// The writer, which is taken when it is first needed.
    pub(crate) fn writing(&mut self, index: &twindex::Index) -> Result<&mut PendingWriter> {
        if matches!(self, Self::Idle) {
            let writer = index.writer().map_err(own_lock)?;
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

/// Says that the holder of a lock is this process, if it is.
pub(crate) fn own_lock(error: Error) -> Error {
    let own = std::process::id();
    match error {
        Error::Locked { path, holder } if holder.contains(&format!("(process {own})")) => {
            Error::Locked { path, holder: format!("{OWN} ({own}), by another Index object") }
        }
        error => error,
    }
}

/// Warns that changes are gone.
pub(crate) fn warn_lost(py: Python<'_>, path: &Path, lost: u64) -> PyResult<()> {
    let why = format!(
        "{}: {lost} documents that were put or deleted were not committed, and are gone; call commit(), or use `with`, which \
         commits at its end; close(discard=True) says that they are not wanted",
        path.display()
    );
    PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(why).unwrap_or_default(), 1)
}

impl PendingWriter {
    /// The writer, for documents that are not in the lists by which containment is found.
    pub(crate) fn plain(&mut self) -> &mut Writer {
        self.admitter = None;
        &mut self.writer
    }

    /// Admits a document that is compared inside a value, or by containment.
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

    /// Sketches texts and puts them, the next ones while those before them are put.
    pub(crate) fn put_all(
        &mut self,
        sketcher: &twindex::Sketcher,
        kind: KeyKind,
        keys: &Column,
        texts: &Column,
        watched: &SharedProgress,
    ) -> Result<()> {
        watched.begin("adding", keys.len() as u64);
        self.admitter = None;
        self.many = self.many.saturating_add(keys.len());
        self.writer.set_logged(self.many < MANY);
        let put = self.put_in_turn(sketcher, kind, (keys, texts), watched);
        // The collected documents become a segment nevertheless, and merges continue as for a live index.
        self.writer.set_logged(true);
        put
    }

    fn put_in_turn(
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
