//! Verifies that a segment file is exactly the file that `build` would write for its records.
//!
//! Reads the file once, and tables and bands several times. Uses about 20 bytes of memory per document plus 64 MiB. The
//! time is proportional to the number of documents. Even a tiny file may have many (if it has consecutive keys
//! and no sketches). Checks these properties:
//!
//! 1. each page matches its checksum, and gaps between parts are zeros;
//! 2. keys ascend;
//! 3. the fingerprints of table 1 ascend strictly, and each table is byte for byte the encoding of these fingerprints;
//! 4. postings and ranks agree, and each document is in at most one list;
//! 5. the entries of each band ascend, and all bands have the same documents, each once;
//! 6. samples are stored without gaps, ascend, and have only valid values;
//! 7. values and fields are stored without gaps; the order of stamps ascends and has each document once;
//! 8. fields are those that the parameters require; common tags and prefixes match the stored sets;
//! 9. the salt is the sum of the parameters' digest and the records' hashes.
//!
//! The remaining steps run even after an error. Only a damaged page ends the verification, after step 1.

use std::ops::Range;

use roaring::RoaringBitmap;
use zerocopy::little_endian::U64;

use super::hot::hot_buckets;
use super::open::{Keys, Segment};
use super::records::{RecordSketch, record_hash};
use super::tables::sorted_values;
use crate::cancel::Cancel;
use crate::design::{CodecChoice, Codecs, DesignChoice};
use crate::error::{Error, Result, corrupt};
use crate::format::bands::Band;
use crate::format::contents::{Kind, Section};
use crate::format::header::Header;
use crate::format::hot::Hot;
use crate::format::keys::Frame;
use crate::format::postings::{self, Posting};
use crate::format::table::Columns;
use crate::format::wire::{self, Fault};
use crate::format::{ALIGNMENT, align, keys, ranks, samples, signatures};
use crate::key::KeyBuf;
use twindex_kernel::BLOCK;

/// Compares the output of an encoder with a section. The encoder runs twice. The first run counts the bytes of each
/// part, which determines the offsets of the parts. The second run compares the bytes.
struct SectionComparison<'a> {
    segment: &'a Segment,
    section: &'a Section,
    /// In the first run, the number of bytes of each part so far. In the second run, the offset of the next byte of each
    /// part.
    next: Vec<u64>,
    /// Whether the offsets of the parts are known. True in the second run.
    placed: bool,
}

impl SectionComparison<'_> {
    /// Computes the offsets of the parts, and checks the padding between them and the length of the section.
    fn place(&mut self) -> Result<()> {
        let mut end = 0;
        for part in 0..self.next.len() {
            // An empty part is not aligned, because nothing is written for it.
            let start = if self.next[part] == 0 { end } else { align(end) };
            self.compare(end, &[0; ALIGNMENT as usize][..(start - end) as usize])?;
            end = start + std::mem::replace(&mut self.next[part], start);
        }
        self.placed = true;
        if end == self.section.length {
            return Ok(());
        }
        let expected = format!("{end} bytes for these fingerprints");
        Err(self.segment.wrong(self.section, 0, &expected, self.section.length))
    }

    fn compare(&self, at: u64, expected: &[u8]) -> Result<()> {
        let found = self.segment.read(self.section, at..at + expected.len() as u64)?;
        match expected.iter().zip(found).position(|(expected, found)| expected != found) {
            None => Ok(()),
            Some(place) => {
                let wanted = format!("{:#04x} for the fingerprints of table 1", expected[place]);
                Err(self.segment.wrong(
                    self.section,
                    at + place as u64,
                    &wanted,
                    format!("{:#04x}", found[place]),
                ))
            }
        }
    }
}

impl Columns for SectionComparison<'_> {
    fn put(&mut self, part: usize, bytes: &[u8]) -> Result<()> {
        if self.next.len() <= part {
            self.next.resize(part + 1, 0);
        }
        if self.placed {
            self.compare(self.next[part], bytes)?;
        }
        self.next[part] += bytes.len() as u64;
        Ok(())
    }
}

/// Maximum number of bytes of band keys that are in memory at the same time in step 9.
const STRIPE_BYTES: usize = 64 << 20;

