//! The journal of `dedup --resume`: files from which the same command continues a run that was killed.
//!
//! ```text
//! .OUT.twindex-resume/     beside OUT
//!   LOCK                   held by the run that uses the journal
//!   manifest               the options that determine the results, and a random number of the run
//!   inputs                 each file that is read: size in bytes, modification time, path
//!   reading-000001 ...     results of the chunks of the inputs (for a history: history-...)
//!   sets                   the sets that exceed the memory: the scratch file of the run
//!   decided                which groups are kept
//!   index, kept            finished files of results, with their hashes
//!   published              the identity of the folder of results, written before it is renamed
//!   results/               the results, until they are renamed to OUT
//! ```
//!
//! Each file except `sets` is written under a temporary name (with `.tmp`), synced and renamed; then the folder is
//! synced. A file with its final name is therefore complete, and files become complete in the order in which they are
//! written. Each file has hashes of all its bytes and, except for `inputs`, the id of its run. Sets are appended to
//! `sets`, and synced before the part that refers to them is complete. The part has the hashes of these sets. A resumed
//! run adds the same sets in the same order. If a file is damaged, the error names it.
//!
//! A resumed run has the same results as a run that was not stopped: it reads the stored results of each chunk in the
//! same order instead of sketching the chunk, and computes everything else from the stored results.

pub(crate) mod cache;
pub(crate) mod files;
pub(crate) mod folder;
pub(crate) mod manifest;
pub(crate) mod parts;
pub(crate) mod resume;
