//! Groups documents with equal contents. The result of comparing one member of a group with other documents holds for
//! all members.

use crate::work::numbers::HashNumbers;
use crate::work::seeded::Seeded;
use twindex::error::{Error, Result};
use twindex::sys::MemoryBudget;

/// Groups of documents with equal contents, found by the hashes of the contents.
///
/// ```
/// use twindex_join::EqualGroups;
/// use twindex::sys::MemoryBudget;
///
/// let texts = ["a rose", "is", "a rose"];
/// let (mut groups, mut firsts) = (EqualGroups::new(&MemoryBudget::unlimited())?, Vec::new());
/// let mut group_of = Vec::new();
/// for text in texts {
///     let hash = text.len() as u128; // a real hash rarely collides
///     let is_same = |group: u32| Ok::<_, twindex::Error>(firsts[group as usize] == text);
///     let group = groups.group(hash, is_same)?;
///     if group as usize == firsts.len() {
///         firsts.push(text);
///     }
///     group_of.push(group);
/// }
/// assert_eq!(group_of, [0, 1, 0]);
/// # Ok::<(), twindex::Error>(())
/// ```
#[derive(Debug)]
pub struct EqualGroups {
    numbers: HashNumbers,
    seeded: Seeded,
}

impl EqualGroups {
    /// Creates an empty collection. Each group takes 11 to 22 bytes of the memory budget, or of a scratch file.
    ///
    /// # Errors
    /// [`Error::Io`] from a scratch file, if the budget is exhausted.
    pub fn new(budget: &MemoryBudget) -> Result<Self> {
        Ok(Self { numbers: HashNumbers::new(budget)?, seeded: Seeded::default() })
    }

    /// Returns a group that may have this hash: one in 10^12 others is taken for it. If `None`, no group has this hash.
    #[must_use]
    pub fn probable(&self, hash: u128) -> Option<u32> {
        self.numbers.find(self.seeded.of(hash), |_| Ok::<_, ()>(true)).ok().flatten()
    }

    /// Begins to load the part of the table that [`group`](Self::group) reads for this hash.
    pub fn prefetch(&self, hash: u128) {
        self.numbers.prefetch(self.seeded.of(hash));
    }

    /// Returns the group of a document whose content has the hash `hash`: an existing group with this hash for which
    /// `is_same` returns true, or a new group. Groups are numbered from 0.
    ///
    /// # Errors
    /// The error of `is_same`, in which case no group is created; [`Error::Io`] from a scratch file.
    pub fn group<E: From<Error>>(
        &mut self,
        hash: u128,
        is_same: impl FnMut(u32) -> std::result::Result<bool, E>,
    ) -> std::result::Result<u32, E> {
        let hash = self.seeded.of(hash);
        // Contents with equal hashes are almost always equal; `is_same` verifies it.
        if let Some(group) = self.numbers.find(hash, is_same)? {
            return Ok(group);
        }
        let new = self.numbers.len() as u32;
        self.numbers.insert(hash, new)?;
        Ok(new)
    }
}

/// Returns the members of a group that are paired with members of other groups: all members, or only the first one if
/// the group has more than `max_members` members.
#[must_use]
pub fn representatives(members: &[u32], max_members: usize) -> &[u32] {
    if members.len() > max_members { &members[..1] } else { members }
}

/// Passes the pairs of members of a group to `each`. If there are more than `max_members` members, passes only the pairs
/// with the first member.
///
/// # Errors
/// The error of `each`.
pub fn for_each_pair_inside<E>(
    members: &[u32],
    max_members: usize,
    mut each: impl FnMut(u32, u32) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    for (at, &a) in representatives(members, max_members).iter().enumerate() {
        members[at + 1..].iter().try_for_each(|&b| each(a, b))?;
    }
    Ok(())
}

/// Passes the pairs of a member of one group and a member of another group to `each`, using only the [representatives] of
/// each group.
///
/// # Errors
/// The error of `each`.
pub fn for_each_pair_between<E>(
    members: &[u32],
    others: &[u32],
    max_members: usize,
    mut each: impl FnMut(u32, u32) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
    let others = representatives(others, max_members);
    for &a in representatives(members, max_members) {
        others.iter().try_for_each(|&b| each(a, b))?;
    }
    Ok(())
}

/// Passes each pair of a member of `members` and a member of `others` to `each`. If `inside` is true, both slices must
/// have the same members, and each pair of two different members is passed once.
///
/// # Errors
/// The error of `each`.
#[inline]
pub(crate) fn for_each_pair<E>(
    members: &[u32],
    others: &[u32],
    inside: bool,
    each: impl FnMut(u32, u32) -> std::result::Result<(), E>,
) -> std::result::Result<(), E> {
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
        run: impl FnOnce(&mut dyn FnMut(u32, u32) -> std::result::Result<(), ()>) -> std::result::Result<(), ()>,
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
    fn equal_hashes_are_verified_and_errors_create_no_group() {
        let contents = ["a", "b", "c", "b", "a", "c"];
        let (mut groups, mut firsts) = (EqualGroups::new(&MemoryBudget::unlimited()).unwrap(), Vec::new());
        let mut found = Vec::new();
        let unreadable = |_| Err(Error::Invalid("unreadable".into()));
        for content in contents {
            let group = groups.group(7, |group| Ok::<_, Error>(firsts[group as usize] == content)).unwrap();
            if group as usize == firsts.len() {
                firsts.push(content);
            }
            found.push(group);
            assert!(groups.probable(7) == Some(0) && groups.group(7, unreadable).is_err());
        }
        assert_eq!(found, [0, 1, 2, 1, 0, 2]);
        assert!(groups.probable(8).is_none());
        assert_eq!(groups.group(8, unreadable).unwrap(), 3, "not asked");
    }

    #[test]
    fn large_group_forms_pairs_only_with_its_first_member() {
        let group = [4, 5, 9];
        assert_eq!(collected(|each| for_each_pair_inside(&group, 3, each)), [(4, 5), (4, 9), (5, 9)]);
        assert_eq!(collected(|each| for_each_pair_inside(&group, 2, each)), [(4, 5), (4, 9)]);
        assert_eq!(collected(|each| for_each_pair_inside(&[4], 2, each)), []);
        assert_eq!(collected(|each| for_each_pair_between(&group, &[1, 2], 2, each)), [(4, 1), (4, 2)]);
        assert_eq!(collected(|each| for_each_pair_between(&[1, 2], &group, 2, each)), [(1, 4), (2, 4)]);
    }
}
