//! Stores the sketches of all documents in a scratch file until the kept documents are known.
//!
//! ```text
//! file:    blocks of consecutive documents, in the order of addition
//! block:   length of the records (4), their checksum (4), the records
//! record:  1 for a document with words, then: fingerprint (8), the stored part of each feature (4), the packed signature,
//!          for each sample the number of hashes (4) and the hashes (6 each);
//!          0 for a document without words, then: length of the set (4), the encoded set
//! ```
//!
//! A record has only the parts that the parameters require. Of a feature, only the first 32 bits are stored, because an
//! index uses no more. Keys are not stored, because the corpus has them.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use twindex::format::bands::KEY_BITS;
use twindex::format::fields::{self, Fields};
use twindex::format::samples::{self, SampleChoice, VALUE_BYTES};
use twindex::format::sketches::Row;
use twindex::sketch::pack;
use twindex::sys::Spill;
use twindex::{Document, Key, Params, Sketch, Writer};
use xxhash_rust::xxh3::xxh3_64;

/// A block is written when its records have at least this number of bytes.
const BLOCK: usize = 64 << 10;
/// Length of a block's head in bytes.
const HEAD: usize = 8;
/// Length of the stored part of a feature in bytes.
const FEATURE_BYTES: usize = KEY_BITS as usize / 8;

/// Whether a document is added to an index: not, unmarked, or marked as a duplicate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IndexMembership {
    Not,
    Kept,
    AsDuplicate,
}

/// Writes sketches. For a document without words, which has no sketch, writes its set of one hash instead.
pub(crate) struct Sketches {
    folder: PathBuf,
    params: Params,
    /// The current block: space for the head, then the records.
    block: Vec<u8>,
    set: Vec<u8>,
    spill: Spill,
}

/// The stored sketches of all documents.
pub(crate) struct Sketched {
    folder: PathBuf,
    params: Params,
    spill: Spill,
}

impl Sketches {
    pub(crate) fn new(folder: &Path, params: &Params) -> anyhow::Result<Self> {
        let spill = Spill::create(folder).with_context(|| cannot("create", folder))?;
        let (folder, params) = (folder.to_owned(), params.clone());
        Ok(Self { folder, params, block: vec![0; HEAD], set: Vec::new(), spill })
    }

    /// Adds the next document. Returns an error if an index cannot store the key. Does not write the key.
    pub(crate) fn push(&mut self, key: &[u8], sketch: &Sketch) -> anyhow::Result<()> {
        Key::Bytes(key).check(self.params.key)?;
        let Self { params, block, set, .. } = self;
        block.push((!sketch.is_empty()).into());
        if !sketch.is_empty() {
            if params.simhash.is_some() {
                block.extend(sketch.fingerprint().map_or(0, |fingerprint| fingerprint.0).to_le_bytes());
            }
            if let Some(minhash) = params.minhash {
                let stored = sketch.features().iter().map(|feature| (feature >> KEY_BITS) as u32);
                block.extend(stored.flat_map(u32::to_le_bytes));
                pack(sketch.signature(), minhash.signature_bits, block);
            }
            for (sample, choice) in
                [sketch.bottom(), sketch.modular()].into_iter().zip(SampleChoice::of(params))
            {
                if choice.is_some() {
                    block.extend((sample.len() as u32).to_le_bytes());
                    samples::encode(sample, block);
                }
            }
        } else if params.sets {
            fields::encode(params, false, sketch.set(), None, set);
            block.extend((set.len() as u32).to_le_bytes());
            block.extend_from_slice(set);
        }
        if block.len() >= HEAD + BLOCK { self.end_block() } else { Ok(()) }
    }

    fn end_block(&mut self) -> anyhow::Result<()> {
        let (head, records) = self.block.split_at_mut(HEAD);
        head.copy_from_slice(&head_of(records));
        self.spill.append(&self.block).with_context(|| cannot("write", &self.folder))?;
        self.block.truncate(HEAD);
        Ok(())
    }

    /// Writes the last block and returns the stored sketches.
    pub(crate) fn finish(mut self) -> anyhow::Result<Sketched> {
        if self.block.len() > HEAD {
            self.end_block()?;
        }
        let Self { folder, params, spill, .. } = self;
        Ok(Sketched { folder, params, spill })
    }
}

