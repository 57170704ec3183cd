//! Classifies the outcomes of reading damaged indexes, and counts them.

#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use crate::damage_maker::{Files, KINDS};

/// The time after which reading an index counts as slow.
pub(crate) const LONGEST: Duration = Duration::from_secs(10);

/// The outcome of reading a damaged copy of an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Outcome {
    /// The damage changed no byte, for example because it wrote zeros over zeros or copied an equal piece.
    Undamaged,
    /// All answers are those of the undamaged index.
    Same,
    /// Some answers are errors, and all others are those of the undamaged index.
    Error,
    /// All answers are those of an earlier commit, as after a crash. Allowed only for indexes with a log: a damaged end of
    /// the log cannot be distinguished from a torn write, because no other file records where the log ends.
    EarlierCommit,
    /// Some answer is neither an error nor the answer of the undamaged index.
    Different,
    Panic,
    /// A signal or an abort ended the process.
    Signal,
    /// An allocation was much larger than the files.
    Overallocation,
    Slow,
}

pub(crate) const OUTCOMES: [(Outcome, &str); 9] = [
    (Outcome::Undamaged, "undamaged"),
    (Outcome::Same, "same answers"),
    (Outcome::Error, "clean error"),
    (Outcome::EarlierCommit, "an earlier commit"),
    (Outcome::Different, "silently different"),
    (Outcome::Panic, "panic"),
    (Outcome::Signal, "signal or abort"),
    (Outcome::Overallocation, "over-allocation"),
    (Outcome::Slow, "over 10 s"),
];

/// The answer to one query, or the error.
pub(crate) type Answer = Result<String, String>;

/// The answers of an undamaged index.
pub(crate) struct Expected {
    pub(crate) current: Vec<Answer>,
    /// The answers after each earlier commit that a damaged log may lead back to.
    pub(crate) earlier: Vec<Vec<Answer>>,
}

impl Expected {
    /// Compares the answers of a copy with the expected answers. `answers` is `None` if the copy did not open. `undamaged`
    /// is whether the damage changed no byte.
    pub(crate) fn compare(&self, answers: Option<&[Answer]>, undamaged: bool) -> Outcome {
        match answers {
            // A copy that the damage did not change must give the same answers.
            Some(answers) if undamaged && answers == self.current => Outcome::Undamaged,
            _ if undamaged => Outcome::Different,
            None => Outcome::Error,
            Some(answers) if answers == self.current => Outcome::Same,
            Some(answers) if first_difference(answers, &self.current).is_none() => Outcome::Error,
            Some(answers) if self.earlier.iter().any(|earlier| answers == earlier) => Outcome::EarlierCommit,
            Some(_) => Outcome::Different,
        }
    }

    /// Returns, for the current state and then for each earlier one, the first answer that differs from it and is not an
    /// error.
    pub(crate) fn differences(&self, answers: &[Answer]) -> Vec<Option<String>> {
        let states = std::iter::once(&self.current).chain(&self.earlier);
        states.map(|state| first_difference(answers, state)).collect()
    }
}

/// Returns the first answer that differs from the expected one and is not an error.
fn first_difference(answers: &[Answer], expected: &[Answer]) -> Option<String> {
    if answers.len() != expected.len() {
        return Some(format!("{} answers for {}", answers.len(), expected.len()));
    }
    let differs = |(found, sound): (&Answer, &Answer)| {
        (found.is_ok() && found != sound).then(|| format!("{found:.300?} for {sound:.300?}"))
    };
    answers.iter().zip(expected).find_map(differs)
}

/// Returns the number in an environment variable, if it is set.
pub(crate) fn number(name: &str) -> Option<u64> {
    std::env::var(name)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text}: not a number")))
}

/// Returns a hash of a damaged copy of index number `index`, to count distinct copies.
pub(crate) fn identity(index: usize, files: &Files) -> u64 {
    let mut hasher = DefaultHasher::new();
    (index, files).hash(&mut hasher);
    hasher.finish()
}

#[derive(Default)]
pub(crate) struct Counts {
    /// Number of copies by kind of damage and outcome.
    outcomes: BTreeMap<(usize, Outcome), u64>,
    /// The kinds of damage and the identities of all distinct copies. Different cases can give equal copies; for example,
    /// there are few files to delete.
    distinct: BTreeSet<(usize, u64)>,
}

impl Counts {
    pub(crate) fn add(&mut self, kind: usize, outcome: Outcome, copies: u64) {
        *self.outcomes.entry((kind, outcome)).or_default() += copies;
    }

    pub(crate) fn add_identity(&mut self, kind: usize, identity: u64) {
        self.distinct.insert((kind, identity));
    }

    /// Returns the number of copies with this outcome.
    fn all(&self, outcome: Outcome) -> u64 {
        self.outcomes.iter().filter(|((_, found), _)| *found == outcome).map(|(_, count)| count).sum()
    }

    /// Prints a table of the outcomes, with a row for each kind of damage.
    pub(crate) fn print(&self, copies: u64) {
        println!(
            "| {copies} damaged copies | distinct |{}",
            OUTCOMES.map(|(_, name)| format!(" {name} |")).concat()
        );
        println!("|---|---|{}", "---|".repeat(OUTCOMES.len()));
        let row = |name: &str, distinct: usize, of: &dyn Fn(Outcome) -> u64| {
            println!(
                "| {name} | {distinct} |{}",
                OUTCOMES.map(|(outcome, _)| format!(" {} |", of(outcome))).concat()
            );
        };
        for (kind, name) in KINDS.iter().enumerate() {
            let distinct = self.distinct.range((kind, 0)..=(kind, u64::MAX)).count();
            row(name, distinct, &|outcome| self.outcomes.get(&(kind, outcome)).copied().unwrap_or(0));
        }
        row("all", self.distinct.len(), &|outcome| self.all(outcome));
    }

    /// Panics if a copy was not counted, an outcome is not allowed, or less than a third of the copies gave an error.
    pub(crate) fn check(&self, copies: u64) {
        assert_eq!(self.outcomes.values().sum::<u64>(), copies, "each copy is in one column");
        for bad in
            [Outcome::Different, Outcome::Panic, Outcome::Signal, Outcome::Overallocation, Outcome::Slow]
        {
            assert_eq!(self.all(bad), 0, "{bad:?}");
        }
        assert!(self.all(Outcome::Error) > copies / 3, "most damage is noticed");
    }
}
