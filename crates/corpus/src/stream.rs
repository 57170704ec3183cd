//! Decides whether a new document of a stream duplicates an earlier one, by two rules that [`Writer::admit`] lacks.
//!
//! [`Writer::admit`] compares a document by resemblance with all documents of the index. The first rule compares only
//! documents with the same value of a field. By the second rule, a document is a duplicate if another document of at
//! least its size contains a large enough share of its shingles. The command line and the Python module use this code.

use std::collections::{BTreeSet, HashMap, HashSet};

use twindex::params::KeyKind;
use twindex::sketch::Nearness;
use twindex::store::orphans::{MarkedDocument, MarkedNeighbours, nearest_leader};
use twindex::{Document, Error, Hit, Index, Key, KeyBuf, Params, Record, Result, Snapshot, Writer};
use twindex_join::{Containing, for_each_nested};
use xxhash_rust::xxh3::xxh3_128;
use zerocopy::IntoBytes;

/// The rules by which new documents are compared with the documents of the index.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct AdmitOptions {
    /// A document is a duplicate if another document contains at least this share of it, above 0 and at most 1. `None`
    /// compares by resemblance instead.
    pub containment: Option<f64>,
    /// Whether to compare only documents with the same [`Admitted::value`], for example the same language. The index
    /// must store the values.
    pub inside: bool,
    /// Whether duplicates are discarded instead of added. A document whose key is already in the index is always added
    /// and replaces the earlier version, even if it is a duplicate.
    pub drop_duplicates: bool,
    /// Memory budget in bytes for the inverted lists of shingle hashes. Unused without `containment`.
    pub memory: usize,
}

/// The decision about a new document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// No other document is near the document, so it was added.
    New,
    /// Another document is near the new document. With `drop_duplicates`, the new document was not added. Otherwise it
    /// was added, and marked as a duplicate if the index has marks.
    Duplicate,
    /// The index already had a document with this key, which the new document replaced.
    Known,
}

/// The decision about a new document, and the documents that led to it.
#[derive(Debug)]
pub struct Admission {
    /// The decision.
    pub outcome: Outcome,
    /// The nearest document of the index; `None` if no document is near.
    pub near: Option<NearDocument>,
    /// With containment: the keys of the earlier documents that the new document contains, each with the contained
    /// share of the earlier document. Empty if another document contains the new document.
    pub contained: Vec<(KeyBuf, f64)>,
}

/// A document of the index that is near the new document.
#[derive(Debug)]
pub struct NearDocument {
    /// The key of the document.
    pub key: KeyBuf,
    /// Number of bits in which the two fingerprints differ; `None` if fingerprints were not compared.
    pub distance: Option<u32>,
    /// The resemblance of the two documents or, with containment, the share of the new document that this document
    /// contains. `None` if neither was computed.
    pub share: Option<f64>,
}

impl From<Hit> for NearDocument {
    fn from(hit: Hit) -> Self {
        let share = hit.resemblance.map(|resemblance| resemblance.value());
        Self { key: hit.key, distance: hit.distance, share }
    }
}

/// A new document, with the data needed to compare it with the index.
#[derive(Clone, Copy, Debug)]
pub struct Admitted<'a> {
    /// The key of the document.
    pub key: Key<'a>,
    /// The document to add to the index. [`Admitter::admit`] sets its value and its duplicate mark.
    pub document: Document<'a>,
    /// The distinct hashes of the document's shingles, in ascending order.
    pub set: &'a [u64],
    /// The value of the document, for example its language. With [`AdmitOptions::inside`], the document is compared
    /// only with documents of the same value. Ignored otherwise.
    pub value: &'a [u8],
}

