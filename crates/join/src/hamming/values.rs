//! The fingerprints of a join: held, or read each time they are asked for.

use twindex::error::Result;

/// Reads a piece of fingerprints and hands them out in slices, each with the number of its first.
pub type PieceReader<'a> = dyn Fn(Piece, &mut dyn FnMut(u32, &[u64]) -> Result<()>) -> Result<()> + Sync + 'a;

/// One of this number of pieces, which are all there is, each once, and of about the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Its number, from 0.
    pub number: usize,
    /// How many.
    pub of: usize,
}

impl Piece {
    /// All in one.
    pub const ALL: Self = Self { number: 0, of: 1 };
}

/// Fingerprints, numbered from 0.
#[derive(Clone, Copy)]
pub enum FingerprintValues<'a> {
    /// In memory, ascending.
    Sorted(&'a [u64]),
    /// In memory, in any order.
    Held(&'a [u64]),
    /// This number of fingerprints, read by this function piece by piece; the same each time.
    Read(usize, &'a PieceReader<'a>),
}

impl std::fmt::Debug for FingerprintValues<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} fingerprints", self.len())
    }
}

impl FingerprintValues<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Sorted(values) | Self::Held(values) => values.len(),
            Self::Read(count, _) => *count,
        }
    }

    pub(crate) fn held(&self) -> Option<&[u64]> {
        match self {
            Self::Sorted(values) | Self::Held(values) => Some(values),
            Self::Read(..) => None,
        }
    }

    pub(super) fn ascends(&self) -> bool {
        matches!(self, Self::Sorted(_))
    }

    /// The fingerprints of a piece.
    pub(crate) fn for_each_slice_of(
        &self,
        piece: Piece,
        mut each: impl FnMut(u32, &[u64]) -> Result<()>,
    ) -> Result<()> {
        match self {
            Self::Sorted(values) | Self::Held(values) => {
                let bound =
                    |number: usize| (values.len() as u128 * number as u128 / piece.of as u128) as usize;
                let (start, end) = (bound(piece.number), bound(piece.number + 1));
                each(start as u32, &values[start..end])
            }
            Self::Read(_, read) => read(piece, &mut each),
        }
    }
}
