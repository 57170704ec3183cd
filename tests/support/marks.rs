//! Decides by brute force which stored document a new one duplicates.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use twindex::{Admitted, Hit, Key};

/// A live document of a model.
pub struct Live<'a> {
    pub key: Key<'a>,
    pub is_marked: bool,
    pub priority: Option<u64>,
}

/// Returns the position of the document in `live` that the new document with this key duplicates. If that document is
/// marked, it loses its mark. `nearness` returns how near a document is to the new one, the nearest first, or `None`;
/// `leads(a, b)` returns whether document `a` is near document `b`.
pub fn duplicated<N: Ord>(
    live: &[Live<'_>],
    key: Key<'_>,
    nearness: impl Fn(usize) -> Option<N>,
    leads: impl Fn(usize, usize) -> bool,
) -> Option<usize> {
    let is_leader = live.iter().any(|own| own.key == key && !own.is_marked);
    let found = leaders_near(live, Some(key), nearness, leads);
    found.into_iter().next().filter(|&at| !(is_leader && live[at].is_marked))
}

/// Returns the positions of the documents near a new document whose marks do not count: the unmarked ones, or if there are
/// none, the leaders among the orphans; the nearest first. Excludes the document with the key `own`.
pub fn leaders_near<N: Ord>(
    live: &[Live<'_>],
    own: Option<Key<'_>>,
    nearness: impl Fn(usize) -> Option<N>,
    leads: impl Fn(usize, usize) -> bool,
) -> Vec<usize> {
    let others = || (0..live.len()).filter(|&at| Some(live[at].key) != own);
    let unmarked: Vec<usize> = others().filter(|&at| !live[at].is_marked).collect();
    let nearest = |of: &[usize]| -> Vec<usize> {
        let mut near: Vec<_> = of.iter().filter_map(|&at| Some((nearness(at)?, live[at].key, at))).collect();
        near.sort_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1)));
        near.into_iter().map(|(_, _, at)| at).collect()
    };
    let near = nearest(&unmarked);
    if !near.is_empty() {
        return near;
    }
    let is_orphan = |&at: &usize| live[at].is_marked && !unmarked.iter().any(|&other| leads(other, at));
    let mut orphans: Vec<usize> = others().filter(is_orphan).collect();
    orphans.sort_by_key(|&at| {
        (live[at].priority.unwrap_or(u64::MAX), live[at].key.priority_hash(), live[at].key)
    });
    let mut leaders: Vec<usize> = Vec::new();
    for orphan in orphans {
        if !leaders.iter().any(|&leader| leads(leader, orphan)) {
            leaders.push(orphan);
        }
    }
    nearest(&leaders)
}

/// Returns the name of a decision, and the document that decided it.
pub fn outcome(admitted: &Admitted) -> (&'static str, Option<&Hit>) {
    match admitted {
        Admitted::New => ("new", None),
        Admitted::Updated => ("updated", None),
        Admitted::Expired => ("expired", None),
        Admitted::Duplicate(hit) => ("duplicate", Some(hit)),
        Admitted::Known { near } => ("known", Some(near)),
        other => panic!("{other:?}"),
    }
}
