//! Text to numbers.
