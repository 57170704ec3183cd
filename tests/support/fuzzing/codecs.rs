//! The bodies of the targets `codecs` and `sections`: tables and the smaller sections of a segment, without checksums.
//! Encoded data must round-trip; arbitrary bytes must be decoded or refused.

use std::ops::{ControlFlow, Range};
use std::path::PathBuf;
use std::sync::LazyLock;

use twindex::design::Complete;
use twindex::format::attached::{Stamps, Values};
use twindex::format::bands::{Band, BandEntry, CODEC_BYTES, CODEC_PACKED};
use twindex::format::directory::Directory;
use twindex::format::fields::{self, Fields};
use twindex::format::hot::Hot;
use twindex::format::keys::{self, Frame, GROUP};
use twindex::format::prefixes::{tag, tags_of};
use twindex::format::samples::{self, SampleChoice, Samples};
use twindex::format::table::{Codec, Columns, Filter, Layout, Probe, Source};
use twindex::format::wire::{self, Fault};
use twindex::format::{contents, design, footer, header, idf, place, postings, ranks};
use twindex::{Error, Params, Result};
use twindex_kernel::{Kernel, Level, Simd};

use super::{Choices, patch};

/// The bytes of a section, in memory.
#[derive(Clone, Copy)]
pub struct Section<'a>(pub &'a [u8]);

impl<'a> Source<'a> for Section<'a> {
    fn read(self, range: Range<u64>) -> Result<&'a [u8]> {
        let bytes = self.0.get(range.start as usize..range.end as usize);
        bytes.ok_or_else(|| {
            self.corrupt(Fault::new(range.start, "a place in the section", format!("{range:?}")))
        })
    }

    fn corrupt(self, fault: Fault) -> Error {
        Error::Corrupt {
            path: PathBuf::new(),
            section: "fuzzed",
            offset: fault.offset,
            expected: fault.expected,
            found: fault.found,
        }
    }

    fn hint(self, _: u64) {}
}

/// The parts of a section, as an encoder writes them.
#[derive(Default)]
pub struct Parts(Vec<Vec<u8>>);

impl Columns for Parts {
    fn put(&mut self, part: usize, bytes: &[u8]) -> Result<()> {
        if self.0.len() <= part {
            self.0.resize(part + 1, Vec::new());
        }
        self.0[part].extend_from_slice(bytes);
        Ok(())
    }
}

impl Parts {
    /// Returns the bytes of the section. The bytes of gaps between parts are `None`.
    pub fn joined(self) -> Vec<Option<u8>> {
        let mut section = Vec::new();
        for part in self.0 {
            section.resize(place(section.len() as u64, part.len() as u64) as usize, None);
            section.extend(part.into_iter().map(Some));
        }
        section
    }

    fn section(self) -> Vec<u8> {
        self.joined().into_iter().map(Option::unwrap_or_default).collect()
    }
}

const CODECS: [Codec; 7] = [
    Codec::Complete(Complete::Planes),
    Codec::Complete(Complete::Compact),
    Codec::Complete(Complete::Manku),
    Codec::Complete(Complete::Plain),
    Codec::Partial(2),
    Codec::Partial(3),
    Codec::Partial(4),
];

const PROBES: [Probe; 3] = [Probe::Directory, Probe::Interpolation, Probe::Binary];

/// A scan of a range of rows of a table, which runs as a [`Kernel`] at any SIMD level.
struct Scan<'a> {
    layout: &'a Layout,
    section: Section<'a>,
    rows: Range<u64>,
    query: u64,
    radius: u32,
}

impl Kernel for Scan<'_> {
    type Output = Result<Vec<(u64, u64)>>;

    #[inline(always)]
    fn run<S: Simd>(self, simd: S) -> Self::Output {
        let mut found = Vec::new();
        if let Layout::Filter(filter) = self.layout {
            let query = (self.query >> 48) as u16;
            let each = |row, pointer: u16| found.push((row, u64::from(pointer)));
            filter.candidates(simd, self.section, &self.rows, query, self.radius, each)?;
            return Ok(found);
        }
        let each = |row, value| {
            found.push((row, value));
            ControlFlow::Continue(())
        };
        let _ = self.layout.scan(simd, self.section, self.rows, self.query, self.radius, each)?;
        Ok(found)
    }
}