fn head_of(records: &[u8]) -> [u8; HEAD] {
    (u64::from(records.len() as u32) | xxh3_64(records) << 32).to_le_bytes()
}

/// Decodes the records of blocks, in buffers that are reused for the next record.
#[derive(Default)]
struct RecordDecoder {
    features: Vec<u64>,
    samples: [Vec<u64>; 2],
}

impl RecordDecoder {
    /// Decodes the first record, and removes it from `records`. Returns the sketch of a document with words, or the set
    /// of a document without words; `None` if the record is damaged.
    fn next<'r, 'b: 'r>(
        &'r mut self,
        params: &Params,
        records: &mut &'b [u8],
    ) -> Option<(Option<Row<'r>>, Fields<'r>)> {
        if take(records, 1)? == [0] {
            let length = if params.sets { number(records)? } else { 0 };
            return Some((None, Fields::of(take(records, length)?)));
        }
        let mut row = Row::default();
        if params.simhash.is_some() {
            row.fingerprint = u64::from_le_bytes(take(records, 8)?.try_into().ok()?);
        }
        let Self { features, samples } = self;
        if let Some(minhash) = params.minhash {
            let stored = take(records, usize::from(minhash.bands) * FEATURE_BYTES)?.as_chunks().0;
            features.clear();
            features.extend(stored.iter().map(|&stored| u64::from(u32::from_le_bytes(stored)) << KEY_BITS));
            row.features = features;
            row.signature = take(records, minhash.signature_bytes())?;
        }
        for (sample, choice) in samples.iter_mut().zip(SampleChoice::of(params)) {
            sample.clear();
            if choice.is_some() {
                let count = number(records)?;
                sample.extend(samples::decode(take(records, count.saturating_mul(VALUE_BYTES as usize))?));
            }
        }
        [row.bottom, row.modular] = [&samples[0], &samples[1]];
        Some((Some(row), Fields::default()))
    }
}

/// Removes and returns the first `count` bytes; `None` if there are fewer.
fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (first, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(first)
}

/// Removes and decodes a 4-byte number.
fn number(bytes: &mut &[u8]) -> Option<usize> {
    Some(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?) as usize)
}

impl Sketched {
    /// Adds the documents that `wanted` selects to an index with the parameters `kept`, and marks duplicates. Documents
    /// are identified by their index in the order of addition. `key_of` returns the key of a document; `value_of` its
    /// value, if the index stores values; `set_of` appends the set of a document with words, if the index stores sets.
    /// With `last`, frees the disk space of sketches that were read; they cannot be read again.
    pub(crate) fn put<'v>(
        &self,
        writer: &mut Writer,
        kept: &Params,
        last: bool,
        (mut wanted, key_of, value_of): (
            impl FnMut(u32) -> IndexMembership,
            impl Fn(u32) -> Key<'v>,
            impl Fn(u32) -> &'v [u8],
        ),
        mut set_of: impl FnMut(u32, &mut Vec<u64>) -> twindex::Result<()>,
    ) -> anyhow::Result<()> {
        let (mut read, mut at, mut number) = (Vec::new(), 0, 0);
        let (mut block, mut decoder) = (Vec::new(), RecordDecoder::default());
        while at < self.spill.len() {
            self.read_block(&mut at, &mut block)?;
            if last {
                self.spill.release(at);
            }
            let mut records = &block[..];
            while !records.is_empty() {
                let record = decoder.next(&self.params, &mut records);
                let (row, set) = record.ok_or_else(|| self.damaged(at))?;
                let wanted = wanted(number);
                if wanted != IndexMembership::Not {
                    let has_words = row.is_some();
                    let mut document = Document::from_row(&self.params, row).with_encoded_set(set);
                    if has_words && kept.sets {
                        read.clear();
                        set_of(number, &mut read)?;
                        document = document.with_set(&read);
                    }
                    if kept.values {
                        document = document.with_value(value_of(number));
                    }
                    if wanted == IndexMembership::AsDuplicate && kept.marks {
                        document = document.as_duplicate();
                    }
                    let key = key_of(number);
                    let put = writer.put(key, document);
                    put.with_context(|| {
                        let key = key.to_buf().to_string();
                        format!("cannot index the document `{}`", key.escape_debug())
                    })?;
                }
                number += 1;
            }
        }
        Ok(())
    }

    /// Replaces the contents of `records` with the records of the block at `at`, and moves `at` past the block.
    fn read_block(&self, at: &mut u64, records: &mut Vec<u8>) -> anyhow::Result<()> {
        let cannot_read = || cannot("read", &self.folder);
        let mut head = [0; HEAD];
        self.spill.read_exact_at(&mut head, *at).with_context(cannot_read)?;
        let (start, length) = (*at + HEAD as u64, u64::from_le_bytes(head) & u64::from(u32::MAX));
        if length > self.spill.len() - start {
            return Err(self.damaged(*at));
        }
        records.resize(length as usize, 0);
        self.spill.read_exact_at(records, start).with_context(cannot_read)?;
        if head != head_of(records) {
            return Err(self.damaged(*at));
        }
        *at = start + length;
        Ok(())
    }

    fn damaged(&self, at: u64) -> anyhow::Error {
        let folder = self.folder.display();
        anyhow!(
            "{folder}: a scratch file of sketches is not as it was written: the block at byte {at}; run again"
        )
    }
}

