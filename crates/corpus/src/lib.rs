#![doc = include_str!("../README.md")]
//!
//! ```text
//! files, folders, archives --read--> texts --shingle--> sets -------rule-----> kept.*        documents as read
//! (or texts in memory)                                           |             pairs.tsv     removed documents and why
//!                                                                +-----------> clusters.tsv  one line per document
//!                                                                              report.html   a page about the run
//!                                                                              index/        on request, for queries
//! ```
//!
//! [`Dedup`] is the main job; it reads and writes files. [`DedupTexts`] applies the same rule to texts in memory:
//!
//! ```
//! use twindex_corpus::DedupTexts;
//!
//! let texts = ["a rose is a rose is a rose", "something else", "a rose is a rose is a rose"];
//! let found = DedupTexts::default().run(&texts.map(str::as_bytes))?;
//! assert_eq!(found.kept_of, [0, 1, 0]); // the third text is a copy of the first
//! # Ok::<(), anyhow::Error>(())
//! ```
//!
//! A job that reads a JSON Lines file:
//!
//! ```no_run
//! use twindex_corpus::{Dedup, Near};
//!
//! fn main() -> twindex_corpus::Result<()> {
//!     let mut dedup = Dedup::new(["pages.jsonl"], "deduped");
//!     dedup.rule.near = Some(Near::Resemblance(0.9));
//!     let report = dedup.run()?;
//!     println!("{} of {} documents stay, in {:?}", report.kept, report.input.documents, report.kept_files);
//!     Ok(())
//! }
//! ```
//!
//! # Errors
//!
//! Errors are [`anyhow::Error`]. The message says what failed, where (file, line), what was expected and found, and
//! what to do. A program may search the chain of causes for [`InvalidOptions`], [`twindex::Error`] and
//! [`std::io::Error`].
//!
//! # The feature `unstable`
//!
//! The feature `unstable` makes the internals of the jobs public for other crates, tests and benchmarks of this
//! project. Items that are public only with this feature are exempt from semantic versioning: any release may change
//! them.

// Without the feature `unstable`, the compiler would warn about items that only other crates use.
#![cfg_attr(
    not(feature = "unstable"),
    allow(dead_code, unreachable_pub, unused_imports, rustdoc::private_intra_doc_links)
)]

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

pub mod settings;
pub mod stream;

parts! { input passages results sketching urls work }

mod dedup;
mod dedup_texts;
mod error;
mod journal;
mod rule;
mod stored;
mod why;

#[cfg(feature = "unstable")]
pub use passages::boilerplate;
#[cfg(feature = "unstable")]
pub use results::{compared, page};
#[cfg(feature = "unstable")]
pub use settings::text;
#[cfg(feature = "unstable")]
pub use sketching::{contents, idf, sharing, texts};
#[cfg(feature = "unstable")]
pub use work::{lost, numbers, output_path, shard, tsv, watch};

pub use dedup_texts::{DedupTexts, TextAttributes, TextsResult};
pub use error::InvalidOptions;
pub use input::{
    AttachedFields, Charset, Compression, Counts, DecidingFields, Dialect, Features, FieldNumber, FieldPath,
    Ids, InputFormat, InputOptions, InvalidUtf8, Kind as InputKind, Quote, Selection as FieldSelection,
    UrlPart,
};
pub use passages::boilerplate::{BOILERPLATE, BOILERPLATE_WORDS, SpanCounting, SpanWords};
pub use passages::{
    Boilerplate, Exact, Gram as PassageGram, PassageAnswer, PassageIndex as PassagesIndex, PassageQuery,
    PassageReport, PassageSteps, Passages, PassagesOfTexts, SharedDocument, SharedPage, Unit,
};
pub use results::documents::Revisits;
pub use results::report::Report;
pub use results::survey::RemovedKinds;
pub use rule::against::{HistoryCost, HistoryKind, HistoryUsed};
pub use rule::left_out::LeftOutReport;
pub use rule::repeated::RepeatedKeys;
pub use settings::job::Dedup;
pub use settings::text::{StopList, TextFold, TextForm, TextOptions};
pub use settings::{
    Also, BoilerplateSpans, Fingerprints, IndexOf, Keep, KeepOrder, MEMORY, MEMORY_MIN, Near, Reading,
    Resources, Results, Rule, Scope, THRESHOLD, THRESHOLD_MIN, Weights,
};
pub use sketching::sharing::Sharing;
pub use sketching::{SetMaker, SetWork};
pub use stored::codes::KeyedCodes;
pub use stored::order::KeepValues;
pub use twindex_join::SharedProgress;
pub use urls::{Host, HostCounter, Hosts, Mirror};
pub use why::{DocumentStatus, Explanation, FieldOfBoth, Reason, Sets, TableLine, Why};
pub use work::observer::{Observer, Progress};
pub use work::shard::part_of;
pub use work::watch::Stages;
pub use work::word_diff::{Hunk, Run, WordDiff, WordOrigin};

/// The result type of functions in this crate.
pub type Result<T> = anyhow::Result<T>;
