//! All leaders at once, in the order of priority: a document with no near leader before it leads, and all near
//! documents without a leader belong to it. One query for each leader, and few more, decide everything.

use super::answer::Resources;
use super::listing::Groups;
use super::near::Neighbourhood;
use super::order::{PriorityOrder, Turn};
use super::rounds::{NearDocuments, RoundLimits, RoundSearch, RoundSize};
use crate::error::Result;
use crate::store::snapshot::Snapshot;
use crate::sys::column::Room;

/// The state of the sweep.
struct Sweep<'a> {
    around: &'a Neighbourhood,
    groups: &'a mut Groups,
    threads: usize,
    limits: RoundLimits,
    size: RoundSize,
    /// Documents that wait for their turn, in their order. They had no leader when they came.
    waiting: Vec<Turn>,
}

/// All groups of a snapshot.
pub(super) fn all(snapshot: &Snapshot, resources: &Resources<'_>) -> Result<Groups> {
    in_rounds(snapshot, resources, RoundLimits::within(resources.memory))
}

fn in_rounds(snapshot: &Snapshot, resources: &Resources<'_>, limits: RoundLimits) -> Result<Groups> {
    let room = Room::new(resources.dir, resources.memory / 2);
    let around = Neighbourhood::of_segments(snapshot, &room)?;
    let radius = around.radius();
    radius.map_or(Ok(()), |radius| snapshot.check_within(radius))?;
    let mut groups = Groups::undecided(snapshot, &room)?;
    let numbers = groups.numbers.clone();
    let order = PriorityOrder::of(&numbers, resources, radius.map(|_| &room), |_| true)?;
    let threads = resources.threads.max(1);
    let size = RoundSize::new(limits, threads, radius.is_some());
    let (around, waiting) = (&around, Vec::new());
    let mut sweep = Sweep { around, groups: &mut groups, threads, limits, size, waiting };
    order.for_each(&numbers, |turn| sweep.take(turn))?;
    sweep.decide_all()?;
    groups.count_members();
    Ok(groups)
}

impl Sweep<'_> {
    /// Adds the next document in the order of priority.
    fn take(&mut self, turn: Turn) -> Result<()> {
        if self.groups.is_undecided(turn.number) {
            self.waiting.push(turn);
        }
        if self.waiting.len() >= self.limits.documents { self.decide_all() } else { Ok(()) }
    }

    /// Decides all waiting documents, round by round.
    fn decide_all(&mut self) -> Result<()> {
        let waiting = std::mem::take(&mut self.waiting);
        let mut rest = waiting.iter();
        let mut round = Vec::new();
        loop {
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
            let search = RoundSearch { around, groups, threads, limits };
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

    /// Decides the documents of a round.
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
