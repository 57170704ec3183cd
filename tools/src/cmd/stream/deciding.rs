//! What becomes of a document of a stream: by the index alone, inside a value of a field, or by containment.

use std::path::Path;

use anyhow::{Context, bail};
use twindex::sketch::Nearness;
use twindex::{Admitted, Document, Error, Hit, Index, Key, KeyBuf, Writer};
use twindex_corpus::sketching::{Sketched, refused};
use twindex_join::Containing;

use crate::attached_args::AttachedArgs;

/// What a line says of a document.
pub(super) struct Outcome {
    pub(super) fate: Fate,
    /// The nearest other document, if one is near.
    pub(super) near: Option<NearTo>,
    /// Earlier documents that this one contains, and how much of each.
    pub(super) contained: Vec<(KeyBuf, f64)>,
}

/// What became of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    New,
    Duplicate,
    Known,
    Expired,
}

/// A document that another one is near.
pub(super) struct NearTo {
    pub(super) key: KeyBuf,
    pub(super) distance: Option<u32>,
    /// The resemblance; or how much of the document that one contains.
    pub(super) share: Option<f64>,
}

impl From<Hit> for NearTo {
    fn from(hit: Hit) -> Self {
        let share = hit.resemblance.map(|resemblance| resemblance.value());
        Self { key: hit.key, distance: hit.distance, share }
    }
}

impl From<Admitted> for Outcome {
    fn from(admitted: Admitted) -> Self {
        let (fate, near) = match admitted {
            Admitted::Duplicate(hit) => (Fate::Duplicate, Some(hit)),
            Admitted::Known { near } => (Fate::Known, Some(near)),
            Admitted::Updated => (Fate::Known, None),
            Admitted::Expired => (Fate::Expired, None),
            _ => (Fate::New, None),
        };
        Self { fate, near: near.map(NearTo::from), contained: Vec::new() }
    }
}

/// Decides on documents that are compared only with those of the same value, or by containment, where that was asked for.
pub(super) struct Deciding<'a> {
    attached: &'a AttachedArgs,
    /// Whether documents are compared inside a value, which the index keeps.
    is_inside: bool,
    drop_duplicates: bool,
    marks: bool,
    contained: Option<Contained>,
}

/// What the options say of it.
#[derive(Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(super) struct Asked {
    /// The share of a document from which on another one contains it, if that decides.
    pub(super) containment: Option<f64>,
    pub(super) is_inside: bool,
    /// Whether resemblance is counted with sets, and nothing else decides.
    pub(super) counts_sets: bool,
    pub(super) groups: bool,
    pub(super) drop_duplicates: bool,
}

impl<'a> Deciding<'a> {
    /// For documents that are added to this index. Takes `memory` bytes where containment decides.
    ///
    /// # Errors
    ///
    /// The index does not keep what that takes, or options do not go together; documents do not fit the memory.
    pub(super) fn of(
        index: &Index,
        path: &Path,
        asked: Asked,
        attached: &'a AttachedArgs,
        memory: usize,
    ) -> anyhow::Result<Self> {
        let (params, shown) = (index.params(), path.display());
        let Asked { containment, is_inside, counts_sets, groups, drop_duplicates } = asked;
        if containment.is_some() || is_inside {
            let option = if containment.is_some() { "--near containment" } else { "--inside" };
            if !counts_sets || !params.sets {
                bail!(
                    "{shown}: {option} counts with sets of shingles alone: leave out --verify and --within, name --threshold, \
                     and take an index that keeps sets"
                );
            }
            if groups {
                bail!("--groups does not go with {option}: groups are by the resemblance that the index has");
            }
            if params.expire_after.is_some() {
                bail!("{shown}: {option} does not go with an index in which documents expire");
            }
        }
        if is_inside && !params.values {
            bail!("{shown}: this index keeps no values of documents, for --inside; make another one with it");
        }
        let contained = containment.map(|share| Contained::of(index, path, share, memory)).transpose()?;
        Ok(Self { attached, is_inside, drop_duplicates, marks: params.marks, contained })
    }

    /// The share of a document from which on another one contains it, if that decides.
    pub(super) fn containment(&self) -> Option<f64> {
        self.contained.as_ref().map(|contained| contained.near.threshold())
    }

    /// Whether it is not what [`Writer::admit`] does.
    pub(super) fn is_own(&self) -> bool {
        self.is_inside || self.contained.is_some()
    }

    /// The document, with its value where it is compared inside that.
    pub(super) fn document<'d>(&self, one: &'d Sketched) -> Document<'d> {
        let document = self.attached.document(one);
        if self.is_inside { document.with_value(value(one)) } else { document }
    }

    /// Looks a document up and adds it, as [`Writer::admit`] does.
    pub(super) fn admit(&mut self, writer: &mut Writer, one: &Sketched) -> anyhow::Result<Outcome> {
        let key = Key::Bytes(&one.key);
        let value = self.is_inside.then(|| value(one));
        let is_known = writer.contains(key)?;
        let (near, contained) = match &mut self.contained {
            Some(contained) => contained.look(writer, one, value)?,
            None => (self.near_inside(writer, one, value)?, Vec::new()),
        };
        if near.is_some() && !is_known && self.drop_duplicates {
            return Ok(Outcome { fate: Fate::Duplicate, near, contained });
        }
        let is_marked = near.is_some() && self.marks;
        let document = self.document(one);
        // What has a mark decides about nothing. The elements come first: if they do not fit, the document is not there either.
        if let Some(contained) = self.contained.as_mut().filter(|_| !is_marked) {
            contained.push(&one.key, one.sketch.set())?;
        }
        let put = writer.put(key, if is_marked { document.as_duplicate() } else { document });
        put.map_err(|error| refused(&one.place, "cannot admit the document", error))?;
        let fate = match (is_known, &near) {
            (true, _) => Fate::Known,
            (false, Some(_)) => Fate::Duplicate,
            (false, None) => Fate::New,
        };
        Ok(Outcome { fate, near, contained })
    }

    /// The nearest document of the same value.
    fn near_inside(
        &self,
        writer: &mut Writer,
        one: &Sketched,
        value: Option<&[u8]>,
    ) -> twindex::Result<Option<NearTo>> {
        for hit in writer.near(self.document(one), usize::MAX)? {
            if hit.key.as_key() != Key::Bytes(&one.key)
                && writer.get(&hit.key)?.is_some_and(|record| Some(&*record.value) == value)
            {
                return Ok(Some(hit.into()));
            }
        }
        Ok(None)
    }
}

