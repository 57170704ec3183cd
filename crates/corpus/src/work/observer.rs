//! Traits by which a job reports reading progress, notes and unfinished folders to its caller.

use std::any::Any;
use std::path::Path;

/// Receives the progress of reading inputs. The value is dropped when reading ends.
pub trait Progress: Sync {
    /// Sets the number of input bytes read so far. Called after every few documents.
    fn set(&self, bytes: u64);
}

/// Ignores the progress.
impl Progress for () {
    fn set(&self, _: u64) {}
}

/// An observer of a job. By default, each method does nothing; `()` ignores all notifications.
pub trait Observer: Sync {
    /// Called when reading begins. `what` names the work in one or two words. `total` is the number of bytes to read;
    /// `None` if unknown.
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn Progress + '_> {
        let _ = (what, total);
        Box::new(())
    }

    /// Called with a note for the user, before the job ends. Notes are not part of the results.
    fn note(&self, note: &str) {
        let _ = note;
    }

    /// Called when a result, named by `what`, could not be produced. The job continues without this result.
    fn missing(&self, what: &str) {
        let _ = what;
    }

    /// Called when a part of a job that can be [resumed](crate::settings::results::Results::resume) is durable. A
    /// resumed run does not repeat this part, whose name is `part`.
    fn sealed(&self, part: &str) {
        let _ = part;
    }

    /// Called when the job creates a folder that it will remove if it fails. If a signal ends the process before the
    /// returned value is dropped, the observer may remove the folder instead.
    fn half_done(&self, folder: &Path) -> Box<dyn Any> {
        let _ = folder;
        Box::new(())
    }
}

impl Observer for () {}