/// Runs every query on a table whose bytes may be invalid. Each must return an answer or an error.
fn ask(layout: &Layout, section: Section<'_>, rows: u64, queries: &[u64]) {
    let mut last = None;
    let _ = layout.for_each(section, |row, value| {
        assert!(row < rows, "row {row} of {rows}");
        assert!(last.is_none_or(|last| last <= value), "{value:x} does not ascend");
        last = Some(value);
        Ok(())
    });
    for &query in queries {
        let row = query % (rows + 2);
        let _ = layout.value(section, row);
        if let Ok(Some(found)) = layout.find(section, query) {
            assert!(found < rows, "{query:x} in row {found} of {rows}");
        }
        // If a table can be searched only through its directory, the library looks up only prefixes in it, never whole
        // keys.
        let max = if matches!(layout, Layout::Filter(_) | Layout::Planes(_)) { 48 } else { 64 };
        for bits in [0, 1, 9, 17, 33, max] {
            let prefix = query.checked_shr(64 - bits).unwrap_or(0);
            layout.hint_directory(section, prefix, bits);
            for probe in PROBES {
                if layout.check_probe(probe).is_err() {
                    continue;
                }
                let Ok(found) = layout.rows(section, prefix, bits, probe) else { continue };
                assert!(found.is_empty() || found.end <= rows, "{found:?} of {rows}");
                layout.hint_rows(section, &found);
                if found.end - found.start.min(found.end) < 5000 {
                    for level in Level::ALL {
                        let scan = Scan { layout, section, rows: found.clone(), query, radius: 9 };
                        let _ = level.dispatch(scan);
                    }
                }
                if !found.is_empty() {
                    layout.hint_row(section, found.start);
                    if let Layout::Filter(filter) = layout {
                        let _ = filter.distance(section, found.start, query);
                    }
                }
            }
        }
    }
}

/// Returns arbitrary values: runs, clusters, evenly ascending ones, and random ones.
fn values(choices: &mut Choices<'_>) -> Vec<u64> {
    let mut values = Vec::new();
    let mut last = 0_u64;
    while !choices.0.is_empty() && values.len() < 3000 {
        let (how, what) = (choices.byte(), u64::from(choices.short()));
        let far = what.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        match how % 5 {
            0 => last = far,
            1 => last ^= 1 << (what % 64),
            2 => last = last.wrapping_add(what),
            3 => last = what << (how / 5),
            _ => {
                // Adds a run of values, so that a few input bytes create many rows.
                values.extend((0..what % 300).map(|i| last.wrapping_add(i << (how / 5 % 48))));
            }
        }
        values.push(last);
    }
    values
}

/// Tests tables of each codec: one of arbitrary values, which must round-trip; the same table after patches; and raw
/// bytes.
pub fn codecs(data: &[u8]) {
    let mut choices = Choices(data);
    let (codec, lead) = (*choices.of(&CODECS), 1 + u32::from(choices.byte()) % 40);
    let (patches, rows) = (usize::from(choices.byte()) % 32 * 4, u64::from(choices.short()));
    let queries = [u64::from(choices.word()) << 32, 0, u64::MAX, 0x0123_4567_89AB_CDEF];

    let raw = Section(choices.0);
    if let Ok(layout) = Layout::open(codec, raw, rows, lead, choices.0.len() as u64) {
        ask(&layout, raw, rows, &queries);
    }

    let (patches, rest) = choices.0.split_at(patches.min(choices.0.len()));
    let mut all = values(&mut Choices(rest));
    all.sort_unstable();
    let rows = match codec {
        Codec::Complete(_) => {
            all.dedup();
            all.len() as u64
        }
        Codec::Partial(width) => {
            let used = Filter::of(all.len() as u64, lead, width).directory.bits + 8 * u32::from(width);
            for value in &mut all {
                *value &= u64::MAX.checked_shl(64 - used.min(64)).unwrap_or(0);
            }
            all.len() as u64
        }
    };
    let mut parts = Parts::default();
    codec.encode(rows, lead, || all.iter().map(|&value| Ok(value)), &mut parts).unwrap();
    let mut bytes = parts.section();
    let length = bytes.len() as u64;
    {
        let section = Section(&bytes);
        let layout = Layout::open(codec, section, rows, lead, length).unwrap();
        let mut found = Vec::new();
        layout
            .for_each(section, |row, value| {
                assert_eq!(row, found.len() as u64);
                found.push(value);
                Ok(())
            })
            .unwrap();
        assert_eq!(found, all, "{codec:?}");
        if let Codec::Complete(_) = codec {
            for (row, &value) in all.iter().enumerate().step_by(all.len() / 40 + 1) {
                assert_eq!(layout.value(section, row as u64).unwrap(), value);
                assert_eq!(layout.find(section, value).unwrap(), Some(row as u64));
            }
            for query in queries {
                let expected = all.binary_search(&query).ok().map(|row| row as u64);
                assert_eq!(layout.find(section, query).unwrap(), expected);
                let expected: Vec<(u64, u64)> =
                    (0..).zip(all.iter().copied()).filter(|(_, v)| (v ^ query).count_ones() <= 9).collect();
                for level in Level::ALL {
                    let scan = Scan { layout: &layout, section, rows: 0..rows, query, radius: 9 };
                    assert_eq!(level.dispatch(scan).unwrap(), expected, "{codec:?} {level:?}");
                }
            }
        }
        ask(&layout, section, rows, &queries);
    }
    if !bytes.is_empty() && !patches.is_empty() {
        patch(&mut bytes, patches);
        let section = Section(&bytes);
        if let Ok(layout) = Layout::open(codec, section, rows, lead, length) {
            ask(&layout, section, rows, &queries);
        }
    }
}

