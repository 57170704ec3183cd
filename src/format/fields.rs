//! The section `fields`: a list of fields (mark, set, priority and code) for each document.
//!
//! ```text
//! offsets  (documents + 1) x o     the number of bytes before each document's fields, then the total number
//! bytes    rows                    the fields of all documents, one document after the other
//!
//! field    tag 1, length 4, and the bytes; the tags of a document ascend
//! mark     tag 1, no bytes         the document was a duplicate when it was added
//! set      tag 2                   the document's distinct shingle hashes
//! priority tag 3, 8 bytes          the caller's number that ranks the document within its group
//! code     tag 4                   the document's fingerprint, the highest bits first
//! ```
//!
//! The parameters define which fields documents can have: `marks=kept`, `sets=kept`, `priorities=kept`, `codes`. If sets
//! are stored, each document has a set, which may be empty. If codes are stored, each document has one; with
//! `codes-simhash`, a code of zeros is that of a document without tokens. A future tag will also get a feature bit of the
//! format, so that a reader that does not know the tag refuses the file.
//!
//! ```text
//! set      count 4
//!          low     count x (8 - c)                 the low bytes of each hash, in ascending order of the hashes
//!          high    ceil((count + 2^8c) / 8)        a bitmap: for the hash at position i (from 0), bit h + i is set,
//!                                                  where h is the number formed by its c high bytes
//! ```
//!
//! c is the number from 0 to 2 that gives the shortest encoding, the smallest in case of a tie. If c is 0, there is no
//! bitmap. A set of 300 hashes takes 7.25 bytes per hash. No encoding of random sets takes less than 7.15 bytes per
//! hash (log2 of the binomial coefficient), so a more complex encoding would save little.

use super::wire::{self, Fault};
use crate::error::Error;
use crate::params::{CodeParams, Params};
use twindex_sketch::Code;

/// Codec number of this section in the table of contents.
pub const CODEC: u16 = 1;
/// Maximum length in bytes of a document's fields.
pub const FIELDS_BYTES_MAX: usize = 1 << 27;
/// Length in bytes of a field's tag and length.
const HEAD_BYTES: usize = 5;
/// Length in bytes of the number of hashes at the start of a set.
const COUNT_BYTES: usize = 4;

const MARK: u8 = 1;
const SET: u8 = 2;
const PRIORITY: u8 = 3;
const CODE: u8 = 4;
/// Length of a priority in bytes.
const PRIORITY_BYTES: usize = 8;

/// Returns the length in bytes of the field of a code.
#[must_use]
pub fn code_field_bytes(codes: CodeParams) -> u64 {
    HEAD_BYTES as u64 + u64::from(codes.bits / 8)
}

/// Returns whether an index with these parameters stores fields.
#[must_use]
pub fn are_kept(params: &Params) -> bool {
    params.sets || params.marks || params.priorities || params.codes.is_some()
}

/// Number of hashes that [`Fields::shared_from`] decodes between two checks of whether it can stop.
const TOGETHER: usize = 64;

/// A set as encoded in the fields.
#[derive(Clone, Copy)]
struct CodedSet<'a> {
    /// Number of hashes in the set.
    count: usize,
    /// Offset of the hashes in the bytes of the fields.
    at: usize,
    coded: &'a [u8],
}

/// Decodes the hashes of a set in ascending order.
struct SetDecoder<'a> {
    set: CodedSet<'a>,
    /// Number of high bytes of a hash, which the bitmap encodes.
    high_bytes: u32,
    low_bytes: usize,
    /// Number of hashes decoded so far. `last` is the most recent one.
    decoded: usize,
    last: u64,
    /// The part of the bitmap that is not decoded yet. `word` contains the remaining set bits of the current word of 64
    /// bits. `map` contains the bytes after this word, which begin at bit `bit` of the bitmap.
    map: &'a [u8],
    bit: usize,
    word: u64,
}

impl<'a> SetDecoder<'a> {
    fn of(set: CodedSet<'a>) -> Self {
        let high_bytes = high_bytes(set.count);
        let low_bytes = 8 - high_bytes as usize;
        let map = &set.coded[set.count * low_bytes..];
        Self { set, high_bytes, low_bytes, decoded: 0, last: 0, map, bit: 0, word: 0 }
    }

    /// Returns the number of hashes that are not decoded yet.
    fn left(&self) -> usize {
        self.set.count - self.decoded
    }