/// Compares new documents with an index and adds them, one at a time.
///
/// With containment, inverted lists in memory map each shingle hash to the documents that have it. They are built when
/// the admitter is created, so documents that other code adds later are not found. If the index has suffixes, the
/// documents that it then has are looked up in its files instead.
///
/// ```
/// use twindex::{Document, Index, Params};
/// use twindex_corpus::stream::{AdmitOptions, Admitted, Admitter, Outcome};
///
/// # let dir = tempfile::tempdir()?;
/// let params = Params::builder().words(1).minhash(20, 6).sets().marks().build()?;
/// let index = Index::create(dir.path().join("x"), params)?;
/// let (sketcher, mut writer) = (index.sketcher()?, index.writer()?);
/// let options = AdmitOptions { containment: Some(0.8), memory: 1 << 20, ..AdmitOptions::default() };
/// let mut admitter = Admitter::new(&index, options)?;
/// let mut admit = |key: &str, text: &str| {
///     let sketch = sketcher.sketch(text)?;
///     let document = Document::from(&sketch);
///     admitter.admit(&mut writer, Admitted { key: key.into(), document, set: sketch.set(), value: &[] })
/// };
/// assert_eq!(admit("part", "two three four five")?.outcome, Outcome::New);
/// let page = admit("page", "one two three four five six seven eight")?;
/// assert_eq!((page.outcome, page.contained.len()), (Outcome::New, 1), "it contains the part");
/// assert_eq!(admit("again", "three four five six zero")?.outcome, Outcome::Duplicate, "4 of 5 are in the page");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Admitter {
    is_inside: bool,
    drop_duplicates: bool,
    marks: bool,
    lists: Option<Lists>,
}

impl Admitter {
    /// Creates an admitter for `index`. With containment, reads the sets of all documents in an index without suffixes.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] if the index does not store the data that `options` need; the message says how to create an
    /// index that does. [`Error::Limit`] if the documents do not fit in the memory budget; [`Error::Corrupt`].
    pub fn new(index: &Index, options: AdmitOptions) -> Result<Self> {
        let params = index.params();
        check(&params, options)?;
        let lists = options
            .containment
            .map(|share| Lists::of(index, share, params.key, options.memory))
            .transpose()?;
        Ok(Self {
            is_inside: options.inside,
            drop_duplicates: options.drop_duplicates,
            marks: params.marks,
            lists,
        })
    }

    /// Returns the smallest contained share at which a document is a duplicate; `None` if documents are compared by
    /// resemblance.
    #[must_use]
    pub fn containment(&self) -> Option<f64> {
        self.lists.as_ref().map(|lists| lists.near.threshold())
    }

    /// Returns the number of documents in the lists that find containment; 0 without containment.
    #[must_use]
    pub fn listed(&self) -> usize {
        self.lists.as_ref().map_or(0, |lists| lists.sets.len())
    }

    /// Compares a document with the documents of the index and adds it to the index. With
    /// [`AdmitOptions::drop_duplicates`], a duplicate is not added, unless the index has a document with its key. As in
    /// [`Writer::admit`], a mark counts only while a live unmarked document is near; by containment, one that contains the
    /// marked document.
    ///
    /// # Errors
    ///
    /// The errors of [`Writer::admit`]. [`Error::Limit`] if the document does not fit in the memory budget; the index
    /// is then unchanged.
    pub fn admit(&mut self, writer: &mut Writer, one: Admitted<'_>) -> Result<Admission> {
        let one = if self.is_inside {
            Admitted { document: one.document.with_value(one.value), ..one }
        } else {
            one
        };
        let Some(lists) = &mut self.lists else { return admit_inside(writer, &one, self.drop_duplicates) };
        let value = self.is_inside.then_some(one.value);
        let is_known = writer.contains(one.key)?;
        let (mut near, mut contained) = lists.look(writer, &one, value)?;
        let mut orphan = None;
        if near.is_none() && self.marks && !(is_known && is_unmarked(writer, one.key)?) {
            near = lists.look_for_orphan(writer, &one, value)?;
            if let Some(near) = &near {
                contained.clear();
                orphan = Some(near.key.clone());
            }
        }
        let is_dropped = near.is_some() && !is_known && self.drop_duplicates;
        let is_marked = near.is_some() && self.marks;
        // Documents are added to the lists before the index, so that a document that exceeds the memory budget is not added
        // to the index.
        if !is_dropped {
            lists.push(one.key, one.set, is_marked)?;
        }
        if let Some(orphan) = &orphan {
            writer.unmark(orphan)?;
        }
        if !is_dropped {
            writer.put(one.key, if is_marked { one.document.as_duplicate() } else { one.document })?;
        }
        let outcome = match (is_known, &near) {
            (true, _) => Outcome::Known,
            (false, Some(_)) => Outcome::Duplicate,
            (false, None) => Outcome::New,
        };
        Ok(Admission { outcome, near, contained })
    }
}

