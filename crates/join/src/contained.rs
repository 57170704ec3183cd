//! Which documents of an index contain texts, and which of them the texts contain: counted on the sets of all documents.
//!
//! What an index keeps to find a resemblance does not find what contains a text. A document is stored under a part of its
//! elements, a fifth of them at a threshold of 0.8, and a text in a large document may have none of these. So the sets of all
//! documents are read, once for as many texts as fit into memory, and every element of a text leads to it.

use std::ops::{ControlFlow, Range};

use crate::slots::{NUMBERS, Postings, Slots};
use crate::threads::in_order;
use twindex::error::{Error, Result};
use twindex::segment::Segment;
use twindex::{KeyBuf, Snapshot};
use twindex_sketch::Nearness;

/// A document that contains a text or is contained in one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainmentHit {
    /// The number of the text.
    pub text: u32,
    /// The key of the document.
    pub key: KeyBuf,
    /// Elements that both have.
    pub shared: u32,
    /// Elements of the text.
    pub of_text: u32,
    /// Elements of the document.
    pub of_document: u32,
}

impl ContainmentHit {
    /// The greater of the two shares: of the text that is in the document, and of the document that is in the text. It is
    /// that of the smaller set.
    #[must_use]
    pub fn share(&self) -> f64 {
        f64::from(self.shared) / f64::from(self.of_text.min(self.of_document).max(1))
    }
}

/// The documents found for a text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ContainmentAnswers {
    /// Those of the greatest [share](ContainmentHit::share) first, of equal ones by their keys.
    pub hits: Vec<ContainmentHit>,
    /// The number of documents beyond the limit.
    pub left_out: u64,
}

impl ContainmentAnswers {
    /// Adds a document. From time to time those beyond the limit are left out.
    fn push(&mut self, hit: ContainmentHit, limit: usize) {
        self.hits.push(hit);
        if self.hits.len() >= limit.saturating_mul(2).saturating_add(HELD) {
            self.cut(limit);
        }
    }

    /// Sorts the documents, and leaves those beyond the limit out.
    fn cut(&mut self, limit: usize) {
        let by_share = |a: &ContainmentHit, b: &ContainmentHit| {
            b.share().total_cmp(&a.share()).then_with(|| a.key.cmp(&b.key))
        };
        self.hits.sort_unstable_by(by_share);
        self.left_out += self.hits.len().saturating_sub(limit) as u64;
        self.hits.truncate(limit);
    }
}

/// Documents of a text that are held before those beyond the limit are left out, beside twice the limit.
const HELD: usize = 64;

/// Texts that are asked about together, as many as fit into memory.
///
/// ```
/// use twindex::{Index, Params};
/// use twindex_join::ContainmentQueries;
///
/// # let dir = tempfile::tempdir()?;
/// let index = Index::create(dir.path().join("x"), Params::builder().words(1).minhash(4, 3).sets().build()?)?;
/// let (sketcher, mut writer) = (index.sketcher()?, index.writer()?);
/// writer.put("page", &sketcher.sketch("one two three four five six seven eight nine ten")?)?;
/// writer.put("word", &sketcher.sketch("two")?)?;
/// writer.commit()?;
///
/// let mut queries = ContainmentQueries::new(index.params(), 0.8, 1 << 20)?;
/// assert_eq!(queries.push(sketcher.sketch("two three four five zero")?.set())?, Some(0));
/// let mut hits = Vec::new();
/// queries.run(&index.snapshot(), 2, |hit| Ok(hits.push((hit.key.to_string(), hit.shared, hit.of_text, hit.of_document))))?;
/// // 4 of the 5 words are in the page, and the only word of the other document is in the text.
/// assert_eq!(hits, [("page".to_string(), 4, 5, 10), ("word".to_string(), 1, 5, 1)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ContainmentQueries {
    near: Nearness,
    memory: usize,
    /// Texts by all of their elements.
    slots: Slots,
    /// The sets of all texts, and where each ends.
    elements: Vec<u64>,
    ends: Vec<usize>,
}

/// Bytes of a text beside its elements: where it ends, and what threads count of it.
const TEXT_BYTES: usize = 64;
/// Documents that a thread takes at once.
const PIECE: u32 = 256;
/// Pieces for each thread that are counted before it is their turn.
const AHEAD: usize = 4;

/// A thread's working memory.
#[derive(Default)]
struct Worker {
    set: Vec<u64>,
    /// Of each text the elements that a document shares with it, or more; 0 between documents. Then the texts with a number
    /// above 0.
    counts: Vec<u32>,
    found: Vec<u32>,
}

