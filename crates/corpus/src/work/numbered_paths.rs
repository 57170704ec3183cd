//! Gives numbers to files.

use std::path::Path;
use std::sync::Arc;

/// Files that are named many times in turn, and their indices.
#[derive(Debug, Default)]
pub(crate) struct NumberedPaths {
    paths: Vec<Arc<Path>>,
    /// The index of the file that was named last.
    last: usize,
}

impl NumberedPaths {
    /// Number of last files among which a file is searched: more than are read at the same time.
    const RECENT: usize = 256;

    /// Returns the index of a file. A file that was not named for long may get another one.
    pub(crate) fn number(&mut self, path: &Arc<Path>) -> u32 {
        if !self.paths.get(self.last).is_some_and(|last| Arc::ptr_eq(last, path)) {
            let recent = self.paths.iter().enumerate().rev().take(Self::RECENT);
            let known = recent.filter(|(_, known)| Arc::ptr_eq(known, path)).map(|(at, _)| at).next();
            self.last = known.unwrap_or_else(|| {
                self.paths.push(Arc::clone(path));
                self.paths.len() - 1
            });
        }
        self.last as u32
    }

    pub(crate) fn get(&self, number: u32) -> &Arc<Path> {
        &self.paths[number as usize]
    }
}
