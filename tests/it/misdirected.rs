//! Tests writes that a disk reports as written and synced, although they landed elsewhere (misdirected) or nowhere
//! (phantom). For each write of random histories: the processes that open the index afterwards find the right documents, or an
//! error, or `verify` reports damage.
//!
//! Format 1.0 cannot distinguish the loss of the last writes from a crash before them. So the index is sound at an earlier
//! commit if the disk
//! - lost or overwrote the last records of a log, and the writer was killed before it wrote a record after their sync: all
//!   batches from the first of these records on are lost;
//! - lost the last replacement of `CURRENT`: the commits since are lost, including those in a log that began with it. If
//!   there are any, `verify` notes the log.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::crashes::place;
use crate::support::model::{Change, Disk, Fate, Misdone, ModelVfs};
use crate::support::random::Random;
use twindex::store::verify::verify;
use twindex::{
    Admitted, Durability, Error, Fingerprint, Hit, Index, Params, Result, Snapshot, Writer, WriterOptions,
};

/// The fingerprint of each document, by key.
type Documents = BTreeMap<u64, u64>;

const PAGE: usize = 1 << 12;
/// Number of steps between two openings of the index.
const STEPS: usize = 5;

/// The documents after each commit, including the one that failed or was in progress at the end.
#[derive(Default)]
struct Commits {
    states: Vec<Documents>,
    acknowledged: usize,
}

impl Commits {
    fn acknowledge(&mut self, vfs: &ModelVfs) {
        self.acknowledged = self.states.len();
        vfs.promise(self.acknowledged as u64);
    }
}

fn fingerprint(random: &mut Random) -> u64 {
    let center = (random.below(4) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    center ^ 1 << random.below(64) ^ 1 << random.below(64)
}

/// Returns the documents within three bits, nearest first.
fn near(documents: &Documents, fingerprint: u64) -> Vec<(u32, u64)> {
    let distances = documents.iter().map(|(&key, &other)| ((fingerprint ^ other).count_ones(), key));
    let mut near: Vec<(u32, u64)> = distances.filter(|&(distance, _)| distance <= 3).collect();
    near.sort_unstable();
    near
}

fn of_hit(hit: &Hit) -> (u32, u64) {
    (hit.distance.unwrap(), hit.key.as_u64().unwrap())
}

/// Returns the documents of a snapshot, after it was also searched for each of them.
fn read(snapshot: &Snapshot) -> Result<Documents> {
    let mut documents = Documents::new();
    for key in snapshot.keys()? {
        let key = key?;
        let record = snapshot.get(&key)?.expect("a listed document");
        documents.insert(key.as_u64().unwrap(), record.fingerprint.unwrap().0);
    }
    for &fingerprint in documents.values() {
        let hits = snapshot.within(Fingerprint(fingerprint), 3).run()?.hits;
        assert_eq!(hits.iter().map(of_hit).collect::<Vec<_>>(), near(&documents, fingerprint));
    }
    Ok(documents)
}

/// Changes some documents, by all operations.
fn change(random: &mut Random, writer: &mut Writer, documents: &mut Documents) -> Result<()> {
    for _ in 0..=random.below(3) {
        let (key, fingerprint) = (random.below(12) as u64, fingerprint(random));
        match random.below(4) {
            0 => {
                writer.delete(key)?;
                documents.remove(&key);
                continue;
            }
            1 => writer.put(key, Fingerprint(fingerprint))?,
            _ => {
                let expected = near(documents, fingerprint).into_iter().find(|&(_, other)| other != key);
                let found = match writer.admit(key, Fingerprint(fingerprint))? {
                    Admitted::New | Admitted::Updated => None,
                    Admitted::Duplicate(near) | Admitted::Known { near } => Some(of_hit(&near)),
                    other => panic!("{other:?}"),
                };
                assert_eq!(found, expected);
            }
        }
        documents.insert(key, fingerprint);
    }
    Ok(())
}

/// Creates an index, and changes it by several writers. The last one is killed if the seed is even.
fn history(vfs: &ModelVfs, seed: u64, commits: &mut Commits) -> Result<()> {
    let (mut random, mut documents) = (Random(seed), Documents::new());
    commits.states.push(documents.clone());
    Index::create_with(
        Arc::new(vfs.clone()),
        place(),
        Params::builder().u64_keys().simhash(3).build().unwrap(),
    )?;
    commits.acknowledge(vfs);
    let reader = Index::open_with(Arc::new(vfs.clone()), place())?;
    for left in (0..3).rev() {
        let index = Index::open_with(Arc::new(vfs.clone()), place())?;
        if read(&index.snapshot())? != documents {
            return Ok(()); // the disk lost commits, so a writer would continue from an earlier one
        }
        let options = WriterOptions::default().background_merges(false).logged(random.below(4) > 0);
        let mut writer = index.writer_with(options)?;
        for _ in 0..STEPS {
            change(&mut random, &mut writer, &mut documents)?;
            let is_weak = left > 0 && random.below(4) == 0;
            let durability = if is_weak { Durability::Batch } else { Durability::Sync };
            writer.set_options(writer.options().durability(durability))?;
            commits.states.push(documents.clone());
            if random.below(8) == 0 {
                writer.compact().map(drop)?;
            } else {
                writer.commit().map(drop)?;
            }
            commits.acknowledge(vfs);
            match random.below(8) {
                0 | 1 => writer.flush()?,
                2 => while writer.merge_step()? {},
                3 => drop(writer.gc()?),
                4 => writer.sync()?,
                _ => {}
            }
            if reader.refresh().is_ok() {
                let found = read(&reader.snapshot())?;
                assert!(
                    commits.states.contains(&found),
                    "a refreshed reader: {found:?} of {:?}",
                    commits.states
                );
            }
        }
        if left == 0 && seed.is_multiple_of(2) {
            std::mem::forget(writer);
        }
    }
    Ok(())
}

/// What follows from a write that was misdone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    Right,
    /// Reading the index is an error.
    Refused,
    /// Only `verify` finds the damage.
    Verified,
    /// The index is sound at the commit before the one with this number.
    Earlier(usize),
}

