//! Observers of a job: progress while it reads, notes, and folders that are half done.

use std::any::Any;
use std::path::Path;

/// How far a read has come. It ends when this is dropped.
pub trait Progress: Sync {
    /// The number of bytes of the input that are read; called for every few documents.
    fn set(&self, bytes: u64);
}

/// Says nothing.
impl Progress for () {
    fn set(&self, _: u64) {}
}

/// An observer of a job. Each method does nothing by default: `()` observes nothing.
pub trait Observer: Sync {
    /// A read begins. `total` is the number of bytes, where it is known; `what` names the work in a word or two.
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn Progress + '_> {
        let _ = (what, total);
        Box::new(())
    }

    /// Something that a person should know before the job ends, and that is no result.
    fn note(&self, note: &str) {
        let _ = note;
    }

    /// A result that could not be made, while the job goes on without it.
    fn missing(&self, what: &str) {
        let _ = what;
    }

    /// A part of a job that can be [resumed](crate::Dedup::resume) is durable: a run that continues does not repeat it.
    /// `part` names it.
    fn sealed(&self, part: &str) {
        let _ = part;
    }

    /// A folder that is made, and goes if the job fails. Until what is returned is dropped, a program
    /// that ends the process by force may remove it.
    fn half_done(&self, folder: &Path) -> Box<dyn Any> {
        let _ = folder;
        Box::new(())
    }
}

impl Observer for () {}
