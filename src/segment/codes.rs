//! Finds the documents whose fingerprints are near fingerprints of the same width, in an index that stores
//! [codes](crate::Params::codes): by a comparison of all, or by [parts](crate::format::code_parts).
//!
//! In a comparison of all, the fingerprints of a few documents are copied from the section of fields into a block of words,
//! and the block is compared with all queries. So each page is read once for a batch of queries.
//!
//! A segment that has parts is searched by them if their predicted work for the radius is less. If a query finds long
//! buckets, as bits that are not random have, so that its work would exceed its share of a scan, it is left to a scan.
//! So a query takes at most about twice the time of a scan.

use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

use super::open::{CodeParts, Segment};
use crate::error::{Error, Result};
use crate::format::attached::Values;
use crate::format::bands::Band;
use crate::format::code_parts::{PartBits, for_each_flip};
use crate::format::contents::Section;
use crate::format::fields::{Fields, code_field_bytes};
use crate::format::table::source::Source;
use crate::params::CodeParams;
use crate::planner::codes::{scan_work, work, work_of};
use twindex_kernel::{BLOCK, HalfWords, Level, Sides, TileScan, TileScratch};
use twindex_sketch::Code;

/// Maximum number of queries whose codes are compared one by one, because a tile of them would be almost empty.
const FEW: usize = 4;

/// Appends the half words of a fingerprint. Their byte order does not matter for distances.
#[inline(always)]
fn append(code: &[u8], out: &mut Vec<u32>) {
    out.extend(code.as_chunks().0.iter().map(|word| u32::from_ne_bytes(*word)));
}

/// The codes of a segment.
#[derive(Clone, Copy)]
struct CodeColumn<'a> {
    segment: &'a Segment,
    section: &'a Section,
    layout: &'a Values,
    codes: CodeParams,
    /// Number of bytes of the fields of each document, if they have only the code.
    step: Option<u64>,
}

impl<'a> CodeColumn<'a> {
    /// Prefetches what [`hint`](Self::hint) reads.
    #[inline(always)]
    fn hint_offsets(self, ordinal: u32) {
        if self.step.is_none() {
            self.segment.at(self.section).hint(self.layout.offsets(ordinal.into()).start);
        }
    }

    /// Prefetches the code of a document.
    #[inline(always)]
    fn hint(self, ordinal: u32) {
        let source = self.segment.at(self.section);
        // Ignores damage, which is reported when the code is read.
        if let Ok(range) = self.range(ordinal) {
            source.hint(range.start);
            source.hint(range.end.saturating_sub(1));
            source.announce(range);
        }
    }

    #[inline(always)]
    fn range(self, ordinal: u32) -> Result<Range<u64>> {
        if let Some(step) = self.step {
            let start = self.layout.bytes_start() + u64::from(ordinal) * step;
            return Ok(start..start + step);
        }
        let offsets = self.segment.at(self.section).read(self.layout.offsets(ordinal.into()))?;
        let range = self.layout.range(offsets, ordinal.into());
        range.map_err(|fault| self.segment.corrupt_at(self.section, fault))
    }

    /// Returns the fields of documents, which are at least one, each of `step` bytes.
    #[inline(always)]
    fn stepped(self, ordinals: Range<u32>, step: u64) -> Result<std::slice::ChunksExact<'a, u8>> {
        let bytes = self.range(ordinals.start)?.start..self.range(ordinals.end - 1)?.end;
        Ok(self.segment.read(self.section, bytes)?.chunks_exact(step as usize))
    }

    #[inline(always)]
    fn code(self, ordinal: u32) -> Result<&'a [u8]> {
        let fields = self.segment.at(self.section).read(self.range(ordinal)?)?;
        Fields::of(fields).code(self.codes).map_err(|fault| self.segment.wrong_fields(ordinal, fault))
    }
}

/// A search by parts.
struct PartSearch<'a> {
    segment: &'a Segment,
    parts: &'a CodeParts,
    codes: CodeColumn<'a>,
    levels: Vec<u32>,
    bits: Vec<PartBits>,
    /// The buckets of a part whose rows are read, and in how many bits of the prefix they differ from the query.
    buckets: Vec<(Range<u64>, u32)>,
    /// The ordinals of a part whose codes are compared.
    candidates: Vec<u32>,
    /// The ordinals found, and their distances. A document may be found in several parts.
    near: Vec<(u32, u32)>,
}

