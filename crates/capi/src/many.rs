//! Calls for many documents. An error of one item is in the results, and the other items are done.

use std::mem::MaybeUninit;

use crate::batch::Batch;
use crate::border::{self, Slot, given, key};
use crate::documents::{Documents, Given};
use crate::error::{Code, Error};
use crate::keys::Keys;
use crate::packed::Packed;
use crate::parallel::in_parallel;
use crate::query::{Options, Query};
use crate::sketch::Sketches;
use crate::snapshot::Snapshot;
use crate::writer::{Writer, hit_of};

/// The minimum number of keys for each thread. One takes less than a microsecond.
const KEYS_PER_THREAD: usize = 1 << 10;
/// The number of codes that a thread searches for at a time.
const CODES_TOGETHER: usize = 256;
/// The minimum number of queries for each thread.
const QUERIES_PER_THREAD: usize = 8;

/// Calls `one` for each document, in order, with the writer locked once.
///
/// # Safety
/// `documents` is null or set as the header requires.
unsafe fn each(
    writer: Option<&Writer>,
    documents: *const Documents,
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    one: impl Fn(&mut twindex::Writer, twindex::Key<'_>, twindex::Document<'_>, &mut Batch) -> border::Result<()>,
) -> Code {
    border::call(error, || {
        let slot = batch.map(|batch| Slot::handle(Some(batch), "batch")).transpose()?;
        let writer = given(writer, "writer")?;
        // SAFETY: the caller guarantees the same.
        let given = unsafe { Given::read(documents) }?;
        let sketched = given.sketch(|| writer.sketcher().cloned())?;
        let mut batch = Batch::new();
        let mut first = None;
        {
            let mut inner = writer.lock()?;
            for at in 0..given.keys.len() {
                let done = given.document(at, sketched.as_ref()).and_then(|document| {
                    let key = key(writer.params(), given.keys.get(at))?;
                    one(&mut inner, key, document, &mut batch)
                });
                if let Err(error) = &done {
                    first.get_or_insert_with(|| error.clone());
                }
                batch.end(done);
            }
        }
        match (slot, first) {
            (Some(slot), _) => slot.give(batch),
            (None, Some(error)) => return Err(error),
            (None, None) => {}
        }
        Ok(())
    })
}

/// Adds documents, or replaces the documents with these keys, in order. Texts are sketched in parallel before the
/// writer is locked. Sets `batch` to the results. If `batch` is null, returns the error of the first document that
/// failed. The caller must free the batch.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_put_many(
    writer: Option<&Writer>,
    documents: *const Documents,
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    // SAFETY: the caller passes documents as the header requires.
    unsafe { each(writer, documents, batch, error, |inner, key, document, _| Ok(inner.put(key, document)?)) }
}

/// As `twindex_writer_admit` for each document, in order: a document can be the duplicate of one before it. Texts are
/// sketched in parallel before the writer is locked. Sets `batch` to the results: `admitted`, and one entry for each
/// document that is near another, the nearest. The caller must free the batch.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_admit_many(
    writer: Option<&Writer>,
    documents: *const Documents,
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    let one = |inner: &mut twindex::Writer,
               key: twindex::Key<'_>,
               document: twindex::Document<'_>,
               batch: &mut Batch| {
        let done = inner.admit(key, document).map_err(Error::from).and_then(hit_of);
        // A document that failed has a number, too, so that there is one for each.
        batch.add_admitted(done.as_ref().map_or(u8::MAX, |(admitted, _)| *admitted as u8));
        if let (_, Some(hit)) = done? {
            batch.add_hit(&hit);
        }
        Ok(())
    };
    // SAFETY: the caller passes documents as the header requires.
    unsafe { each(writer, documents, batch, error, one) }
}

/// Removes the documents with `count` keys in packed form; see `twindex_documents`. Keys without a document are
/// ignored.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_writer_delete_many(
    writer: Option<&Writer>,
    keys: *const u8,
    key_offsets: *const u64,
    count: usize,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let writer = given(writer, "writer")?;
        // SAFETY: the caller passes `count + 1` offsets, or null, and as many bytes as the last of them says.
        let keys = unsafe { Packed::read(keys, key_offsets, count, "keys") }?;
        let mut inner = writer.lock()?;
        for at in 0..keys.len() {
            inner.delete(key(writer.params(), keys.get(at))?)?;
        }
        Ok(())
    })
}

