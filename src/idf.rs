//! Counts document frequencies in bounded memory, and encodes the resulting table.

use std::cmp::{Ordering, Reverse};
use std::path::{Path, PathBuf};

use twindex_sketch::{IdfTable, params::Shingling};

use crate::error::{Error, Result};
use crate::extsort::{NumberCount, RunReader, Runs, WordRecord, combine};
use crate::format::header::Refusal;
use crate::format::idf::{self, IDF_DOCUMENTS_MAX, IDF_ENTRIES_MAX};

/// Decodes a table from the bytes of its file. To open a file by its path, use [`read`](crate::store::idf::read), whose
/// errors contain the path.
///
/// # Errors
/// A [`Refusal`] if [`to_bytes`] of this version cannot have written the bytes.
pub fn from_bytes(bytes: &[u8]) -> std::result::Result<IdfTable, Refusal> {
    idf::decode(bytes)?.table()
}

/// Returns the size of a table's file in bytes, computed without encoding the table.
#[must_use]
pub fn file_bytes(table: &IdfTable) -> u64 {
    idf::length(table.shingling().encode().len() as u64, table.len() as u64)
}

/// Encodes a table as the bytes of its file, as `format-spec.md` defines it.
#[must_use]
pub fn to_bytes(table: &IdfTable) -> Vec<u8> {
    let (hashes, frequencies) = table.columns();
    idf::encode(table.documents(), table.absent(), table.shingling(), hashes, frequencies)
}

/// Counts the documents that contain each shingle, and builds an [`IdfTable`].
///
/// The table depends only on the set of documents, not on their order or on [`memory`](Self::memory).
///
/// Shingles are collected up to an eighth of the memory budget, then sorted and counted. When the counts exceed a
/// quarter of the budget, they are written to a scratch file as a *run*. Every 64 runs are merged into a longer run,
/// and all remaining runs at the end. For n pairs of a document and a distinct shingle of it, counting takes O(n log n)
/// time and at most 12 bytes of scratch space for each pair, up to twice as much while runs are merged. In addition to
/// the budget, the builder needs 32 bytes of memory for each entry of the table.
#[derive(Debug)]
pub struct IdfBuilder {
    shingling: Shingling,
    min_df: u32,
    entries_max: usize,
    memory: usize,
    scratch_dir: PathBuf,
    documents: u64,
    /// Shingles that were added but not counted yet; a shingle is repeated for each document that contains it.
    fresh: Vec<u64>,
    /// Shingles with their document frequencies, ascending by shingle.
    counted: Vec<NumberCount>,
    /// Counts moved to scratch files; `None` before the first run.
    runs: Option<Runs<NumberCount>>,
    distinct: Vec<u64>,
    /// Whether an operation on a scratch file failed, so that some counts are lost.
    failed: bool,
}

/// The number of runs that are merged into a longer run.
const FAN_IN: usize = 64;
/// The minimum memory budget, in bytes.
const MEMORY_MIN: usize = 1 << 12;

/// The operation in the error messages of scratch files.
const USE: &str = "use a scratch file in";

impl IdfBuilder {
    /// Creates a builder for documents that are split into shingles by `shingling`. By default, it omits shingles that
    /// occur in a single document, keeps the million most frequent shingles, and has a memory budget of 256 MiB.
    #[must_use]
    pub fn new(shingling: &Shingling) -> Self {
        Self {
            shingling: shingling.clone(),
            min_df: 2,
            entries_max: 1_000_000,
            memory: 256 << 20,
            scratch_dir: std::env::temp_dir(),
            documents: 0,
            fresh: Vec::new(),
            counted: Vec::new(),
            runs: None,
            distinct: Vec::new(),
            failed: false,
        }
    }

    /// Omits shingles that occur in fewer than `min_df` documents (default 2).
    #[must_use]
    pub fn min_df(mut self, min_df: u32) -> Self {
        self.min_df = min_df;
        self
    }

    /// Keeps at most this number of entries (default 1,000,000): the shingles with the greatest frequencies and, among
    /// equal frequencies, the smallest hashes. Numbers above 2^27, the limit of the format, are treated as 2^27.
    #[must_use]
    pub fn entries_max(mut self, entries: usize) -> Self {
        self.entries_max = entries.min(IDF_ENTRIES_MAX as usize);
        self
    }

