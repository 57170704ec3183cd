//! Orphans: marked documents near which no live unmarked document is left.
//!
//! [`Writer::admit`](super::Writer::admit) marks a document because an unmarked document, its leader, is near. The leader
//! can be replaced, deleted or expire later. From then on the mark does not count: of the orphans, some are leaders. An
//! orphan is a leader if it is near no earlier orphan that is one, in the order of [`groups`](super::groups): by
//! priority, then by the hash of the key, then by the key. A new document near such a leader is its duplicate, and the
//! leader loses its mark, so that the next document near it finds it without this search.
//!
//! To decide about an orphan, the earlier orphans near it are decided first. The recursion uses a stack on the heap.
//! Documents with equal content are near the same documents, so of these only the first can be a leader, and a content is
//! decided once.

use std::collections::HashMap;

use crate::error::Result;
use crate::key::KeyBuf;

/// A live marked document.
#[derive(Clone, Debug)]
pub struct MarkedDocument {
    /// The key of the document.
    pub key: KeyBuf,
    /// The caller's priority; `None` if the document has none.
    pub priority: Option<u64>,
    /// A hash of the data that decides which documents are near this one. Documents with equal data must be near each
    /// other.
    pub content: u128,
}

/// A position in the order of priority.
type Rank = (u64, u64, KeyBuf);

impl MarkedDocument {
    fn rank(&self) -> Rank {
        (self.priority.unwrap_or(u64::MAX), self.key.as_key().priority_hash(), self.key.clone())
    }
}

/// The near relation of stored documents, without the document that is about to be replaced.
pub trait MarkedNeighbours {
    /// Returns whether a live unmarked document is near a marked one.
    ///
    /// # Errors
    /// Those of the index.
    fn has_leader(&mut self, of: &KeyBuf) -> Result<bool>;

    /// Returns the live marked documents that can lead this one, because they are near it. May include the document.
    ///
    /// # Errors
    /// Those of the index.
    fn marked(&mut self, of: &KeyBuf) -> Result<Vec<MarkedDocument>>;
}

/// An orphan that waits for decisions about earlier ones.
struct WaitingOrphan {
    content: u128,
    /// The key of the first document with this content.
    first: KeyBuf,
    /// The key and the content of the earlier marked documents near it, the earliest last.
    earlier: Vec<(KeyBuf, u128)>,
}

/// Returns the key of the orphan that is the leader of a new document; `None` if it is near no leader among the orphans.
/// `candidates` are as in [`nearest_leaders`].
///
/// # Errors
/// Those of `neighbours`.
pub fn nearest_leader(
    candidates: impl IntoIterator<Item = Vec<MarkedDocument>>,
    neighbours: &mut impl MarkedNeighbours,
) -> Result<Option<KeyBuf>> {
    Ok(nearest_leaders(candidates, 1, neighbours)?.into_iter().next())
}

/// Returns the keys of the leaders among the orphans near a new document: the nearest first, equally near ones by key. Ends
/// with the degree of nearness at which there are `enough`. `candidates` are the marked documents near the new document,
/// at least one for each distinct content: a list for each degree of nearness, the nearest first.
///
/// # Errors
/// Those of `neighbours`.
pub fn nearest_leaders(
    candidates: impl IntoIterator<Item = Vec<MarkedDocument>>,
    enough: usize,
    neighbours: &mut impl MarkedNeighbours,
) -> Result<Vec<KeyBuf>> {
    let (mut decided, mut leaders) = (HashMap::new(), Vec::new());
    for equally_near in candidates {
        let nearer = leaders.len();
        for one in equally_near {
            decide(&one, neighbours, &mut decided)?;
            leaders.extend(decided.get(&one.content).cloned().flatten());
        }
        leaders[nearer..].sort_unstable();
        if leaders.len() >= enough {
            break;
        }
    }
    Ok(leaders)
}

/// Adds the decision about a content to `leaders`: the key of the only leader with this content; `None` if there is none.
fn decide(
    of: &MarkedDocument,
    neighbours: &mut impl MarkedNeighbours,
    leaders: &mut HashMap<u128, Option<KeyBuf>>,
) -> Result<()> {
    if leaders.contains_key(&of.content) {
        return Ok(());
    }
    let mut stack = Vec::new();
    stack.extend(waiting(of.key.clone(), of.content, neighbours, leaders)?);
    while let Some(orphan) = stack.last_mut() {
        let is_led = match orphan.earlier.last() {
            None => false,
            Some((key, content)) => match leaders.get(content) {
                None => {
                    let (key, content) = (key.clone(), *content);
                    stack.extend(waiting(key, content, neighbours, leaders)?);
                    continue;
                }
                Some(None) => {
                    orphan.earlier.pop();
                    continue;
                }
                Some(Some(_)) => true,
            },
        };
        let WaitingOrphan { content, first, .. } = stack.pop().expect("the last one was read above");
        leaders.insert(content, (!is_led).then_some(first));
    }
    Ok(())
}

/// Returns the orphan with this content, with the earlier documents to be decided. If a live unmarked document is near,
/// adds this decision to `leaders` instead.
fn waiting(
    key: KeyBuf,
    content: u128,
    neighbours: &mut impl MarkedNeighbours,
    leaders: &mut HashMap<u128, Option<KeyBuf>>,
) -> Result<Option<WaitingOrphan>> {
    // Only in a relation that misses near documents can an orphan wait for itself. Then it is not a leader.
    leaders.insert(content, None);
    if neighbours.has_leader(&key)? {
        return Ok(None);
    }
    let mut firsts: HashMap<u128, Rank> = HashMap::new();
    for document in neighbours.marked(&key)? {
        let rank = document.rank();
        let first = firsts.entry(document.content).or_insert_with(|| rank.clone());
        if rank < *first {
            *first = rank;
        }
    }
    // Without tokens, a document may not be near itself.
    let Some(mine) = firsts.remove(&content) else {
        leaders.insert(content, Some(key));
        return Ok(None);
    };
    let mut earlier: Vec<(Rank, u128)> =
        firsts.into_iter().map(|(content, rank)| (rank, content)).filter(|(rank, _)| *rank < mine).collect();
    earlier.sort_unstable_by(|a, b| b.cmp(a));
    let earlier = earlier.into_iter().map(|((_, _, key), content)| (key, content)).collect();
    Ok(Some(WaitingOrphan { content, first: mine.2, earlier }))
}
