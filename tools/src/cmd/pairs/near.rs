//! Finds pairs of near fingerprints in the tables of an index.

use anyhow::Context;
use twindex::Snapshot;
use twindex::store::snapshot::Place;
use twindex_corpus::page::PairScore;
use twindex_join::{NearFingerprints, near_fingerprints_within, pairs_within};

use super::args::{PairPart, PairTotals, PairsArgs, PairsFound, add_near};
use crate::in_order::in_order;
use crate::options::VerifyChoice;

/// Finds pairs of near fingerprints in one index or across two. Prints them, unless only their number is requested.
pub(super) fn find(
    args: &PairsArgs,
    left: &Snapshot,
    right: Option<&Snapshot>,
    within: u32,
) -> anyhow::Result<PairsFound> {
    let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
    let resources = args.resources(&scratch);
    if args.prints() {
        let mut all = PairPart::default();
        let near = args.near_of_page(Some(within));
        let mut out = args.lines(left.params(), VerifyChoice::Exact)?;
        let make = |&(a, b, distance): &(Place<'_>, Place<'_>, u32), part: &mut PairPart, text: &mut _| {
            let (a, b) = (a.key()?, b.key()?);
            if !args.shard.has(&a) {
                return Ok(());
            }
            part.add(near, &a, &b, PairScore::Distance(distance));
            Ok(add_near(text, &a, &b, distance)?)
        };
        let write = |part: PairPart, text: &[u8]| {
            let count = part.totals.count;
            all.merge(part);
            out.put(count, text)
        };
        in_order(make, write, |push| {
            pairs_within(left, right, within, resources, |a, b, distance| push((a, b, distance)))
        })?;
        // Checks again for read errors, because keys were read from mapped files after the join.
        left.check_maps()?;
        right.map_or(Ok(()), Snapshot::check_maps)?;
        return Ok(PairsFound { part: all, written: Some(out.finish()?) });
    }
    let across = right.is_some();
    let take = |totals: &mut PairTotals, meeting: &NearFingerprints<'_>| {
        if !args.output.json && args.shard.shard.is_none() {
            totals.count += meeting.pairs();
            return Ok(());
        }
        meeting.for_each(|a, b| {
            let (a, b) = (a.key()?, b.key()?);
            let (a, b) = if across || a <= b { (a, b) } else { (b, a) };
            if args.shard.has(&a) {
                totals.add(&a, &b);
            }
            Ok(())
        })
    };
    let states = near_fingerprints_within(left, right, within, resources, PairTotals::default, take)?;
    let part = PairPart { totals: states.into_iter().sum(), ..PairPart::default() };
    Ok(PairsFound { part, written: None })
}
