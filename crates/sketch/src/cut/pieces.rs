//! Maps positions in a rewritten text to positions in the original text.

use std::ops::Range;

/// Maps the parts of a rewritten text, called pieces, to the original text.
///
/// A piece is either the same in both texts or was rewritten as a whole. Every position in a rewritten piece maps to
/// the whole original piece. Takes 24 bytes of memory for each piece; a text that was not rewritten has no pieces.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(Vec<Piece>);

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The start of the piece in the rewritten text (`new`) and in the original text (`old`).
    new: usize,
    old: usize,
    /// Whether the piece is the same in both texts.
    is_same: bool,
}

impl Pieces {
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Adds a piece, which ends where the next piece begins.
    pub(super) fn push(&mut self, new: usize, old: usize, is_same: bool) {
        self.0.push(Piece { new, old, is_same });
    }

    /// Returns the range of the original text from which a non-empty range of the rewritten text was made. Takes time
    /// logarithmic in the number of pieces.
    pub(super) fn old(&self, new: Range<usize>, old_len: usize) -> Range<usize> {
        let of = |at: usize| self.0.partition_point(|piece| piece.new <= at).checked_sub(1);
        let (Some(first), Some(last)) = (of(new.start), of(new.end - 1)) else { return new };
        let start = match self.0[first] {
            Piece { new: begins, old, is_same: true } => old + (new.start - begins),
            piece => piece.old,
        };
        let end = match self.0[last] {
            Piece { new: begins, old, is_same: true } => old + (new.end - begins),
            _ => self.0.get(last + 1).map_or(old_len, |next| next.old),
        };
        start..end
    }
}
