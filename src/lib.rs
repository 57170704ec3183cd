//! twindex.
pub mod bands;
pub mod error;
pub mod format;
pub mod join;
pub mod kernel;
pub mod key;
pub mod params;
pub mod segment;
pub mod sketch;
pub mod store;
pub mod sys;
pub mod tables;
pub use error::{Error, Result};
pub use key::{Key, KeyBuf};
pub use params::Params;
pub use sketch::{Fingerprint, Resemblance, Sketch, Sketcher};
pub use store::{Answers, Hit, Index, Query, Snapshot, Writer};
