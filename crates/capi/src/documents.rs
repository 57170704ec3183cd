//! Many documents in packed form: the input of calls for many.

use twindex::Code;

use crate::border::{self, Result, Structure};
use crate::error::Error;
use crate::packed::Packed;
use crate::sketch::{Sketches, sketch_all};

/// Many documents. Initialise with `TWINDEX_DOCUMENTS_INIT`. Bytes of all documents are stored one after the other, and
/// `..._offsets` has the start of each and, as one more number, the end of the last: `count + 1` numbers that do not
/// decrease. Null pointers mean that the documents have no such data.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Documents {
    /// The size of this structure in the caller's program, in bytes.
    pub struct_size: usize,
    /// The number of documents.
    pub count: usize,
    /// The keys. Numeric keys have 8 bytes each, in native byte order.
    pub keys: *const u8,
    /// The offsets of the keys.
    pub key_offsets: *const u64,
    /// The texts in UTF-8, unless `sketches`, `fingerprints` or `codes` is given. They are sketched in parallel before the
    /// writer is locked.
    pub texts: *const u8,
    /// The offsets of the texts.
    pub text_offsets: *const u64,
    /// The sketches of the texts, from `twindex_sketcher_sketch_many`.
    pub sketches: *const Sketches,
    /// The fingerprints, for an index that stores only fingerprints.
    pub fingerprints: *const u64,
    /// The values.
    pub values: *const u8,
    /// The offsets of the values.
    pub value_offsets: *const u64,
    /// The stamps.
    pub stamps: *const u64,
    /// The priorities.
    pub priorities: *const u64,
    /// For each document, a number that is not 0 if it is marked as a duplicate.
    pub duplicates: *const u8,
    /// The number of threads that sketch texts; 0 for all cores.
    pub threads: usize,
    /// The fingerprints, for an index made with `twindex_params_codes`: `code_len` bytes each, without offsets.
    pub codes: *const u8,
    /// Length of each code in bytes.
    pub code_len: usize,
}

// SAFETY: the first field is the size, and numbers and raw pointers have no invalid bits.
unsafe impl Structure for Documents {
    const FIRST: usize = 14 * 8;
}

/// What is stored of the documents, before it is sketched.
#[derive(Debug)]
enum Content<'a> {
    Texts(Packed<'a>),
    Sketches(&'a Sketches),
    Fingerprints(&'a [u64]),
    Codes(Vec<Code>),
}

/// Documents that a C caller passed, checked.
#[derive(Debug)]
pub(crate) struct Given<'a> {
    pub(crate) keys: Packed<'a>,
    content: Content<'a>,
    values: Option<Packed<'a>>,
    stamps: &'a [u64],
    priorities: &'a [u64],
    duplicates: &'a [u8],
    threads: usize,
}

impl Given<'_> {
    /// Converts documents that a C caller passed.
    ///
    /// # Safety
    /// `documents` is null or set as the header requires. The caller neither changes nor frees it, nor the
    /// memory that it points to, while the result is in use.
    pub(crate) unsafe fn read(documents: *const Documents) -> Result<Self> {
        // SAFETY: the caller passes a structure that begins with its size, or null.
        let all = unsafe { border::sized(documents, "documents") }?;
        let count = all.count;
        // SAFETY: the header requires `count + 1` offsets and the bytes that they point to.
        let packed = |bytes, offsets, name| unsafe { Packed::read(bytes, offsets, count, name) };
        let numbers = |start: *const u64, name| {
            let len = if start.is_null() { 0 } else { count };
            // SAFETY: the header requires `count` numbers, or null.
            unsafe { border::values(start, len, name) }
        };
        let keys = packed(all.keys, all.key_offsets, "keys")?;
        // SAFETY: the header requires a handle that is not freed before the call returns, or null.
        let sketches = unsafe { all.sketches.as_ref() };
        let has = [!all.text_offsets.is_null(), !all.fingerprints.is_null(), !all.codes.is_null()];
        let content = match (has, sketches) {
            ([true, false, false], None) => Content::Texts(packed(all.texts, all.text_offsets, "texts")?),
            ([false, false, false], Some(sketches)) if sketches.all.len() == count => {
                Content::Sketches(sketches)
            }
            ([false, false, false], Some(sketches)) => {
                let found = sketches.all.len();
                return Err(Error::invalid(format!("documents: {found} sketches of {count} documents")));
            }
            ([false, true, false], None) => Content::Fingerprints(numbers(all.fingerprints, "fingerprints")?),
            ([false, false, true], None) => {
                // SAFETY: the header requires `count` codes of `code_len` bytes.
                Content::Codes(unsafe { border::codes(all.codes, all.code_len, count) }?)
            }
            _ => {
                return Err(Error::invalid(
                    "documents: set texts, sketches, fingerprints or codes, one of them",
                ));
            }
        };
        let has_values = !all.value_offsets.is_null();
        let duplicates = if all.duplicates.is_null() { 0 } else { count };
        Ok(Self {
            keys,
            content,
            values: if has_values { Some(packed(all.values, all.value_offsets, "values")?) } else { None },
            stamps: numbers(all.stamps, "stamps")?,
            priorities: numbers(all.priorities, "priorities")?,
            // SAFETY: the header requires `count` bytes, or null.
            duplicates: unsafe { border::bytes(all.duplicates, duplicates, "duplicates") }?,
            threads: all.threads,
        })
    }

    /// Computes the sketches of texts, in parallel; `None` if the caller has passed sketches, fingerprints or codes.
    /// `sketcher` is called only for texts.
    pub(crate) fn sketch(
        &self,
        sketcher: impl FnOnce() -> Result<twindex::Sketcher>,
    ) -> Result<Option<Sketches>> {
        let Content::Texts(texts) = self.content else { return Ok(None) };
        Ok(Some(sketch_all(&sketcher()?, texts, self.threads)))
    }

    /// Returns document `at`. `sketched` is the result of [`sketch`](Self::sketch).
    pub(crate) fn document<'d>(
        &'d self,
        at: usize,
        sketched: Option<&'d Sketches>,
    ) -> Result<twindex::Document<'d>> {
        let of = |sketches: &'d Sketches| match sketches.all.get(at) {
            Some(Ok(sketch)) => Ok(twindex::Document::from(sketch)),
            Some(Err(error)) => Err(error.clone()),
            None => Err(Error::invalid("there is no sketch of this document")),
        };
        let document = match &self.content {
            Content::Fingerprints(fingerprints) => twindex::Fingerprint(fingerprints[at]).into(),
            Content::Codes(codes) => codes[at].into(),
            Content::Sketches(sketches) => of(sketches)?,
            Content::Texts(_) => of(sketched.ok_or_else(|| Error::invalid("texts without sketches"))?)?,
        };
        let value = self.values.as_ref().map_or(&[][..], |values| values.get(at));
        let document = document.with_value(value).with_stamp(self.stamps.get(at).copied());
        let document = document.with_priority(self.priorities.get(at).copied());
        Ok(if self.duplicates.get(at).is_some_and(|&mark| mark != 0) {
            document.as_duplicate()
        } else {
            document
        })
    }
}