impl Segment {
    /// Checks the whole segment and returns all errors. Empty if the segment is sound. `progress` is called with the number
    /// of bytes read so far by step 1, which takes most of the time unless the file is in memory.
    pub fn verify(&self, progress: impl FnMut(u64)) -> Vec<Error> {
        let found = self.verify_until(&Cancel::default(), progress);
        found.unwrap_or_else(|_| unreachable!("nobody else has this request, so nobody makes it"))
    }

    /// Like [`verify`](Self::verify), but ends early after `cancel` was requested, which is checked before each page and
    /// before each further step.
    ///
    /// # Errors
    /// [`Error::Cancelled`].
    pub fn verify_until(&self, cancel: &Cancel, mut progress: impl FnMut(u64)) -> Result<Vec<Error>> {
        let mut problems = Vec::new();
        for page in 0..self.file.page_count() {
            cancel.check()?;
            problems.extend(self.file.check_page(page).err());
            progress((page + 1) * crate::format::checksum::PAGE);
        }
        if !problems.is_empty() {
            // Ends here, because the other steps would report the same pages again, with less clear messages.
            return Ok(problems);
        }
        let steps: [fn(&Self) -> Result<()>; 10] = [
            Self::verify_gaps,
            Self::verify_keys,
            Self::verify_tables,
            Self::verify_postings,
            Self::verify_bands,
            Self::verify_samples,
            Self::verify_attached,
            Self::verify_sets,
            Self::verify_parts,
            Self::verify_salt,
        ];
        // guard: verify looks above the checksums
        for step in steps {
            cancel.check()?;
            problems.extend(step(self).err());
        }
        Ok(problems)
    }

    fn wrong(&self, section: &Section, at: u64, expected: &str, found: impl ToString) -> Error {
        self.corrupt_at(section, Fault::new(at, expected, found))
    }

    fn verify_gaps(&self) -> Result<()> {
        let zeros = |range: Range<u64>, section: &Section| {
            let bytes = self.file.read_file(section.kind.name(), &range)?;
            match bytes.iter().position(|&byte| byte != 0) {
                None => Ok(()),
                Some(at) => {
                    let found = format!("{:#04x}", bytes[at]);
                    Err(self.wrong(section, range.start + at as u64 - section.offset, "zero padding", found))
                }
            }
        };
        // All gaps but those that follow were checked when the segment was opened.
        for section in self.sections().iter().filter(|section| section.kind != Kind::Checksums) {
            // guard: padding between sections is zero
            zeros(section.end()..align(section.end()), section)?;
        }
        let parts = self.parts.iter().flat_map(|parts| &parts.sections);
        let banded = self.bands.iter().chain(self.sets.iter().flatten()).chain(&self.suffixes);
        for (section, layout) in banded.chain(parts) {
            let entries = layout.entries(&(0..section.rows));
            zeros(section.offset + layout.directory.length()..section.offset + entries.start, section)?;
        }
        Ok(())
    }

    fn verify_keys(&self) -> Result<()> {
        let mut count = 0;
        self.for_each_key(|_, _| count += 1)?;
        if count != self.documents() {
            let expected = format!("{} keys", self.documents());
            return Err(self.wrong(self.keys_section(), 0, &expected, count));
        }
        match self.keys {
            Keys::Frame(section, frame) if section.rows == 0 && (frame.base, frame.width) != (0, 0) => {
                Err(self.wrong(&section, 0, "zeros for no keys", format!("{}, {}", frame.base, frame.width)))
            }
            Keys::Frame(_, frame) if count > 0 => {
                let ends = [self.key(0)?, self.key(count as u32 - 1)?].map(|key| match key {
                    KeyBuf::U64(key) => key,
                    KeyBuf::Bytes(_) => 0,
                });
                let min = Frame::spanning(ends[0], ends[1], self.documents());
                if frame == min {
                    return Ok(());
                }
                let expected = format!("the least frame, {min:?}");
                Err(self.wrong(self.keys_section(), 0, &expected, format!("{frame:?}")))
            }
            Keys::Frame(..) => Ok(()),
            Keys::Front(section) => {
                // A group ends where the next group starts. The last group ends at the end of the section.
                let at = keys::groups(section.rows) * 8;
                let end: &[U64] = self.column(&section, at..at + 8)?;
                let data = section.length - at - 8;
                if end[0].get() == data {
                    return Ok(());
                }
                Err(self.wrong(&section, at, &format!("the data's length, {data}"), end[0]))
            }
        }
    }

