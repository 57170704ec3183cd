//! Computes the scores of all pairs that share a block or a band. The scores show whether the bands are well chosen.
//!
//! Both tables follow Wu, *Near deduplication*, section 6. A fingerprint is split into four blocks of 16 bits; the
//! score of a pair is 64 minus the Hamming distance. Minima are grouped into bands; the score of a pair is its number
//! of equal minima. Identical documents share every band, so the number of pairs with the highest score is the same in
//! all bands. From the mean number of bands that pairs with a given score share follows the probability that such a
//! pair shares at least one band. It can be compared with the S-curve of
//! [`Banding`](twindex::planner::Banding::recall).

use std::ops::Range;

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::bands::candidates::{BucketEntry, BucketWork, IndexSide, cap_of, read};
use crate::hamming::JoinResources;
use crate::work::document_numbers::{NO_NUMBER, SegmentNumbers};
use crate::work::numbers::HashNumbers;
use crate::work::runs::Sorter;
use crate::work::seeded::Seeded;
use twindex::error::Result;
use twindex::store::Snapshot;
use twindex::sys::threads::on_threads;
use twindex::sys::{Column, MemoryBudget};
use twindex_kernel::{Kernel, Level, Simd, prefetch_all};
use twindex_sketch::{matches, matches_by};

/// Number of blocks in a fingerprint.
pub const BLOCKS: usize = 4;
/// Number of bits in a block.
const BLOCK_BITS: u32 = u64::BITS / BLOCKS as u32;

/// Statistics of the pairs of documents that share a block or a band.
#[derive(Clone, Debug, Default)]
pub struct Scores {
    /// For each block or band, the number of pairs by score, starting with score 0.
    pub pairs: Vec<Vec<u64>>,
    /// Number of capped buckets, in which each member was compared only with the next member in sort order.
    pub capped_buckets: u64,
    /// Number of distinct members of the largest bucket.
    pub largest_bucket: u64,
    /// Number of buckets by size: entry `i` is the number of buckets with `2^i` to `2^(i + 1) - 1` distinct members.
    pub buckets: Vec<u64>,
}

impl Scores {
    fn new(bands: usize, max: usize) -> Self {
        Self { pairs: vec![vec![0; max + 1]; bands], ..Self::default() }
    }

    /// Counts a bucket of `members` members. Returns whether all pairs of this bucket are to be compared.
    fn bucket(&mut self, members: usize, max_bucket: usize) -> bool {
        let place = members.ilog2() as usize;
        if self.buckets.len() <= place {
            self.buckets.resize(place + 1, 0);
        }
        self.buckets[place] += 1;
        self.largest_bucket = self.largest_bucket.max(members as u64);
        let capped = members > max_bucket;
        self.capped_buckets += u64::from(capped);
        !capped
    }

    fn add(&mut self, band: usize, score: usize, pairs: u64) {
        let place = &mut self.pairs[band][score];
        *place = place.saturating_add(pairs);
    }

    /// Adds the counts of another `Scores`, such as those of another thread.
    fn add_all(&mut self, others: &Self) {
        for (counts, more) in self.pairs.iter_mut().zip(&others.pairs) {
            counts.iter_mut().zip(more).for_each(|(count, more)| *count = count.saturating_add(*more));
        }
        self.capped_buckets += others.capped_buckets;
        self.largest_bucket = self.largest_bucket.max(others.largest_bucket);
        self.buckets.resize(self.buckets.len().max(others.buckets.len()), 0);
        self.buckets.iter_mut().zip(&others.buckets).for_each(|(count, more)| *count += more);
    }
}

/// A fingerprint, and the number of live documents that have it.
type Fingerprinted = [u64; 2];

/// Returns the number of pairs that `documents` documents form.
fn pairs_among(documents: u32) -> u64 {
    u64::from(documents) * u64::from(documents.saturating_sub(1)) / 2
}

