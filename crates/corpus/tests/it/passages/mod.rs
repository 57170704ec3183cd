//! Tests of passages.

mod boilerplate;
mod changes;
mod damage;
mod definition;
mod index;
mod library;
mod suffixes;
