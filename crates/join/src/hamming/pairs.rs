//! Finds all pairs of documents within a Hamming radius, in one index or across two.
//!
//! Distinct fingerprints are joined ([`hamming`]), and documents are looked up only for the pairs found. So a million
//! documents with the same fingerprint take only one row in each table.

use std::ops::Range;
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};

use roaring::RoaringBitmap;

use crate::hamming::codes::near_stored_codes_within;
use crate::hamming::documents::{Documents, NearFingerprints};
use crate::hamming::{self, FingerprintValues, JoinResources, NearPair, Piece, TablePool, check_count};
use crate::sets::equal::for_each_pair;
use crate::work::document_numbers::{NO_NUMBER, numbers};
use crate::work::runs::{Sorter, finish_all, merge};
use twindex::error::{Error, Result};
use twindex::extsort::Merge;
use twindex::segment::Segment;
use twindex::segment::keys::LiveKeys;
use twindex::segment::scan::HeldPostings;
use twindex::store::Snapshot;
use twindex::store::snapshot::Place;
use twindex::sys::zeroed::Zeroed;

/// How many pairs ahead of the current one documents are prefetched.
const AHEAD: usize = 16;
/// How many pairs ahead of the current one lists of documents are prefetched.
const LISTS_AHEAD: usize = 8;
/// Number of fingerprints that a thread claims at a time.
const STRETCH: u64 = 1 << 17;

/// The distinct fingerprints of a snapshot, numbered consecutively by segment, then by rank in the segment.
pub(crate) struct Fingerprints<'a> {
    segments: Vec<(&'a Segment, &'a RoaringBitmap)>,
    /// Maps the fingerprints of each segment to documents.
    postings: Vec<HeldPostings<'a>>,
    /// The number of the first fingerprint of each segment, followed by the total number of fingerprints.
    first: Vec<u64>,
    /// All fingerprints, by number, if they fit in memory.
    held: Option<Zeroed<u64>>,
}

impl<'a> Fingerprints<'a> {
    /// Opens the fingerprints of `snapshot`. Loads them into memory if they take at most half of the memory budget, and
    /// subtracts their size from the budget.
    pub(crate) fn new(snapshot: &'a Snapshot, resources: &mut JoinResources<'_>) -> Result<Self> {
        let segments: Vec<_> = snapshot.segments().collect();
        let mut first = vec![0];
        for (segment, _) in &segments {
            first.push(first[first.len() - 1] + segment.distinct_fingerprints());
        }
        let count = first[first.len() - 1];
        check_count(count)?;
        let bytes = (count as usize).saturating_mul(size_of::<u64>());
        let mut held = None;
        if bytes <= resources.memory / 2 {
            resources.memory -= bytes;
            held = Some(hold(&segments, count as usize, resources.threads.max(1))?);
        }
        let postings = segments.iter().map(|(segment, _)| segment.held_postings()).collect::<Result<_>>()?;
        Ok(Self { segments, postings, first, held })
    }

    fn len(&self) -> usize {
        self.first[self.segments.len()] as usize
    }

    pub(crate) fn read(&self, piece: Piece, each: &mut dyn FnMut(u32, &[u64]) -> Result<()>) -> Result<()> {
        for ((segment, _), &first) in self.segments.iter().zip(&self.first) {
            let stretches = segment.fingerprint_stretches(piece.of)?;
            // Some codecs can only be read from the start, in one stretch. Each of n pieces then takes every n-th
            // slice.
            let is_one = stretches.len() < piece.of;
            let Some(stretch) = stretches.get(if is_one { 0 } else { piece.number }) else { continue };
            let (mut start, mut slice) = ((first + stretch.rows.start) as u32, 0);
            segment.for_each_slice_of(stretch, |some| {
                if !is_one || slice % piece.of == piece.number {
                    each(start, some)?;
                }
                (start, slice) = (start + some.len() as u32, slice + 1);
                Ok(())
            })?;
        }
        Ok(())
    }

