//! The Hamming filter: which elements of a column are near a query.

use zerocopy::little_endian::{U16, U32};

/// A column's element, with its value in the processor's byte order.
pub trait Lane: Copy {
    /// Ones in which the element differs from `query`; only the low bits of `query` count.
    fn distance(self, query: u32) -> u32;
}

impl Lane for U16 {
    #[inline(always)]
    fn distance(self, query: u32) -> u32 {
        u32::from(self.get() ^ query as u16).count_ones()
    }
}

impl Lane for U32 {
    #[inline(always)]
    fn distance(self, query: u32) -> u32 {
        (self.get() ^ query).count_ones()
    }
}

/// Elements looked at together before branching.
const CHUNK: usize = 16;

/// The first place from `from` on whose element is within `radius` of `query`.
#[inline(always)]
pub fn find<T: Lane>(plane: &[T], from: usize, query: u32, radius: u32) -> Option<usize> {
    let mut at = from;
    while at < plane.len() {
        let chunk = &plane[at..plane.len().min(at + CHUNK)];
        // No branch inside: the compiler turns this into vector code where `vectorized` allows it.
        let mut near = false;
        for element in chunk {
            near |= element.distance(query) <= radius;
        }
        if near && let Some(place) = chunk.iter().position(|element| element.distance(query) <= radius) {
            return Some(at + place);
        }
        at += CHUNK;
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::vectorized;
    use super::*;

    /// The definition.
    fn all<T: Lane>(plane: &[T], query: u32, radius: u32) -> Vec<usize> {
        (0..plane.len()).filter(|&i| plane[i].distance(query) <= radius).collect()
    }

    fn by_find<T: Lane>(plane: &[T], query: u32, radius: u32) -> Vec<usize> {
        let mut found = Vec::new();
        while let Some(place) = find(plane, found.last().map_or(0, |last| last + 1), query, radius) {
            found.push(place);
        }
        found
    }

    proptest! {
        #[test]
        fn find_sees_what_a_plain_loop_sees(values in proptest::collection::vec(any::<u32>(), 0..100),
                                            query: u32, radius in 0_u32..=32) {
            let wide: Vec<U32> = values.iter().map(|&v| U32::new(v)).collect();
            let narrow: Vec<U16> = values.iter().map(|&v| U16::new(v as u16)).collect();
            prop_assert_eq!(by_find(&wide, query, radius), all(&wide, query, radius));
            prop_assert_eq!(by_find(&narrow, query, radius), all(&narrow, query, radius));
            prop_assert_eq!(vectorized(|| by_find(&wide, query, radius)), all(&wide, query, radius));
            prop_assert_eq!(vectorized(|| by_find(&narrow, query, radius)), all(&narrow, query, radius));
        }
    }
}
