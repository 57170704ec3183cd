//! Joins many documents with each other: pairs within a Hamming radius, exact verification and clusters, in bounded memory.
//!
//! ```text
//! snapshot --buckets--> groups with an equal band key --candidates--> pairs --sets--> verified pairs --forest--> clusters
//!          --pairs----> all pairs within a Hamming radius
//! sketches --elements--> lists of documents --formed--> pairs with counts --merged--> estimated pairs
//! queries  --batch----> all answers within a Hamming radius
//! pairs of keys --spanning--> a star for each cluster, in bounded memory
//! ```
//!
//! ```
//! use twindex_join::{JoinResources, Forest, ShingleSets, resembling_sets};
//!
//! let dir = tempfile::tempdir()?;
//! let mut sets = ShingleSets::new(dir.path(), 1 << 20); // scratch files, bytes of memory
//! for set in [&[1, 2, 3, 4, 5][..], &[6, 7], &[2, 3, 4, 5]] {
//!     sets.push(set)?; // ascending hashes; documents are numbered from 0
//! }
//! let mut clusters = Forest::new(3);
//! resembling_sets(&sets, 0.8, 10_000, JoinResources::in_dir(dir.path()), |a, b, resemblance| {
//!     assert_eq!(resemblance.value(), 0.8); // exact: 4 of 5 shingles
//!     clusters.join(a, b);
//!     Ok::<_, twindex::Error>(())
//! })?;
//! assert_eq!([0, 1, 2].map(|document| clusters.root(document)), [0, 1, 0]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! All modules work on snapshots of an index, or on document numbers that the caller assigns.
//!
//! | from | to | module |
//! |---|---|---|
//! | a snapshot, or two | all pairs within a Hamming radius | [`pairs`], [`hamming`] |
//! | a file of fingerprints | all pairs within a Hamming radius | [`raw`] |
//! | a snapshot | groups of living documents: the leader of each document | [`living`] |
//! | a snapshot and many queries | all answers within a radius | [`batch`] |
//! | a snapshot with bands | candidate pairs that share features | [`candidates`](mod@candidates) |
//! | sets of shingle hashes | all pairs with at least a given resemblance, computed exactly | [`prefix`], [`verified`] |
//! | sets of shingle hashes | the sets to keep, by the rule of `dedup` | [`cover`] |
//! | a snapshot with sets and many texts | documents that contain them or are contained in them | [`contained`] |
//! | sets, one after the other | the sets that contain each set, and the sets that it contains | [`containing`] |
//! | sketches | pairs by their number of shared elements | [`altavista`] |
//! | pairs | clusters, in memory or out of core | [`forest`], [`spanning`] |

pub mod altavista;
mod append_only_vec;
pub mod batch;
pub mod bitmaps;
pub mod candidates;
pub mod contained;
pub mod containing;
pub mod cover;
pub mod distinct;
pub mod equal;
pub mod families;
pub mod forest;
pub mod hamming;
pub mod living;
pub mod numbers;
mod odd_sketches;
mod packed;
pub mod pairs;
pub mod prefix;
pub mod raw;
pub mod references;
pub mod runs;
pub mod scores;
mod seeded;
pub mod sets;
mod slots;
pub mod spanning;
pub mod stored;
mod threads;
pub mod verified;
mod watched;

pub use altavista::{Common, FormedPairs, Merged, SampledBy, merge_elements};
pub use batch::{
    BatchStrategy, answers_within, choose, choose_raw, raw_answers_within, sorted_answers_within,
};
pub use bitmaps::bitmap_candidates;
pub use candidates::{
    Agreement, Candidates, candidates, candidates_across, candidates_agreeing, candidates_agreeing_across,
};
pub use contained::{ContainmentAnswers, ContainmentHit, ContainmentQueries};
pub use containing::Containing;
pub use cover::{CoverPairs, CoverResult, Priority, cover_sets};
pub use distinct::SortScratch;
pub use equal::{EqualGroups, for_each_pair_between, for_each_pair_inside};
pub use families::{Difference, Families};
pub use forest::Forest;
pub use hamming::{JoinResources, Piece};
pub use living::living_groups;
pub use numbers::HashNumbers;
pub use pairs::{Documents, NearFingerprints, near_fingerprints_within, numbered_pairs_within, pairs_within};
pub use prefix::{Prefixes, prefix_candidates};
pub use raw::{Positions, RawValues, raw_near_fingerprints_within};
pub use references::{DeltaHeader, DeltaScratch, ReferenceSets};
pub use runs::{Sorted, Sorter, finish_all, merge as merge_sorted};
pub use scores::{band_scores, block_scores, scored_pairs};
pub use sets::{SetReader, ShingleSets};
pub use spanning::{SpanningForest, Stars};
pub use stored::{LastSet, StoredSet, StoredSets};
pub use verified::{
    counted_documents, resembling_documents, resembling_sets, set_candidates, sorted_pairs_of_sets,
};
pub use watched::SharedProgress;

use twindex::error::Result;
use twindex::store::Snapshot;
use twindex::store::snapshot::Place;
use twindex::sys::{Column, MemoryBudget};

/// Marks a document without a number: one that was deleted, or that the caller excluded.
const NO_NUMBER: u32 = u32::MAX;

/// The number of each document, in one column for all segments.
struct SegmentNumbers {
    all: Column<u32>,
    /// The end of each segment's part of `all`.
    ends: Vec<usize>,
}

impl SegmentNumbers {
    fn new(budget: &MemoryBudget) -> Self {
        Self { all: Column::new(budget), ends: Vec::new() }
    }

    /// Returns the numbers of the documents of a segment, indexed by ordinal.
    fn of(&self, segment: usize) -> &[u32] {
        let start = segment.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.all[start..self.ends[segment]]
    }
}

/// Calls `number` for each live document of `snapshot` and stores the results in the memory of `budget`.
fn numbers(
    snapshot: &Snapshot,
    budget: &MemoryBudget,
    mut number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<SegmentNumbers> {
    let mut numbers = SegmentNumbers::new(budget);
    for (segment, deleted) in snapshot.segments() {
        for ordinal in 0..segment.documents() as u32 {
            let is_live = !deleted.contains(ordinal);
            let found = if is_live { number(Place { segment, ordinal })? } else { None };
            numbers.all.push(found.unwrap_or(NO_NUMBER))?;
        }
        numbers.ends.push(numbers.all.len());
    }
    Ok(numbers)
}
