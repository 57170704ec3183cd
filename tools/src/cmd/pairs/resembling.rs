//! Finds pairs of documents by resemblance. Joins the sets in the index, or finds candidate pairs that share a band,
//! and verifies them by signatures, sets or texts.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use anyhow::bail;
use rayon::prelude::*;
use twindex::extsort::Merge;
use twindex::segment::Segment;
use twindex::segment::keys::LiveKeys;
use twindex::sketch::matches;
use twindex::store::snapshot::Place;
use twindex::{Index, KeyBuf, Resemblance, Snapshot};
use twindex_corpus::page::PairScore;
use twindex_corpus::texts::Texts;
use twindex_join::{
    Agreement, Candidates, Families, JoinResources, SampledBy, ShingleSets, Sorted, Sorter,
    candidates_agreeing, candidates_agreeing_across, sorted_pairs_of_sets,
};

use super::args::{PairLines, PairPart, PairsArgs, PairsFound, add_line};
use crate::in_order::in_order;
use crate::options::VerifyChoice;
use crate::progress::Watching;

/// Number of candidate pairs that a thread verifies at a time.
const CHUNK: usize = 512;

/// Near pairs with their scores.
pub(super) struct ResemblingPairs {
    /// The packed pairs: the numbers of the two documents, smaller key first, and a 64-bit score. They are sorted by
    /// document numbers, which is the order of keys.
    pairs: Sorted<u128>,
    scores: ResemblingScores,
    pub(super) candidates: u64,
    pub(super) capped_buckets: u64,
}

/// How the 64-bit score of a pair is encoded.
#[derive(Clone, Copy)]
enum ResemblingScores {
    /// Sizes of intersection and union.
    Counted,
    /// Number of equal minima, out of `minima` minima of `bits` bits each.
    Estimated { minima: usize, bits: u8 },
}

impl ResemblingScores {
    fn resemblance(self, score: u64) -> Resemblance {
        match self {
            Self::Counted => {
                Resemblance::Exact { intersection: (score >> 32) as usize, union: score as u32 as usize }
            }
            Self::Estimated { minima, bits } => Resemblance::from_matches(score as usize, minima, bits),
        }
    }
}

impl ResemblingPairs {
    /// Passes each pair to `each`. Documents are numbered in key order.
    pub(super) fn for_each(
        &self,
        mut each: impl FnMut(u32, u32, Resemblance) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        self.pairs.for_each(|pair| {
            each((pair >> 96) as u32, (pair >> 64) as u32, self.scores.resemblance(pair as u64))
        })
    }
}

/// An index and its live documents, each as segment and ordinal, in key order.
struct LiveIndex<'a> {
    path: &'a Path,
    index: &'a Index,
    snapshot: &'a Snapshot,
    segments: Vec<&'a Segment>,
    documents: Vec<(u32, u32)>,
    /// Positions in `documents`, sorted by segment and ordinal.
    places: Vec<u32>,
}

