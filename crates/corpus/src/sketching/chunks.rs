//! Processes chunks of documents on all cores, and returns the results in input order.

use std::collections::VecDeque;
use std::sync::mpsc::{RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rayon::{ScopeFifo, Yield};
use twindex::params::Tokens;
use twindex::sketch::Sketcher;

use crate::input::batch::{Batch, Buffers, ChunkTotals, Record};
use crate::input::documents::Documents;
use crate::input::inputs::Inputs;
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
/// Reading pauses while the chunks in memory have this size in bytes or more, so at most one very long record is in
/// memory at a time.
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

/// Reads all documents, processes chunks of them on all cores, and passes the result of each chunk to `take` in input
/// order. Further chunks are read in the meantime, so that threads do not wait for each other.
///
/// # Errors
///
/// The first error in input order: one bad record more than allowed, an input that cannot be read, or an error of a
/// function of `job` or of `take`.
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

/// Like [`for_each_chunk`], but also passes `documents` to `take`, so that `take` can count documents as rejected.
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
    for_each_handed_chunk((documents, CHUNK_BYTES), progress, (&job, |_, _| Ok(())), || Ok(()), take)
}

/// Like [`for_each_chunk_counted`], for chunks of `chunk_bytes` bytes. Calls `hand` when a chunk is read, in input
/// order, and passes the returned value to `job.begin` for this chunk. Calls `end` after the last document of a chunk.
pub(crate) fn for_each_handed_chunk<H: Send, S: Send, T: Send>(
    (documents, chunk_bytes): (&mut Documents, usize),
    progress: &dyn Progress,
    (job, end): (
        &Job<
            impl Fn() -> S + Sync,
            impl Fn(H, &Batch) -> anyhow::Result<T> + Sync,
            impl Fn(&mut S, &mut T, &Parser, Record<'_>) -> anyhow::Result<()> + Sync,
        >,
        impl Fn(&mut S, &mut T) -> anyhow::Result<()> + Sync,
    ),
    hand: impl FnMut() -> anyhow::Result<H> + Send,
    mut take: impl FnMut(T, &mut Documents) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let parser = documents.parser().clone();
    let idle = Mutex::new(Vec::new());
    let process = |batch: &mut Batch, handed: H| -> anyhow::Result<(ChunkTotals, T)> {
        batch.load(&parser);
        let lent = idle.lock().ok().and_then(|mut idle| idle.pop());
        let (mut buffers, mut state) = lent.unwrap_or_else(|| (Buffers::default(), (job.state)()));
        let mut made = (job.begin)(handed, batch)?;
        let work = |record: Record<'_>| (job.work)(&mut state, &mut made, &parser, record);
        let seen = batch.whole().read(&parser, &mut buffers, work)?;
        end(&mut state, &mut made)?;
        if let Ok(mut idle) = idle.lock() {
            idle.push((buffers, state));
        }
        Ok((seen, made))
    };
    let (results, finished) = channel();
    let reading = Reading { inputs: documents.take_inputs(), hand, next: 0, results };
    let ahead = &ReadAhead {
        parser: &parser,
        chunk_bytes,
        max: AHEAD * rayon::current_num_threads().max(2),
        state: Mutex::default(),
        process: &process,
    };
    let mut waiting: VecDeque<Option<ChunkResult<T>>> = VecDeque::new(); // results in input order
    let mut next = 0;
    let helps = rayon::current_num_threads() < THREADS_MANY;
    rayon::in_place_scope_fifo(|scope| {
        scope.spawn_fifo(move |scope| ahead.read(reading, scope));
        let mut pause = PAUSE_MIN;
        loop {
            // This thread first takes results, which frees memory for further chunks. If there are few threads, it also
            // reads and processes chunks while no result is available. If there are many, it only takes results, so
            // that the other threads need not wait for it.
            if let Some(result) = waiting.front_mut().and_then(Option::take) {
                waiting.pop_front();
                next += 1;
                progress.set(documents.bytes_read());
                let (mut batch, bytes) = match result {
                    ChunkResult::Made { batch, bytes, made } => {
                        let (seen, made) = (*made)?;
                        documents.account(seen)?;
                        take(made, documents)?;
                        (batch, bytes)
                    }
                    ChunkResult::Failed(failure) => return Err(failure),
                    ChunkResult::End => return documents.check_counts(),
                    ChunkResult::Panicked => return Ok(()), // the scope will panic, too
                };
                if let Some(failure) = batch.take_failure() {
                    return Err(failure);
                }
                if let Some(reading) = ahead.taken(batch, bytes) {
                    scope.spawn_fifo(move |scope| ahead.read(reading, scope));
                }
                continue;
            }
            let found = match finished.try_recv() {
                Err(TryRecvError::Empty) if helps && rayon::yield_now() == Some(Yield::Executed) => continue,
                Err(TryRecvError::Empty) if helps => finished.recv_timeout(pause),
                Err(TryRecvError::Empty) => finished.recv().map_err(|_| RecvTimeoutError::Disconnected),
                found => found.map_err(|_| RecvTimeoutError::Disconnected),
            };
            match found {
                Ok((number, result)) => {
                    let at = number - next;
                    if at >= waiting.len() {
                        waiting.resize_with(at + 1, || None);
                    }
                    waiting[at] = Some(result);
                    pause = PAUSE_MIN;
                }
                // Waits longer each time, up to a limit, because other threads may have read chunks to process.
                Err(RecvTimeoutError::Timeout) => pause = (2 * pause).min(PAUSE_MAX),
                Err(RecvTimeoutError::Disconnected) => return Ok(()), // reading panicked, and the scope will, too
            }
        }
    })
}

/// With this number of threads or more, the thread that takes results processes no chunks.
pub(crate) const THREADS_MANY: usize = 8;
/// The minimum and maximum time that the thread that takes results waits before it looks for a chunk to process.
const PAUSE_MIN: Duration = Duration::from_micros(50);
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// The result of reading and processing a chunk.
enum ChunkResult<T> {
    /// The result of processing the batch, which has a size of `bytes` bytes.
    Made { batch: Batch, bytes: usize, made: Box<anyhow::Result<(ChunkTotals, T)>> },
    /// The inputs cannot be read further.
    Failed(anyhow::Error),
    /// The inputs have no further chunks.
    End,
    /// Processing has panicked.
    Panicked,
}

/// Sends the result of a chunk when it is dropped, even by a panic.
struct PendingResult<T> {
    number: usize,
    result: ChunkResult<T>,
    results: Sender<(usize, ChunkResult<T>)>,
}

impl<T> Drop for PendingResult<T> {
    fn drop(&mut self) {
        let result = std::mem::replace(&mut self.result, ChunkResult::Panicked);
        let _ = self.results.send((self.number, result)); // fails if an earlier chunk ended the reading
    }
}

/// The inputs and the data that a thread needs to read chunks from them. One thread reads at a time.
struct Reading<F, T> {
    inputs: Inputs,
    hand: F,
    /// The number of the next chunk.
    next: usize,
    results: Sender<(usize, ChunkResult<T>)>,
}

/// Reads chunks on any thread of the pool, as far ahead as memory allows, and starts their processing.
struct ReadAhead<'a, F, T, P> {
    parser: &'a Parser,
    chunk_bytes: usize,
    /// The maximum number of chunks that are read and whose results are not yet taken.
    max: usize,
    state: Mutex<AheadState<F, T>>,
    process: &'a P,
}