fn is_named(error: &Error) -> bool {
    matches!(error, Error::Corrupt { .. } | Error::Unsupported { .. } | Error::NotAnIndex { .. })
}

/// Returns the outcome for those who open the index, and the notes of `verify`.
fn outcome(disk: Disk, commits: &Commits, case: &str) -> (Outcome, Vec<String>) {
    let vfs = Arc::new(ModelVfs::of(disk));
    let findings = verify(&*vfs, place(), |_| ());
    let index = match Index::open_with(vfs.clone(), place()) {
        Ok(index) => index,
        Err(error) => {
            assert!(is_named(&error), "{case}: {error:?}");
            assert!(!findings.problems.is_empty(), "{case}: `verify` finds nothing, but {error}");
            return (Outcome::Refused, findings.notes);
        }
    };
    let found = match read(&index.snapshot()) {
        Ok(found) => found,
        Err(error) => {
            assert!(is_named(&error) && !findings.problems.is_empty(), "{case}: {error:?}");
            return (Outcome::Refused, findings.notes);
        }
    };
    let states = &commits.states[..commits.states.len().min(commits.acknowledged + 1)];
    let commit = states.iter().rposition(|state| *state == found);
    let commit = commit.unwrap_or_else(|| panic!("{case}: {found:?} after {states:?}"));
    if !findings.problems.is_empty() {
        return (Outcome::Verified, findings.notes);
    }
    // The next writer continues.
    let mut writer = index.writer().unwrap();
    let mut expected = found;
    writer.put(100, Fingerprint(100)).unwrap();
    expected.insert(100, 100);
    let continued = writer.commit().and_then(|_| writer.compact());
    assert!(continued.is_ok(), "{case}: {continued:?}");
    drop(writer);
    let index = Index::open_with(vfs, place()).unwrap();
    assert_eq!(read(&index.snapshot()).unwrap(), expected, "{case}");
    assert!(index.verify().problems.is_empty(), "{case}");
    let outcome =
        if commit + 1 < commits.acknowledged { Outcome::Earlier(commit + 1) } else { Outcome::Right };
    (outcome, findings.notes)
}

/// Returns the ways to misdo a change, with some of the places where its pages could land.
fn ways(random: &mut Random, changes: &[Change], number: usize, places: usize) -> Vec<Misdone> {
    let event = changes[number].event;
    let Some((inode, offset, length)) = changes[number].write else {
        return vec![Misdone { event, bytes: 0..0, fate: Fate::Lost }];
    };
    let mut ways = Vec::new();
    let mut start = 0;
    while start < length {
        let end = length.min((offset + start + 1).next_multiple_of(PAGE) - offset);
        let at = offset + start;
        let mut fates = vec![Fate::Lost, Fate::LostWithLength];
        for _ in 0..places {
            // A place that was written before, the same place of another file, or another page of this file.
            let other = changes[..number].iter().rev().filter_map(|change| change.write);
            let other = other.clone().nth(random.below(other.count().max(1)));
            let (file, place, _) = other.unwrap_or((inode, 0, 0));
            fates.push(match random.below(4) {
                0 | 1 => Fate::Misdirected(file, place),
                2 => Fate::Misdirected(file, at),
                _ => Fate::Misdirected(inode, (at % PAGE) + PAGE * random.below(at / PAGE + 3)),
            });
        }
        fates.retain(|&fate| fate != Fate::Misdirected(inode, at));
        fates.dedup();
        ways.extend(fates.into_iter().map(|fate| Misdone { event, bytes: start..end, fate }));
        start = end;
    }
    ways
}

/// Returns the kind of a file with this name.
fn kind(file: &str) -> &str {
    match file.rsplit_once('.') {
        Some((_, "seg")) => "segment",
        _ => file.split('-').next().unwrap(),
    }
}

/// The outcomes counted by kind of file, and by what was misdone.
type Counts = BTreeMap<(String, &'static str, &'static str), usize>;