impl<'a> LiveIndex<'a> {
    fn new(path: &'a Path, index: &'a Index, snapshot: &'a Snapshot) -> twindex::Result<Self> {
        let live: Vec<_> = snapshot.segments().collect();
        let mut documents = Vec::with_capacity(snapshot.documents() as usize);
        if let [(segment, deleted)] = live.as_slice() {
            let live = (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal));
            documents.extend(live.map(|ordinal| (0, ordinal)));
        } else {
            // In a segment, ordinals follow the order of keys, so one merge of the segments sorts all documents by key.
            let sources = live.iter().map(|(segment, deleted)| LiveKeys::new(segment, Some(deleted)));
            let mut merge = Merge::new(sources, |a, b| a.0.cmp(&b.0));
            while let Some((number, &(_, ordinal))) = merge.next()? {
                documents.push((number as u32, ordinal));
            }
            snapshot.check_maps()?;
        }
        let segments = live.into_iter().map(|(segment, _)| segment).collect();
        let mut places: Vec<u32> = (0..documents.len() as u32).collect();
        places.sort_unstable_by_key(|&place| documents[place as usize]);
        Ok(Self { path, index, snapshot, segments, documents, places })
    }

    fn key(&self, document: u32) -> twindex::Result<KeyBuf> {
        let (segment, ordinal) = self.documents[document as usize];
        self.segments[segment as usize].key(ordinal)
    }

    /// Adds the sets of all documents in key order.
    fn push_sets(&self, sets: &mut ShingleSets) -> twindex::Result<()> {
        let mut set = Vec::new();
        for &(segment, ordinal) in &self.documents {
            self.segments[segment as usize].set(ordinal, &mut set)?;
            sets.push(&set)?;
        }
        Ok(())
    }

    fn signature(&self, document: u32) -> twindex::Result<&[u8]> {
        let (segment, ordinal) = self.documents[document as usize];
        self.segments[segment as usize].signature(ordinal)
    }

    /// Returns a function that numbers documents in key order from `start` on. The caller must pass the documents of
    /// each segment in turn, in the order of ordinals.
    fn numbers(&self, start: u32) -> impl FnMut(Place<'_>) -> twindex::Result<Option<u32>> {
        let mut places = self.places.iter();
        move |_| Ok(places.next().map(|place| start + place))
    }
}

/// One or two indexes. The numbers of documents in the second index follow those in the first.
pub(super) struct LiveIndexes<'a> {
    left: LiveIndex<'a>,
    right: Option<LiveIndex<'a>>,
}

