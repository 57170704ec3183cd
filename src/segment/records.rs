//! The records of a new segment, stored column by column.

use xxhash_rust::xxh3::xxh3_128;

use super::attached::RecordAttached;
use crate::error::{Error, Result};
use crate::format::attached::Attached;
use crate::format::fields::{self, Fields};
use crate::format::samples::{self, SampleChoice, VALUE_BYTES};
use crate::format::{DOCUMENTS_MAX, bands};
use crate::key::Key;
use crate::params::{KeyKind, Params};

pub use crate::format::sketches::Row as Kept;

/// Records in the order in which they were added. Of several records with the same key, only the last is written.
#[derive(Clone, Debug)]
pub struct Records {
    pub(super) params: Params,
    pub(super) keys: KeyColumn,
    /// The fingerprint of each record; 0 for a record without a sketch.
    pub(super) fingerprints: Vec<u64>,
    /// The band keys of all records; each record has one per band.
    pub(super) bands: Vec<u32>,
    /// The packed signatures of all records, `signature_bytes` bytes each.
    pub(super) signatures: Vec<u8>,
    /// The bottom and the modular samples; `None` if the index stores none.
    pub(super) samples: [Option<SampleColumn>; 2],
    /// The value of each record, empty for a delete; `None` if the index stores no values.
    pub(super) values: Option<ValueColumn>,
    /// The stamp of each record, 0 for a delete; `None` if the index stores no stamps.
    pub(super) stamps: Option<Vec<u64>>,
    /// The fields of each record, empty for a delete; `None` if the index stores no fields.
    pub(super) fields: Option<ValueColumn>,
    pub(super) kinds: Vec<RowKind>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowKind {
    /// A document with a sketch.
    Sketched,
    /// A document without tokens, and so without a sketch.
    Empty,
    /// A delete. It is not written to the segment, but it hides older records with the same key.
    Deleted,
}

/// The samples of all records, in the encoding of the file.
#[derive(Clone, Debug)]
pub(super) struct SampleColumn {
    pub(super) choice: SampleChoice,
    values: Vec<u8>,
    ends: Vec<usize>,
}

impl SampleColumn {
    pub(super) fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.values[start..self.ends[row]]
    }
}

/// The values or the fields of all records, concatenated.
#[derive(Clone, Debug, Default)]
pub(super) struct ValueColumn {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl ValueColumn {
    pub(super) fn get(&self, row: usize) -> &[u8] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.bytes[start..self.ends[row]]
    }

    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        self.ends.push(self.bytes.len());
    }

    fn truncate(&mut self, rows: usize) {
        self.ends.truncate(rows);
        self.bytes.truncate(self.ends.last().copied().unwrap_or(0));
    }

    fn memory(&self) -> usize {
        self.bytes.len() + self.ends.len() * 8
    }
}

#[derive(Clone, Debug)]
pub(super) enum KeyColumn {
    U64(Vec<u64>),
    Bytes { arena: Vec<u8>, ends: Vec<usize> },
}

impl KeyColumn {
    pub(super) fn get(&self, row: usize) -> Key<'_> {
        match self {
            Self::U64(keys) => Key::U64(keys[row]),
            Self::Bytes { arena, ends } => {
                let start = if row == 0 { 0 } else { ends[row - 1] };
                Key::Bytes(&arena[start..ends[row]])
            }
        }
    }
}

impl Records {
    /// Creates an empty list of records.
    #[must_use]
    pub fn new(params: &Params) -> Self {
        let keys = match params.key {
            KeyKind::U64 => KeyColumn::U64(Vec::new()),
            KeyKind::Bytes => KeyColumn::Bytes { arena: Vec::new(), ends: Vec::new() },
        };
        Self {
            params: params.clone(),
            keys,
            fingerprints: Vec::new(),
            bands: Vec::new(),
            signatures: Vec::new(),
            samples: SampleChoice::of(params).map(|choice| {
                choice.map(|choice| SampleColumn { choice, values: Vec::new(), ends: Vec::new() })
            }),
            values: params.values.then(ValueColumn::default),
            stamps: params.expire_after.map(|_| Vec::new()),
            fields: fields::are_kept(params).then(ValueColumn::default),
            kinds: Vec::new(),
        }
    }

