//! The fingerprints of a join: held in memory, or read each time they are needed.

use twindex::error::Result;

/// Reads a piece of fingerprints and passes them on in slices, each with the number of its first fingerprint.
pub type PieceReader<'a> = dyn Fn(Piece, &mut dyn FnMut(u32, &[u64]) -> Result<()>) -> Result<()> + Sync + 'a;

/// One of `of` pieces of about equal length that together cover all fingerprints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The number of this piece, from 0.
    pub number: usize,
    /// Number of pieces.
    pub of: usize,
}

impl Piece {
    /// A single piece with all fingerprints.
    pub const ALL: Self = Self { number: 0, of: 1 };
}

/// Fingerprints, numbered from 0.
#[derive(Clone, Copy)]
pub enum FingerprintValues<'a> {
    /// In memory, ascending.
    Sorted(&'a [u64]),
    /// In memory, in any order.
    Held(&'a [u64]),
    /// This number of fingerprints, read piece by piece by this function, which must return the same ones each time.
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

    /// Passes the fingerprints of a piece on in slices.
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