/// Returns an error if the index does not store the data that the options need.
fn check(params: &Params, options: AdmitOptions) -> Result<()> {
    let asked = match (options.containment, options.inside) {
        (None, false) => {
            let why = "neither containment nor a value to compare inside of: Writer::admit is the step without them";
            return Err(Error::Invalid(why.into()));
        }
        (Some(_), _) => "containment",
        (None, true) => "what is near inside a value",
    };
    let why = if !params.sets {
        format!("{asked} is counted with sets of shingles alone: take an index that keeps sets")
    } else if params.expire_after.is_some() {
        format!("{asked} does not go with an index in which documents expire")
    } else if options.inside && !params.values {
        "this index keeps no values of documents, to compare inside of; make another one that does".to_owned()
    } else {
        return Ok(());
    };
    Err(Error::Invalid(why))
}

/// Admits a document by the relation of the writer, compared with documents of the same value.
fn admit_inside(writer: &mut Writer, one: &Admitted<'_>, drop_duplicates: bool) -> Result<Admission> {
    let options = writer.options();
    writer.set_options(options.drop_duplicates(drop_duplicates))?;
    let admitted = writer.admit_inside(one.key, one.document);
    writer.set_options(options)?;
    let (outcome, near) = match admitted? {
        twindex::Admitted::Duplicate(hit) => (Outcome::Duplicate, Some(hit)),
        twindex::Admitted::Known { near } => (Outcome::Known, Some(near)),
        twindex::Admitted::Updated => (Outcome::Known, None),
        _ => (Outcome::New, None),
    };
    Ok(Admission { outcome, near: near.map(NearDocument::from), contained: Vec::new() })
}

fn is_unmarked(writer: &mut Writer, key: Key<'_>) -> Result<bool> {
    Ok(writer.get(key)?.is_some_and(|record| !record.is_duplicate))
}

/// Inverted lists that map each shingle hash to the documents of an index.
///
/// A document that the lists find is looked up in the index, and its stored set is compared. A document that was
/// replaced or removed since the lists were built is therefore compared in its current state.
struct Lists {
    near: Nearness,
    sets: Containing,
    /// For each of `sets`, whether its document was marked as a duplicate when it was added.
    marked: Vec<bool>,
    /// The keys of the documents in `sets`, concatenated, and the end of each key. A numeric key takes 8 bytes.
    keys: Vec<u8>,
    ends: Vec<u64>,
    kind: KeyKind,
    keys_most: usize,
    /// The number in `sets` of each set of marked documents, by its hash. Equal sets of marked documents are listed once.
    numbers: HashMap<u128, u32>,
    /// The other marked documents with a set of marked documents, by its number.
    copies: HashMap<u32, BTreeSet<KeyBuf>>,
    /// Estimated bytes of `numbers` and `copies`.
    copies_bytes: usize,
    /// The state of an index with suffixes when the lists were created, whose documents are not in the lists.
    stored: Option<Snapshot>,
    /// A buffer for the elements of a stored set.
    elements: Vec<u64>,
}

/// A document that a lookup found: its key, and the number of its set in the lists, if it is there.
type Found = (KeyBuf, Option<u32>);

/// The documents that are sought: those that contain a set, or those that it contains.
#[derive(Clone, Copy, PartialEq)]
enum Sought {
    Containing,
    Contained,
}

/// Estimated bytes of an entry of a hash table or a tree, besides the bytes of a key.
const ENTRY_BYTES: usize = 64;

