//! The permutation tables.
//!
//! A table contains the distinct fingerprints of a segment, each as its *key*: the bits of the fingerprint in the order
//! of the table ([`design::order`](crate::design::order)), which starts with the leading bits of the table. Table 1
//! contains whole keys, and the row of a fingerprint in table 1 is its rank. The other tables contain either whole keys
//! or only some bytes of each key ([`filter`]). Each codec has a submodule:
//!
//! | codec | stores | purpose |
//! |---|---|---|
//! | [`planes`] | whole keys | speed |
//! | [`filter`] | 2 to 4 bytes of each key | speed and size, in all tables except table 1 |
//! | [`compact`] | whole keys | size |
//! | [`manku`] | whole keys | comparing with the paper |
//! | [`plain`] | whole keys | comparing with the paper, and probes that need whole keys |

pub mod compact;
pub mod filter;
pub mod manku;
pub mod plain;
pub mod planes;
pub mod search;
pub mod source;
#[cfg(test)]
mod tests;

use std::ops::{ControlFlow, Range};

use super::contents::Kind;
use crate::design::{Complete, Scheme};
use crate::error::{Error, Result};
use twindex_kernel::Simd;

pub use compact::Compact;
pub use filter::Filter;
pub use manku::Manku;
pub use plain::Plain;
pub use planes::Planes;
use search::Search;
pub use source::{Columns, Probe, Source};

/// The encoding of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// Whole keys, encoded with the given codec.
    Complete(Complete),
    /// Entries of 2 to 4 bytes, which contain a part of each fingerprint. The whole fingerprint is in table 1. The
    /// value is the number of bytes of an entry.
    Partial(u8),
}

impl Codec {
    /// Returns the codec of the scheme's table with index `place`, counted from 0.
    #[must_use]
    pub fn in_scheme(scheme: Scheme, place: usize) -> Self {
        match scheme.codecs.partial {
            Some(width) if place > 0 => Self::Partial(width),
            _ => Self::Complete(scheme.codecs.first),
        }
    }

    /// Returns the kind of a section that contains a table with this codec.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Complete(_) => Kind::Table,
            Self::Partial(_) => Kind::FilterTable,
        }
    }

    /// Returns the codec number in the table of contents.
    #[must_use]
    pub fn number(self) -> u16 {
        match self {
            Self::Complete(Complete::Planes) => planes::CODEC,
            Self::Complete(Complete::Compact) => compact::CODEC,
            Self::Complete(Complete::Manku) => manku::CODEC,
            Self::Complete(Complete::Plain) => plain::CODEC,
            Self::Partial(width) => filter::codec(width),
        }
    }

    /// Returns the codec for a kind of section and a codec number; `None` if there is no such codec.
    #[must_use]
    pub fn of(kind: Kind, number: u16) -> Option<Self> {
        let partial = (2..=4).map(Self::Partial);
        let mut all = Complete::ALL.into_iter().map(Self::Complete).chain(partial);
        all.find(|codec| (codec.kind(), codec.number()) == (kind, number))
    }

    /// Writes a table of `rows` ascending values: keys, or the [sort values](Filter::value) of a partial table. May
    /// call `values` more than once.
    ///
    /// # Errors
    /// The errors of `values` and `columns`.
    pub fn encode<I: Iterator<Item = Result<u64>>>(
        self,
        rows: u64,
        lead: u32,
        values: impl Fn() -> I,
        columns: &mut impl Columns,
    ) -> Result<()> {
        match self {
            Self::Complete(Complete::Planes) => Planes::of(rows, lead).encode(values(), columns),
            Self::Complete(Complete::Compact) => Compact::of(rows).encode(values(), columns),
            Self::Complete(Complete::Manku) => Manku::encode(rows, values, columns),
            Self::Complete(Complete::Plain) => Plain::of(rows).encode(values(), columns),
            Self::Partial(width) => Filter::of(rows, lead, width).encode(values(), columns),
        }
    }
}

/// A table in a file: the layout of its section.
#[derive(Clone, Debug)]
pub enum Layout {
    /// A table with the codec [`planes`].
    Planes(Planes),
    /// A table with the codec [`compact`].
    Compact(Compact),
    /// A table with the codec [`manku`].
    Manku(Manku),
    /// A table with the codec [`plain`].
    Plain(Plain),
    /// A partial table: [`filter`].
    Filter(Filter),
}