/// Counts an outcome. Panics if the index is sound at an earlier commit, unless this change is one of those that cannot be
/// distinguished from a crash.
fn judge(
    counts: &mut Counts,
    changes: &[Change],
    number: usize,
    misdone: &Misdone,
    commits: &Commits,
    (outcome, notes): &(Outcome, Vec<String>),
    case: &str,
) {
    let change = &changes[number];
    if let Outcome::Earlier(commit) = *outcome {
        let is_of = |later: &Change, file: &Change| {
            later.file == file.file && later.write.is_some() == file.write.is_some()
        };
        // Whether the bytes of a write were lost or overwritten.
        let is_hit = |place: usize| match (misdone.fate, changes[place].write) {
            (Fate::Misdirected(inode, at), Some((file, offset, length))) if place < number => {
                file == inode && at < offset + length && offset < at + misdone.bytes.len()
            }
            _ => place == number,
        };
        // Whether each write of a log from this one on was hit, or was synced together with this one.
        let is_last_of_log = |place: usize| {
            let (lost, mut later) = (&changes[place], place + 1..changes.len());
            kind(&lost.file) == "LOG"
                && lost.write.is_some()
                && commit as u64 == lost.promised
                && later.all(|later| {
                    is_hit(later) || changes[later].syncs == lost.syncs || !is_of(&changes[later], lost)
                })
        };
        let is_current = kind(&change.file) == "CURRENT"
            && change.write.is_none()
            && !changes[number + 1..].iter().any(|later| is_of(later, change));
        // The first lost commit wrote the lost `CURRENT`. A later one without changes wrote nothing.
        let lost = &commits.states[commit..commits.acknowledged];
        let are_in_a_log = lost.iter().any(|state| *state != lost[0]);
        let is_noted = notes.iter().any(|note| note.contains("has later commits than CURRENT names"));
        assert!(
            (0..=number).any(|place| is_hit(place) && is_last_of_log(place))
                || is_current && (is_noted || !are_in_a_log),
            "{case}: {commit} without an error, {notes:?}"
        );
    }
    let what = match (&change.write, misdone.fate) {
        (None, _) => "name",
        (_, Fate::Misdirected(..)) => "misdirected",
        _ => "lost",
    };
    let outcome = match outcome {
        Outcome::Right => "right",
        Outcome::Refused => "refused",
        Outcome::Verified => "verified",
        Outcome::Earlier(_) => "earlier",
    };
    *counts.entry((kind(&change.file).into(), what, outcome)).or_default() += 1;
}

/// The number of histories, and of places where each page could land: more of both if `TWINDEX_CASES` is set.
fn effort() -> (u64, usize) {
    std::env::var("TWINDEX_CASES").map_or((6, 2), |cases| (cases.parse().expect("a number"), 8))
}

fn report(counts: &Counts) -> usize {
    for ((file, what, outcome), count) in counts {
        println!("{file:12} {what:12} {outcome:9} {count}");
    }
    counts.values().sum()
}

#[test]
fn misdone_write_is_found_by_the_next_process_or_harmless() {
    let (histories, places) = effort();
    let mut counts = Counts::new();
    for seed in 0..histories {
        let (vfs, mut commits) = (ModelVfs::default(), Commits::default());
        history(&vfs, seed, &mut commits).unwrap();
        let changes = vfs.changes();
        let mut random = Random(seed);
        for number in 0..changes.len() {
            for misdone in ways(&mut random, &changes, number, places) {
                let case = format!("history {seed}, {:?}, {misdone:?}", changes[number]);
                let found = outcome(vfs.misdone(&misdone), &commits, &case);
                judge(&mut counts, &changes, number, &misdone, &commits, &found, &case);
            }
        }
    }
    let cases = report(&counts);
    assert!(cases > 1000, "{cases}");
}

#[test]
fn misdone_write_is_found_by_the_process_itself_or_harmless() {
    let (histories, places) = effort();
    let mut counts = Counts::new();
    for seed in 0..histories {
        let vfs = ModelVfs::default();
        history(&vfs, seed, &mut Commits::default()).unwrap();
        let planned = vfs.changes();
        let mut random = Random(seed);
        for number in 0..planned.len() {
            let ways = ways(&mut random, &planned, number, places);
            for misdone in ways.into_iter().filter(|misdone| misdone.fate != Fate::LostWithLength) {
                let case = format!("history {seed}, {:?}, {misdone:?}", planned[number]);
                let (vfs, mut commits) = (ModelVfs::default().misdoing(misdone.clone()), Commits::default());
                let done = history(&vfs, seed, &mut commits);
                let case = format!("{case}: {done:?}");
                let found = outcome(vfs.disk(), &commits, &case);
                // The history may have ended early, or have taken another course.
                let changes = vfs.changes();
                judge(&mut counts, &changes, number, &misdone, &commits, &found, &case);
            }
        }
    }
    let cases = report(&counts);
    assert!(cases > 1000, "{cases}");
}
