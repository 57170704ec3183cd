//! The state of an index at one commit.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::ops::Bound;
use std::sync::OnceLock;

use twindex::{Fingerprint, Key};

use crate::border::{self, Slot, given, key, show_bytes, show_empty};
use crate::error::{Code, Error};
use crate::flags::{check_flags, with_flags};
use crate::hits::Hits;
use crate::keys::Keys;
use crate::params::Params;
use crate::record::Record;
use crate::sketch::Sketch;

/// The state of an index at one commit, which never changes. Must be freed with `twindex_snapshot_free`.
#[derive(Debug)]
pub struct Snapshot {
    pub(crate) inner: twindex::Snapshot,
    /// The paths of the segments on disk; set when the caller asks for them.
    segments: OnceLock<Vec<CString>>,
}

impl Snapshot {
    pub(crate) fn new(inner: twindex::Snapshot) -> Self {
        Self { inner, segments: OnceLock::new() }
    }
}

/// Returns the number of live documents; 0 if `snapshot` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_documents(snapshot: Option<&Snapshot>) -> u64 {
    border::ask(0, || snapshot.map_or(0, |snapshot| snapshot.inner.documents()))
}

/// Returns the number of the snapshot's commit; 0 if `snapshot` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_commit(snapshot: Option<&Snapshot>) -> u64 {
    border::ask(0, || snapshot.map_or(0, |snapshot| snapshot.inner.generation()))
}

/// Returns the payload of the last `twindex_writer_commit_with`, and sets `len` to its length. Returns null if there is
/// none. The payload is valid until the snapshot is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_payload(
    snapshot: Option<&Snapshot>,
    len: Option<&mut MaybeUninit<usize>>,
) -> *const u8 {
    match snapshot.and_then(|snapshot| snapshot.inner.payload()) {
        Some(payload) => show_bytes(payload, len),
        None => show_empty(len),
    }
}

/// Returns the number of live documents that are not in a segment on disk yet; 0 if `snapshot` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_logged_documents(snapshot: Option<&Snapshot>) -> u64 {
    border::ask(0, || snapshot.map_or(0, |snapshot| snapshot.inner.logged_documents()))
}

/// Returns the number of the last commit that is known to survive a crash of the machine; 0 if `snapshot` is null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_durable_commit(snapshot: Option<&Snapshot>) -> u64 {
    border::ask(0, || snapshot.map_or(0, |snapshot| snapshot.inner.durable_commit()))
}

/// Sets `now`, which may be null, to the highest committed stamp, relative to which documents expire. Returns false if
/// there is none.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_now(
    snapshot: Option<&Snapshot>,
    now: Option<&mut MaybeUninit<u64>>,
) -> bool {
    border::ask(false, || {
        let found = snapshot.and_then(|snapshot| snapshot.inner.now());
        if let Some(now) = now {
            now.write(found.unwrap_or(0));
        }
        found.is_some()
    })
}

/// Sets `high` and `low` to the two halves of the UUID of the index, which was chosen at random when it was created.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_uuid(
    snapshot: Option<&Snapshot>,
    high: Option<&mut MaybeUninit<u64>>,
    low: Option<&mut MaybeUninit<u64>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let (high, low) = (Slot::new(high, 0, "high")?, Slot::new(low, 0, "low")?);
        let uuid = given(snapshot, "snapshot")?.inner.uuid();
        high.put((uuid >> 64) as u64);
        low.put(uuid as u64);
        Ok(())
    })
}

/// Returns the parameters of the index, without its table of document frequencies: `twindex_index_params` includes it.
/// The caller must free them.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_params(
    snapshot: Option<&Snapshot>,
    params: Option<&mut MaybeUninit<*mut Params>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(params, "params")?;
        slot.give(Params::complete(given(snapshot, "snapshot")?.inner.params().clone(), None));
        Ok(())
    })
}

/// Returns the path of the file of segment `at`, counted from 0, oldest first; null if there is no such segment. The
/// string is valid until the snapshot is freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_segment(snapshot: Option<&Snapshot>, at: usize) -> *const c_char {
    border::ask(std::ptr::null(), || {
        let Some(snapshot) = snapshot else { return std::ptr::null() };
        let paths = snapshot.segments.get_or_init(|| {
            let on_disk = snapshot.inner.entries().len();
            let path = |segment: &std::path::Path| {
                CString::new(segment.as_os_str().as_encoded_bytes()).unwrap_or_default()
            };
            snapshot.inner.segments().take(on_disk).map(|(segment, _)| path(segment.path())).collect()
        });
        paths.get(at).map_or(std::ptr::null(), |path| path.as_ptr())
    })
}

/// Returns a snapshot that contains only segment `at`, counted from 0, to distribute work. The caller must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_of_segment(
    snapshot: Option<&Snapshot>,
    at: usize,
    part: Option<&mut MaybeUninit<*mut Snapshot>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(part, "part")?;
        slot.give(Snapshot::new(given(snapshot, "snapshot")?.inner.of_segment(at)?));
        Ok(())
    })
}

/// Sets `contained` to whether there is a live document with this key.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_contains(
    snapshot: Option<&Snapshot>,
    key_bytes: *const u8,
    key_len: usize,
    contained: Option<&mut MaybeUninit<bool>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::new(contained, false, "contained")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let bytes = unsafe { border::bytes(key_bytes, key_len, "key") }?;
        slot.put(snapshot.contains(key(snapshot.params(), bytes)?)?);
        Ok(())
    })
}