    /// Appends the next `max` hashes to `out`, or all remaining hashes if there are fewer.
    fn decode(&mut self, max: usize, out: &mut Vec<u64>) -> Result<(), Fault> {
        let count = max.min(self.left());
        let start = out.len();
        if self.high_bytes == 0 {
            let coded = &self.set.coded[8 * self.decoded..][..8 * count];
            out.extend(coded.as_chunks::<8>().0.iter().map(|hash| u64::from_le_bytes(*hash)));
        } else {
            for place in self.decoded..self.decoded + count {
                let high = self.high(place)?;
                out.push(high << (8 * self.low_bytes) | self.low(place));
            }
        }
        let mut last = self.last;
        let mut ascends = true;
        for (place, &hash) in (self.decoded..).zip(&out[start..]) {
            ascends &= place == 0 || last < hash;
            last = hash;
        }
        if !ascends {
            return Err(self.descent(&out[start..]));
        }
        (self.decoded, self.last) = (self.decoded + count, last);
        if self.left() == 0 && (self.word != 0 || self.map.iter().any(|&byte| byte != 0)) {
            return Err(self.wrong_map());
        }
        Ok(())
    }

    /// Returns the low bytes of the hash at position `place`.
    fn low(&self, place: usize) -> u64 {
        // Read 8 bytes at once and mask out those that belong to the next hash or to the bitmap.
        match self.set.coded[place * self.low_bytes..].first_chunk::<8>() {
            Some(word) => u64::from_le_bytes(*word) & (u64::MAX >> (8 * self.high_bytes)),
            None => wire::wide(&self.set.coded[place * self.low_bytes..][..self.low_bytes]),
        }
    }

    /// Returns the high bytes of the next hash, at position `place`, from the next set bit of the bitmap.
    fn high(&mut self, place: usize) -> Result<u64, Fault> {
        while self.word == 0 {
            let (word, rest) = match self.map.split_first_chunk::<8>() {
                Some((word, rest)) => (u64::from_le_bytes(*word), rest),
                None if self.map.is_empty() => return Err(self.wrong_map()),
                None => (wire::wide(self.map), &[][..]),
            };
            (self.word, self.map) = (word, rest);
            self.bit += 64;
        }
        let bit = self.bit - 64 + self.word.trailing_zeros() as usize;
        self.word &= self.word - 1;
        let high = bit.checked_sub(place).filter(|high| high >> (8 * self.high_bytes) == 0);
        high.map(|high| high as u64).ok_or_else(|| self.wrong_map())
    }

    #[cold]
    fn wrong_map(&self) -> Fault {
        let at = self.set.at + self.set.count * self.low_bytes;
        Fault::new(at as u64, format!("the high bytes of {} hashes", self.set.count), "others")
    }

    /// Returns the error for the first of `hashes` that is not greater than the hash before it.
    #[cold]
    fn descent(&self, hashes: &[u64]) -> Fault {
        let mut last = (self.decoded > 0).then_some(self.last);
        for (place, &hash) in (self.decoded..).zip(hashes) {
            if let Some(last) = last.filter(|&last| last >= hash) {
                let at = (self.set.at + (place - 1) * self.low_bytes) as u64;
                return Fault::new(at, format!("a hash above {last:016x}"), format!("{hash:016x}"));
            }
            last = Some(hash);
        }
        self.wrong_map()
    }
}

/// Returns the number of elements that two ascending lists have in common.
fn in_both(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut both) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        let (x, y) = (a[i], b[j]);
        both += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    both
}

