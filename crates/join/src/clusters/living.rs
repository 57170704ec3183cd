//! Computes all groups of live documents ([`Snapshot::groups`]) with a join of the fingerprints of an index.
//!
//! The join finds all near pairs at once, in a small fraction of the time of one query for each leader (the document
//! that represents a group). Only documents that occur in pairs are sorted by priority. Documents with the same
//! fingerprint are near the same documents, so the join handles only one of them.

use std::sync::atomic::{AtomicU64, Ordering};

use twindex::Cancel;
use twindex::error::{Error, Result};
use twindex::store::groups::{NearPairs, from_pairs};
use twindex::store::{GroupRule, Groups, Resources, Snapshot};

use crate::hamming::JoinResources;
use crate::hamming::documents::{Documents, NearFingerprints};
use crate::hamming::pairs::near_fingerprints_within;
use crate::work::runs::{Sorter, finish_all};

/// Number of near pairs per document up to which a join costs less than a query for each leader. Dense families form
/// many pairs but have few leaders, so queries are then cheaper.
const PAIRS_A_DOCUMENT: u64 = 16;
/// Number of near pairs up to which the join is always used.
const PAIRS_LEAST: u64 = 1 << 20;
/// Number of pairs that a thread finds before it adds the number to the total of all threads.
const COUNTED: u64 = 1 << 10;
/// The name of the limit in [`Error::Limit`] if there are too many pairs.
const TOO_MANY: &str = "near pairs of a listing of groups";

/// Returns all groups of a snapshot, as [`Snapshot::groups`] does. Uses a join if the group rule depends only on the
/// distance of fingerprints. For other rules, and if the join finds too many pairs, uses a query for each leader.
///
/// ```
/// use twindex::{Fingerprint, Index, Params, Resources};
///
/// # let dir = tempfile::tempdir().unwrap();
/// let index = Index::create(dir.path().join("x"), Params::builder().simhash(3).build()?)?;
/// let mut writer = index.writer()?;
/// for (key, fingerprint) in [("a", 0), ("b", 1), ("c", 1 << 40 | 0xFFFF)] {
///     writer.put(key, Fingerprint(fingerprint))?;
/// }
/// writer.commit()?;
/// let groups = twindex_join::living_groups(&index.snapshot(), &Resources::in_dir(dir.path()))?;
/// let (leader, size) = groups.leader("a")?.unwrap();
/// assert_eq!((leader.as_str(), size), (Some("b"), 2)); // of both keys, the hash of `b` comes first
/// # Ok::<(), twindex::Error>(())
/// ```
///
/// # Errors
/// Same as [`Snapshot::groups`].
pub fn living_groups(snapshot: &Snapshot, resources: &Resources<'_>) -> Result<Groups> {
    let max = snapshot.documents().saturating_mul(PAIRS_A_DOCUMENT).saturating_add(PAIRS_LEAST);
    match joined(snapshot, resources, max) {
        Ok(Some(groups)) => Ok(groups),
        Ok(None) | Err(Error::Limit { what: TOO_MANY, .. }) => snapshot.groups(resources),
        Err(error) => Err(error),
    }
}

/// The pairs that one thread of the join found: near documents, and documents with the same fingerprint.
struct Found {
    near: Sorter<u64>,
    same: Sorter<u64>,
    count: u64,
}

/// Computes the groups with a join. Returns `None` if the group rule is not a distance, and [`Error::Limit`] if the join
/// finds more than about `max` pairs.
fn joined(snapshot: &Snapshot, resources: &Resources<'_>, max: u64) -> Result<Option<Groups>> {
    let (GroupRule::Distance, Some(within)) = (snapshot.group_rule()?, snapshot.params().near().within)
    else {
        return Ok(None);
    };
    let (mut firsts, mut documents) = (Vec::new(), 0);
    for (segment, _) in snapshot.segments() {
        firsts.push(documents);
        documents += segment.documents();
    }
    let number = |of: &Documents<'_>, ordinal: u32| firsts[of.number] + u64::from(ordinal);
    let threads = resources.threads.max(1);
    let join_resources = JoinResources { dir: resources.dir, memory: resources.memory / 2, threads };
    let of_a_thread = resources.memory / 8 / threads;
    let begin = || Found {
        near: Sorter::new(resources.dir, of_a_thread),
        same: Sorter::new(resources.dir, of_a_thread),
        count: 0,
    };
    let all = AtomicU64::new(0);
    let take = |found: &mut Found, meeting: &NearFingerprints<'_>| {
        let (Some((&a, others)), Some(&b)) =
            (meeting.left.ordinals.split_first(), meeting.right.ordinals.first())
        else {
            return Ok(());
        };
        let a = number(&meeting.left, a);
        if meeting.inside {
            return others.iter().try_for_each(|&b| found.same.push(a << 32 | number(&meeting.left, b)));
        }
        found.count += 1;
        if found.count.is_multiple_of(COUNTED) {
            resources.cancel.map_or(Ok(()), Cancel::check)?;
            let count = all.fetch_add(COUNTED, Ordering::Relaxed) + COUNTED;
            if count > max {
                return Err(Error::Limit { what: TOO_MANY, limit: max, found: count });
            }
        }
        found.near.push(a << 32 | number(&meeting.right, b))
    };
    let found = near_fingerprints_within(snapshot, None, within.into(), join_resources, begin, take)?;
    let (near, same): (Vec<_>, Vec<_>) = found.into_iter().map(|found| (found.near, found.same)).unzip();
    let pairs = NearPairs { near: finish_all(near)?, same: finish_all(same)? };
    from_pairs(snapshot, resources, &pairs).map(Some)
}
