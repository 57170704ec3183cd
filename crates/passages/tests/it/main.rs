//! One test program; a module for each subject.

mod changes;
mod definition;
mod index;
