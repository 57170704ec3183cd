//! The inputs of a run, and their records in order, in batches. Reading does not parse records, so one thread can read
//! a batch while others parse earlier batches.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::input::batch::Batch;
use crate::input::open::folder::{self, ListedFile};
use crate::input::open::kind::Kind;
use crate::input::open::reader::{Origin, Packing};
use crate::input::parser::Parser;
use crate::input::place::Problem;
use crate::input::records::Records;
use crate::input::whole_files::{UnreadFile, read_named};

/// An input that was not yet opened.
pub(crate) enum Source {
    Records(Origin, Kind),
    /// A single document with its key, and the size of its file in bytes.
    Whole(Origin, Vec<u8>, u64),
    /// A folder in which each file is a document.
    Folder {
        root: PathBuf,
        files: std::vec::IntoIter<ListedFile>,
    },
}

impl Source {
    /// Returns whether the input can only be read once.
    pub(crate) fn is_stream(&self) -> bool {
        matches!(self, Self::Records(Origin::Stream { .. }, _) | Self::Whole(Origin::Stream { .. }, ..))
    }

    /// Returns the name of the input for messages.
    pub(crate) fn name(&self) -> Arc<Path> {
        match self {
            Self::Records(origin, _) | Self::Whole(origin, ..) => origin.name(),
            Self::Folder { root, .. } => Arc::from(root.as_path()),
        }
    }
}

/// The inputs with records that were not yet read, in order.
pub(crate) struct Inputs {
    /// The inputs that were not yet opened. The order is reversed, so that the next input is the last element.
    pub(crate) sources: Vec<Source>,
    /// The current input with records. All inputs in `sources` come after it.
    records: Option<Records>,
    /// Whether a batch ends early if reading more records would block on a pipe.
    streaming: bool,
    /// Whether reading has failed. No further records are read then.
    stopped: bool,
    /// A batch that was read ahead; it is the next one.
    pub(crate) ahead: Option<Batch>,
    /// The error of opening the first input; the next batch has it.
    failed: Option<Problem>,
    /// The number of bytes read from all inputs, before decompression.
    consumed: Arc<AtomicU64>,
}

impl Inputs {
    /// Creates an empty list. The bytes that are read are added to `consumed`.
    pub(crate) fn new(streaming: bool, consumed: &Arc<AtomicU64>) -> Self {
        let consumed = Arc::clone(consumed);
        let (ahead, failed) = (None, None);
        Self { sources: Vec::new(), records: None, streaming, stopped: false, ahead, failed, consumed }
    }

    /// Returns whether all inputs were opened or removed.
    pub(crate) fn are_opened(&self) -> bool {
        self.sources.is_empty()
    }

    /// Removes all inputs.
    pub(crate) fn take(&mut self) -> Self {
        let none = Self::new(self.streaming, &self.consumed);
        std::mem::replace(self, none)
    }

    /// Removes the next inputs that can be read beside the others: one with records, which is opened here, so that
    /// headers have the order of the inputs, or consecutive ones that are documents. `None` if no input is left.
    pub(crate) fn next_part(&mut self, parser: &Parser) -> Option<Self> {
        let mut part = Self::new(self.streaming, &self.consumed);
        match self.sources.pop()? {
            Source::Records(origin, kind) => match part.open(origin, kind, parser) {
                Ok(records) => part.records = Some(records),
                Err(problem) => part.failed = Some(problem),
            },
            first => {
                part.sources.push(first);
                let is_document = |source: &mut Source| !matches!(source, Source::Records(..));
                part.sources.extend(std::iter::from_fn(|| self.sources.pop_if(is_document)));
                part.sources.reverse();
            }
        }
        Some(part)
    }

    /// Opens an input with records.
    fn open(&self, origin: Origin, kind: Kind, parser: &Parser) -> Result<Records, Problem> {
        tracing::info!(?kind, "reading {}", origin.name().display());
        Records::open(origin, kind, parser, parser.record_bytes_max, &self.consumed)
    }

    /// Like [`Documents::next_batch`](crate::input::documents::Documents::next_batch), but adds files that are one
    /// document each without reading them. [`Batch::load`] reads these files.
    pub(crate) fn next_batch(&mut self, parser: &Parser, batch: &mut Batch, bytes: usize) {
        if let Some(ahead) = self.ahead.take() {
            *batch = ahead;
            return;
        }
        batch.clear(bytes);
        if let Some(problem) = self.failed.take() {
            self.stopped = true;
            batch.fail(problem.into());
        }
        while !self.stopped && !batch.is_full(bytes) {
            let waits = || self.records.as_ref().is_some_and(Records::would_wait);
            if self.streaming && batch.has_records() && waits() {
                return;
            }
            match self.advance(parser, batch) {
                Ok(true) => {}
                Ok(false) => return,
                Err(failure) => {
                    self.stopped = true;
                    batch.fail(failure);
                }
            }
        }
    }

    /// Reads the next record, or opens or closes an input. Returns false at the end of all inputs.
    fn advance(&mut self, parser: &Parser, batch: &mut Batch) -> anyhow::Result<bool> {
        if let Some(records) = &mut self.records {
            if !records.advance(batch)? {
                if let Some(cut) = records.cut() {
                    batch.push_cut(cut);
                }
                self.records = None;
            }
        } else if let Some(source) = self.sources.pop() {
            self.begin(source, parser, batch)?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// Adds a single document of `source` to the batch, or makes `source` the current input with records.
    fn begin(&mut self, source: Source, parser: &Parser, batch: &mut Batch) -> anyhow::Result<()> {
        let unread = |path, key, is_named, bytes| {
            let consumed = Arc::clone(&self.consumed);
            UnreadFile { path, key, is_named, bytes, consumed }
        };
        match source {
            Source::Records(origin, kind) => self.records = Some(self.open(origin, kind, parser)?),
            // The size of a compressed text is known only after it was read.
            Source::Whole(Origin::File(path), key, bytes) if Packing::promised(&path).is_none() => {
                batch.push_unread(unread(path, key, true, bytes));
            }
            Source::Whole(origin, key, _) => {
                batch.push_file(read_named(origin, key, parser, &self.consumed)?);
            }
            Source::Folder { root, mut files } => {
                let Some(ListedFile { below, bytes }) = files.next() else { return Ok(()) };
                let path = root.join(&below);
                tracing::debug!("reading {}", path.display());
                batch.push_unread(unread(path, folder::key_below(&below), false, bytes));
                self.sources.push(Source::Folder { root, files });
            }
        }
        Ok(())
    }
}
