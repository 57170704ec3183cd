//! The sections `common` and `prefixes`, which find documents by their sets of shingle hashes.
//!
//! The elements of a set are the distinct shingle hashes of a document. Order all elements in any total order. If the
//! resemblance of two sets is J or more, they share an element among the first `|x| - ceil(J |x|) + 1` elements of each
//! set `x` (prefix filtering: Chaudhuri, Ganti and Kaushik 2006; Bayardo, Ma and Srikant 2007). So only these elements,
//! the *prefix* of its set, are indexed for a document. Queries are cheapest if the elements in prefixes are rare.
//!
//! A segment orders elements by the class of their tag, then by the element. A tag is the upper half of a hash. The
//! section `common` lists the tags that occur in many documents of the segment, each with a class from 1 to 255, which
//! increases with the number of documents. All other tags have class 0. Results are correct for any list;
//! `segment::sets` describes how it is chosen.
//!
//! Both sections are encoded as a [band](super::bands) with keys of 32 bits. The entries of `common` contain classes,
//! below 256, instead of ordinals. `prefixes` has an entry for each document and each distinct tag in its prefix. For a
//! document with a [mark](super::fields), all bits of its tags are inverted. So a query for unmarked documents finds a
//! marked document only if an inverted tag happens to equal a tag of the query.

use crate::error::Result;

/// Number of classes of tags. Class 0 contains the tags that are not in the section `common`.
pub const CLASSES: u64 = 256;

/// Returns the tag of a hash: its upper 32 bits.
#[must_use]
#[inline]
pub fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// Returns the key of an entry: the tag, with all bits inverted if the document is marked.
#[must_use]
#[inline]
pub fn key(tag: u32, is_marked: bool) -> u32 {
    if is_marked { !tag } else { tag }
}

/// A choice of documents by their [marks](super::fields).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// Marked and unmarked documents.
    Any,
    /// Only documents without a mark.
    Unmarked,
    /// Only marked documents.
    Marked,
}

impl Marks {
    /// Returns whether documents with this mark are chosen.
    #[must_use]
    pub fn includes(self, is_marked: bool) -> bool {
        match self {
            Self::Any => true,
            Self::Unmarked => !is_marked,
            Self::Marked => is_marked,
        }
    }

    /// Returns the keys of an entry with this tag, for the chosen documents.
    pub fn keys(self, tag: u32) -> impl Iterator<Item = u32> {
        [false, true]
            .into_iter()
            .filter(move |&is_marked| self.includes(is_marked))
            .map(move |is| key(tag, is))
    }
}

/// Takes the first `length` elements of `set`, ordered by class and then by element, and replaces the content of `out`
/// with their distinct tags, ascending. `set` must ascend.
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

/// Same as [`tags_of`], but the tags in `out` are in the order of the elements: by class, then by tag.
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
        // `out` contains only tags, so the order among elements with equal tags does not matter.
        common.sort_unstable();
        out.extend(common.iter().take(length - out.len()).map(|&(_, tag)| tag));
    }
    out.dedup();
    Ok(())
}

/// Returns a lower bound on the number of elements of one set that another set lacks. `places` are the positions, from
/// 0, of the common tags (those in the prefixes of both sets) among the [ordered tags](tags_in_order) of the first
/// prefix. They must ascend strictly.
///
/// The prefix of the second set contains the last common tag, and therefore all earlier tags of the second set. So the
/// second set lacks all tags of the first set that precede the last common tag and are not common.
#[must_use]
pub fn fewest_missing(places: impl ExactSizeIterator<Item = u32>) -> usize {
    let tags = places.len();
    places.last().map_or(0, |last| (last as usize + 1).saturating_sub(tags))
}

/// Replaces the content of `out` with the distinct tags, ascending, of the `length` elements of `set` with the lowest
/// `rarity`.
///
/// A near set lacks fewer than [`Nearness::indexed`](twindex_sketch::Nearness::indexed) elements of a set. So any
/// selection of this number of elements shares an element with every near set. If queries look up all their elements
/// instead of a prefix, any elements of a stored set can be indexed, such as the rarest, and sets need no common order
/// of elements.
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
    fn near_sets_share_a_prefix_tag_for_any_classes() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let (mut near_pairs, mut found_missing) = (0, 0);
        for _ in 0..3000 {
            let (salt, threshold) = (random(1 << 30), [0.3, 0.5, 0.8, 1.0][random(4) as usize]);
            let near = Nearness::Resemblance(threshold);
            // Few different tags, so that tags repeat within a set, and several classes.
            let element = |number: u64| (number % 40) << 32 | number;
            let class =
                |tag: u32| Ok(((u64::from(tag) ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 62) as u8);
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
            let places: Vec<u32> =
                (0..).zip(&of_x).filter(|(_, tag)| of_y.contains(tag)).map(|(i, _)| i).collect();
            let missing = x.iter().filter(|hash| !y.contains(hash)).count();
            let fewest = fewest_missing(places.iter().copied());
            assert!(fewest <= missing, "{x:?} {y:?} {threshold}");
            found_missing += fewest;
            if near.shared(&x, &y).is_none() {
                continue;
            }
            near_pairs += 1;
            assert!(of_x.iter().any(|tag| of_y.contains(tag)), "{x:?} {y:?} {threshold}");
            // Any `near.indexed(y.len())` elements of one set include an element of the other set.
            rarest_tags(
                &y,
                near.indexed(y.len()),
                |tag| tag.wrapping_mul(0x9E37_79B1) ^ salt as u32,
                &mut of_y,
            );
            assert!(x.iter().any(|&hash| of_y.contains(&super::tag(hash))), "{x:?} {y:?} {threshold}");
        }
        assert!(near_pairs > 300, "{near_pairs} pairs were near");
        assert!(found_missing > 300, "{found_missing} missing elements were found");
    }
}
