//! Utilities for all jobs: time, progress, numbers and files.

pub(crate) mod file;
pub(crate) mod line_blocks;
pub mod lost;
pub(crate) mod numbered_paths;
pub mod numbers;
pub(crate) mod observer;
pub mod output_path;
pub(crate) mod own_folder;
pub(crate) mod packed_lines;
pub mod shard;
pub mod tsv;
pub mod watch;
pub(crate) mod word_diff;
