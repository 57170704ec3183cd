//! Builds the index of the kept documents, and the index of all documents that the search by Hamming distance uses.

use std::path::Path;
use std::sync::Arc;

use twindex::sketch::IdfTable;
use twindex::sys::UncachedVfs;
use twindex::{Index, Params, Snapshot, WriterOptions};
use twindex_join::SetReader;

use crate::results::{compared, layout};
use crate::rule::near::JoinLimits;
use crate::stored::corpus::Corpus;
use crate::stored::groups::take_outside;
use crate::stored::sketches::{IndexMembership, Sketched};

/// The sketches, parameters and options for building an index.
pub(crate) struct Indexed<'i> {
    pub(crate) params: &'i Params,
    pub(crate) table: Option<&'i Arc<IdfTable>>,
    /// The sketches of all documents after the history, in input order.
    pub(crate) sketches: &'i Sketched,
}

impl Indexed<'_> {
    /// Builds an index of all documents that is used to find near documents. It has no sets and no marks.
    pub(crate) fn make_of_all(
        &self,
        path: &Path,
        memory: usize,
        corpus: &Corpus,
    ) -> anyhow::Result<Snapshot> {
        let mut params = self.params.clone();
        (params.sets, params.marks, params.values) = (false, false, false);
        Indexed { params: &params, ..*self }.make(path, memory, corpus, (|_| IndexMembership::Kept, false))
    }

    /// Builds an index of the documents that `wanted` selects. With `last`, no other index is built in this run, and
    /// the disk space of sketches and sets is freed while they are read.
    fn make(
        &self,
        path: &Path,
        memory: usize,
        corpus: &Corpus,
        (wanted, last): (impl Fn(u32) -> IndexMembership, bool),
    ) -> anyhow::Result<Snapshot> {
        let table = self.table.map(|table| &**table);
        // The run reads little of the index again, so its writes bypass the page cache.
        let index = Index::create_from(Arc::new(UncachedVfs), path, self.params.clone(), table)?;
        // A single commit writes segments, so no log is needed.
        let mut writer = index.writer_with(WriterOptions::default().memory(memory).logged(false))?;
        let grouped = &corpus.grouped;
        let group = |number: u32| grouped.group_of[(corpus.history + number) as usize];
        let numbers = 0..corpus.documents().len() as u32;
        // Documents of one group share a set. Sets can be freed while they are read only if documents are in the order
        // of their groups.
        let frees_sets =
            last && numbers.filter(|&number| wanted(number) != IndexMembership::Not).map(group).is_sorted();
        if frees_sets && !self.params.sets {
            grouped.sets.release_before(grouped.sets.len() as u32);
        }
        let mut reader = SetReader::new(&grouped.sets);
        let value = |number: u32| grouped.value_of(group(number));
        let key = |number: u32| corpus.keys.get(corpus.history + number);
        self.sketches.put(&mut writer, self.params, last, (&wanted, key, value), |number, out| {
            let group = group(number);
            if frees_sets {
                grouped.sets.release_before(group);
            }
            let set = if frees_sets { reader.next_set(group)? } else { reader.set(group)? };
            out.extend_from_slice(set);
            // Removes the `--inside` value from the hashes, because queries compute sets from the text alone.
            if take_outside(out, grouped.value_of(group)) {
                out.sort_unstable();
            }
            Ok(())
        })?;
        writer.commit()?;
        Ok(index.snapshot())
    }
}

/// Builds the index of the documents that `wanted` selects, unless the stopped run already did, and records the field
/// `inside` in its folder.
pub(crate) fn make_of_kept(
    indexed: &Indexed<'_>,
    inside: Option<&str>,
    corpus: &Corpus,
    limits: &JoinLimits<'_>,
    wanted: impl Fn(u32) -> IndexMembership,
) -> anyhow::Result<Snapshot> {
    let path = limits.folder.join(layout::INDEX);
    let make = |wanted| -> anyhow::Result<Snapshot> {
        let snapshot = indexed.make(&path, limits.memory, corpus, (wanted, true))?;
        if let Some(field) = inside.filter(|_| indexed.params.values) {
            compared::record(&path, field)?;
        }
        Ok(snapshot)
    };
    let Some(journal) = limits.journal else { return make(wanted) };
    if journal.files(layout::INDEX)?.is_some() {
        return Ok(Index::open(&path)?.snapshot());
    }
    let snapshot = make(wanted)?;
    journal.seal_folder(layout::INDEX, layout::INDEX)?;
    Ok(snapshot)
}
