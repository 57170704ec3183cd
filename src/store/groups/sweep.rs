//! Computes all leaders in one pass in the order of priority. A document that has no leader yet becomes one, and all
//! documents near it that have no leader join its group. Takes little more than one query per leader.

use super::answer::Resources;
use super::listing::Groups;
use super::near::Neighbourhood;
use super::order::{PriorityOrder, Turn};
use super::rounds::{NearDocuments, RoundLimits, RoundSearch, RoundSize};
use crate::cancel::Cancel;
use crate::error::Result;
use crate::store::snapshot::Snapshot;
use crate::sys::column::MemoryBudget;

struct Sweep<'a> {
    around: &'a Neighbourhood,
    groups: &'a mut Groups,
    threads: usize,
    limits: RoundLimits,
    size: RoundSize,
    cancel: Option<&'a Cancel>,
    /// Documents to decide, in the order of priority. A document is added only if it has no leader yet.
    waiting: Vec<Turn>,
}

pub(super) fn all(snapshot: &Snapshot, resources: &Resources<'_>) -> Result<Groups> {
    in_rounds(snapshot, resources, RoundLimits::within(resources.memory))
}

fn in_rounds(snapshot: &Snapshot, resources: &Resources<'_>, limits: RoundLimits) -> Result<Groups> {
    let budget = MemoryBudget::new(resources.dir, resources.memory / 2);
    let around = Neighbourhood::of_segments(snapshot, &budget)?;
    let radius = around.radius();
    radius.map_or(Ok(()), |radius| snapshot.check_within(radius))?;
    let mut groups = Groups::undecided(snapshot, &budget)?;
    let numbers = groups.numbers.clone();
    let order = PriorityOrder::of(&numbers, resources, radius.map(|_| &budget), |_| true)?;
    let threads = resources.threads.max(1);
    let size = RoundSize::new(limits, threads, radius.is_some());
    let (around, waiting) = (&around, Vec::new());
    let cancel = resources.cancel;
    let mut sweep = Sweep { around, groups: &mut groups, threads, limits, size, cancel, waiting };
    order.for_each(&numbers, |turn| sweep.take(turn))?;
    sweep.decide_all()?;
    groups.count_members();
    Ok(groups)
}

impl Sweep<'_> {
    /// Adds a document. Documents must be added in the order of priority.
    fn take(&mut self, turn: Turn) -> Result<()> {
        if self.groups.is_undecided(turn.number) {
            self.waiting.push(turn);
        }
        if self.waiting.len() >= self.limits.documents { self.decide_all() } else { Ok(()) }
    }

    fn decide_all(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut rest = waiting.iter();
        let mut round = Vec::new();
        loop {
            self.cancel.map_or(Ok(()), Cancel::check)?;
            round.clear();
            let mut after = rest.clone();
            while round.len() < self.size.documents
                && let Some(turn) = after.next()
            {
                if self.groups.is_undecided(turn.number) {
                    round.push(*turn);
                }
            }
            if round.is_empty() {
                break;
            }
            let (around, groups, threads, limits) = (self.around, &*self.groups, self.threads, self.limits);
            let search = RoundSearch { around, groups, threads, limits, cancel: self.cancel };
            if let Some(near) = search.near(&round)? {
                self.decide(&round, &near);
                rest = after;
            } else {
                self.size.shrink(round.len());
            }
        }
        self.waiting = waiting;
        self.waiting.clear();
        Ok(())
    }

    fn decide(&mut self, round: &[Turn], near: &NearDocuments) {
        let mut wasted = 0;
        for (place, turn) in round.iter().enumerate() {
            let leader = self.groups.take_turn(turn.number);
            if leader == turn.number {
                near.of(place).for_each(|number| self.groups.belong(number, leader));
            } else {
                wasted += 1;
            }
        }
        self.groups.questions += near.queries;
        self.size.adjust(round.len(), wasted);
    }
}

#[cfg(test)]
#[path = "../../../tests/support/leaders.rs"]
mod leaders;

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use twindex_kernel::splitmix::SplitMix;

    use super::*;
    use crate::{Document, Fingerprint, Index, Params, WriterOptions};

    use leaders::{Documents, listing_by_definition};

    /// Generates documents. Two thirds are close to one of 20 centers, with many equal fingerprints; the others are
    /// near no document.
    fn documents(count: u64) -> Documents {
        let mut random = SplitMix(38);
        let mut one = |key| {
            let mut fingerprint = random.next();
            if key % 3 != 0 {
                fingerprint = (random.next() % 20 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
                for _ in 0..random.next() % 4 {
                    fingerprint ^= 1 << (random.next() % 12 * 5);
                }
            }
            let priority = [None, Some(random.next() % 4), Some(random.next())][key as usize % 3];
            (key, ((key % 50 != 0).then_some(fingerprint), priority))
        };
        (0..count).map(&mut one).collect()
    }

    fn listing(groups: &Groups) -> String {
        let mut text = String::new();
        groups
            .for_each(1, |key, leader, size| {
                writeln!(text, "{} {} {size}", key.to_buf(), leader.to_buf()).unwrap();
                Ok(())
            })
            .unwrap();
        text
    }

    #[test]
    fn listing_matches_the_definition_for_all_round_sizes_and_thread_counts() {
        let dir = tempfile::tempdir().unwrap();
        let params = Params::builder().u64_keys().words(1).simhash(3).priorities().build().unwrap();
        let index = Index::create(dir.path().join("x"), params).unwrap();
        let empty = index.sketcher().unwrap().sketch("").unwrap();
        let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
        let mut expected = documents(4000);
        for (&key, &(fingerprint, priority)) in &expected {
            let document =
                fingerprint.map_or(Document::from(&empty), |value| Document::from(Fingerprint(value)));
            writer.put(key, document.with_priority(priority)).unwrap();
            if key % 1200 == 1199 {
                writer.commit().unwrap();
                writer.flush().unwrap();
            }
        }
        // Some documents are deleted from each segment and from the memtable.
        for key in (0..4000).filter(|key| key % 7 == 2) {
            writer.delete(key).unwrap();
            expected.remove(&key);
        }
        writer.commit().unwrap();
        let snapshot = index.snapshot();
        assert_eq!(snapshot.segments().len(), 4, "three segments and the memtable");
        let defined = listing_by_definition(&expected);
        let mut queries = Vec::new();
        for (documents, found) in [(1, 1), (2, 1), (7, 3), (64, 50), (1 << 15, 1 << 20)] {
            for threads in 1..=3 {
                let resources = Resources { dir: dir.path(), memory: 1 << 20, threads, cancel: None };
                let limits = RoundLimits { documents, found };
                let groups = in_rounds(&snapshot, &resources, limits).unwrap();
                assert!(listing(&groups) == defined, "{limits:?}, {threads} threads");
                queries.push(groups.questions());
            }
        }
        // In rounds of one document, only leaders are queried. A document with an empty text needs no query.
        let leaders = defined.lines().filter(|line| line.split(' ').next() == line.split(' ').nth(1));
        let has_fingerprint = |line: &&str| {
            let key = line.split(' ').next().unwrap().parse::<u64>().unwrap();
            expected[&key].0.is_some()
        };
        assert_eq!(queries[0], leaders.filter(has_fingerprint).count() as u64);
        assert!(queries[12] > queries[0], "{queries:?}: a large round wastes some");
    }
}
