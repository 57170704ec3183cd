//! Builds a segment from other segments or from a frozen memtable while commits continue. Then replaces these sources
//! with the new segment.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use roaring::RoaringBitmap;

use super::memtable::Memtable;
use super::metrics::Counter;
use super::names;
use super::state::{LiveView, open_segment};
use crate::cancel::Cancel;
use crate::error::{Error, Result};
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::key::KeyBuf;
use crate::segment::merge::{self, MergeInput};
use crate::segment::spilled::SpillBudget;
use crate::segment::{BuiltSegment, Segment, build};
use crate::sync;
use crate::sys::paced::Paced;
use crate::sys::{Access, Vfs};
use crate::trace::span;

/// Documents deleted during a merge must also be deleted from its output. A commit deletes at most this number; a
/// thread deletes more.
const LATE: u64 = 1 << 10;

/// The source of a new segment's documents.
#[derive(Clone, Debug)]
pub(super) enum DocumentSource {
    /// The segment with this number.
    Segment(u64, Arc<Segment>),
    /// The frozen memtable. The ordinals of its documents are row numbers.
    Frozen(Arc<Memtable>),
}

impl DocumentSource {
    fn key(&self, ordinal: u32) -> Result<KeyBuf> {
        match self {
            Self::Segment(_, segment) => {
                let key = segment.key(ordinal)?;
                segment.check_map()?;
                Ok(key)
            }
            Self::Frozen(table) => Ok(table.read().records().key(ordinal as usize).to_buf()),
        }
    }

    /// Returns the deleted documents of this source in the view; `None` if the source is no longer part of the view.
    fn deleted<'a>(&self, next: &Manifest, view: &'a LiveView) -> Option<&'a Arc<RoaringBitmap>> {
        match self {
            Self::Segment(number, _) => {
                let place = next.segments.iter().position(|entry| entry.number == *number)?;
                view.deleted.get(place)
            }
            Self::Frozen(table) => {
                let frozen = view.frozen.as_ref().filter(|frozen| Arc::ptr_eq(&frozen.table, table));
                frozen.map(|frozen| &frozen.deleted)
            }
        }
    }
}

/// A task that builds a segment. It reads its sources in the state in which they were when the task was created.
#[derive(Debug)]
pub(super) struct MergeWork {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    pub(super) access: Access,
    /// A manifest with the parameters that all segments share.
    pub(super) manifest: Manifest,
    /// The number of the output segment.
    pub(super) number: u64,
    /// The memory budget in bytes.
    pub(super) memory: usize,
    pub(super) threads: usize,
    /// Ends the merge early. Nothing is published then.
    pub(super) cancel: Cancel,
    /// The sources (segments, or one frozen memtable), each with the documents that were not live at the start.
    pub(super) inputs: Vec<(DocumentSource, Arc<RoaringBitmap>)>,
}

/// A finished segment that can replace its sources.
#[derive(Debug)]
pub(super) struct FinishedMerge {
    /// The sources, each with those of its deleted documents that are left out of the output or contained in `deleted`.
    inputs: Vec<(DocumentSource, Arc<RoaringBitmap>)>,
    /// The output; `None` if no document was live.
    output: Option<(SegmentEntry, Arc<Segment>)>,
    /// The documents of the output that are no longer live.
    deleted: RoaringBitmap,
    took: Duration,
}

impl MergeWork {
    fn segments(&self) -> impl Iterator<Item = (&Arc<Segment>, &Arc<RoaringBitmap>)> {
        self.inputs.iter().filter_map(|(source, deleted)| match source {
            DocumentSource::Segment(_, segment) => Some((segment, deleted)),
            DocumentSource::Frozen(_) => None,
        })
    }

    /// Returns an error if the disk does not have enough space for the output.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::Io`].
    pub(super) fn check_space(&self) -> Result<()> {
        // The output is at most as large as the inputs, which stay on disk during the merge. If the inputs exceed the
        // memory budget, scratch files can need the same space again.
        let inputs: u64 = self.segments().map(|(segment, _)| segment.length()).sum();
        let needed = if inputs > self.memory as u64 { 2 * inputs } else { inputs };
        let free =
            self.vfs.free_space(&self.dir).map_err(|e| Error::io("ask for the space of", &self.dir, e))?;
        // guard: a merge asks for the space first
        // without it: free < needed -> false
        match free.filter(|&free| free < needed) {
            Some(free) => Err(Error::NoSpace { path: self.dir.clone(), needed, free }),
            None => Ok(()),
        }
    }