/// Computes the scores of the pairs that share at least one of the four blocks of their fingerprints. If more than
/// `max_bucket` distinct fingerprints share a block, each is compared only with the next greater one.
///
/// Memory: 16 bytes per distinct fingerprint, in up to half of the memory of `resources`, beyond that in an unnamed
/// file. Time: about `n^2 / 2^15` comparisons for `n` evenly distributed fingerprints.
///
/// # Errors
/// [`Error::Corrupt`](twindex::Error::Corrupt), or [`Error::Io`](twindex::Error::Io) from the scratch file.
pub fn block_scores(snapshot: &Snapshot, max_bucket: usize, resources: JoinResources<'_>) -> Result<Scores> {
    let mut all: Column<Fingerprinted> = Column::new(&MemoryBudget::new(resources.dir, resources.memory / 2));
    for (segment, deleted) in snapshot.segments() {
        segment.for_each_fingerprint(|rank, fingerprint| {
            let mut documents = 0;
            segment.postings(rank, |ordinal| documents += u32::from(!deleted.contains(ordinal)))?;
            if documents > 0 {
                all.push([fingerprint, documents.into()])?;
            }
            Ok(())
        })?;
    }
    all.sort_unstable();
    let (mut kept, values) = (0, &mut all[..]);
    for at in 0..values.len() {
        let [fingerprint, documents] = values[at];
        if kept > 0 && values[kept - 1][0] == fingerprint {
            values[kept - 1][1] += documents;
        } else {
            values[kept] = values[at];
            kept += 1;
        }
    }
    all.truncate(kept);
    let mut scores = Scores::new(BLOCKS, u64::BITS as usize);
    for block in 0..BLOCKS {
        let key =
            |fingerprint: u64| fingerprint.rotate_left(BLOCK_BITS * block as u32) >> (u64::BITS - BLOCK_BITS);
        all.sort_unstable_by_key(|&[fingerprint, _]| (key(fingerprint), fingerprint));
        for bucket in all.chunk_by(|a, b| key(a[0]) == key(b[0])) {
            let whole = scores.bucket(bucket.len(), max_bucket);
            for (place, &[a, documents]) in bucket.iter().enumerate() {
                scores.add(block, u64::BITS as usize, pairs_among(documents as u32));
                let others = &bucket[place + 1..];
                for &[b, more] in if whole { others } else { &others[..others.len().min(1)] } {
                    let score = u64::BITS - (a ^ b).count_ones();
                    scores.add(block, score as usize, documents * more);
                }
            }
        }
    }
    snapshot.check_maps()?;
    Ok(scores)
}

/// A group of documents with equal signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
pub struct EqualSignatures {
    /// Number of documents in the group.
    pub documents: u32,
    /// The segment of the group's first document, as a position in [`Snapshot::segments`].
    pub segment: u32,
    /// The ordinal of the group's first document in its segment.
    pub ordinal: u32,
}

/// The result of [`band_scores`].
#[derive(Debug)]
pub struct BandScores {
    /// The pairs of each band; the score of a pair is its number of equal minima.
    pub scores: Scores,
    /// For each score, the number of pairs of different signatures that share a band, and the sum of their numbers of
    /// shared bands.
    pub shared: Vec<(u64, u64)>,
    /// The groups of documents with equal signatures.
    pub alike: Column<EqualSignatures>,
}

impl BandScores {
    /// Estimates the fraction of pairs with this score that share at least one of `bands` bands. The counts include
    /// only pairs that share a band, so the mean number of shared bands is the mean of a zero-truncated binomial
    /// distribution. The function solves for its probability. Returns `None` if no pair has this score.
    #[must_use]
    pub fn accepted(&self, score: usize, bands: u16) -> Option<f64> {
        let &(pairs, shared) = self.shared.get(score)?;
        if pairs == 0 {
            return None;
        }
        let (mean, bands) = (shared as f64 / pairs as f64, f64::from(bands));
        // The mean, bands p / (1 - (1 - p)^bands), grows with p from 1 to `bands`, so bisection finds p.
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let p = f64::midpoint(low, high);
            let some = 1.0 - f64::powf(1.0 - p, bands);
            if bands * p / some < mean {
                low = p;
            } else {
                high = p;
            }
        }
        Some(1.0 - f64::powf(1.0 - low, bands))
    }
}

/// Number of band keys compared at once.
const LANES: usize = 16;

/// The keys of all bands, in memory. When a pair is found in one band, the keys of its members show which other bands
/// they share. Each pair is thus counted once, without a sort of all pairs.
struct BandKeys {
    bands: usize,
    /// For each band, pairs of bucket key and signature number, ascending.
    entries: Vec<Column<BucketEntry>>,
    /// For each signature number, its keys by band, in rows of [`LANES`] bands.
    keys: Vec<[u32; LANES]>,
    /// Whether the documents of a signature number have different keys in a band. This occurs if signatures are short,
    /// because documents with different features may then have equal signatures.
    mixed: Vec<bool>,
}

