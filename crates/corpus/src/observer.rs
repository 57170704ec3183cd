//! Who watches a job: progress while it reads, notes, and folders that are half done.

use std::any::Any;
use std::path::Path;

/// How far a read has come. It ends when this is dropped.
pub trait Progress: Sync {
    /// So many bytes of the input are read; called for every few documents.
    fn set(&self, bytes: u64);
}

/// Says nothing.
impl Progress for () {
    fn set(&self, _: u64) {}
}

/// Who watches a job. Every method does nothing unless it is written: `()` watches nothing.
pub trait Observer: Sync {
    /// A read begins, of so many bytes in all where that is known; `what` says in a word or two what is done.
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn Progress + '_> {
        let _ = (what, total);
        Box::new(())
    }

    /// Something that a person should know before the job ends, and that is no result.
    fn note(&self, note: &str) {
        let _ = note;
    }

    /// A folder that is made, and goes if the job fails. Until what is returned is dropped, whoever ends the process by
    /// force may remove it.
    fn half_done(&self, folder: &Path) -> Box<dyn Any> {
        let _ = folder;
        Box::new(())
    }
}

impl Observer for () {}
