//! Maps positions of a text that was rewritten to positions of the original.

use std::ops::Range;

/// The pieces of a text that was rewritten, in order.
///
/// A piece is either the same in both texts, or was rewritten as a whole; then each part of its new form maps to
/// its entire old form. Memory: 24 bytes a piece; a text that was not rewritten has none.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(Vec<Piece>);

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The start of the piece in the new text, and in the old one.
    new: usize,
    old: usize,
    /// Whether the piece is the same in both texts.
    is_same: bool,
}

impl Pieces {
    /// Removes all pieces.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Begins a piece, which ends where the next one begins.
    pub(super) fn push(&mut self, new: usize, old: usize, is_same: bool) {
        self.0.push(Piece { new, old, is_same });
    }

    /// The range of the old text that a non-empty range of the new text came from. Logarithmic in the number of pieces.
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
