//! A merge of some segments to one, here or on a thread of its own, and how its result takes their place.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use roaring::RoaringBitmap;

use super::names;
use super::state::{View, open_segment};
use crate::error::{Error, Result};
use crate::format::manifest::{Manifest, SegmentEntry};
use crate::segment::Segment;
use crate::segment::merge::{self, Input};
use crate::segment::spilled::Room;
use crate::sys::paced::Paced;
use crate::sys::{Access, Vfs};

/// What is merged, as it was when that began.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) vfs: Arc<dyn Vfs>,
    pub(super) dir: PathBuf,
    pub(super) access: Access,
    /// Its parameters are those of all segments.
    pub(super) manifest: Manifest,
    /// The output's.
    pub(super) number: u64,
    /// Bytes of memory it may take.
    pub(super) memory: usize,
    /// Numbers, segments, and what was no longer live.
    pub(super) inputs: Vec<(u64, Arc<Segment>, Arc<RoaringBitmap>)>,
}

/// A segment that can take the place of others.
#[derive(Debug)]
pub(super) struct Merged {
    /// Numbers of the segments it is made of, and what was no longer live of them.
    inputs: Vec<(u64, Arc<RoaringBitmap>)>,
    /// `None` where nothing was live.
    output: Option<(SegmentEntry, Arc<Segment>)>,
}

impl Work {
    /// Refuses it where the disk has no room for the output.
    ///
    /// # Errors
    /// [`Error::NoSpace`], [`Error::Io`].
    pub(super) fn check_space(&self) -> Result<()> {
        // The output has at most the bytes of its inputs, which stay meanwhile; where records do not fit in memory,
        // they go through scratch files once more.
        let inputs: u64 = self.inputs.iter().map(|(_, segment, _)| segment.length()).sum();
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

    /// Merges, and gives the output its name and reads it again, so that it is not published damaged. Nothing names it
    /// yet.
    ///
    /// # Errors
    /// As [`merge::merge`] and [`open_segment`].
    pub(super) fn run(self) -> Result<Merged> {
        let scratch = self.vfs.scratch(&self.dir);
        let room = Room::new(self.memory, &scratch);
        let inputs: Vec<Input<'_>> = self
            .inputs
            .iter()
            .filter(|(_, segment, deleted)| deleted.len() < segment.documents())
            .map(|(_, segment, deleted)| Input { segment, deleted })
            .collect();
        let mut output = None;
        if !inputs.is_empty() {
            let built = merge::merge(&inputs, &*self.vfs, &self.dir, room)?;
            inputs.iter().try_for_each(|input| input.segment.check_map())?;
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
                    // No manifest names the segment; if it stays, the next sweep removes it.
                    let _ = self.vfs.unlink(&names::segment(&self.dir, self.number));
                    return Err(error);
                }
            }
        }
        let inputs = self.inputs.into_iter().map(|(number, _, deleted)| (number, deleted)).collect();
        Ok(Merged { inputs, output })
    }

    /// As [`run`](Self::run), on a thread of its own, at `rate` bytes a second.
    ///
    /// # Errors
    /// [`Error::Io`] where there is no thread to be had.
    pub(super) fn spawn(mut self, rate: Option<u64>) -> Result<Merging> {
        let stop = Arc::new(AtomicBool::new(false));
        let (dir, number) = (self.dir.clone(), self.number);
        let inputs = self.inputs.iter().map(|(number, ..)| *number).collect();
        self.vfs = Arc::new(Paced::new(self.vfs, Arc::clone(&stop), rate));
        let thread = std::thread::Builder::new().name("twindex-merge".into()).spawn(move || self.run());
        let thread = thread.map_err(|e| Error::io("start a thread for", &dir, e))?;
        Ok(Merging { thread: Some(thread), stop, number, inputs })
    }
}

/// A merge under way. Dropped, it is stopped and waited for.
#[derive(Debug)]
pub(super) struct Merging {
    thread: Option<JoinHandle<Result<Merged>>>,
    stop: Arc<AtomicBool>,
    /// Of the output.
    pub(super) number: u64,
    /// Of the segments that it is made of. They stay in the generations meanwhile, live or not: what is deleted of them
    /// has to be deleted of the output.
    pub(super) inputs: Vec<u64>,
}

impl Merging {
    pub(super) fn is_done(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for it.
    ///
    /// # Errors
    /// What went wrong.
    pub(super) fn join(mut self) -> Result<Merged> {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(merged)) => merged,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => unreachable!("the thread is taken here, and where it is dropped"),
        }
    }
}

impl Drop for Merging {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Merged {
    /// The number of the output, if there is one.
    pub(super) fn number(&self) -> Option<u64> {
        self.output.as_ref().map(|(entry, _)| entry.number)
    }

    /// True where all that it was made of is there, to be replaced.
    pub(super) fn fits(&self, next: &Manifest) -> bool {
        self.inputs.iter().all(|(number, _)| next.segments.iter().any(|entry| entry.number == *number))
    }

    /// Puts the output in the place of what it was made of, which [fits](Self::fits). What was deleted of that since
    /// the merge began is deleted in the output.
    pub(super) fn take_place(self, next: &mut Manifest, view: &mut View) -> Result<()> {
        let mut deleted = RoaringBitmap::new();
        for (number, before) in &self.inputs {
            let Some(place) = next.segments.iter().position(|entry| entry.number == *number) else {
                continue;
            };
            let since = &*view.deleted[place] - &**before;
            if let Some((_, output)) = &self.output {
                for ordinal in since {
                    let key = view.segments[place].key(ordinal)?;
                    view.segments[place].check_map()?;
                    // guard: what is deleted while it is merged is deleted of the output
                    deleted.extend(output.find(key.as_key())?);
                }
            }
            next.segments.remove(place);
            view.segments.remove(place);
            view.deleted.remove(place);
        }
        if let Some((entry, segment)) = self.output {
            let place = next.segments.partition_point(|other| other.number < entry.number);
            next.segments.insert(place, entry);
            view.segments.insert(place, segment);
            view.deleted.insert(place, Arc::new(deleted));
        }
        Ok(())
    }
}
