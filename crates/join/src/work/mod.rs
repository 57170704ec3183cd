//! Tools that all joins use: progress, external sorting and tables of numbers.

pub(crate) mod append_only_vec;
pub(crate) mod document_numbers;
pub mod numbers;
pub mod runs;
pub(crate) mod seeded;
pub(crate) mod slots;
pub(crate) mod watched;
