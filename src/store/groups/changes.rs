//! Finds the documents whose leader changed between two snapshots.
//!
//! The leader of a document depends only on the near documents that precede it by priority: whether they exist, and
//! whether they are leaders. So if a document's record differs, the leaders of later documents near it may change.
//! Changes spread further only from documents that became leaders or ceased to be leaders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::answer::Decision;
use super::decide::QueryLimit;
use super::near::Neighbourhood;
use crate::error::{Error, Result};
use crate::key::KeyBuf;
use crate::store::known_leaders::DocRef;
use crate::store::part::IndexPart;
use crate::store::snapshot::Snapshot;

/// A document whose leader changed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct LeaderChange {
    /// The key of the document.
    pub key: KeyBuf,
    /// The key of the leader in the older snapshot `since`; `None` if `since` does not contain the document.
    pub before: Option<KeyBuf>,
    /// The key of the leader in the snapshot that is compared with `since`; `None` if it does not contain the document.
    pub after: Option<KeyBuf>,
}

/// A snapshot, and the near relation that determines its leaders.
struct SnapshotLeaders {
    around: Neighbourhood,
    snapshot: Snapshot,
}

impl SnapshotLeaders {
    fn new(snapshot: &Snapshot) -> Result<Self> {
        Ok(Self { around: Neighbourhood::of_parts(snapshot)?, snapshot: snapshot.clone() })
    }

    /// Adds the keys of live documents to `keys`. Reads only the parts for whose numbers `is_wanted` returns true.
    fn keys_of(&self, is_wanted: impl Fn(u32) -> bool, keys: &mut BTreeSet<KeyBuf>) -> Result<()> {
        self.around.for_each_part(|number, part| {
            if !is_wanted(number) {
                return Ok(());
            }
            let documents = match part {
                IndexPart::Segment { segment, .. } => segment.documents() as u32,
                IndexPart::Memory(memory) => memory.limit,
            };
            for ordinal in (0..documents).filter(|&ordinal| part.is_live(ordinal)) {
                keys.insert(part.key(ordinal)?);
            }
            Ok(())
        })
    }

    /// Returns the priority number of a document and the data that determine which documents are near it; `None` if the
    /// document does not exist.
    fn record(&self, key: &KeyBuf) -> Result<Option<(u64, Vec<u8>)>> {
        let Some(document) = self.around.find(key.as_key())? else { return Ok(None) };
        let mut bytes = Vec::new();
        self.around.content(document, &mut bytes)?;
        Ok(Some((self.around.rank(document)?.number, bytes)))
    }

    fn leader(&self, document: DocRef) -> Result<DocRef> {
        match self.around.leader(document, &mut QueryLimit::new(u64::MAX))? {
            Decision::Decided(leader) => Ok(leader),
            Decision::Undecided => Err(Error::Limit {
                what: "queries for the leader of a document",
                limit: u64::MAX,
                found: u64::MAX,
            }),
        }
    }
}

/// Returns the keys of documents that may differ between the snapshots. These are all documents of parts that only one
/// snapshot has, and documents of common parts that only one snapshot has deleted.
fn candidates(before: &SnapshotLeaders, after: &SnapshotLeaders) -> Result<BTreeSet<KeyBuf>> {
    let mut keys = BTreeSet::new();
    let (old, new) = (&before.snapshot.state().view, &after.snapshot.state().view);
    let place_in = |segments: &[Arc<crate::segment::Segment>], digest: u128, salt: u128| {
        segments.iter().position(|other| (other.digest(), other.salt()) == (digest, salt))
    };
    let mut shared = (BTreeSet::new(), BTreeSet::new());
    for (place, segment) in old.segments.iter().enumerate() {
        let Some(other) = place_in(&new.segments, segment.digest(), segment.salt()) else { continue };
        shared.0.insert(place as u32);
        shared.1.insert(other as u32);
        for ordinal in &(&*old.deleted[place] ^ &*new.deleted[other]) {
            keys.insert(segment.key(ordinal)?);
        }
        segment.check_map()?;
    }
    before.keys_of(|part| !shared.0.contains(&part), &mut keys)?;
    after.keys_of(|part| !shared.1.contains(&part), &mut keys)?;
    Ok(keys)
}

pub(super) fn between(since: &Snapshot, now: &Snapshot) -> Result<Vec<LeaderChange>> {
    if (since.uuid(), since.params()) != (now.uuid(), now.params()) {
        return Err(Error::Invalid("changes of leaders are between two snapshots of one index".into()));
    }
    let sides = [SnapshotLeaders::new(since)?, SnapshotLeaders::new(now)?];
    let mut waiting = BTreeSet::new();
    let mut differing = BTreeSet::new();
    for key in candidates(&sides[0], &sides[1])? {
        if sides[0].record(&key)? != sides[1].record(&key)? {
            differing.insert(key.clone());
            waiting.insert(key);
        }
    }
    let mut seen: BTreeMap<KeyBuf, [Option<KeyBuf>; 2]> = BTreeMap::new();
    while let Some(key) = waiting.pop_first() {
        let mut leaders = [None, None];
        let mut documents = [None, None];
        for (place, side) in sides.iter().enumerate() {
            let Some(document) = side.around.find(key.as_key())? else { continue };
            documents[place] = Some(document);
            leaders[place] = Some(side.around.key(side.leader(document)?)?);
        }
        let leads = leaders.each_ref().map(|leader| leader.as_ref() == Some(&key));
        if leads[0] != leads[1] || differing.contains(&key) {
            for (side, document) in sides.iter().zip(documents) {
                let Some(document) = document else { continue };
                for other in side.around.after(document)? {
                    let other = side.around.key(other)?;
                    if other != key && !seen.contains_key(&other) {
                        waiting.insert(other);
                    }
                }
            }
        }
        seen.insert(key, leaders);
    }
    let changed = seen.into_iter().filter(|(_, [before, after])| before != after);
    Ok(changed.map(|(key, [before, after])| LeaderChange { key, before, after }).collect())
}
