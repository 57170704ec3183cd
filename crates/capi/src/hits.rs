//! The documents that a query found.

use std::mem::MaybeUninit;

use crate::border::{self, Slot, given, show_empty, show_key};
use crate::error::{Code, Error};
use crate::record::Record;

/// The documents that a query found, nearest first. Must be freed with `twindex_hits_free`.
#[derive(Debug)]
pub struct Hits {
    found: Vec<twindex::Hit>,
    has_more: bool,
    unvisited: u64,
    /// The snapshot that was queried; `None` if it was a writer.
    snapshot: Option<twindex::Snapshot>,
}

impl Hits {
    /// The hits of a writer.
    pub(crate) fn new(hits: Vec<twindex::Hit>, has_more: bool) -> Self {
        Self { found: hits, has_more, unvisited: 0, snapshot: None }
    }

    /// The hits of a query on a snapshot.
    pub(crate) fn of(snapshot: twindex::Snapshot, answers: twindex::Answers) -> Self {
        let twindex::Answers { hits, has_more, unvisited, .. } = answers;
        Self { found: hits, has_more, unvisited, snapshot: Some(snapshot) }
    }
}

fn hit(hits: Option<&Hits>, at: usize) -> Option<&twindex::Hit> {
    hits.and_then(|hits| hits.found.get(at))
}

/// Returns the number of hits; 0 if `hits` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_len(hits: Option<&Hits>) -> usize {
    hits.map_or(0, |hits| hits.found.len())
}

/// Returns whether there are near documents beyond the limit of the query; false if `hits` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_has_more(hits: Option<&Hits>) -> bool {
    hits.is_some_and(|hits| hits.has_more)
}

/// Returns the key of hit `at`, counted from 0, and sets `len` to its length. Returns null if there is no such hit. A
/// numeric key is returned as 8 bytes in native byte order. The key is valid until the hits are freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_key(
    hits: Option<&Hits>,
    at: usize,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match hit(hits, at) {
        Some(hit) => show_key(&hit.key, len),
        None => show_empty(len),
    }
}

/// Returns the number of bits in which the fingerprints of the query and of hit `at` differ; -1 if it is unknown.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_distance(hits: Option<&Hits>, at: usize) -> i32 {
    hit(hits, at).and_then(|hit| hit.distance).and_then(|bits| i32::try_from(bits).ok()).unwrap_or(-1)
}

/// Returns the resemblance of hit `at`, from 0 to 1; -1 if it is unknown. It is exact if the index stores sets and the
/// query did not set `TWINDEX_QUERY_ESTIMATED`, otherwise estimated.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_resemblance(hits: Option<&Hits>, at: usize) -> f64 {
    border::ask(-1.0, || hit(hits, at).and_then(|hit| hit.resemblance).map_or(-1.0, |found| found.value()))
}

/// Returns the fraction of the query's document that is contained in hit `at`, from 0 to 1, estimated from samples; -1
/// if the index stores none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_query_in_hit(hits: Option<&Hits>, at: usize) -> f64 {
    border::ask(-1.0, || hit(hits, at).and_then(|hit| hit.query_in_hit).map_or(-1.0, |found| found.value()))
}

/// Returns the fraction of hit `at` that is contained in the query's document, from 0 to 1; -1 if it is unknown.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_hit_in_query(hits: Option<&Hits>, at: usize) -> f64 {
    border::ask(-1.0, || hit(hits, at).and_then(|hit| hit.hit_in_query).map_or(-1.0, |found| found.value()))
}

/// Returns the number of table buckets that were skipped because of the visit limit of the query. They may contain
/// further hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_unvisited(hits: Option<&Hits>) -> u64 {
    hits.map_or(0, |hits| hits.unvisited)
}

/// Sets `record` to the stored record of hit `at`, in the snapshot that was queried. Sets it to null if there is no
/// such hit. Not for hits of a writer: use `twindex_writer_get`. The caller must free the record.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_record(
    hits: Option<&Hits>,
    at: usize,
    record: Option<&mut MaybeUninit<*mut Record>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(record, "record")?;
        let hits = given(hits, "hits")?;
        let snapshot = hits.snapshot.as_ref().ok_or_else(|| {
            Error::invalid("these hits are of a writer, which may have changed since: use twindex_writer_get")
        })?;
        if let Some(hit) = hits.found.get(at)
            && let Some(found) = snapshot.get(&hit.key)?
        {
            slot.give(Record::new(found));
        }
        Ok(())
    })
}

/// Frees hits. `hits` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_hits_free(hits: Option<Box<Hits>>) {
    border::free(hits);
}
