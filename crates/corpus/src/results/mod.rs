//! The files of a results folder.

pub(crate) mod about_run;
pub(crate) mod code_lines;
pub mod compared;
pub(crate) mod documents;
pub(crate) mod folder;
pub(crate) mod index;
pub(crate) mod layout;
pub(crate) mod missed;
pub mod page;
pub(crate) mod report;
pub(crate) mod run_file;
pub(crate) mod sources;
pub(crate) mod survey;
pub(crate) mod tables;
pub(crate) mod wordless;
pub(crate) mod write;
pub(crate) mod written;