impl Layout {
    /// Opens a section of `length` bytes that contains a table with this codec, `rows` rows and `lead` leading bits.
    /// Checks only the head of the section.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    pub fn open<'a>(
        codec: Codec,
        source: impl Source<'a>,
        rows: u64,
        lead: u32,
        length: u64,
    ) -> Result<Self> {
        let (layout, expected) = match codec {
            Codec::Complete(Complete::Planes) => {
                let planes = Planes::of(rows, lead);
                (Self::Planes(planes), planes.length)
            }
            Codec::Partial(width) => {
                let filter = Filter::of(rows, lead, width);
                (Self::Filter(filter), filter.length)
            }
            Codec::Complete(Complete::Compact) => {
                (Self::Compact(Compact::open(source, rows, length)?), length)
            }
            Codec::Complete(Complete::Manku) => (Self::Manku(Manku::open(source, rows, length)?), length),
            Codec::Complete(Complete::Plain) => (Self::Plain(Plain::open(source, rows, length)?), length),
        };
        if length == expected {
            return Ok(layout);
        }
        let expected = format!("{expected} bytes for {rows} rows");
        Err(source.corrupt(super::wire::Fault::new(0, expected, format!("{length} bytes"))))
    }

    /// Returns an error for a probe strategy that the codec does not support.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the names of the strategy and the codec.
    pub fn check_probe(&self, probe: Probe) -> Result<()> {
        let has = match self {
            Self::Planes(_) | Self::Filter(_) | Self::Compact(_) => probe == Probe::Directory,
            Self::Manku(_) => probe != Probe::Directory,
            Self::Plain(_) => true,
        };
        if has {
            return Ok(());
        }
        Err(Error::Invalid(format!("probe {probe:?}: tables coded as {} are not probed so", self.name())))
    }

    /// Returns the default probe strategy of the codec.
    #[must_use]
    pub fn probe(&self) -> Probe {
        if matches!(self, Self::Manku(_)) { Probe::Interpolation } else { Probe::Directory }
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Planes(_) => Complete::Planes.name(),
            Self::Compact(_) => Complete::Compact.name(),
            Self::Manku(_) => Complete::Manku.name(),
            Self::Plain(_) => Complete::Plain.name(),
            Self::Filter(_) => "partial",
        }
    }

    /// Returns the rows whose keys begin with `prefix`, a prefix of `bits` bits. If the directory of a partial table
    /// has fewer bits, returns all rows of the bucket that contains these keys.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    #[inline(always)]
    pub fn rows<'a>(
        &self,
        source: impl Source<'a>,
        prefix: u64,
        bits: u32,
        probe: Probe,
    ) -> Result<Range<u64>> {
        match self {
            Self::Planes(planes) => planes.rows(source, prefix, bits),
            Self::Filter(filter) => filter.rows(source, prefix, bits),
            _ => self.rows_searched(source, prefix, bits, probe),
        }
    }

    /// Same as [`rows`](Self::rows), for codecs whose tables are searched. Not inlined: a call is cheap compared with a
    /// search.
    #[inline(never)]
    fn rows_searched<'a>(
        &self,
        source: impl Source<'a>,
        prefix: u64,
        bits: u32,
        probe: Probe,
    ) -> Result<Range<u64>> {
        match self {
            Self::Compact(compact) => compact.rows(source, prefix, bits),
            Self::Manku(manku) => {
                let binary = probe == Probe::Binary;
                manku.rows(source, prefix, bits, if binary { Search::Binary } else { Search::Interpolation })
            }
            Self::Plain(plain) => plain.rows(source, prefix, bits, probe),
            Self::Planes(_) | Self::Filter(_) => Err(partial()),
        }
    }

    /// Prefetches the data that [`rows`](Self::rows) reads first.
    #[inline(always)]
    pub fn hint_directory<'a>(&self, source: impl Source<'a>, prefix: u64, bits: u32) {
        match self {
            Self::Planes(planes) => planes.hint_directory(source, prefix, bits),
            Self::Filter(filter) => filter.hint_directory(source, prefix, bits),
            Self::Compact(compact) => compact.hint_directory(source, prefix, bits),
            Self::Plain(plain) => plain.hint_directory(source, prefix, bits),
            Self::Manku(_) => {}
        }
    }

    /// Prefetches the data that a scan of `rows` reads first.
    #[inline(always)]
    pub fn hint_rows<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        match self {
            Self::Planes(planes) => planes.hint_rows(source, rows),
            Self::Filter(filter) => filter.hint_rows(source, rows),
            Self::Compact(compact) => compact.hint_rows(source, rows),
            Self::Plain(plain) => plain.hint_rows(source, rows),
            Self::Manku(manku) => manku.hint_rows(source, rows),
        }
    }

    /// Announces the data that [`value`](Self::value) reads, except for a range that is returned, if it is known.
    pub fn announce_value<'a>(&self, source: impl Source<'a>, row: u64) -> Option<Range<u64>> {
        if let Self::Planes(planes) = self { planes.announce_value(source, row) } else { None }
    }

    /// Announces the data that is read for the rows that a scan of `rows` finds.
    pub fn announce_rests<'a>(&self, source: impl Source<'a>, rows: &Range<u64>) {
        if let Self::Planes(planes) = self {
            planes.announce_rests(source, rows);
        }
    }

    /// Prefetches the data that is read for a row that a scan has found.
    #[inline(always)]
    pub fn hint_row<'a>(&self, source: impl Source<'a>, row: u64) {
        match self {
            Self::Planes(planes) => planes.hint_row(source, row),
            Self::Filter(filter) => filter.hint_row(source, row),
            _ => {}
        }
    }

    /// Calls `each` with the row and the key of each row in `rows` whose key is within `radius` of `query`, in
    /// ascending order, until `each` returns `Break`. Only for complete tables.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    #[inline(always)]
    pub fn scan<'a, S: Simd>(
        &self,
        simd: S,
        source: impl Source<'a>,
        rows: Range<u64>,
        query: u64,
        radius: u32,
        each: impl FnMut(u64, u64) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        match self {
            Self::Planes(planes) => planes.scan(simd, source, rows, query, radius, each),
            Self::Compact(compact) => compact.scan(simd, source, rows, query, radius, each),
            Self::Manku(manku) => manku.scan(simd, source, rows, query, radius, each),
            Self::Plain(plain) => plain.scan(simd, source, rows, query, radius, each),
            Self::Filter(_) => Err(partial()),
        }
    }

    /// Returns the key of a row. Only for complete tables.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged or the row does not exist.
    pub fn value<'a>(&self, source: impl Source<'a>, row: u64) -> Result<u64> {
        match self {
            Self::Planes(planes) => planes.value(source, row),
            Self::Compact(compact) => compact.value(source, row),
            Self::Manku(manku) => manku.value(source, row),
            Self::Plain(plain) => plain.value(source, row),
            Self::Filter(_) => Err(partial()),
        }
    }

    /// Returns the row of a key; `None` if the table does not contain it. Only for complete tables.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged.
    #[inline(never)]
    pub fn find<'a>(&self, source: impl Source<'a>, key: u64) -> Result<Option<u64>> {
        match self {
            Self::Planes(planes) => planes.find(source, key),
            Self::Compact(compact) => compact.find(source, key),
            Self::Manku(manku) => manku.find(source, key),
            Self::Plain(plain) => plain.find(source, key),
            Self::Filter(_) => Err(partial()),
        }
    }

    /// Calls `each` with every row and its sort value, in ascending order. The sort value is the key, or in a partial
    /// table the value of the entry ([`Filter::value`]).
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the section is damaged, or the errors of `each`.
    pub fn for_each<'a>(
        &self,
        source: impl Source<'a>,
        mut each: impl FnMut(u64, u64) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Planes(planes) => planes.for_each(source, each),
            Self::Compact(compact) => compact.for_each(source, each),
            Self::Manku(manku) => manku.for_each(source, each),
            Self::Plain(plain) => plain.for_each(source, each),
            Self::Filter(filter) => {
                let mut rows = 0..;
                filter.for_each(source, |value| each(rows.next().unwrap_or(u64::MAX), value))
            }
        }
    }
}

#[cold]
fn partial() -> Error {
    Error::Invalid("a partial table holds no whole fingerprints".into())
}
