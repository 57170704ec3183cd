//! Pairs of documents that share a band, verified by their signatures or by their texts.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, bail};
use twindex::join::{Candidates, Effort, Families, candidates, candidates_across, resembling_documents};
use twindex::store::snapshot::Place;
use twindex::{Index, KeyBuf, Resemblance, Snapshot};

use super::{Pairs, Verify};
use crate::texts::Texts;

/// Buckets of more members are not paired all with all.
const MAX_BUCKET: usize = 10_000;

/// Two documents, and how much they resemble each other.
pub(super) type Resembling = (KeyBuf, KeyBuf, Resemblance);

/// What was found.
pub(super) struct Found {
    /// Sorted.
    pub(super) pairs: Vec<Resembling>,
    pub(super) candidates: u64,
    pub(super) capped_buckets: u64,
}

/// One index, and its live documents: segment and ordinal.
struct Side<'a> {
    path: &'a Path,
    index: &'a Index,
    snapshot: &'a Snapshot,
    documents: Vec<(u32, u32)>,
}

impl<'a> Side<'a> {
    fn new(path: &'a Path, index: &'a Index, snapshot: &'a Snapshot) -> Self {
        let documents = (0..).zip(snapshot.segments()).flat_map(|(number, (segment, deleted))| {
            let live = (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal));
            live.map(move |ordinal| (number, ordinal))
        });
        Self { path, index, snapshot, documents: documents.collect() }
    }

    fn key(&self, document: u32) -> twindex::Result<KeyBuf> {
        let (segment, ordinal) = self.documents[document as usize];
        match self.snapshot.segments().nth(segment as usize) {
            Some((segment, _)) => segment.key(ordinal),
            None => unreachable!("a number that was given to a document of a segment"),
        }
    }
}

/// One index or two; documents of the second have the numbers behind those of the first.
struct Sides<'a> {
    left: Side<'a>,
    right: Option<Side<'a>>,
}

impl Sides<'_> {
    fn first_right(&self) -> u32 {
        self.left.documents.len() as u32
    }

    fn side(&self, document: u32) -> (&Side<'_>, u32) {
        match &self.right {
            Some(right) if document >= self.first_right() => (right, document - self.first_right()),
            _ => (&self.left, document),
        }
    }

    fn key(&self, document: u32) -> twindex::Result<KeyBuf> {
        let (side, document) = self.side(document);
        side.key(document)
    }

    fn candidates(&self, room: (&Path, usize)) -> twindex::Result<Candidates> {
        // Documents come in the order in which they were listed.
        let counter = |start: u32| {
            let mut next = start;
            move |_: Place<'_>| {
                next += 1;
                Ok(Some(next - 1))
            }
        };
        match &self.right {
            None => candidates(self.left.snapshot, MAX_BUCKET, room, counter(0)),
            Some(right) => candidates_across(
                (self.left.snapshot, right.snapshot),
                self.first_right(),
                MAX_BUCKET,
                room,
                counter(0),
                counter(self.first_right()),
            ),
        }
    }

    /// The names of a pair: of one index the smaller key first, of two that of the first index.
    fn ordered(&self, x: KeyBuf, y: KeyBuf, resemblance: Resemblance) -> Resembling {
        if self.right.is_none() && y < x { (y, x, resemblance) } else { (x, y, resemblance) }
    }
}

