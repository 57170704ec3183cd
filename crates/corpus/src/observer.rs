//! Observers of a job: progress of reads, notes, and unfinished folders.

use std::any::Any;
use std::path::Path;

/// The progress of a read. The read ends when this value is dropped.
pub trait Progress: Sync {
    /// Sets the number of bytes of the input that have been read; called once for every few documents.
    fn set(&self, bytes: u64);
}

/// Ignores progress.
impl Progress for () {
    fn set(&self, _: u64) {}
}

/// An observer of a job. Each method does nothing by default; `()` ignores everything.
pub trait Observer: Sync {
    /// A read begins. `total` is the number of bytes, where it is known; `what` names the work in a word or two.
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn Progress + '_> {
        let _ = (what, total);
        Box::new(())
    }

    /// A remark for the user, reported before the job ends and not part of the results.
    fn note(&self, note: &str) {
        let _ = note;
    }

    /// A result that could not be produced; the job continues without it.
    fn missing(&self, what: &str) {
        let _ = what;
    }

    /// A part of a job that can be [resumed](crate::Dedup::resume) is durable: a run that continues does not repeat it.
    /// `part` names it.
    fn sealed(&self, part: &str) {
        let _ = part;
    }

    /// A folder that is being created, and is removed if the job fails. Until the returned value is dropped, a program that
    /// kills the process may remove the folder.
    fn half_done(&self, folder: &Path) -> Box<dyn Any> {
        let _ = folder;
        Box::new(())
    }
}

impl Observer for () {}
