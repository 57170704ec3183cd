//! One immutable file: built once, mapped, probed, scanned, verified.
//!
//! Most users need [`crate::Index`] and can skip this module. A segment knows no other segment and nothing of the
//! directory it stands in.
//!
//! - [`records`]: what goes in, column by column;
//! - [`build`]: records to a file, front to back;
//! - [`open`]: a file to a [`Segment`], checked as far as its head, contents and extents;
//!   a page's checksum is looked at when the page is first touched;
//! - [`keys`], [`near`], [`buckets`], [`samples`], [`scan`]: the questions;
//! - [`verify`]: the slow proof that all of it is sound.

pub mod buckets;
pub mod build;
pub mod keys;
pub mod near;
pub mod open;
mod output;
mod pages;
pub mod records;
pub mod samples;
pub mod scan;
pub mod verify;

pub use build::Built;
pub use open::Segment;
pub use records::Records;
