//! Access to the operating system: files, memory maps and the writer's lock.
//!
//! Index files are accessed only through [`vfs`], so that tests can replace the disk; `real` implements this interface
//! for the disk. `unsafe` code for files is in [`mmap`]. `unsafe` code for SIGBUS, the signal for unreadable pages of a
//! map, is in `guard`.

pub mod column;
pub mod durable_file;
pub mod fork;
#[cfg(target_os = "linux")]
pub mod guard;
pub mod heap;
pub mod lock;
mod memory;
pub mod mmap;
pub mod paced;
mod past_cache;
mod real;
pub mod spill;
pub mod threads;
mod uncached;
pub mod vfs;
pub mod watch;
pub mod zeroed;

pub use column::{Column, MemoryBudget};
pub use durable_file::DurableFile;
pub use memory::MemoryVfs;
pub use mmap::Access;
pub use real::RealVfs;
pub use spill::Spill;
pub use uncached::UncachedVfs;
pub use vfs::{Bytes, Vfs};
