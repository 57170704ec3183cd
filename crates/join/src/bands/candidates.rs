//! Finds candidate pairs: documents that share at least one band key. These are Broder's fungible documents with
//! threshold 1, found by the LSH bands of Indyk and Motwani (1998).

use std::collections::BTreeMap;
use std::path::Path;

use crate::work::document_numbers::{NO_NUMBER, SegmentNumbers, numbers};
use crate::work::runs::{NumberCount, Sorted, Sorter};
use twindex::error::{Error, Result};
use twindex::format::bands::{self, KEY_BITS};
use twindex::params::Params;
use twindex::store::Snapshot;
use twindex::store::snapshot::Place;
use twindex::sys::{Column, MemoryBudget};

/// Candidate pairs, and statistics of the buckets that were searched for pairs.
#[derive(Debug)]
pub struct Candidates {
    pairs: Pairs,
    /// Number of buckets with more members than the cap. The members of a capped bucket are sorted by number, and each
    /// is paired only with the first and the previous member. This takes linear time and keeps all members connected.
    /// In a join of two indexes, each member of a capped bucket is paired only with the first member of the other side.
    pub capped_buckets: u64,
    /// Number of members of the largest bucket of any band.
    pub largest_bucket: u64,
    /// The bucket size above which buckets are capped. It is `max_bucket`, or less if that would give too many pairs.
    pub cap: u64,
}

/// The condition under which two documents are candidates: the number of features that must agree, and the number of bits
/// of each feature that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// Minimum number of features in which the documents agree; 0 means 1.
    pub features: u16,
    /// Number of leading bits of each feature that are compared, from 1 to the number of bits stored. With 8 bits, they
    /// are Broder's one-byte features.
    pub bits: u32,
}

impl Agreement {
    /// Returns the condition that at least one feature agrees in all bits that an index with `params` stores.
    #[must_use]
    pub fn in_one(params: &Params) -> Self {
        Self { features: 1, bits: bands::bits_of(params) }
    }
}

/// Candidate pairs without duplicates. The upper 32 bits of a pair hold the smaller document number, the lower 32 bits
/// the larger one.
#[derive(Debug)]
enum Pairs {
    Each(Sorted<u64>),
    /// Pairs with the number of features that agree. The second number is the minimum to report.
    Counted(Sorted<NumberCount>, u32),
}

impl Pairs {
    fn for_each<E: From<Error>>(
        &self,
        mut each: impl FnMut(u64) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        match self {
            Self::Each(pairs) => pairs.for_each(each),
            Self::Counted(pairs, min) => {
                pairs.for_each(|pair| if pair.count >= *min { each(pair.number) } else { Ok(()) })
            }
        }
    }
}

/// Sorts pairs, and removes duplicates or counts them.
enum PairCollector {
    Each(Sorter<u64>),
    Counted(Sorter<NumberCount>, u32),
}

impl PairCollector {
    fn push(&mut self, pair: u64) -> Result<()> {
        match self {
            Self::Each(pairs) => pairs.push(pair),
            Self::Counted(pairs, _) => pairs.push(NumberCount { number: pair, count: 1 }),
        }
    }

    fn finish(self) -> Result<Pairs> {
        Ok(match self {
            Self::Each(pairs) => Pairs::Each(pairs.finish()?),
            Self::Counted(pairs, min) => Pairs::Counted(pairs.finish()?, min),
        })
    }
}

