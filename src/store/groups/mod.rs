//! Groups of near documents. Each document has a leader, which depends only on the live documents.
//!
//! Documents are ordered by priority: the caller's number
//! ([`ParamsBuilder::priorities`](crate::params::ParamsBuilder::priorities)), then the hash of the key
//! ([`Key::priority_hash`]), then the key. A document is a *leader* if it is near no earlier leader. Every other
//! document belongs to the first leader that is near it. The leaders are the lexicographically first maximal
//! independent set of the graph in which near documents are neighbours. This is the rule of `dedup --keep key-hash`.
//!
//! - `near`: finds the documents near a stored document, and orders documents by priority;
//! - `candidates`: finds the documents that may be near a document and precede it, in the order of priority;
//! - `decide`: computes the leader of one document from its neighbours and their neighbours;
//! - `listing`: stores the leader of each document;
//! - `order`: numbers documents, and sorts them by priority;
//! - `sweep`: computes all leaders in the order of priority;
//! - `rounds`: computes the near documents of several documents at once, for a sweep;
//! - `pairs`: computes all leaders from the near pairs that a join found;
//! - `changes`: finds the documents whose leader changed between two snapshots.
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
pub(super) use self::near::Neighbourhood;
use super::known_leaders::DocRef;
use super::snapshot::Snapshot;
use crate::error::Result;
use crate::key::{Key, KeyBuf};

/// The recommended limit on queries for near documents. Most documents need far fewer: about two queries in cliques,
/// and in chains with random priorities; tens to hundreds if very many documents are near each other.
pub const GROUP_QUESTIONS: u64 = 10_000;

impl Snapshot {
    /// Returns the rule that decides which documents of this index are near.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::Error::Invalid) if the index cannot decide whether two stored documents are near: if it
    /// uses resemblance but stores neither sets nor signatures, or if its tables may miss near fingerprints (free designs).
    pub fn group_rule(&self) -> Result<GroupRule> {
        GroupRule::of(self.params())
    }

    /// Returns the leader of a live document; `None` if there is no such document. Uses at most `max_queries` queries for
    /// near documents.
    ///
    /// The leader depends only on the live documents: not on the order in which they were added, nor on segments, logs
    /// and merges. [`GROUP_QUESTIONS`] is a limit that suits most uses. The snapshot caches leaders, but counts the
    /// queries that a cached leader has cost; so whether a document is [`Undecided`](Decision::Undecided) depends only
    /// on the snapshot, the key and the limit. Each waiting document of a chain takes up to about 32 KiB of heap
    /// memory, plus about 32 bytes for each neighbour that is known not to be a leader; the chain takes no thread
    /// stack. Documents with the same fingerprint, or the same set, share one query.
    ///
    /// If resemblance is [estimated](GroupRule::Estimated), the first query reads the bands of all segments, which then
    /// keep 4 bytes per document and band in memory.
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
    /// Same as [`group_rule`](Self::group_rule); [`Error::Invalid`](crate::Error::Invalid) for a key of the wrong kind
    /// (number or bytes), [`Error::Corrupt`](crate::Error::Corrupt).
    pub fn leader<'k>(&self, key: impl Into<Key<'k>>, max_queries: u64) -> Result<Option<Decision<Leader>>> {
        let around = Neighbourhood::of_parts(self)?;
        let Some(document) = around.find(key.into())? else { return Ok(None) };
        let mut budget = QueryLimit::new(max_queries);
        let decided = around.leader(document, &mut budget)?;
        let leader = |leader: DocRef| Ok(Leader { key: around.key(leader)?, questions: budget.spent() });
        decided.map(leader).map(Some)
    }

    /// Returns the group of a live document: its leader, and all documents that have the same leader. To find them, it
    /// decides the leader of every document near the group's leader. `max_queries` limits the total number of queries.
    ///
    /// # Errors
    /// Same as [`leader`](Self::leader).
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

    /// Returns the number of documents in the group of a live document, including itself. This is the length of
    /// [`Group::members`], but the keys of the members are not read.
    ///
    /// # Errors
    /// Same as [`leader`](Self::leader).
    pub fn group_size<'k>(&self, key: impl Into<Key<'k>>, max_queries: u64) -> Result<Option<Decision<u64>>> {
        let Some(found) = self.membership(key, max_queries)? else { return Ok(None) };
        found.map(|membership| Ok(membership.size)).map(Some)
    }

    /// Returns the leader of a live document and the size of its group. Unlike [`group`](Self::group), does not read
    /// the keys of all members.
    ///
    /// # Errors
    /// Same as [`leader`](Self::leader).
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

    /// Computes all groups in the order of priority. Decides every document, with about one query per leader and in O(n log
    /// n) time besides the queries. Memory is bounded by `resources`; further data, 16 bytes per document and 32 for
    /// sorting, is stored in scratch files. If only the distance of fingerprints decides which documents are near,
    /// `twindex_join::living_groups` computes the same groups in a fraction of the time.
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
    /// Same as [`group_rule`](Self::group_rule); [`Error::Corrupt`](crate::Error::Corrupt),
    /// [`Error::Io`](crate::Error::Io) for scratch files.
    pub fn groups(&self, resources: &Resources<'_>) -> Result<Groups> {
        sweep::all(self, resources)
    }

    /// Returns the documents whose leader differs between this snapshot and `since`, an earlier or later snapshot of the
    /// same index. The result is sorted by key. [`LeaderChange::before`] is `None` for a document that is not in `since`,
    /// and [`LeaderChange::after`] is `None` for a document that is only in `since`.
    ///
    /// Queries only the documents that changed and the documents near them. After a merge of segments, also compares
    /// the records of the merged segments. The number of queries is not limited.
    ///
    /// # Errors
    /// Same as [`leader`](Self::leader); [`Error::Invalid`](crate::Error::Invalid) for a snapshot of another index.
    pub fn changed_leaders(&self, since: &Self) -> Result<Vec<LeaderChange>> {
        changes::between(since, self)
    }
}
