//! Processes chunks of documents on all cores, and returns the results in input order.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use rayon::Yield;
use twindex::params::Tokens;
use twindex::sketch::Sketcher;

use crate::input::batch::{Batch, Buffers, ChunkTotals, Record};
use crate::input::documents::Documents;
use crate::input::parser::Parser;
use crate::work::observer::Progress;

/// Number of input bytes in a chunk, the unit of parallel work.
pub(crate) const CHUNK_BYTES: usize = if cfg!(fuzzing) { 1 << 10 } else { 128 << 10 };
/// Returns the chunk size in bytes for this sketcher. If a weighted shingle becomes several elements of the set, chunks
/// are smaller than [`CHUNK_BYTES`], to limit memory. For texts, 16 elements per shingle are assumed. Each feature
/// vector is a chunk of its own, because its weights are not limited.
pub(crate) fn chunk_bytes(sketcher: &Sketcher) -> usize {
    let params = sketcher.params();
    match params.minhash.and_then(|minhash| minhash.unit) {
        None => CHUNK_BYTES,
        Some(_) if params.shingling.tokens == Tokens::Features => 1,
        Some(unit) => ((CHUNK_BYTES as u64 * u64::from(unit.units())) >> 20).max(1) as usize,
    }
}

/// Number of chunks per thread that are read before their results are needed.
pub(crate) const AHEAD: usize = 4;
/// No further chunk is read while the chunks in memory have this number of bytes or more. So at most one very long
/// record is in memory at a time.
const AHEAD_BYTES: usize = 32 << 20;

/// The functions that process a chunk.
pub struct Job<N, B, W> {
    /// Creates the working memory of a thread. Called at most once per thread.
    pub state: N,
    /// Creates the empty result of a chunk.
    pub begin: B,
    /// Adds a document to the result of its chunk.
    pub work: W,
}

/// A processed chunk and its result.
type BatchResult<T> = (Batch, anyhow::Result<(ChunkTotals, T)>);

/// Reads all documents, processes chunks of them on all cores, and passes the result of each chunk to `take` in input
/// order. Further chunks are read in the meantime, so that threads do not wait for each other.
///
/// # Errors
///
/// The first error in input order: one bad record more than allowed, an input that cannot be read, or an error of the
/// job or of `take`.
pub fn for_each_chunk<S: Send, T: Send>(
    documents: &mut Documents,
    progress: &dyn Progress,
    job: &Job<
        impl Fn() -> S + Sync,
        impl Fn() -> T + Sync,
        impl Fn(&mut S, &mut T, &Parser, Record<'_>) -> anyhow::Result<()> + Sync,
    >,
    mut take: impl FnMut(T) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for_each_chunk_counted(documents, progress, job, |made, _| take(made))
}

/// Like [`for_each_chunk`], but also passes `documents` to `take`, which needs it to count documents that it rejects.
pub(crate) fn for_each_chunk_counted<S: Send, T: Send>(
    documents: &mut Documents,
    progress: &dyn Progress,
    job: &Job<
        impl Fn() -> S + Sync,
        impl Fn() -> T + Sync,
        impl Fn(&mut S, &mut T, &Parser, Record<'_>) -> anyhow::Result<()> + Sync,
    >,
    take: impl FnMut(T, &mut Documents) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let job = Job { state: &job.state, begin: |(), _: &Batch| Ok((job.begin)()), work: &job.work };
    for_each_handed_chunk((documents, CHUNK_BYTES), progress, &job, || Ok(()), take)
}

/// Like [`for_each_chunk_counted`], but also calls `hand` when a chunk is read, in input order. The value that it
/// returns is passed to [`Job::begin`] for this chunk.
pub(crate) fn for_each_handed_chunk<H: Send, S: Send, T: Send>(
    (documents, chunk_bytes): (&mut Documents, usize),
    progress: &dyn Progress,
    job: &Job<
        impl Fn() -> S + Sync,
        impl Fn(H, &Batch) -> anyhow::Result<T> + Sync,
        impl Fn(&mut S, &mut T, &Parser, Record<'_>) -> anyhow::Result<()> + Sync,
    >,
    mut hand: impl FnMut() -> anyhow::Result<H>,
    mut take: impl FnMut(T, &mut Documents) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let parser = documents.parser().clone();
    let idle = Mutex::new(Vec::new());
    let lend = |batch: &Batch, handed: H| -> anyhow::Result<(ChunkTotals, T)> {
        let lent = idle.lock().ok().and_then(|mut idle| idle.pop());
        let (mut buffers, mut state) = lent.unwrap_or_else(|| (Buffers::default(), (job.state)()));
        let mut made = (job.begin)(handed, batch)?;
        let work = |record: Record<'_>| (job.work)(&mut state, &mut made, &parser, record);
        let seen = batch.whole().read(&parser, &mut buffers, work)?;
        if let Ok(mut idle) = idle.lock() {
            idle.push((buffers, state));
        }
        Ok((seen, made))
    };
    let lend = &lend;
    let max = AHEAD * rayon::current_num_threads().max(2);
    // The results of batches are taken in input order. Each batch has its own channel.
    let mut coming: VecDeque<Receiver<BatchResult<T>>> = VecDeque::new();
    let mut spare: Vec<Batch> = Vec::new();
    let mut bytes = 0;
    let (mut is_over, mut failure) = (false, None);
    rayon::in_place_scope_fifo(|scope| {
        let mut is_idle = false;
        loop {
            // This thread takes the next result if it is ready, because this frees memory. Otherwise it reads another
            // chunk, or processes chunks like the other threads. It waits only if there is nothing to process.
            let ready = match coming.front() {
                None => Err(TryRecvError::Empty),
                Some(first) if is_idle => first.recv().map_err(|_| TryRecvError::Disconnected),
                Some(first) => first.try_recv(),
            };
            is_idle = false;
            match ready {
                Ok((batch, made)) => {
                    coming.pop_front();
                    bytes -= batch.bytes();
                    // The memory of a very long record is freed, not reused.
                    spare.extend(Some(batch).filter(|batch| batch.bytes() < AHEAD_BYTES));
                    let (seen, made) = made?;
                    documents.account(seen)?;
                    take(made, documents)?;
                }
                Err(TryRecvError::Disconnected) => return Ok(()), // a worker panicked, so the scope panics, too
                Err(TryRecvError::Empty) if !is_over && coming.len() < max && bytes < AHEAD_BYTES => {
                    let mut batch = spare.pop().unwrap_or_default();
                    documents.next_batch(&mut batch, chunk_bytes);
                    progress.set(documents.bytes_read());
                    failure = batch.take_failure();
                    is_over = failure.is_some() || !batch.has_records();
                    if batch.has_records() {
                        bytes += batch.bytes();
                        let (sender, receiver) = sync_channel(1);
                        coming.push_back(receiver);
                        let handed = hand()?;
                        scope.spawn_fifo(move |_| {
                            let made = lend(&batch, handed);
                            let _ = sender.send((batch, made)); // fails if an earlier batch ended the reading
                        });
                    }
                }
                Err(TryRecvError::Empty) if coming.is_empty() => {
                    return failure.map_or_else(|| documents.check_fields(), Err);
                }
                Err(TryRecvError::Empty) => is_idle = rayon::yield_now() != Some(Yield::Executed),
            }
        }
    })
}
