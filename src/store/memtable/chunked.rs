//! A vector that grows without moving its elements.

const CHUNK: usize = 1 << 12;

/// A vector in chunks of fixed size. Adding an element allocates at most one chunk and moves no other element, so its
/// time is bounded, however long the vector is.
#[derive(Clone, Debug)]
pub(super) struct ChunkedVec<T> {
    /// All chunks are full except the last, which has at least one element.
    chunks: Vec<Vec<T>>,
}

impl<T> Default for ChunkedVec<T> {
    fn default() -> Self {
        Self { chunks: Vec::new() }
    }
}

impl<T: Copy> ChunkedVec<T> {
    pub(super) fn len(&self) -> usize {
        self.chunks.last().map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    #[inline]
    pub(super) fn push(&mut self, value: T) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(value),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(value);
                self.chunks.push(chunk);
            }
        }
    }

    pub(super) fn pop(&mut self) -> Option<T> {
        let last = self.chunks.last_mut()?;
        let value = last.pop();
        if last.is_empty() {
            self.chunks.pop();
        }
        value
    }

    pub(super) fn last(&self) -> Option<T> {
        self.chunks.last().and_then(|last| last.last().copied())
    }

    #[inline]
    pub(super) fn get(&self, place: usize) -> T {
        self.chunks[place / CHUNK][place % CHUNK]
    }

    #[inline]
    pub(super) fn get_ref(&self, place: usize) -> &T {
        &self.chunks[place / CHUNK][place % CHUNK]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, place: usize) -> &mut T {
        &mut self.chunks[place / CHUNK][place % CHUNK]
    }

    /// Returns the elements from this index to the end of their chunk.
    pub(super) fn slice_from(&self, place: usize) -> &[T] {
        &self.chunks[place / CHUNK][place % CHUNK..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_keep_their_index_during_push_and_pop() {
        let mut chunked = ChunkedVec::default();
        for value in 0..3 * CHUNK {
            chunked.push(value);
        }
        let first: *const usize = chunked.get_mut(1);
        for value in 3 * CHUNK..20 * CHUNK {
            chunked.push(value);
        }
        assert!(std::ptr::eq(first, chunked.get_mut(1)));
        for place in [0, 1, CHUNK - 1, CHUNK, 20 * CHUNK - 1] {
            assert_eq!(chunked.get(place), place);
        }
        for len in (CHUNK - 1..20 * CHUNK).rev() {
            assert_eq!((chunked.pop(), chunked.len()), (Some(len), len));
        }
        chunked.push(7);
        assert_eq!((chunked.get(CHUNK - 1), chunked.len()), (7, CHUNK));
        assert_eq!(chunked.slice_from(1).len(), CHUNK - 1);
    }
}
