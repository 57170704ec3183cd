//! Where the parts of a text that was rewritten came from.

use std::ops::Range;

/// The pieces of a text that was rewritten, in order.
///
/// A piece either is in both texts as it is, or was rewritten as a whole: then each part of its new form comes from
/// all of its old form. Memory: 24 bytes a piece; a text that was not rewritten has none.
#[derive(Clone, Debug, Default)]
pub(super) struct Pieces(Vec<Piece>);

#[derive(Clone, Copy, Debug)]
struct Piece {
    /// Its start in the new text, and in the old one.
    new: usize,
    old: usize,
    /// Whether it is in both as it is.
    is_same: bool,
}

impl Pieces {
    /// Forgets all pieces.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// A piece begins here, which ends where the next one begins.
    pub(super) fn push(&mut self, new: usize, old: usize, is_same: bool) {
        self.0.push(Piece { new, old, is_same });
    }

    /// The part of the old text that a part of the new one, not empty, came from. Logarithmic in the pieces.
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
