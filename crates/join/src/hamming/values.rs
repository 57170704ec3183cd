//! The fingerprints of a join: held in memory, or read each time they are needed.

use twindex::error::Result;

/// A function that reads a piece of the fingerprints and passes it to a callback in slices, each with the number of its
/// first fingerprint.
pub type PieceReader<'a> = dyn Fn(Piece, &mut dyn FnMut(u32, &[u64]) -> Result<()>) -> Result<()> + Sync + 'a;

/// One of `of` pieces into which the fingerprints are split. All pieces have about the same length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of this piece, counted from 0.
    pub number: usize,
    /// The total number of pieces.
    pub of: usize,
}

impl Piece {
    /// The single piece that contains all fingerprints.
    pub const ALL: Self = Self { number: 0, of: 1 };
}

/// A sequence of fingerprints, numbered from 0.
#[derive(Clone, Copy)]
pub enum FingerprintValues<'a> {
    /// Fingerprints in memory, in ascending order.
    Sorted(&'a [u64]),
    /// Fingerprints in memory, in any order.
    Held(&'a [u64]),
    /// The number of fingerprints, and a function that reads them by piece. The function must return the same fingerprints
    /// at each call.
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

    /// Passes the fingerprints of a piece to `each`, in slices, each with the number of its first fingerprint.
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