/// The fields of a document, as encoded in files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// Wraps bytes as fields without checking them. Use [`check`](Self::check) to check them.
    #[must_use]
    pub fn of(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Returns the encoded bytes.
    #[must_use]
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns whether the document is marked as a duplicate.
    #[must_use]
    #[inline]
    pub fn is_marked(self) -> bool {
        self.0.first() == Some(&MARK)
    }

    /// Returns the caller's priority; `None` if the document has none.
    #[must_use]
    #[inline]
    pub fn priority(self) -> Option<u64> {
        let mut at = 0;
        while let Some(head) = self.0.get(at..at + HEAD_BYTES) {
            let content = self.0.get(at + HEAD_BYTES..)?;
            if head[0] == PRIORITY {
                return content.first_chunk().map(|number| u64::from_le_bytes(*number));
            }
            at += HEAD_BYTES + wire::wide(&head[1..]) as usize;
        }
        None
    }

    /// Returns the number of hashes in the document's set; 0 if the document has no set.
    ///
    /// # Errors
    /// A [`Fault`] for bytes that are not valid fields.
    #[inline]
    pub fn set_size(self) -> Result<usize, Fault> {
        Ok(self.set()?.map_or(0, |set| set.count))
    }

    /// Replaces the content of `out` with the hashes of the document's set, ascending. `out` is empty if there is no
    /// set.
    ///
    /// # Errors
    /// A [`Fault`] for bytes that are not valid fields, or for hashes that do not ascend.
    pub fn set_into(self, out: &mut Vec<u64>) -> Result<(), Fault> {
        out.clear();
        let Some(coded) = self.set()? else { return Ok(()) };
        out.reserve(coded.count);
        SetDecoder::of(coded).decode(usize::MAX, out)
    }

    /// Returns the number of hashes that the document's set shares with `set`, which must ascend; `None` if this number
    /// is below `min`. Stops as soon as `min` cannot be reached any more, and leaves the remaining hashes unchecked.
    /// `scratch` is a reusable buffer.
    ///
    /// # Errors
    /// A [`Fault`] for bytes that are not valid fields, or for hashes that do not ascend.
    pub fn shared_from(
        self,
        set: &[u64],
        min: usize,
        scratch: &mut Vec<u64>,
    ) -> Result<Option<usize>, Fault> {
        let Some(coded) = self.set()? else { return Ok((min == 0).then_some(0)) };
        let mut decoder = SetDecoder::of(coded);
        let (mut rest, mut shared) = (set, 0);
        loop {
            if shared + rest.len().min(decoder.left()) < min {
                return Ok(None);
            }
            scratch.clear();
            decoder.decode(TOGETHER, scratch)?;
            let Some(&last) = scratch.last() else { return Ok((shared >= min).then_some(shared)) };
            let (now, later) = rest.split_at(rest.partition_point(|&hash| hash <= last));
            shared += in_both(now, scratch);
            rest = later;
        }
    }

    /// Returns the encoded hashes of the document's set, or its fingerprint in an index that stores `codes`: the same bytes
    /// for equal contents. Empty if there is neither.
    pub(crate) fn encoded_content(self, codes: Option<CodeParams>) -> &'a [u8] {
        match codes {
            Some(codes) => self.code(codes).unwrap_or_default(),
            None => self.set().ok().flatten().map_or(&[], |set| set.coded),
        }
    }

    /// Returns the document's fingerprint, the highest bits first. In an index of simhashes, zeros are those of a document
    /// without tokens, for which [`fingerprint`](Self::fingerprint) returns `None`.
    ///
    /// # Errors
    /// A [`Fault`] if the last field is no fingerprint of this width.
    #[inline(always)]
    pub fn code(self, codes: CodeParams) -> Result<&'a [u8], Fault> {
        let length = usize::from(codes.bits / 8);
        let at = self.0.len().checked_sub(HEAD_BYTES + length);
        match at.and_then(|at| self.0[at..].split_first_chunk::<HEAD_BYTES>()) {
            // A fingerprint has at most 64 bytes, so the upper bytes of the length are 0.
            Some((head, code)) if *head == [CODE, length as u8, 0, 0, 0] => Ok(code),
            _ => Err(no_code(codes)),
        }
    }

    /// Returns the document's fingerprint; `None` for a document without tokens.
    ///
    /// # Errors
    /// A [`Fault`] if the last field is no fingerprint of this width.
    pub fn fingerprint(self, codes: CodeParams) -> Result<Option<Code>, Fault> {
        let code = Code::of_bytes(self.code(codes)?);
        Ok(code.filter(|code| !codes.is_of_no_tokens(code.words())))
    }

    /// Returns the encoded set; `None` if the document has no set.
    fn set(self) -> Result<Option<CodedSet<'a>>, Fault> {
        let at = if self.is_marked() { HEAD_BYTES } else { 0 };
        let Some(head) = self.0.get(at..at + HEAD_BYTES + COUNT_BYTES).filter(|head| head[0] == SET) else {
            return Ok(None);
        };
        let count = wire::wide(&head[HEAD_BYTES..]) as usize;
        let end = at.saturating_add(HEAD_BYTES).saturating_add(wire::wide(&head[1..HEAD_BYTES]) as usize);
        let coded = self.0.get(at + HEAD_BYTES + COUNT_BYTES..end).unwrap_or_default();
        if coded.len() as u64 != coded_bytes(count) {
            let expected = format!("{} bytes for {count} hashes", coded_bytes(count));
            return Err(Fault::new(at as u64, expected, coded.len()));
        }
        Ok(Some(CodedSet { count, at: at + HEAD_BYTES + COUNT_BYTES, coded }))
    }

    /// Checks that the bytes are valid fields for an index with these parameters, including the hashes of the set.
    ///
    /// # Errors
    /// A [`Fault`] with an offset relative to the first byte of the fields.
    pub fn check(self, params: &Params) -> Result<(), Fault> {
        self.check_shape(params)?;
        self.set_into(&mut Vec::new())
    }

    /// Same as [`check`](Self::check), but does not decode the hashes. Sufficient for fields that this process has
    /// [encoded](encode) or checked before.
    ///
    /// # Errors
    /// A [`Fault`] with an offset relative to the first byte of the fields.
    pub fn check_shape(self, params: &Params) -> Result<(), Fault> {
        if let Some(codes) = params.codes {
            self.code(codes)?;
        }
        let code_bytes = params.codes.map(|codes| usize::from(codes.bits / 8));
        self.check_kept((params.sets, params.marks, params.priorities), code_bytes)
    }

    /// Same as [`check_shape`](Self::check_shape). Flags instead of parameters specify which fields are stored.
    ///
    /// # Errors
    /// A [`Fault`] with an offset relative to the first byte of the fields.
    pub fn check_kept(
        self,
        (sets, marks, priorities): (bool, bool, bool),
        code_bytes: Option<usize>,
    ) -> Result<(), Fault> {
        if self.0.len() > FIELDS_BYTES_MAX {
            return Err(Fault::new(0, format!("at most {FIELDS_BYTES_MAX} bytes of fields"), self.0.len()));
        }
        let (mut at, mut last, mut has_set) = (0, 0, false);
        while at < self.0.len() {
            let Some(head) = self.0.get(at..at + HEAD_BYTES) else {
                return Err(Fault::new(at as u64, "the head of a field", "the end"));
            };
            let (tag, length) = (head[0], wire::wide(&head[1..]) as usize);
            let allowed = match tag {
                MARK => marks && length == 0,
                SET => sets && length >= COUNT_BYTES,
                PRIORITY => priorities && length == PRIORITY_BYTES,
                CODE => code_bytes == Some(length),
                _ => false,
            };
            if !allowed || tag <= last {
                return Err(Fault::new(
                    at as u64,
                    "a field that these parameters keep",
                    format!("{tag}, {length}"),
                ));
            }
            last = tag;
            has_set |= tag == SET;
            at += HEAD_BYTES + length;
        }
        if at != self.0.len() {
            return Err(Fault::new(self.0.len() as u64, format!("{at} bytes of fields"), "the end"));
        }
        if sets && !has_set {
            return Err(Fault::new(
                0,
                "the document's set of shingle hashes, which this index keeps",
                "none",
            ));
        }
        self.set().map(|_| ())
    }
}

