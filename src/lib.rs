#![doc = include_str!("../README.md")]
//!
//! # A map of the modules
//!
//! Most programs need [`Index`], [`Params`], [`Snapshot`] and [`Writer`], and can skip the rest.
//!
//! | module | subject |
//! |---|---|
//! | [`params`] | every choice that changes bytes |
//! | [`sketch`] | text to numbers: tokens, shingles, simhash, `MinHash`, features, estimates |
//! | [`store`] | a directory as an index: create, open, write, commit, snapshot, query, verify |
//! | [`join`] | many against many: candidates, exact verification, pairs, clusters |
//! | [`segment`] | one immutable file: build, open, probe, scan, verify |
//! | [`mod@format`] | every byte on disk, part by part as in `format-spec.md` |
//! | [`tables`], [`bands`] | the mathematics: permutation tables and radii; bands and recall |
//! | [`choices`] | the mathematics of features: bounds, tails, P(fungible), presets, a chooser |
//! | [`sys`] | the seam to the operating system: files, maps, the lock |
//! | [`error`] | what can go wrong, by what the caller can do about it |
//!
//! Data flows one way: `join` uses snapshots of the `store`, the store uses segments, segments use `format`. `sketch`
//! needs only `params`; its [IDF tables](sketch::idf) alone, which are counted beyond memory and stand in
//! files, use `format` and `sys` too.

// The model of a disk that tests share names the library as a program does.
#[cfg(all(test, twindex_shuttle))]
extern crate self as twindex;

pub mod bands;
pub mod choices;
pub mod error;
pub mod format;
pub mod join;
pub mod key;
pub mod params;
pub mod segment;
pub mod sketch;
pub mod store;
mod sync;
pub mod sys;
pub mod tables;

pub use error::{Error, Result};
pub use format::attached::Attached;
pub use key::{Key, KeyBuf};
pub use params::Params;
pub use sketch::{Fingerprint, Resemblance, Sketch, Sketcher};
pub use store::{Admitted, Answers, Durability, Hit, Index, Query, Snapshot, Writer};

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
