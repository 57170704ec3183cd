//! Finds the documents near a stored document, and orders documents by priority.

use std::sync::Arc;

use crate::design::DesignChoice;
use crate::error::{Error, Result};
use crate::key::{Key, KeyBuf};
use crate::params::{Near, Params};
use crate::segment::features::FeatureColumn;
use crate::segment::records::Kept;
use crate::store::known_leaders::DocRef;
use crate::store::part::IndexPart;
use crate::store::query::Query;
use crate::store::snapshot::Snapshot;
use crate::store::state::State;
use crate::sys::column::MemoryBudget;
use twindex_sketch::Code;

/// The rule that decides whether two stored documents are near.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GroupRule {
    /// Documents are near if the exact distance of their fingerprints is small enough.
    Distance,
    /// Documents are near if the exact resemblance of their sets of shingle hashes is high enough. If the parameters
    /// also use distance, documents whose fingerprints have a small enough distance are near, too.
    Counted,
    /// Documents are near by an estimate: they share a band, and enough of their stored minima agree for the estimate to
    /// reach the threshold. The number of minima that must agree is the same in both directions. If the parameters use the
    /// distance of fingerprints, documents at a small enough distance are near, too.
    Estimated,
}

impl GroupRule {
    pub(super) fn of(params: &Params) -> Result<Self> {
        let near = params.near();
        if near.within.is_some()
            && let Some(DesignChoice::Named(name)) = params.simhash.map(|simhash| simhash.design)
            && !name.is_exact()
        {
            return Err(Error::Invalid(format!(
                "groups need all near fingerprints, and the tables of this index ({name}) can miss some; make the index \
                 with other tables"
            )));
        }
        match (near.threshold, params.minhash) {
            (None, _) => Ok(Self::Distance),
            (Some(_), _) if params.sets => Ok(Self::Counted),
            (Some(_), Some(minhash)) if minhash.signature_bits > 0 => Ok(Self::Estimated),
            (Some(threshold), _) => Err(Error::Invalid(format!(
                "groups: this index keeps neither sets nor signatures, so it is not known which documents resemble each \
                 other by {threshold} or more; make it with sets"
            ))),
        }
    }
}

/// The rank of a document by priority: smaller priority numbers come first, then smaller hashes of the key. The keys
/// order documents of equal rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PriorityRank {
    pub(super) number: u64,
    pub(super) hash: u64,
}

/// The documents of a snapshot, with the relation that decides which of them are near.
pub(in crate::store) struct Neighbourhood {
    pub(super) state: Arc<State>,
    /// Whether a segment built from the memtables is queried instead of the memtables.
    as_segments: bool,
    pub(super) rule: GroupRule,
    near: Near,
    /// Whether every document that shares a band is near.
    unverified: bool,
    /// The features of the documents of each segment, if resemblance is estimated: segments do not store features per
    /// document.
    features: Vec<FeatureColumn>,
}

impl Neighbourhood {
    /// Creates a neighbourhood for a few queries, which read the segments and the memtables as they are.
    pub(super) fn of_parts(snapshot: &Snapshot) -> Result<Self> {
        Self::new(snapshot, false)
    }

    /// Creates a neighbourhood for many queries. First builds a segment in memory from the memtables, which is queried
    /// in their place.
    pub(super) fn of_segments(snapshot: &Snapshot, budget: &MemoryBudget) -> Result<Self> {
        let mut around = Self::new(snapshot, true)?;
        if around.rule == GroupRule::Estimated {
            let made = snapshot.segments().map(|(segment, _)| segment.feature_column(budget));
            around.features = made.collect::<Result<_>>()?;
        }
        Ok(around)
    }

    fn new(snapshot: &Snapshot, as_segments: bool) -> Result<Self> {
        let rule = snapshot.group_rule()?;
        let near = snapshot.params().near();
        let state = snapshot.shared_state();
        Ok(Self { state, as_segments, rule, near, unverified: false, features: Vec::new() })
    }

    /// Creates a neighbourhood with the near relation of a writer. It is not symmetric if a table of fingerprints can miss
    /// near ones.
    pub(in crate::store) fn by_relation(
        state: Arc<State>,
        near: Near,
        unverified: bool,
        estimated: bool,
    ) -> Self {
        let rule = match near.threshold {
            None => GroupRule::Distance,
            Some(_) if state.manifest.params.sets && !unverified && !estimated => GroupRule::Counted,
            Some(_) => GroupRule::Estimated,
        };
        Self { state, as_segments: false, rule, near, unverified, features: Vec::new() }
    }

