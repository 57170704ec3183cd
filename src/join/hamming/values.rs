//! The fingerprints of a join: held, or read each time they are asked for.

use crate::error::Result;

/// What reads fingerprints and hands them out in slices, each with the number of its first.
pub type Read<'a> = dyn Fn(&mut dyn FnMut(u32, &[u64]) -> Result<()>) -> Result<()> + Sync + 'a;

/// Fingerprints, numbered from 0.
#[derive(Clone, Copy)]
pub enum Values<'a> {
    /// In memory, ascending.
    Sorted(&'a [u64]),
    /// In memory, in any order.
    Held(&'a [u64]),
    /// So many, read by this whenever they are wanted; the same each time.
    Read(usize, &'a Read<'a>),
}

impl std::fmt::Debug for Values<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} fingerprints", self.len())
    }
}

impl Values<'_> {
    pub(in crate::join) fn len(&self) -> usize {
        match self {
            Self::Sorted(values) | Self::Held(values) => values.len(),
            Self::Read(count, _) => *count,
        }
    }

    pub(in crate::join) fn held(&self) -> Option<&[u64]> {
        match self {
            Self::Sorted(values) | Self::Held(values) => Some(values),
            Self::Read(..) => None,
        }
    }

    pub(super) fn ascends(&self) -> bool {
        matches!(self, Self::Sorted(_))
    }

    pub(in crate::join) fn for_each_slice(
        &self,
        mut each: impl FnMut(u32, &[u64]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Sorted(values) | Self::Held(values) => each(0, values),
            Self::Read(_, read) => read(&mut each),
        }
    }

    /// One of so many pieces, which are about as long; of what is read, the first piece is all.
    pub(super) fn for_each_slice_of(
        &self,
        piece: usize,
        pieces: usize,
        mut each: impl FnMut(u32, &[u64]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Sorted(values) | Self::Held(values) => {
                let bound = |piece: usize| (values.len() as u128 * piece as u128 / pieces as u128) as usize;
                each(bound(piece) as u32, &values[bound(piece)..bound(piece + 1)])
            }
            Self::Read(_, read) if piece == 0 => read(&mut each),
            Self::Read(..) => Ok(()),
        }
    }
}
