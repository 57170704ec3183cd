//! Finds documents that contain a set or are contained in it.
//!
//! A set of n elements is contained in a larger one by a share t if the larger one has a = ceil(t n) of its elements, so
//! it has one of any n - a + 1 of them. Two searches find all documents:
//!
//! - those that contain the query's set: by the n - a + 1 elements of the query that the fewest documents have. All
//!   elements of a document are listed in the sections of prefixes and suffixes;
//! - those that the query's set contains: by all elements of the query, in the section of prefixes. The prefix of a
//!   document has enough of its elements if t is at least the threshold of the index; below it, suffixes are looked up too.
//!
//! The rarest elements are looked up beyond that number while it costs little: a document that has few of them can share
//! no more than these and the elements that were not looked up.

use twindex_sketch::Nearness;

use super::buckets::KeyList;
use super::open::Segment;
use super::sets::nearness;
use crate::error::Result;
use crate::format::bands::KEY_BITS;
use crate::format::prefixes::{Marks, tag};

/// Rare elements are looked up until the lists that were read have this number of entries for each element of the query.
const READ: usize = 8;

/// A tag of the query.
struct Listed<'a> {
    /// Number of documents with the tag. A document counts twice if it is under both keys in the section of prefixes.
    documents: usize,
    /// Number of elements of the query with the tag.
    elements: usize,
    suffixes: KeyList<'a>,
    /// The first and the last place among the ordinals of all prefixes.
    prefixes: std::ops::Range<usize>,
}

impl Segment {
    /// Returns the number of entries by which [`containment_candidates`](Self::containment_candidates) finds documents; `None`
    /// if the index stores no suffixes.
    #[must_use]
    pub fn containment_entries(&self) -> Option<u64> {
        let (Some([_, (prefixes, _)]), Some((suffixes, _))) = (&self.sets, &self.suffixes) else {
            return None;
        };
        Some(prefixes.rows + suffixes.rows)
    }

    /// Calls `each` with candidates for documents that contain `set` by the share of `near` or that `set` contains by that
    /// share, in ascending order: the ordinal, and a number of elements that the two share at most. The candidates include
    /// every such document, deleted ones too. `set` must ascend. There are none if the index stores no suffixes.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or the error of `each`.
    pub fn containment_candidates(
        &self,
        set: &[u64],
        near: Nearness,
        mut each: impl FnMut(u32, usize) -> Result<()>,
    ) -> Result<()> {
        let (Some([_, (prefixes, by_prefix)]), Some((suffixes, by_suffix))) = (&self.sets, &self.suffixes)
        else {
            return Ok(());
        };
        let tags = || set.chunk_by(|&a, &b| tag(a) == tag(b)).map(|some| (tag(some[0]), some.len()));
        let marks = if self.params().marks { Marks::Any } else { Marks::Unmarked };
        self.hint_keys(KEY_BITS, || tags().map(|(tag, _)| (suffixes, by_suffix, tag)));
        let keys = || tags().flat_map(|(tag, _)| marks.keys(tag)).map(|key| (prefixes, by_prefix, key));
        self.hint_keys(KEY_BITS, keys);
        let mut in_prefixes: Vec<u32> = Vec::new();
        let mut listed: Vec<Listed<'_>> = Vec::with_capacity(set.len());
        for (tag, elements) in tags() {
            let start = in_prefixes.len();
            for key in marks.keys(tag) {
                let mut list = self.list_of_key(prefixes, by_prefix, key)?;
                while let Some(ordinal) = list.next_ordinal()? {
                    in_prefixes.push(ordinal);
                }
            }
            let list = self.list_of_key(suffixes, by_suffix, tag)?;
            let documents = list.count() + in_prefixes.len() - start;
            listed.push(Listed { documents, elements, suffixes: list, prefixes: start..in_prefixes.len() });
        }
        listed.sort_unstable_by_key(|tag| tag.documents);
        let prefixes_suffice = nearness(self.params()).is_some_and(|of| near.threshold() >= of.threshold());
        let least = if prefixes_suffice { near.prefix(set.len()) } else { listed.len() };
        // A document that is listed under suffixes alone is not contained in the set. It can only contain the set.
        let containing = near.least_shared(set.len(), set.len()).unwrap_or(usize::MAX);
        let (mut of_rare, mut rest, mut read) = (Vec::new(), set.len(), 0);
        for (place, mut tag) in listed.into_iter().enumerate() {
            if place >= least && read >= READ * set.len() {
                break;
            }
            rest -= tag.elements;
            read += tag.documents;
            let mut add = |ordinal: u32| of_rare.extend(std::iter::repeat_n(ordinal, tag.elements));
            in_prefixes[tag.prefixes].iter().copied().for_each(&mut add);
            while let Some(ordinal) = tag.suffixes.next_ordinal()? {
                add(ordinal);
            }
        }
        in_prefixes.sort_unstable();
        in_prefixes.dedup();
        of_rare.sort_unstable();
        let mut others = in_prefixes.into_iter().peekable();
        for of_document in of_rare.chunk_by(|a, b| a == b) {
            let ordinal = of_document[0];
            while let Some(other) = others.next_if(|&other| other < ordinal) {
                each(other, rest)?;
            }
            let is_in_prefixes = others.next_if_eq(&ordinal).is_some();
            let at_most = rest + of_document.len();
            if is_in_prefixes || !prefixes_suffice || at_most >= containing {
                each(ordinal, at_most)?;
            }
        }
        others.try_for_each(|other| each(other, rest))
    }
}