impl PartSearch<'_> {
    /// Returns false if the query would do more work than `share`.
    #[inline(always)]
    fn query(&mut self, query: &Code, within: u32, share: f64) -> Result<bool> {
        let (mut entries, mut candidates) = (0, 0);
        self.hint_directory(0, query);
        for part in 0..self.bits.len() {
            if self.levels[part] == 0 {
                continue;
            }
            if part + 1 < self.bits.len() {
                self.hint_directory(part + 1, query);
            }
            entries += self.find_buckets(part, query)?;
            if work_of(entries, candidates) > share {
                return Ok(false);
            }
            self.find_candidates(part, query)?;
            candidates += self.candidates.len() as u64;
            if work_of(entries, candidates) > share {
                return Ok(false);
            }
            self.compare(query, within)?;
        }
        Ok(true)
    }

    #[inline(always)]
    fn key(&self, part: usize, query: &Code) -> (&Section, &Band, u32) {
        let (section, layout) = &self.parts.sections[part];
        (section, layout, self.bits[part].key(query.words()))
    }

    #[inline(always)]
    fn hint_directory(&self, part: usize, query: &Code) {
        let (section, layout, key) = self.key(part, query);
        let (source, directory, prefix) = (self.segment.at(section), layout.directory, layout.prefix(key));
        let Ok(()) = for_each_flip(directory.bits, self.levels[part], |flip, _| {
            directory.hint(source, (prefix ^ flip).into(), directory.bits);
            Ok::<_, Infallible>(())
        });
    }

    /// Replaces the buckets by those of a part, prefetches them, and returns the number of their entries.
    #[inline(always)]
    fn find_buckets(&mut self, part: usize, query: &Code) -> Result<u64> {
        let mut buckets = std::mem::take(&mut self.buckets);
        buckets.clear();
        let (section, layout, key) = self.key(part, query);
        let (source, directory, prefix) = (self.segment.at(section), layout.directory, layout.prefix(key));
        let mut entries = 0;
        for_each_flip(directory.bits, self.levels[part], |flip, ones| {
            let rows = directory.bucket(source, (prefix ^ flip).into())?;
            if !rows.is_empty() {
                entries += rows.end - rows.start;
                let bytes = layout.entries(&rows);
                source.hint(bytes.start);
                source.hint(bytes.end - 1);
                source.announce(bytes);
                buckets.push((rows, ones));
            }
            Ok::<_, Error>(())
        })?;
        self.buckets = buckets;
        Ok(entries)
    }

    /// Replaces the candidates by the documents of the buckets whose keys have few enough different bits, and prefetches
    /// their codes.
    #[inline(always)]
    fn find_candidates(&mut self, part: usize, query: &Code) -> Result<()> {
        let mut candidates = std::mem::take(&mut self.candidates);
        candidates.clear();
        let (section, layout, key) = self.key(part, query);
        let (source, tag, levels) = (self.segment.at(section), layout.tag(key), self.levels[part]);
        for (rows, ones) in &self.buckets {
            let bytes = source.read(layout.entries(rows))?;
            for entry in layout.decode(bytes, rows) {
                if (entry.tag ^ tag).count_ones() + ones < levels {
                    self.segment.check_ordinal(section, layout, rows, entry)?;
                    self.codes.hint_offsets(entry.ordinal);
                    candidates.push(entry.ordinal);
                }
            }
        }
        for &ordinal in &candidates {
            self.codes.hint(ordinal);
        }
        self.candidates = candidates;
        Ok(())
    }

    #[inline(always)]
    fn compare(&mut self, query: &Code, within: u32) -> Result<()> {
        for &ordinal in &self.candidates {
            let words = self.codes.code(ordinal)?.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word));
            let distance = words.zip(query.words()).map(|(a, b)| (a ^ b).count_ones()).sum();
            if distance <= within {
                self.near.push((ordinal, distance));
            }
        }
        Ok(())
    }
}

