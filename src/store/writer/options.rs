//! The options of a writer.

use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::params::{Near, Params};
use crate::segment::records::Kept;
use crate::store::query::Query;
use crate::store::state::State;

/// Default memory budget in bytes for the records of a batch.
const MEMORY: usize = 1 << 30;
/// Default number of rows at which a memtable is flushed.
const MEMTABLE_ROWS: u32 = 1 << 17;
/// Default number of bytes at which a memtable is flushed.
pub(super) const MEMTABLE_BYTES: usize = 64 << 20;
/// Default of [`WriterOptions::stalls`].
const PAUSE: Duration = Duration::from_millis(20);
const MEMTABLES: usize = 2;

/// The options that decide which documents are near: the rule, and whether resemblance is not verified or is estimated.
pub(super) type Relation = (Near, bool, bool);

/// Minimum number of documents for each thread that builds a segment. With fewer, starting the thread takes longer than
/// it saves.
const DOCUMENTS_PER_THREAD: u64 = 1 << 13;

/// Maximum number of rows at which a memtable is flushed.
const MEMTABLE_ROWS_MAX: u32 = 1 << 26;
/// Maximum number of bytes at which a memtable is flushed.
const MEMTABLE_BYTES_MAX: usize = 256 << 20;

/// The guarantee that a commit gives when it returns. Every commit is atomic and immediately visible to snapshots of
/// this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Durability {
    /// No guarantee. Up to a megabyte of commits is held in memory until a commit with a stronger durability,
    /// [`Writer::sync`](super::Writer::sync), or the end of the writer.
    None,
    /// The commit survives the end of the process, even if it is killed, and other processes see it; a crash of the
    /// machine may lose it. A later [`Writer::sync`](super::Writer::sync) makes all such commits durable (group commit).
    Batch,
    /// The commit survives a crash of the machine.
    #[default]
    Sync,
}

/// Options of a [`Writer`](super::Writer): memory, commits, merges, and the rule of [`admit`](super::Writer::admit).
/// `WriterOptions::default()` has the defaults, which [`Index::writer`](crate::Index::writer) uses.
///
/// ```
/// use std::time::Duration;
/// use twindex::{Durability, Index, Params, WriterOptions};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).build()?)?;
/// let options = WriterOptions::default()
///     .memtable(10_000, 16 << 20)
///     .merge_rate(Some(50 << 20))
///     .stalls(Duration::from_millis(5), 4);
/// let mut writer = index.writer_with(options)?;
/// assert_eq!(index.metrics().stalls.count, 0);
///
/// // The options of an open writer can be changed, for example for a group of commits that one sync makes durable.
/// writer.set_options(options.durability(Durability::Batch))?;
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
#[allow(clippy::struct_excessive_bools, reason = "independent choices")]
pub struct WriterOptions {
    pub(super) memory: usize,
    /// `None` for all cores.
    threads: Option<usize>,
    pub(super) memtable_rows: u32,
    pub(super) memtable_bytes: usize,
    pub(super) one_segment: bool,
    pub(super) logged: bool,
    pub(super) durability: Durability,
    pub(super) drop_duplicates: bool,
    near: Option<Near>,
    pub(super) unverified: bool,
    pub(super) estimated: bool,
    max_jump: Option<u64>,
    pub(super) background: bool,
    pub(super) rate: Option<u64>,
    pub(super) pause: Duration,
    pub(super) memtables: usize,
}

impl Default for WriterOptions {
    fn default() -> Self {
        Self {
            memory: MEMORY,
            threads: None,
            memtable_rows: MEMTABLE_ROWS,
            memtable_bytes: MEMTABLE_BYTES,
            one_segment: false,
            logged: true,
            durability: Durability::Sync,
            drop_duplicates: false,
            near: None,
            unverified: false,
            estimated: false,
            max_jump: None,
            background: true,
            rate: None,
            pause: PAUSE,
            memtables: MEMTABLES,
        }
    }
}

