//! Documents whose contents are equal: a group of them is compared with others once, and stands for all of its members
//! in pairs and clusters.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::seeded::Seeded;

/// Groups of equal contents, by their hashes.
///
/// ```
/// use twindex_join::Groups;
///
/// let texts = ["a rose", "is", "a rose"];
/// let (mut groups, mut firsts) = (Groups::default(), Vec::new());
/// let mut group_of = Vec::new();
/// for text in texts {
///     let hash = text.len() as u128; // of a real one equal values are almost certainly equal texts
///     let group = groups.group(hash, |group: u32| Ok::<_, ()>(firsts[group as usize] == text)).unwrap();
///     if group as usize == firsts.len() {
///         firsts.push(text);
///     }
///     group_of.push(group);
/// }
/// assert_eq!(group_of, [0, 1, 0]);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Groups {
    by_hash: HashMap<u128, u32, Seeded>,
    /// Of each group the next one with the same hash, if that ever happens.
    next: Vec<Option<u32>>,
}

impl Groups {
    /// The group of a document whose content has this hash: one of those before with the same hash that `is_same`
    /// confirms, or a new one, which has the next number, from 0.
    ///
    /// # Errors
    /// What `is_same` returns; then there is no new group.
    pub fn group<E>(
        &mut self,
        hash: u128,
        mut is_same: impl FnMut(u32) -> Result<bool, E>,
    ) -> Result<u32, E> {
        let new = self.next.len() as u32;
        match self.by_hash.entry(hash) {
            Entry::Vacant(vacant) => {
                vacant.insert(new);
            }
            Entry::Occupied(occupied) => {
                // Equal hashes are almost certainly equal contents; make it certain.
                let mut group = *occupied.get();
                loop {
                    if is_same(group)? {
                        return Ok(group);
                    }
                    match self.next[group as usize] {
                        Some(other) => group = other,
                        None => break,
                    }
                }
                self.next[group as usize] = Some(new);
            }
        }
        self.next.push(None);
        Ok(new)
    }
}

/// The members of a group that stand in pairs with other groups: all, or of more than `max_members` the first alone.
#[must_use]
pub fn representatives(members: &[u32], max_members: usize) -> &[u32] {
    if members.len() > max_members { &members[..1] } else { members }
}

/// Hands the pairs of a group to `each`: all of them, or of more than `max_members` members a star around the first.
///
/// # Errors
/// What `each` returns.
pub fn for_each_pair_inside<E>(
    members: &[u32],
    max_members: usize,
    mut each: impl FnMut(u32, u32) -> Result<(), E>,
) -> Result<(), E> {
    for (at, &a) in representatives(members, max_members).iter().enumerate() {
        members[at + 1..].iter().try_for_each(|&b| each(a, b))?;
    }
    Ok(())
}

/// Hands the pairs of members of two groups to `each`, as far as they [stand](representatives) in pairs.
///
/// # Errors
/// What `each` returns.
pub fn for_each_pair_between<E>(
    members: &[u32],
    others: &[u32],
    max_members: usize,
    mut each: impl FnMut(u32, u32) -> Result<(), E>,
) -> Result<(), E> {
    let others = representatives(others, max_members);
    for &a in representatives(members, max_members) {
        others.iter().try_for_each(|&b| each(a, b))?;
    }
    Ok(())
}

/// Hands all pairs of a member and another one to `each`; with `inside`, both are the same members, and each two of them
/// come once.
///
/// # Errors
/// What `each` returns.
#[inline]
pub(super) fn for_each_pair<E>(
    members: &[u32],
    others: &[u32],
    inside: bool,
    each: impl FnMut(u32, u32) -> Result<(), E>,
) -> Result<(), E> {
    if inside {
        for_each_pair_inside(members, usize::MAX, each)
    } else {
        for_each_pair_between(members, others, usize::MAX, each)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collected(
        run: impl FnOnce(&mut dyn FnMut(u32, u32) -> Result<(), ()>) -> Result<(), ()>,
    ) -> Vec<(u32, u32)> {
        let mut pairs = Vec::new();
        run(&mut |a, b| {
            pairs.push((a, b));
            Ok(())
        })
        .unwrap();
        pairs
    }

    #[test]
    fn contents_of_one_hash_are_told_apart_and_what_fails_makes_no_group() {
        let contents = ["a", "b", "c", "b", "a", "c"];
        let (mut groups, mut firsts, mut found) = (Groups::default(), Vec::new(), Vec::new());
        for content in contents {
            let group = groups.group(7, |group| Ok::<_, ()>(firsts[group as usize] == content)).unwrap();
            if group as usize == firsts.len() {
                firsts.push(content);
            }
            found.push(group);
            assert_eq!(groups.group(7, |_| Err("unreadable")), Err("unreadable"));
        }
        assert_eq!(found, [0, 1, 2, 1, 0, 2]);
        assert_eq!(groups.group(8, |_| Err("not asked")), Ok(3));
    }

    #[test]
    fn a_large_group_is_a_star_and_stands_in_pairs_with_its_first_member() {
        let group = [4, 5, 9];
        assert_eq!(collected(|each| for_each_pair_inside(&group, 3, each)), [(4, 5), (4, 9), (5, 9)]);
        assert_eq!(collected(|each| for_each_pair_inside(&group, 2, each)), [(4, 5), (4, 9)]);
        assert_eq!(collected(|each| for_each_pair_inside(&[4], 2, each)), []);
        assert_eq!(collected(|each| for_each_pair_between(&group, &[1, 2], 2, each)), [(4, 1), (4, 2)]);
        assert_eq!(collected(|each| for_each_pair_between(&[1, 2], &group, 2, each)), [(1, 4), (2, 4)]);
    }
}
