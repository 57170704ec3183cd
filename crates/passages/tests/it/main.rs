//! One test program; a module for each subject.

mod boilerplate;
mod changes;
#[path = "../support/damage.rs"]
mod damage;
mod definition;
mod index;
mod library;
#[path = "../support/suffixes.rs"]
mod suffixes;