impl BandKeys {
    /// Reads the keys of all bands. Returns `None` if they take more than `memory` bytes, or if buckets must be capped.
    fn read(
        sides: &[IndexSide<'_>],
        bands: usize,
        numbers: usize,
        max_bucket: usize,
        (memory, threads): (usize, usize),
    ) -> Result<Option<Self>> {
        let rows = bands.div_ceil(LANES);
        let each = bands * size_of::<BucketEntry>() + rows * size_of::<[u32; LANES]>();
        if numbers.saturating_mul(each) > memory {
            return Ok(None);
        }
        let (keys, mixed) = (vec![[0; LANES]; numbers * rows], vec![false; numbers]);
        let mut all = Self { bands, entries: Vec::new(), keys, mixed };
        let (mut known, mut held) = (vec![0; numbers], size_of_val(all.keys.as_slice()));
        let mut work = BucketWork::default();
        let numbers: Vec<usize> = (0..bands).collect();
        let mut threads = vec![(); threads.clamp(1, bands.max(1))];
        for some in numbers.chunks(threads.len()) {
            let read = on_threads(&mut threads, some, |(), &band| {
                let mut entries = Column::new(&MemoryBudget::unlimited());
                read(sides, band, &mut entries)?;
                Ok(entries)
            })?;
            for (&band, entries) in some.iter().zip(read) {
                for &[key, number] in &entries[..] {
                    let number = number as usize;
                    // A number has mixed keys unless it has exactly one key in every band.
                    all.mixed[number] |= known[number] != band;
                    known[number] = band + 1;
                    all.keys[number * rows + band / LANES][band % LANES] = key;
                }
                for bucket in entries.chunk_by(|a, b| a[0] == b[0]) {
                    if bucket.len() > max_bucket {
                        return Ok(None);
                    }
                    work.bucket(bucket.len() as u64);
                }
                // With short signatures, documents with the same signature can have different keys. So the entries can
                // take more memory than was estimated.
                held += size_of_val(&*entries);
                if held > memory {
                    return Ok(None);
                }
                all.entries.push(entries);
            }
        }
        let is_bounded = work.cap(max_bucket as u64, sides, bands) == max_bucket as u64;
        Ok(is_bounded.then_some(all))
    }

    /// Returns the keys of a signature number, or `None` if its documents have different keys.
    #[inline(always)]
    fn of(&self, number: u32) -> Option<&[[u32; LANES]]> {
        (!self.mixed[number as usize]).then(|| self.row(number))
    }

    /// Returns the keys of a signature number. If its documents have different keys, returns those of any document.
    #[inline(always)]
    fn row(&self, number: u32) -> &[[u32; LANES]] {
        let rows = self.bands.div_ceil(LANES);
        &self.keys[number as usize * rows..][..rows]
    }

    /// Splits the entries into pieces, each a band and a range of its entries. The entries of a piece form about [`PIECE`]
    /// pairs, unless a single entry forms more.
    fn pieces(&self) -> Vec<(usize, Range<usize>)> {
        let mut pieces = Vec::new();
        for (band, entries) in self.entries.iter().enumerate() {
            let (mut at, mut from, mut pairs) = (0, 0, 0);
            for bucket in entries.chunk_by(|a, b| a[0] == b[0]) {
                for rest_of_bucket in (0..bucket.len()).rev() {
                    at += 1;
                    pairs += rest_of_bucket + 1;
                    if pairs >= PIECE || at == entries.len() {
                        pieces.push((band, from..at));
                        (from, pairs) = (at, 0);
                    }
                }
            }
        }
        pieces
    }
}

/// Approximate number of pairs in a piece. The result of a piece takes up to 12 bytes per pair until it is collected.
const PIECE: usize = 1 << 18;
/// Number of pieces per thread that may be processed while the results of an earlier piece wait to be collected.
const PIECES: usize = 4;

/// Number of bucket members that are compared with one member in one step.
const TOGETHER: usize = 64;
/// How many members ahead of the current one keys and signatures are prefetched.
const AHEAD: usize = 8;

/// The shared data with which threads compare the signatures of pairs that share a bucket.
struct BucketPairs<'a> {
    keys: &'a BandKeys,
    max_bucket: usize,
    minima: usize,
    bits: u8,
    documents: &'a [u32],
    /// The signatures, by signature number.
    signatures: &'a [&'a [u8]],
}

/// Counts of one thread.
struct ThreadCounts {
    scores: Scores,
    /// Number of pairs by score and band, with the bands in rows as in [`BandKeys::keys`]. They are added to the scores
    /// at the end. The counts of all bands of a score are adjacent, so that vector instructions can add to them.
    pairs: Vec<[u64; LANES]>,
    /// Counts as in [`BandScores::shared`].
    shared: Vec<(u64, u64)>,
}