struct AheadState<F, T> {
    /// Number of chunks that were read and whose results are not yet taken.
    chunks: usize,
    /// Size of the batches of these chunks in bytes.
    bytes: usize,
    /// The batches whose memory can be reused.
    spare: Vec<Batch>,
    /// The inputs, while no thread reads them because enough chunks are read ahead.
    resting: Option<Reading<F, T>>,
}

impl<F, T> Default for AheadState<F, T> {
    fn default() -> Self {
        Self { chunks: 0, bytes: 0, spare: Vec::new(), resting: None }
    }
}

impl<F, T, P, H> ReadAhead<'_, F, T, P>
where
    F: FnMut() -> anyhow::Result<H> + Send,
    P: Fn(&mut Batch, H) -> anyhow::Result<(ChunkTotals, T)> + Sync,
    T: Send,
    H: Send,
{
    fn state(&self) -> MutexGuard<'_, AheadState<F, T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads chunks until enough are read ahead, and starts the processing of each.
    fn read<'s>(&'s self, mut reading: Reading<F, T>, scope: &ScopeFifo<'s>)
    where
        F: 's,
        T: 's,
        H: 's,
    {
        loop {
            let mut batch = {
                let mut state = self.state();
                if state.chunks >= self.max || state.bytes >= AHEAD_BYTES {
                    state.resting = Some(reading);
                    return;
                }
                state.chunks += 1;
                state.spare.pop().unwrap_or_default()
            };
            reading.inputs.next_batch(self.parser, &mut batch, self.chunk_bytes);
            let (number, results) = (reading.next, reading.results.clone());
            reading.next += 1;
            let mut pending = PendingResult { number, result: ChunkResult::Panicked, results };
            if !batch.has_records() {
                pending.result = batch.take_failure().map_or(ChunkResult::End, ChunkResult::Failed);
                return;
            }
            let bytes = batch.bytes();
            self.state().bytes += bytes;
            let handed = (reading.hand)();
            scope.spawn_fifo(move |_| {
                let mut pending = pending; // moves the whole value, so that this thread drops it
                let made = handed.and_then(|handed| (self.process)(&mut batch, handed));
                pending.result = ChunkResult::Made { batch, bytes, made: Box::new(made) };
            });
        }
    }

    /// Frees the memory of a batch whose result was taken. Returns the inputs if more should be read and no thread does.
    fn taken(&self, batch: Batch, bytes: usize) -> Option<Reading<F, T>> {
        let mut state = self.state();
        state.chunks -= 1;
        state.bytes -= bytes;
        if bytes < AHEAD_BYTES {
            state.spare.push(batch); // the memory of a very long record is freed, not reused
        }
        // Reading resumes when half of the chunks are taken, so that one task reads many chunks.
        let is_little = state.chunks <= self.max / 2 && state.bytes < AHEAD_BYTES;
        is_little.then(|| state.resting.take()).flatten()
    }
}
