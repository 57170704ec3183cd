//! Finds the documents of an index that contain given texts or are contained in them.
//!
//! The features that an index stores for resemblance do not find all containing documents. An index lists a document
//! under only a part of its elements (a fifth at a threshold of 0.8), and a text within a large document may have none
//! of these elements. With the parameter `suffixes`, an index lists documents under the other elements, too, and each
//! text is looked up. Otherwise, or if there are enough texts that it takes less time, this module indexes all elements
//! of the texts instead, and reads the sets of all documents once for each batch of texts that fits in memory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::{ControlFlow, Range};

use roaring::RoaringBitmap;

use crate::work::slots::{NUMBERS, Postings, Slots};
use crate::work::watched::SharedProgress;
use twindex::error::{Error, Result};
use twindex::segment::Segment;
use twindex::sys::threads::in_order;
use twindex::{KeyBuf, Snapshot};
use twindex_sketch::{Containment, Nearness, Resemblance, intersection_from, jaccard};

/// A document that contains a text or is contained in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainmentHit {
    /// The number of the text in its batch.
    pub text: u32,
    /// The key of the document.
    pub key: KeyBuf,
    /// Number of elements that are in both sets.
    pub shared: u32,
    /// Number of elements of the text.
    pub of_text: u32,
    /// Number of elements of the document.
    pub of_document: u32,
    /// Number of shared elements that no earlier document of a [cover](ContainmentQueries::gather) has; without a cover,
    /// the number of all shared elements.
    pub unique: u32,
}

impl ContainmentHit {
    /// Returns the fraction of the smaller set's elements that are also in the larger set.
    #[must_use]
    pub fn share(&self) -> f64 {
        f64::from(self.shared) / f64::from(self.of_text.min(self.of_document).max(1))
    }

    /// Returns the resemblance of both sets.
    #[must_use]
    pub fn resemblance(&self) -> Resemblance {
        let [intersection, of_text, of_document] =
            [self.shared, self.of_text, self.of_document].map(|count| count as usize);
        Resemblance::Exact { intersection, union: of_text + of_document - intersection }
    }

    /// Returns the fraction of the text that is contained in the document.
    #[must_use]
    pub fn query_in_hit(&self) -> Containment {
        Containment::counted(self.shared as usize, self.of_text as usize)
    }

    /// Returns the fraction of the text that the document adds to a cover.
    #[must_use]
    pub fn unique_in_query(&self) -> Containment {
        Containment::counted(self.unique as usize, self.of_text as usize)
    }

    /// Returns the fraction of the document that is contained in the text.
    #[must_use]
    pub fn hit_in_query(&self) -> Containment {
        Containment::counted(self.shared as usize, self.of_document as usize)
    }
}

/// The documents found for one text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainmentAnswers {
    /// The documents, sorted by descending [share](ContainmentHit::share), then by key; those of a cover in its order.
    pub hits: Vec<ContainmentHit>,
    /// Number of documents that the limit removed from `hits`.
    pub left_out: u64,
}

impl ContainmentAnswers {
    /// Adds a document. Truncates the list to `limit` documents when it has become about twice as long, and returns the
    /// bytes of the removed ones.
    fn push(&mut self, hit: ContainmentHit, limit: usize) -> usize {
        self.hits.push(hit);
        if self.hits.len() < limit.saturating_mul(2).saturating_add(HELD) {
            return 0;
        }
        let removed = self.cut(limit);
        removed.iter().map(bytes_of).sum()
    }

    /// Sorts the documents, and removes and returns the documents beyond the limit.
    fn cut(&mut self, limit: usize) -> Vec<ContainmentHit> {
        let by_share = |a: &ContainmentHit, b: &ContainmentHit| {
            b.share().total_cmp(&a.share()).then_with(|| a.key.cmp(&b.key))
        };
        self.hits.sort_unstable_by(by_share);
        let removed = self.hits.split_off(limit.min(self.hits.len()));
        self.left_out += removed.len() as u64;
        removed
    }
}