/// Tests each of the smaller sections: heads, keys, postings, ranks, samples, values, stamps, bands, directories, fields.
#[allow(clippy::too_many_lines, reason = "one section after the other")]
pub fn sections(data: &[u8]) {
    let mut choices = Choices(data);
    let (which, rows) = (choices.byte(), u64::from(choices.short()));
    let bytes = choices.0;
    let length = bytes.len() as u64;
    match which % 13 {
        0 => {
            for role in [header::Role::Segment, header::Role::Manifest, header::Role::Idf] {
                let _ = header::Header::read(bytes, role);
            }
            let _ = footer::Footer::read(bytes, u128::from(rows), length);
        }
        1 => {
            if let Ok(frame) = Frame::read(&bytes[..bytes.len().min(16)], length, rows) {
                for ordinal in 0..rows {
                    let range = frame.range(ordinal);
                    let Some(bytes) = bytes.get(range.start as usize..range.end as usize) else { continue };
                    let _ = frame.decode(ordinal, bytes);
                }
            }
        }
        2 => front_coded(bytes, rows),
        3 => {
            for rank in 0..rows.min(300) {
                let range = postings::range(rank);
                let Some(bytes) = bytes.get(range.start as usize..range.end as usize) else { break };
                let _ = postings::decode(bytes, rank, rows);
                let _ = ranks::decode(bytes, rank, rows);
                let _ = postings::list_range(bytes, rows, rank as u32, rows);
            }
            let mut last = None;
            let _ = postings::ordinals(bytes, 0, rows, |ordinal| {
                assert!(u64::from(ordinal) < rows && last.is_none_or(|last| last < ordinal));
                last = Some(ordinal);
                std::ops::ControlFlow::Continue(())
            });
        }
        4 | 5 => sampled(which, rows, bytes),
        6 => {
            for values in [Values::of, Values::of_fields].into_iter().filter_map(|of| of(rows, rows / 3)) {
                for ordinal in 0..(rows / 3).min(300) {
                    let at = values.offsets(ordinal);
                    let Some(offsets) = bytes.get(at.start as usize..at.end as usize) else { break };
                    if let Ok(range) = values.range(offsets, ordinal) {
                        assert!(range.start <= range.end && range.end <= values.length);
                    }
                }
            }
        }
        7 => {
            let Ok(stamps) = Stamps::read(&bytes[..bytes.len().min(16)], length, rows) else { return };
            for ordinal in 0..rows {
                let range = stamps.range(ordinal);
                let Some(bytes) = bytes.get(range.start as usize..range.end as usize) else { continue };
                if let Ok(stamp) = stamps.decode(bytes, ordinal) {
                    let mut again = Vec::new();
                    stamps.encode(stamp, &mut again);
                    assert_eq!(again, bytes);
                }
            }
        }
        8 => {
            for codec in [CODEC_BYTES, CODEC_PACKED] {
                let bits = 1 + u32::from(bytes.first().copied().unwrap_or(0)) % 32;
                let band = Band::of(rows, rows.max(1) * 2, bits, codec);
                let (all, place) = (0..rows, band.entries(&(0..rows)));
                let Some(entries) = bytes.get(place.start as usize..place.end as usize) else { continue };
                let (mut again, mut writer) = (Vec::new(), band.writer());
                for entry in band.decode(entries, &all) {
                    writer.put(band.encode(BandEntry { tag: entry.tag, ordinal: entry.ordinal }), &mut again);
                }
                writer.finish(&mut again);
                assert_eq!(band.overfull(entries, rows).is_none(), again == entries);
                // Decoding only a range of rows must give the same entries.
                let some = rows / 3..rows - rows / 4;
                let place = band.entries(&some);
                let alone = &bytes[place.start as usize..place.end as usize];
                assert!(
                    band.decode(alone, &some).eq(band
                        .decode(entries, &all)
                        .skip(some.start as usize)
                        .take((some.end - some.start) as usize))
                );
            }
        }
        9 => {
            let directory = Directory::of(rows, 16);
            let source = Section(bytes);
            for prefix in 0..(1_u64 << directory.bits).min(300) {
                if let Ok(found) = directory.bucket(source, prefix) {
                    assert!(found.start <= found.end && found.end <= rows);
                }
                let _ = directory.next_bucket(source, prefix, prefix);
                directory.hint(source, prefix, 16);
            }
            for row in 0..rows.min(300) {
                let _ = directory.prefix_of(source, row);
            }
        }
        11 => document_fields(bytes, rows),
        10 => {
            let source = Section(bytes);
            let bits = 8 + (rows % 16) as u32;
            let Ok(hot) = Hot::open(source, rows, length, 1 << 30, bits) else { return };
            for bucket in &hot.buckets {
                for j in 0..4 {
                    for prefix in [0, 1, u64::MAX >> 40] {
                        let Ok(rows) = bucket.nested_rows(source, j, prefix) else { continue };
                        let _ = bucket.filters(source, j, &rows);
                        let _ = bucket.rank(source, j, rows.start, 1000);
                    }
                }
            }
        }
        _ => {
            let _ = contents::read(bytes, rows);
            let _ = design::decode(bytes);
            let _ = idf::decode(bytes);
            let mut at = 0;
            while let Ok(value) = wire::take_varint(bytes, &mut at, "number") {
                let mut again = Vec::new();
                wire::put_varint(&mut again, value as u32);
                assert_eq!(bytes[at - again.len()..at], again);
            }
        }
    }
}

