//! Living groups: the leader of each document, by a rule that depends only on the live documents.
//!
//! Documents are ordered by priority: the caller's number ([`ParamsBuilder::priorities`](crate::params::ParamsBuilder::priorities)),
//! then the hash of the key ([`Key::priority_hash`]), then the key. A document is a *leader* if no leader before it is near
//! it; every other document belongs to the first leader that is near it. Leaders are the lexicographically first maximal
//! independent set of the graph in which near documents are neighbours. It is the rule of `dedup --keep key-hash`.
//!
//! - `near`: the documents near a stored one, and their order;
//! - `candidates`: documents before one that may be near it, in the order of priority;
//! - `decide`: the leader of one document, from its neighbours and theirs;
//! - `listing`: the leader of each document, and the step that decides it;
//! - `order`: documents in the order of priority, and their numbers;
//! - `sweep`: all leaders, in the order of priority;
//! - `rounds`: the near documents of several documents at once, for a sweep;
//! - `pairs`: all leaders, from the near pairs that a join found;
//! - `changes`: documents whose leader changed between two snapshots.
//!
//! Sources: Nguyen and Onak, *Constant-time approximation algorithms via local improvements*, FOCS 2008; Yoshida, Yamamoto
//! and Ito, *An improved constant-time approximation algorithm for maximum matchings*, STOC 2009.

mod answer;
mod candidates;
mod changes;
mod decide;
mod listing;
mod near;
mod order;
mod pairs;
mod rounds;
mod sweep;

pub use answer::{Decision, Group, Leader, Membership, Resources};
pub use changes::LeaderChange;
pub use listing::Groups;
pub use near::GroupRule;
pub use pairs::{NearPairs, from_pairs};

use self::decide::QueryLimit;
use self::near::Neighbourhood;
use super::known_leaders::DocRef;
use super::snapshot::Snapshot;
use crate::error::Result;
use crate::key::{Key, KeyBuf};

/// A limit on queries that most documents stay far below: in cliques, and in chains of random priorities, about two
/// queries decide; in dense families tens to hundreds.
pub const GROUP_QUESTIONS: u64 = 10_000;

impl Snapshot {
    /// The rule by which documents are near in this index.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) for an index that cannot decide it for two stored documents: one of
    /// resemblance with neither sets nor signatures, and one whose tables may miss near fingerprints (free designs).
    pub fn group_rule(&self) -> Result<GroupRule> {
        GroupRule::of(self.params())
    }