impl ThreadCounts {
    fn new(bands: usize, minima: usize) -> Self {
        let pairs = vec![[0; LANES]; (minima + 1) * bands.div_ceil(LANES)];
        Self { scores: Scores::new(bands, minima), pairs, shared: vec![(0, 0); minima + 1] }
    }

    /// Returns the scores, including `pairs`, and the counts of shared bands.
    fn finish(mut self) -> (Scores, Vec<(u64, u64)>) {
        let rows = self.scores.pairs.len().div_ceil(LANES);
        for (score, rows) in self.pairs.chunks_exact(rows.max(1)).enumerate() {
            let by_band = rows.iter().flatten();
            (0..self.scores.pairs.len()).zip(by_band).for_each(|(band, &pairs)| {
                self.scores.add(band, score, pairs);
            });
        }
        (self.scores, self.shared)
    }
}

/// Adds `pairs` to each count whose bit in `bits` is set. Has no branch, so that the compiler generates vector code.
#[inline(always)]
fn add_where(bits: u32, pairs: u64, counts: &mut [u64; LANES]) {
    for (place, count) in counts.iter_mut().enumerate() {
        // Cannot overflow: 2^32 documents have fewer than 2^64 pairs.
        *count = count.wrapping_add(if bits >> place & 1 == 0 { 0 } else { pairs });
    }
}

/// The pairs of a piece that the calling thread processes further.
#[derive(Default)]
struct PieceResult {
    /// The pairs whose first shared band is the band of the piece, with their scores. Empty unless `HANDED` is true.
    pairs: Vec<(u32, u32, u32)>,
    /// Pairs in which the documents of at least one signature number have [different keys](BandKeys::of).
    mixed: Vec<(u32, u32)>,
}

/// Compares each entry of a piece with all later entries of its bucket. Returns pairs only if `HANDED` is true.
struct Piece<'a, const HANDED: bool> {
    meeting: &'a BucketPairs<'a>,
    band: usize,
    entries: Range<usize>,
    counted: &'a mut ThreadCounts,
}

impl<const HANDED: bool> Kernel for Piece<'_, HANDED> {
    type Output = PieceResult;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> PieceResult {
        let Self { meeting, band, entries: piece, counted } = self;
        let BucketPairs { keys, max_bucket, minima, bits, documents, signatures } = *meeting;
        let entries = &keys.entries[band][..];
        let mut found = PieceResult::default();
        let mut bucket_end = piece.start;
        for at in piece {
            let [key, a] = entries[at];
            if at == bucket_end {
                bucket_end += entries[at..].iter().take_while(|entry| entry[0] == key).count();
                // The piece that contains the first entry of a bucket records the bucket.
                if at == 0 || entries[at - 1][0] != key {
                    counted.scores.bucket(bucket_end - at, max_bucket);
                }
            }
            let documents_a = documents[a as usize];
            counted.scores.add(band, minima, pairs_among(documents_a));
            let others = &entries[at + 1..bucket_end];
            let Some(of_a) = keys.of(a) else {
                found.mixed.extend(others.iter().map(|&[_, b]| (a, b)));
                continue;
            };
            let signature = signatures[a as usize];
            let row = band / LANES;
            // Returns a bit for each band of a row: 1 if the pair shares the band.
            let meets = |row: usize, of_b: &[[u32; LANES]]| simd.equal16(&of_a[row], &of_b[row]);
            for others in others.chunks(TOGETHER) {
                // Collects, without branches, which would often be mispredicted, the numbers that share no earlier band
                // with `a`.
                let (mut new, mut count) = ([0; TOGETHER], 0);
                for (place, &[_, b]) in others.iter().enumerate() {
                    if let Some(&[_, ahead]) = others.get(place + AHEAD) {
                        prefetch_all(keys.row(ahead).as_bytes());
                    }
                    let Some(of_b) = keys.of(b) else {
                        found.mixed.push((a, b));
                        continue;
                    };
                    let before = (0..row).fold(0, |before, row| before | meets(row, of_b));
                    let before = before | meets(row, of_b) & ((1 << (band % LANES)) - 1);
                    new[count % TOGETHER] = b;
                    count += usize::from(before == 0);
                }
                let new = &new[..count];
                for (place, &b) in new.iter().enumerate() {
                    if let Some(&ahead) = new.get(place + AHEAD) {
                        prefetch_all(signatures[ahead as usize]);
                    }
                    let score = matches_by(simd, signature, signatures[b as usize], minima, bits);
                    let pairs = u64::from(documents_a) * u64::from(documents[b as usize]);
                    counted.shared[score].0 += 1;
                    let of_b = keys.row(b);
                    for later in row..of_a.len() {
                        // Masks the lanes after the last band, which are equal in all rows.
                        let rest = keys.bands - later * LANES;
                        let bands = meets(later, of_b) & (u32::MAX >> (u32::BITS - rest.min(LANES) as u32));
                        counted.shared[score].1 += u64::from(bands.count_ones());
                        add_where(bands, pairs, &mut counted.pairs[score * of_a.len() + later]);
                    }
                    if HANDED {
                        found.pairs.push((a, b, score as u32));
                    }
                }
            }
        }
        found
    }
}