    /// Returns the number of records, including deletes. Records with the same key are counted separately.
    #[must_use]
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Returns true if no record was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Adds a record. `kept` is `None` for a document without tokens, which has no sketch.
    ///
    /// # Errors
    /// Fails for a key of the wrong kind or length, a sketch of the wrong shape, or more than 2^30 records.
    pub fn push(&mut self, key: Key<'_>, kept: Option<Kept<'_>>) -> Result<()> {
        self.push_with(key, kept, Attached::default())
    }

    /// Adds a record as [`push`](Self::push) does, with the value, the stamp and the fields that the parameters require.
    ///
    /// # Errors
    /// Same as [`push`](Self::push), and those of [`Attached::check`].
    pub fn push_with(&mut self, key: Key<'_>, kept: Option<Kept<'_>>, attached: Attached<'_>) -> Result<()> {
        attached.check(&self.params)?;
        let kind = if kept.is_some() { RowKind::Sketched } else { RowKind::Empty };
        self.push_row(key, kept, attached, kind)
    }

    /// Adds records of numeric keys and fingerprints. The parameters must store nothing else ([`Rows::can_hold`]).
    ///
    /// [`Rows::can_hold`]: super::rows::Rows::can_hold
    ///
    /// # Errors
    /// More than 2^30 records.
    pub(crate) fn extend(&mut self, keys: &[u64], fingerprints: &[u64]) -> Result<()> {
        let found = self.len() as u64 + keys.len() as u64;
        if found > DOCUMENTS_MAX {
            return Err(Error::Limit { what: "documents of a segment", limit: DOCUMENTS_MAX, found });
        }
        if let KeyColumn::U64(all) = &mut self.keys {
            all.extend_from_slice(keys);
        }
        self.fingerprints.extend_from_slice(fingerprints);
        self.kinds.resize(found as usize, RowKind::Sketched);
        Ok(())
    }

    /// Adds a delete of `key`.
    ///
    /// # Errors
    /// Same as [`push`](Self::push).
    pub fn delete(&mut self, key: Key<'_>) -> Result<()> {
        self.push_row(key, None, Attached::default(), RowKind::Deleted)
    }

    fn push_row(
        &mut self,
        key: Key<'_>,
        kept: Option<Kept<'_>>,
        attached: Attached<'_>,
        kind: RowKind,
    ) -> Result<()> {
        key.check(self.params.key)?;
        if self.len() as u64 >= DOCUMENTS_MAX {
            let found = self.len() as u64 + 1;
            return Err(Error::Limit { what: "documents of a segment", limit: DOCUMENTS_MAX, found });
        }
        if let Some(kept) = kept {
            self.check_shape(kept)?;
        }
        let (bands, signature_bytes) = self.widths();
        let sampled = kept.map_or([&[][..]; 2], |kept| [kept.bottom, kept.modular]);
        match (&mut self.keys, key) {
            (KeyColumn::U64(keys), Key::U64(key)) => keys.push(key),
            (KeyColumn::Bytes { arena, ends }, Key::Bytes(key)) => {
                arena.extend_from_slice(key);
                ends.push(arena.len());
            }
            _ => unreachable!("the kind of the key was checked above"),
        }
        self.kinds.push(kind);
        if self.params.simhash.is_some() {
            self.fingerprints.push(kept.map_or(0, |kept| kept.fingerprint));
        }
        if let Some(kept) = kept {
            let bits = bands::bits_of(&self.params);
            self.bands.extend(kept.features.iter().map(|&feature| bands::key(feature, bits)));
            self.signatures.extend_from_slice(kept.signature);
        } else {
            self.bands.resize(self.bands.len() + bands, 0);
            self.signatures.resize(self.signatures.len() + signature_bytes, 0);
        }
        for (column, hashes) in self.samples.iter_mut().zip(sampled) {
            if let Some(column) = column {
                samples::encode(hashes, &mut column.values);
                column.ends.push(column.values.len());
            }
        }
        if let Some(column) = &mut self.values {
            column.push(attached.value);
        }
        if let Some(column) = &mut self.stamps {
            column.push(attached.stamp.unwrap_or(0));
        }
        if let Some(column) = &mut self.fields {
            column.push(attached.fields.bytes());
        }
        Ok(())
    }

