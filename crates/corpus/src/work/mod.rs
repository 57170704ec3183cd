//! Utilities for all jobs: time, progress, numbers and files.

pub(crate) mod file;
pub mod lost;
pub mod numbers;
pub(crate) mod observer;
pub mod output_path;
pub(crate) mod own_folder;
pub mod shard;
pub mod tsv;
pub mod watch;
pub(crate) mod word_diff;