    pub(crate) fn values<'v>(&'v self, read: &'v hamming::PieceReader<'v>) -> FingerprintValues<'v> {
        match &self.held {
            Some(held) if self.segments.len() == 1 => FingerprintValues::Sorted(held),
            Some(held) => FingerprintValues::Held(held),
            None => FingerprintValues::Read(self.len(), read),
        }
    }

    /// Returns the position of the segment that contains fingerprint `number`.
    #[inline]
    fn segment_of(&self, number: u32) -> usize {
        if self.segments.len() == 1 {
            return 0;
        }
        self.first.partition_point(|&first| first <= u64::from(number)) - 1
    }

    /// Returns the position of the segment that contains fingerprint `number`, and the rank of the fingerprint in this
    /// segment.
    #[inline]
    fn rank(&self, number: u32) -> (usize, u32) {
        let of = self.segment_of(number);
        (of, (u64::from(number) - self.first[of]) as u32)
    }

    /// Prefetches the memory that [`only`](Self::only) reads for fingerprint `number`.
    #[inline]
    fn hint(&self, number: u32) {
        let (of, rank) = self.rank(number);
        self.postings[of].hint(rank);
    }

    /// Prefetches the list that [`documents`](Self::documents) reads for fingerprint `number`, if it has a list.
    #[inline]
    fn hint_list(&self, number: u32) {
        let (of, rank) = self.rank(number);
        self.postings[of].hint_list(rank);
    }

    /// Returns the segment and ordinal of the document of fingerprint `number` if the fingerprint has only one document
    /// and its segment has no deleted documents. If the result is `None`, the caller must call
    /// [`documents`](Self::documents).
    #[inline]
    fn only(&self, number: u32) -> Option<(usize, u32)> {
        let (of, rank) = self.rank(number);
        let ordinal = self.postings[of].only(rank).filter(|_| self.segments[of].1.is_empty())?;
        Some((of, ordinal))
    }

    /// Replaces `ordinals` with the ordinals of the live documents of fingerprint `number`. Returns the position of
    /// their segment.
    #[inline]
    pub(crate) fn documents(&self, number: u32, ordinals: &mut Vec<u32>) -> Result<usize> {
        let (of, rank) = self.rank(number);
        self.postings[of].documents(rank, ordinals)?;
        let deleted = self.segments[of].1;
        if !deleted.is_empty() {
            ordinals.retain(|&ordinal| !deleted.contains(ordinal));
        }
        Ok(of)
    }

    pub(crate) fn of<'o>(&self, number: usize, ordinals: &'o [u32]) -> Documents<'o>
    where
        'a: 'o,
    {
        Documents { number, segment: self.segments[number].0, ordinals }
    }

    /// Splits all fingerprints into ranges of at most [`STRETCH`] ranks, each with the position of its segment.
    fn stretches(&self) -> Vec<(usize, Range<u64>)> {
        let mut all = Vec::new();
        for (number, (segment, _)) in self.segments.iter().enumerate() {
            let count = segment.distinct_fingerprints();
            let stretch = |start: u64| (number, start..count.min(start + STRETCH));
            all.extend((0..count).step_by(STRETCH as usize).map(stretch));
        }
        all
    }
}

/// Loads the fingerprints of all segments into memory, on `threads` threads.
fn hold(segments: &[(&Segment, &RoaringBitmap)], count: usize, threads: usize) -> Result<Zeroed<u64>> {
    let mut held = Zeroed::shared(count, threads)?;
    let mut rest = &mut held[..];
    let mut work: Vec<Vec<_>> = Vec::new();
    work.resize_with(threads, Vec::new);
    for &(segment, _) in segments {
        for (work, stretch) in work.iter_mut().zip(segment.fingerprint_stretches(threads)?) {
            let (to, more) = rest.split_at_mut((stretch.rows.end - stretch.rows.start) as usize);
            rest = more;
            work.push((segment, stretch, to));
        }
    }
    let mut work: Vec<_> = work.into_iter().enumerate().collect();
    hamming::on_threads(&mut work, |(part, work)| {
        for (segment, stretch, to) in work {
            segment.read_fingerprints(stretch, to)?;
        }
        segments.iter().try_for_each(|(segment, _)| segment.check_postings(*part, threads))
    })?;
    Ok(held)
}

