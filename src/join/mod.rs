//! Many against many: candidates, exact verification, clusters.
//!
//! ```text
//! snapshot --buckets--> groups with an equal band key --candidates--> pairs --sets--> verified pairs --forest--> clusters
//!          --pairs----> all pairs within a Hamming radius
//! ```
//!
//! Everything here works on snapshots and on numbers the caller chooses for documents.

pub mod candidates;
pub mod forest;
pub mod pairs;
pub mod sets;

pub use candidates::{Candidates, candidates};
pub use forest::Forest;
pub use pairs::pairs_within;
pub use sets::ShingleSets;
