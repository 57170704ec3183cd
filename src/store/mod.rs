//! An index in a directory, to which documents are added and from which they are removed over time.
//!
//! - [`index`]: creates and opens an index; [`writer`]: adds and removes documents in batches; [`snapshot`]: an
//!   immutable view of the index, and its queries.
//!
//! - [`merge_plan`]: decides which segments are merged, and when; [`verify`]: checks every byte of an index;
//!   [`salvage`]: recovers the intact documents of a damaged index; [`idf`]: files of IDF tables.
//!
//! Internal modules: `names` builds and parses file names; `state` holds an index as of one commit; `shared` holds the data
//! that the handles and the writer of an index share; `log` stores batches in log files until their documents are in a
//! segment, and `memtable` holds the same documents in memory; `history` identifies the manifest and the log records that a
//! state was read from; `part` gives segments and memtables a common interface; `generation` publishes a new generation in a
//! crash-safe order; `recovery` opens an index, also after a crash; `finished` checks and links the
//! files of other indexes.
//!
//! A small batch is appended to the log and added to the memtable; one sync makes it durable. A full memtable is written as
//! a segment; a large batch is written directly as segments. Segments are merged to keep their number small.

mod copies;
mod directory;
mod document;
mod evidence;
mod finished;
mod generation;
pub mod groups;
mod history;
pub mod idf;
pub mod index;
#[cfg(all(test, twindex_shuttle))]
#[path = "../../tests/support/interleavings/mod.rs"]
mod interleavings;
mod known_leaders;
mod log;
mod log_reader;
mod marked;
mod memory;
mod memtable;
pub mod merge_plan;
mod merging;
mod metrics;
mod names;
mod nearest;
pub mod orphans;
mod part;
pub mod query;
mod range;
mod record;
mod recovery;
pub mod salvage;
mod shards;
mod shared;
pub mod snapshot;
mod state;
pub mod verify;
pub mod writer;

pub use copies::{MergedShards, OnConflict};
pub use document::Document;
pub use groups::{
    Decision, GROUP_QUESTIONS, Group, GroupRule, Groups, Leader, LeaderChange, Membership, Resources,
};
pub use index::{Index, OpenOptions};
pub use metrics::{Activity, Metrics};
pub use names::is_of_an_index;
pub use query::{Answers, Hit, Query};
pub use range::Keys;
pub use record::Record;
pub use snapshot::Snapshot;
pub use writer::{Admitted, Durability, Lookahead, Writer, WriterOptions};