/// Sets `record` to the stored record of the document with this key. If there is no such document, sets `record` to
/// null and returns `TWINDEX_CODE_OK`. The caller must free the record.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_get(
    snapshot: Option<&Snapshot>,
    key_bytes: *const u8,
    key_len: usize,
    record: Option<&mut MaybeUninit<*mut Record>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(record, "record")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `key_len` bytes, or null and 0.
        let bytes = unsafe { border::bytes(key_bytes, key_len, "key") }?;
        if let Some(found) = snapshot.get(key(snapshot.params(), bytes)?)? {
            slot.give(Record::new(found));
        }
        Ok(())
    })
}

/// Returns an iterator over all keys that begin with `prefix`, in ascending order; over all keys if the prefix is
/// empty. The caller must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_keys(
    snapshot: Option<&Snapshot>,
    prefix: *const u8,
    prefix_len: usize,
    keys: Option<&mut MaybeUninit<*mut Keys>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(keys, "keys")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `prefix_len` bytes, or null and 0.
        let prefix = unsafe { border::bytes(prefix, prefix_len, "prefix") }?;
        let found = if prefix.is_empty() { snapshot.range::<&[u8]>(..) } else { snapshot.prefix(prefix) };
        slot.give(Keys::new(found?));
        Ok(())
    })
}

/// Excludes the key `from` of a range.
pub const TWINDEX_RANGE_AFTER: u32 = 1;
/// Includes the key `to` of a range.
pub const TWINDEX_RANGE_THROUGH: u32 = 2;

/// Returns an iterator over the keys from `from` up to, but without, `to`. A null pointer means that there is no bound.
/// `flags` is 0 or a combination of `TWINDEX_RANGE_...`. The caller must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_range(
    snapshot: Option<&Snapshot>,
    from: *const u8,
    from_len: usize,
    to: *const u8,
    to_len: usize,
    flags: u32,
    keys: Option<&mut MaybeUninit<*mut Keys>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(keys, "keys")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        let known = TWINDEX_RANGE_AFTER | TWINDEX_RANGE_THROUGH;
        if flags & !known != 0 {
            return Err(Error::invalid(format!("flags are {flags:#x}, this version knows {known:#x}")));
        }
        // SAFETY: the caller passes this many bytes, or null.
        let (first, last) =
            unsafe { (border::bytes(from, from_len, "from")?, border::bytes(to, to_len, "to")?) };
        let bound = |is_given: bool, bytes, is_included: bool| -> border::Result<Bound<Key<'_>>> {
            Ok(match (is_given, is_included) {
                (false, _) => Bound::Unbounded,
                (true, true) => Bound::Included(key(snapshot.params(), bytes)?),
                (true, false) => Bound::Excluded(key(snapshot.params(), bytes)?),
            })
        };
        let from = bound(!from.is_null(), first, flags & TWINDEX_RANGE_AFTER == 0)?;
        let to = bound(!to.is_null(), last, flags & TWINDEX_RANGE_THROUGH != 0)?;
        slot.give(Keys::new(snapshot.range((from, to))?));
        Ok(())
    })
}

/// Returns an iterator over the keys of the documents whose feature in this band, counted from 0, has the same stored
/// bits as `feature`: unverified candidates for resemblance, in no particular order. The caller must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_same_feature(
    snapshot: Option<&Snapshot>,
    band: usize,
    feature: u64,
    keys: Option<&mut MaybeUninit<*mut Keys>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(keys, "keys")?;
        slot.give(Keys::of(given(snapshot, "snapshot")?.inner.same_feature(band, feature)?));
        Ok(())
    })
}

/// Finds the documents that are near a sketch by the rule of the index. Returns at most the `limit` nearest ones. The
/// caller must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_near(
    snapshot: Option<&Snapshot>,
    sketch: Option<&Sketch>,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        let answers = snapshot.near(&given(sketch, "sketch")?.inner).limit(limit).run()?;
        slot.give(Hits::of(snapshot.clone(), answers));
        Ok(())
    })
}

/// Finds documents whose resemblance to a sketch is at least `threshold`. Returns at most the `limit` nearest ones.
/// `flags` is 0 or a combination of `TWINDEX_QUERY_...`. With flags 0 and an index that stores sets, no such document
/// is missed, and a threshold below that of the index is refused. The caller must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_resembling(
    snapshot: Option<&Snapshot>,
    sketch: Option<&Sketch>,
    threshold: f64,
    flags: u32,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        check_flags(flags)?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        let query = snapshot.resembling(&given(sketch, "sketch")?.inner, threshold);
        let answers = with_flags(query, flags).limit(limit).run()?;
        slot.give(Hits::of(snapshot.clone(), answers));
        Ok(())
    })
}

/// Finds documents whose fingerprints differ from `fingerprint` in at most `within` bits. Returns at most the `limit`
/// nearest ones. No such document is missed. The caller must free the hits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_within(
    snapshot: Option<&Snapshot>,
    fingerprint: u64,
    within: u32,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        let answers = snapshot.within(Fingerprint(fingerprint), within).limit(limit).run()?;
        slot.give(Hits::of(snapshot.clone(), answers));
        Ok(())
    })
}

/// As `twindex_snapshot_within`, for an index made with `twindex_params_codes`: `code` has `code_len` bytes, the highest
/// bits first, and `within` is at most its number of bits.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_code_within(
    snapshot: Option<&Snapshot>,
    code: *const u8,
    code_len: usize,
    within: u32,
    limit: usize,
    hits: Option<&mut MaybeUninit<*mut Hits>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(hits, "hits")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `code_len` bytes, or null and 0.
        let code = unsafe { border::code(code, code_len) }?;
        let answers = snapshot.within(code, within).limit(limit).run()?;
        slot.give(Hits::of(snapshot.clone(), answers));
        Ok(())
    })
}

/// Frees a snapshot. `snapshot` may be null.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_snapshot_free(snapshot: Option<Box<Snapshot>>) {
    border::free(snapshot);
}