fn cannot(what: &str, folder: &Path) -> String {
    format!("{}: cannot {what} a scratch file", folder.display())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;

    use twindex::params::{Near, Preset};
    use twindex::{Index, Sketcher, WriterOptions};

    use super::*;

    const DOCUMENTS: u32 = 2_000;

    /// Returns parameters that require all parts of a record, and parameters that require some.
    fn all_params() -> [Params; 4] {
        let words = || Params::builder().words(2);
        let all = words().simhash(3).minhash(5, 3).bottom(9).modulus(3).sets().marks();
        let some = [
            all.near(Near::resembling(0.8).unwrap()),
            words().minhash(20, 6),
            words().preset(Preset::BRODER_200),
            words().simhash(3).modulus(2),
        ];
        some.map(|params| params.build().unwrap())
    }

    /// Every seventh document has no words.
    fn text(number: u32) -> String {
        if number % 7 == 3 {
            return "?".repeat(number as usize % 5);
        }
        (0..number % 50)
            .fold("a rose".into(), |text, at| format!("{text} {}", number.wrapping_mul(at * 7919) % 1000))
    }

    fn key(number: u32) -> String {
        format!("https://example.org/{number}")
    }

    /// Stores the sketches of all documents.
    fn stored(folder: &Path, params: &Params) -> Sketched {
        let sketcher = Sketcher::new(params).unwrap();
        let mut sketches = Sketches::new(folder, params).unwrap();
        for number in 0..DOCUMENTS {
            sketches.push(key(number).as_bytes(), &sketcher.sketch(&text(number)).unwrap()).unwrap();
        }
        sketches.finish().unwrap()
    }

    /// Builds an index of some documents with `put`. Returns its segments.
    fn index_of(path: &Path, params: &Params, put: impl FnOnce(&mut Writer)) -> BTreeMap<String, Vec<u8>> {
        let index = Index::create(path, params.clone()).unwrap();
        // A commit writes a segment.
        let mut writer = index.writer_with(WriterOptions::default().logged(false)).unwrap();
        put(&mut writer);
        writer.commit().unwrap();
        let files = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let segments = files.filter(|file| file.path().extension().is_some_and(|end| end == "seg"));
        let segments: BTreeMap<_, _> = segments
            .map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap()))
            .collect();
        assert!(!segments.is_empty());
        segments
    }

    /// Puts all documents except every third one, and marks every fourth one.
    fn put_stored(stored: &Sketched, writer: &mut Writer, params: &Params, last: bool) -> anyhow::Result<()> {
        let keys: Vec<String> = (0..DOCUMENTS).map(key).collect();
        let sketcher = Sketcher::new(params)?;
        let wanted = |number| match number {
            number if number % 3 == 1 => IndexMembership::Not,
            number if number % 4 == 0 => IndexMembership::AsDuplicate,
            _ => IndexMembership::Kept,
        };
        let key_of = |number: u32| Key::from(&keys[number as usize]);
        stored.put(writer, params, last, (wanted, key_of, |_| &[][..]), |number, out| {
            out.extend_from_slice(sketcher.sketch(&text(number))?.set());
            Ok(())
        })
    }

    #[test]
    fn index_of_stored_sketches_equals_index_of_sketches() {
        for params in all_params() {
            let dir = tempfile::tempdir().unwrap();
            let stored = stored(dir.path(), &params);
            let of_sketches = index_of(&dir.path().join("sketches"), &params, |writer| {
                let sketcher = Sketcher::new(&params).unwrap();
                for number in (0..DOCUMENTS).filter(|number| number % 3 != 1) {
                    let sketch = sketcher.sketch(&text(number)).unwrap();
                    let document = Document::from(&sketch);
                    let is_marked = params.marks && number % 4 == 0;
                    let document = if is_marked { document.as_duplicate() } else { document };
                    writer.put(key(number).as_bytes(), document).unwrap();
                }
            });
            for last in [false, true] {
                let of_stored = index_of(&dir.path().join(format!("stored {last}")), &params, |writer| {
                    put_stored(&stored, writer, &params, last).unwrap();
                });
                assert!(of_stored == of_sketches, "{params:?} {last}");
            }
        }
    }

    #[test]
    fn stored_sketch_has_no_key_and_four_bytes_of_each_feature() {
        let dir = tempfile::tempdir().unwrap();
        let params = &all_params()[1];
        let signature = params.minhash.unwrap().signature_bytes() as u64;
        let with_words = (0..DOCUMENTS).filter(|number| number % 7 != 3).count() as u64;
        let bytes = with_words * (20 * 4 + signature) + u64::from(DOCUMENTS);
        let found = stored(dir.path(), params).spill.len();
        assert!((bytes..bytes + bytes / 100).contains(&found), "{found}, not {bytes}");
    }

    #[test]
    fn keys_that_no_index_accepts_are_refused_at_once() {
        let dir = tempfile::tempdir().unwrap();
        let params = &all_params()[1];
        let sketch = Sketcher::new(params).unwrap().sketch("a rose is a rose").unwrap();
        let mut sketches = Sketches::new(dir.path(), params).unwrap();
        assert!(sketches.push(&[], &sketch).is_err());
        assert!(sketches.push(&vec![b'k'; 65_536], &sketch).is_err());
        sketches.push(&vec![b'k'; 65_535], &sketch).unwrap();
    }

    #[test]
    fn damaged_scratch_file_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for params in all_params() {
            let Sketched { folder, spill, .. } = stored(dir.path(), &params);
            let mut all = vec![0; spill.len() as usize];
            spill.read_exact_at(&mut all, 0).unwrap();
            for at in [0, 3, 5, 8, all.len() / 2, all.len() - 1, all.len()] {
                let mut damaged = all.clone();
                match damaged.get_mut(at) {
                    Some(byte) => *byte ^= 0x40,
                    None => damaged.truncate(at - 1),
                }
                let mut spill = Spill::create(dir.path()).unwrap();
                spill.append(&damaged).unwrap();
                let damaged = Sketched { folder: folder.clone(), params: params.clone(), spill };
                let index = tempfile::tempdir().unwrap();
                let index = Index::create(index.path().join("x"), params.clone()).unwrap();
                let error = put_stored(&damaged, &mut index.writer().unwrap(), &params, false).unwrap_err();
                assert!(error.to_string().contains("not as it was written"), "{at}: {error:#}");
            }
        }
    }

    #[test]
    fn damaged_records_are_refused_without_a_panic() {
        let dir = tempfile::tempdir().unwrap();
        for params in all_params() {
            let stored = stored(dir.path(), &params);
            let (mut at, mut block) = (0, Vec::new());
            stored.read_block(&mut at, &mut block).unwrap();
            let mut decoder = RecordDecoder::default();
            let mut records = &block[..];
            let mut ends = vec![0];
            while !records.is_empty() {
                decoder.next(&params, &mut records).unwrap();
                ends.push(block.len() - records.len());
            }
            assert!(ends.len() > 100);
            for end in 1..ends[10] {
                let (mut records, mut count) = (&block[..end], 0);
                while !records.is_empty() && decoder.next(&params, &mut records).is_some() {
                    count += 1;
                }
                assert_eq!(
                    count,
                    ends.iter().filter(|&&record| (1..=end).contains(&record)).count(),
                    "{end}"
                );
            }
        }
    }
}
