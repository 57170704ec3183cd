//! Sets of places in which URLs of near pages differ.

use std::collections::HashMap;

use crate::page::{SitePages, hash_of};

/// Places in which two URLs differ, at most, to be a candidate.
const PLACES_MAX: usize = 8;
/// Candidates of one site, those of most groups first.
const CANDIDATES_MAX: usize = 256;
/// The least length by which values of one length may be recognized.
const LENGTH_MIN: usize = 6;

/// A place whose part may be left out; with a length, only if its value has this length.
pub(crate) type Ignored = (u32, Option<usize>);

/// A set of such places, in their order.
pub(crate) type IgnoredPlaces = Vec<Ignored>;

/// The candidates of a site, those of most groups first.
pub(crate) fn candidates(pages: &SitePages<'_>) -> Vec<IgnoredPlaces> {
    let mut by_group: Vec<u32> = (0..pages.len() as u32).collect();
    // URLs are in their order; a stable sort keeps it inside groups.
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

/// Places that alone distinguish URLs of the group: without the part, the URLs are equal.
fn differing_in_one(pages: &SitePages<'_>, group: &[u32], seen: &mut HashMap<IgnoredPlaces, u64>) {
    // For each place and rest: the number of URLs, and the length of their values if all have the same.
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

/// The places in which URLs of the group differ from the one before and from the first.
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

/// Counts a candidate, with the lengths and without.
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

/// The places in which two URLs differ; none if they differ in none, in one, in too many, or in the form of their paths.
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
