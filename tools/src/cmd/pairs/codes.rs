//! Finds near pairs of fingerprints of up to 512 bits, at any distance.

use anyhow::Context;
use twindex::sys::Column;
use twindex::{KeyBuf, Params};
use twindex_corpus::KeyedCodes;
use twindex_corpus::page::PairScore;
use twindex_join::{NearPair, Sorter, finish_all, merge_sorted, near_codes_within};

use super::args::{PairPart, PairTotals, PairsArgs, PairsFound, add_near};
use crate::in_order::in_order;

/// Finds near pairs in one list of fingerprints or across two. Prints them, unless only their number is requested.
/// `params` describes them in the header of a file.
pub(super) fn find(
    args: &PairsArgs,
    left: &KeyedCodes,
    right: Option<&KeyedCodes>,
    within: u32,
    params: &Params,
) -> anyhow::Result<PairsFound> {
    let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
    let mut resources = args.resources(&scratch);
    resources.memory /= 4;
    let (codes, others) = (left.codes()?, right.map(KeyedCodes::codes).transpose()?);
    let across = right.is_some();
    let other = right.unwrap_or(left);
    let key = |of: &KeyedCodes, number: u32| KeyBuf::Bytes(of.key(number).into());
    if !args.prints() {
        let take = |totals: &mut PairTotals, pairs: &[NearPair]| {
            for pair in pairs {
                let (a, b) = (key(left, pair.a), key(other, pair.b));
                let (a, b) = if across || a <= b { (a, b) } else { (b, a) };
                if args.shard.has(&a) {
                    totals.add(&a, &b);
                }
            }
            Ok(())
        };
        let states = near_codes_within(codes, others, within, resources, PairTotals::default, take)?;
        let part = PairPart { totals: states.into_iter().sum(), ..PairPart::default() };
        return Ok(PairsFound { part, written: None });
    }
    let order = left.by_key(resources.memory)?;
    let other_order = right.map(|right| right.by_key(resources.memory)).transpose()?;
    let other_order = other_order.as_ref().unwrap_or(&order);
    let memory = resources.memory / resources.threads;
    let begin = || Sorter::<u128>::new(scratch.path(), memory);
    let states = near_codes_within(codes, others, within, resources, begin, |sorter, pairs| {
        pairs.iter().try_for_each(|pair| {
            let place = |places: &Column<u32>, number: u32| u128::from(places[number as usize]);
            let (a, b) = (place(&order.1, pair.a), place(&other_order.1, pair.b));
            let (a, b) = if across { (a, b) } else { (a.min(b), a.max(b)) };
            sorter.push(a << 96 | b << 64 | u128::from(pair.distance))
        })
    })?;
    let sorted = finish_all(states)?;
    let mut all = PairPart::default();
    let near = args.near_of_page(Some(within));
    let pairs = format!("within {within} of {} bits", codes.bits());
    let mut out = args.lines_of(params, &pairs, "a\tb\tdistance")?;
    let make = |&pair: &u128, part: &mut PairPart, text: &mut _| {
        let number = |sorted: &Column<u32>, shift: u32| sorted[(pair >> shift) as u32 as usize];
        let (a, b) = (key(left, number(&order.0, 96)), key(other, number(&other_order.0, 64)));
        if !args.shard.has(&a) {
            return Ok(());
        }
        part.add(near, &a, &b, PairScore::Distance(pair as u32));
        Ok(add_near(text, &a, &b, pair as u32)?)
    };
    let write = |part: PairPart, text: &[u8]| {
        let count = part.totals.count;
        all.merge(part);
        out.put(count, text)
    };
    in_order(make, write, |push| merge_sorted(&sorted, push))?;
    Ok(PairsFound { part: all, written: Some(out.finish()?) })
}