/// Returns an upper bound of the bytes of a document in a list that doubles when it grows.
fn bytes_of(hit: &ContainmentHit) -> usize {
    2 * size_of::<ContainmentHit>() + hit.key.as_bytes().map_or(0, <[u8]>::len)
}

/// The list of documents of a text is truncated to the limit as soon as it has twice the limit plus this number.
const HELD: usize = 64;

/// A batch of texts that are queried at once. It holds as many texts as fit in memory.
///
/// ```
/// use twindex::{Index, Params};
/// use twindex_join::{ContainmentQueries, SharedProgress};
///
/// # let dir = tempfile::tempdir()?;
/// let index = Index::create(dir.path().join("x"), Params::builder().words(1).minhash(4, 3).sets().build()?)?;
/// let (sketcher, mut writer) = (index.sketcher()?, index.writer()?);
/// writer.put("page", &sketcher.sketch("one two three four five six seven eight nine ten")?)?;
/// writer.put("word", &sketcher.sketch("two")?)?;
/// writer.commit()?;
///
/// let mut queries = ContainmentQueries::new(&index.params(), 0.8, 1 << 20)?;
/// assert_eq!(queries.push(sketcher.sketch("two three four five zero")?.set())?, Some(0));
/// let mut hits = Vec::new();
/// queries.for_each_answer(&index.snapshot(), 2, usize::MAX, |_| true, &SharedProgress::default(), |found| {
///     let found = found.hits.into_iter();
///     hits.extend(found.map(|hit| (hit.key.to_string(), hit.shared, hit.of_text, hit.of_document)));
///     Ok::<(), twindex::Error>(())
/// })?;
/// // 4 of the 5 words are in the page, and the only word of the other document is in the text.
/// assert_eq!(hits, [("word".to_string(), 1, 5, 1), ("page".to_string(), 4, 5, 10)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ContainmentQueries {
    near: Nearness,
    gathers: bool,
    memory: usize,
    /// Maps each element to the numbers of the texts that contain it.
    slots: Slots,
    /// The sets of all texts, concatenated; `ends` holds the end of each set.
    elements: Vec<u64>,
    ends: Vec<usize>,
}

/// Estimated bytes per text in addition to its elements: the end of its set, and one counter in each thread.
const TEXT_BYTES: usize = 64;
/// Documents found for one text may take this number of bytes whatever the memory.
const LEAST_MEMORY: usize = 1 << 20;
/// Number of documents that a thread processes at once.
const PIECE: u32 = 256;
/// Number of texts that a thread looks up at once.
const TEXTS: u32 = 16;
/// Number of elements of documents that are compared with the texts in the time in which an element of a text is looked up.
const READS_A_LOOKUP: u64 = 64;
/// Number of pieces per thread that may be processed before the results of an earlier piece are passed to the callback.
const AHEAD: usize = 4;

/// Working memory of a thread.
#[derive(Default)]
struct Worker {
    set: Vec<u64>,
    /// For each text, an upper bound of the number of elements that it shares with the current document; all bounds are
    /// 0 between two documents. `found` lists the texts whose bound is above 0.
    counts: Vec<u32>,
    found: Vec<u32>,
}

/// Looks up a set in a segment with suffixes. Calls `each` with each document that contains at least the share of `near` of
/// the set, or of whose set it contains at least that share, except those in `deleted`: with its ordinal, the number of
/// shared elements and the number of its elements. `set` must ascend; `scratch` is a buffer.
///
/// # Errors
/// [`Error::Corrupt`], or the error of `each`.
pub fn for_each_nested(
    segment: (&Segment, &RoaringBitmap),
    set: &[u64],
    near: Nearness,
    scratch: &mut Vec<u64>,
    each: impl FnMut(u32, usize, usize) -> Result<()>,
) -> Result<()> {
    for_each_sharing(segment, set, near, false, scratch, each)
}