#[cold]
fn no_code(codes: CodeParams) -> Fault {
    Fault::new(0, format!("a fingerprint of {} bits as the last field", codes.bits), "none")
}

/// Checks fields that a caller passes for a document. Same as [`Fields::check_shape`], with errors for the caller.
///
/// # Errors
/// [`Error::Limit`] if the fields are too long, [`Error::Invalid`] if they are invalid for another reason.
pub fn check(fields: Fields<'_>, params: &Params) -> crate::error::Result<()> {
    let found = fields.0.len() as u64;
    if found > FIELDS_BYTES_MAX as u64 {
        return Err(Error::Limit {
            what: "bytes of a document's set",
            limit: FIELDS_BYTES_MAX as u64,
            found,
        });
    }
    fields.check_shape(params).map_err(unread)
}

/// Converts a fault to the error for invalid fields that a caller passed.
#[allow(clippy::needless_pass_by_value, reason = "as map_err hands it")]
pub(crate) fn unread(fault: Fault) -> Error {
    Error::Invalid(format!("fields of a document: expected {}, found {}", fault.expected, fault.found))
}

/// Returns the number of high bytes (0 to 2) of each hash that the bitmap encodes in a set of `count` hashes.
fn high_bytes(count: usize) -> u32 {
    (0..=2).min_by_key(|&high| coded_with(count, high)).unwrap_or(0)
}

