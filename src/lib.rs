#![doc = include_str!("../README.md")]
//!
//! # What is here
//!
//! Most programs need [`Index`], [`Params`], [`Snapshot`] and [`Writer`]. [`params`] has every choice that changes bytes,
//! and [`sketch`] (the crate `twindex-sketch`) turns text into numbers. Many documents are joined with many by the crate
//! `twindex-join`.
//!
//! # The feature `unstable`
//!
//! The feature `unstable` shows the parts that the engine is made of (its formats, segments, planner and files) to our
//! own crates, tests and measurements. They change with any release: what only this feature shows is exempt from semantic
//! versioning.

// Parts that nothing in this crate uses are there for the feature, with which all lints apply.
#![cfg_attr(
    not(feature = "unstable"),
    allow(dead_code, unreachable_pub, unused_imports, rustdoc::private_intra_doc_links)
)]

// The model of a disk that tests share names the library as a program does.
#[cfg(all(test, twindex_shuttle))]
extern crate self as twindex;

/// Parts of the engine that only the feature `unstable` shows.
macro_rules! parts {
    ($($part:ident)+) => {
        $(
            #[cfg(feature = "unstable")]
            pub mod $part;
            #[cfg(not(feature = "unstable"))]
            mod $part;
        )+
    };
}

parts! { design error extsort format key planner segment store sys }

pub mod idf;
pub mod params;
mod sync;
mod trace;

pub use design::{CodecChoice, DesignChoice};
pub use error::{Error, Result};
pub use idf::IdfBuilder;
pub use key::{Key, KeyBuf};
pub use params::Params;
pub use planner::Banding;
pub use sketch::{Fingerprint, IdfTable, Resemblance, Sketch, Sketcher};
pub use store::salvage::{Salvage, SalvagedFile, salvage};
pub use store::snapshot::Place;
pub use store::verify::{Findings, verify, verify_with};
pub use store::{
    Activity, Admitted, Answers, Decision, Document, Durability, GROUP_QUESTIONS, Group, GroupRule, Groups,
    Hit, Index, Keys, Leader, LeaderChange, Membership, MergedShards, Metrics, OnConflict, OpenOptions,
    Query, Record, Resources, Snapshot, Writer,
};
#[cfg(target_os = "linux")]
pub use sys::guard;
pub use sys::{Access, MemoryVfs, RealVfs, Vfs};
pub use twindex_sketch as sketch;

/// The programs in the documentation are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
mod embedding {}

/// See above.
#[cfg(doctest)]
#[doc = include_str!("../docs/groups.md")]
mod groups {}

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
