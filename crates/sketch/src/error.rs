//! The errors of this crate: invalid parameters or inputs, and sketches that cannot be compared.

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of sketching.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter out of its range, a meaningless combination of parameters, or an input of the wrong kind. The text
    /// names the problem and the allowed values.
    #[error("{0}")]
    Invalid(String),
    /// Sketches made with different parameters.
    #[error(
        "parameters differ: {field} is {index} in the index and {given} here; sketch with the index's parameters"
    )]
    ParamsMismatch {
        /// The first parameter that differs, by its name in the encoded parameters.
        field: String,
        /// The value of the index.
        index: String,
        /// The value given by the caller.
        given: String,
    },
}