    /// Sets the memory budget for counting, in bytes (default 256 MiB). Budgets below 4 KiB are treated as 4 KiB. A larger
    /// budget needs fewer merges.
    #[must_use]
    pub fn memory(mut self, bytes: usize) -> Self {
        self.memory = bytes.max(MEMORY_MIN);
        self
    }

    /// Sets the folder for scratch files (default: the system's folder for temporary files). The files have no name and are
    /// removed when the process ends.
    #[must_use]
    pub fn scratch_dir(mut self, dir: &Path) -> Self {
        dir.clone_into(&mut self.scratch_dir);
        self
    }

    /// Adds a document, given its shingles in any order. Repeated shingles are counted once. Shingles that are already
    /// ascending and distinct, such as the output of [`Shingler::distinct`](twindex_sketch::Shingler::distinct), are
    /// not sorted again. A document without shingles is ignored.
    ///
    /// # Errors
    /// [`Error::Limit`] for more than 2^32 - 1 documents, [`Error::Io`] if a scratch file fails. After an error of a scratch
    /// file some counts are lost, and every later call returns [`Error::Invalid`].
    pub fn add(&mut self, shingles: &[u64]) -> Result<()> {
        self.check_whole()?;
        if shingles.is_empty() {
            return Ok(());
        }
        if self.documents == IDF_DOCUMENTS_MAX {
            let (limit, found) = (IDF_DOCUMENTS_MAX, IDF_DOCUMENTS_MAX + 1);
            return Err(Error::Limit { what: "documents of an idf table", limit, found });
        }
        self.documents += 1;
        let mut distinct = std::mem::take(&mut self.distinct);
        let ascending = shingles.is_sorted_by(|a, b| a < b);
        if !ascending {
            distinct.clear();
            distinct.extend_from_slice(shingles);
            distinct.sort_unstable();
            distinct.dedup();
        }
        let mut rest = if ascending { shingles } else { &distinct };
        // The memory budget is divided into an eighth for shingles not counted yet, a quarter for earlier counts, and a
        // half for the counts after merging. An entry of a count is twice as large as a shingle.
        let mut taken = Ok(());
        while !rest.is_empty() && taken.is_ok() {
            let free = (self.memory / 8 / size_of::<u64>()).saturating_sub(self.fresh.len()).max(1);
            let (now, later) = rest.split_at(free.min(rest.len()));
            self.fresh.extend_from_slice(now);
            rest = later;
            if now.len() == free {
                taken = self.count();
            }
        }
        self.distinct = distinct;
        taken
    }

    fn check_whole(&self) -> Result<()> {
        if self.failed {
            let dir = self.scratch_dir.display();
            return Err(Error::Invalid(format!(
                "the counts of an idf table were lost with a scratch file in {dir}; count the documents again"
            )));
        }
        Ok(())
    }

    /// Counts the collected shingles, and writes a run if the counts exceed a quarter of the memory.
    fn count(&mut self) -> Result<()> {
        let counted = self.try_count();
        self.failed |= counted.is_err();
        counted
    }

    fn try_count(&mut self) -> Result<()> {
        self.fresh.sort_unstable();
        let equal = self.fresh.chunk_by(|a, b| a == b);
        let mut new =
            equal.map(|equal| NumberCount { number: equal[0], count: equal.len() as u32 }).peekable(); // at most `documents` items
        let mut old = self.counted.iter().copied().peekable();
        let mut merged = Vec::with_capacity(self.counted.len() + self.fresh.len());
        while let (Some(&a), Some(&b)) = (old.peek(), new.peek()) {
            merged.push(match a.number.cmp(&b.number) {
                Ordering::Less => a,
                Ordering::Greater => b,
                Ordering::Equal => NumberCount { number: a.number, count: a.count + b.count },
            });
            if a.number <= b.number {
                old.next();
            }
            if b.number <= a.number {
                new.next();
            }
        }
        merged.extend(old);
        merged.extend(new);
        self.counted = merged;
        self.fresh.clear();
        if self.counted.len() * size_of::<NumberCount>() > self.memory / 4 {
            let words = WordRecord { create: USE, write: USE, read: USE };
            let new = || Runs::new(&self.scratch_dir, words, FAN_IN, self.memory / 4);
            let runs = self.runs.get_or_insert_with(new);
            self.counted.iter().try_for_each(|counted| runs.put(counted))?;
            self.counted = Vec::new();
            runs.end_run()?;
        }
        Ok(())
    }

