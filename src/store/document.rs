//! A document to be added to an index.

use crate::error::{Error, Result};
use crate::format::attached::Attached;
use crate::format::fields::{self, Fields, unread};
use crate::format::sketches::Row;
use crate::params::{CodeParams, Params};
use crate::segment::records::Kept;
use twindex_sketch::{Code, Fingerprint, Sketch, pack};

/// The argument of [`Writer::put`](super::Writer::put) and [`Writer::admit`](super::Writer::admit): the content of a
/// document, and the value, stamp and fields that the index stores with it.
///
/// The content is a sketch. For an index with SimHash but without MinHash and samples, it can also be a fingerprint computed
/// by the caller. For an index of [codes](crate::params::ParamsBuilder::codes) it is a [`Code`] of its width. Each of them
/// converts into a document without value and stamp: `writer.put("a", &sketch)`.
///
/// ```
/// use twindex::{Document, Index, Params};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let params = Params::builder().words(2).simhash(3).values().expire_after(60).build()?;
/// let index = Index::create(dir.path().join("x"), params)?;
/// let sketch = index.sketcher()?.sketch("a rose is a rose is a rose")?;
/// let mut writer = index.writer()?;
/// writer.put("a", Document::from(&sketch).with_value(b"page 7").with_stamp(1000))?;
/// writer.commit()?;
/// assert_eq!(index.snapshot().get("a")?.unwrap().value.unwrap(), b"page 7");
///
/// writer.put("b", Document::from(&sketch).with_stamp(1060))?;
/// writer.commit()?;
/// assert_eq!((index.snapshot().now(), index.snapshot().contains("a")?), (Some(1060), false));
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Document<'a> {
    content: Content<'a>,
    attached: Attached<'a>,
    set: GivenSet<'a>,
    is_marked: bool,
    priority: Option<u64>,
}

