//! Computes sketches of texts: small numeric summaries that can be compared instead of the texts.
//!
//! ```text
//! text --token--> words --shingle--> hashes of w words --+--simhash--> fingerprint
//!                                                        +--minhash--> signature --feature--> features
//!                                                        +--samples--> bottom-t and 0-mod-m hashes
//! ```
//!
//! ```
//! use twindex_sketch::params::{Shingling, SimhashWeights, SketchParams};
//! use twindex_sketch::Sketcher;
//!
//! let params = SketchParams::new(Shingling::words(2, 0))
//!     .with_simhash(SimhashWeights::Occurrences)
//!     .with_minhash(20, 6);
//! let sketcher = Sketcher::new(params)?;
//! let one = sketcher.sketch("a rose is a rose is a rose")?;
//! let two = sketcher.sketch("A rose is a rose is a rose!")?;
//!
//! // Case and punctuation are not part of words.
//! assert_eq!(one.fingerprint().unwrap().distance(two.fingerprint().unwrap()), 0);
//! // The share of equal minima estimates the resemblance.
//! let equal = one.signature().iter().zip(two.signature()).filter(|(a, b)| a == b).count();
//! assert_eq!(equal, 120);
//! # Ok::<(), twindex_sketch::Error>(())
//! ```
//!
//! Most programs need only [`Sketcher`], which computes all of these sketches with one set of parameters. The modules
//! below are for programs that have their own tokens, sets or signatures. Each module names the paper that it follows,
//! lists its departures from the paper, and defines all its constants.
//!
//! The same text and parameters give the same sketch on every machine and with every version of this crate, because
//! sketches are stored in files. The crate reads no files, no clock and no random numbers, and starts no threads.

mod classic;
mod code;
pub mod cut;
pub mod darts;
pub mod estimate;
pub mod feature;
pub mod fungible;
#[doc(hidden)]
pub mod hash;
pub mod idf;
pub mod minhash;
pub mod nearness;
pub mod occurrences;
pub mod samples;
pub mod shingle;
pub mod simhash;
pub mod token;
mod weighted;
pub mod whole;
mod words;

mod error;
mod fields;
mod left_out;
#[doc(hidden)]
pub mod lines;
pub mod params;
mod shingling;
mod sketcher;
mod tables;

pub use classic::rabin::Rabin;
pub use classic::rabin_karp::RabinKarp;
pub use classic::{rabin, rabin_karp};
pub use code::{CODE_WIDTHS, Code};
pub use cut::{Cutter, Units};
pub use error::{Error, Result};
pub use estimate::{Resemblance, containment, intersection_from, jaccard, standard_error};
pub use feature::features;
pub use fungible::{agreeing, fungible, small_features};
pub use idf::IdfTable;
pub use left_out::{LeavesOut, LeftOut};
pub use minhash::{MinHasher, matches, matches_by, pack};
pub use nearness::Nearness;
pub use params::SketchParams;
pub use samples::{Containment, Sample};
pub use shingle::{Buffers, Shingler};
pub use simhash::{Fingerprint, simhash, simhash_at};
pub use sketcher::{Scratch, Sketch, Sketcher};
pub use token::{UNICODE_VERSION, tokens};
pub use weighted::weighted;