impl<'a> LiveIndexes<'a> {
    pub(super) fn new(
        args: &'a PairsArgs,
        left: (&'a Index, &'a Snapshot),
        right: Option<(&'a Path, &'a Index, &'a Snapshot)>,
    ) -> anyhow::Result<Self> {
        let right = right.map(|(path, index, snapshot)| LiveIndex::new(path, index, snapshot));
        Ok(Self { left: LiveIndex::new(args.index()?, left.0, left.1)?, right: right.transpose()? })
    }

    fn first_right(&self) -> u32 {
        self.left.documents.len() as u32
    }

    fn side(&self, document: u32) -> (&LiveIndex<'_>, u32) {
        match &self.right {
            Some(right) if document >= self.first_right() => (right, document - self.first_right()),
            _ => (&self.left, document),
        }
    }

    pub(super) fn key(&self, document: u32) -> twindex::Result<KeyBuf> {
        let (side, document) = self.side(document);
        side.key(document)
    }

    /// Returns the number of the first document of the second index; `None` without a second index.
    pub(super) fn boundary(&self) -> Option<u32> {
        self.right.as_ref().map(|_| self.first_right())
    }

    /// Returns the samples of all documents, indexed by document number.
    pub(super) fn samples(
        &self,
        by: SampledBy,
        scratch: &Path,
        memory: usize,
    ) -> twindex::Result<ShingleSets> {
        let mut samples = ShingleSets::new(scratch, memory);
        let mut sample = Vec::new();
        for side in std::iter::once(&self.left).chain(&self.right) {
            for &(segment, ordinal) in &side.documents {
                let segment = side.segments[segment as usize];
                match by {
                    SampledBy::Bottom(_) => segment.bottom(ordinal, &mut sample)?,
                    SampledBy::Modulus(_) => segment.modular(ordinal, &mut sample)?,
                }
                samples.push(&sample)?;
            }
        }
        Ok(samples)
    }

    /// Returns an error if a mapped file could not be read.
    pub(super) fn check_maps(&self) -> twindex::Result<()> {
        self.left.snapshot.check_maps()?;
        self.right.as_ref().map_or(Ok(()), |right| right.snapshot.check_maps())
    }

    /// Returns the sets of all documents, indexed by document number.
    fn sets(&self, scratch: &Path, memory: usize) -> twindex::Result<ShingleSets> {
        let mut sets = ShingleSets::new(scratch, memory);
        self.left.push_sets(&mut sets)?;
        self.right.as_ref().map_or(Ok(()), |right| right.push_sets(&mut sets))?;
        Ok(sets)
    }

    fn candidates(
        &self,
        agreement: Agreement,
        max_bucket: usize,
        budget: (&Path, usize),
    ) -> twindex::Result<Candidates> {
        let left = self.left.numbers(0);
        match &self.right {
            None => candidates_agreeing(self.left.snapshot, agreement, max_bucket, budget, left),
            Some(right) => candidates_agreeing_across(
                (self.left.snapshot, right.snapshot),
                self.first_right(),
                agreement,
                max_bucket,
                budget,
                (left, right.numbers(self.first_right())),
            ),
        }
    }
}

/// Finds the pairs, in one index or across two, that agree in the required number of features and whose resemblance is
/// at least `threshold`.
pub(super) fn find(
    args: &PairsArgs,
    sides: &LiveIndexes<'_>,
    (threshold, verify): (f64, VerifyChoice),
    agreement: Agreement,
    scratch: &Path,
) -> anyhow::Result<ResemblingPairs> {
    let memory = args.work.memory;
    let by_index = verify == VerifyChoice::Exact && args.texts.is_empty();
    let max_bucket = args.max_bucket() as usize;
    if by_index && !args.features.options().are_given() {
        return by_sets(
            sides,
            (threshold, max_bucket),
            JoinResources { dir: scratch, memory, threads: rayon::current_num_threads() },
        );
    }
    let found = sides.candidates(agreement, max_bucket, (scratch, memory / 4))?;
    // Candidates arrive in order. The sorter only stores the pairs, in memory or on disk.
    let mut pairs: Sorter<u128> = Sorter::new(scratch, memory / 4);
    let mut push = |a: u32, b: u32, score: u64| {
        pairs.push(u128::from(a) << 96 | u128::from(b) << 64 | u128::from(score))
    };
    let mut count = 0;
    let scores = match verify {
        VerifyChoice::Signature => {
            let kept = sides.left.snapshot.params().minhash;
            let (minima, bits) = kept.map_or((0, 0), |kept| (kept.minima(), kept.signature_bits));
            found.for_each_batch(|batch| {
                count += batch.len() as u64;
                let estimated: Vec<_> = batch
                    .par_chunks(CHUNK)
                    .map(|pairs| estimated(sides, pairs, (minima, bits), threshold))
                    .collect::<twindex::Result<_>>()?;
                estimated.into_iter().flatten().try_for_each(|(a, b, same)| push(a, b, same))
            })?;
            ResemblingScores::Estimated { minima, bits }
        }
        VerifyChoice::Exact => {
            let sets = DocumentSets::of(args, sides, scratch, |needed| {
                found.for_each_batch(|batch| {
                    needed.extend(batch.iter().flat_map(|&(a, b)| [a, b]));
                    Ok(())
                })
            })?;
            let mut counter = PairCounter::new(&sets, threshold, memory / 4)?;
            found.for_each_batch(|batch| {
                count += batch.len() as u64;
                counter.count(batch)?.into_iter().try_for_each(|(a, b, resemblance)| {
                    let Resemblance::Exact { intersection, union } = resemblance else { return Ok(()) };
                    push(a, b, (intersection as u64) << 32 | union as u64)
                })
            })?;
            ResemblingScores::Counted
        }
    };
    Ok(ResemblingPairs {
        pairs: pairs.finish()?,
        scores,
        candidates: count,
        capped_buckets: found.capped_buckets,
    })
}

/// Finds the pairs whose exact resemblance, computed from the sets in the index, is at least `threshold`.
fn by_sets(
    sides: &LiveIndexes<'_>,
    (threshold, max_bucket): (f64, usize),
    resources: JoinResources<'_>,
) -> anyhow::Result<ResemblingPairs> {
    let sets = sides.sets(resources.dir, resources.memory / 4)?;
    let rest = JoinResources { memory: resources.memory / 4 * 3, ..resources };
    let (pairs, found) = sorted_pairs_of_sets(&sets, sides.boundary(), threshold, max_bucket, rest)?;
    Ok(ResemblingPairs {
        pairs,
        scores: ResemblingScores::Counted,
        candidates: found.candidates,
        capped_buckets: found.capped,
    })
}

/// Finds the pairs whose estimated resemblance reaches the threshold. Their score is the number of equal minima.
fn estimated(
    sides: &LiveIndexes<'_>,
    pairs: &[(u32, u32)],
    (minima, bits): (usize, u8),
    threshold: f64,
) -> twindex::Result<Vec<(u32, u32, u64)>> {
    let mut near = Vec::new();
    for &(a, b) in pairs {
        let ((left, a_there), (right, b_there)) = (sides.side(a), sides.side(b));
        let same = matches(left.signature(a_there)?, right.signature(b_there)?, minima, bits);
        if Resemblance::from_matches(same, minima, bits).at_least(threshold) {
            near.push((a, b, same as u64));
        }
    }
    Ok(near)
}

/// The shingle sets of all documents in the indexes, or of the documents whose texts were read.
pub(super) struct DocumentSets {
    texts: Texts,
    /// The number of each document's set; `None` if it equals the number of the document.
    numbers: Option<HashMap<u32, u32>>,
}

impl DocumentSets {
    /// Reads the sets from the indexes. With `--texts`, computes instead the sets of the documents that `need` adds.
    pub(super) fn of(
        args: &PairsArgs,
        sides: &LiveIndexes<'_>,
        scratch: &Path,
        need: impl FnOnce(&mut HashSet<u32>) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        if args.texts.is_empty() {
            return Ok(Self { texts: Texts::of(sides.sets(scratch, args.work.memory / 4)?), numbers: None });
        }
        let mut needed = HashSet::new();
        need(&mut needed)?;
        let (texts, numbers) = texts(args, sides, needed, scratch)?;
        Ok(Self { texts, numbers: Some(numbers) })
    }