/// Finds all pairs of distinct fingerprints within `within` bits of each other, and passes each pair once to `take`,
/// with the live documents of both fingerprints. A fingerprint of several documents is also passed, as a pair with
/// itself. With two snapshots, passes only pairs of a left and a right fingerprint. Creates a state for each thread
/// with `begin`, and returns the states. The order of calls and of states is unspecified.
///
/// The result is exact for all supported radii and does not depend on the table design of the index, as only the first
/// table is read. Time: O((k + 1) n + n^2 (k + 1) / 2^(64 / (k + 1)) + pairs) for n random fingerprints; dividing large
/// buckets further reduces the second term. Memory: `resources.memory`, plus up to 12 bytes per fingerprint and thread
/// if nearly all fingerprints agree in one block.
///
/// For an index of [codes](twindex::params::ParamsBuilder::codes), any radius is supported, in the time and memory of
/// [`near_codes_within`](super::codes::near_codes_within).
///
/// # Errors
/// [`Error::Invalid`] for an unsupported radius, an index without fingerprints, or more than `u32::MAX` fingerprints;
/// [`Error::ParamsMismatch`] if the fingerprints of the two snapshots cannot be compared; [`Error::Corrupt`], or the error
/// of `take`.
pub fn near_fingerprints_within<S: Send>(
    left: &Snapshot,
    right: Option<&Snapshot>,
    within: u32,
    resources: JoinResources<'_>,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, &NearFingerprints<'_>) -> Result<()> + Sync,
) -> Result<Vec<S>> {
    if let Some(right) = right {
        left.params().check_same_fingerprints(right.params())?;
    }
    if let Some(codes) = left.params().codes {
        return near_stored_codes_within(left, right, codes, within, resources, begin, take);
    }
    left.check_within(within)?;
    right.map_or(Ok(()), |right| right.check_within(within))?;
    let snapshots = [Some(left), right];
    let mut resources = resources;
    let left = Fingerprints::new(left, &mut resources)?;
    let right = right.map(|right| Fingerprints::new(right, &mut resources)).transpose()?;
    let read_left = |piece: Piece, each: &mut dyn FnMut(u32, &[u64]) -> Result<()>| left.read(piece, each);
    let read_right = |piece: Piece, each: &mut dyn FnMut(u32, &[u64]) -> Result<()>| {
        right.as_ref().map_or(Ok(()), |right| right.read(piece, each))
    };
    let mut sides = vec![left.values(&read_left)];
    sides.extend(right.as_ref().map(|right| right.values(&read_right)));
    let other = right.as_ref().unwrap_or(&left);
    let meet = |(state, mine, theirs): &mut (S, Vec<u32>, Vec<u32>), pairs: &[NearPair]| {
        for (at, pair) in pairs.iter().enumerate() {
            // Prefetches the memory that later pairs will read.
            if let Some(ahead) = pairs.get(at + AHEAD) {
                left.hint(ahead.a);
                other.hint(ahead.b);
            }
            if let Some(ahead) = pairs.get(at + LISTS_AHEAD) {
                left.hint_list(ahead.a);
                other.hint_list(ahead.b);
            }
            if let (Some((a, mine)), Some((b, theirs))) = (left.only(pair.a), other.only(pair.b)) {
                let (left, right) =
                    (left.of(a, slice::from_ref(&mine)), other.of(b, slice::from_ref(&theirs)));
                take(state, &NearFingerprints { left, right, distance: pair.distance, inside: false })?;
                continue;
            }
            let (a, b) = (left.documents(pair.a, mine)?, other.documents(pair.b, theirs)?);
            if mine.is_empty() || theirs.is_empty() {
                continue;
            }
            let (left, right) = (left.of(a, mine), other.of(b, theirs));
            take(state, &NearFingerprints { left, right, distance: pair.distance, inside: false })?;
        }
        Ok(())
    };
    let states = hamming::join(
        &sides,
        within,
        resources,
        &TablePool::default(),
        || (begin(), Vec::new(), Vec::new()),
        meet,
    )?;
    let mut states: Vec<S> = states.into_iter().map(|(state, ..)| state).collect();
    if right.is_none() {
        let (stretches, next) = (left.stretches(), AtomicUsize::new(0));
        states.resize_with(resources.threads.clamp(1, stretches.len().max(1)).max(states.len()), &begin);
        hamming::on_threads(&mut states, |state| {
            let mut live = Vec::new();
            while let Some((number, ranks)) = stretches.get(next.fetch_add(1, Ordering::Relaxed)) {
                let deleted = left.segments[*number].1;
                left.postings[*number].for_each_shared(ranks.clone(), |_, ordinals| {
                    let mut all = left.of(*number, ordinals);
                    if !deleted.is_empty() {
                        live.clear();
                        live.extend(ordinals.iter().copied().filter(|&ordinal| !deleted.contains(ordinal)));
                        all.ordinals = &live;
                    }
                    take(state, &NearFingerprints { left: all, right: all, distance: 0, inside: true })
                })?;
            }
            Ok(())
        })?;
    }
    snapshots.into_iter().flatten().try_for_each(Snapshot::check_maps)?;
    Ok(states)
}

