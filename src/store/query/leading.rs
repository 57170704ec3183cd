//! Finds the marked documents that are hits of a query because their marks do not count. See
//! [`orphans`](crate::store::orphans).

use std::sync::Arc;

use super::{Answers, Query};
use crate::error::Result;
use crate::format::prefixes::Marks;
use crate::params::{Near, Threshold};
use crate::store::groups::Neighbourhood;
use crate::store::marked::{SetOf, StoredNeighbours};
use twindex_sketch::Resemblance;

impl Query {
    /// Returns the leaders among the orphans near the query's document, which is near no unmarked document. `counted` is the
    /// set of the query's document, if the caller supplies sets.
    pub(super) fn orphans(
        &mut self,
        limit: usize,
        counted: Option<(&[u64], &mut SetOf<'_>)>,
    ) -> Result<Answers> {
        self.marks = Marks::Marked;
        let (mine, set_of) = counted.unzip();
        let params = self.params();
        let is_known = params.sets || params.minhash.is_some_and(|minhash| minhash.signature_bits > 0);
        let unverified = self.unverified || !is_known;
        let near = self.relation();
        let value = self.value.clone();
        let mut stored = StoredNeighbours {
            around: Neighbourhood::by_relation(Arc::clone(&self.state), near, unverified, self.estimated),
            replaced: None,
            value: value.as_deref(),
            set_of,
            cancel: self.cancel.clone(),
            set: Vec::new(),
            bytes: Vec::new(),
        };
        let mut leaders = stored.leaders(self, mine.unwrap_or_default(), limit.saturating_add(1))?;
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

    /// Returns the relation of the query; that of the index if the query's threshold is 0.
    fn relation(&self) -> Near {
        let threshold = self.bands.as_ref().and_then(|bands| Threshold::new(bands.threshold).ok());
        let within = self.within.and_then(|(_, within)| within.try_into().ok());
        if threshold.is_none() && within.is_none() {
            return self.params().near();
        }
        Near { threshold, within }
    }
}
