#![doc = include_str!("../README.md")]
//!
//! # A map of the modules
//!
//! Most programs need [`Index`], [`Params`], [`Snapshot`] and [`Writer`], and can skip the rest.
//!
//! | module | subject |
//! |---|---|
//! | [`sketch`] | text to numbers: tokens, shingles, simhash, `MinHash`, features, estimates |
//! | [`idf`] | document frequencies, counted beyond memory |
//! | [`store`] | a directory as an index: create, open, write, commit, snapshot, query, verify |
//! | [`segment`] | one immutable file: build, open, probe, scan, verify |
//! | [`mod@format`] | every byte on disk, part by part as in `format-spec.md` |
//! | [`params`] | every choice that changes bytes |
//! | [`design`] | the designs of permutation tables and their codecs, as data |
//! | [`planner`] | predicted costs and recall of designs, bands and features, and the choice among them |
//! | [`sys`] | the seam to the operating system: files, maps, the lock |
//! | [`error`] | what can go wrong, by what the caller can do about it |
//!
//! Imports go down only: the store uses segments, segments use the `planner` and `format`, the planner uses `format`,
//! `format` uses `params`, and `params` use `design`. The crate `twindex-join` joins many documents with many, and reads
//! snapshots. Two crates lie below this one: `twindex-sketch`, re-exported as [`sketch`], turns text into numbers and
//! touches no files; `twindex-kernel` has the inner loops, compiled for each level of vector instructions.

// The model of a disk that tests share names the library as a program does.
#[cfg(all(test, twindex_shuttle))]
extern crate self as twindex;

pub mod design;
pub mod error;
pub mod format;
pub mod idf;
pub mod key;
pub mod params;
pub mod planner;
pub mod segment;
pub mod store;
mod sync;
pub mod sys;

pub use error::{Error, Result};
pub use format::attached::Attached;
pub use idf::IdfBuilder;
pub use key::{Key, KeyBuf};
pub use params::Params;
pub use sketch::{Fingerprint, IdfTable, Resemblance, Sketch, Sketcher};
pub use store::{Admitted, Answers, Durability, Hit, Index, Query, Snapshot, Writer};
pub use twindex_sketch as sketch;

/// The programs in the documentation are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
mod embedding {}

/// What the documentation promises of sharing between threads.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn sent<T: Send>() {}
    shared::<Index>();
    shared::<Snapshot>();
    shared::<segment::Segment>();
    shared::<Query>();
    shared::<Sketcher>();
    shared::<Sketch>();
    shared::<Error>();
    sent::<Writer>();
};
