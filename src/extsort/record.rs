//! Records that can be sorted, and their encoding in scratch files.

use zerocopy::little_endian::{U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, Unaligned};

/// A record that can be written to a scratch file. It has a fixed width, or starts with a head from which its length
/// follows.
pub trait Record: Ord + Sized {
    /// The size of the head in bytes. For records of fixed width, this is the size of the whole record.
    const HEAD: usize;

    /// Returns the number of bytes of a record after its head. `head` is the first [`HEAD`](Self::HEAD) bytes of the
    /// record.
    #[inline]
    #[must_use]
    fn tail(_head: &[u8]) -> usize {
        0
    }

    /// Appends the encoded record to `bytes`.
    fn put(&self, bytes: &mut Vec<u8>);

    /// Decodes a whole record from `bytes` into `record`, and may reuse the memory of the previous record.
    fn take(bytes: &[u8], record: &mut Option<Self>);

    /// Combines this record with the next record in sort order, `next`, if they belong together, and returns true if
    /// so. By default, equal records are combined. A record with a count adds the count of `next`.
    #[inline]
    fn absorb(&mut self, next: &Self) -> bool {
        self == next
    }
}

/// The little-endian encoding of a record with two fields.
#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct WirePair<A, B>(A, B);

#[derive(FromBytes, IntoBytes, Immutable, Unaligned)]
#[repr(C)]
struct Triple(U64, U64, u8);

/// Implements [`Record`] for a type of fixed width, by converting it to and from a type with a fixed encoding.
macro_rules! fixed {
    ($type:ty, $wire:ty, |$record:ident| $to:expr, |$found:ident| $from:expr) => {
        impl Record for $type {
            const HEAD: usize = size_of::<$wire>();
            #[inline]
            fn put(&self, bytes: &mut Vec<u8>) {
                let $record = *self;
                let wire: $wire = $to;
                bytes.extend_from_slice(wire.as_bytes());
            }
            #[inline]
            fn take(bytes: &[u8], record: &mut Option<Self>) {
                // Decoding succeeds, because `bytes` has `HEAD` bytes. A `None` would be taken for the end of the run.
                *record = <$wire>::read_from_bytes(bytes).ok().map(|$found| $from);
            }
        }
    };
}
fixed!(u64, U64, |record| record.into(), |found| found.get());
fixed!(u128, U128, |record| record.into(), |found| found.get());
fixed!((u64, u32), WirePair<U64, U32>, |record| WirePair(record.0.into(), record.1.into()), |found| (
    found.0.get(),
    found.1.get()
));
fixed!((u64, u64, u8), Triple, |record| Triple(record.0.into(), record.1.into(), record.2), |found| (
    found.0.get(),
    found.1.get(),
    found.2
));
fixed!([u64; 4], [U64; 4], |record| record.map(U64::new), |found| found.map(U64::get));

/// A number and the number of its occurrences. Records with equal numbers are combined, and their counts are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NumberCount {
    /// The counted number, such as a shingle hash.
    pub number: u64,
    /// Number of occurrences of `number`.
    pub count: u32,
}

impl Record for NumberCount {
    const HEAD: usize = <(u64, u32)>::HEAD;

    #[inline]
    fn put(&self, bytes: &mut Vec<u8>) {
        (self.number, self.count).put(bytes);
    }

    #[inline]
    fn take(bytes: &[u8], record: &mut Option<Self>) {
        let mut pair = None;
        <(u64, u32)>::take(bytes, &mut pair);
        *record = pair.map(|(number, count)| Self { number, count });
    }

    #[inline]
    fn absorb(&mut self, next: &Self) -> bool {
        let same = self.number == next.number;
        self.count = self.count.saturating_add(if same { next.count } else { 0 });
        same
    }
}