    fn keys_section(&self) -> &Section {
        match &self.keys {
            Keys::Frame(section, _) | Keys::Front(section) => section,
        }
    }

    /// Checks that the fingerprints of table 1 ascend, and that each table, including table 1, is byte for byte the encoding
    /// of these fingerprints.
    fn verify_tables(&self) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let tables = &fingerprints.tables;
        let mut all: Vec<u64> = Vec::new();
        self.for_each_fingerprint(|_, fingerprint| {
            all.push(fingerprint);
            Ok(())
        })?;
        let first = &tables.all[0];
        // Some codecs encode a few fingerprints in the same bytes, so the codec is also compared with the one that the
        // parameters name.
        if let Some(simhash) = self.params().simhash
            && let CodecChoice::Named(named) = simhash.codec
        {
            let found = tables.scheme().codecs;
            let partial = named.partial.filter(|_| tables.all.len() > 1);
            if found != (Codecs { partial, ..named }) {
                return Err(self.wrong(&first.section, 0, &format!("tables coded as {named}"), found));
            }
        }
        if let Some(simhash) = self.params().simhash
            && let DesignChoice::Named(named) = simhash.design
            && named != tables.design.name
        {
            return Err(self.wrong(&first.section, 0, &format!("tables {named}"), tables.design.name));
        }
        if all.len() as u64 != tables.rows {
            let expected = format!("{} fingerprints", tables.rows);
            return Err(self.wrong(&first.section, 0, &expected, all.len()));
        }
        let mut neighbours = all.iter().zip(all.iter().skip(1));
        if let Some((before, after)) = neighbours.find(|(before, after)| before >= after) {
            let expected = format!("a fingerprint above {before:016x}");
            return Err(self.wrong(&first.section, 0, &expected, format!("{after:016x}")));
        }
        let mut values = Vec::new();
        for (place, table) in tables.all.iter().enumerate() {
            sorted_values(&tables.design, place, table.codec, &all, &mut values);
            let lead = tables.design.tables[place].lead;
            let encode = |columns: &mut SectionComparison<'_>| {
                table.codec.encode(tables.rows, lead, || values.iter().copied().map(Ok), columns)
            };
            self.compare(&table.section, encode)?;
            let again = || Ok(all.iter().copied().map(Ok));
            let buckets = hot_buckets(&tables.design.tables[place], tables.rows, again)?;
            let rows = buckets.iter().map(|bucket| bucket.1.len() as u64).sum::<u64>();
            match &table.hot {
                Some(open) if open.section.rows == rows => {
                    self.compare(&open.section, |columns| Hot::encode(&buckets, table.bits, columns))?;
                }
                Some(open) => {
                    let expected = format!("{rows} fingerprints in hot buckets");
                    return Err(self.wrong(&open.section, 0, &expected, open.section.rows));
                }
                None if rows > 0 => {
                    let expected = format!("a section of {rows} fingerprints in hot buckets");
                    return Err(self.wrong(&table.section, 0, &expected, "none"));
                }
                None => {}
            }
        }
        Ok(())
    }

    /// Compares a section with the output of an encoder. `encode` is called twice.
    fn compare(
        &self,
        section: &Section,
        encode: impl Fn(&mut SectionComparison<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut columns = SectionComparison { segment: self, section, next: Vec::new(), placed: false };
        encode(&mut columns)?;
        columns.place()?;
        encode(&mut columns)
    }

    fn verify_postings(&self) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let mut rank_of = vec![ranks::NO_RANK; self.documents() as usize];
        let mut listed = 0_u64;
        for rank in 0..fingerprints.distinct as u32 {
            let at = postings::range(rank.into());
            let entry = self.read(&fingerprints.postings, at.clone())?;
            if let Ok(Posting::List(place)) = postings::decode(entry, rank.into(), self.documents())
                && u64::from(place) != listed
            {
                let expected = format!("a list at {listed}, after the last");
                return Err(self.wrong(&fingerprints.postings, at.start, &expected, place));
            }
            let mut twice = None;
            let mut count = 0;
            self.postings(rank, |ordinal| {
                count += 1;
                if std::mem::replace(&mut rank_of[ordinal as usize], rank) != ranks::NO_RANK {
                    twice = Some(ordinal);
                }
            })?;
            if count > 1 {
                listed += count + 1;
            }
            if let Some(ordinal) = twice {
                let at = u64::from(rank) * 4;
                return Err(self.wrong(&fingerprints.postings, at, "each document in one list", ordinal));
            }
        }
        let length = (fingerprints.distinct + listed) * 4;
        if length != fingerprints.postings.length {
            let found = format!("{} bytes", fingerprints.postings.length);
            return Err(self.wrong(&fingerprints.postings, 0, &format!("{length} bytes of lists"), found));
        }
        for (ordinal, &expected) in rank_of.iter().enumerate() {
            let found = self.rank(ordinal as u32)?.unwrap_or(ranks::NO_RANK);
            if found != expected {
                let at = ordinal as u64 * ranks::RANK_BYTES;
                return Err(self.wrong(
                    &fingerprints.ranks,
                    at,
                    &format!("rank {expected} as in the postings"),
                    found,
                ));
            }
        }
        Ok(())
    }

    /// Checks that the padding bits of the entries of a band are zero.
    fn verify_padding(&self, section: &Section, layout: &Band) -> Result<()> {
        let entries = layout.entries(&(0..section.rows));
        let Some(at) = layout.overfull(self.read(section, entries.clone())?, section.rows) else {
            return Ok(());
        };
        Err(self.wrong(section, entries.start + at as u64, "zeros where no entry has a bit", "others"))
    }

    fn verify_bands(&self) -> Result<()> {
        let mut sketched: Option<RoaringBitmap> = None;
        for (band, (section, layout)) in self.bands.iter().enumerate() {
            self.verify_padding(section, layout)?;
            let mut seen = RoaringBitmap::new();
            let mut last = None;
            self.for_each_band_entry(band, |key, ordinal| {
                if last >= Some((key, ordinal)) {
                    return Err(self.wrong(
                        section,
                        0,
                        &format!("an entry after {last:x?}"),
                        format!("{key:x}, {ordinal}"),
                    ));
                }
                last = Some((key, ordinal));
                if !seen.insert(ordinal) {
                    return Err(self.wrong(section, 0, "each document once", ordinal));
                }
                Ok(())
            })?;
            if *sketched.get_or_insert_with(|| seen.clone()) != seen {
                return Err(self.wrong(section, 0, "the documents of the first band", "others"));
            }
        }
        Ok(())
    }

    /// Checks that the entries of each part ascend, that each document is listed once, and that its key has the bits of its
    /// code.
    fn verify_parts(&self) -> Result<()> {
        let Some(parts) = &self.parts else { return Ok(()) };
        for (part, (section, layout)) in (0..).zip(&parts.sections) {
            self.verify_padding(section, layout)?;
            let mut keys = vec![0_u32; self.documents() as usize];
            let (bits, mut words) = (parts.cut.bits_of(part), Vec::new());
            for (first, keys) in (0..).step_by(BLOCK).zip(keys.chunks_mut(BLOCK)) {
                self.code_words(first..first + keys.len() as u32, &mut words)?;
                let codes = words.chunks_exact(words.len() / keys.len());
                keys.iter_mut().zip(codes).for_each(|(key, code)| *key = bits.key(code));
            }
            let mut last = None;
            self.for_each_entry(section, layout, |key, ordinal| {
                let found = || format!("{key:x}, {ordinal}");
                // Each ordinal ascends among equal keys, so no document is listed twice.
                if last >= Some((key, ordinal)) {
                    return Err(self.wrong(section, 0, &format!("an entry after {last:x?}"), found()));
                }
                last = Some((key, ordinal));
                let expected = keys[ordinal as usize];
                if key != expected {
                    return Err(self.wrong(section, 0, &format!("key {expected:x} of the code"), found()));
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Checks the samples. A document's values end where those of the next document start, so there are no gaps. Only
    /// the first and the last offset have to be compared with the section.
    fn verify_samples(&self) -> Result<()> {
        let mut values = Vec::new();
        for of in self.samples.iter().flatten() {
            let (section, layout) = of;
            let ends = [(0, 0), (self.documents(), section.rows)];
            for (ordinal, expected) in ends {
                let at = layout.offsets(ordinal).start;
                let found = wire::wide(self.read(section, at..at + layout.offset_bytes)?);
                if found != expected {
                    return Err(self.wrong(section, at, &format!("offset {expected}"), found));
                }
            }
            for ordinal in 0..self.documents() as u32 {
                values.clear();
                self.sample(Some(of), ordinal, &mut values)?;
            }
        }
        Ok(())
    }

    /// Checks the samples of a document. A document without a sketch must have no samples, because its hash does not
    /// cover them. A document with a sketch must have at least the required number of values.
    fn verify_samples_of(&self, ordinal: u32, kept: bool, found: &[Option<&[u8]>; 2]) -> Result<()> {
        for (of, bytes) in self.samples.iter().zip(found) {
            let (Some((section, layout)), Some(bytes)) = (of, bytes) else { continue };
            let count = bytes.len() as u64 / samples::VALUE_BYTES;
            let at = layout.offsets(ordinal.into()).start;
            if !kept && count > 0 {
                return Err(self.wrong(section, at, "no values of a document without a sketch", count));
            }
            if kept && count < layout.choice.min() {
                return Err(self.wrong(section, at, "a least hash of a document with a sketch", "none"));
            }
        }
        Ok(())
    }

    /// Checks that the signature of a document without a sketch is all zeros: the document's hash does not cover it.
    fn verify_no_signature(&self, ordinal: u32) -> Result<()> {
        if let Some((section, width)) = &self.signatures
            && self.signature(ordinal)?.iter().any(|&byte| byte != 0)
        {
            let at = signatures::range(ordinal.into(), *width).start;
            return Err(self.wrong(section, at, "zeros for a document without a sketch", "others"));
        }
        Ok(())
    }

    /// Compares the salt with the sum of the parameters' digest and the hashes of the records. Reads all bands once for each
    /// stripe of documents whose band keys fit in [`STRIPE_BYTES`].
    fn verify_salt(&self) -> Result<()> {
        let mut salt = self.params().digest();
        let bands = self.bands.len();
        let mut scratch = Vec::new();
        let mut failed = None;
        let mut stripe: Vec<u32> = Vec::new();
        let mut sketched: Vec<bool> = Vec::new();
        let mut start = 0;
        let documents = (STRIPE_BYTES / (4 * bands.max(1))).max(1) as u64;
        // Reads the band keys of a stripe of documents. Each call reads all bands from start to end.
        let fill = |start: u64, stripe: &mut Vec<u32>, sketched: &mut Vec<bool>| -> Result<()> {
            let end = self.documents().min(start + documents);
            let count = (end - start) as usize;
            stripe.clear();
            stripe.resize(count * bands, 0);
            sketched.clear();
            sketched.resize(count, false);
            for band in 0..bands {
                self.for_each_band_entry(band, |key, ordinal| {
                    if (start..end).contains(&u64::from(ordinal)) {
                        let row = (u64::from(ordinal) - start) as usize;
                        stripe[row * bands + band] = key;
                        sketched[row] = true;
                    }
                    Ok(())
                })?;
            }
            Ok(())
        };
        fill(0, &mut stripe, &mut sketched)?;
        self.for_each_key(|ordinal, key| {
            if failed.is_some() {
                return;
            }
            let hash = (|| {
                if u64::from(ordinal) == start + documents {
                    start += documents;
                    fill(start, &mut stripe, &mut sketched)?;
                }
                let row = (u64::from(ordinal) - start) as usize;
                let fingerprint = self.rank(ordinal)?.map(|rank| self.fingerprint(rank)).transpose()?;
                let kept = fingerprint.is_some() || sketched[row];
                let samples = self.sample_bytes(ordinal)?;
                self.verify_samples_of(ordinal, kept, &samples)?;
                let sketch = if kept {
                    let bands = &stripe[row * bands..(row + 1) * bands];
                    let signature = self.signature(ordinal)?;
                    Some(RecordSketch { fingerprint, bands, signature, samples })
                } else {
                    self.verify_no_signature(ordinal)?;
                    None
                };
                Ok(record_hash(key, sketch, self.attached(ordinal)?, &mut scratch))
            })();
            match hash {
                Ok(hash) => salt = salt.wrapping_add(hash),
                Err(error) => failed = Some(error),
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        if salt == self.salt() {
            Ok(())
        } else {
            let (expected, found) =
                (format!("salt {salt:032x} of the records"), format!("{:032x}", self.salt()));
            let at = std::mem::offset_of!(Header, salt) as u64;
            Err(corrupt(self.path(), "header", 0, Fault::new(at, expected, found)))
        }
    }
}
