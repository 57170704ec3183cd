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
    let others = || (0..live.len()).filter(|&at| live[at].key != key);
    let unmarked: Vec<usize> = others().filter(|&at| !live[at].is_marked).collect();
    let nearest = |of: &[usize]| {
        let near = of.iter().filter_map(|&at| Some((nearness(at)?, live[at].key, at)));
        near.min_by(|a, b| (&a.0, a.1).cmp(&(&b.0, b.1))).map(|(_, _, at)| at)
    };
    let leader = nearest(&unmarked);
    let is_leader = live.iter().any(|own| own.key == key && !own.is_marked);
    if leader.is_some() || is_leader {
        return leader;
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