/// Maps the live documents of a snapshot to their positions in the order of keys.
pub(crate) struct Order {
    /// For each segment, the position of each document. Empty for a single segment, where a document's ordinal is its
    /// position.
    places: Vec<Vec<u32>>,
}

impl Order {
    pub(crate) fn of(snapshot: &Snapshot) -> Result<Self> {
        let segments: Vec<_> = snapshot.segments().collect();
        if segments.len() < 2 {
            return Ok(Self { places: Vec::new() });
        }
        check_count(segments.iter().map(|(segment, _)| segment.documents()).sum())?;
        let mut places: Vec<Vec<u32>> =
            segments.iter().map(|(segment, _)| vec![0; segment.documents() as usize]).collect();
        let sources = segments.iter().map(|(segment, deleted)| LiveKeys::new(segment, Some(deleted)));
        let mut merge = Merge::new(sources, Ord::cmp);
        let mut place = 0;
        while let Some((of, &(_, ordinal))) = merge.next()? {
            place += 1;
            places[of][ordinal as usize] = place;
        }
        // Each deleted document gets the position of the previous document, so that the positions of a segment ascend and
        // can be searched.
        for places in &mut places {
            let mut last = 0;
            for place in places {
                if *place == 0 {
                    *place = last;
                }
                last = *place;
            }
        }
        Ok(Self { places })
    }

    #[inline]
    pub(crate) fn place(&self, segment: usize, ordinal: u32) -> u32 {
        self.places.get(segment).map_or(ordinal, |places| places[ordinal as usize])
    }

    /// Returns the ordinal, in a segment, of the live document at position `place`.
    pub(crate) fn ordinal(&self, segment: usize, place: u32) -> u32 {
        self.places.get(segment).map_or(place, |all| all.partition_point(|&other| other < place) as u32)
    }
}