/// The pairs of one index, or across two, whose resemblance reaches `threshold`.
pub(super) fn find(
    args: &Pairs,
    threshold: f64,
    left: (&Index, &Snapshot),
    right: Option<(&Path, &Index, &Snapshot)>,
) -> anyhow::Result<Found> {
    let sides = Sides {
        left: Side::new(args.index()?, left.0, left.1),
        right: right.map(|(path, index, snapshot)| Side::new(path, index, snapshot)),
    };
    if let Some(right) = &sides.right {
        let same = left.1.params().check_same_sketch(right.snapshot.params());
        let left = args.index()?.display();
        same.with_context(|| format!("{}: cannot be compared with {left}", right.path.display()))?;
    }
    let scratch = tempfile::tempdir().context("cannot create a scratch folder")?;
    let memory = args.work.memory;
    let mut pairs = Vec::new();
    let mut count = 0;
    let found = match args.verify {
        Verify::Signature => {
            let effort =
                Effort { dir: scratch.path(), memory: memory / 4, threads: rayon::current_num_threads() };
            let (one, other) = (left.1, right.map(|(_, _, snapshot)| snapshot));
            let found =
                resembling_documents(one, other, threshold, MAX_BUCKET, effort, |a, b, resemblance| {
                    pairs.push(sides.ordered(a.key()?, b.key()?, resemblance));
                    anyhow::Ok(())
                })?;
            found.for_each_batch(|batch| {
                count += batch.len() as u64;
                anyhow::Ok(())
            })?;
            found
        }
        Verify::Exact => {
            let found = sides.candidates((scratch.path(), memory / 4))?;
            let (texts, numbers) = texts(args, &sides, &found, scratch.path())?;
            let mut families = Families::new(&texts.sets, memory / 4);
            let (mut of, mut both) = (Vec::new(), Vec::new());
            found.for_each_batch(|batch| {
                count += batch.len() as u64;
                of.clear();
                of.extend(batch.iter().map(|(a, b)| (numbers[a], numbers[b])));
                for (set, leader) in families.plan(&of, threshold) {
                    let difference = families.difference(set, leader)?;
                    families.add(difference);
                }
                for (&(a, b), sets) in batch.iter().zip(&of) {
                    both.clear();
                    families.for_each_resembling(&[*sets], threshold, |_, _, found| both.push(found))?;
                    for &resemblance in &both {
                        pairs.push(sides.ordered(sides.key(a)?, sides.key(b)?, resemblance));
                    }
                }
                anyhow::Ok(())
            })?;
            found
        }
    };
    pairs.sort_unstable_by(|x, y| (&x.0, &x.1).cmp(&(&y.0, &y.1)));
    Ok(Found { pairs, candidates: count, capped_buckets: found.capped_buckets })
}

/// Reads the texts of all documents that are in a candidate pair; returns their sets by number.
fn texts(
    args: &Pairs,
    sides: &Sides<'_>,
    found: &Candidates,
    scratch: &Path,
) -> anyhow::Result<(Texts, HashMap<u32, u32>)> {
    let mut needed: HashSet<u32> = HashSet::new();
    found.for_each_batch(|batch| {
        needed.extend(batch.iter().flat_map(|&(a, b)| [a, b]));
        anyhow::Ok(())
    })?;
    let mut needed: Vec<u32> = needed.into_iter().collect();
    needed.sort_unstable();
    let options = args.text_options();
    let mut texts = Texts::new(scratch, args.work.memory / 4);
    let mut numbers = HashMap::new();
    for (side, inputs) in [(Some(&sides.left), &args.texts), (sides.right.as_ref(), &args.with_texts)] {
        let Some(side) = side else { continue };
        let is_left = std::ptr::eq(side, &raw const sides.left);
        let mut keys: HashMap<Vec<u8>, u32> = HashMap::new();
        for &document in &needed {
            let (of, there) = sides.side(document);
            if std::ptr::eq(of, side) {
                match side.key(there)? {
                    KeyBuf::Bytes(key) => drop(keys.insert(key.into(), document)),
                    KeyBuf::U64(_) => bail!("{}: an index of numbers has no texts", side.path.display()),
                }
            }
        }
        let inputs = if !is_left && inputs.is_empty() { &args.texts } else { inputs };
        texts.forget();
        let about = (side.path, side.index, side.snapshot);
        texts.read(inputs, &options, about, args.output.quiet, |key| keys.contains_key(key))?;
        for (key, &document) in &keys {
            numbers.insert(document, texts.number(&KeyBuf::Bytes(key.as_slice().into()))?);
        }
    }
    Ok((texts, numbers))
}

/// Writes how much two documents resemble each other: the fraction if it was counted, or the standard error.
pub(super) fn write_resemblance(out: &mut impl Write, resemblance: Resemblance) -> io::Result<()> {
    write!(out, "\t{:.6}", resemblance.value())?;
    match resemblance {
        Resemblance::Exact { intersection, union } => write!(out, "\t{intersection}\t{union}"),
        Resemblance::Estimate { standard_error, .. } => write!(out, "\t{standard_error:.6}"),
    }
}
