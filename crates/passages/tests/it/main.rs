//! Integration tests of passages: one program, with one module per subject.

mod boilerplate;
mod changes;
#[path = "../support/damage.rs"]
mod damage;
mod definition;
mod index;
mod library;
#[path = "../support/suffixes.rs"]
mod suffixes;