/// The set of a document, in the form in which the caller passed it.
#[derive(Clone, Copy, Debug)]
enum GivenSet<'a> {
    Nothing,
    Hashes(&'a [u64]),
    Encoded(Fields<'a>),
}

#[derive(Clone, Copy, Debug)]
enum Content<'a> {
    Sketch(&'a Sketch),
    Code(Code),
    Row { made_with: &'a Params, row: Option<Row<'a>> },
}

impl<'a> Document<'a> {
    fn new(content: Content<'a>) -> Self {
        Self {
            content,
            attached: Attached::default(),
            set: GivenSet::Nothing,
            is_marked: false,
            priority: None,
        }
    }

    /// Creates a document from a row of a [file of sketches](crate::format::sketches) that was made with the parameters
    /// `made_with`. A `row` of `None` is an empty sketch.
    pub fn from_row(made_with: &'a Params, row: Option<Row<'a>>) -> Self {
        Self::new(Content::Row { made_with, row })
    }

    /// Sets the value: at most 65,536 bytes, for an index that [stores values](crate::params::ParamsBuilder::values).
    /// The default is the empty value.
    pub fn with_value(mut self, value: &'a [u8]) -> Self {
        self.attached.value = value;
        self
    }

    /// Sets the stamp: the time of the document, in the unit of [`Params::expire_after`]. An index whose documents
    /// expire requires a stamp for each document; any other index refuses stamps. The default is `None`.
    pub fn with_stamp(mut self, stamp: impl Into<Option<u64>>) -> Self {
        self.attached.stamp = stamp.into();
        self
    }

    /// Sets the distinct shingle hashes of the document, ascending, for an index that [stores
    /// sets](crate::params::ParamsBuilder::sets). Required for a row or a fingerprint; a sketch made for such an index
    /// already contains its set.
    pub fn with_set(mut self, set: &'a [u64]) -> Self {
        self.set = GivenSet::Hashes(set);
        self
    }

    /// Marks the document as a duplicate, for an index that [stores marks](crate::params::ParamsBuilder::marks).
    /// [`Writer::admit`](super::Writer::admit) compares new documents only with unmarked ones, as long as one of these is
    /// near the marked document.
    pub fn as_duplicate(mut self) -> Self {
        self.is_marked = true;
        self
    }

    /// Sets the priority, for an index that [stores priorities](crate::params::ParamsBuilder::priorities). The document
    /// with the smallest number is the leader of its group. Documents without a priority (the default) come last.
    pub fn with_priority(mut self, priority: impl Into<Option<u64>>) -> Self {
        self.priority = priority.into();
        self
    }

    /// Sets the set of the document in the encoding of a [file of sketches](crate::format::sketches::Rows::next_with_set).
    pub fn with_encoded_set(mut self, set: Fields<'a>) -> Self {
        self.set = GivenSet::Encoded(set);
        self
    }

    /// Replaces the contents of `out` with the encoded fields of this document for an index with these parameters, and the
    /// contents of `set` with the document's set, or with the words of its fingerprint if the index stores codes.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the index stores sets or codes, and this document has none.
    pub(super) fn fields_into(&self, params: &Params, out: &mut Vec<u8>, set: &mut Vec<u64>) -> Result<()> {
        set.clear();
        if self.is_marked && !params.marks {
            return Err(Error::Invalid(
                "this index keeps no marks of duplicates; that is chosen when it is created".into(),
            ));
        }
        if let Some(codes) = params.codes {
            self.code_into(codes, set)?;
        }
        if params.sets {
            match (self.set, self.content) {
                (GivenSet::Hashes(hashes), _) if hashes.is_sorted_by(|a, b| a < b) => {
                    set.extend_from_slice(hashes);
                }
                (GivenSet::Hashes(_), _) => {
                    return Err(Error::Invalid(
                        "a set of shingle hashes: expected them to ascend, each once".into(),
                    ));
                }
                (GivenSet::Encoded(fields), _) => fields.set_into(set).map_err(unread)?,
                (GivenSet::Nothing, Content::Sketch(sketch)) if sketch.has_set() => {
                    set.extend_from_slice(sketch.set());
                }
                (GivenSet::Nothing, _) => {
                    return Err(Error::Invalid(
                        "this index keeps the set of each document's shingle hashes, and this document comes without; \
                         take the sketcher of the index, or give it with Document::with_set"
                            .into(),
                    ));
                }
            }
        }
        if self.priority.is_some() && !params.priorities {
            return Err(Error::Invalid(
                "this index keeps no priorities, and this document comes with one; that is chosen when it is created".into(),
            ));
        }
        self.encode_fields(params, self.is_marked, set, out);
        Ok(())
    }

    /// Appends the words of the fingerprint for an index that stores codes; none for a document without tokens.
    fn code_into(&self, codes: CodeParams, words: &mut Vec<u64>) -> Result<()> {
        let code = match (self.content, self.set) {
            (Content::Code(code), _) => Some(code),
            (Content::Row { .. }, GivenSet::Encoded(fields)) => {
                Code::of_bytes(fields.code(codes).map_err(unread)?)
            }
            // `kept` has checked the parameters of the sketch.
            (Content::Sketch(sketch), _) if codes.votes.is_some() => match sketch.code() {
                Some(code) => Some(code),
                None => return Ok(()),
            },
            _ => None,
        };
        let expected = codes.bits;
        match code {
            Some(code) if code.bits() == usize::from(expected) && codes.is_of_no_tokens(code.words()) => {}
            Some(code) if code.bits() == usize::from(expected) => words.extend(code.words()),
            Some(code) => {
                let found = code.bits();
                return Err(Error::Invalid(format!(
                    "this index keeps fingerprints of {expected} bits, and this document has one of {found}"
                )));
            }
            None => {
                return Err(Error::Invalid(format!(
                    "this index keeps fingerprints of {expected} bits: give a Code"
                )));
            }
        }
        Ok(())
    }

    /// Like [`fields_into`](Self::fields_into), but takes the mark and the set from the arguments, and checks nothing.
    pub(super) fn encode_fields(&self, params: &Params, is_marked: bool, set: &[u64], out: &mut Vec<u8>) {
        fields::encode(params, is_marked, set, self.priority, out);
    }

    /// Creates a document from its stored form in a segment or a log. `params` are the parameters of that index.
    pub(super) fn stored(params: &'a Params, kept: Option<Row<'a>>, attached: Attached<'a>) -> Self {
        let document = Self::from_row(params, kept).with_value(attached.value).with_stamp(attached.stamp);
        let document = document.with_encoded_set(attached.fields).with_priority(attached.fields.priority());
        if attached.fields.is_marked() { document.as_duplicate() } else { document }
    }

    pub(super) fn attached(&self) -> Attached<'a> {
        self.attached
    }

    /// Returns the part of the content that an index with these parameters stores; `None` for an empty sketch.
    /// `sketch_digest` is the digest of the sketch parameters of the index; `packed` is a buffer for the signature of a
    /// sketch.
    ///
    /// # Errors
    /// [`Error::ParamsMismatch`] for content made with other parameters; [`Error::Invalid`] for a fingerprint, unless
    /// the index stores simhash fingerprints and neither MinHash nor samples.
    pub(super) fn kept<'b>(
        &self,
        params: &Params,
        sketch_digest: u128,
        packed: &'b mut Vec<u8>,
    ) -> Result<Option<Kept<'b>>>
    where
        'a: 'b,
    {
        match self.content {
            Content::Sketch(sketch) => {
                params.check_sketch(sketch_digest, sketch)?;
                if params.codes.is_some() {
                    return Ok(None); // the fingerprint is a field
                }
                packed.clear();
                if let Some(minhash) = params.minhash {
                    pack(sketch.signature(), minhash.signature_bits, packed);
                }
                Ok((!sketch.is_empty()).then(|| Kept {
                    fingerprint: sketch.fingerprint().map_or(0, |fingerprint| fingerprint.0),
                    features: sketch.features(),
                    signature: packed,
                    bottom: sketch.bottom(),
                    modular: sketch.modular(),
                }))
            }
            // The fingerprint is a field.
            Content::Code(_) if params.codes.is_some() => Ok(None),
            Content::Code(code) => {
                if code.bits() > 64 {
                    let found = code.bits();
                    return Err(Error::Invalid(format!(
                        "this index keeps no fingerprints of {found} bits; that is chosen when it is created"
                    )));
                }
                let samples = params.bottom > 0 || params.modulus > 0;
                if params.simhash.is_none() || params.minhash.is_some() || samples {
                    return Err(Error::Invalid(
                        "raw fingerprints need an index that keeps simhash and no MinHash or samples".into(),
                    ));
                }
                Ok(Some(Kept { fingerprint: code.words()[0], ..Kept::default() }))
            }
            Content::Row { made_with, row } => {
                if made_with != params {
                    params.check_same_sketch(made_with)?;
                }
                Ok(row)
            }
        }
    }
}

impl<'a> From<&'a Sketch> for Document<'a> {
    fn from(sketch: &'a Sketch) -> Self {
        Self::new(Content::Sketch(sketch))
    }
}

impl From<Code> for Document<'_> {
    fn from(code: Code) -> Self {
        Self::new(Content::Code(code))
    }
}

impl From<Fingerprint> for Document<'_> {
    fn from(fingerprint: Fingerprint) -> Self {
        Code::from(fingerprint).into()
    }
}