    /// Returns the radius if only the distance of fingerprints decides which documents are near, and tables find them;
    /// otherwise `None`.
    pub(super) fn radius(&self) -> Option<u32> {
        let has_tables = self.state.manifest.params.simhash.is_some();
        self.near.within.filter(|_| has_tables && self.rule == GroupRule::Distance).map(u32::from)
    }

    /// Calls `each` with the number of each part and the part. Only one part is locked at a time.
    pub(in crate::store) fn for_each_part(
        &self,
        mut each: impl FnMut(u32, &IndexPart<'_>) -> Result<()>,
    ) -> Result<()> {
        if self.as_segments {
            for place in 0..self.state.segment_count() {
                let (segment, deleted) = self.state.segment_at(place);
                let part = IndexPart::Segment { segment, deleted };
                each(place as u32, &part)?;
                part.check_map()?;
            }
            return Ok(());
        }
        for (place, part) in (0..).zip(self.state.parts()) {
            each(place, &part)?;
            part.check_map()?;
        }
        Ok(())
    }

    /// Calls `read` with the part that contains a document, and the ordinal of the document.
    pub(in crate::store) fn read<T>(
        &self,
        of: DocRef,
        read: impl FnOnce(&IndexPart<'_>, u32) -> Result<T>,
    ) -> Result<T> {
        let place = of.part as usize;
        let is_segment = self.as_segments || place < self.state.view.segments.len();
        let part = if is_segment {
            let (segment, deleted) = self.state.segment_at(place);
            Some(IndexPart::Segment { segment, deleted })
        } else {
            self.state.parts().nth(place)
        };
        let Some(part) = part else {
            return Err(Error::Invalid(format!("part {place} of a snapshot that has fewer")));
        };
        let read = read(&part, of.ordinal)?;
        part.check_map()?;
        Ok(read)
    }

    pub(in crate::store) fn key(&self, of: DocRef) -> Result<KeyBuf> {
        self.read(of, key)
    }

    /// Returns the live document with this key; `None` if there is none.
    pub(in crate::store) fn find(&self, key: Key<'_>) -> Result<Option<DocRef>> {
        key.check(self.state.manifest.params.key)?;
        let mut found = None;
        self.for_each_part(|part, documents| {
            if found.is_none() {
                found = documents.find(key)?.map(|ordinal| DocRef { part, ordinal });
            }
            Ok(())
        })?;
        Ok(found)
    }

    pub(in crate::store) fn query_of(&self, of: DocRef) -> Result<Query> {
        let (mut set, mut features) = (Vec::new(), Vec::new());
        let (kept, fingerprint, signature) = self.read(of, |part, ordinal| {
            let code = if self.near.within.is_some() { part.code(ordinal)? } else { None };
            let is_code = self.state.manifest.params.codes.is_some();
            let fingerprint = code.filter(|_| !is_code).map(|code| code.words()[0]);
            set.extend(code.iter().filter(|_| is_code).flat_map(Code::words));
            let mut signature = Vec::new();
            let mut is_sketched = fingerprint.is_some();
            match self.rule {
                GroupRule::Distance => {}
                GroupRule::Counted => part.set(ordinal, &mut set)?,
                GroupRule::Estimated => {
                    is_sketched = self.features_into(of, part, &mut features)?;
                    part.signature(ordinal, |stored| signature.extend_from_slice(stored))?;
                }
            }
            Ok((is_sketched, fingerprint, signature))
        })?;
        let kept = kept.then(|| Kept {
            fingerprint: fingerprint.unwrap_or(0),
            features: &features,
            signature: if features.is_empty() { &[] } else { &signature },
            ..Kept::default()
        });
        let query = Query::near(Arc::clone(&self.state), kept, &set, self.near);
        let query = if self.rule == GroupRule::Estimated { query.estimated() } else { query };
        let mut query = if self.unverified { query.unverified() } else { query };
        query.check()?;
        Ok(query)
    }

    /// Replaces the contents of `out` with the features of a document. Returns false for a document without a sketch.
    fn features_into(&self, of: DocRef, part: &IndexPart<'_>, out: &mut Vec<u64>) -> Result<bool> {
        if let Some(column) = self.features.get(of.part as usize) {
            return Ok(column.features(of.ordinal, out));
        }
        if let IndexPart::Segment { segment, .. } = part {
            return Ok(segment.held_features()?.features(of.ordinal, out));
        }
        Ok(part.features(of.ordinal, out))
    }

    /// Calls `each` with each live document that is near `of` and for which `is_wanted` returns true. Only those
    /// documents are compared. `of` itself is passed, too, unless it is near no document (for example, because it has
    /// no tokens).
    pub(super) fn for_each_near(
        &self,
        of: DocRef,
        mut is_wanted: impl FnMut(DocRef, &IndexPart<'_>) -> Result<bool>,
        mut each: impl FnMut(DocRef, &IndexPart<'_>) -> Result<()>,
    ) -> Result<()> {
        let query = self.query_of(of)?;
        self.for_each_part(|part, documents| {
            let mut is_wanted = |ordinal| is_wanted(DocRef { part, ordinal }, documents);
            for found in query.find_among(documents, &mut is_wanted)? {
                each(DocRef { part, ordinal: found.ordinal }, documents)?;
            }
            Ok(())
        })
    }

    pub(super) fn rank(&self, of: DocRef) -> Result<PriorityRank> {
        self.read(of, rank)
    }

    /// Returns the documents that are near this one and come after it by priority, in the order of priority.
    pub(super) fn after(&self, of: DocRef) -> Result<Vec<DocRef>> {
        let mine = self.rank(of)?;
        let mut found: Vec<(PriorityRank, DocRef)> = Vec::new();
        self.for_each_near(
            of,
            |document, part| {
                if let IndexPart::Segment { segment, .. } = part {
                    segment.prepare_priorities(1)?;
                }
                Ok(document != of && rank(part, document.ordinal)? >= mine)
            },
            |document, part| {
                found.push((rank(part, document.ordinal)?, document));
                Ok(())
            },
        )?;
        found.sort_unstable();
        let mut all = Vec::with_capacity(found.len());
        for same in found.chunk_by(|a, b| a.0 == b.0) {
            let mut documents: Vec<DocRef> = same.iter().map(|&(_, document)| document).collect();
            if same[0].0 == mine {
                self.retain_by_key(&mut documents, of, |theirs, mine| theirs > mine)?;
            }
            self.sort_by_key(&mut documents)?;
            all.append(&mut documents);
        }
        Ok(all)
    }

    /// Keeps only the documents for which `is_wanted` returns true. Its arguments are the key of the document and the
    /// key of `of`. Only documents of equal rank are compared by key; these are rare.
    pub(super) fn retain_by_key(
        &self,
        documents: &mut Vec<DocRef>,
        of: DocRef,
        is_wanted: impl Fn(&KeyBuf, &KeyBuf) -> bool,
    ) -> Result<()> {
        let key = self.key(of)?;
        let wanted = |document: &DocRef| Ok(is_wanted(&self.key(*document)?, &key));
        let kept: Vec<bool> = documents.iter().map(wanted).collect::<Result<_>>()?;
        let mut kept = kept.into_iter();
        documents.retain(|_| kept.next() == Some(true));
        Ok(())
    }

    /// Sorts documents of equal rank by their keys.
    pub(super) fn sort_by_key(&self, documents: &mut [DocRef]) -> Result<()> {
        if documents.len() < 2 {
            return Ok(());
        }
        let keys = documents.iter().map(|&document| Ok((self.key(document)?, document)));
        let mut keyed: Vec<(KeyBuf, DocRef)> = keys.collect::<Result<_>>()?;
        keyed.sort_unstable();
        for (place, (_, document)) in documents.iter_mut().zip(keyed) {
            *place = document;
        }
        Ok(())
    }

    /// Replaces the contents of `out` with the data that determines which documents are near this one. If two documents
    /// have equal data, the same documents are near them.
    pub(in crate::store) fn content(&self, of: DocRef, out: &mut Vec<u8>) -> Result<()> {
        out.clear();
        self.read(of, |part, ordinal| {
            if self.near.within.is_some() {
                match part.code(ordinal)? {
                    Some(code) => {
                        out.push(1);
                        out.extend(code.words().iter().flat_map(|word| word.to_le_bytes()));
                    }
                    None => out.push(0),
                }
            }
            match self.rule {
                GroupRule::Distance => {}
                GroupRule::Counted => {
                    let mut set = Vec::new();
                    part.set(ordinal, &mut set)?;
                    out.extend(set.iter().flat_map(|hash| hash.to_le_bytes()));
                }
                GroupRule::Estimated => {
                    let mut features = Vec::new();
                    out.push(u8::from(self.features_into(of, part, &mut features)?));
                    part.signature(ordinal, |stored| out.extend_from_slice(stored))?;
                    out.extend(features.iter().flat_map(|feature| feature.to_le_bytes()));
                }
            }
            Ok(())
        })
    }
}

fn key(part: &IndexPart<'_>, ordinal: u32) -> Result<KeyBuf> {
    part.key(ordinal)
}

pub(super) fn rank(part: &IndexPart<'_>, ordinal: u32) -> Result<PriorityRank> {
    let [number, hash] = part.order(ordinal)?;
    Ok(PriorityRank { number, hash })
}