    /// Merges all counts and builds the table.
    ///
    /// # Errors
    /// [`Error::Io`] if a scratch file fails now, [`Error::Invalid`] if a scratch file failed earlier.
    pub fn finish(mut self) -> Result<IdfTable> {
        self.check_whole()?;
        self.count()?;
        self.fresh = Vec::new();
        let mut kept = KeptEntries { entries: Vec::new(), max: self.entries_max, dropped: None };
        let min_df = self.min_df;
        let held = RunReader::Held(self.counted.iter());
        let spilled = self.runs.iter().flat_map(Runs::readers).map(RunReader::Spilled);
        combine(spilled.chain([held]), |NumberCount { number, count }| {
            if count < min_df {
                kept.drop(count);
            } else {
                kept.push(number, count);
            }
            Ok::<(), Error>(())
        })?;
        kept.prune();
        let absent = kept.dropped.unwrap_or(0);
        let mut entries = kept.entries;
        entries.sort_unstable_by_key(|entry| entry.0);
        let (hashes, frequencies): (Vec<u64>, Vec<u32>) = entries.into_iter().unzip();
        let documents = self.documents as u32;
        // The encoded bytes are dropped before the table allocates its memory.
        let digest = idf::digest(&idf::encode(documents, absent, &self.shingling, &hashes, &frequencies));
        Ok(IdfTable::new(digest, documents, absent, self.shingling, hashes, frequencies)?)
    }
}

/// Collects the entries with the greatest frequencies.
struct KeptEntries {
    entries: Vec<(u64, u32)>,
    max: usize,
    /// The smallest frequency of a dropped entry; `None` if no entry was dropped.
    dropped: Option<u32>,
}

impl KeptEntries {
    fn drop(&mut self, frequency: u32) {
        self.dropped = Some(self.dropped.map_or(frequency, |min| min.min(frequency)));
    }

    fn push(&mut self, hash: u64, frequency: u32) {
        self.entries.push((hash, frequency));
        if self.entries.len() >= 2 * self.max + 1024 {
            self.prune();
        }
    }

