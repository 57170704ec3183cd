//! Builds the index of the kept documents, and the index of all documents that the search by Hamming distance uses.

use std::path::Path;
use std::sync::Arc;

use twindex::params::KeyKind;
use twindex::sketch::IdfTable;
use twindex::sys::UncachedVfs;
use twindex::{Code, Document, Index, Key, Params, Snapshot, WriterOptions};
use twindex_join::SetReader;

use crate::results::{compared, layout, wordless};
use crate::rule::clusters::Clusters;
use crate::rule::near::JoinLimits;
use crate::stored::corpus::Corpus;
use crate::stored::groups::take_outside;
use crate::stored::sketches::{IndexMembership, Sketched};

/// The sketches, parameters and options for building an index.
pub(crate) struct Indexed<'i> {
    pub(crate) params: &'i Params,
    pub(crate) table: Option<&'i Arc<IdfTable>>,
    /// The sketches of all documents, in the order in which they were read; `None` for an index of codes, which the corpus
    /// has.
    pub(crate) sketches: Option<&'i Sketched>,
}

impl Indexed<'_> {
    /// Builds an index of all documents that is used to find near documents. Keys of documents of several histories may
    /// repeat, so its keys are the numbers of the documents. It has no sets and no marks.
    pub(crate) fn make_of_all(
        &self,
        path: &Path,
        memory: usize,
        corpus: &Corpus,
    ) -> anyhow::Result<Snapshot> {
        let mut params = self.params.clone();
        (params.sets, params.marks, params.values, params.key) = (false, false, false, KeyKind::U64);
        let key = |number: u32| Key::U64(number.into());
        Indexed { params: &params, ..*self }.make(
            path,
            memory,
            corpus,
            (|_| IndexMembership::Kept, key, false),
        )
    }

    /// Builds an index of the documents that `wanted` selects, by their `key`. With `last`, no other index is built in
    /// this run, and the disk space of sketches and sets is freed while they are read.
    fn make<'c>(
        &self,
        path: &Path,
        memory: usize,
        corpus: &'c Corpus,
        (wanted, key, last): (impl Fn(u32) -> IndexMembership, impl Fn(u32) -> Key<'c>, bool),
    ) -> anyhow::Result<Snapshot> {
        let table = self.table.map(|table| &**table);
        // The run reads little of the index again, so its writes bypass the page cache.
        let index = Index::create_from(Arc::new(UncachedVfs), path, self.params.clone(), table)?;
        // A single commit writes segments, so no log is needed.
        let options = WriterOptions::default().memory(memory).threads(rayon::current_num_threads());
        let mut writer = index.writer_with(options.logged(false))?;
        let grouped = &corpus.grouped;
        let group = |number: u32| grouped.group_of[number as usize];
        let numbers = 0..grouped.len() as u32;
        // Several documents may share a set. It can be freed early only if documents are in the order of their groups.
        let frees_sets =
            last && numbers.filter(|&number| wanted(number) != IndexMembership::Not).map(group).is_sorted();
        if frees_sets && !self.params.sets {
            grouped.sets.release_before(grouped.sets.len() as u32);
        }
        let mut reader = SetReader::new(&grouped.sets);
        let value = |number: u32| grouped.value_of(group(number));
        let Some(sketches) = self.sketches else {
            // The file `wordless` lists documents without a fingerprint, which only an index of simhashes holds.
            let codes = self.params.codes.filter(|codes| codes.votes.is_some());
            let of_no_words = codes.and_then(|codes| Code::of_bytes(&vec![0; usize::from(codes.bits / 8)]));
            for number in 0..grouped.len() as u32 {
                let (membership, code) = (wanted(number), corpus.code_of(group(number)).or(of_no_words));
                let Some(code) = code.filter(|_| membership != IndexMembership::Not) else { continue };
                let document = Document::from(code);
                let document = if self.params.values { document.with_value(value(number)) } else { document };
                let is_marked = membership == IndexMembership::AsDuplicate && self.params.marks;
                writer.put(key(number), if is_marked { document.as_duplicate() } else { document })?;
            }
            writer.commit()?;
            return Ok(index.snapshot());
        };
        sketches.put(&mut writer, self.params, last, (&wanted, key, value), |number, out| {
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
    (corpus, clusters): (&Corpus, &Clusters),
    limits: &JoinLimits<'_>,
    wanted: impl Fn(u32) -> IndexMembership,
) -> anyhow::Result<()> {
    let path = limits.folder.join(layout::INDEX);
    let make = |wanted| -> anyhow::Result<()> {
        let key = |number: u32| Key::Bytes(corpus.keys.get(number));
        indexed.make(&path, limits.memory, corpus, (wanted, key, true))?;
        if let Some(field) = inside.filter(|_| indexed.params.values) {
            compared::record(&path, field)?;
        }
        wordless::write(&path, corpus, clusters)
    };
    let Some(journal) = limits.journal else { return make(wanted) };
    if journal.files(layout::INDEX)?.is_none() {
        make(wanted)?;
        journal.seal_folder(layout::INDEX, layout::INDEX)?;
    }
    Ok(())
}
