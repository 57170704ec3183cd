//! A directory as a living index.
//!
//! - [`index`]: creating and opening; [`writer`]: batches; [`snapshot`]: a view that never changes, and its answers.
//!
//! - [`verify`]: the slow proof that it is sound; [`idf`]: files of IDF tables.
//!
//! Behind them: `names`, the files' names, made and parsed in one place; `state`, an index at one generation, read
//! from its files; `commit`, how a generation becomes the current one, and in which order that is durable.
//!
//! There is no log yet: a batch becomes a segment when it is committed.

mod commit;
pub mod idf;
pub mod index;
mod names;
pub mod query;
pub mod snapshot;
mod state;
pub mod verify;
pub mod writer;

pub use index::{Index, OpenOptions};
pub use names::is_of_an_index;
pub use query::{Answers, Hit, Query};
pub use snapshot::{Record, Snapshot};
pub use writer::Writer;
