//! Processes chunks of documents on all cores, and returns the results in input order, or in the order in which several
//! inputs that are read at the same time arrive.

use std::collections::{BTreeMap, VecDeque};
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
    let mut take = take;
    let taking = |made, documents: &mut Documents, _| take(made, documents);
    for_each_handed_chunk((documents, CHUNK_BYTES, 1), progress, (&job, |_, _| Ok(())), || Ok(()), taking)
}

/// Like [`for_each_chunk_counted`], for chunks of `chunk_bytes` bytes. Calls `hand` when a chunk is read, in input
/// order, and passes the returned value to `job.begin` for this chunk. Calls `end` after the last document of a chunk.
///
/// If `together` is more than 1, this number of inputs is read at the same time. Chunks of different inputs then arrive
/// in any order, and those of one input in its order. `take` also receives the place of the input among all inputs.
pub(crate) fn for_each_handed_chunk<H: Send, S: Send, T: Send>(
    (documents, chunk_bytes, together): (&mut Documents, usize, usize),
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
    mut take: impl FnMut(T, &mut Documents, u32) -> anyhow::Result<()>,
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
    let unread = Unread { inputs: documents.take_inputs(), are_together: together > 1, begun: 0 };
    let ahead = &ReadAhead {
        parser: &parser,
        chunk_bytes,
        max: AHEAD * rayon::current_num_threads().max(2),
        many: rayon::current_num_threads().max(2),
        unread: Mutex::new(unread),
        hand: Mutex::new(hand),
        state: Mutex::new(AheadState {
            chunks: 0,
            bytes: 0,
            read: together,
            spare: Vec::new(),
            resting: VecDeque::new(),
        }),
        process: &process,
    };
    let mut waiting: BTreeMap<u32, WaitingResults<T>> = BTreeMap::new(); // of the parts that are not yet ended
    let (mut part, mut ended) = (0, 0);
    let helps = rayon::current_num_threads() < THREADS_MANY;
    rayon::in_place_scope_fifo(|scope| {
        for _ in 0..together {
            let results = results.clone();
            scope.spawn_fifo(move |scope| match ahead.begin(results) {
                Some(reading) => ahead.read(reading, scope),
                None => ahead.leave(),
            });
        }
        drop(results);
        let mut pause = PAUSE_MIN;
        loop {
            // This thread first takes results, which frees memory for further chunks. If there are few threads, it also
            // reads and processes chunks while no result is available. If there are many, it only takes results, so
            // that the other threads need not wait for it.
            if let Some(result) = waiting.get_mut(&part).and_then(WaitingResults::next) {
                progress.set(documents.bytes_read());
                documents.begin_part(part);
                let (mut batch, bytes) = match result {
                    ChunkResult::Made { batch, bytes, made } => {
                        let (seen, made) = (*made)?;
                        documents.account(seen)?;
                        take(made, documents, part)?;
                        (batch, bytes)
                    }
                    ChunkResult::Failed(failure) => return Err(failure),
                    ChunkResult::End => {
                        documents.end_part(part)?;
                        waiting.remove(&part);
                        ended += 1;
                        if ahead.are_over(ended) {
                            return documents.check_counts();
                        }
                        continue;
                    }
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
                Ok((at, result)) => {
                    part = at.part;
                    waiting.entry(part).or_default().put(at.number, result);
                    pause = PAUSE_MIN;
                }
                // Waits longer each time, up to a limit, because other threads may have read chunks to process.
                Err(RecvTimeoutError::Timeout) => pause = (2 * pause).min(PAUSE_MAX),
                // Reading panicked, and the scope will, too; or there was no input.
                Err(RecvTimeoutError::Disconnected) => return documents.check_counts(),
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

/// The place of a chunk: a part of the inputs, and the number of the chunk in it.
#[derive(Clone, Copy)]
struct ChunkAt {
    part: u32,
    number: usize,
}

/// The results of a part that were not yet taken.
struct WaitingResults<T> {
    /// The number of the first result.
    next: usize,
    results: VecDeque<Option<ChunkResult<T>>>,
}

impl<T> Default for WaitingResults<T> {
    fn default() -> Self {
        Self { next: 0, results: VecDeque::new() }
    }
}

impl<T> WaitingResults<T> {
    fn put(&mut self, number: usize, result: ChunkResult<T>) {
        let at = number - self.next;
        if at >= self.results.len() {
            self.results.resize_with(at + 1, || None);
        }
        self.results[at] = Some(result);
    }

    /// Removes the next result in order, if it has arrived.
    fn next(&mut self) -> Option<ChunkResult<T>> {
        let result = self.results.front_mut()?.take()?;
        self.results.pop_front();
        self.next += 1;
        Some(result)
    }
}

/// Sends the result of a chunk when it is dropped, even by a panic.
struct PendingResult<T> {
    at: ChunkAt,
    result: ChunkResult<T>,
    results: Results<T>,
}

type Results<T> = Sender<(ChunkAt, ChunkResult<T>)>;

impl<T> Drop for PendingResult<T> {
    fn drop(&mut self) {
        let result = std::mem::replace(&mut self.result, ChunkResult::Panicked);
        let _ = self.results.send((self.at, result)); // fails if an earlier chunk ended the reading
    }
}

/// A part of the inputs, and the data that a thread needs to read chunks from it. One thread reads a part at a time.
struct Reading<T> {
    inputs: Inputs,
    /// The place of the next chunk.
    next: ChunkAt,
    results: Results<T>,
}

/// The inputs that no thread reads yet.
struct Unread {
    inputs: Inputs,
    /// Whether each input is a part of its own, and several are read at the same time; otherwise, all are one part.
    are_together: bool,
    /// Number of parts that threads read or have read.
    begun: u32,
}

/// Reads chunks on any thread of the pool, as far ahead as memory allows, and starts their processing.
struct ReadAhead<'a, F, T, P> {
    parser: &'a Parser,
    chunk_bytes: usize,
    /// The maximum number of chunks that are read and whose results are not yet taken.
    max: usize,
    /// If this number of parts or more are read at the same time, a thread that has read a chunk processes it. Otherwise,
    /// it reads on, and other threads process.
    many: usize,
    unread: Mutex<Unread>,
    hand: Mutex<F>,
    state: Mutex<AheadState<T>>,
    process: &'a P,
}

struct AheadState<T> {
    /// Number of chunks that were read and whose results are not yet taken.
    chunks: usize,
    /// Size of the batches of these chunks in bytes.
    bytes: usize,
    /// Number of parts that are read at the same time, with those in `resting`.
    read: usize,
    /// The batches whose memory can be reused.
    spare: Vec<Batch>,
    /// The parts that no thread reads because enough chunks are read ahead.
    resting: VecDeque<Reading<T>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<F, T, P, H> ReadAhead<'_, F, T, P>
where
    F: FnMut() -> anyhow::Result<H> + Send,
    P: Fn(&mut Batch, H) -> anyhow::Result<(ChunkTotals, T)> + Sync,
    T: Send,
    H: Send,
{
    /// Begins the next part; `None` if no input is left.
    fn begin(&self, results: Results<T>) -> Option<Reading<T>> {
        let mut unread = lock(&self.unread);
        let next = ChunkAt { part: unread.begun, number: 0 };
        let inputs = if unread.are_together {
            unread.inputs.next_part(self.parser)?
        } else if unread.begun == 0 {
            unread.inputs.take()
        } else {
            return None;
        };
        unread.begun += 1;
        Some(Reading { inputs, next, results })
    }

    /// Returns whether all parts have ended if `ended` parts have.
    fn are_over(&self, ended: u32) -> bool {
        let unread = lock(&self.unread);
        unread.inputs.are_opened() && unread.begun == ended
    }

    /// Reads chunks until enough are read ahead, and starts the processing of each. After the end of a part, begins the
    /// next one.
    fn read<'s>(&'s self, mut reading: Reading<T>, scope: &ScopeFifo<'s>)
    where
        F: 's,
        T: 's,
        H: 's,
    {
        loop {
            let mut batch = {
                let mut state = lock(&self.state);
                if state.chunks >= self.max || state.bytes >= AHEAD_BYTES {
                    state.resting.push_back(reading);
                    return;
                }
                state.chunks += 1;
                state.spare.pop().unwrap_or_default()
            };
            reading.inputs.next_batch(self.parser, &mut batch, self.chunk_bytes);
            let (at, results) = (reading.next, reading.results.clone());
            reading.next.number += 1;
            let mut pending = PendingResult { at, result: ChunkResult::Panicked, results };
            if !batch.has_records() {
                let failure = batch.take_failure();
                drop(self.free(batch, 0));
                let next = if failure.is_none() { self.begin(reading.results) } else { None };
                pending.result = failure.map_or(ChunkResult::End, ChunkResult::Failed);
                drop(pending);
                let Some(next) = next else { return self.leave() };
                reading = next;
                continue;
            }
            let bytes = batch.bytes();
            let are_many = {
                let mut state = lock(&self.state);
                state.bytes += bytes;
                state.read >= self.many
            };
            let handed = (lock(&self.hand))();
            let process = move |pending| {
                let mut pending: PendingResult<T> = pending; // this thread drops it, even by a panic
                let made = handed.and_then(|handed| (self.process)(&mut batch, handed));
                pending.result = ChunkResult::Made { batch, bytes, made: Box::new(made) };
            };
            if are_many {
                // The chunk is in the cache of this thread; any thread may read on.
                scope.spawn_fifo(move |scope| self.read(reading, scope));
                return process(pending);
            }
            scope.spawn_fifo(move |_| process(pending));
        }
    }

    /// Notes that a thread begins no further part.
    fn leave(&self) {
        lock(&self.state).read -= 1;
    }

    /// Frees the memory of a batch of `bytes` bytes.
    fn free(&self, batch: Batch, bytes: usize) -> MutexGuard<'_, AheadState<T>> {
        let mut state = lock(&self.state);
        state.chunks -= 1;
        state.bytes -= bytes;
        if bytes < AHEAD_BYTES {
            state.spare.push(batch); // the memory of a very long record is freed, not reused
        }
        state
    }

    /// Frees the memory of a batch whose result was taken. Returns a part if more should be read and no thread reads it.
    fn taken(&self, batch: Batch, bytes: usize) -> Option<Reading<T>> {
        let mut state = self.free(batch, bytes);
        // Reading resumes when half of the chunks are taken, so that one task reads many chunks.
        let is_little = state.chunks <= self.max / 2 && state.bytes < AHEAD_BYTES;
        if is_little { state.resting.pop_front() } else { None }
    }
}