/// Groups the documents by signature. Returns the groups, and the group number of each document.
fn by_signature<'s>(
    snapshot: &'s Snapshot,
    budget: &MemoryBudget,
) -> Result<(Column<EqualSignatures>, IndexSide<'s>)> {
    let segments: Vec<_> = snapshot.segments().map(|(segment, _)| segment).collect();
    let (mut known, seeded) = (HashNumbers::new(budget)?, Seeded::default());
    let mut alike: Column<EqualSignatures> = Column::new(budget);
    let mut of_documents = SegmentNumbers::new(budget);
    for (number, (segment, deleted)) in (0..).zip(snapshot.segments()) {
        for ordinal in 0..segment.documents() as u32 {
            if deleted.contains(ordinal) {
                of_documents.all.push(NO_NUMBER)?;
                continue;
            }
            let signature = segment.signature(ordinal)?;
            let hash = seeded.of_bytes(signature);
            let is_same = |group: u32| -> Result<bool> {
                let first = alike[group as usize];
                Ok(segments[first.segment as usize].signature(first.ordinal)? == signature)
            };
            let group = if let Some(group) = known.find(hash, is_same)? {
                group
            } else {
                let new = alike.len() as u32;
                known.insert(hash, new)?;
                alike.push(EqualSignatures { documents: 0, segment: number, ordinal })?;
                new
            };
            alike[group as usize].documents += 1;
            of_documents.all.push(group)?;
        }
        of_documents.ends.push(of_documents.all.len());
    }
    Ok((alike, IndexSide { snapshot, numbers: of_documents }))
}

/// Computes the scores of the pairs that share a band. The result is empty if the index stores no signatures. In a
/// bucket of more than `max_bucket` distinct signatures, each is compared only with the next one. As for
/// [`candidates`](crate::candidates()), the limit is lowered if the pairs would exceed both
/// [`PAIRS`](crate::bands::candidates::PAIRS) per document and 20 million in total.
///
/// Memory: half of the memory of `resources` holds the keys of bands. If the keys do not fit or buckets are capped, a
/// quarter holds pairs instead. Another quarter is for 12 bytes per document and about 40 bytes per distinct signature.
/// Data beyond the budget is written to unnamed files.
///
/// # Errors
/// [`Error::Corrupt`](twindex::Error::Corrupt), or [`Error::Io`](twindex::Error::Io) from the scratch file.
pub fn band_scores(
    snapshot: &Snapshot,
    max_bucket: usize,
    resources: JoinResources<'_>,
) -> Result<BandScores> {
    scored::<false>(snapshot, max_bucket, resources, |_, _, _| Ok(()))
}

/// Like [`band_scores`]. Also passes each pair of different signatures that share a band to `each` once, with the score
/// of the pair. The smaller signature number comes first; the order of pairs is unspecified. Numbers are those of
/// [`BandScores::alike`].
///
/// # Errors
/// Same as [`band_scores`], or the error of `each`.
pub fn scored_pairs(
    snapshot: &Snapshot,
    max_bucket: usize,
    resources: JoinResources<'_>,
    each: impl FnMut(u32, u32, u32) -> Result<()>,
) -> Result<BandScores> {
    scored::<true>(snapshot, max_bucket, resources, each)
}