/// Parameters of indexes that store sets, marks, both, or both with priorities.
static WITH_FIELDS: LazyLock<[Params; 4]> = LazyLock::new(|| {
    let builder = || Params::builder().minhash(1, 1);
    [builder().sets(), builder().marks(), builder().sets().marks(), builder().sets().marks().priorities()]
        .map(|builder| builder.build().unwrap())
});

/// Tests the fields of a document. Raw bytes must be refused or be the canonical encoding of the decoded fields. A set
/// made from the bytes must round-trip. `tags_of` must return the tags (the upper 32 bits)
/// of the first elements of a set in class order, which are also computed from a sorted copy.
fn document_fields(bytes: &[u8], rows: u64) {
    let mut read = Vec::new();
    for params in &*WITH_FIELDS {
        let of_document = Fields::of(bytes);
        let whole = of_document.set_into(&mut read);
        if of_document.check(params).is_err() {
            continue;
        }
        whole.unwrap();
        assert!(read.is_sorted_by(|a, b| a < b));
        assert_eq!(of_document.set_size().unwrap(), read.len());
        let mut again = Vec::new();
        fields::encode(params, of_document.is_marked(), &read, of_document.priority(), &mut again);
        assert_eq!(again, bytes);
    }
    let spread = [1, 0x9E37_79B9_7F4A_7C15, 1 << 56, 1 << 32][rows as usize % 4];
    let mut set: Vec<u64> = bytes
        .chunks(2)
        .map(|some| some.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)).wrapping_mul(spread))
        .collect();
    set.sort_unstable();
    set.dedup();
    let mut encoded = Vec::new();
    let priority = (rows & 8 == 8).then_some(rows);
    fields::encode(&WITH_FIELDS[3], rows & 4 == 4, &set, priority, &mut encoded);
    let of_document = Fields::of(&encoded);
    of_document.check(&WITH_FIELDS[3]).unwrap();
    assert_eq!((of_document.is_marked(), of_document.priority()), (rows & 4 == 4, priority));
    of_document.set_into(&mut read).unwrap();
    assert_eq!(read, set);

    let class = |tag: u32| (tag.wrapping_mul(0x9E37_79B1) >> 24) as u8 & (rows >> 3) as u8;
    let length = if rows & 1 == 1 { set.len() } else { (rows >> 4) as usize % (set.len() + 2) };
    let mut found = Vec::new();
    tags_of(&set, length, |tag| Ok(class(tag)), &mut found).unwrap();
    set.sort_by_key(|&hash| (class(tag(hash)), hash));
    let mut expected: Vec<u32> = set.iter().take(length).map(|&hash| tag(hash)).collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(found, expected);
}

