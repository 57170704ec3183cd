//! Finds spans that many documents share, such as menus, footers and licences, and removes them from texts.
//!
//! A *span* is a run of `t` words that occurs in more than `N` documents; repeats inside one document do not count. All
//! words inside spans are removed from a text. The spans are the same as those computed with a suffix array.
//!
//! Spans are found in two passes. The first pass selects fingerprints of each document by winnowing and counts them in
//! [`SharedGrams`], a filter of fixed size. Equal t-grams select equal fingerprints, so a t-gram in more than `N`
//! documents has a fingerprint that was counted more than `N` times. The second pass collects the t-grams of these
//! fingerprints, sorts their 122-bit hashes externally, and counts them exactly. The resulting list, a [`Boilerplate`],
//! stores the sorted hashes.
//!
//! ```
//! use twindex::params::Shingling;
//! use twindex::sketch::{Cutter, LeavesOut, cut::PlacedUnits};
//! use twindex_corpus::passages::boilerplate::{Boilerplate, Builder, SharedGrams};
//! use twindex_corpus::passages::{Exact, Hashed, Hasher, Shape, FinderScratch};
//!
//! let texts = ["home about us a rose", "home about us the sun", "home about us: rain"];
//! let (shape, hasher, shingling) = (Shape::words(3), Hasher::new(0), Shingling::words(1, 0));
//! let cutter = Cutter::new(&shingling)?;
//! let hashed = texts.map(|text| {
//!     let mut hashed = Hashed::default();
//!     hashed.clear(Exact::Tokens);
//!     cutter.for_each_placed(text, &mut PlacedUnits::default(), |place, word| {
//!         hashed.push_token(&hasher, text, place, word);
//!     });
//!     hashed
//! });
//! let dir = tempfile::tempdir()?;
//! let (shared, mut work) = (SharedGrams::new(1 << 16, 2)?, FinderScratch::new(shape, hasher));
//! hashed.iter().for_each(|text| work.count_shared(text, &shared));
//! let mut builder = Builder::new(dir.path(), 1 << 20);
//! for text in &hashed {
//!     let mut grams = Vec::new();
//!     work.append_shared(text, &shared, &mut grams);
//!     builder.push(&grams)?;
//! }
//! builder.finish(&dir.path().join("boilerplate"), (3, 2), &shingling)?;
//!
//! let list = Boilerplate::open(&dir.path().join("boilerplate"))?;
//! let mut rest = String::new();
//! assert_eq!(list.leave_out(texts[0], &mut rest)?.words, 3);
//! assert_eq!(rest, " a rose");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub(crate) mod build;
pub(crate) mod count;
pub(crate) mod format;
pub(crate) mod list;

pub use build::{Builder, SharedGrams};
pub use count::{
    BOILERPLATE, BOILERPLATE_WORDS, SpanCounting, SpanWords, copy, digest, open, sketcher, sketcher_with,
};
pub use format::ListTotals;
pub use list::Boilerplate;