fn coded_bytes(count: usize) -> u64 {
    coded_with(count, high_bytes(count))
}

fn coded_with(count: usize, high: u32) -> u64 {
    let map = if high == 0 { 0 } else { (count as u64 + (1 << (8 * high))).div_ceil(8) };
    count as u64 * u64::from(8 - high) + map
}

/// Replaces the content of `out` with the fields of a document: the mark if `is_marked`, the set if sets are stored, the
/// priority if there is one, and the fingerprint if codes are stored. `set` contains the distinct shingle hashes of the
/// document, which must ascend, or the words of its fingerprint; missing words are 0.
pub fn encode(params: &Params, is_marked: bool, set: &[u64], priority: Option<u64>, out: &mut Vec<u8>) {
    out.clear();
    if is_marked {
        out.extend_from_slice(&[MARK, 0, 0, 0, 0]);
    }
    if params.sets {
        encode_set(set, out);
    }
    if let Some(priority) = priority {
        out.push(PRIORITY);
        out.extend_from_slice(&(PRIORITY_BYTES as u32).to_le_bytes());
        out.extend_from_slice(&priority.to_le_bytes());
    }
    if let Some(codes) = params.codes {
        out.push(CODE);
        out.extend_from_slice(&u32::from(codes.bits / 8).to_le_bytes());
        let words = set.iter().chain(std::iter::repeat(&0)).take(usize::from(codes.bits / 64));
        out.extend(words.flat_map(|word| word.to_be_bytes()));
    }
}

