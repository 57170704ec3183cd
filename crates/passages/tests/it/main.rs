//! One test program; a module for each subject.

mod definition;
mod index;
