//! Stores the shingle sets of documents on a thread of its own. The thread that takes documents in input order is the
//! busiest of all, and adding a set to the collection is a quarter of its work.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::{Builder, JoinHandle};

use anyhow::Context;
use twindex::Result;
use twindex_join::{EncodedSet, ReferenceSets, ShingleSets};

/// Size in bytes of the sets that are passed to the thread together.
const BATCH_BYTES: usize = 256 << 10;
/// Maximum number of batches that wait for the thread.
const WAITING: usize = 4;

/// Sets that are added by another thread, in the order in which they were passed.
pub(crate) struct SetThread {
    references: Arc<ReferenceSets>,
    batch: SetBatch,
    /// Batches to add; `None` after the last one.
    full: Option<SyncSender<SetBatch>>,
    spare: SpareBatches,
    thread: Option<JoinHandle<(ShingleSets, Result<()>)>>,
}

/// Batches whose sets were added. Their memory is reused.
type SpareBatches = Arc<Mutex<Vec<SetBatch>>>;

/// Sets to add.
#[derive(Default)]
struct SetBatch {
    /// The header of each set, and the ends of its words and anchors.
    sets: Vec<(EncodedSet, [usize; 2])>,
    words: Vec<u64>,
    anchors: Vec<u64>,
    bytes: usize,
}

impl SetBatch {
    fn store(&mut self, sets: &mut ShingleSets) -> Result<()> {
        let mut starts = [0; 2];
        for (encoded, ends) in self.sets.drain(..) {
            let (words, anchors) = (&self.words[starts[0]..ends[0]], &self.anchors[starts[1]..ends[1]]);
            sets.push_encoded(encoded, words, anchors)?;
            starts = ends;
        }
        self.words.clear();
        self.anchors.clear();
        self.bytes = 0;
        Ok(())
    }
}

/// Adds batches until the last one, or until an error.
fn run(mut sets: ShingleSets, full: Receiver<SetBatch>, spare: &SpareBatches) -> (ShingleSets, Result<()>) {
    for mut batch in full {
        if let Err(error) = batch.store(&mut sets) {
            return (sets, Err(error));
        }
        if let Ok(mut spare) = spare.lock() {
            spare.push(batch);
        }
    }
    (sets, Ok(()))
}

impl SetThread {
    /// Starts a thread that adds sets to `sets`.
    pub(crate) fn start(sets: ShingleSets) -> anyhow::Result<Self> {
        let references = sets.references();
        let ((full, batches), spare) = (sync_channel(WAITING), SpareBatches::default());
        let returned = Arc::clone(&spare);
        let thread = Builder::new().name("sets".into()).spawn(move || run(sets, batches, &returned));
        let thread = Some(thread.context("cannot start a thread")?);
        Ok(Self { references, batch: SetBatch::default(), full: Some(full), spare, thread })
    }

    pub(crate) fn references(&self) -> Arc<ReferenceSets> {
        Arc::clone(&self.references)
    }

    /// Passes a set on. An error of an earlier set may be returned.
    pub(crate) fn push(&mut self, set: EncodedSet, words: &[u64], anchors: &[u64]) -> Result<()> {
        let batch = &mut self.batch;
        batch.bytes += size_of::<u64>() * words.len().max(set.size());
        batch.words.extend_from_slice(words);
        batch.anchors.extend_from_slice(anchors);
        batch.sets.push((set, [batch.words.len(), batch.anchors.len()]));
        if batch.bytes >= BATCH_BYTES { self.pass() } else { Ok(()) }
    }

    fn pass(&mut self) -> Result<()> {
        let next = self.spare.lock().ok().and_then(|mut spare| spare.pop()).unwrap_or_default();
        let batch = std::mem::replace(&mut self.batch, next);
        match &self.full {
            Some(full) if full.send(batch).is_ok() => Ok(()),
            // The thread has ended before its last batch, so it has failed, now or before.
            _ => self.join().map_or(Ok(()), |(_, done)| done),
        }
    }

    fn join(&mut self) -> Option<(ShingleSets, Result<()>)> {
        self.full = None;
        let ended = self.thread.take()?.join();
        Some(ended.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// Adds the last sets, ends the thread, and returns all sets.
    pub(crate) fn finish(mut self) -> anyhow::Result<ShingleSets> {
        self.pass()?;
        let (sets, done) = self.join().context("a set after an error")?;
        done?;
        Ok(sets)
    }
}

impl Drop for SetThread {
    /// Waits for the thread, which may be writing to the folder that the caller removes.
    fn drop(&mut self) {
        self.full = None;
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use twindex_join::DeltaScratch;

    #[test]
    fn sets_of_a_thread_equal_those_of_the_caller_and_its_error_is_returned() {
        let dir = tempfile::tempdir().unwrap();
        let (scratch, gone) = (&mut DeltaScratch::default(), dir.path().join("gone"));
        // Every tenth set is a new one. The others share all but a few of their elements with the one before.
        let set = |number: u64| {
            let first = 1000 * (number / 10) + number % 10;
            (first..first + 700).map(|at| at.wrapping_mul(0x9E37_79B9_7F4A_7C15))
        };
        for memory in [1 << 30, 0] {
            let mut alone = ShingleSets::new(dir.path(), memory);
            let mut thread = SetThread::start(ShingleSets::new(dir.path(), memory)).unwrap();
            let references = thread.references();
            for number in 0..300 {
                let hashes: Vec<u64> = set(number).collect();
                alone.push_like(&hashes, &[number / 10]).unwrap();
                let mut words = Vec::new();
                let encoded = references.encode(&hashes, &[number / 10], scratch, &mut words);
                thread.push(encoded, &words, &[number / 10]).unwrap();
            }
            let sets = thread.finish().unwrap();
            assert_eq!(sets.len(), 300);
            for number in 0..300 {
                let (mut mine, mut theirs) = (Vec::new(), Vec::new());
                assert_eq!(sets.set(number, &mut mine).unwrap(), alone.set(number, &mut theirs).unwrap());
            }
        }
        let mut thread = SetThread::start(ShingleSets::new(&gone, 0)).unwrap();
        let references = thread.references();
        let mut push = |number| {
            let (hashes, mut words): (Vec<u64>, _) = (set(number).collect(), Vec::new());
            let encoded = references.encode(&hashes, &[], scratch, &mut words);
            thread.push(encoded, &words, &[])
        };
        let error = (0..10_000).map(&mut push).find_map(Result::err).unwrap();
        assert!(error.to_string().contains("gone"), "{error}");
        assert!(thread.finish().is_err());
    }
}