/// Finds the stored documents with `count` keys in packed form; see `twindex_documents`. Sets `batch` to the results:
/// for each key an entry with the value and the other data of the document, or none if there is no such document. The
/// caller must free the batch.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_get_many(
    snapshot: Option<&Snapshot>,
    keys: *const u8,
    key_offsets: *const u64,
    count: usize,
    threads: usize,
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(batch, "batch")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `count + 1` offsets, or null, and as many bytes as the last of them says.
        let keys = unsafe { Packed::read(keys, key_offsets, count, "keys") }?;
        let found = in_parallel(
            keys.len(),
            threads,
            KEYS_PER_THREAD,
            |at| -> border::Result<Option<twindex::Record>> {
                Ok(snapshot.get(key(snapshot.params(), keys.get(at))?)?)
            },
        );
        let mut batch = Batch::new();
        for record in found {
            let done = record.map(|record| {
                if let Some(record) = record {
                    batch.add_record(&record);
                }
            });
            batch.end(done);
        }
        slot.give(batch);
        Ok(())
    })
}

/// Finds the documents near each of many sketches, in parallel on `threads` threads; 0 for all cores. `query` has the
/// options of all of them; null means the defaults. Sets `batch` to the results: for each sketch the hits, nearest
/// first. The caller must free the batch.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_near_many(
    snapshot: Option<&Snapshot>,
    sketches: Option<&Sketches>,
    query: *const Query,
    threads: usize,
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(batch, "batch")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        let sketches = &given(sketches, "sketches")?.all;
        // SAFETY: the caller passes options as the header requires, or null.
        let options = unsafe { Options::read(query) }?;
        let found = in_parallel(sketches.len(), threads, QUERIES_PER_THREAD, |at| {
            let sketch = sketches[at].as_ref().map_err(Clone::clone)?;
            Ok(options.run(snapshot, sketch)?)
        });
        let mut batch = Batch::new();
        for answers in found {
            let done = answers.map(|answers| answers.hits.iter().for_each(|hit| batch.add_hit(hit)));
            batch.end(done);
        }
        slot.give(batch);
        Ok(())
    })
}

/// Finds the documents within `within` bits of each of `count` codes of `code_len` bytes, stored one after the other, in
/// parallel on `threads` threads; 0 for all cores. The stored codes are read once for many of them. Sets `batch` to the
/// results: for each code its `limit` nearest hits, nearest first. The caller must free the batch.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_snapshot_codes_within(
    snapshot: Option<&Snapshot>,
    codes: *const u8,
    code_len: usize,
    count: usize,
    within: u32,
    limit: usize,
    threads: usize,
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(batch, "batch")?;
        let snapshot = &given(snapshot, "snapshot")?.inner;
        // SAFETY: the caller passes `count` codes of `code_len` bytes, or null.
        let codes = unsafe { border::codes(codes, code_len, count) }?;
        let together: Vec<_> = codes.chunks(CODES_TOGETHER).collect();
        let found = in_parallel(together.len(), threads, 1, |at| {
            snapshot.codes_within(together[at], within, limit).map_err(Error::from)
        });
        let mut batch = Batch::new();
        for answers in found.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().flatten() {
            answers.hits.iter().for_each(|hit| batch.add_hit(hit));
            batch.end(Ok(()));
        }
        slot.give(batch);
        Ok(())
    })
}

/// Sets `batch` to the next keys, at most `max`, one for each item; there are none after the last key. The caller must
/// free the batch.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_keys_next_many(
    keys: Option<&Keys>,
    max: usize,
    batch: Option<&mut MaybeUninit<*mut Batch>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(batch, "batch")?;
        let mut batch = Batch::new();
        for key in given(keys, "keys")?.take(max)? {
            batch.add_key(&key);
            batch.end(Ok(()));
        }
        slot.give(batch);
        Ok(())
    })
}