    /// The leader of a live document, by at most `max_queries` queries for near documents; `None` if there is no such
    /// document.
    ///
    /// Answers depend only on the live documents: not on the order in which they came, nor on segments, logs and
    /// merges. [`GROUP_QUESTIONS`] is a limit for most uses. Queries are counted as if nothing were remembered, though
    /// the snapshot remembers answers; so whether a document is [`Undecided`](Decision::Undecided) depends only on the
    /// snapshot, the key and the limit. A chain of documents that wait for each other takes memory, at most 32 KiB for
    /// each, and not the stack of the thread. Documents with the same fingerprint, or the same set, need one query
    /// together.
    ///
    /// If resemblance is [estimated](GroupRule::Estimated), the first query reads the bands of all segments, which keep
    /// 4 bytes for each band of a document from then on.
    ///
    /// ```
    /// use twindex::{Decision, Document, GROUP_QUESTIONS, Index, Params};
    ///
    /// # let dir = tempfile::tempdir().unwrap();
    /// let params = Params::builder().words(2).simhash(3).priorities().build()?;
    /// let index = Index::create(dir.path().join("x"), params)?;
    /// let sketch = index.sketcher()?.sketch("a rose is a rose is a rose")?;
    /// let mut writer = index.writer()?;
    /// writer.put("copy", Document::from(&sketch).with_priority(7))?;
    /// writer.put("original", Document::from(&sketch).with_priority(1))?;
    /// writer.commit()?;
    /// let leader = index.snapshot().leader("copy", GROUP_QUESTIONS)?.unwrap().decided().unwrap();
    /// assert_eq!(leader.key.as_str(), Some("original"));
    /// writer.delete("original")?;
    /// writer.commit()?;
    /// let leader = index.snapshot().leader("copy", GROUP_QUESTIONS)?.unwrap().decided().unwrap();
    /// assert_eq!(leader.key.as_str(), Some("copy"));
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`group_rule`](Self::group_rule); [`Error::Invalid`](crate::Error::Invalid) for a key of the other kind,
    /// [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn leader<'k>(&self, key: impl Into<Key<'k>>, max_queries: u64) -> Result<Option<Decision<Leader>>> {
        let around = Neighbourhood::of_parts(self)?;
        let Some(document) = around.find(key.into())? else { return Ok(None) };
        let mut budget = QueryLimit::new(max_queries);
        let decided = around.leader(document, &mut budget)?;
        let leader = |leader: DocRef| Ok(Leader { key: around.key(leader)?, questions: budget.spent() });
        decided.map(leader).map(Some)
    }

    /// The group of a live document: as [`leader`](Self::leader), with all documents that have the same leader. Decides
    /// every document that is near the leader.
    ///
    /// # Errors
    /// As [`leader`](Self::leader).
    pub fn group<'k>(&self, key: impl Into<Key<'k>>, max_queries: u64) -> Result<Option<Decision<Group>>> {
        let around = Neighbourhood::of_parts(self)?;
        let Some(document) = around.find(key.into())? else { return Ok(None) };
        let mut budget = QueryLimit::new(max_queries);
        let found = around.group(document, &mut budget)?.map(|(leader, members)| {
            let mut members: Vec<KeyBuf> =
                members.into_iter().map(|member| around.key(member)).collect::<Result<_>>()?;
            members.sort_unstable();
            Ok(Group { leader: around.key(leader)?, members, questions: budget.spent() })
        })?;
        Ok(Some(found))
    }

    /// The number of documents in a live document's group, itself among them: the length of
    /// [`Group::members`], without reading their keys.
    ///
    /// # Errors
    /// As [`leader`](Self::leader).
    pub fn group_size<'k>(&self, key: impl Into<Key<'k>>, max_queries: u64) -> Result<Option<Decision<u64>>> {
        let Some(found) = self.membership(key, max_queries)? else { return Ok(None) };
        found.map(|membership| Ok(membership.size)).map(Some)
    }

    /// The leader of a live document and the size of its group: as [`group`](Self::group), without reading the keys of all
    /// members.
    ///
    /// # Errors
    /// As [`leader`](Self::leader).
    pub fn membership<'k>(
        &self,
        key: impl Into<Key<'k>>,
        max_queries: u64,
    ) -> Result<Option<Decision<Membership>>> {
        let around = Neighbourhood::of_parts(self)?;
        let Some(document) = around.find(key.into())? else { return Ok(None) };
        let mut budget = QueryLimit::new(max_queries);
        let found = around.group(document, &mut budget)?;
        let membership = |(leader, members): (DocRef, Vec<DocRef>)| {
            let (leader, size) = (around.key(leader)?, members.len() as u64);
            Ok(Membership { leader, size, questions: budget.spent() })
        };
        found.map(membership).map(Some)
    }

    /// All groups, computed in the order of priority: always decided, with one query for each leader and few more, plus
    /// O(n log n). Memory: as `resources` allow; beyond that, 16 bytes for each document, and 32 for sorting, go to
    /// scratch files. Where only the distance of fingerprints makes documents near, `twindex_join::living_groups` lists
    /// the same groups in a fraction of the time.
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
    /// let groups = index.snapshot().groups(&Resources::in_dir(dir.path()))?;
    /// let mut lines = Vec::new();
    /// groups.for_each(1, |key, leader, size| {
    ///     lines.push(format!("{} {} {size}", key.to_buf(), leader.to_buf()));
    ///     Ok(())
    /// })?;
    /// assert_eq!(lines, ["a b 2", "b b 2", "c c 1"]); // the hash of `b` comes first
    /// # Ok::<(), twindex::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`group_rule`](Self::group_rule); [`Error::Corrupt`](crate::Error::Corrupt),
    /// [`Error::Io`](crate::Error::Io) from scratch files.
    pub fn groups(&self, resources: &Resources<'_>) -> Result<Groups> {
        sweep::all(self, resources)
    }

    /// The documents whose leader differs from that in an earlier or later snapshot of the same index, by key. Added
    /// documents have no leader before, deleted ones none after.
    ///
    /// Queries only documents that changed and those near them, not all documents; after a merge of segments, it
    /// compares the records of the merged segments. Every change is decided.
    ///
    /// # Errors
    /// As [`leader`](Self::leader); [`Error::Invalid`](crate::Error::Invalid) for a snapshot of another index.
    pub fn changed_leaders(&self, since: &Self) -> Result<Vec<LeaderChange>> {
        changes::between(since, self)
    }
}