/// The value of a document that is compared inside one.
fn value(one: &Sketched) -> &[u8] {
    &one.attached.deciding().inside
}

/// The documents of an index without a mark, by the elements of their sets, for one run.
///
/// What is found is looked up in the index and counted on its set there, so that a document that was replaced or removed
/// meanwhile decides as what it is.
struct Contained {
    near: Nearness,
    sets: Containing,
    /// The keys of the sets, one after the other, and where each ends.
    keys: Vec<u8>,
    ends: Vec<u64>,
    keys_most: usize,
    /// Numbers of what was found, which are checked while more is looked up.
    found: Vec<u32>,
}

impl Contained {
    /// Of the documents that are in the index. Takes `memory` bytes.
    fn of(index: &Index, path: &Path, threshold: f64, memory: usize) -> anyhow::Result<Self> {
        let keys_most = memory / 8;
        let mut all = Self {
            near: Nearness::Containment(threshold),
            sets: Containing::new(threshold, memory - keys_most)?,
            keys: Vec::new(),
            ends: Vec::new(),
            keys_most,
            found: Vec::new(),
        };
        let snapshot = index.snapshot();
        let mut set = Vec::new();
        for (segment, deleted) in snapshot.segments() {
            for ordinal in (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal)) {
                if segment.fields(ordinal)?.is_marked() {
                    continue;
                }
                segment.set(ordinal, &mut set)?;
                let key = segment.key(ordinal)?;
                all.push(key.as_bytes().unwrap_or_default(), &set)
                    .with_context(|| path.display().to_string())?;
            }
        }
        snapshot.check_maps()?;
        Ok(all)
    }

    fn push(&mut self, key: &[u8], set: &[u64]) -> anyhow::Result<()> {
        let documents = self.sets.len();
        let too_many = || {
            format!(
                "--near containment: the elements of {documents} documents fill the share of --memory that they have, and an index \
                 by all elements is made for a run alone; give more --memory, or take files one at a time with `dedup \
                 --near containment --against`"
            )
        };
        let keys = self.keys.len() + key.len() + size_of::<u64>() * (self.ends.len() + 1);
        if keys > self.keys_most {
            let (limit, found) = (self.keys_most as u64, keys as u64);
            return Err(Error::Limit { what: "bytes of memory for keys", limit, found })
                .with_context(too_many);
        }
        self.sets.push(set).with_context(too_many)?;
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len() as u64);
        Ok(())
    }

    fn key(&self, number: u32) -> &[u8] {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.keys[start as usize..self.ends[number] as usize]
    }

    /// The document that contains most of this one, of equal ones that of the smallest key, if it contains enough; otherwise
    /// those that this one contains, by their keys. Only those of this value, if there is one.
    fn look(&mut self, writer: &mut Writer, one: &Sketched, value: Option<&[u8]>) -> anyhow::Result<Found> {
        let set = one.sketch.set();
        self.found.clear();
        self.found.extend_from_slice(self.sets.containing(set));
        let mut nearest: Option<(usize, &[u8])> = None;
        for &number in &self.found {
            let key = self.key(number);
            let Some(other) = deciding(writer, key, one, value)? else { continue };
            let Some(shared) = self.near.shared(set, &other) else { continue };
            if nearest.is_none_or(|(most, of)| shared > most || shared == most && key < of) {
                nearest = Some((shared, key));
            }
        }
        if let Some((shared, key)) = nearest {
            let share = Some(shared as f64 / set.len() as f64);
            return Ok((Some(NearTo { key: Key::Bytes(key).to_buf(), distance: None, share }), Vec::new()));
        }
        self.found.clear();
        self.found.extend_from_slice(self.sets.contained_in(set));
        let mut contained = Vec::new();
        for &number in &self.found {
            let key = self.key(number);
            let Some(other) = deciding(writer, key, one, value)? else { continue };
            if let Some(shared) = self.near.shared(&other, set) {
                contained.push((Key::Bytes(key).to_buf(), shared as f64 / other.len() as f64));
            }
        }
        contained.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        contained.dedup_by(|a, b| a.0 == b.0); // once for each version of a document
        Ok((None, contained))
    }
}

/// What contains a document, and earlier ones that it contains, with how much of each.
type Found = (Option<NearTo>, Vec<(KeyBuf, f64)>);

/// The set of the document with this key, if it is there, has no mark, is another one, and is of this value.
fn deciding(
    writer: &mut Writer,
    key: &[u8],
    one: &Sketched,
    value: Option<&[u8]>,
) -> twindex::Result<Option<Vec<u64>>> {
    if key == one.key {
        return Ok(None);
    }
    let record = writer.get(key)?;
    let record =
        record.filter(|record| !record.is_duplicate && value.is_none_or(|value| record.value == value));
    Ok(record.map(|record| record.set))
}
