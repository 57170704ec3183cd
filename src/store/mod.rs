//! A directory as a living index.
//!
//! - [`index`]: creating and opening; [`writer`]: batches; [`snapshot`]: a view that never changes, and its answers.
//!
//! - [`merge_plan`]: which segments are merged when; [`verify`]: the slow proof that it is sound; [`salvage`]: saving
//!   what can be saved; [`idf`]: files of
//!   IDF tables.
//!
//! Behind them: `names`, the files' names, made and parsed in one place; `state`, an index at one commit, read from its
//! files; `log`, batches on their way to a segment, as files, and `memtable`, the same in memory; `part`, what segments
//! and memtable are asked alike; `commit`, how a generation becomes the current one, and in which order that is
//! durable; `recovery`, what opening does after a crash, step by step.
//!
//! A small batch goes to the log and the memtable, and is durable by one sync. When the memtable is full it becomes a
//! segment; a large batch becomes one at once. Segments are merged so that they stay few.

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
