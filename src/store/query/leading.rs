//! Finds the marked documents that are hits of a query because their marks do not count. See
//! [`orphans`](crate::store::orphans).

use std::sync::Arc;

use super::{Answers, Query};
use crate::error::Result;
use crate::format::prefixes::Marks;
use crate::store::groups::Neighbourhood;
use crate::store::marked::{SetOf, StoredNeighbours};
use twindex_sketch::Resemblance;

impl Query {
    /// Returns the leaders among the orphans near the query's document, which is near no unmarked document. `counted` is the
    /// set of the query's document, if the caller supplies sets. The relation of the index decides which documents are
    /// orphans, so that a query with another relation finds documents of the same set.
    pub(super) fn orphans(
        &mut self,
        limit: usize,
        counted: Option<(&[u64], &mut SetOf<'_>)>,
    ) -> Result<Answers> {
        self.marks = Marks::Marked;
        let (mine, set_of) = counted.unzip();
        let params = self.params();
        let is_known = params.sets || params.minhash.is_some_and(|minhash| minhash.signature_bits > 0);
        let (near, unverified) = (params.near(), !is_known || mine.is_some());
        let value = self.value.clone();
        let mut stored = StoredNeighbours {
            around: Neighbourhood::by_relation(Arc::clone(&self.state), near, unverified, false),
            replaced: None,
            value: value.as_deref(),
            set_of,
            cancel: self.cancel.clone(),
            set: Vec::new(),
            bytes: Vec::new(),
        };
        let mut leaders =
            stored.leaders(self, (mine.unwrap_or_default(), limit.saturating_add(1)), |_| false)?;
        let has_more = leaders.len() > limit;
        leaders.truncate(limit);
        let mut answers = Answers { has_more, ..Answers::default() };
        for leader in &leaders {
            let Some(mut hit) = self.hit_of(leader.as_key())? else { continue };
            if let Some(mine) = mine {
                stored.read_set(leader)?;
                hit.resemblance = Some(Resemblance::of_sets(mine, &stored.set));
            }
            answers.hits.push(hit);
        }
        Ok(answers)
    }
}
