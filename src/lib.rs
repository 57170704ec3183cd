//! An embedded, crash-safe, memory-mapped index for near-duplicate detection: it finds the stored documents that are
//! near a given document.
//!
//! ```text
//!  text --Sketcher--> Sketch --Writer: put, delete, admit--> batch --commit--> log --flush--> segments
//!                       |                                                      |               |
//!                       +---------- Snapshot::near ------> memtable <----------+               |
//!                                        |                                                     |
//!                                        +---------------> tables, bands, sets <---------------+
//!                                        v
//!                                   Hit: key, distance, resemblance
//! ```
//!
//! A [`Sketcher`] computes the sketch of a text: a 64-bit [`Fingerprint`], and minima, which are hashed to features.
//! An [`Index`] is a folder of files that stores sketches by key. One [`Writer`] at a time adds documents; after a crash a
//! commit is either complete or absent. Any number of threads and processes query [`Snapshot`]s, which never change.
//!
//! ```
//! use twindex::{Index, Params};
//!
//! let dir = tempfile::tempdir()?;
//! let params = Params::builder().words(2).simhash(3).minhash(20, 6).build()?; // what is stored, for good
//! let index = Index::create(dir.path().join("pages.twx"), params)?;           // later: Index::open
//! let sketcher = index.sketcher()?;
//!
//! let mut writer = index.writer()?;
//! writer.put("a", &sketcher.sketch("a rose is a rose is a rose")?)?;
//! writer.put("b", &sketcher.sketch("something else altogether")?)?;
//! writer.commit()?; // durable from here on
//!
//! let snapshot = index.snapshot();
//! let query = sketcher.sketch("A rose is a rose is a rose!")?;
//! let hits = snapshot.near(&query).limit(10).into_iter().collect::<twindex::Result<Vec<_>>>()?;
//! assert_eq!(hits.len(), 1);
//! assert_eq!(hits[0].key.to_string(), "a");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Where to look
//!
//! | you want to | see |
//! |---|---|
//! | choose which data is stored, and when documents are near | [`Params`], [`params`] |
//! | create or open an index | [`Index`], [`OpenOptions`] |
//! | bound the memory, the pauses and the merges of a writer | [`WriterOptions`] |
//! | add, replace, delete; look up and add in one step | [`Writer`], [`Writer::admit`] |
//! | find near documents | [`Snapshot::near`], [`Query`], [`Hit`] |
//! | find the leader of a document's group | [`Snapshot::leader`], [`Groups`] |
//! | compute sketches without an index | [`sketch`], the crate `twindex-sketch` |
//! | find all near pairs of many documents, cluster documents | the crate `twindex-join` |
//! | remove near-duplicates from files | the crate `twindex-corpus`, the command `twindex dedup` |
//! | check, repair and monitor an index | [`verify`], [`salvage`](fn@salvage), [`Metrics`] |
//! | end long work early, or at a deadline | [`Cancel`] |
//!
//! The README of the repository gives an introduction, the folder `docs` a guide and a glossary. `format-spec.md`
//! specifies every byte of the files.
//!
//! # The feature `unstable`
//!
//! The feature `unstable` makes the internal modules of the engine (formats, segments, planner and files) public, for
//! the project's own crates, tests and benchmarks. Items that are public only with this feature may change in any
//! release and are exempt from semantic versioning.

// Without `unstable`, items that only other crates use are private and seem unused. So these lints are off in that
// case.
#![cfg_attr(
    not(feature = "unstable"),
    allow(dead_code, unreachable_pub, unused_imports, rustdoc::private_intra_doc_links)
)]

// Lets the tests of thread schedules refer to this library as `twindex`, as other tests do.
#[cfg(all(test, twindex_shuttle))]
extern crate self as twindex;

/// Declares modules that are public only with the feature `unstable`.
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

parts! { cancel design error extsort format key planner segment store sys }

pub mod idf;
pub mod params;
mod sync;
mod trace;

pub use cancel::Cancel;
pub use design::{CodecChoice, DesignChoice};
pub use error::{Error, Result};
pub use idf::IdfBuilder;
pub use key::{Key, KeyBuf};
pub use params::Params;
pub use planner::Banding;
pub use sketch::{Code, Fingerprint, IdfTable, Resemblance, Sketch, Sketcher};
pub use store::idf::{open_idf, save_idf};
pub use store::salvage::{Salvage, SalvagedFile, salvage};
pub use store::snapshot::Place;
pub use store::verify::{Findings, verify, verify_until, verify_with};
pub use store::{
    Activity, Admitted, Answers, Decision, Document, Durability, GROUP_QUESTIONS, Group, GroupRule, Groups,
    Hit, Index, Keys, Leader, LeaderChange, Lookahead, Membership, MergedShards, Metrics, OnConflict,
    OpenOptions, Query, Record, Resources, Snapshot, Writer, WriterOptions,
};
#[cfg(target_os = "linux")]
pub use sys::guard;
pub use sys::{Access, MemoryVfs, RealVfs, Vfs};
pub use twindex_sketch as sketch;

/// Compiles and runs the programs in the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

/// Compiles the program in the README of the package.
#[cfg(doctest)]
#[doc = include_str!("README.md")]
mod package_readme {}

/// Compiles and runs the programs in `docs/embedding.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/embedding.md")]
mod embedding {}

/// Compiles and runs the programs in `docs/groups.md`.
#[cfg(doctest)]
#[doc = include_str!("../docs/groups.md")]
mod groups {}

/// Checks at compile time that the types are `Send` or `Sync` as documented.
const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn sent<T: Send>() {}
    shared::<Index>();
    shared::<Snapshot>();
    shared::<segment::Segment>();
    shared::<Query>();
    shared::<Cancel>();
    shared::<Sketcher>();
    shared::<Sketch>();
    shared::<Error>();
    sent::<Writer>();
};