/// Tests groups of front-coded keys: decodes raw bytes, and checks that keys made from the bytes round-trip.
fn front_coded(bytes: &[u8], rows: u64) {
    let _ = keys::decode_group(bytes, 0, rows, |_, _| true);
    let mut all: Vec<&[u8]> = bytes.split(|&byte| byte == 0).filter(|key| !key.is_empty()).collect();
    all.sort_unstable();
    all.dedup();
    let mut section = Vec::new();
    let put = |bytes: &[u8]| {
        section.extend_from_slice(bytes);
        Ok::<(), ()>(())
    };
    keys::write_front(all.iter().copied(), put).unwrap();
    let rows = all.len() as u64;
    let mut found = Vec::new();
    for group in 0..keys::groups(rows) {
        let at = keys::group_offsets(group);
        let offsets = &section[at.start as usize..at.end as usize];
        let range = keys::group_range(offsets, group, section.len() as u64, rows).unwrap();
        let bytes = &section[range.start as usize..range.end as usize];
        let first = group * GROUP;
        keys::decode_group(bytes, first, rows, |_, key| {
            found.push(key.to_vec());
            true
        })
        .unwrap();
    }
    assert!(found.iter().map(Vec::as_slice).eq(all));
}

fn sampled(which: u8, rows: u64, bytes: &[u8]) {
    let choice = if which.is_multiple_of(2) {
        SampleChoice::Bottom(1 + (rows % 4000) as u16)
    } else {
        SampleChoice::Modular(1 + (rows % 100) as u32)
    };
    let documents = rows / 2;
    let Some(samples) = Samples::of(choice, rows, documents) else { return };
    for ordinal in 0..documents.min(300) {
        let at = samples.offsets(ordinal);
        let Some(offsets) = bytes.get(at.start as usize..at.end as usize) else { break };
        let Ok(range) = samples.range(offsets, ordinal) else { continue };
        assert!(range.start <= range.end && range.end <= samples.length);
    }
    let mut out = Vec::new();
    if samples.decode(bytes, 0, &mut out).is_ok() {
        assert!(choice.check_values(&out).is_ok());
        let mut again = Vec::new();
        samples::encode(&out, &mut again);
        assert_eq!(again, bytes[..again.len()]);
    }
}

pub(super) fn codecs_seeds() -> Vec<Vec<u8>> {
    let mut random = super::super::Random(5);
    let mut seeds = Vec::new();
    for codec in 0..CODECS.len() as u8 {
        for (lead, patches, size) in [(0, 0, 0_usize), (3, 0, 30), (11, 2, 300), (19, 6, 2400)] {
            let mut seed = vec![codec, lead, patches, (size % 256) as u8, 0, 1, 2, 3, 4];
            seed.extend((0..size).map(|_| random.next() as u8));
            seeds.push(seed);
        }
    }
    seeds
}

pub(super) fn sections_seeds() -> Vec<Vec<u8>> {
    let mut random = super::super::Random(6);
    let mut seeds: Vec<Vec<u8>> = (0..13)
        .map(|which| {
            [&[which, 20, 0][..], &(0..300).map(|_| random.next() as u8 & 3).collect::<Vec<_>>()].concat()
        })
        .collect();
    for (rows, count) in [(0, 0), (7, 3), (9, 40), (14, 300), (3, 900)] {
        let set: Vec<u64> = (0..count).map(|hash| hash * (u64::MAX / 1000)).collect();
        let mut encoded = Vec::new();
        fields::encode(&WITH_FIELDS[2], count % 2 == 1, &set, None, &mut encoded);
        seeds.push([&[11, rows, 1][..], &encoded].concat());
    }
    seeds.push([&[2, 4, 0][..], b"key one\0key two\0key twofold\0other"].concat());
    for width in 0..9 {
        let mut head = vec![1, 9, 0, 7, 0, 0, 0, 0, 0, 0, 0, width, 0, 0, 0, 0, 0, 0, 0];
        head.extend((0..u64::from(width) * 9).map(|_| random.next() as u8 & 1));
        seeds.push(head.clone());
        head[0] = 7;
        seeds.push(head);
    }
    seeds
}
