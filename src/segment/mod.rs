//! One immutable segment file: written once, then mapped, probed, scanned and verified.
//!
//! Most users need [`crate::Index`] and can skip this module. A segment is self-contained: it refers neither to other
//! segments nor to the directory that contains it.
//!
//! - [`records`]: the input, stored by column;
//! - [`build`]: writes a file from records, front to back; [`rows`]: builds from more records than fit in memory;
//! - [`merge`]: merges segments;
//! - [`sorted`], [`spilled`]: sort values within a memory budget, and store columns that spill to scratch files;
//! - `file`: reads the bytes of a file and checks each page against its checksum at its first use; `parsed`: a file whose
//!   table of contents has been read; [`open`]: a [`Segment`], whose sections match its parameters;
//! - [`keys`], [`near`], [`buckets`], [`samples`], `attached`, `codes`, `containment`, [`scan`], [`ordered`]: the queries;
//! - [`verify`]: checks all data, slowly; [`salvage`]: reads the intact records of a damaged segment.

pub(crate) mod ahead;
mod attached;
pub mod buckets;
pub mod build;
mod codes;
mod containment;
mod entries;
pub mod features;
mod file;
mod filter;
pub mod held;
mod hot;
pub mod keys;
pub mod merge;
pub mod near;
pub mod open;
pub mod ordered;
mod output;
mod pages;
mod parsed;
mod partial;
mod probe;
pub mod records;
pub mod rows;
pub mod salvage;
pub mod samples;
pub mod scan;
pub mod search_options;
pub mod sets;
pub mod sorted;
pub mod spilled;
mod tables;
pub mod verify;

pub use build::BuiltSegment;
pub use open::Segment;
pub use probe::SearchScratch;
pub use records::Records;
pub use search_options::SearchOptions;