    fn number(&self, document: u32) -> u32 {
        self.numbers.as_ref().map_or(document, |numbers| numbers[&document])
    }
}

/// Counts the common shingles of pairs of documents, and finds the pairs whose resemblance reaches the threshold.
pub(super) struct PairCounter<'a> {
    sets: &'a DocumentSets,
    families: Families<'a>,
    threshold: f64,
}

impl<'a> PairCounter<'a> {
    /// Creates a counter that uses up to `memory` bytes.
    pub(super) fn new(sets: &'a DocumentSets, threshold: f64, memory: usize) -> twindex::Result<Self> {
        Ok(Self { sets, families: Families::new(&sets.texts.sets, memory)?, threshold })
    }

    /// Returns the pairs of `pairs` whose resemblance reaches the threshold, in the same order.
    pub(super) fn count(&mut self, pairs: &[(u32, u32)]) -> twindex::Result<Vec<(u32, u32, Resemblance)>> {
        let Self { sets, families, threshold } = self;
        let threshold = *threshold;
        let (pairs, of): (Vec<_>, Vec<_>) = pairs
            .iter()
            .map(|&(a, b)| ((a, b), (sets.number(a), sets.number(b))))
            .filter(|&(_, (a, b))| sets.texts.sets.may_resemble(a, b, threshold))
            .unzip();
        let wanted = families.plan(&of);
        for piece in families.pieces(&wanted) {
            let differences: Vec<_> = piece
                .par_iter()
                .with_max_len(CHUNK / 16)
                .map(|&(set, reference)| families.difference(set, reference))
                .collect::<twindex::Result<_>>()?;
            for difference in differences {
                families.add(difference);
            }
        }
        let families = &*families;
        let found: Vec<_> = pairs
            .par_chunks(CHUNK)
            .zip(of.par_chunks(CHUNK))
            .map(|(pairs, of)| {
                let (mut found, mut next) = (Vec::new(), pairs.iter().zip(of));
                // Near pairs of sets arrive in the order of `of`, so a single scan maps them back to documents.
                families.for_each_resembling(of, threshold, |left, right, resemblance| {
                    if let Some((&(a, b), _)) = next.find(|&(_, &sets)| sets == (left, right)) {
                        found.push((a, b, resemblance));
                    }
                })?;
                Ok(found)
            })
            .collect::<twindex::Result<_>>()?;
        Ok(found.concat())
    }
}