    /// Appends the records of `other`, which must have been created with the same parameters.
    pub(crate) fn append(&mut self, other: &Self) {
        match (&mut self.keys, &other.keys) {
            (KeyColumn::U64(keys), KeyColumn::U64(others)) => keys.extend_from_slice(others),
            (KeyColumn::Bytes { arena, ends }, KeyColumn::Bytes { arena: bytes, ends: others }) => {
                append_rows(arena, ends, bytes, others);
            }
            _ => unreachable!("parameters decide the kind of keys"),
        }
        self.fingerprints.extend_from_slice(&other.fingerprints);
        self.bands.extend_from_slice(&other.bands);
        self.signatures.extend_from_slice(&other.signatures);
        for (column, others) in self.samples.iter_mut().zip(&other.samples) {
            if let (Some(column), Some(others)) = (column, others) {
                append_rows(&mut column.values, &mut column.ends, &others.values, &others.ends);
            }
        }
        let of_values = [(&mut self.values, &other.values), (&mut self.fields, &other.fields)];
        for (column, others) in of_values {
            if let (Some(column), Some(others)) = (column, others) {
                append_rows(&mut column.bytes, &mut column.ends, &others.bytes, &others.ends);
            }
        }
        if let (Some(column), Some(others)) = (&mut self.stamps, &other.stamps) {
            column.extend_from_slice(others);
        }
        self.kinds.extend_from_slice(&other.kinds);
    }