/// Appends the field with a set.
fn encode_set(set: &[u64], out: &mut Vec<u8>) {
    let length = COUNT_BYTES as u64 + coded_bytes(set.len());
    out.push(SET);
    out.extend_from_slice(&(length as u32).to_le_bytes());
    out.extend_from_slice(&(set.len() as u32).to_le_bytes());
    let high = high_bytes(set.len());
    let low = 8 - high as usize;
    // Each hash is written whole, and the next one overwrites its high bytes: a copy of a fixed length is an instruction.
    let start = out.len();
    let end = start + low * set.len();
    out.resize(end + size_of::<u64>(), 0);
    for (place, hash) in set.iter().enumerate() {
        let at = start + low * place;
        out[at..at + size_of::<u64>()].copy_from_slice(&hash.to_le_bytes());
    }
    out.truncate(end);
    if high > 0 {
        let start = out.len();
        out.resize(start + (set.len() + (1 << (8 * high))).div_ceil(8), 0);
        for (place, hash) in set.iter().enumerate() {
            let bit = (hash >> (8 * low)) as usize + place;
            out[start + bit / 8] |= 1 << (bit % 8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params() -> Params {
        Params::builder().minhash(20, 6).sets().marks().build().unwrap()
    }

    fn hashes(count: usize) -> Vec<u64> {
        let mut set: Vec<u64> =
            (1..=count as u64).map(|i| (i ^ 0x5DEE).wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect();
        set.sort_unstable();
        set
    }

    #[test]
    fn every_set_round_trips_in_the_documented_number_of_bytes() {
        let mut out = Vec::new();
        for count in [0, 1, 2, 36, 37, 40, 300, 9_000, 9_500, 70_000] {
            for is_marked in [false, true] {
                let set = hashes(count);
                encode(&params(), is_marked, &set, None, &mut out);
                let fields = Fields::of(&out);
                fields.check(&params()).unwrap();
                assert_eq!((fields.is_marked(), fields.set_size().unwrap()), (is_marked, count));
                let mut read = vec![7];
                fields.set_into(&mut read).unwrap();
                assert!(read == set, "{count} hashes");
                let min = (0..=2).map(|high| coded_with(count, high)).min().unwrap() as usize;
                assert_eq!(out.len(), min + 9 + if is_marked { 5 } else { 0 });
            }
        }
        let extremes = [0, 1, u64::MAX - 1, u64::MAX];
        encode(&params(), false, &extremes, None, &mut out);
        let mut read = Vec::new();
        Fields::of(&out).set_into(&mut read).unwrap();
        assert_eq!(read, extremes);
    }

    #[test]
    fn shared_from_counts_common_hashes_or_stops_below_min() {
        let (mut out, mut scratch) = (Vec::new(), Vec::new());
        for count in [0, 1, 40, 300, 9_500] {
            let all = hashes(count + count / 2);
            let set: Vec<u64> = all.iter().copied().filter(|hash| hash % 3 > 0).collect();
            let other: Vec<u64> = all.iter().copied().filter(|hash| hash % 4 > 0).collect();
            encode(&params(), false, &set, None, &mut out);
            let expected = set.iter().filter(|hash| other.contains(hash)).count();
            for min in [0, expected / 2, expected, expected + 1, set.len() + 1] {
                let shared = Fields::of(&out).shared_from(&other, min, &mut scratch).unwrap();
                assert_eq!(shared, (min <= expected).then_some(expected), "{count}, {min} or more");
            }
        }
    }

    #[test]
    fn fields_that_the_parameters_do_not_store_are_refused() {
        let plain = Params::builder().minhash(20, 6).build().unwrap();
        let marks = Params::builder().minhash(20, 6).marks().build().unwrap();
        let mut out = Vec::new();
        encode(&params(), true, &[1, 2], None, &mut out);
        assert!(Fields::of(&out).check(&marks).is_err() && Fields::of(&out).check(&plain).is_err());
        encode(&marks, true, &[1, 2], None, &mut out);
        assert_eq!(out, [MARK, 0, 0, 0, 0]);
        assert!(Fields::of(&out).check(&marks).is_ok() && Fields::of(&out).check(&plain).is_err());
        assert!(Fields::of(&out).check(&params()).is_err(), "a set is missing");
        assert!(Fields::of(&[]).check(&plain).is_ok() && Fields::of(&[]).check(&params()).is_err());
    }

    #[test]
    fn priority_round_trips_and_is_refused_without_its_parameter() {
        let builder = || Params::builder().minhash(20, 6);
        let mut out = Vec::new();
        for (params, is_marked, count) in [
            (builder().priorities().build().unwrap(), false, 0),
            (builder().priorities().marks().build().unwrap(), true, 0),
            (builder().priorities().sets().build().unwrap(), false, 300),
            (builder().priorities().sets().marks().build().unwrap(), true, 9_000),
        ] {
            for priority in [None, Some(0), Some(7), Some(u64::MAX)] {
                let set = hashes(count);
                encode(&params, is_marked, &set, None, &mut out);
                let without = out.len();
                encode(&params, is_marked, &set, priority, &mut out);
                let fields = Fields::of(&out);
                fields.check(&params).unwrap();
                let mut read = Vec::new();
                fields.set_into(&mut read).unwrap();
                assert_eq!((fields.priority(), fields.is_marked(), read), (priority, is_marked, set));
                assert_eq!(out.len(), without + if priority.is_some() { 13 } else { 0 });
                let mut others = params.clone();
                others.priorities = false;
                assert_eq!(fields.check(&others).is_err(), priority.is_some());
                if priority.is_some() {
                    for cut in without + 1..out.len() {
                        assert!(Fields::of(&out[..cut]).check(&params).is_err(), "{cut}");
                    }
                    let again = [&out[..], &out[without..]].concat();
                    assert!(Fields::of(&again).check(&params).is_err(), "two numbers");
                }
            }
        }
    }

    #[test]
    fn changed_byte_never_panics_or_decodes_to_the_same_set() {
        let mut out = Vec::new();
        for count in [3, 40, 9_500] {
            let set = hashes(count);
            encode(&params(), true, &set, None, &mut out);
            let places: Vec<usize> = (0..out.len()).filter(|at| *at < 80 || at % 97 == 0).collect();
            for at in places {
                for flip in [1_u8, 0x80, 0xFF] {
                    out[at] ^= flip;
                    let mut read = Vec::new();
                    if Fields::of(&out).check(&params()).is_ok() {
                        Fields::of(&out).set_into(&mut read).unwrap();
                        assert!(read != set || !Fields::of(&out).is_marked(), "{count} {at} {flip}");
                    }
                    out[at] ^= flip;
                }
            }
            for cut in 0..out.len().min(200) {
                assert!(Fields::of(&out[..cut]).check(&params()).is_err());
            }
        }
    }
}
