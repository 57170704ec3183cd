//! One test program; a module for each subject.

mod boilerplate;
mod changes;
mod definition;
mod index;
