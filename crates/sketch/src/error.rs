//! The errors of this crate: invalid parameters or inputs, and sketches that cannot be compared.

/// The result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// The error type of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter out of range, a meaningless combination of parameters, or an input of the wrong kind. The text names the
    /// problem and the allowed values.
    #[error("{0}")]
    Invalid(String),
    /// The sketches were made with different parameters.
    #[error(
        "parameters differ: {field} is {index} in the index and {given} here; sketch with the index's parameters"
    )]
    ParamsMismatch {
        /// The name of the first parameter that differs, as in the encoded parameters.
        field: String,
        /// The value of the parameter in the index.
        index: String,
        /// The value of the parameter that the caller uses.
        given: String,
    },
}
