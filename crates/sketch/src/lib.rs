//! Text to numbers: what two documents are compared by.
//!
//! ```text
//! text --token--> words --shingle--> hashes of w words --+--simhash--> fingerprint
//!                                                        +--minhash--> signature --feature--> features
//!                                                        +--samples--> bottom-t and 0-mod-m hashes
//! ```
//!
//! [`Sketcher`] does all of it with one set of parameters, and is all that most programs need. The modules
//! below are for those who bring their own tokens, sets or signatures; each names the paper it follows and
//! where it departs from it, and defines its numbers completely.
//!
//! The same text and parameters give the same sketch on every machine and with every version: what is
//! computed here stands in files. Nothing in this crate reads files, clocks or random numbers, or starts
//! threads.

mod classic;
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
pub mod samples;
pub mod shingle;
pub mod simhash;
pub mod token;
mod token_tables;
mod weighted;
mod words;

mod error;
mod fields;
#[doc(hidden)]
pub mod lines;
pub mod params;
mod shingling;
mod sketcher;
mod stored;

pub use classic::rabin::Rabin;
pub use classic::rabin_karp::RabinKarp;
pub use classic::{rabin, rabin_karp};
pub use cut::{Cutter, Units};
pub use error::{Error, Result};
pub use estimate::{Resemblance, containment, intersection_from, jaccard, standard_error};
pub use feature::features;
pub use fungible::{agreeing, fungible, small_features};
pub use idf::IdfTable;
pub use minhash::{MinHasher, matches, matches_by, pack};
pub use nearness::Nearness;
pub use params::SketchParams;
pub use samples::{Containment, Sample};
pub use shingle::{Buffers, Shingler};
pub use simhash::{Fingerprint, simhash, simhash_at};
pub use sketcher::{Scratch, Sketch, Sketcher};
pub use token::{UNICODE_VERSION, tokens};
pub use weighted::weighted;