    /// Returns an error if a sketch does not have the shape that the parameters require.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub(crate) fn check_shape(&self, kept: Kept<'_>) -> Result<()> {
        let (bands, signature_bytes) = self.widths();
        if (kept.features.len(), kept.signature.len()) != (bands, signature_bytes) {
            return Err(Error::Invalid(format!(
                "a sketch of this index has {bands} features and {signature_bytes} bytes of signature, this one {} \
                 and {}",
                kept.features.len(),
                kept.signature.len()
            )));
        }
        for (column, hashes) in self.samples.iter().zip([kept.bottom, kept.modular]) {
            samples::check(column.as_ref().map(|column| column.choice), hashes)?;
        }
        Ok(())
    }

    pub(crate) fn params(&self) -> &Params {
        &self.params
    }

    pub(crate) fn key(&self, row: usize) -> Key<'_> {
        self.keys.get(row)
    }

    /// Returns true if a row is a document that has a sketch.
    pub(crate) fn is_sketched(&self, row: usize) -> bool {
        self.kinds[row] == RowKind::Sketched
    }

    /// Returns true if a row is a delete.
    pub(crate) fn is_delete(&self, row: usize) -> bool {
        self.kinds[row] == RowKind::Deleted
    }

    /// Returns the fingerprint of a row; 0 if it has no sketch. The index must store fingerprints.
    pub(crate) fn fingerprint(&self, row: usize) -> u64 {
        self.fingerprints[row]
    }

    /// Returns the band keys of a row; all 0 if it has no sketch.
    pub(crate) fn band_keys(&self, row: usize) -> &[u32] {
        let bands = self.widths().0;
        &self.bands[row * bands..][..bands]
    }

    pub(crate) fn signature(&self, row: usize) -> &[u8] {
        let bytes = self.widths().1;
        &self.signatures[row * bytes..][..bytes]
    }

    /// Appends the hashes in the bottom sample (`of` is 0) or the modular sample (1) of a row to `out`.
    pub(crate) fn sample(&self, row: usize, of: usize, out: &mut Vec<u64>) {
        if let Some(column) = &self.samples[of] {
            out.extend(samples::decode(column.get(row)));
        }
    }

    /// Returns the value of a row; empty if the index stores no values.
    pub(crate) fn value(&self, row: usize) -> &[u8] {
        self.values.as_ref().map_or(&[], |column| column.get(row))
    }

    /// Returns the fields of a row; empty if the index stores no fields.
    pub(crate) fn fields(&self, row: usize) -> Fields<'_> {
        Fields::of(self.fields.as_ref().map_or(&[], |column| column.get(row)))
    }

    /// Replaces `out` by the set of a row, which is empty if the index stores no sets.
    ///
    /// # Errors
    /// Never, because the fields were checked when the record was added.
    pub(crate) fn set(&self, row: usize, out: &mut Vec<u64>) -> Result<()> {
        self.fields(row).set_into(out).map_err(fields::unread)
    }

    /// Returns the stamp of a row; `None` if the index stores no stamps.
    pub(crate) fn stamp(&self, row: usize) -> Option<u64> {
        self.stamps.as_ref().map(|column| column[row])
    }

    /// Removes all rows except the first `rows`.
    pub(crate) fn truncate(&mut self, rows: usize) {
        let (bands, signature_bytes) = self.widths();
        match &mut self.keys {
            KeyColumn::U64(keys) => keys.truncate(rows),
            KeyColumn::Bytes { arena, ends } => {
                ends.truncate(rows);
                arena.truncate(ends.last().copied().unwrap_or(0));
            }
        }
        self.fingerprints.truncate(rows);
        self.bands.truncate(rows * bands);
        self.signatures.truncate(rows * signature_bytes);
        for column in self.samples.iter_mut().flatten() {
            column.ends.truncate(rows);
            column.values.truncate(column.ends.last().copied().unwrap_or(0));
        }
        for column in [&mut self.values, &mut self.fields].into_iter().flatten() {
            column.truncate(rows);
        }
        if let Some(column) = &mut self.stamps {
            column.truncate(rows);
        }
        self.kinds.truncate(rows);
    }

    /// Returns the number of features and the length of the signature in bytes, which are the same for all records.
    pub(super) fn widths(&self) -> (usize, usize) {
        self.params.minhash.map_or((0, 0), |minhash| (usize::from(minhash.bands), minhash.signature_bytes()))
    }

    /// Returns the number of bytes of memory that the records use.
    #[must_use]
    pub fn memory(&self) -> usize {
        let keys = match &self.keys {
            KeyColumn::U64(keys) => keys.len() * 8,
            KeyColumn::Bytes { arena, ends } => arena.len() + ends.len() * 8,
        };
        let samples: usize =
            self.samples.iter().flatten().map(|column| column.values.len() + column.ends.len() * 8).sum();
        let minhash = self.bands.len() * 4 + self.signatures.len();
        let values: usize = [&self.values, &self.fields].into_iter().flatten().map(ValueColumn::memory).sum();
        let attached = values + self.stamps.as_ref().map_or(0, |column| column.len() * 8);
        keys + self.fingerprints.len() * 8 + minhash + samples + attached + self.kinds.len()
    }

    /// Returns the rows to write, in the order of keys: the last row of each key, unless it is a delete.
    pub(super) fn order(&self) -> Vec<u32> {
        let mut order = self.last_of_each_key();
        order.retain(|&row| self.kinds[row as usize] != RowKind::Deleted);
        order
    }

    /// Returns the last row of each key, in the order of keys.
    fn last_of_each_key(&self) -> Vec<u32> {
        let rows = 0..self.len() as u32;
        if self.ascends() {
            return rows.collect();
        }
        let mut order: Vec<u32> = rows.collect();
        // Rows with equal keys are sorted by row number, so the last row of a key comes last.
        match &self.keys {
            KeyColumn::U64(keys) => order.sort_unstable_by_key(|&row| (keys[row as usize], row)),
            KeyColumn::Bytes { .. } => {
                order.sort_unstable_by(|&a, &b| {
                    self.keys.get(a as usize).cmp(&self.keys.get(b as usize)).then(a.cmp(&b))
                });
            }
        }
        let mut kept = 0;
        for place in 0..order.len() {
            let last_of_its_key = place + 1 == order.len()
                || self.keys.get(order[place] as usize) != self.keys.get(order[place + 1] as usize);
            if last_of_its_key {
                order[kept] = order[place];
                kept += 1;
            }
        }
        order.truncate(kept);
        order
    }

    fn ascends(&self) -> bool {
        match &self.keys {
            KeyColumn::U64(keys) => keys.is_sorted_by(|a, b| a < b),
            KeyColumn::Bytes { .. } => (1..self.len()).all(|row| self.keys.get(row - 1) < self.keys.get(row)),
        }
    }

    /// Returns all keys in ascending order without duplicates, including deleted keys. Documents with these keys in
    /// older segments are no longer live.
    pub fn keys(&self) -> impl Iterator<Item = Key<'_>> {
        self.last_of_each_key().into_iter().map(|row| self.keys.get(row as usize))
    }

    pub(super) fn record_hash(&self, row: usize, scratch: &mut Vec<u8>) -> u128 {
        let (bands, signature_bytes) = self.widths();
        let sketch = (self.kinds[row] == RowKind::Sketched).then(|| RecordSketch {
            fingerprint: self.params.simhash.map(|_| self.fingerprints[row]),
            bands: &self.bands[row * bands..(row + 1) * bands],
            signature: &self.signatures[row * signature_bytes..(row + 1) * signature_bytes],
            samples: self.samples.each_ref().map(|column| column.as_ref().map(|column| column.get(row))),
        });
        let value = self.values.as_ref().map(|column| column.get(row));
        let fields = self.fields.as_ref().map(|column| column.get(row));
        let attached = RecordAttached { value, stamp: self.stamp(row), fields };
        record_hash(self.keys.get(row), sketch, attached, scratch)
    }
}