impl Candidates {
    /// Passes the pairs of document numbers to `each` in batches: each pair once, the smaller number first, in ascending
    /// order.
    ///
    /// # Errors
    /// [`Error::Io`] from the scratch file, or the error of `each`.
    pub fn for_each_batch<E: From<Error>>(
        &self,
        mut each: impl FnMut(&[(u32, u32)]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut batch = Vec::with_capacity(BATCH);
        self.pairs.for_each(|pair| {
            batch.push(((pair >> 32) as u32, pair as u32));
            if batch.len() < BATCH {
                return Ok::<(), E>(());
            }
            each(&batch)?;
            batch.clear();
            Ok::<(), E>(())
        })?;
        each(&batch)
    }
}

/// Maximum number of pairs in a batch.
const BATCH: usize = 1 << 14;
/// Number of candidate pairs per document above which the cap is lowered, unless there are fewer than 20 million pairs in
/// total.
pub const PAIRS: u64 = 200;
/// Total number of candidate pairs below which the cap is not lowered; see [`PAIRS`].
pub(crate) const PAIRS_LEAST: u64 = 20_000_000;
/// Number of bands up to which [`PAIRS`] and [`PAIRS_LEAST`] apply unchanged. With more bands, both bounds grow in
/// proportion, because the same pairs are found in more bands.
const PAIRS_BANDS: u64 = 40;
/// Minimum bucket size to which the cap may be lowered.
const SMALL: u64 = 64;

/// Returns the pairs of documents that share at least one band. `number` assigns a number to each live document. Documents
/// with the same number are treated as one document, since identical documents need no comparison. Documents for which
/// `number` returns `None` are skipped.
///
/// A bucket is capped if it has more than `max_bucket` members, or if the pairs of all buckets would exceed both [`PAIRS`]
/// per document and 20 million in total. Only some pairs of a capped bucket are candidates: see
/// [`Candidates::capped_buckets`]. With more than 40 bands, both bounds grow in proportion.
///
/// Memory: `memory` bytes for pairs, and 12 bytes per document. Data beyond the budget is written to unnamed files in
/// `dir`.
///
/// # Errors
/// [`Error::Corrupt`], [`Error::Io`] from the scratch file, or the error of `number`.
pub fn candidates(
    snapshot: &Snapshot,
    max_bucket: usize,
    budget: (&Path, usize),
    number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<Candidates> {
    candidates_agreeing(snapshot, Agreement::in_one(snapshot.params()), max_bucket, budget, number)
}

/// Like [`candidates`], but documents must agree as `agreement` specifies: in several features, or only in the leading
/// bits of features (Broder's fungible documents). The number of features in which two documents agree is the number of
/// bands that form their pair. It may be too low for documents in capped buckets, which form only some pairs.
///
/// Memory: 16 bytes per pair instead of 8.
///
/// # Errors
/// Same as [`candidates`]; [`Error::Invalid`] if `agreement` has more bits than are stored.
pub fn candidates_agreeing(
    snapshot: &Snapshot,
    agreement: Agreement,
    max_bucket: usize,
    budget: (&Path, usize),
    number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<Candidates> {
    let for_numbers = MemoryBudget::new(budget.0, budget.1 / 4);
    let sides = [IndexSide { snapshot, numbers: numbers(snapshot, &for_numbers, number)? }];
    pair_up(&sides, None, agreement, max_bucket, budget)
}

/// Like [`candidates`], for two indexes: a pair has one document of the left index and one document of the right index.
/// `number_left` must return numbers below `first_right`, and `number_right` numbers from `first_right` on. If the
/// indexes store different numbers of bits of a feature, the smaller number of bits is compared.
///
/// # Errors
/// [`Error::ParamsMismatch`] if the bands of both cannot be compared. Also returns the errors of [`candidates`].
pub fn candidates_across(
    both: (&Snapshot, &Snapshot),
    first_right: u32,
    max_bucket: usize,
    budget: (&Path, usize),
    number_left: impl FnMut(Place<'_>) -> Result<Option<u32>>,
    number_right: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<Candidates> {
    let numbers = (number_left, number_right);
    let [left, right] = [both.0, both.1].map(|snapshot| Agreement::in_one(snapshot.params()));
    let agreement = Agreement { bits: left.bits.min(right.bits), ..left };
    candidates_agreeing_across(both, first_right, agreement, max_bucket, budget, numbers)
}

/// Like [`candidates_across`], for documents that agree as `agreement` specifies.
///
/// # Errors
/// Same as [`candidates_across`] and [`candidates_agreeing`].
pub fn candidates_agreeing_across(
    (left, right): (&Snapshot, &Snapshot),
    first_right: u32,
    agreement: Agreement,
    max_bucket: usize,
    budget: (&Path, usize),
    (number_left, number_right): (
        impl FnMut(Place<'_>) -> Result<Option<u32>>,
        impl FnMut(Place<'_>) -> Result<Option<u32>>,
    ),
) -> Result<Candidates> {
    left.params().check_same_bands(right.params())?;
    let for_numbers = MemoryBudget::new(budget.0, budget.1 / 4);
    let sides = [
        IndexSide { snapshot: left, numbers: numbers(left, &for_numbers, number_left)? },
        IndexSide { snapshot: right, numbers: numbers(right, &for_numbers, number_right)? },
    ];
    pair_up(&sides, Some(first_right), agreement, max_bucket, budget)
}

/// One index of a join, with the numbers assigned to its documents.
pub(crate) struct IndexSide<'a> {
    pub(crate) snapshot: &'a Snapshot,
    /// The number of each document, by segment and ordinal; [`NO_NUMBER`] for skipped documents.
    pub(crate) numbers: SegmentNumbers,
}

/// A bucket key and the number of a document in this bucket.
pub(crate) type BucketEntry = [u32; 2];

/// Replaces `entries` with the members of all buckets of a band, sorted by bucket key, then by document number.
pub(crate) fn read(sides: &[IndexSide<'_>], band: usize, entries: &mut Column<BucketEntry>) -> Result<()> {
    read_bits(sides, band, KEY_BITS, entries)
}

/// Like [`read`], with only the first `bits` bits of each bucket key.
pub(crate) fn read_bits(
    sides: &[IndexSide<'_>],
    band: usize,
    bits: u32,
    entries: &mut Column<BucketEntry>,
) -> Result<()> {
    entries.truncate(0);
    for side in sides {
        for (number, (segment, _)) in side.snapshot.segments().enumerate() {
            let numbers = side.numbers.of(number);
            segment.for_each_band_entry(band, |key, ordinal| match numbers[ordinal as usize] {
                NO_NUMBER => Ok(()),
                number => entries.push([key >> (KEY_BITS - bits), number]),
            })?;
        }
        side.snapshot.check_maps()?;
    }
    // Entries of a single segment are already grouped by bucket key, so only the numbers within each bucket are sorted.
    if entries.is_sorted_by_key(|entry| entry[0]) {
        entries
            .chunk_by_mut(|a, b| a[0] == b[0])
            .filter(|bucket| bucket.len() > 1)
            .for_each(<[_]>::sort_unstable);
    } else {
        entries.sort_unstable();
    }
    entries.dedup();
    Ok(())
}

fn pair_up(
    sides: &[IndexSide<'_>],
    first_right: Option<u32>,
    agreement: Agreement,
    max_bucket: usize,
    (dir, memory): (&Path, usize),
) -> Result<Candidates> {
    let budget = MemoryBudget::new(dir, memory / 4);
    let memory = memory / 2;
    let Agreement { features, bits } = agreement;
    for kept in sides.iter().filter_map(|side| side.snapshot.params().minhash) {
        kept.check_feature_bits(bits)?;
    }
    let bands = sides[0].snapshot.params().minhash.map_or(0, |minhash| usize::from(minhash.bands));
    let mut entries = Column::new(&budget);
    let cap = cap_of_bits(sides, bands, bits, max_bucket, &mut entries)?;
    let (mut capped_buckets, mut largest_bucket) = (0, 0);
    let mut pairs = match features {
        0 | 1 => PairCollector::Each(Sorter::new(dir, memory)),
        min => PairCollector::Counted(Sorter::new(dir, memory), min.into()),
    };
    for band in 0..bands {
        read_bits(sides, band, bits, &mut entries)?;
        for bucket in entries.chunk_by(|a, b| a[0] == b[0]) {
            largest_bucket = largest_bucket.max(bucket.len() as u64);
            let is_capped = bucket.len() as u64 > cap;
            capped_buckets += u64::from(is_capped);
            let mut pair =
                |a: BucketEntry, b: BucketEntry| pairs.push(u64::from(a[1]) << 32 | u64::from(b[1]));
            if let Some(first_right) = first_right {
                // Entries are sorted by number, so documents of `left` come first.
                let (left, right) = bucket.split_at(bucket.partition_point(|entry| entry[1] < first_right));
                for (place, &a) in left.iter().enumerate() {
                    let right = if is_capped && place > 0 { &right[..right.len().min(1)] } else { right };
                    right.iter().try_for_each(|&b| pair(a, b))?;
                }
            } else if is_capped {
                bucket.windows(2).try_for_each(|two| pair(two[0], two[1]))?;
                // `windows` has already paired the first two members.
                bucket[2.min(bucket.len())..].iter().try_for_each(|&member| pair(bucket[0], member))?;
            } else {
                for (place, &a) in bucket.iter().enumerate() {
                    bucket[place + 1..].iter().try_for_each(|&b| pair(a, b))?;
                }
            }
        }
    }
    Ok(Candidates { pairs: pairs.finish()?, capped_buckets, largest_bucket, cap })
}

/// Returns the size above which a bucket is capped; see [`candidates`].
pub(crate) fn cap_of(
    sides: &[IndexSide<'_>],
    bands: usize,
    max_bucket: usize,
    entries: &mut Column<BucketEntry>,
) -> Result<u64> {
    cap_of_bits(sides, bands, KEY_BITS, max_bucket, entries)
}

fn cap_of_bits(
    sides: &[IndexSide<'_>],
    bands: usize,
    bits: u32,
    max_bucket: usize,
    entries: &mut Column<BucketEntry>,
) -> Result<u64> {
    let mut work = BucketWork::default();
    for band in 0..bands {
        read_bits(sides, band, bits, entries)?;
        entries.chunk_by(|a, b| a[0] == b[0]).for_each(|bucket| work.bucket(bucket.len() as u64));
    }
    Ok(work.cap(max_bucket as u64, sides, bands))
}

/// Counts buckets by size, and computes from these counts how many pairs the buckets form.
#[derive(Debug, Default)]
pub(crate) struct BucketWork {
    /// Number of buckets of each size, for sizes of at least [`SMALL`].
    sizes: BTreeMap<u64, u64>,
    /// Number of pairs in all smaller buckets.
    small: u64,
}

impl BucketWork {
    /// Adds a bucket with `size` members.
    pub(crate) fn bucket(&mut self, size: u64) {
        match size {
            0..SMALL => self.small += size * size / 2,
            _ => *self.sizes.entry(size).or_default() += 1,
        }
    }

    /// Returns the size above which a bucket is capped, so that the pairs of all `bands` bands stay within [`PAIRS`]
    /// and [`PAIRS_LEAST`].
    pub(crate) fn cap(&self, max_bucket: u64, sides: &[IndexSide<'_>], bands: usize) -> u64 {
        let documents: usize = sides.iter().map(|side| side.numbers.all.len()).sum();
        let pairs = (PAIRS * documents as u64).max(PAIRS_LEAST);
        self.cap_for(max_bucket, pairs * (bands as u64).max(PAIRS_BANDS) / PAIRS_BANDS)
    }

    /// Like [`cap`](Self::cap), for at most `pairs` pairs in total.
    pub(crate) fn cap_for(&self, max_bucket: u64, pairs: u64) -> u64 {
        cap(&self.sizes, self.small, max_bucket, pairs)
    }
}

/// Returns the size above which a bucket is capped: at most `max_bucket`, and small enough that there are at most
/// `pairs` pairs in total. `sizes` holds the number of buckets of each size, and `small` the number of pairs in buckets
/// of less than [`SMALL`] members.
fn cap(sizes: &BTreeMap<u64, u64>, small: u64, max_bucket: u64, pairs: u64) -> u64 {
    let mut left = pairs.saturating_sub(small);
    for (&size, &buckets) in sizes.range(..=max_bucket) {
        let pairs = (size * size / 2).saturating_mul(buckets);
        match left.checked_sub(pairs) {
            Some(less) => left = less,
            None => return (size - 1).max(SMALL),
        }
    }
    max_bucket
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_capped_if_their_pairs_exceed_the_bound() {
        let sizes = BTreeMap::from([(100, 1000), (5000, 1), (9000, 1), (20_000, 1)]);
        assert_eq!(
            cap(&sizes, 0, 10_000, PAIRS_LEAST),
            8999,
            "5 million, 12.5 million, and 40.5 million more"
        );
        assert_eq!(cap(&sizes, 0, 10_000, PAIRS * 1_000_000), 10_000);
        assert_eq!(cap(&sizes, 10_000_000, 10_000, PAIRS_LEAST), 4999);
        assert_eq!(cap(&sizes, 0, 300, PAIRS_LEAST), 300);
        assert_eq!(cap(&sizes, u64::MAX, 10_000, PAIRS_LEAST), 99);
        assert_eq!(cap(&BTreeMap::new(), 0, 2, PAIRS_LEAST), 2);
    }
}