/// Like [`for_each_nested`]. If `gathers`, only the share of `set` that the document contains is compared with that of `near`.
fn for_each_sharing(
    (segment, deleted): (&Segment, &RoaringBitmap),
    set: &[u64],
    near: Nearness,
    gathers: bool,
    scratch: &mut Vec<u64>,
    mut each: impl FnMut(u32, usize, usize) -> Result<()>,
) -> Result<()> {
    let gathered = near.least_shared(set.len(), set.len()).unwrap_or(usize::MAX);
    segment.containment_candidates(set, near, |ordinal, at_most| {
        if deleted.contains(ordinal) || gathers && at_most < gathered {
            return Ok(());
        }
        let size = segment.set_size(ordinal)?;
        let Some(min) = least_shared(near, gathers, set.len(), size).filter(|&min| min <= at_most) else {
            return Ok(());
        };
        match segment.shared_from(ordinal, set, min, scratch)? {
            Some(shared) => each(ordinal, shared, size),
            None => Ok(()),
        }
    })
}

/// Returns the number of elements that a text and a document must share; `None` if they are too small for it.
fn least_shared(near: Nearness, gathers: bool, of_text: usize, of_document: usize) -> Option<usize> {
    if gathers {
        return near.least_shared(of_text, of_text).filter(|&min| min <= of_document);
    }
    // Of the two shares, that of the smaller set is the greater one. So only this share is compared with the threshold.
    near.least_shared(of_text.min(of_document), of_text.max(of_document))
}

