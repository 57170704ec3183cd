//! One test program; a module for each subject.

mod definition;
mod index;
mod library;
#[path = "../support/suffixes.rs"]
mod suffixes;
