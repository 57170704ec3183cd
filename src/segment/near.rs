//! Searches for fingerprints within a Hamming radius (see `segment::probe`), and for the documents that have them.

use std::ops::ControlFlow;

use super::open::Segment;
use super::probe::{SearchScratch, TableSearch};
pub use super::search_options::{FingerprintMatch, SearchOptions};
use super::tables::unanswered;
use crate::design::Scheme;
use crate::design::WITHIN_MAX;
use crate::error::{Error, Result};
use crate::format::postings::{self, Posting};
use crate::format::ranks;
use crate::format::wire::Fault;

/// Returns an error for a radius that no table design supports.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check_radius(within: u32) -> Result<()> {
    if within <= WITHIN_MAX.into() { Ok(()) } else { Err(unanswered(within)) }
}

impl Segment {
    /// Calls `hit` once with each distinct fingerprint within `within` bits of `query`, in no particular order. Free
    /// table designs may miss fingerprints; all other designs are exact. Finds none if the index stores no
    /// fingerprints.
    ///
    /// Takes [`Design::probes`](crate::design::Design::probes) lookups. Each lookup is followed by a scan of about n /
    /// 2^b entries, where n is the number of fingerprints and b the number of bits in the prefix of a probe.
    ///
    /// # Errors
    /// [`Error::Corrupt`]; matches that were reported before the error are valid. [`Error::Invalid`] for a radius that the
    /// design does not support.
    pub fn within(&self, query: u64, within: u32, mut hit: impl FnMut(FingerprintMatch)) -> Result<()> {
        SearchScratch::lend(|scratch| {
            self.search(&[query], SearchOptions::within(within), scratch, |_, near| {
                hit(near);
                Ok(ControlFlow::Continue(()))
            })
        })
    }

    /// Searches as [`within`](Self::within) does, but for several queries at once, whose memory accesses overlap. If
    /// the segment is larger than the CPU caches, 16 queries together take half as long as one after the other. If
    /// there are a thousand queries or more, they are sorted by the prefixes of each table, so that they share buckets;
    /// with a hundred thousand queries, this halves the time again. `hit` is called with the index of the query and a
    /// match. Matches of different queries are interleaved. If `hit` returns `Break`, only the search for that query
    /// ends.
    ///
    /// # Errors
    /// Same as [`within`](Self::within); [`Error::Invalid`] if the tables' codecs do not support the probe strategy;
    /// the errors that `hit` returns.
    pub fn search(
        &self,
        queries: &[u64],
        ask: SearchOptions,
        scratch: &mut SearchScratch,
        mut hit: impl FnMut(usize, FingerprintMatch) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.search_by(queries, ask, scratch, &mut hit)
    }

    /// Implements [`search`](Self::search). Not generic, so that the search is compiled only once.
    fn search_by(
        &self,
        queries: &[u64],
        ask: SearchOptions,
        scratch: &mut SearchScratch,
        hit: &mut dyn FnMut(usize, FingerprintMatch) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        check_radius(ask.within)?;
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let tables = &fingerprints.tables;
        let plan = tables.plan(ask.within)?;
        if let Some(probe) = ask.probe {
            tables.all.iter().try_for_each(|table| table.layout.check_probe(probe))?;
        }
        let search = TableSearch {
            segment: self,
            at: self.at(&fingerprints.postings),
            fingerprints,
            plan,
            ask,
            queries,
            is_cold: false,
            scratch,
            hit,
        };
        search.run()
    }

    /// Returns the design and the codecs of the tables, or `None` if the index stores no fingerprints.
    #[must_use]
    pub fn scheme(&self) -> Option<Scheme> {
        self.fingerprints.as_ref().map(|fingerprints| fingerprints.tables.scheme())
    }

    /// Calls `hit` with the ordinal and the distance of each document within `within` bits of `query`, in no particular
    /// order.
    ///
    /// # Errors
    /// Same as [`within`](Self::within). [`Error::Corrupt`] if posting lists overlap; it is returned at the latest when
    /// more documents have been reported than the segment has.
    #[inline]
    pub fn documents_within(&self, query: u64, within: u32, mut hit: impl FnMut(u32, u32)) -> Result<()> {
        SearchScratch::lend(|scratch| {
            self.search_documents(&[query], SearchOptions::within(within), scratch, |_, ordinal, distance| {
                hit(ordinal, distance);
                Ok(ControlFlow::Continue(()))
            })
        })
    }

