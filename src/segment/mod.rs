//! One immutable file: built once, mapped, probed, scanned, verified.
//!
//! Most users need [`crate::Index`] and can skip this module. A segment knows no other segment and nothing of the
//! directory it is in.
//!
//! - [`records`]: what goes in, column by column;
//! - [`build`]: records to a file, front to back; [`rows`]: the same from more than fits in memory;
//! - [`merge`]: segments to one;
//! - [`sorted`], [`spilled`]: sorting, and columns that go to scratch files;
//! - `file`: the bytes, whose pages are compared with their checksums when they are first touched; `parsed`: a file whose
//!   sections are known; [`open`]: a [`Segment`], whose sections are what the parameters ask for;
//! - [`keys`], [`near`], [`buckets`], [`samples`], `attached`, [`scan`], [`ordered`]: the questions;
//! - [`verify`]: the slow proof that all of it is sound; [`salvage`]: what can be read where it is not.

pub mod ask;
mod attached;
pub mod buckets;
pub mod build;
mod entries;
pub mod features;
mod file;
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
pub mod sets;
mod sift;
pub mod sorted;
pub mod spilled;
mod tables;
pub mod verify;

pub use ask::Ask;
pub use build::Built;
pub use open::Segment;
pub use probe::Scratch;
pub use records::Records;
