//! What can go wrong: a choice or an input that has no meaning, and sketches that cannot be compared.

/// The result of everything in this crate that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of sketching.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter out of its range, a combination without a meaning, or an input of another kind; the text says which,
    /// and what is allowed.
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
        /// The value of the caller.
        given: String,
    },
}