/// Like [`scored_pairs`], but passes pairs to `each` only if `HANDED` is true.
fn scored<const HANDED: bool>(
    snapshot: &Snapshot,
    max_bucket: usize,
    resources: JoinResources<'_>,
    mut each: impl FnMut(u32, u32, u32) -> Result<()>,
) -> Result<BandScores> {
    let Some(minhash) = snapshot.params().minhash.filter(|minhash| minhash.signature_bits > 0) else {
        let alike = Column::new(&MemoryBudget::unlimited());
        return Ok(BandScores { scores: Scores::default(), shared: Vec::new(), alike });
    };
    let (bands, minima, bits) = (usize::from(minhash.bands), minhash.minima(), minhash.signature_bits);
    let for_documents = MemoryBudget::new(resources.dir, resources.memory / 4);
    let (alike, side) = by_signature(snapshot, &for_documents)?;
    let segments: Vec<_> = snapshot.segments().map(|(segment, _)| segment).collect();
    let sides = [side];
    let documents = |number: u32| alike[number as usize].documents;
    let pairs_of = |a: u32, b: u32| u64::from(documents(a)) * u64::from(documents(b));
    let mut scores = Scores::new(bands, minima);
    let mut shared = vec![(0_u64, 0_u64); minima + 1];
    let mut sorter: Sorter<u128> = Sorter::new(resources.dir, resources.memory / 4);
    let record = |a: u32, b: u32, band: usize| u128::from(a) << 96 | u128::from(b) << 64 | band as u128;
    let signature_of = |alike: &EqualSignatures| segments[alike.segment as usize].signature(alike.ordinal);
    let score_of = |a: u32, b: u32| -> Result<usize> {
        let signature = |group: u32| signature_of(&alike[group as usize]);
        Ok(matches(signature(a)?, signature(b)?, minima, bits))
    };
    let budget = (resources.memory / 2, resources.threads);
    if let Some(keys) = BandKeys::read(&sides, bands, alike.len(), max_bucket, budget)? {
        let signatures: Vec<&[u8]> = alike.iter().map(signature_of).collect::<Result<_>>()?;
        let documents: Vec<u32> = alike.iter().map(|alike| alike.documents).collect();
        let meeting = BucketPairs {
            keys: &keys,
            max_bucket,
            minima,
            bits,
            documents: &documents,
            signatures: &signatures,
        };
        let mut counted: Vec<_> =
            (0..resources.threads.max(1)).map(|_| ThreadCounts::new(bands, minima)).collect();
        for some in keys.pieces().chunks(PIECES * counted.len()) {
            let found = on_threads(&mut counted, some, |counted, (band, entries)| {
                let (entries, band) = (entries.clone(), *band);
                let piece = Piece::<HANDED> { meeting: &meeting, band, entries, counted };
                Ok(Level::chosen().dispatch(piece))
            })?;
            for ((band, _), found) in some.iter().zip(found) {
                found.pairs.into_iter().try_for_each(|(a, b, score)| each(a, b, score))?;
                found.mixed.into_iter().try_for_each(|(a, b)| sorter.push(record(a, b, *band)))?;
            }
        }
        for (counted, more) in counted.into_iter().map(ThreadCounts::finish) {
            scores.add_all(&counted);
            shared.iter_mut().zip(more).for_each(|(sum, more)| {
                sum.0 += more.0;
                sum.1 += more.1;
            });
        }
    } else {
        let mut entries = Column::new(&for_documents);
        let cap = usize::try_from(cap_of(&sides, bands, max_bucket, &mut entries)?).unwrap_or(max_bucket);
        for band in 0..bands {
            read(&sides, band, &mut entries)?;
            for bucket in entries.chunk_by(|a, b| a[0] == b[0]) {
                let whole = scores.bucket(bucket.len(), cap);
                for (place, &[_, a]) in bucket.iter().enumerate() {
                    scores.add(band, minima, pairs_among(documents(a)));
                    let others = &bucket[place + 1..];
                    for &[_, b] in if whole { others } else { &others[..others.len().min(1)] } {
                        sorter.push(record(a, b, band))?;
                    }
                }
            }
        }
    }
    let mut last = None;
    sorter.finish()?.for_each(|record| {
        let (pair, band) = ((record >> 64) as u64, record as usize);
        let (a, b) = ((pair >> 32) as u32, pair as u32);
        let score = match last {
            Some((known, score)) if known == pair => score,
            _ => {
                let score = score_of(a, b)?;
                last = Some((pair, score));
                shared[score].0 += 1;
                each(a, b, score as u32)?;
                score
            }
        };
        shared[score].1 += 1;
        scores.add(band, score, pairs_of(a, b));
        Ok::<(), twindex::Error>(())
    })?;
    snapshot.check_maps()?;
    Ok(BandScores { scores, shared, alike })
}
