//! Computes groups of documents by brute force, to compare them with the groups of an index.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use twindex::Key;

/// The fingerprint and the priority of each document, by key. A document with an empty text has no fingerprint.
pub type Documents = BTreeMap<u64, (Option<u64>, Option<u64>)>;

/// Returns a line for each key with its leader and the size of its group. Documents within Hamming distance 3 are near.
pub fn listing_by_definition(documents: &Documents) -> String {
    let mut order: Vec<_> = documents
        .iter()
        .map(|(&key, &(fingerprint, priority))| {
            (priority.unwrap_or(u64::MAX), Key::from(key).priority_hash(), key, fingerprint)
        })
        .collect();
    order.sort_unstable();
    let (mut leaders, mut found) = (Vec::new(), BTreeMap::new());
    let mut sizes: BTreeMap<u64, u32> = BTreeMap::new();
    for (_, _, key, fingerprint) in order {
        let is_near = |&&(_, other): &&(u64, Option<u64>)| {
            fingerprint.zip(other).is_some_and(|(a, b)| (a ^ b).count_ones() <= 3)
        };
        let leader = leaders.iter().find(is_near).map_or(key, |&(leader, _)| leader);
        if leader == key {
            leaders.push((key, fingerprint));
        }
        found.insert(key, leader);
        *sizes.entry(leader).or_default() += 1;
    }
    let mut text = String::new();
    for (key, leader) in found {
        writeln!(text, "{key} {leader} {}", sizes[&leader]).unwrap();
    }
    text
}