impl Lists {
    /// Builds the lists of an index. Returns an error if they need more than `memory` bytes.
    fn of(index: &Index, threshold: f64, kind: KeyKind, memory: usize) -> Result<Self> {
        let keys_most = memory / 8;
        let mut all = Self {
            near: Nearness::Containment(threshold),
            sets: Containing::new(threshold, memory - keys_most)?,
            marked: Vec::new(),
            keys: Vec::new(),
            ends: Vec::new(),
            kind,
            keys_most,
            numbers: HashMap::new(),
            copies: HashMap::new(),
            copies_bytes: 0,
            stored: None,
            elements: Vec::new(),
        };
        let snapshot = index.snapshot();
        if snapshot.params().suffixes {
            all.stored = Some(snapshot);
            return Ok(all);
        }
        let mut set = Vec::new();
        for (segment, deleted) in snapshot.segments() {
            for ordinal in (0..segment.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal)) {
                segment.set(ordinal, &mut set)?;
                all.push(segment.key(ordinal)?.as_key(), &set, segment.fields(ordinal)?.is_marked())?;
            }
        }
        snapshot.check_maps()?;
        Ok(all)
    }

    fn push(&mut self, key: Key<'_>, set: &[u64], is_marked: bool) -> Result<()> {
        let number;
        let bytes: &[u8] = match key {
            Key::Bytes(key) => key,
            Key::U64(key) => {
                number = key.to_le_bytes();
                &number
            }
        };
        let own = bytes.len() + if is_marked { ENTRY_BYTES } else { 0 };
        let keys = self.keys.len() + self.copies_bytes + own + size_of::<u64>() * (self.ends.len() + 1);
        if keys > self.keys_most {
            let (limit, found) = (self.keys_most as u64, keys as u64);
            return Err(Error::Limit { what: "bytes of memory for keys", limit, found });
        }
        if is_marked && let Some(&number) = self.numbers.get(&content(set)) {
            if self.key(number) != key && self.copies.entry(number).or_default().insert(key.to_buf()) {
                self.copies_bytes += own;
            }
            return Ok(());
        }
        let number = self.sets.push(set)?;
        if is_marked {
            self.numbers.insert(content(set), number);
            self.copies_bytes += ENTRY_BYTES;
        }
        self.marked.push(is_marked);
        self.keys.extend_from_slice(bytes);
        self.ends.push(self.keys.len() as u64);
        Ok(())
    }

    fn key(&self, number: u32) -> Key<'_> {
        let number = number as usize;
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        let bytes = &self.keys[start as usize..self.ends[number] as usize];
        match (self.kind, bytes.first_chunk()) {
            (KeyKind::U64, Some(number)) => Key::U64(u64::from_le_bytes(*number)),
            _ => Key::Bytes(bytes),
        }
    }

    /// Returns the document that contains the largest share of the new document, if this share reaches the threshold;
    /// of equal shares, the document with the smallest key. If there is none, returns the documents that the new
    /// document contains, sorted by key. With `value`, considers only documents with this value.
    fn look(
        &mut self,
        writer: &mut Writer,
        one: &Admitted<'_>,
        value: Option<&[u8]>,
    ) -> Result<(Option<NearDocument>, Contained)> {
        let mut nearest: Option<(usize, KeyBuf)> = None;
        for (key, _) in self.find(one.set, Sought::Containing, false)? {
            let Some(other) = deciding(writer, key.as_key(), one.key, value, false)? else { continue };
            let Some(shared) = self.near.shared(one.set, &other.set) else { continue };
            if nearest.as_ref().is_none_or(|(max, of)| shared > *max || shared == *max && key < *of) {
                nearest = Some((shared, key));
            }
        }
        if let Some((shared, key)) = nearest {
            return Ok((Some(near_document(key, shared, one)), Vec::new()));
        }
        let mut contained = Vec::new();
        for (key, _) in self.find(one.set, Sought::Contained, false)? {
            let Some(other) = deciding(writer, key.as_key(), one.key, value, false)? else { continue };
            if let Some(shared) = self.near.shared(&other.set, one.set) {
                contained.push((key, shared as f64 / other.set.len() as f64));
            }
        }
        contained.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        contained.dedup_by(|a, b| a.0 == b.0); // a document is found once for each version of it in the lists
        Ok((None, contained))
    }

    /// Returns the orphan that leads the new document, and lists it as unmarked; `None` if there is none. See
    /// [`orphans`](twindex::store::orphans).
    fn look_for_orphan(
        &mut self,
        writer: &mut Writer,
        one: &Admitted<'_>,
        value: Option<&[u8]>,
    ) -> Result<Option<NearDocument>> {
        let mut listed = ListedNeighbours { lists: self, writer, replaced: one.key, value };
        let mut found = listed.containing(one.set, true, true)?;
        found.sort_by_key(|&(shared, _)| std::cmp::Reverse(shared));
        let candidates = found.chunk_by(|a, b| a.0 == b.0);
        let candidates = candidates
            .map(|equally_near| equally_near.iter().map(|(_, (key, record))| marked(key, record)).collect());
        let Some(leader) = nearest_leader(candidates, &mut listed)? else { return Ok(None) };
        let set = writer.get(&leader)?.map(|record| record.set).unwrap_or_default();
        let shared = self.near.shared(one.set, &set).unwrap_or(0);
        self.push(leader.as_key(), &set, false)?;
        Ok(Some(near_document(leader, shared, one)))
    }

    /// Returns the documents that contain `set` or that it contains, and possibly others, of those that had this mark when
    /// they were listed or stored.
    fn find(&mut self, set: &[u64], sought: Sought, is_marked: bool) -> Result<Vec<Found>> {
        let numbers = match sought {
            Sought::Containing => self.sets.containing(set),
            Sought::Contained => self.sets.contained_in(set),
        };
        let marked = &self.marked;
        let numbers: Vec<u32> =
            numbers.iter().copied().filter(|&number| marked[number as usize] == is_marked).collect();
        let mut found: Vec<Found> =
            numbers.into_iter().map(|number| (self.key(number).to_buf(), Some(number))).collect();
        let segments = self.stored.iter().flat_map(Snapshot::segments);
        for (segment, deleted) in segments {
            for_each_nested((segment, deleted), set, self.near, &mut self.elements, |ordinal, _, size| {
                let is_sought = match sought {
                    Sought::Containing => size >= set.len(),
                    Sought::Contained => size <= set.len(),
                };
                if is_sought && segment.fields(ordinal)?.is_marked() == is_marked {
                    found.push((segment.key(ordinal)?, None));
                }
                Ok(())
            })?;
        }
        Ok(found)
    }
}

