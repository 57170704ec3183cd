//! Announces the data of documents before it is read, so that the disk reads it together and not one page after the other.

use std::ops::Range;

use super::open::{Keys, Segment};
use crate::format::attached::Values;
use crate::format::contents::Section;
use crate::format::keys::{self, GROUP};
use crate::format::{postings, ranks, signatures};

/// Maximum number of documents whose data is announced together.
const TOGETHER: usize = 256;
/// After this number of documents in a row whose pages were all checked before, the pages of the others are taken to be in
/// memory, too. So announcing costs little if they are.
const KNOWN: usize = 4;

/// The data of documents that a query reads next.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadNext {
    /// The maximum number of keys.
    pub(crate) keys: usize,
    pub(crate) signatures: bool,
    pub(crate) fields: bool,
    /// The fingerprints of documents, which are found by rank in table 1.
    pub(crate) fingerprints: bool,
}

impl Segment {
    /// Announces data of up to [`TOGETHER`] of these documents. Ignores damage, which is reported when the data is read.
    pub(crate) fn announce_documents(&self, next: ReadNext, ordinals: impl Iterator<Item = u32> + Clone) {
        let all = ordinals.take(TOGETHER).map(u64::from).filter(|&ordinal| ordinal < self.documents());
        if next.signatures
            && let Some((section, width)) = &self.signatures
        {
            self.announce_each(section, all.clone(), |ordinal| Some(signatures::range(ordinal, *width)));
        }
        let fields = self.fields.as_ref().filter(|_| next.fields);
        let ranked = self.fingerprints.as_ref().filter(|_| next.fingerprints);
        let keyed = all.clone().take(next.keys);
        let front = match &self.keys {
            Keys::Front(section) if next.keys > 0 => Some(section),
            Keys::Frame(section, frame) if frame.width > 0 => {
                self.announce_each(section, keyed.clone(), |ordinal| Some(frame.range(ordinal)));
                None
            }
            _ => None,
        };
        // First announces all that can be announced without reading, then what the data read now refers to.
        if let Some((section, layout)) = fields {
            self.announce_each(section, all.clone(), |ordinal| Some(layout.offsets(ordinal)));
        }
        if let Some(section) = front {
            self.announce_each(section, keyed.clone(), |ordinal| Some(keys::group_offsets(ordinal / GROUP)));
        }
        if let Some(ranked) = ranked {
            self.announce_each(&ranked.ranks, all.clone(), |ordinal| Some(ranks::range(ordinal)));
        }
        if let Some((section, layout)) = fields {
            self.announce_each(section, all.clone(), |ordinal| self.fields_range(section, layout, ordinal));
        }
        if let Some(section) = front {
            self.announce_each(section, keyed, |ordinal| {
                let group = ordinal / GROUP;
                let offsets = self.read(section, keys::group_offsets(group)).ok()?;
                keys::group_range(offsets, group, section.length, section.rows).ok()
            });
        }
        if let Some(ranked) = ranked {
            let table = &ranked.tables.all[0];
            self.announce_each(&table.section, all, |ordinal| {
                let rank = self.rank(ordinal as u32).ok()??;
                table.layout.announce_value(self.at(&table.section), rank.into())
            });
        }
    }

    /// Announces the lists of documents of these ranks, whose entries have been announced.
    pub(crate) fn announce_lists(&self, of_ranks: &[u32]) {
        let Some(fingerprints) = &self.fingerprints else { return };
        let section = &fingerprints.postings;
        self.announce_each(section, of_ranks.iter().take(TOGETHER).copied(), |rank| {
            let rank = u64::from(rank);
            let entry = self.read(section, postings::range(rank)).ok()?;
            match postings::decode(entry, rank, self.documents()).ok()? {
                postings::Posting::One(_) => Some(postings::range(rank)),
                postings::Posting::List(place) => Some(postings::list_head(section.rows, place)),
            }
        });
    }

    fn fields_range(&self, section: &Section, layout: &Values, ordinal: u64) -> Option<Range<u64>> {
        layout.range(self.read(section, layout.offsets(ordinal)).ok()?, ordinal).ok()
    }

    /// Announces a range of the section for each item, until the pages of [`KNOWN`] of them in a row have been checked
    /// before.
    fn announce_each<T>(
        &self,
        section: &Section,
        items: impl Iterator<Item = T>,
        range: impl Fn(T) -> Option<Range<u64>>,
    ) {
        let source = self.at(section);
        let mut known = 0;
        for range in items.filter_map(range) {
            known = if source.announce_always(range) { known + 1 } else { 0 };
            if known == KNOWN {
                return;
            }
        }
    }
}