/// Reads the texts of these documents. Returns their shingle sets, and the number of each document's set.
fn texts(
    args: &PairsArgs,
    sides: &LiveIndexes<'_>,
    needed: HashSet<u32>,
    scratch: &Path,
) -> anyhow::Result<(Texts, HashMap<u32, u32>)> {
    let mut needed: Vec<u32> = needed.into_iter().collect();
    needed.sort_unstable();
    let options = args.text_options()?;
    let mut texts = Texts::new(scratch, args.work.memory / 4);
    let mut numbers = HashMap::new();
    for (side, inputs) in [(Some(&sides.left), &args.texts), (sides.right.as_ref(), &args.with_texts)] {
        let Some(side) = side else { continue };
        let is_left = std::ptr::eq(side, &raw const sides.left);
        let mut keys: HashMap<Vec<u8>, u32> = HashMap::new();
        for &document in &needed {
            let (of, there) = sides.side(document);
            if std::ptr::eq(of, side) {
                match side.key(there)? {
                    KeyBuf::Bytes(key) => drop(keys.insert(key.into(), document)),
                    KeyBuf::U64(_) => bail!("{}: an index of numbers has no texts", side.path.display()),
                }
            }
        }
        let inputs = if !is_left && inputs.is_empty() { &args.texts } else { inputs };
        texts.forget();
        let about = (side.path, side.index, side.snapshot);
        texts.read(inputs, &options, about, &Watching { quiet: args.output.quiet }, |key| {
            keys.contains_key(key)
        })?;
        for (key, &document) in &keys {
            numbers.insert(document, texts.number(&KeyBuf::Bytes(key.as_slice().into()))?);
        }
    }
    Ok((texts, numbers))
}

/// Writes the resemblance of two documents, followed by the sizes of intersection and union if it is exact, or by the
/// standard error if it is an estimate.
pub(super) fn write_resemblance(out: &mut impl Write, resemblance: Resemblance) -> io::Result<()> {
    write!(out, "\t{:.6}", resemblance.value())?;
    match resemblance {
        Resemblance::Exact { intersection, union } => write!(out, "\t{intersection}\t{union}"),
        Resemblance::Estimate { standard_error, .. } => write!(out, "\t{standard_error:.6}"),
    }
}

/// Writes the pairs that `find` passes on to `out`, or only counts them if there is no `out`. The pairs must ascend.
pub(super) fn write(
    args: &PairsArgs,
    sides: &LiveIndexes<'_>,
    mut out: Option<PairLines>,
    find: impl FnOnce(&mut dyn FnMut((u32, u32, Resemblance)) -> anyhow::Result<()>) -> anyhow::Result<()>,
) -> anyhow::Result<PairsFound> {
    let mut all = PairPart::default();
    let prints = out.is_some();
    let near = args.near_of_page(None);
    let make = |&(a, b, resemblance): &(u32, u32, Resemblance), part: &mut PairPart, text: &mut _| {
        let (a, b) = (sides.key(a)?, sides.key(b)?);
        if !args.shard.has(&a) {
            return Ok(());
        }
        part.add(near, &a, &b, PairScore::Resemblance(resemblance));
        if prints {
            add_line(text, &a, &b, |text| write_resemblance(text, resemblance))?;
        }
        Ok(())
    };
    let write = |part: PairPart, text: &[u8]| {
        let count = part.totals.count;
        all.merge(part);
        out.as_mut().map_or(Ok(()), |out| out.put(count, text))
    };
    in_order(make, write, find)?;
    sides.check_maps()?;
    let written = out.map(PairLines::finish).transpose()?;
    Ok(PairsFound { part: all, written })
}
