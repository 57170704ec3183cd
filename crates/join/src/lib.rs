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
//! | a snapshot, or two | all pairs within a Hamming radius | [`hamming`] |
//! | a file of fingerprints | all pairs within a Hamming radius | [`hamming::raw`] |
//! | fingerprints of 64 to 512 bits | all pairs within any Hamming radius | [`hamming::codes`] |
//! | a snapshot | groups of live documents: the leader (representative) of each document | [`clusters::living`] |
//! | a snapshot and many queries | all answers within a radius | [`hamming::batch`] |
//! | a snapshot with bands | candidate pairs that share features | [`bands`] |
//! | sets of shingle hashes | all pairs with at least a given resemblance, computed exactly | [`pairs`] |
//! | sets of shingle hashes | the sets to keep, by the rule of `dedup` | [`keep`] |
//! | a snapshot with sets and many texts | documents that contain them or are contained in them | [`contain::contained`] |
//! | sets, one after the other | the sets that contain each set, and the sets that it contains | [`contain::containing`] |
//! | sketches | pairs by their number of shared elements | [`samples`] |
//! | pairs | clusters, in memory or out of core | [`clusters`] |

pub mod bands;
pub mod clusters;
pub mod contain;
pub mod hamming;
pub mod keep;
pub mod pairs;
pub mod samples;
pub mod sets;
pub mod work;

pub use bands::candidates::{
    Agreement, Candidates, candidates, candidates_across, candidates_agreeing, candidates_agreeing_across,
};
pub use bands::scores::{band_scores, block_scores, scored_pairs};
pub use clusters::forest::Forest;
pub use clusters::living::living_groups;
pub use clusters::spanning::{SpanningForest, Stars};
pub use contain::contained::{ContainmentAnswers, ContainmentHit, ContainmentQueries, for_each_nested};
pub use contain::containing::Containing;
pub use hamming::batch::{
    BatchStrategy, answers_within, choose, choose_raw, raw_answers_within, sorted_answers_within,
};
pub use hamming::codes::{CODE_WIDTH_MAX, Codes, near_codes_within};
pub use hamming::documents::{Documents, NearFingerprints};
pub use hamming::pairs::{near_fingerprints_within, numbered_pairs_within, pairs_within};
pub use hamming::raw::{Positions, RawValues, raw_near_fingerprints_within};
pub use hamming::{JoinResources, NearPair, Piece};
pub use keep::{CoverPairs, CoverResult, Priority, cover_sets};
pub use pairs::bitmaps::{BitmapLimits, bitmap_candidates};
pub use pairs::prefix::{Prefixes, prefix_candidates};
pub use pairs::verified::{
    counted_documents, resembling_documents, resembling_sets, set_candidates, sorted_pairs_of_sets,
};
pub use samples::{Common, FormedPairs, Merged, SampledBy, merge_elements};
pub use sets::distinct::SortScratch;
pub use sets::equal::{EqualGroups, for_each_pair_between, for_each_pair_inside};
pub use sets::families::{Difference, Families};
pub use sets::references::{DeltaHeader, DeltaScratch, EncodedSet, ReferenceSets};
pub use sets::shingle_sets::{SetReader, ShingleSets};
pub use sets::stored::{LastSet, StoredSet, StoredSets};
pub use work::numbers::HashNumbers;
pub use work::runs::{Sorted, Sorter, finish_all, merge as merge_sorted};
pub use work::watched::SharedProgress;
