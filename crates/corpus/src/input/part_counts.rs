//! Counts inputs that are read at the same time, and adds up their counts in the order of the inputs.

use std::collections::BTreeMap;

use crate::input::counts::{Counts, NamedFields};

/// The counts of all parts of the inputs but one, which the caller has.
#[derive(Default)]
pub(crate) struct PartCounts {
    /// The part whose counts the caller has.
    current: u32,
    others: BTreeMap<u32, Counts>,
    /// The ended parts: the first and the end of each run of consecutive ones, whose counts are those of the first.
    ended: BTreeMap<u32, u32>,
}

impl PartCounts {
    /// Replaces `counts` with the counts of a part.
    pub(crate) fn begin(&mut self, part: u32, counts: &mut Counts) {
        if part != self.current {
            let next = self.others.remove(&part).unwrap_or_else(|| {
                let value = counts.named.value.clone();
                Counts { named: NamedFields { value, ..NamedFields::default() }, ..Counts::default() }
            });
            let before = std::mem::replace(counts, next);
            self.others.insert(self.current, before);
            self.current = part;
        }
    }

    /// Adds the counts of a part that has ended to those of the parts beside it that have ended. `counts` then has the
    /// counts of all of these, and of all parts after the last part has ended.
    pub(crate) fn end(&mut self, part: u32, counts: &mut Counts) {
        self.begin(part, counts);
        let before =
            self.ended.range(..part).next_back().filter(|(_, end)| **end == part).map(|(&first, _)| first);
        if let Some(first) = before {
            let of_part = std::mem::take(counts);
            self.begin(first, counts);
            self.others.remove(&part);
            counts.add(&of_part);
        }
        let end = self.ended.remove(&(part + 1));
        if let Some(after) = end.and_then(|_| self.others.remove(&(part + 1))) {
            counts.add(&after);
        }
        self.ended.insert(before.unwrap_or(part), end.unwrap_or(part + 1));
    }
}

#[cfg(test)]
mod tests {
    use twindex_kernel::splitmix::SplitMix;

    use super::*;

    #[test]
    fn counts_of_parts_that_end_in_any_order_are_those_of_the_inputs_in_order() {
        let mut random = SplitMix(7);
        for parts in 1..40_u32 {
            let named = || NamedFields { value: Some("v".into()), ..NamedFields::default() };
            let mut counts = Counts { documents: 100, named: named(), ..Counts::default() };
            let (mut of_parts, mut open) =
                (PartCounts::default(), (0..parts).map(|part| (part, 3)).collect::<Vec<_>>());
            while !open.is_empty() {
                let at = random.next() as usize % open.len();
                let (part, left) = &mut open[at];
                of_parts.begin(*part, &mut counts);
                assert_eq!(counts.named.value.as_deref(), Some("v"));
                if *left == 0 {
                    of_parts.end(*part, &mut counts);
                    open.swap_remove(at);
                    assert!(
                        of_parts.ended.len() <= open.len() + 1 && of_parts.others.len() <= 2 * open.len() + 1
                    );
                } else {
                    *left -= 1;
                    counts.documents += 1;
                    counts.first_bad.push(format!("{part}"));
                }
            }
            let first: Vec<String> =
                (0..parts).flat_map(|part| [(); 3].map(|()| part.to_string())).take(5).collect();
            assert_eq!((counts.documents, counts.first_bad), (100 + 3 * u64::from(parts), first));
        }
    }
}