    /// Keeps the `max` entries with the greatest frequencies and, among equal frequencies, the smallest hashes. Pruning
    /// before the end does not change the result: an entry dropped now would also be dropped later.
    fn prune(&mut self) {
        if self.entries.len() <= self.max {
            return;
        }
        self.entries.select_nth_unstable_by_key(self.max, |&(hash, frequency)| (Reverse(frequency), hash));
        for (_, frequency) in self.entries.split_off(self.max) {
            self.drop(frequency);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use twindex_sketch::hash::mix;
    use twindex_sketch::idf::weight;
    use twindex_sketch::{Scratch, Sketch, Sketcher, weighted};

    use super::*;
    use crate::params::{Params, SimhashWeights, Tokens};

    type Counts = BTreeMap<u64, u32>;

    /// The reference implementation. Returns the kept entries and the smallest frequency of a dropped entry (0 if
    /// none).
    fn naive(documents: &[Vec<u64>], min_df: u32, max: usize) -> (Vec<(u64, u32)>, u32) {
        let mut counts = Counts::new();
        for document in documents {
            for &shingle in &std::collections::BTreeSet::from_iter(document) {
                *counts.entry(*shingle).or_default() += 1;
            }
        }
        let mut ranked: Vec<(u64, u32)> = counts.into_iter().collect();
        ranked.sort_by_key(|&(hash, df)| (Reverse(df), hash));
        let keep = ranked.iter().take(max).filter(|entry| entry.1 >= min_df).count();
        let dropped = ranked.split_off(keep).into_iter().map(|entry| entry.1).min().unwrap_or(0);
        ranked.sort_unstable();
        (ranked, dropped)
    }

    fn table(documents: &[Vec<u64>], change: impl FnOnce(IdfBuilder) -> IdfBuilder) -> IdfTable {
        let mut builder = change(IdfBuilder::new(&Shingling::words(1, 0)));
        for document in documents {
            builder.add(document).unwrap();
        }
        builder.finish().unwrap()
    }

    proptest! {
        #[test]
        fn table_equals_naive_counts_for_any_order_and_memory_budget(
            documents in proptest::collection::vec(proptest::collection::vec(0_u64..40, 0..30), 0..30),
            min_df in 0_u32..4, max in 0_usize..50, turn in 0_usize..30,
        ) {
            let documents: Vec<Vec<u64>> =
                documents.into_iter().map(|d| d.into_iter().map(|i| mix(i * i % 97)).collect()).collect();
            let found = table(&documents, |b| b.min_df(min_df).entries_max(max));
            let (entries, dropped) = naive(&documents, min_df, max);
            prop_assert_eq!(found.iter().collect::<Vec<_>>(), entries.clone());
            prop_assert_eq!(found.absent(), dropped);
            prop_assert_eq!(found.documents() as usize, documents.iter().filter(|d| !d.is_empty()).count());
            for i in 0..97 {
                let df = entries.iter().find(|entry| entry.0 == mix(i)).map_or(dropped, |entry| entry.1);
                prop_assert_eq!(found.weight(mix(i)), weight(found.documents(), df));
            }
            let mut turned = documents;
            let turn = turn % turned.len().max(1);
            turned.rotate_left(turn);
            for document in &mut turned {
                document.sort_unstable();
                document.dedup();
            }
            let again = table(&turned, |b| b.min_df(min_df).entries_max(max).memory(0));
            prop_assert_eq!(to_bytes(&again), to_bytes(&found));
            prop_assert_eq!(file_bytes(&found), to_bytes(&found).len() as u64);
        }
    }

    /// With a budget of 4 KiB, a run has at least 64 entries. Every 64 runs are merged into one run of the next level,
    /// and the documents fill at least two levels.
    #[test]
    fn merging_several_levels_of_runs_gives_the_in_memory_table() {
        let documents: Vec<Vec<u64>> =
            (0..900).map(|i| (0..=i % 700).map(|j| mix((i * 31 + j * j * 7) % 90_000)).collect()).collect();
        let in_memory = table(&documents, |b| b.entries_max(20_000));
        assert!(in_memory.len() > 10_000);
        let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).entries_max(20_000).memory(0);
        for document in documents.iter().rev() {
            builder.add(document).unwrap();
        }
        let levels = builder.runs.as_ref().map_or(0, Runs::levels);
        assert!(levels >= 2, "{levels} levels");
        assert!(builder.fresh.capacity() * 8 + builder.counted.capacity() * 16 <= MEMORY_MIN);
        assert_eq!(builder.finish().unwrap(), in_memory);
        assert_eq!(in_memory.iter().collect::<Vec<_>>(), naive(&documents, 2, 20_000).0);
    }

    #[test]
    fn missing_scratch_folder_is_reported_with_its_path() {
        let mut builder =
            IdfBuilder::new(&Shingling::words(1, 0)).memory(0).scratch_dir(Path::new("no/such/folder"));
        let many: Vec<u64> = (0..10_000).map(mix).collect();
        let error = builder.add(&many).unwrap_err().to_string();
        assert!(error.contains("no/such/folder"), "{error}");
    }

    /// Looks up hashes with equal prefixes, and hashes that differ from an entry of the table in one bit or by one.
    #[test]
    fn lookups_find_hashes_with_equal_prefixes() {
        for crowd in [1_u64, 4, 5, 6, 100, 3000] {
            let all: Vec<u64> = (0..crowd)
                .flat_map(|i| [i, i << 48, (7 << 48) | (i * 3), u64::MAX - i, mix(i), (8 << 48) | (i * 3)])
                .collect();
            // Two more documents contain every other hash, so half of the hashes have a greater weight than the others.
            let half: Vec<u64> = all.iter().copied().step_by(2).collect();
            let found = table(&[all.clone(), half.clone(), half.clone()], |b| b.min_df(1));
            let df = |hash: u64| u32::from(all.contains(&hash)) + 2 * u32::from(half.contains(&hash));
            let near = all.iter().flat_map(|&h| [h, h ^ 1, h ^ 1 << 48, h ^ 1 << 63, h.wrapping_add(1)]);
            for hash in near {
                assert_eq!(found.weight(hash), weight(3, df(hash)), "{hash:016x} among {crowd}");
            }
        }
    }

    fn with_table(table: &Arc<IdfTable>) -> Result<Sketcher> {
        let builder = Params::builder().shingling(table.shingling().clone());
        let params = builder.simhash_weighted(3, table.weights()).minhash(6, 14).build().unwrap();
        Ok(Sketcher::with_idf(&params, Arc::clone(table))?)
    }

    #[test]
    fn fingerprint_weights_are_occurrences_times_table_weights() {
        let documents: Vec<Vec<u64>> = (1..50).map(|i| (0..i).map(mix).collect()).collect();
        let table = table(&documents, |b| b);
        for n in [0_u64, 1, 2, 255, 256, 257, 1000] {
            let shingles: Vec<u64> = (0..n).map(|i| mix(i * i % 61)).collect();
            let weights = shingles.iter().map(|&s| (s, i64::from(table.weight(s))));
            assert_eq!(table.simhash(&shingles), weighted(weights), "{n} shingles");
            let vector: Vec<(u64, i64)> = (0..n).map(|i| (mix(i), i.cast_signed() - 40)).collect();
            let product = |scale: i64| vector.iter().map(move |&(h, v)| (h, v * scale));
            let expected = weighted(product(1).map(|(h, v)| (h, v * i64::from(table.weight(h)))));
            assert_eq!(table.vector(&vector), expected);
            assert_eq!(table.vector(&product(1 << 45).collect::<Vec<_>>()), expected, "only ratios matter");
        }
        assert_eq!(table.vector(&[(1, i64::MIN), (2, i64::MAX)]).0, !1);
    }

    #[test]
    fn sketcher_with_idf_table_weights_texts_and_features() {
        let mut shingling = Shingling::words(1, 0);
        let plain = Sketcher::new(&Params::builder().words(1).minhash(6, 14).build().unwrap()).unwrap();
        let documents: Vec<Vec<u64>> = ["the rose", "the tulip", "the lily"]
            .map(|text| text.split(' ').map(|word| plain.feature(word.as_bytes())).collect())
            .into();
        let of_words = Arc::new(table(&documents, |b| b.min_df(1)));
        let sketch = with_table(&of_words).unwrap().sketch("the rose the").unwrap();
        let [the, rose] = ["the", "rose"].map(|word| plain.feature(word.as_bytes()));
        assert_eq!((of_words.weight(the), of_words.weight(rose)), (256, 512));
        assert_eq!(sketch.fingerprint(), Some(weighted([(the, 512), (rose, 512)])));
        assert_eq!(sketch.signature(), plain.sketch("the rose").unwrap().signature());

        shingling = shingling.with_tokens(Tokens::Features).unwrap();
        let mut builder = IdfBuilder::new(&shingling).min_df(1);
        for document in &documents {
            builder.add(document).unwrap();
        }
        let sketcher = with_table(&Arc::new(builder.finish().unwrap())).unwrap();
        let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
        sketcher.sketch_features(&[the, rose, rose], &mut scratch, &mut sketch).unwrap();
        assert_eq!(sketch.fingerprint(), Some(weighted([(the, 1), (rose, 4)])));
        sketcher.sketch_weighted(&[(the, 9), (rose, 4)], &mut scratch, &mut sketch).unwrap();
        assert_eq!(sketch.fingerprint(), Some(weighted([(the, 9), (rose, 8)])));
    }

    #[test]
    fn builder_with_failed_scratch_file_refuses_to_finish() {
        let gone = tempfile::tempdir().unwrap().path().join("gone");
        let mut builder = IdfBuilder::new(&Shingling::words(1, 0)).memory(0).scratch_dir(&gone);
        let failed = (0..10_000).find_map(|i| builder.add(&[mix(i)]).err()).unwrap();
        assert!(matches!(failed, Error::Io { .. }), "{failed:?}");
        let again = builder.add(&[1]).unwrap_err();
        assert!(matches!(&again, Error::Invalid(why) if why.contains("were lost")), "{again:?}");
        assert!(matches!(builder.finish(), Err(Error::Invalid(_))));
    }

    #[test]
    fn sketcher_refuses_idf_table_that_differs_from_parameters() {
        let table = Arc::new(table(&[vec![1, 2], vec![2, 3]], |b| b));
        let builder = || Params::builder().words(1);
        let refused =
            |params: Params| Sketcher::with_idf(&params, Arc::clone(&table)).unwrap_err().to_string();
        let other = SimhashWeights::Idf { table: 5 };
        let named = builder().simhash_weighted(3, table.weights());
        for (params, part) in [
            (builder().simhash(3).build().unwrap(), "simhash=idf"),
            (builder().simhash_weighted(3, other).build().unwrap(), "00000005, and this is"),
            (named.clone().words(2).build().unwrap(), "width=1, and cannot be used with width=2"),
            (named.clone().seed(4).build().unwrap(), "seed=0, and cannot be used with seed=4"),
        ] {
            let error = refused(params);
            assert!(error.contains(part), "{part}: {error}");
        }
        let error = Sketcher::new(&named.build().unwrap()).unwrap_err().to_string();
        assert!(error.contains("simhash=idf") && error.contains("with_idf"), "{error}");
    }
}