impl Segment {
    /// Calls `hit` with the index of the query, the ordinal and the distance of each document, deleted or not, whose
    /// fingerprint differs from the query in at most `within` bits. Ordinals ascend for each query. If `hit` returns
    /// `Break`, the search for that query ends. Finds none if the index stores no codes.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or the error that `hit` returns.
    pub fn search_codes(
        &self,
        queries: &[Code],
        within: u32,
        mut hit: impl FnMut(usize, u32, u32) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let Some(codes) = self.params().codes else { return Ok(()) };
        let mut hit = |query: usize, ordinal: u32, distance: u32| {
            // Only a code that has this distance to the query can be one of zeros.
            if codes.votes.is_some()
                && distance == queries[query].count_ones()
                && self.code(ordinal)?.is_none()
            {
                return Ok(ControlFlow::Continue(()));
            }
            hit(query, ordinal, distance)
        };
        let mut scanned: Vec<usize> = (0..queries.len()).collect();
        if let Some(parts) = self.parts.as_ref().filter(|_| self.uses_parts(queries.len(), within)) {
            let share = scan_work(codes.bits, self.documents(), within, queries.len());
            scanned = self.search_parts(parts, queries, (within, share), &mut hit)?;
        }
        if scanned.is_empty() {
            return Ok(());
        }
        let column = self.code_column()?;
        if let Some(step) = column.step.filter(|_| scanned.len() <= FEW) {
            let by = (column, step);
            return Level::chosen().run(|| match codes.bits / 64 {
                1 => self.scan_few::<1>(by, queries, (&scanned, within), &mut hit),
                2 => self.scan_few::<2>(by, queries, (&scanned, within), &mut hit),
                3 => self.scan_few::<3>(by, queries, (&scanned, within), &mut hit),
                4 => self.scan_few::<4>(by, queries, (&scanned, within), &mut hit),
                6 => self.scan_few::<6>(by, queries, (&scanned, within), &mut hit),
                _ => self.scan_few::<8>(by, queries, (&scanned, within), &mut hit),
            });
        }
        let (width, mut columns, mut block) = (usize::from(codes.bits / 32), Vec::new(), Vec::new());
        for &query in &scanned {
            append(&queries[query].to_bytes(), &mut columns);
        }
        let mut scratch = TileScratch::default();
        let (mut ended, mut left) = (vec![false; scanned.len()], scanned.len());
        let level = Level::chosen();
        for first in (0..self.documents() as u32).step_by(BLOCK) {
            block.clear();
            let ordinals = first..first.saturating_add(BLOCK as u32).min(self.documents() as u32);
            self.for_each_code(ordinals.clone(), codes, |code| append(code, &mut block))?;
            let sides = Sides {
                columns: HalfWords { words: &columns, width },
                rows: HalfWords { words: &block, width },
                inside: false,
                within,
            };
            // `None` ends the search, because all queries have ended.
            let emit = |query: u32, row: u32, distance| {
                let query = query as usize;
                if !ended[query] && hit(scanned[query], first + row, distance).map_err(Some)?.is_break() {
                    (ended[query], left) = (true, left - 1);
                }
                if left == 0 { Err(None) } else { Ok(()) }
            };
            let all = 0..ordinals.len();
            let scan = TileScan {
                sides,
                columns: 0..scanned.len(),
                rows: std::slice::from_ref(&all),
                scratch: &mut scratch,
                emit,
            };
            match level.dispatch(scan) {
                Err(Some(error)) => return Err(error),
                Err(None) => return Ok(()),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    /// Compares the queries at the positions `scanned` with all codes, which have `WORDS` words, in the way of
    /// [`search_codes`](Self::search_codes).
    #[inline(always)]
    fn scan_few<const WORDS: usize>(
        &self,
        (column, step): (CodeColumn<'_>, u64),
        queries: &[Code],
        (scanned, within): (&[usize], u32),
        hit: &mut impl FnMut(usize, u32, u32) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        // In the byte order of the codes, which distances do not depend on.
        let words = |query: &usize| {
            let words = queries[*query].words().iter().map(|word| word.to_be());
            let mut all = [0; WORDS];
            all.iter_mut().zip(words).for_each(|(to, word)| *to = word);
            (*query, all)
        };
        let mut left: Vec<(usize, [u64; WORDS])> = scanned.iter().map(words).collect();
        let mut near = Vec::new();
        for first in (0..self.documents() as u32).step_by(BLOCK) {
            let ordinals = first..first.saturating_add(BLOCK as u32).min(self.documents() as u32);
            for (ordinal, fields) in ordinals.clone().zip(column.stepped(ordinals, step)?) {
                // A loop instead of closures, which would be compiled without the instructions of the level.
                let code = match Fields::of(fields).code(column.codes) {
                    Ok(code) => code.as_chunks().0,
                    Err(fault) => return Err(self.wrong_fields(ordinal, fault)),
                };
                let Ok(code) = <&[[u8; 8]; WORDS]>::try_from(code) else { continue };
                for (query, words) in &left {
                    let mut distance = 0;
                    for (a, b) in code.iter().zip(words) {
                        distance += (u64::from_ne_bytes(*a) ^ b).count_ones();
                    }
                    if distance <= within {
                        near.push((*query, ordinal, distance));
                    }
                }
            }
            for (query, ordinal, distance) in near.drain(..) {
                if left.iter().any(|(other, _)| *other == query) && hit(query, ordinal, distance)?.is_break()
                {
                    left.retain(|(other, _)| *other != query);
                }
            }
            if left.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Searches by parts as [`search_codes`](Self::search_codes) does. Each query may do at most the work `share`; returns
    /// those that would exceed it, for which `hit` was not called.
    fn search_parts(
        &self,
        parts: &CodeParts,
        queries: &[Code],
        (within, share): (u32, f64),
        hit: &mut impl FnMut(usize, u32, u32) -> Result<ControlFlow<()>>,
    ) -> Result<Vec<usize>> {
        let mut search = PartSearch {
            segment: self,
            parts,
            codes: self.code_column()?,
            levels: parts.cut.levels(within),
            bits: (0..parts.cut.parts).map(|part| parts.cut.bits_of(part)).collect(),
            buckets: Vec::new(),
            candidates: Vec::new(),
            near: Vec::new(),
        };
        let mut left = Vec::new();
        for (number, query) in queries.iter().enumerate() {
            search.near.clear();
            if !Level::chosen().run(|| search.query(query, within, share))? {
                left.push(number);
                continue;
            }
            // A document is found in each part in which it is near.
            search.near.sort_unstable();
            search.near.dedup();
            for &(ordinal, distance) in &search.near {
                if hit(number, ordinal, distance)?.is_break() {
                    break;
                }
            }
        }
        Ok(left)
    }

    /// Returns where to find codes, for reads at random.
    fn code_column(&self) -> Result<CodeColumn<'_>> {
        let (Some((section, layout)), Some(codes)) = (&self.fields, self.params().codes) else {
            return Err(Error::Invalid("this segment has no codes".into()));
        };
        // A document has at least the field of its code. If the fields of all documents take no more, each takes that much.
        let each = code_field_bytes(codes);
        let step = (section.rows == self.documents() * each).then_some(each);
        Ok(CodeColumn { segment: self, section, layout, codes, step })
    }

    /// Returns whether this number of queries together would be answered by parts rather than by a comparison of all.
    #[must_use]
    pub fn uses_parts(&self, queries: usize, within: u32) -> bool {
        let (Some(parts), Some(codes)) = (&self.parts, self.params().codes) else { return false };
        let scan = scan_work(codes.bits, self.documents(), within, queries);
        work(parts.cut, self.documents(), within) < scan
    }

    /// Returns the number of parts of the codes; 0 if the segment has none.
    #[must_use]
    pub fn part_count(&self) -> usize {
        self.parts.as_ref().map_or(0, |parts| parts.sections.len())
    }

    /// Calls `each` with the key and the ordinal of each entry of a part, numbered from 0, in ascending order. Does nothing
    /// if the segment has no such part.
    ///
    /// # Errors
    /// [`Error::Corrupt`], or the error that `each` returns.
    pub fn for_each_part_entry(&self, part: usize, each: impl FnMut(u32, u32) -> Result<()>) -> Result<()> {
        match self.parts.as_ref().and_then(|parts| parts.sections.get(part)) {
            Some((section, layout)) => self.for_each_entry(section, layout, each),
            None => Ok(()),
        }
    }

    /// Returns the fingerprint of a document, whether it is a simhash or a code; `None` if it has none, or fingerprints are
    /// not stored.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    pub(crate) fn code(&self, ordinal: u32) -> Result<Option<Code>> {
        let Some(codes) = self.params().codes else {
            let fingerprint = self.rank(ordinal)?.map(|rank| self.fingerprint(rank)).transpose()?;
            return Ok(fingerprint.map(Code::from));
        };
        self.fields(ordinal)?.fingerprint(codes).map_err(|fault| self.wrong_fields(ordinal, fault))
    }

    /// Replaces the contents of `out` with the 64-bit words of the fingerprints of these documents, one after the other; zeros
    /// for a document without tokens. Leaves it empty if the index stores no codes.
    ///
    /// # Errors
    /// [`Error::Corrupt`], also for an ordinal that no document has.
    pub fn code_words(&self, ordinals: Range<u32>, out: &mut Vec<u64>) -> Result<()> {
        out.clear();
        let Some(codes) = self.params().codes else { return Ok(()) };
        self.for_each_code(ordinals, codes, |code| {
            out.extend(code.as_chunks().0.iter().map(|word| u64::from_be_bytes(*word)));
        })
    }

    /// Calls `each` with the fingerprints of these documents, which are at least one.
    #[inline(always)]
    fn for_each_code(
        &self,
        ordinals: Range<u32>,
        codes: CodeParams,
        mut each: impl FnMut(&[u8]),
    ) -> Result<()> {
        let mut take = |ordinal: u32, fields: &[u8]| {
            each(Fields::of(fields).code(codes).map_err(|fault| self.wrong_fields(ordinal, fault))?);
            Ok(())
        };
        let column = self.code_column()?;
        let Some(step) = column.step else { return self.for_each_fields(ordinals, take) };
        ordinals
            .clone()
            .zip(column.stepped(ordinals, step)?)
            .try_for_each(|(ordinal, fields)| take(ordinal, fields))
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::format::attached::Attached;
    use crate::format::fields;
    use crate::segment::build::build_with_parts;
    use crate::segment::records::Records;
    use crate::sys::RealVfs;
    use crate::{Key, Params};

    #[test]
    fn query_whose_buckets_are_long_is_left_to_a_scan() {
        let params = Params::builder().u64_keys().codes(256, 8).build().unwrap();
        let (mut records, mut encoded) = (Records::new(&params), Vec::new());
        for number in 0..5000_u64 {
            // All codes agree in three quarters of their bits.
            let words = [0, 0, number.wrapping_mul(0x9E37_79B9_7F4A_7C15), 0];
            fields::encode(&params, false, &words, None, &mut encoded);
            let attached = Attached { fields: Fields::of(&encoded), ..Attached::default() };
            records.push_with(Key::U64(number), None, attached).unwrap();
        }
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.seg");
        build_with_parts(&records, &RealVfs, dir.path(), 16).unwrap().publish(&path).unwrap();
        let segment = Segment::open(&RealVfs, Path::new(&path)).unwrap();
        let parts = segment.parts.as_ref().unwrap();
        let share = scan_work(256, 5000, 8, 64);
        let ask = |code: [u64; 4]| {
            let mut found = Vec::new();
            let hit = |_, ordinal, _| {
                found.push(ordinal);
                Ok(ControlFlow::Continue(()))
            };
            let code = Code::of_words(&code).unwrap();
            let left = segment.search_parts(parts, &[code], (8, share), &mut { hit }).unwrap();
            (left, found)
        };
        assert_eq!(ask([0; 4]), (vec![0], vec![]));
        assert_eq!(ask([!0; 4]), (vec![], vec![]));
        let mut found = Vec::new();
        let all = [Code::of_words(&[0; 4]).unwrap(); 64];
        segment
            .search_codes(&all, 8, |query, ordinal, distance| {
                found.push((query, ordinal, distance));
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        assert!(found.contains(&(63, 0, 0)));
    }
}
