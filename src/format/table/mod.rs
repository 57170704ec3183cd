//! The permutation tables.
//!
//! A table holds the distinct fingerprints of a segment, each as its *key*: its bits in the table's order
//! ([`design::order`](crate::design::order)), which begins with the bits that lead the table. Table 1 holds complete
//! keys, in one of the codecs for complete tables; the row of a fingerprint in table 1 is its rank. The other tables
//! hold complete keys too, or only some bytes of each ([`filter`]). Table 1 needs a codec for complete tables; the other
//! tables can use any codec. Each codec has a submodule:
//!
//! | codec | holds | is for |
//! |---|---|---|
//! | [`planes`] | whole keys | speed |
//! | [`filter`] | 2 to 4 bytes of each | speed and size, in all tables except the first |
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
mod testing;

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
    /// Whole keys.
    Complete(Complete),
    /// Entries of 2 to 4 bytes (the field is their width), which refer to table 1.
    Partial(u8),
}

impl Codec {
    /// Returns the codec of a scheme's table number `place`, counted from 0.
    #[must_use]
    pub fn in_scheme(scheme: Scheme, place: usize) -> Self {
        match scheme.codecs.partial {
            Some(width) if place > 0 => Self::Partial(width),
            _ => Self::Complete(scheme.codecs.first),
        }
    }

    /// Returns the kind of section that a table of this codec has.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Complete(_) => Kind::Table,
            Self::Partial(_) => Kind::FilterTable,
        }
    }

    /// Returns the number of the codec in the table of contents.
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

    /// Returns the codec of a section of this kind and codec number; `None` if there is no such codec.
    #[must_use]
    pub fn of(kind: Kind, number: u16) -> Option<Self> {
        let partial = (2..=4).map(Self::Partial);
        let mut all = Complete::ALL.into_iter().map(Self::Complete).chain(partial);
        all.find(|codec| (codec.kind(), codec.number()) == (kind, number))
    }

    /// Writes a table of `rows` values, which ascend: keys, or the [sort values](Filter::value) of a partial table.
    /// `values` may be called more than once.
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

/// A table in a file: its codec and its layout.
#[derive(Clone, Debug)]
pub enum Layout {
    /// See [`planes`].
    Planes(Planes),
    /// See [`compact`].
    Compact(Compact),
    /// See [`manku`].
    Manku(Manku),
    /// See [`plain`].
    Plain(Plain),
    /// See [`filter`].
    Filter(Filter),
}

impl Layout {
    /// Opens a section of `rows` rows and `length` bytes in this codec, of a table that leads with `lead` bits. Checks
    /// only the head.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
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

    /// Refuses a probe strategy that the codec does not support.
    ///
    /// # Errors
    /// [`Error::Invalid`], which names the strategy and the codec.
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

    /// Returns the rows whose keys begin with the `bits` bits of `prefix`. In a partial table whose directory has fewer
    /// bits, returns all rows of the bucket that contains them.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
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

    /// Not inlined, because these functions are long and the cost of the call is small in comparison.
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

    /// Prefetches the data of `rows` that a scan reads first.
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

    /// Prefetches the other data of a row that a scan has found.
    #[inline(always)]
    pub fn hint_row<'a>(&self, source: impl Source<'a>, row: u64) {
        match self {
            Self::Planes(planes) => planes.hint_row(source, row),
            Self::Filter(filter) => filter.hint_row(source, row),
            _ => {}
        }
    }

    /// Calls `each` with the row and key of each of `rows` within `radius` of `query`, in ascending order, until it
    /// breaks. Only for complete tables.
    ///
    /// # Errors
    /// [`Error::Corrupt`].
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
    /// [`Error::Corrupt`], also for a row that does not exist.
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
    /// [`Error::Corrupt`].
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

    /// Calls `each` with every row and its sort value, in ascending order: its key, or its entry in a partial table.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or the errors of `each`.
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