/// Finds all pairs of live documents of `left` whose fingerprints are within `within` bits, and passes each pair once
/// to `each`, with the distance. The document with the smaller key comes first, and pairs ascend by both keys. If
/// `right` is given, passes each pair of a document of `left` and a document of `right` instead, with the document of
/// `left` first. Both documents may have the same key. Two documents with the same fingerprint are a pair at distance
/// 0.
///
/// Takes the time and memory of [`near_fingerprints_within`], and also sorts the pairs. A pair takes 16 bytes, in half
/// of `resources.memory`, and beyond that in unnamed files in `resources.dir`. An index with several segments takes 4
/// more bytes per document.
///
/// # Errors
/// Same as [`near_fingerprints_within`], [`Error::Io`] from a scratch file, or the error of `each`.
pub fn pairs_within<'s, E: From<Error>>(
    left: &'s Snapshot,
    right: Option<&'s Snapshot>,
    within: u32,
    resources: JoinResources<'_>,
    mut each: impl FnMut(Place<'s>, Place<'s>, u32) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let order = Order::of(left)?;
    let other = right.map(Order::of).transpose()?;
    let across = other.is_some();
    let other = other.as_ref().unwrap_or(&order);
    let mut resources = resources;
    let memory = resources.memory / 2 / resources.threads.max(1);
    resources.memory /= 2;
    let begin = || Sorter::<u128>::new(resources.dir, memory);
    let sorters = near_fingerprints_within(left, right, within, resources, begin, |sorter, meeting| {
        let (left, right) = (meeting.left, meeting.right);
        let [one, two] = [left.number, right.number].map(|number| number as u128 & 0xffff);
        let distance = u128::from(meeting.distance);
        for_each_pair(left.ordinals, right.ordinals, meeting.inside, |a, b| {
            let (a, b) = (order.place(left.number, a), other.place(right.number, b));
            let ((a, one), (b, two)) =
                if across || a < b { ((a, one), (b, two)) } else { ((b, two), (a, one)) };
            sorter.push(u128::from(a) << 96 | u128::from(b) << 64 | one << 48 | two << 32 | distance)
        })
    })?;
    let sorted = finish_all(sorters)?;
    let segments: Vec<&Segment> = left.segments().map(|(segment, _)| segment).collect();
    let others: Vec<&Segment> = right.unwrap_or(left).segments().map(|(segment, _)| segment).collect();
    merge(&sorted, |pair| {
        let (one, two) = ((pair >> 48) as usize & 0xffff, (pair >> 32) as usize & 0xffff);
        let a = Place { segment: segments[one], ordinal: order.ordinal(one, (pair >> 96) as u32) };
        let b = Place { segment: others[two], ordinal: other.ordinal(two, (pair >> 64) as u32) };
        each(a, b, pair as u32)
    })
}

/// Like [`pairs_within`], but for numbers that `number` assigns to documents. Passes each pair of different numbers whose
/// documents are within the radius once to `each`: the smaller number first, with the smallest distance of their documents,
/// in ascending order. Documents for which `number` returns `None` are skipped.
///
/// Documents with the same number form no pair; use this for identical documents. A quarter of `resources.memory` holds
/// the numbers and half holds pairs; data beyond that is written to unnamed files in `resources.dir`. `number` and
/// `each` are called on the calling thread.
///
/// # Errors
/// Same as [`near_fingerprints_within`], the error of `number`, or [`Error::Io`] from the scratch file.
pub fn numbered_pairs_within<E: From<Error>>(
    snapshot: &Snapshot,
    within: u32,
    resources: JoinResources<'_>,
    number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
    mut each: impl FnMut(u32, u32, u32) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let numbers =
        numbers(snapshot, &twindex::sys::MemoryBudget::new(resources.dir, resources.memory / 4), number)?;
    let memory = resources.memory / 2 / resources.threads.max(1);
    let resources = JoinResources { memory: resources.memory / 2, ..resources };
    let fill = |documents: &Documents<'_>, out: &mut Vec<u32>| {
        out.clear();
        let numbers = documents.ordinals.iter().map(|&at| numbers.of(documents.number)[at as usize]);
        out.extend(numbers.filter(|&number| number != NO_NUMBER));
        out.sort_unstable();
        out.dedup();
    };
    let begin = || (Sorter::<u128>::new(resources.dir, memory), Vec::new(), Vec::new());
    let states = near_fingerprints_within(
        snapshot,
        None,
        within,
        resources,
        begin,
        |(pairs, left, right), meeting| {
            fill(&meeting.left, left);
            fill(&meeting.right, right);
            for &b in &*right {
                for &a in left.iter().filter(|&&a| a != b && (a < b || !meeting.inside)) {
                    let (a, b) = (a.min(b), a.max(b));
                    pairs.push(u128::from(a) << 64 | u128::from(b) << 32 | u128::from(meeting.distance))?;
                }
            }
            Ok(())
        },
    )?;
    let sorted = finish_all(states.into_iter().map(|(pairs, ..)| pairs))?;
    let mut last = None;
    merge(&sorted, |pair| {
        let (a, b, distance) = ((pair >> 64) as u32, (pair >> 32) as u32, pair as u32);
        // Equal pairs are sorted by distance, so the first one has the smallest distance.
        if last.replace((a, b)) == Some((a, b)) { Ok(()) } else { each(a, b, distance) }
    })
}