impl ContainmentQueries {
    /// For documents of an index with these parameters, a share from which on one contains another, and this number of bytes.
    ///
    /// # Errors
    /// [`Error::Invalid`] for an index without sets, which cannot answer, and for a share that is not above 0 and up to 1.
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
        Ok(Self { near, memory, slots: Slots::new(), elements: Vec::new(), ends: Vec::new() })
    }

    /// Adds the set of a text, ascending and distinct hashes, and returns its number. None if it does not fit any more: then
    /// [`run`](Self::run) and [`clear`](Self::clear), and add it again. The first text always fits.
    ///
    /// # Errors
    /// [`Error::Invalid`] for hashes that do not ascend; [`Error::Limit`] for a set of 2^32 hashes.
    pub fn push(&mut self, set: &[u64]) -> Result<Option<u32>> {
        if !set.is_sorted_by(|a, b| a < b) {
            return Err(Error::Invalid("a set of shingle hashes: expected them to ascend, each once".into()));
        }
        if u32::try_from(set.len()).is_err() {
            let (limit, found) = (u64::from(u32::MAX), set.len() as u64);
            return Err(Error::Limit { what: "shingles of a set", limit, found });
        }
        // Columns double when they grow.
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

    /// Texts so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True without texts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The set of a text.
    fn set(&self, text: u32) -> &[u64] {
        let text = text as usize;
        let start = text.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.elements[start..self.ends[text]]
    }

    /// As [`run`](Self::run), with the documents of each text: at most `limit` of them, those of the greatest share, of the
    /// documents whose keys are wanted.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn answers(
        &self,
        snapshot: &Snapshot,
        threads: usize,
        limit: usize,
        is_wanted: impl Fn(&KeyBuf) -> bool + Sync,
    ) -> Result<Vec<ContainmentAnswers>> {
        let mut all = vec![ContainmentAnswers::default(); self.len()];
        self.run(snapshot, threads, |hit| {
            if is_wanted(&hit.key) {
                all[hit.text as usize].push(hit, limit);
            }
            Ok(())
        })?;
        for answers in &mut all {
            answers.cut(limit);
        }
        Ok(all)
    }

    /// Reads the sets of all documents on these threads, and hands each pair of a text and a document to `each` where one
    /// contains the other: at least the share of it is in the other, which has as many elements or more. Documents come in the
    /// order of the segments, and those with a mark, too; the texts of each by their numbers.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or what `each` returns.
    pub fn run(
        &self,
        snapshot: &Snapshot,
        threads: usize,
        mut each: impl FnMut(ContainmentHit) -> Result<()> + Send,
    ) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let segments: Vec<_> = snapshot.segments().collect();
        let pieces = |(at, documents): (usize, u32)| {
            (0..documents)
                .step_by(PIECE as usize)
                .map(move |start| (at, start..documents.min(start.saturating_add(PIECE))))
        };
        let documents = segments.iter().map(|(segment, _)| segment.documents() as u32);
        let pieces: Vec<(usize, Range<u32>)> = documents.enumerate().flat_map(pieces).collect();
        let mut workers: Vec<Worker> = (0..threads.max(1))
            .map(|_| Worker { counts: vec![0; self.len()], ..Worker::default() })
            .collect();
        let work = |worker: &mut Worker, (at, ordinals): &(usize, Range<u32>)| -> Result<_> {
            let (segment, deleted) = segments[*at];
            let mut hits = Vec::new();
            for ordinal in ordinals.clone().filter(|&ordinal| !deleted.contains(ordinal)) {
                self.count(worker, segment, ordinal, &mut hits)?;
            }
            segment.check_map()?;
            Ok(hits)
        };
        in_order(&mut workers, &pieces, AHEAD, work, |hits: Vec<ContainmentHit>| {
            hits.into_iter().try_for_each(&mut each)?;
            Ok(ControlFlow::Continue(()))
        })
        .map(drop)
    }

    /// Adds the texts that contain a document or that it contains.
    fn count(
        &self,
        worker: &mut Worker,
        segment: &Segment,
        ordinal: u32,
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
            // Elements are found by 32 bits, so that this may be too many.
            let at_most = std::mem::take(&mut counts[text as usize]) as usize;
            let of_text = self.set(text);
            let (smaller, larger) =
                if of_text.len() <= set.len() { (of_text, &**set) } else { (&**set, of_text) };
            // Of the two shares that of the smaller set is the greater one, so that it decides.
            if !self.near.is_met(at_most.min(smaller.len()), smaller.len(), larger.len()) {
                continue;
            }
            let Some(shared) = self.near.shared(smaller, larger) else { continue };
            let key = match &key {
                Some(key) => KeyBuf::clone(key),
                None => key.insert(segment.key(ordinal)?).clone(),
            };
            let [shared, of_text, of_document] = [shared, of_text.len(), set.len()].map(|count| count as u32);
            hits.push(ContainmentHit { text, key, shared, of_text, of_document });
        }
        Ok(())
    }
}

/// How many elements ahead slots are prefetched.
const FETCHED: usize = 8;