    /// Builds the segment, renames it to its final name, and verifies all its pages, so that no damaged segment is
    /// published. No manifest names the segment yet.
    ///
    /// # Errors
    /// Same as [`merge::merge`], [`build::build`] and [`open_segment`]; [`Error::Cancelled`]. After an error no file is left.
    pub(super) fn run(self) -> Result<FinishedMerge> {
        span!("make_segment", segment = self.number, inputs = self.inputs.len());
        let start = Instant::now();
        let mut output = None;
        if let Some(built) = self.build()? {
            let entry = SegmentEntry {
                number: self.number,
                length: built.length,
                digest: built.digest,
                salt: built.salt,
                documents: built.documents,
                deleted: RoaringBitmap::new(),
            };
            built.publish(&names::segment(&self.dir, self.number))?;
            let segment = open_segment(&*self.vfs, &self.dir, self.access, &self.manifest, &entry);
            let sound = segment.and_then(|segment| segment.check_pages().map(|()| segment));
            match sound {
                Ok(segment) => output = Some((entry, segment)),
                Err(error) => {
                    // If this fails, the next `generation::sweep` removes the file, because no manifest names it.
                    let _ = self.vfs.unlink(&names::segment(&self.dir, self.number));
                    return Err(error);
                }
            }
        }
        Ok(FinishedMerge {
            inputs: self.inputs,
            output,
            deleted: RoaringBitmap::new(),
            took: start.elapsed(),
        })
    }

    fn build(&self) -> Result<Option<BuiltSegment>> {
        if let [(DocumentSource::Frozen(table), _)] = &self.inputs[..] {
            let first = {
                let rows = table.read();
                rows.first(rows.len())
            };
            let built = build::build(&first.into_records(), &*self.vfs, &self.dir)?;
            return Ok(Some(built).filter(|built| built.documents > 0));
        }
        let inputs: Vec<MergeInput<'_>> = self
            .segments()
            .filter(|(segment, deleted)| deleted.len() < segment.documents())
            .map(|(segment, deleted)| MergeInput { segment, deleted })
            .collect();
        if inputs.is_empty() {
            return Ok(None);
        }
        let scratch = self.vfs.scratch(&self.dir);
        let budget = SpillBudget::new(self.memory, &scratch).on_threads(self.threads).until(&self.cancel);
        let built = merge::merge(&inputs, &*self.vfs, &self.dir, budget)?;
        inputs.iter().try_for_each(|input| input.segment.check_map())?;
        Ok(Some(built))
    }

    /// Starts a thread that calls [`run`](Self::run) and writes at most `rate` bytes per second; `None` means no limit.
    ///
    /// # Errors
    /// [`Error::Io`] if no thread can be started.
    pub(super) fn spawn(mut self, rate: Option<u64>) -> Result<Merging> {
        let (dir, number, stop) = (self.dir.clone(), self.number, self.cancel.clone());
        let inputs = self.inputs.iter().map(|(source, _)| source.clone()).collect();
        self.vfs = Arc::new(Paced::new(self.vfs, stop.clone(), rate));
        self.threads = 1; // the other cores are for commits and queries
        Merging::start(dir, stop, number, inputs, move || self.run())
    }
}

/// A segment that a thread is building. Dropping this value stops the thread and waits until it has ended.
#[derive(Debug)]
pub(super) struct Merging {
    thread: Option<sync::JoinHandle<Result<FinishedMerge>>>,
    done: Arc<sync::AtomicBool>,
    stop: Cancel,
    dir: PathBuf,
    /// The number of the output segment.
    pub(super) number: u64,
    /// The sources. While the merge runs, new generations keep these segments, even without live documents: a document
    /// deleted from a source must also be deleted from the output.
    inputs: Vec<DocumentSource>,
}

impl Merging {
    fn start(
        dir: PathBuf,
        stop: Cancel,
        number: u64,
        inputs: Vec<DocumentSource>,
        work: impl FnOnce() -> Result<FinishedMerge> + Send + 'static,
    ) -> Result<Self> {
        let done = Arc::new(sync::AtomicBool::new(false));
        let thread = {
            let done = Arc::clone(&done);
            sync::spawn("twindex-merge", move || {
                let result = work();
                done.store(true, Ordering::Release);
                result
            })
        };
        let thread = thread.map_err(|e| Error::io("start a thread for", &dir, e))?;
        Ok(Self { thread: Some(thread), done, stop, dir, number, inputs })
    }

    /// Returns whether the segment with this number is a source.
    pub(super) fn takes(&self, number: u64) -> bool {
        self.inputs.iter().any(|source| matches!(source, DocumentSource::Segment(of, _) if *of == number))
    }