impl ContainmentQueries {
    /// Creates an empty batch for documents of an index with these parameters. `threshold` is the minimum share of the
    /// smaller set, and `memory` the memory budget in bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the index stores no sets, or if the threshold is not above 0 and at most 1.
    pub fn new(params: &twindex::Params, threshold: f64, memory: usize) -> Result<Self> {
        if !params.sets {
            return Err(Error::Invalid(
                "this index keeps no sets, by which containment is counted, and nothing else that it keeps finds all that contains \
                 a text; make another index with sets"
                    .into(),
            ));
        }
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(Error::Invalid(format!("containment {threshold}: expected above 0 and up to 1")));
        }
        let near = Nearness::Containment(threshold);
        Ok(Self { near, gathers: false, memory, slots: Slots::new(), elements: Vec::new(), ends: Vec::new() })
    }

    /// Finds a small cover of each text instead: [`for_each_answer`](Self::for_each_answer) takes the document that shares
    /// the most elements with the text, then the document that shares the most of its other elements, and so on, until no
    /// document has the share `threshold` of the text that no earlier one has. Of equal documents, it takes the one with
    /// the smallest key. This is the greedy cover, at most ln n + 1 times as large as the smallest one of n elements.
    ///
    /// ```
    /// use twindex::{Index, Params};
    /// use twindex_join::{ContainmentQueries, SharedProgress};
    ///
    /// # let dir = tempfile::tempdir()?;
    /// let index = Index::create(dir.path().join("x"), Params::builder().words(1).minhash(4, 3).sets().build()?)?;
    /// let (sketcher, mut writer) = (index.sketcher()?, index.writer()?);
    /// for (key, text) in [("a", "one two three four"), ("b", "three four five"), ("c", "five six seven")] {
    ///     writer.put(key, &sketcher.sketch(text)?)?;
    /// }
    /// writer.commit()?;
    ///
    /// let mut queries = ContainmentQueries::new(&index.params(), 0.2, 1 << 20)?.gather();
    /// queries.push(sketcher.sketch("one two three four five six")?.set())?;
    /// let mut cover = Vec::new();
    /// queries.for_each_answer(&index.snapshot(), 2, usize::MAX, |_| true, &SharedProgress::default(), |found| {
    ///     cover.extend(found.hits.into_iter().map(|hit| (hit.key.to_string(), hit.shared, hit.unique)));
    ///     Ok::<(), twindex::Error>(())
    /// })?;
    /// assert_eq!(cover, [("a".to_string(), 4, 4), ("c".to_string(), 2, 2)]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn gather(mut self) -> Self {
        self.gathers = true;
        self
    }

    /// Adds the set of a text, as ascending distinct hashes, and returns its number. Returns `None` if the set does not
    /// fit in memory. The caller must then call [`for_each_answer`](Self::for_each_answer) and [`clear`](Self::clear), and add
    /// the set again. The first text of a batch always fits.
    ///
    /// # Errors
    /// [`Error::Invalid`] for hashes that do not ascend; [`Error::Limit`] for a set of 2^32 or more hashes.
    pub fn push(&mut self, set: &[u64]) -> Result<Option<u32>> {
        if !set.is_sorted_by(|a, b| a < b) {
            return Err(Error::Invalid("a set of shingle hashes: expected them to ascend, each once".into()));
        }
        if u32::try_from(set.len()).is_err() {
            let (limit, found) = (u64::from(u32::MAX), set.len() as u64);
            return Err(Error::Limit { what: "shingles of a set", limit, found });
        }
        // Doubles the size, because vectors double their capacity when they grow.
        let columns = 2 * size_of::<u64>() * (self.elements.len() + set.len());
        let needed = self.slots.bytes_with(set.len()) + columns + TEXT_BYTES * (self.len() + 1);
        if !self.is_empty() && (needed > self.memory || self.len() >= NUMBERS) {
            return Ok(None);
        }
        let number = self.len() as u32;
        self.slots.add(number, set);
        self.elements.extend_from_slice(set);
        self.ends.push(self.elements.len());
        Ok(Some(number))
    }

    /// Removes all texts.
    pub fn clear(&mut self) {
        self.slots = Slots::new();
        self.elements.clear();
        self.ends.clear();
    }

    /// Returns the number of texts.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Returns whether the batch has no texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn set(&self, text: u32) -> &[u64] {
        let text = text as usize;
        let start = text.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.elements[start..self.ends[text]]
    }

    /// Compares the texts with all live documents, also those marked as duplicates, on `threads` threads. Passes the documents
    /// found for each text to `each`, in the order of the texts: documents whose larger set contains at least the minimum
    /// share of the smaller set. Skips documents whose key `is_wanted` rejects, and finds at most `limit` documents per
    /// text: the documents with the greatest shares. The documents do not depend on the number of threads or on memory: if
    /// those of all texts do not fit, fewer texts are compared at once. Another thread can read the progress from `watched`,
    /// and stop the work with it.
    ///
    /// # Errors
    /// [`Error::Limit`] if the documents found for one text do not fit in memory; [`Error::Corrupt`], the error of `each`,
    /// or that of [`SharedProgress::check`].
    pub fn for_each_answer<E: From<Error> + Send>(
        &self,
        snapshot: &Snapshot,
        threads: usize,
        limit: usize,
        is_wanted: impl Fn(&KeyBuf) -> bool + Sync,
        watched: &SharedProgress,
        mut each: impl FnMut(ContainmentAnswers) -> std::result::Result<(), E> + Send,
    ) -> std::result::Result<(), E> {
        let mut waiting = Vec::new();
        waiting.extend((!self.is_empty()).then(|| 0..self.len() as u32));
        while let Some(texts) = waiting.pop() {
            let Some(mut all) = self.found((snapshot, threads), texts.clone(), limit, &is_wanted, watched)?
            else {
                let middle = texts.start + texts.len() as u32 / 2;
                waiting.extend([middle..texts.end, texts.start..middle]);
                continue;
            };
            if !self.gathers {
                for answers in &mut all {
                    answers.cut(limit);
                }
                all.into_iter().try_for_each(&mut each)?;
                continue;
            }
            let cover =
                |(): &mut (), found: ContainmentAnswers| self.cover(snapshot, &found.hits).map_err(E::from);
            let take = |mut hits: Vec<ContainmentHit>| {
                let left_out = hits.len().saturating_sub(limit) as u64;
                hits.truncate(limit);
                each(ContainmentAnswers { hits, left_out })?;
                watched.check()?;
                Ok(ControlFlow::Continue(()))
            };
            in_order(&mut vec![(); threads.max(1)], all, AHEAD, cover, take).map(drop)?;
        }
        Ok(())
    }

    /// Returns the documents found for a range of texts, if they fit in memory.
    ///
    /// # Errors
    /// As [`for_each_answer`](Self::for_each_answer) returns them.
    fn found(
        &self,
        (snapshot, threads): (&Snapshot, usize),
        texts: Range<u32>,
        limit: usize,
        is_wanted: impl Fn(&KeyBuf) -> bool + Sync,
        watched: &SharedProgress,
    ) -> Result<Option<Vec<ContainmentAnswers>>> {
        let limit = if self.gathers { usize::MAX } else { limit };
        let (memory, mut held) = (self.memory.max(LEAST_MEMORY), 0);
        let mut all = vec![ContainmentAnswers::default(); texts.len()];
        // The documents of a piece are not counted before it is complete.
        let ahead = threads.max(1) * AHEAD * 2 * size_of::<ContainmentHit>();
        let most = if texts.len() == 1 { usize::MAX } else { memory / ahead };
        let fits = self.for_each_piece((snapshot, threads), texts.clone(), most, |hits| {
            for hit in hits.into_iter().filter(|hit| is_wanted(&hit.key)) {
                held += bytes_of(&hit);
                held -= all[(hit.text - texts.start) as usize].push(hit, limit);
            }
            watched.check()?;
            Ok(if held > memory { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
        })?;
        if fits.is_break() && texts.len() == 1 {
            let what =
                "bytes of the documents found for one text: use a limit, a greater share or more memory";
            return Err(Error::Limit { what, limit: memory as u64, found: held as u64 });
        }
        Ok(fits.is_continue().then_some(all))
    }

    /// Returns the [cover](Self::gather) of a text by the documents of `hits`, all of this text.
    fn cover(&self, snapshot: &Snapshot, hits: &[ContainmentHit]) -> Result<Vec<ContainmentHit>> {
        let mut rest = hits.first().map_or(Vec::new(), |hit| self.set(hit.text).to_vec());
        let min = self.near.least_shared(rest.len(), rest.len()).unwrap_or(usize::MAX);
        // The unique elements of a document can only become fewer. So the counts in the heap are upper bounds, and a
        // document is counted again only if its bound is the greatest one.
        let entries = hits.iter().enumerate().map(|(at, hit)| (hit.unique, Reverse(&hit.key), at, 0));
        let mut heap: BinaryHeap<_> = entries.collect();
        let mut cover = Vec::new();
        while let Some((unique, key, at, counted_at)) = heap.pop() {
            let Some(set) = snapshot.get(key.0.as_key())?.map(|record| record.set) else {
                let why =
                    format!("document {} is listed by its set but not by its key: `verify` the index", key.0);
                return Err(Error::Invalid(why));
            };
            if counted_at < cover.len() {
                let unique = jaccard(&rest, &set).0;
                if unique >= min {
                    heap.push((unique as u32, key, at, cover.len()));
                }
                continue;
            }
            rest.retain(|element| set.binary_search(element).is_err());
            cover.push(ContainmentHit { unique, ..hits[at].clone() });
        }
        Ok(cover)
    }

    /// Returns whether looking up each of these texts takes less time than reading all sets.
    fn looks_up(&self, snapshot: &Snapshot, texts: Range<u32>) -> bool {
        let mut entries = 0;
        for (segment, _) in snapshot.segments() {
            let Some(of_segment) = segment.containment_entries() else { return false };
            entries += of_segment;
        }
        let elements: usize = texts.map(|text| self.set(text).len()).sum();
        elements as u64 * READS_A_LOOKUP <= entries
    }

    /// Compares a range of the texts with all live documents. Passes the documents found to `take`, one piece of the
    /// documents or of the texts at a time; for a piece without any, passes an empty list. Ends if a piece has more than
    /// `most` documents.
    fn for_each_piece(
        &self,
        (snapshot, threads): (&Snapshot, usize),
        texts: Range<u32>,
        most: usize,
        mut take: impl FnMut(Vec<ContainmentHit>) -> Result<ControlFlow<()>> + Send,
    ) -> Result<ControlFlow<()>> {
        let segments: Vec<_> = snapshot.segments().collect();
        let looks_up = self.looks_up(snapshot, texts.clone());
        let piece = if looks_up { TEXTS } else { PIECE };
        let pieces = |(at, rows): (usize, Range<u32>)| {
            let end = rows.end;
            rows.step_by(piece as usize).map(move |start| (at, start..end.min(start.saturating_add(piece))))
        };
        let rows = |segment: &Segment| if looks_up { texts.clone() } else { 0..segment.documents() as u32 };
        let rows = segments.iter().map(|(segment, _)| rows(segment));
        let pieces: Vec<(usize, Range<u32>)> = rows.enumerate().flat_map(pieces).collect();
        let mut workers: Vec<Worker> = (0..threads.max(1))
            .map(|_| Worker { counts: vec![0; self.len()], ..Worker::default() })
            .collect();
        let work = |worker: &mut Worker, (at, rows): &(usize, Range<u32>)| -> Result<_> {
            let (segment, deleted) = segments[*at];
            let mut hits = Vec::new();
            for row in rows.clone() {
                if hits.len() > most {
                    break;
                }
                if looks_up {
                    self.look_up(worker, (segment, deleted), row, &mut hits)?;
                } else if !deleted.contains(row) {
                    self.count(worker, segment, row, &texts, &mut hits)?;
                }
            }
            segment.check_map()?;
            Ok(hits)
        };
        in_order(&mut workers, &pieces, AHEAD, work, |hits| {
            if hits.len() > most { Ok(ControlFlow::Break(())) } else { take(hits) }
        })
    }

    /// Adds all documents of the segment that contain the text or are contained in it to `hits`.
    fn look_up(
        &self,
        worker: &mut Worker,
        (segment, deleted): (&Segment, &RoaringBitmap),
        text: u32,
        hits: &mut Vec<ContainmentHit>,
    ) -> Result<()> {
        let set = self.set(text);
        let each = |ordinal, shared, size| {
            let [shared, of_text, of_document] = [shared, set.len(), size].map(|count| count as u32);
            let key = segment.key(ordinal)?;
            hits.push(ContainmentHit { text, key, shared, of_text, of_document, unique: shared });
            Ok(())
        };
        for_each_sharing((segment, deleted), set, self.near, self.gathers, &mut worker.set, each)
    }

    /// Adds those of the texts that contain the document or are contained in it to `hits`.
    fn count(
        &self,
        worker: &mut Worker,
        segment: &Segment,
        ordinal: u32,
        texts: &Range<u32>,
        hits: &mut Vec<ContainmentHit>,
    ) -> Result<()> {
        let Worker { set, counts, found } = worker;
        segment.set(ordinal, set)?;
        let mut note = |text: u32| {
            let count = &mut counts[text as usize];
            if *count == 0 {
                found.push(text);
            }
            *count += 1;
        };
        for (at, &element) in set.iter().enumerate() {
            if let Some(&later) = set.get(at + FETCHED) {
                self.slots.fetch(later);
            }
            match self.slots.postings(element) {
                Postings::None => {}
                Postings::One(text) => note(text),
                Postings::Several(texts) => texts.iter().copied().for_each(&mut note),
            }
        }
        found.sort_unstable();
        let mut key = None;
        for text in found.drain(..) {
            // This number may be too high, because elements are compared by 32 bits of their hashes only.
            let at_most = std::mem::take(&mut counts[text as usize]) as usize;
            if !texts.contains(&text) {
                continue;
            }
            let of_text = self.set(text);
            let min = least_shared(self.near, self.gathers, of_text.len(), set.len());
            let Some(min) = min.filter(|&min| min <= at_most) else { continue };
            let Some(shared) = intersection_from(of_text, set, min) else { continue };
            let key = match &key {
                Some(key) => KeyBuf::clone(key),
                None => key.insert(segment.key(ordinal)?).clone(),
            };
            let [shared, of_text, of_document] = [shared, of_text.len(), set.len()].map(|count| count as u32);
            hits.push(ContainmentHit { text, key, shared, of_text, of_document, unique: shared });
        }
        Ok(())
    }
}

/// How many elements ahead of the current one slots are prefetched.
const FETCHED: usize = 8;
