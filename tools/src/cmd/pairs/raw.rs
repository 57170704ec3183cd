//! Finds near pairs of raw fingerprints without an index.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use twindex::design::WITHIN_MAX;
use twindex::{KeyBuf, Params};
use twindex_corpus::page::PairScore;
use twindex_join::{
    Codes, JoinResources, Positions, RawValues, Sorter, finish_all, merge_sorted, near_codes_within,
    raw_near_fingerprints_within,
};

use super::args::{PairPart, PairTotals, PairsArgs, PairsFound, SearchReport, add_near};
use crate::in_order::in_order;
use crate::options::VerifyChoice;
use crate::raw_column::RawColumn;
use crate::report::Stopwatch;

/// Reads all fingerprints of a file.
fn read(path: &Path) -> anyhow::Result<Vec<u64>> {
    RawColumn::open(path)?.wave(usize::MAX)
}

/// Finds near pairs of fingerprints at any distance.
fn near<S: Send>(
    left: &[u64],
    right: Option<&[u64]>,
    within: u32,
    resources: JoinResources<'_>,
    begin: impl Fn() -> S + Sync,
    take: impl Fn(&mut S, &Positions<'_>) -> twindex::Result<()> + Sync,
) -> twindex::Result<Vec<S>> {
    if within <= WITHIN_MAX.into() {
        let (left, right) = (RawValues::Held(left), right.map(RawValues::Held));
        return raw_near_fingerprints_within(left, right, within, resources, begin, take);
    }
    let across = right.is_some();
    let (left, right) = (Codes::new(left, 1)?, right.map(|right| Codes::new(right, 1)).transpose()?);
    near_codes_within(left, right, within, resources, begin, |state, pairs| {
        pairs.iter().try_for_each(|pair| {
            let (left, right) = (&[pair.a][..], &[pair.b][..]);
            take(state, &Positions { left, right, distance: pair.distance, inside: false, across })
        })
    })
}

/// Finds near pairs among the rows of one file, or across the rows of two files.
pub(super) fn find(args: &PairsArgs, path: &Path) -> anyhow::Result<ExitCode> {
    let within = args.within().unwrap_or_default();
    let values = read(path)?;
    let ids = args.ids.as_deref().map(read).transpose()?;
    if let (Some(ids), Some(of)) = (&ids, &args.ids) {
        ensure!(
            ids.len() == values.len(),
            "{} has {} keys for the {} fingerprints of {}",
            of.display(),
            ids.len(),
            values.len(),
            path.display()
        );
        let mut sorted = ids.clone();
        sorted.sort_unstable();
        if let Some((twice, _)) = sorted.iter().zip(sorted.iter().skip(1)).find(|(a, b)| a == b) {
            bail!("{}: key {twice} is there twice; each row needs a key of its own", of.display());
        }
    }
    let other = args.with.as_deref().map(read).transpose()?;
    let watch = Stopwatch::start();
    let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
    let mut resources = args.resources(&scratch);
    resources.memory /= 2;
    let across = other.is_some();
    let key = |at: u32| ids.as_ref().map_or(u64::from(at), |ids| ids[at as usize]);
    // Returns the keys of a pair: across two files, the key of the first file comes first, otherwise the smaller key.
    let keys = |a: u32, b: u32| {
        if across {
            return (key(a), u64::from(b));
        }
        let (a, b) = (key(a), key(b));
        (a.min(b), a.max(b))
    };
    let has = |a: u64| args.shard.has(&KeyBuf::U64(a));
    let (left, right) = (&values[..], other.as_deref());
    if !args.prints() {
        let take = |totals: &mut PairTotals, found: &Positions<'_>| {
            found.for_each(|a, b| {
                let (a, b) = keys(a, b);
                if has(a) {
                    totals.add(&KeyBuf::U64(a), &KeyBuf::U64(b));
                }
                Ok(())
            })
        };
        let states = near(left, right, within, resources, PairTotals::default, take)?;
        let part = PairPart { totals: states.into_iter().sum(), ..PairPart::default() };
        let found = PairsFound { part, written: None };
        return args.report(found, Some(within), SearchReport::default(), watch);
    }
    let memory = resources.memory / resources.threads;
    let begin = || Sorter::<(u64, u64, u8)>::new(scratch.path(), memory);
    let states = near(left, right, within, resources, begin, |sorter, found| {
        found.for_each(|a, b| {
            let (a, b) = keys(a, b);
            // A distance is at most 64, so it fits in a byte.
            if has(a) { sorter.push((a, b, found.distance as u8)) } else { Ok(()) }
        })
    })?;
    let sorted = finish_all(states)?;
    let mut all = PairPart::default();
    let near = args.near_of_page(Some(within));
    // The same parameters as in an index made by `build --fingerprints`.
    let radius = within.min(WITHIN_MAX.into()) as u8;
    let params = Params::builder().u64_keys().simhash(radius).build()?;
    let mut out = args.lines(&params, VerifyChoice::Exact)?;
    let make = |&(a, b, distance): &(u64, u64, u8), part: &mut PairPart, text: &mut _| {
        let (a, b) = (KeyBuf::U64(a), KeyBuf::U64(b));
        part.add(near, &a, &b, PairScore::Distance(distance.into()));
        Ok(add_near(text, &a, &b, distance.into())?)
    };
    let write = |part: PairPart, text: &[u8]| {
        let count = part.totals.count;
        all.merge(part);
        out.put(count, text)
    };
    in_order(make, write, |push| merge_sorted(&sorted, push))?;
    let found = PairsFound { part: all, written: Some(out.finish()?) };
    args.report(found, Some(within), SearchReport::default(), watch)
}
