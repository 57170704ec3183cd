//! Finds candidates for rules: sets of positions at which the URLs of near-duplicate pages differ.

use std::collections::HashMap;

use crate::urls::page::{SitePages, hash_of};

/// Maximum number of positions in a candidate.
const PLACES_MAX: usize = 8;
/// Maximum number of candidates of a site. If there are more, the candidates that occur in the most groups are kept.
const CANDIDATES_MAX: usize = 256;
/// A candidate requires ignored values of a fixed length only if this length is at least this number of bytes.
const LENGTH_MIN: usize = 6;

/// A position whose part is ignored. With a length, only values of this length in bytes are ignored.
pub(crate) type Ignored = (u32, Option<usize>);

/// A set of positions to ignore, in ascending order.
pub(crate) type IgnoredPlaces = Vec<Ignored>;

/// Returns at most [`CANDIDATES_MAX`] candidates of a site, in descending order of the number of groups of near-duplicate
/// pages in which they occur.
pub(crate) fn candidates(pages: &SitePages<'_>) -> Vec<IgnoredPlaces> {
    let mut by_group: Vec<u32> = (0..pages.len() as u32).collect();
    // Pages are sorted by URL, and a stable sort keeps this order within each group.
    by_group.sort_by_key(|&page| pages.groups[page as usize]);
    let mut seen: HashMap<IgnoredPlaces, u64> = HashMap::new();
    for group in by_group.chunk_by(|&a, &b| pages.groups[a as usize] == pages.groups[b as usize]) {
        if group.len() > 1 {
            differing_in_one(pages, group, &mut seen);
            differing_in_several(pages, group, &mut seen);
        }
    }
    let mut found: Vec<(u64, IgnoredPlaces)> =
        seen.into_iter().map(|(places, groups)| (groups, places)).collect();
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.len().cmp(&b.1.len())).then(a.1.cmp(&b.1)));
    found.truncate(CANDIDATES_MAX);
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Counts each position at which two URLs of a group of near-duplicate pages differ, if the rest of these URLs is
/// equal.
fn differing_in_one(pages: &SitePages<'_>, group: &[u32], seen: &mut HashMap<IgnoredPlaces, u64>) {
    // For each position, and each hash of a URL without the part at it: the number of URLs, and the length of their
    // values at the position if all lengths are equal.
    let mut rests: HashMap<(u32, u128), (u32, Option<usize>)> = HashMap::new();
    let whole: std::collections::HashSet<u128> =
        group.iter().map(|&page| pages.hashes[page as usize]).collect();
    for &page in group {
        for &part in pages.parts(page) {
            let value = pages.value(page, part);
            let rest = pages.hashes[page as usize].wrapping_sub(hash_of(part.place, value));
            let is_of_path = pages.places[part.place as usize].is_of_path();
            let alone = u32::from(!is_of_path && whole.contains(&rest));
            let (urls, length) = rests.entry((part.place, rest)).or_insert((alone, Some(value.len())));
            *urls += 1;
            *length = length.filter(|length| *length == value.len());
        }
    }
    let mut of_group: HashMap<u32, Option<usize>> = HashMap::new();
    for ((place, _), (urls, length)) in rests {
        if urls > 1 {
            let all = of_group.entry(place).or_insert(length);
            *all = all.filter(|_| *all == length);
        }
    }
    for (place, length) in of_group {
        note(vec![(place, length)], seen);
    }
}

/// Counts sets of positions. Each set has the positions at which a URL of the group differs from the previous URL, or
/// from the first URL of the group.
fn differing_in_several(pages: &SitePages<'_>, group: &[u32], seen: &mut HashMap<IgnoredPlaces, u64>) {
    let mut of_group: Vec<IgnoredPlaces> = Vec::new();
    for (before, &page) in group.iter().zip(&group[1..]) {
        for other in [*before, group[0]] {
            of_group.extend(difference(pages, other, page));
        }
    }
    of_group.sort_unstable();
    of_group.dedup();
    for candidate in of_group {
        note(candidate, seen);
    }
}

/// Counts a candidate. If it has lengths, also counts the same candidate without lengths.
fn note(mut candidate: IgnoredPlaces, seen: &mut HashMap<IgnoredPlaces, u64>) {
    for (_, length) in &mut candidate {
        *length = length.filter(|length| *length >= LENGTH_MIN);
    }
    if candidate.iter().any(|(_, length)| length.is_some()) {
        let any = candidate.iter().map(|&(place, _)| (place, None)).collect();
        *seen.entry(any).or_default() += 1;
    }
    *seen.entry(candidate).or_default() += 1;
}

/// Returns the positions at which two URLs differ. Returns `None` if they differ at fewer than two or more than
/// [`PLACES_MAX`] positions, or if the other parts of their paths do not correspond.
fn difference(pages: &SitePages<'_>, a: u32, b: u32) -> Option<IgnoredPlaces> {
    let (mut of_a, mut of_b) = (pages.parts(a).iter().peekable(), pages.parts(b).iter().peekable());
    if pages.depths[a as usize] != pages.depths[b as usize] {
        return None;
    }
    let mut found = IgnoredPlaces::new();
    loop {
        let place = match (of_a.peek(), of_b.peek()) {
            (None, None) => break,
            (Some(one), Some(other)) => one.place.min(other.place),
            (Some(one), None) | (None, Some(one)) => one.place,
        };
        let one = of_a.next_if(|part| part.place == place).map(|&part| pages.value(a, part));
        let other = of_b.next_if(|part| part.place == place).map(|&part| pages.value(b, part));
        if one == other {
            continue;
        }
        if pages.places[place as usize].is_of_path() && (one.is_none() || other.is_none()) {
            return None;
        }
        let length = match (one, other) {
            (Some(one), Some(other)) => Some(one.len()).filter(|_| one.len() == other.len()),
            (one, other) => one.or(other).map(str::len),
        };
        found.push((place, length));
        if found.len() > PLACES_MAX {
            return None;
        }
    }
    (found.len() > 1).then_some(found)
}