/// A document of the index: its key and its record.
type Stored = (KeyBuf, Record);

/// The documents of the lists, without the one that the new document replaces.
struct ListedNeighbours<'a> {
    lists: &'a mut Lists,
    writer: &'a mut Writer,
    replaced: Key<'a>,
    /// The value that documents must have; `None` for any value.
    value: Option<&'a [u8]>,
}

impl ListedNeighbours<'_> {
    /// Returns the documents that contain `set`, each with the number of elements that it shares with `set`. With
    /// `is_one_enough`, returns only one of several marked documents with the same set.
    fn containing(
        &mut self,
        set: &[u64],
        is_marked: bool,
        is_one_enough: bool,
    ) -> Result<Vec<(usize, Stored)>> {
        let Self { lists, writer, replaced, value } = self;
        let mut all = Vec::new();
        let mut contents = HashSet::new();
        for (key, number) in lists.find(set, Sought::Containing, is_marked)? {
            let copies = number.and_then(|number| lists.copies.get(&number)).into_iter().flatten();
            for key in std::iter::once(&key).chain(copies) {
                let Some(other) = deciding(writer, key.as_key(), *replaced, *value, is_marked)? else {
                    continue;
                };
                let Some(shared) = lists.near.shared(set, &other.set) else { continue };
                if is_one_enough && !contents.insert(content(&other.set)) {
                    continue;
                }
                all.push((shared, (key.clone(), other)));
                if is_one_enough {
                    break;
                }
            }
        }
        Ok(all)
    }

    fn set(&mut self, of: &KeyBuf) -> Result<Vec<u64>> {
        Ok(self.writer.get(of)?.map(|record| record.set).unwrap_or_default())
    }
}

impl MarkedNeighbours for ListedNeighbours<'_> {
    fn has_leader(&mut self, of: &KeyBuf) -> Result<bool> {
        let set = self.set(of)?;
        Ok(!self.containing(&set, false, true)?.is_empty())
    }

    fn marked(&mut self, of: &KeyBuf) -> Result<Vec<MarkedDocument>> {
        let set = self.set(of)?;
        let found = self.containing(&set, true, false)?;
        Ok(found.iter().map(|(_, (key, record))| marked(key, record)).collect())
    }
}

fn marked(key: &KeyBuf, record: &Record) -> MarkedDocument {
    MarkedDocument { key: key.clone(), priority: record.priority, content: content(&record.set) }
}

/// Returns a hash of the data that decides which documents contain a document.
fn content(set: &[u64]) -> u128 {
    xxh3_128(set.as_bytes())
}

fn near_document(key: KeyBuf, shared: usize, one: &Admitted<'_>) -> NearDocument {
    NearDocument { key, distance: None, share: Some(shared as f64 / one.set.len() as f64) }
}

/// The keys of the documents that the new document contains, each with the contained share.
type Contained = Vec<(KeyBuf, f64)>;

/// Returns the record of the document with this key. Returns `None` if no such document exists, if it has another mark than
/// `is_marked`, is the document that the new one replaces, or has a value other than `value`.
fn deciding(
    writer: &mut Writer,
    key: Key<'_>,
    replaced: Key<'_>,
    value: Option<&[u8]>,
    is_marked: bool,
) -> Result<Option<Record>> {
    if key == replaced {
        return Ok(None);
    }
    let record = writer.get(key)?;
    Ok(record.filter(|record| {
        record.is_duplicate == is_marked
            && value.is_none_or(|value| record.value.as_deref().unwrap_or_default() == value)
    }))
}
