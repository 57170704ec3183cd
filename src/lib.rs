//! twindex.
pub mod error;
pub mod params;
pub mod sketch;
pub use error::{Error, Result};
pub use params::Params;
