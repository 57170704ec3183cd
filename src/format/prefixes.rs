//! How documents are found by their sets: the sections common and prefixes.
//!
//! Sets that resemble each other by J or more have an element in common among the first `|x| - ceil(J |x|) + 1` of
//! each, under any total order of the elements (prefix filtering: Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and
//! Srikant 2007). So a document is found by these few elements, its prefix, and the cost is least if they are rare.
//!
//! The order of a segment: by the class of the element's tag, then by the element. A tag is the upper half of a hash.
//! The section `common` has the tags that many documents of the segment contain, each with a class from 1 to 255,
//! higher for more documents; all other tags are of class 0. Any such list gives correct answers; `segment::sets`
//! describes the one that is written.
//!
//! Both sections are encoded as a [band](super::bands) of 32 bits: `common` has classes in the place of ordinals, below
//! 256, and `prefixes` an entry for each document and each distinct tag in its prefix. The tags of a document with a
//! [mark](super::fields) are stored with all bits inverted, so that queries for unmarked documents find marked ones
//! only by collision.

use crate::error::Result;

/// Classes are below this number.
pub const CLASSES: u64 = 256;

/// The part of a hash by which documents are found.
#[must_use]
#[inline]
pub fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The key of an entry.
#[must_use]
#[inline]
pub fn key(tag: u32, is_marked: bool) -> u32 {
    if is_marked { !tag } else { tag }
}

/// Replaces `out` by the tags of the first `length` elements of a set, which ascends, in the order of the tags'
/// classes. The tags are ascending, without repetitions.
///
/// # Errors
/// The errors of `class_of`.
pub fn tags_of(
    set: &[u64],
    length: usize,
    class_of: impl FnMut(u32) -> Result<u8>,
    out: &mut Vec<u32>,
) -> Result<()> {
    tags_in_order(set, length, class_of, out)?;
    out.sort_unstable();
    out.dedup();
    Ok(())
}

/// The same tags in the order of the elements, by class and then by tag; without repetitions.
///
/// # Errors
/// The errors of `class_of`.
pub fn tags_in_order(
    set: &[u64],
    length: usize,
    mut class_of: impl FnMut(u32) -> Result<u8>,
    out: &mut Vec<u32>,
) -> Result<()> {
    out.clear();
    let mut common: Vec<(u8, u32)> = Vec::new();
    for &hash in set {
        if out.len() == length {
            break;
        }
        let tag = tag(hash);
        match class_of(tag)? {
            0 => out.push(tag),
            class => common.push((class, tag)),
        }
    }
    if out.len() < length {
        // The order of elements with equal tags does not matter.
        common.sort_unstable();
        out.extend(common.iter().take(length - out.len()).map(|&(_, tag)| tag));
    }
    out.dedup();
    Ok(())
}

/// A lower bound on the elements of a set that another set does not have, from the positions of the tags that are in
/// the prefixes of both. A position is the number of tags before this one in [their order](tags_in_order); `places`
/// ascend, each once.
///
/// The prefix of the other set contains the last of these tags. So it also contains each earlier tag of the other set,
/// and of these it has only those of `places`.
#[must_use]
pub fn fewest_missing(places: impl ExactSizeIterator<Item = u32>) -> usize {
    let tags = places.len();
    places.last().map_or(0, |last| (last as usize + 1).saturating_sub(tags))
}

/// Replaces `out` by the tags of the `length` elements of a set with the lowest `rarity`; ascending, without
/// repetitions.
///
/// For any choice of [`Nearness::indexed`](twindex_sketch::Nearness::indexed) elements, a near set contains one of
/// them, as the other elements are too few. So a query by all elements, instead of a prefix, needs no common order with
/// the stored sets.
pub fn rarest_tags(set: &[u64], length: usize, rarity: impl Fn(u32) -> u32, out: &mut Vec<u32>) {
    let mut all: Vec<(u32, u32)> = set.iter().map(|&hash| tag(hash)).map(|tag| (rarity(tag), tag)).collect();
    if length < all.len() {
        all.select_nth_unstable(length);
    }
    out.clear();
    out.extend(all.iter().take(length).map(|&(_, tag)| tag));
    out.sort_unstable();
    out.dedup();
}

#[cfg(test)]
mod tests {
    use super::*;
    use twindex_sketch::Nearness;

    #[test]
    fn near_sets_share_a_tag_of_their_prefixes_in_any_order_of_classes() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let (mut near_pairs, mut found_missing) = (0, 0);
        for _ in 0..3000 {
            let (salt, threshold) = (random(1 << 30), [0.3, 0.5, 0.8, 1.0][random(4) as usize]);
            let near = Nearness::Resemblance(threshold);
            // Few tags, so that they repeat within a set, and many classes.
            let element = |number: u64| (number % 40) << 32 | number;
            let class = |tag: u32| Ok(((u64::from(tag) ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62) as u8);
            let mut set = |from: &[u64]| {
                let mut set: Vec<u64> = from.iter().copied().filter(|_| random(8) > 0).collect();
                set.extend((0..random(3)).map(|_| element(random(100))));
                set.sort_unstable();
                set.dedup();
                set
            };
            let base: Vec<u64> = (0..20).map(|number| element(number * 5)).collect();
            let (x, y) = (set(&base), set(&base));
            let (mut of_x, mut of_y) = (Vec::new(), Vec::new());
            tags_in_order(&x, near.prefix(x.len()), class, &mut of_x).unwrap();
            tags_of(&y, near.indexed(y.len()), class, &mut of_y).unwrap();
            let places: Vec<u32> = (0..).zip(&of_x).filter(|(_, tag)| of_y.contains(tag)).map(|(i, _)| i).collect();
            let missing = x.iter().filter(|hash| !y.contains(hash)).count();
            let fewest = fewest_missing(places.iter().copied());
            assert!(fewest <= missing, "{x:?} {y:?} {threshold}");
            found_missing += fewest;
            if near.shared(&x, &y).is_none() {
                continue;
            }
            near_pairs += 1;
            assert!(of_x.iter().any(|tag| of_y.contains(tag)), "{x:?} {y:?} {threshold}");
            // Any such choice from one set shares an element with the other.
            rarest_tags(&y, near.indexed(y.len()), |tag| tag.wrapping_mul(0x9E37_79B1) ^ salt as u32, &mut of_y);
            assert!(x.iter().any(|&hash| of_y.contains(&super::tag(hash))), "{x:?} {y:?} {threshold}");
        }
        assert!(near_pairs > 300, "{near_pairs} pairs were near");
        assert!(found_missing > 300, "{found_missing} missing elements were found");
    }
}