    /// Searches as [`search`](Self::search) does, but for documents. The arguments of `hit` are the index of the query,
    /// the ordinal and the distance.
    ///
    /// # Errors
    /// Same as [`search`](Self::search) and [`documents_within`](Self::documents_within).
    #[inline]
    pub fn search_documents(
        &self,
        queries: &[u64],
        ask: SearchOptions,
        scratch: &mut SearchScratch,
        mut hit: impl FnMut(usize, u32, u32) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut handed = 0;
        let max = self.documents().saturating_mul(queries.len() as u64);
        self.search(queries, ask, scratch, |query, near| {
            let mut flow = Ok(ControlFlow::Continue(()));
            self.postings(near.rank, |ordinal| {
                if matches!(flow, Ok(ControlFlow::Continue(()))) {
                    handed += 1;
                    flow = hit(query, ordinal, near.distance);
                }
            })?;
            // guard: lists of documents have each document once
            if handed > max { Err(self.lists_overlap(near.rank)) } else { flow }
        })
    }

    /// Returns an error if the posting lists of these ranks together have more entries than the segment has documents.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub(crate) fn check_lists(&self, ranks: &[u32]) -> Result<()> {
        let mut listed = 0;
        for &rank in ranks {
            listed += self.posting_count(rank)? as u64;
            // A document is in at most one list, so if there are more entries than documents, the lists overlap.
            if listed > self.documents() {
                return Err(self.lists_overlap(rank));
            }
        }
        Ok(())
    }

    #[cold]
    fn lists_overlap(&self, rank: u32) -> Error {
        let Some(fingerprints) = &self.fingerprints else { return Self::keeps_no_fingerprints() };
        let expected = format!("each of {} documents in one list", self.documents());
        let fault = Fault::new(postings::range(rank.into()).start, expected, "lists that overlap");
        self.corrupt_at(&fingerprints.postings, fault)
    }

    #[cold]
    pub(super) fn keeps_no_fingerprints() -> Error {
        Error::Invalid("this segment keeps no fingerprints".into())
    }

    /// Returns the fingerprint with rank `rank`.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for a rank that does not exist; [`Error::Invalid`] if the segment stores no fingerprints.
    pub fn fingerprint(&self, rank: u32) -> Result<u64> {
        let Some(fingerprints) = &self.fingerprints else { return Err(Self::keeps_no_fingerprints()) };
        let table = &fingerprints.tables.all[0];
        table.layout.value(self.at(&table.section), rank.into())
    }

    /// Returns the rank of a document's fingerprint. `None` for a document without a sketch, or if the index stores no
    /// fingerprints.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    pub fn rank(&self, ordinal: u32) -> Result<Option<u32>> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(None) };
        let ordinal = u64::from(ordinal);
        let bytes = self.read(&fingerprints.ranks, ranks::range(ordinal))?;
        ranks::decode(bytes, ordinal, fingerprints.distinct)
            .map_err(|e| self.corrupt_at(&fingerprints.ranks, e))
    }

    /// Calls `each` with the ordinal of each document that has the fingerprint with rank `rank`, in ascending order.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[inline]
    pub fn postings(&self, rank: u32, mut each: impl FnMut(u32)) -> Result<()> {
        self.postings_until(rank, |ordinal| {
            each(ordinal);
            ControlFlow::Continue(())
        })
    }

    /// Like [`postings`](Self::postings), but stops when `each` returns `Break`.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
    #[inline]
    pub fn postings_until(&self, rank: u32, mut each: impl FnMut(u32) -> ControlFlow<()>) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let (section, rank, documents) = (&fingerprints.postings, u64::from(rank), self.documents());
        let bytes = self.read(section, postings::range(rank))?;
        match postings::decode(bytes, rank, documents).map_err(|e| self.corrupt_at(section, e))? {
            Posting::One(ordinal) => _ = each(ordinal),
            Posting::List(place) => {
                let head = self.read(section, postings::list_head(section.rows, place))?;
                let range = postings::list_range(head, section.rows, place, documents)
                    .map_err(|e| self.corrupt_at(section, e))?;
                let bytes = self.read(section, range.clone())?;
                postings::ordinals(bytes, range.start, documents, each)
                    .map_err(|e| self.corrupt_at(section, e))?;
            }
        }
        Ok(())
    }
}