impl WriterOptions {
    /// Sets the memory budget in bytes for the records of a batch (default 1 GiB). A larger batch is written as several
    /// segments, which become visible together.
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes;
        self
    }

    /// Sets the number of threads on which commits, [`compact`](super::Writer::compact) and
    /// [`merge_step`](super::Writer::merge_step) build segments (default: all cores). Segments do not depend on it. Threads
    /// that flush and merge in the background build their segments alone.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Sets the size at which the memtable is flushed: `rows` rows (default 131,072) or `bytes` bytes (default 64 MiB, and
    /// at most the value of [`memory`](Self::memory)), whichever is reached first. With 20 bands, 64 MiB hold about
    /// 100,000 documents. A thread writes the segment while commits continue in a second memtable. Together the two
    /// memtables use at most three times this size, because a commit waits if the second one reaches twice this size
    /// ([`stalls`](Self::stalls)); in a batch larger than a memtable they use at most four times this size. The minimum is
    /// one row and one byte, the maximum 2^26 rows and 256 MiB.
    ///
    /// A large memtable makes opening after a crash slower, because its rows are read from the logs again: about 1.2
    /// microseconds per document with 20 bands. A small memtable produces more segments, and every query and every
    /// `admit` searches all of them. It also causes more merges: a memtable of a quarter of the size has each document
    /// merged once more.
    pub fn memtable(mut self, rows: u32, bytes: usize) -> Self {
        self.memtable_rows = rows.clamp(1, MEMTABLE_ROWS_MAX);
        self.memtable_bytes = bytes.clamp(1, MEMTABLE_BYTES_MAX);
        self
    }

    /// Sets how long commits wait if documents arrive faster than segments are written. If the memtable is full again before
    /// the previous one has become a segment, each commit waits for up to `pause` (default 20 ms). If the memtable has
    /// reached `memtables` times its normal size (default 2, at least 1), each commit waits until the segment is finished. A
    /// batch larger than a memtable pauses in the same way every 1,024 documents.
    ///
    /// A longer pause delays all commits a little instead of one commit a lot. More memtables absorb a burst of
    /// documents without a wait, but they take more memory ([`memtable`](Self::memtable)), and opening the index after
    /// a crash reads more bytes from the logs. [`Metrics::stalls`](crate::Metrics::stalls) reports how many commits
    /// waited, and for how long.
    pub fn stalls(mut self, pause: Duration, memtables: u32) -> Self {
        self.pause = pause;
        self.memtables = memtables.max(1) as usize;
        self
    }

    /// Sets whether a batch of any size becomes a single segment (default false). If true, commits take longer: records that
    /// exceed the memory budget are sorted or merged with up to twice the bytes of [`memory`](Self::memory), and the disk
    /// temporarily needs space for a second copy of the batch. The contents of the segment do not depend on the memory
    /// budget.
    pub fn one_segment(mut self, one_segment: bool) -> Self {
        self.one_segment = one_segment;
        self
    }

    /// Sets whether small batches are appended to the log (the default). If true, a commit costs one sync, and documents
    /// become a segment when the memtable is full ([`memtable`](Self::memtable)). If false, each commit writes a segment,
    /// which suits few large batches.
    pub fn logged(mut self, logged: bool) -> Self {
        self.logged = logged;
        self
    }

    /// Sets the durability of commits that are appended to the log (default [`Durability::Sync`]). A commit that writes a
    /// segment is always durable.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets whether [`admit`](super::Writer::admit) drops duplicates (default false).
    pub fn drop_duplicates(mut self, drop: bool) -> Self {
        self.drop_duplicates = drop;
        self
    }

    /// Sets the near relation of [`admit`](super::Writer::admit). The default is the near relation of the index's parameters
    /// ([`Params::near`]).
    ///
    /// If the resemblance of `near` is lower than the one for which the bands were chosen, the bands find only a part
    /// of the near documents ([`Banding::recall`](crate::Banding::recall)). By distance, all near documents are found
    /// for any radius. A writer refuses a relation that requires data that the index does not store.
    ///
    /// ```
    /// use twindex::params::Near;
    /// use twindex::{Admitted, Index, Params, WriterOptions};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let index = Index::create(dir.path().join("x"), Params::builder().words(1).minhash(40, 3).build()?)?;
    /// let sketcher = index.sketcher()?;
    /// let mut writer = index.writer_with(WriterOptions::default().near(Near::resembling(0.95)?))?;
    /// writer.admit("a", &sketcher.sketch("one two three four five six seven eight nine ten")?)?;
    /// let b = sketcher.sketch("one two three four five six seven eight nine zero")?; // 9 of 11
    /// assert_eq!(writer.admit("b", &b)?, Admitted::New);
    /// # Ok::<(), twindex::Error>(())
    /// ```
    pub fn near(mut self, near: Near) -> Self {
        self.near = Some(near);
        self
    }

    /// Sets whether [`admit`](super::Writer::admit) by resemblance treats every document that shares a band as a duplicate
    /// (default false). If false, an index without signatures cannot check the resemblance, and `admit` fails: see
    /// [`Query::unverified`](crate::Query::unverified).
    pub fn unverified(mut self, unverified: bool) -> Self {
        self.unverified = unverified;
        self
    }

    /// Sets whether [`admit`](super::Writer::admit) estimates the resemblance of documents that share a band from their
    /// signatures (default false). If false, and the index stores [sets](crate::params::ParamsBuilder::sets),
    /// resemblance is computed exactly. If false, and it stores no sets, `admit` still estimates, but fails if it would
    /// drop duplicates ([`drop_duplicates`](Self::drop_duplicates)) or if the index stores marks.
    pub fn estimated(mut self, estimated: bool) -> Self {
        self.estimated = estimated;
        self
    }

    /// Sets how far the stamp of a document may be ahead of the highest earlier stamp. A document with a higher stamp
    /// is refused, because a single wrong stamp could expire all documents. The default is the age at which documents
    /// expire. The first document of an index may have any stamp.
    pub fn max_jump(mut self, max_jump: u64) -> Self {
        self.max_jump = Some(max_jump);
        self
    }

    /// Sets whether threads flush full memtables and merge segments while the writer is used (default true). If false, the
    /// commit that fills a memtable writes the segment itself, and segments are merged only by
    /// [`merge_step`](super::Writer::merge_step) and [`compact`](super::Writer::compact).
    pub fn background_merges(mut self, background: bool) -> Self {
        self.background = background;
        self
    }

    /// Sets the maximum write rate of background merges, in bytes per second; `None`, the default, means no limit.
    pub fn merge_rate(mut self, rate: Option<u64>) -> Self {
        self.rate = rate;
        self
    }

    /// Returns an error if an index with these parameters does not store the data that the near relation requires.
    pub(super) fn check(&self, params: &Params) -> Result<()> {
        self.near.map_or(Ok(()), |near| params.check_near(near))
    }

    pub(super) fn near_or(&self, params: &Params) -> Near {
        self.near.unwrap_or_else(|| params.near())
    }

    /// Returns what decides which documents are near.
    pub(super) fn near_by(&self, params: &Params) -> Relation {
        (self.near_or(params), self.unverified, self.estimated)
    }

    /// Returns the query for the documents near a document in `state`.
    pub(super) fn query(&self, state: Arc<State>, kept: Option<Kept<'_>>, set: &[u64]) -> Query {
        let near = self.near_or(&state.manifest.params);
        let query = Query::near(state, kept, set, near);
        let query = if self.unverified { query.unverified() } else { query };
        if self.estimated { query.estimated() } else { query }
    }

    pub(super) fn max_jump_or(&self, params: &Params) -> u64 {
        self.max_jump.or(params.expire_after).unwrap_or(u64::MAX)
    }

    /// Returns the number of threads that build a segment of this number of documents.
    pub(super) fn threads_for(&self, documents: u64) -> usize {
        let max = (documents / DOCUMENTS_PER_THREAD) as usize;
        if max < 2 {
            return 1;
        }
        self.threads
            .unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from))
            .clamp(1, max)
    }

    /// Returns whether each commit writes a segment, so that no batch is appended to the log.
    pub(super) fn makes_segments(&self) -> bool {
        self.one_segment || !self.logged
    }
}