/// Appends the rows of a column of byte strings to another column.
fn append_rows(bytes: &mut Vec<u8>, ends: &mut Vec<usize>, others: &[u8], other_ends: &[usize]) {
    let start = bytes.len();
    bytes.extend_from_slice(others);
    ends.extend(other_ends.iter().map(|end| start + end));
}

/// The part of a record's sketch that the hash of the record covers: exactly the data that the index stores.
pub(super) struct RecordSketch<'a> {
    pub(super) fingerprint: Option<u64>,
    pub(super) bands: &'a [u32],
    pub(super) signature: &'a [u8],
    /// The encoded bottom and modular samples; `None` if the index stores none.
    pub(super) samples: [Option<&'a [u8]>; 2],
}

/// Returns the hash that a record adds to the salt: xxh3-128 of those of the following fields that are stored:
///
/// - the length of the key in bytes (as 4 bytes), and the key; a numeric key has length 8;
/// - 1 if the record has a sketch, otherwise 0 (1 byte);
/// - fingerprint, band keys, signature and samples; a sample is the number of its values (4 bytes), followed by the values;
/// - the length of the value (4 bytes), and the value; the stamp (8 bytes); the length of the fields (4 bytes), and the
///   fields.
pub(super) fn record_hash(
    key: Key<'_>,
    sketch: Option<RecordSketch<'_>>,
    attached: RecordAttached<'_>,
    scratch: &mut Vec<u8>,
) -> u128 {
    scratch.clear();
    match key {
        Key::U64(key) => {
            scratch.extend_from_slice(&8_u32.to_le_bytes());
            scratch.extend_from_slice(&key.to_le_bytes());
        }
        Key::Bytes(key) => {
            scratch.extend_from_slice(&(key.len() as u32).to_le_bytes());
            scratch.extend_from_slice(key);
        }
    }
    scratch.push(u8::from(sketch.is_some()));
    if let Some(sketch) = sketch {
        if let Some(fingerprint) = sketch.fingerprint {
            scratch.extend_from_slice(&fingerprint.to_le_bytes());
        }
        for band in sketch.bands {
            scratch.extend_from_slice(&band.to_le_bytes());
        }
        scratch.extend_from_slice(sketch.signature);
        for sample in sketch.samples.into_iter().flatten() {
            scratch.extend_from_slice(&((sample.len() / VALUE_BYTES as usize) as u32).to_le_bytes());
            scratch.extend_from_slice(sample);
        }
    }
    if let Some(value) = attached.value {
        scratch.extend_from_slice(&(value.len() as u32).to_le_bytes());
        scratch.extend_from_slice(value);
    }
    if let Some(stamp) = attached.stamp {
        scratch.extend_from_slice(&stamp.to_le_bytes());
    }
    if let Some(fields) = attached.fields {
        scratch.extend_from_slice(&(fields.len() as u32).to_le_bytes());
        scratch.extend_from_slice(fields);
    }
    xxh3_128(scratch)
}
