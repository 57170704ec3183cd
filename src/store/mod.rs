//! An index in a directory that changes over time.
//!
//! - [`index`]: creates and opens it; [`writer`]: batches; [`snapshot`]: a view that never changes, and its queries.
//!
//! - [`merge_plan`]: which segments are merged when; [`verify`]: the slow check of everything; [`salvage`]: recovers
//!   what is intact; [`idf`]: files of IDF tables.
//!
//! Internal modules: `names` makes and parses file names; `state` is an index at one commit, read from its files; `log`
//! holds batches on their way to a segment as files, and `memtable` holds them in memory; `part` gives segments and
//! memtable one interface; `commit` makes a generation the current one, in a durable order; `recovery` is what opening
//! does after a crash, step by step.
//!
//! A small batch goes to the log and the memtable, and one sync makes it durable. A full memtable becomes a segment; a
//! large batch becomes one at once. Segments are merged so that they stay few.

mod commit;
mod copies;
mod directory;
mod document;
pub mod groups;
pub mod idf;
pub mod index;
#[cfg(all(test, twindex_shuttle))]
mod interleavings;
mod known_leaders;
mod log;
mod memory;
mod memtable;
pub mod merge_plan;
mod merging;
mod names;
mod nearest;
mod metrics;
mod part;
pub mod query;
mod range;
mod record;
mod recovery;
pub mod salvage;
mod shards;
pub mod snapshot;
mod state;
pub mod verify;
pub mod writer;

pub use copies::{MergedShards, OnConflict};
pub use document::Document;
pub use groups::{Decision, GROUP_QUESTIONS, Group, GroupRule, Groups, Leader, LeaderChange, Membership, Resources};
pub use index::{Index, OpenOptions};
pub use names::is_of_an_index;
pub use metrics::{Activity, Metrics};
pub use query::{Answers, Hit, Query};
pub use range::Keys;
pub use record::Record;
pub use snapshot::Snapshot;
pub use writer::{Admitted, Durability, Writer};