    pub(super) fn is_done(&self) -> bool {
        self.done.load(Ordering::Acquire)
    }

    /// Waits until the thread has ended, and returns its result.
    ///
    /// # Errors
    /// The error that [`MergeWork::run`] returned.
    pub(super) fn join(&mut self) -> Result<FinishedMerge> {
        match self.thread.take().map(sync::JoinHandle::join) {
            Some(Ok(merged)) => merged,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("the thread is taken here, and where it is dropped"),
        }
    }

    /// Returns the finished merge; `None` if it is still running. If more than [`LATE`] later deletes must be applied
    /// to the output, also returns `None`, and starts a thread that applies them.
    ///
    /// # Errors
    /// The error that [`MergeWork::run`] returned. After an error or an output, no thread is running.
    pub(super) fn poll(&mut self, next: &Manifest, view: &LiveView) -> Result<Option<FinishedMerge>> {
        if !self.is_done() {
            return Ok(None);
        }
        let merged = self.join()?;
        if !merged.fits(next, view) || merged.late(next, view) <= LATE {
            return Ok(Some(merged));
        }
        let now: Vec<Arc<RoaringBitmap>> = merged
            .inputs
            .iter()
            .map(|(source, before)| Arc::clone(source.deleted(next, view).unwrap_or(before)))
            .collect();
        let (stop, inputs) = (self.stop.clone(), std::mem::take(&mut self.inputs));
        let work = move || {
            let mut merged = merged;
            merged.catch_up(&now)?;
            Ok(merged)
        };
        *self = Self::start(self.dir.clone(), stop, self.number, inputs, work)?;
        Ok(None)
    }
}

impl Drop for Merging {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stop.cancel();
            let _ = thread.join();
        }
    }
}

impl FinishedMerge {
    pub(super) fn number(&self) -> Option<u64> {
        self.output.as_ref().map(|(entry, _)| entry.number)
    }

    pub(super) fn count(&self, counter: &Counter) {
        counter.add(self.took, self.bytes());
    }

    /// Returns the number of bytes of the output; 0 if there is none.
    pub(super) fn bytes(&self) -> u64 {
        self.output.as_ref().map_or(0, |(entry, _)| entry.length)
    }

    /// Returns whether all sources are still in the view, so that the output can replace them.
    pub(super) fn fits(&self, next: &Manifest, view: &LiveView) -> bool {
        self.inputs.iter().all(|(source, _)| source.deleted(next, view).is_some())
    }

    /// Returns the number of documents that were deleted from the sources, but not yet from the output.
    fn late(&self, next: &Manifest, view: &LiveView) -> u64 {
        let late = self.inputs.iter().filter_map(|(source, before)| {
            let now = source.deleted(next, view)?;
            Some(if Arc::ptr_eq(now, before) { 0 } else { now.len() - before.len() })
        });
        late.sum()
    }

    /// Deletes from the output the documents that were deleted from the sources since the merge began. `now` contains
    /// the current deleted documents of each source.
    fn catch_up(&mut self, now: &[Arc<RoaringBitmap>]) -> Result<()> {
        for ((source, before), now) in self.inputs.iter_mut().zip(now) {
            if let Some((_, output)) = &self.output {
                for ordinal in &**now - &**before {
                    let key = source.key(ordinal)?;
                    // guard: what is deleted while it is merged is deleted of the output
                    self.deleted.extend(output.find(key.as_key())?);
                }
                output.check_map()?;
            }
            *before = Arc::clone(now);
        }
        Ok(())
    }

    /// Replaces the sources with the output. All sources must still be in the view ([`fits`](Self::fits)). Documents deleted
    /// since the work began are deleted from the output.
    pub(super) fn take_place(mut self, next: &mut Manifest, view: &mut LiveView) -> Result<()> {
        let now: Vec<Arc<RoaringBitmap>> =
            self.inputs.iter().filter_map(|(source, _)| source.deleted(next, view).map(Arc::clone)).collect();
        self.catch_up(&now)?;
        for (source, _) in &self.inputs {
            match source {
                DocumentSource::Segment(number, _) => {
                    if let Some(place) = next.segments.iter().position(|entry| entry.number == *number) {
                        next.segments.remove(place);
                        view.segments.remove(place);
                        view.deleted.remove(place);
                    }
                }
                DocumentSource::Frozen(_) => view.frozen = None,
            }
        }
        if let Some((entry, segment)) = self.output {
            let place = next.segments.partition_point(|other| other.number < entry.number);
            next.segments.insert(place, entry);
            view.segments.insert(place, segment);
            view.deleted.insert(place, Arc::new(self.deleted));
        }
        Ok(())
    }
}
