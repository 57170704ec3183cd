//! Finds, shows and removes passages that documents share with earlier documents.
//!
//! Passages are found by winnowing and an external sort, in bounded memory. The result is exact unless 122-bit hashes
//! collide. The first pass over the inputs counts selected fingerprints. The second pass collects the t-grams whose
//! fingerprint occurs more than once. A third pass writes the documents without their repeated passages. A passage
//! index is queried for the stored documents that share passages with a text.
//!
//! # The definition
//!
//! Documents have an order. A *t-gram* is a run of `t` tokens. Position `i` of a document is *repeated* if its t-gram
//! occurs in an earlier document or, with the option `within`, earlier in the same document. The *source* of a repeated
//! position is the first occurrence of its t-gram. A [`Line`] is a run of repeated positions, with the source of the first
//! one, that goes on while the t-grams after the source are the same. It covers all tokens of these t-grams. The lines are
//! the same as those computed with a suffix array.
//!
//! # How they are found
//!
//! ```text
//! tokens --Hashed--> k-gram fingerprints --Winnowing--> one for each t-gram --Recurring--> fingerprints that recur
//!        pass 2: t-grams whose fingerprint recurs --Grams, sorted by hash--> repeated positions --sorted--> Lines
//! ```
//!
//! ```
//! use twindex_corpus::passages::{Exact, Grams, Hashed, Hasher, Recurring, Shape, FinderScratch};
//!
//! let texts = ["one two three four five", "zero two three four six"];
//! let (shape, hasher) = (Shape::words(3), Hasher::new(0)); // runs of at least three words
//! let hashed = texts.map(|text| {
//!     let mut hashed = Hashed::default();
//!     hashed.clear(Exact::Tokens);
//!     let mut start = 0;
//!     for word in text.split(' ') {
//!         hashed.push_token(&hasher, text, start..start + word.len(), word.as_bytes());
//!         start += word.len() + 1;
//!     }
//!     hashed
//! });
//!
//! // Pass 1 counts the selected fingerprints, pass 2 sorts the t-grams whose fingerprint recurs.
//! let (recurring, mut work) = (Recurring::new(1 << 16)?, FinderScratch::new(shape, hasher));
//! for text in &hashed {
//!     work.count(text, &recurring, false);
//! }
//! let dir = tempfile::tempdir()?;
//! let mut grams = Grams::of_words(dir.path(), 1 << 20, shape.width());
//! for (number, text) in (0..).zip(&hashed) {
//!     let mut pushed = Ok(());
//!     work.for_each_recurring(text, &recurring, |gram| {
//!         if pushed.is_ok() {
//!             pushed = grams.push(number, &gram);
//!         }
//!     });
//!     pushed?;
//! }
//! let mut found = Vec::new();
//! grams.finish(false)?.for_each_line(|line| {
//!     found.push(&texts[line.document as usize][line.start as usize..line.end as usize]);
//!     Ok::<_, twindex::Error>(())
//! })?;
//! assert_eq!(found, ["two three four"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A t-gram contains `w = t - k + 1` k-grams; they form a window. Winnowing (Schleimer, Wilkerson and Aiken,
//! *Winnowing: local algorithms for document fingerprinting*, SIGMOD 2003) selects the minimal fingerprint of each
//! window, the rightmost one if several are equal. Equal t-grams select equal fingerprints, so a t-gram that occurs
//! twice has a fingerprint that is selected twice. The first pass therefore counts only selected fingerprints, about 2
//! / (w + 1) of all fingerprints. The second pass hashes and sorts only t-grams whose fingerprint recurs. Texts are not
//! held in memory, and no pairs of documents are formed.

pub mod boilerplate;
pub(crate) mod classes;
pub(crate) mod compared;
pub(crate) mod examples;
pub(crate) mod find;
pub mod index;
pub(crate) mod job;
pub(crate) mod memory;
pub(crate) mod options;
pub(crate) mod out;
pub(crate) mod query;
pub(crate) mod read;
pub(crate) mod spans;
pub(crate) mod texts;
pub(crate) mod written;

pub use boilerplate::Boilerplate;
pub use compared::SharedPage;
pub use find::filter::Recurring;
pub use find::finder::{FinderScratch, Gram, Shape, WIDTH_MAX};
pub use find::hashed::{Exact, Hashed, Hasher};
pub use find::lines::{Grams, Line, Repeats};
pub use find::winnow::Winnowing;
pub use index::PassageIndex;
pub use memory::{PassageSteps, PassagesOfTexts};
pub use options::{Passages, Unit};
pub use out::PassageReport;
pub use query::{PassageAnswer, PassageQuery, SharedDocument};
