//! Queries with all their options.

use std::mem::MaybeUninit;

use twindex::params::Near;

use crate::border::{self, Result, Slot, Structure, given};
use crate::cancel::{self, Cancel};
use crate::error::{Code, Error};
use crate::flags::{TWINDEX_QUERY_ANY, check_flags, with_flags};
use crate::hits::Hits;
use crate::params::near;
use crate::sketch::Sketch;
use crate::snapshot::Snapshot;

/// How near documents are found. Initialise with `TWINDEX_QUERY_INIT`, which finds the 10 nearest documents by the rule
/// of the index. A zero in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Query {
    /// The size of this structure in the caller's program, in bytes.
    pub struct_size: usize,
    /// The maximum number of hits.
    pub limit: usize,
    /// The smallest resemblance of near documents. If it is 0 and `within` is negative, the rule of the index decides.
    pub threshold: f64,
    /// The largest distance of near fingerprints in bits; a negative number if distance does not decide.
    pub within: i32,
    /// 0 or a combination of `TWINDEX_QUERY_...`.
    pub flags: u32,
    /// The number of bands that a near document must share; by default 1.
    pub sharing: u32,
    /// The number of leading bits of each feature that are compared; by default all that the index stores.
    pub feature_bits: u32,
    /// The maximum number of table rows that are checked in each segment; by default all. `twindex_hits_unvisited`
    /// returns the number of buckets that were skipped because of it.
    pub visit_limit: u64,
    /// Ends the query early with `TWINDEX_CODE_CANCELLED`; null if nothing does.
    pub cancel: *const Cancel,
}

// SAFETY: the first field is the size, and numbers and raw pointers have no invalid bits.
unsafe impl Structure for Query {
    const FIRST: usize = 56;
}

/// A query without its document, checked, and free of pointers, so that threads can share it.
#[derive(Debug)]
pub(crate) struct Options {
    near: Option<Near>,
    given: Query,
    cancel: twindex::Cancel,
}

// SAFETY: the only field that is not `Sync` by itself is the pointer `given.cancel`, which is null here.
unsafe impl Sync for Options {}

impl Options {
    /// Reads the options that a C caller passed; null means the defaults.
    ///
    /// # Safety
    /// `query` is null or set as the header requires, and its `cancel` is null or not freed before the call returns.
    pub(crate) unsafe fn read(query: *const Query) -> Result<Self> {
        let usual = Query {
            struct_size: size_of::<Query>(),
            limit: 10,
            threshold: 0.0,
            within: -1,
            flags: 0,
            sharing: 0,
            feature_bits: 0,
            visit_limit: 0,
            cancel: std::ptr::null(),
        };
        // SAFETY: the caller guarantees the same of a pointer that is not null.
        let given = if query.is_null() { usual } else { unsafe { border::sized(query, "query") }? };
        // SAFETY: the caller passes a handle, or null.
        let cancel = cancel::of(unsafe { given.cancel.as_ref() });
        check_flags(given.flags)?;
        let by_index = given.threshold == 0.0 && given.within < 0;
        let near = if by_index { None } else { Some(near(given.threshold, given.within)?) };
        Ok(Self { near, given: Query { cancel: std::ptr::null(), ..given }, cancel })
    }

    fn on(&self, query: twindex::Query) -> twindex::Query {
        let Query { limit, flags, sharing, feature_bits, visit_limit, .. } = self.given;
        let mut query = with_flags(query, flags).limit(limit).until(&self.cancel);
        if sharing > 0 {
            query = query.sharing(sharing as usize);
        }
        if feature_bits > 0 {
            query = query.feature_bits(feature_bits);
        }
        if visit_limit > 0 {
            query = query.visit_limit(visit_limit);
        }
        query
    }

    fn query(&self, snapshot: &twindex::Snapshot, sketch: &twindex::Sketch) -> twindex::Query {
        self.on(match self.near {
            None => snapshot.near(sketch),
            Some(near) => snapshot.near_by(sketch, near),
        })
    }

    /// Runs the query for a document.
    pub(crate) fn run(
        &self,
        snapshot: &twindex::Snapshot,
        sketch: &twindex::Sketch,
    ) -> twindex::Result<twindex::Answers> {
        let query = self.query(snapshot, sketch);
        if self.given.flags & TWINDEX_QUERY_ANY == 0 {
            return query.run();
        }
        let mut answers = twindex::Answers::default();
        answers.hits.extend(query.any()?);
        Ok(answers)
    }
}

/// Finds the documents that are near a sketch, with all options of `query`; null means the defaults. The caller must
/// free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_query(
    snapshot: Option<&Snapshot>,
    sketch: Option<&Sketch>,
    query: *const Query,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        // SAFETY: the caller passes options as the header requires, or null.
        let options = unsafe { Options::read(query) }?;
        let snapshot = given(snapshot, "snapshot")?;
        let answers = options.run(&snapshot.inner, &given(sketch, "sketch")?.inner)?;
        slot.give(Hits::of(snapshot.inner.clone(), answers));
        Ok(())
    })
}

/// Sets `count` to the number of documents that are near a sketch, without regard to the limit of `query`.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_count(
    snapshot: Option<&Snapshot>,
    sketch: Option<&Sketch>,
    query: *const Query,
    count: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::new(count, 0, "count")?;
        // SAFETY: the caller passes options as the header requires, or null.
        let options = unsafe { Options::read(query) }?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        slot.put(options.query(snapshot, &given(sketch, "sketch")?.inner).count()?);
        Ok(())
    })
}

/// Finds documents whose set of shingle hashes has an exact resemblance of at least `threshold` to `set`, `len`
/// distinct hashes in ascending order. The caller must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_resembling_set(
    snapshot: Option<&Snapshot>,
    set: *const u64,
    len: usize,
    threshold: f64,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `len` numbers, or null and 0.
        let set = unsafe { border::values(set, len, "set") }?;
        let answers = snapshot.resembling_set(set, threshold).limit(limit).run()?;
        slot.give(Hits::of(snapshot.clone(), answers));
        Ok(())
    })
}
