//! Helpers shared by the tests. This file is for tests of damage, of the store and of fuzzing: small segments of
//! every kind, queries that cover a segment, and functions that damage a file and then update its checksums.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

pub mod attached;
pub mod faults;
pub mod fuzzing;
pub mod golden;
pub mod itself;
pub mod lead_byte;
pub mod leaders;
pub mod marks;
pub mod memory;
pub mod model;
pub mod near;
pub mod random;
pub mod skip;

use std::ops::{ControlFlow, Range};
use std::path::Path;

use twindex::format::attached::Attached;
use twindex::format::checksum::{PAGE, checksum};
use twindex::format::contents::{ENTRY_BYTES, Kind};
use twindex::format::fields::{self, Fields};
use twindex::format::footer::{FOOTER_BYTES, Footer};
use twindex::format::header::{HEADER_BYTES, Header};
use twindex::format::table::Probe;
use twindex::segment::records::Kept;
use twindex::segment::{Records, SearchOptions, SearchScratch, Segment, build};
use twindex::sketch::Nearness;
use twindex::{Code, Key, KeyBuf, Params, Result};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use memory::MemoryVfs;
pub use random::Random;

/// Returns the path that errors show for a segment in memory.
pub fn place() -> &'static Path {
    Path::new("000001.seg")
}

/// Returns the bytes of a segment file with these records.
pub fn bytes_of(records: &Records) -> Vec<u8> {
    let vfs = MemoryVfs::default();
    build::build(records, &vfs, Path::new("")).unwrap().publish(place()).unwrap();
    vfs.get(place())
}

/// Returns the bytes of a segment file with these records and this number of parts.
pub fn bytes_with_parts(records: &Records, parts: usize) -> Vec<u8> {
    let vfs = MemoryVfs::default();
    let built = build::build_with_parts(records, &vfs, Path::new(""), parts).unwrap();
    built.publish(place()).unwrap();
    vfs.get(place())
}

/// An undamaged segment file and its name in messages.
pub struct Sample {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// Returns a small segment of every kind. Together the segments have every section, every codec, posting lists, documents
/// without tokens, directories with and without bits, and padding bits wherever the format has them. With so few
/// fingerprints, exact designs scan all of them, but free designs still probe.
pub fn samples() -> Vec<Sample> {
    let only_simhash = Params::builder().u64_keys().simhash(3).build().unwrap();
    let both = Params::builder().words(2).simhash(3).minhash(2, 2).signature_bits(8).build().unwrap();
    let only_minhash = Params::builder().u64_keys().minhash(2, 3).signature_bits(1).build().unwrap();
    let features_only = Params::builder().minhash(1, 1).signature_bits(0).build().unwrap();
    let with_samples = Params::builder().u64_keys().simhash(3).bottom(3).modulus(3).build().unwrap();
    let long_samples = Params::builder().minhash(1, 2).signature_bits(0).bottom(30).build().unwrap();
    let attached = Params::builder().simhash(3).values().expire_after(60).build().unwrap();
    let only_stamps = Params::builder().u64_keys().minhash(1, 1).expire_after(1).build().unwrap();
    let bytes_of_features = Params::builder().u64_keys().minhash(2, 1).signature_bits(0).feature_bits(8);
    let bytes_of_features = bytes_of_features.build().unwrap();
    let sets = Params::builder().u64_keys().minhash(1, 1).signature_bits(0).sets().marks();
    let sets = sets.suffixes().priorities().build().unwrap();
    let marks = Params::builder().simhash(3).marks().build().unwrap();
    let codes = Params::builder().codes(256, 31).priorities().build().unwrap();
    let bits_of_features = Params::builder().minhash(2, 1).signature_bits(1).feature_bits(1).build().unwrap();
    let sample = |name: &str, params: &Params, count, codec: Option<&str>| Sample {
        name: name.into(),
        bytes: bytes_of(&records(&with_codec(params, codec), count)),
    };
    let mut empty_texts = Records::new(&both);
    for key in ["a", "b"] {
        empty_texts.push(Key::from(key), None).unwrap();
    }
    let mut all = vec![
        sample("three fingerprints", &only_simhash, 3, None),
        sample("forty of everything", &both, 40, None),
        sample("twenty with minhash", &only_minhash, 20, None),
        sample("three with features", &features_only, 3, None),
        sample("filters of 3 bytes", &only_simhash, 24, Some("planes+3")),
        sample("filters of 4 bytes", &only_simhash, 24, Some("planes+4")),
        sample("nothing, by number", &only_simhash, 0, None),
        sample("nothing, by name", &both, 0, None),
        Sample { name: "texts without a token".into(), bytes: bytes_of(&empty_texts) },
        sample("twelve with both samples", &with_samples, 12, None),
        sample("twenty with long samples", &long_samples, 20, None),
        sample("nothing, with samples", &with_samples, 0, None),
        sample("twenty with values and stamps", &attached, 20, None),
        sample("one with a stamp", &only_stamps, 1, None),
        sample("nothing, with values and stamps", &attached, 0, None),
        sample("forty with sets and marks", &sets, 40, None),
        sample("nothing, with sets", &sets, 0, None),
        sample("ten with marks", &marks, 10, None),
        sample("forty with codes", &codes, 40, None),
        Sample { name: "forty with parts".into(), bytes: bytes_with_parts(&records(&codes, 40), 9) },
        sample("forty with features of one byte", &bytes_of_features, 40, None),
        sample("forty with features of one bit", &bits_of_features, 40, None),
    ];
    all.extend(TABLES.map(|(design, codecs, count)| Sample {
        name: format!("{count} in {design} {codecs}"),
        bytes: bytes_of(&records(&near::params(design, codecs), count)),
    }));
    all
}

/// Table designs, their codecs, and the number of records of the segment.
const TABLES: [(&str, &str, u64); 18] = [
    ("reversed-3", "planes", 24),
    ("reversed-3", "compact", 24),
    ("reversed-3", "manku", 24),
    ("reversed-3", "plain", 24),
    ("reversed-3", "planes+2", 24),
    ("reversed-3", "planes+4", 24),
    ("reversed-3", "compact+3", 24),
    ("reversed-3", "manku+2", 24),
    ("reversed-3", "plain+2", 24),
    ("random-3-5-9", "compact", 40),
    ("choose-4-2", "manku", 9),
    ("nested-2-2", "planes+2", 40),
    ("blocks-1", "compact", 3),
    ("blocks-3", "compact", 17),
    ("expansion", "manku", 5),
    ("blocks-2", "compact", 0),
    ("blocks-2", "manku", 0),
    ("prefix-12", "plain", 0),
];

/// Returns the parameters with `codec` as the codec of their tables; unchanged if `codec` is `None`.
pub fn with_codec(params: &Params, codec: Option<&str>) -> Params {
    let mut params = params.clone();
    if let (Some(simhash), Some(codec)) = (&mut params.simhash, codec) {
        simhash.codec = codec.parse().unwrap();
    }
    params
}

/// Returns `count` records. Some have the same fingerprint as the previous record, some have one near it, and some have
/// no sketch.
pub fn records(params: &Params, count: u64) -> Records {
    let mut records = Records::new(params);
    let mut random = Random(count);
    let (bands, signature_bytes) =
        params.minhash.map_or((0, 0), |m| (usize::from(m.bands), m.signature_bytes()));
    // Number of unused bits in the last byte of a signature.
    let spare =
        params.minhash.map_or(0, |m| signature_bytes * 8 - m.minima() * usize::from(m.signature_bits));
    let mut last: Option<(u64, Vec<u64>)> = None;
    for i in 0..count {
        let (mut fingerprint, mut features) = (random.next(), Vec::new());
        features.resize_with(bands, || random.next());
        if let Some((last_fingerprint, last_features)) = &last
            && i % 4 != 0
        {
            fingerprint =
                if i % 4 == 1 { *last_fingerprint } else { last_fingerprint ^ 1 << random.below(64) };
            if let (Some(mine), Some(theirs)) = (features.first_mut(), last_features.first()) {
                *mine = *theirs;
            }
        }
        let mut signature: Vec<u8> = (0..signature_bytes).map(|_| random.next() as u8).collect();
        if let Some(byte) = signature.last_mut() {
            *byte &= 0xFF >> spare;
        }
        // Some documents have fewer hashes than the maximum, and some have no hash divisible by the modulus.
        let mut sampled = |count: usize, modulus: u64| {
            let mut hashes: Vec<u64> =
                (0..count).map(|_| (random.next() >> 16) / modulus * modulus).collect();
            hashes.sort_unstable();
            hashes.dedup();
            hashes
        };
        let (mut bottom, mut modular) = (Vec::new(), Vec::new());
        if params.bottom > 0 {
            bottom = sampled(usize::from(params.bottom).saturating_sub(i as usize % 3).max(1), 1);
        }
        if params.modulus > 0 {
            modular = sampled(i as usize * 5 % 4, params.modulus.into());
        }
        let kept = Kept {
            fingerprint,
            features: &features,
            signature: &signature,
            bottom: &bottom,
            modular: &modular,
        };
        let kept = (i % 10 != 7 && params.codes.is_none()).then_some(kept);
        let value = vec![i as u8; i as usize * 7 % 20];
        // The set has one hash in common with all sets and some in common with the previous one. One set has enough
        // hashes for a bitmap of high bytes.
        let mut set: Vec<u64> = (i / 3..i / 3 + i % 5).map(|hash| (hash + 1) << 40).collect();
        set.extend((0..if i == 6 { 60 } else { 0 }).map(|hash| hash << 56 | 5));
        set.push(u64::MAX);
        set.sort_unstable();
        set.dedup();
        let mut encoded = Vec::new();
        let priority = (params.priorities && i % 4 > 1).then_some(i << 40);
        fields::encode(params, params.marks && i % 4 == 1, &set, priority, &mut encoded);
        let attached = Attached {
            fields: Fields::of(&encoded),
            value: if params.values { &value } else { &[] },
            stamp: params.expire_after.map(|_| 1_000_000 + i * 131 % 700),
        };
        match params.key {
            twindex::params::KeyKind::U64 => records.push_with(Key::U64(5 + 300 * i + i % 3), kept, attached),
            twindex::params::KeyKind::Bytes => {
                let key = format!("https://example.org/{i:03}");
                records.push_with(Key::from(key.as_str()), kept, attached)
            }
        }
        .unwrap();
        last = Some((fingerprint, features));
    }
    records
}

/// Queries that cover a segment, made from the undamaged segment.
pub struct SegmentQueries {
    documents: u32,
    keys: Vec<KeyBuf>,
    fingerprints: Vec<u64>,
    queries: Vec<u64>,
    /// The number of a band and a feature, for each entry of a band.
    features: Vec<(usize, u64)>,
    has_fields: bool,
    /// The fingerprint of each document; empty if fingerprints of any width are not stored.
    codes: Vec<Code>,
    /// The set of each document; empty if sets are not stored.
    sets: Vec<Vec<u64>>,
    radii: &'static [u32],
    /// Only every `step`-th document, key and rank is queried.
    step: usize,
}

impl SegmentQueries {
    /// Returns queries for every key, fingerprint, band key and set in the undamaged segment. Fingerprints are searched
    /// within each Hamming distance in `radii`.
    pub fn of(segment: &Segment, radii: &'static [u32]) -> Self {
        let mut keys = Vec::new();
        segment.for_each_key(|_, key| keys.push(key.to_buf())).unwrap();
        let mut fingerprints = Vec::new();
        segment
            .for_each_fingerprint(|_, fingerprint| {
                fingerprints.push(fingerprint);
                Ok(())
            })
            .unwrap();
        let mut features = Vec::new();
        for band in 0..segment.band_count() {
            segment
                .for_each_band_entry(band, |key, _| {
                    features.push((band, u64::from(key) << 32));
                    Ok(())
                })
                .unwrap();
            features.push((band, 0x1234_5678_9ABC_DEF0));
        }
        features.dedup();
        let mut queries: Vec<u64> = vec![0, u64::MAX];
        queries.extend(fingerprints.iter().enumerate().map(|(i, f)| f ^ (i as u64 % 2) << (i % 64)));
        let documents = segment.documents() as u32;
        let set = |ordinal| collected(|out| segment.set(ordinal, out)).unwrap();
        let sets = if segment.params().sets { (0..documents).map(set).collect() } else { Vec::new() };
        let has_fields = segment.params().sets || segment.params().marks;
        let mut codes = Vec::new();
        if let Some(params) = segment.params().codes {
            let code =
                |ordinal| Code::of_bytes(segment.fields(ordinal).unwrap().code(params).unwrap()).unwrap();
            codes.extend((0..documents).map(code));
        }
        Self { documents, keys, fingerprints, queries, features, has_fields, codes, sets, radii, step: 1 }
    }

    /// Keeps only every `step`-th query, for tests that would otherwise take too long.
    pub fn keep_every(&mut self, step: usize) {
        self.step = step;
        self.queries = self.queries.iter().copied().step_by(step).collect();
    }

    /// Runs all queries on `segment`, and returns the answer or error of each. The number of results is the same for
    /// damaged and undamaged segments.
    #[allow(clippy::too_many_lines, reason = "one query after the other")]
    pub fn ask(&self, segment: &Segment) -> Vec<Result<Vec<u64>>> {
        let mut all: Vec<Result<Vec<u64>>> = vec![Ok(vec![
            segment.documents(),
            segment.distinct_fingerprints(),
            segment.band_count() as u64,
            segment.banded_documents(),
            segment.params().digest() as u64,
            segment.sections().len() as u64,
        ])];
        for ordinal in (0..=self.documents).step_by(self.step) {
            all.push(segment.key(ordinal).map(|key| words(key.as_key())));
            all.push(segment.rank(ordinal).map(|rank| rank.map(u64::from).into_iter().collect()));
            all.push(segment.signature(ordinal).map(|bytes| bytes.iter().map(|&byte| byte.into()).collect()));
            all.push(collected(|out| segment.bottom(ordinal, out)));
            all.push(collected(|out| segment.modular(ordinal, out)));
            all.push(segment.value(ordinal).map(|value| value.iter().map(|&byte| byte.into()).collect()));
            all.push(segment.stamp(ordinal).map(|stamp| stamp.into_iter().collect()));
            if self.has_fields {
                all.push(
                    segment.fields(ordinal).map(|of| vec![of.is_marked().into(), of.priority().unwrap_or(0)]),
                );
                all.push(collected(|out| segment.set(ordinal, out)));
            }
        }
        for set in &self.sets {
            all.push(collected(|out| {
                let near = Nearness::Resemblance(0.8);
                segment.sharing_prefix(set, near, twindex::format::prefixes::Marks::Any, |ordinal, _| {
                    out.push(ordinal.into());
                })
            }));
        }
        let absent = match segment.params().key {
            twindex::params::KeyKind::U64 => [KeyBuf::U64(0), KeyBuf::U64(300), KeyBuf::U64(u64::MAX)],
            twindex::params::KeyKind::Bytes => {
                [&b"\0"[..], b"https://example.org/010x", b"\xFF"].map(|key| KeyBuf::Bytes(key.into()))
            }
        };
        for key in self.keys.iter().step_by(self.step).chain(&absent) {
            // A damaged file may have the other kind of keys, and then refuses the query.
            all.push(segment.find(key.as_key()).map(|found| found.map(u64::from).into_iter().collect()));
        }
        for rank in (0..=self.fingerprints.len() as u32).step_by(self.step) {
            all.push(segment.fingerprint(rank).map(|fingerprint| vec![fingerprint]));
            all.push(collected(|out| segment.postings(rank, |ordinal| out.push(ordinal.into()))));
        }
        for &query in &self.queries {
            for &radius in self.radii {
                let mut near = Vec::new();
                let asked = segment.within(query, radius, |hit| near.push(hit));
                near.sort_unstable_by_key(|hit| hit.rank);
                all.push(asked.map(|()| {
                    near.iter()
                        .flat_map(|hit| [hit.rank.into(), hit.fingerprint, hit.distance.into()])
                        .collect()
                }));
            }
        }
        for code in self.codes.iter().step_by(self.step) {
            for &radius in self.radii {
                all.push(collected(|out| {
                    segment.search_codes(&[*code], radius, |_, ordinal, distance| {
                        out.extend([u64::from(ordinal), distance.into()]);
                        Ok(ControlFlow::Continue(()))
                    })
                }));
            }
        }
        for part in 0..segment.part_count().min(4) {
            all.push(collected(|out| {
                segment.for_each_part_entry(part, |key, ordinal| {
                    out.extend([u64::from(key), ordinal.into()]);
                    Ok(())
                })
            }));
        }
        for probe in [Probe::Directory, Probe::Interpolation, Probe::Binary] {
            let ask = SearchOptions { probe: Some(probe), ..SearchOptions::within(self.radii[0]) };
            let mut near = Vec::new();
            let asked = segment.search_documents(
                &self.queries,
                ask,
                &mut SearchScratch::default(),
                |query, ordinal, distance| {
                    near.push([query as u64, ordinal.into(), distance.into()]);
                    Ok(ControlFlow::Continue(()))
                },
            );
            near.sort_unstable();
            all.push(asked.map(|()| near.concat()));
        }
        for &(band, feature) in &self.features {
            all.push(collected(|out| {
                segment.same_feature(band, feature, |ordinal| out.push(ordinal.into()))
            }));
        }
        all.push(collected(|out| {
            segment.for_each_fingerprint(|rank, fingerprint| {
                out.extend([rank.into(), fingerprint]);
                Ok(())
            })
        }));
        all.push(collected(|out| {
            segment.for_each_key(|ordinal, key| {
                out.push(ordinal.into());
                out.extend(words(key));
            })
        }));
        for band in 0..segment.band_count().min(4) {
            all.push(collected(|out| {
                segment.for_each_band_entry(band, |key, ordinal| {
                    out.extend([u64::from(key), ordinal.into()]);
                    Ok(())
                })
            }));
            all.push(collected(|out| {
                segment.for_each_bucket(band, |key, ordinals| {
                    out.push(key.into());
                    out.extend(ordinals.iter().map(|&ordinal| u64::from(ordinal)));
                    Ok(())
                })
            }));
        }
        all
    }
}

fn collected(ask: impl FnOnce(&mut Vec<u64>) -> Result<()>) -> Result<Vec<u64>> {
    let mut out = Vec::new();
    ask(&mut out).map(|()| out)
}

fn words(key: Key<'_>) -> Vec<u64> {
    match key {
        Key::U64(key) => vec![key],
        Key::Bytes(bytes) => bytes.iter().map(|&byte| byte.into()).collect(),
    }
}

/// The result of comparing the answers of a damaged file with the answers of the undamaged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// All answers are equal.
    Same,
    /// Some queries failed; all other answers are equal.
    Refused,
    /// An answer differs without an error, which these tests must detect. Contains the index of the first such answer.
    Different(usize),
}

pub fn compare(found: &[Result<Vec<u64>>], sound: &[Result<Vec<u64>>]) -> Compared {
    let mut compared =
        if found.len() == sound.len() { Compared::Same } else { Compared::Different(found.len()) };
    for (place, (found, sound)) in found.iter().zip(sound).enumerate() {
        match (found, sound) {
            (Ok(found), Ok(sound)) if found == sound => {}
            (Ok(_), _) => return Compared::Different(place),
            (Err(_), Ok(_)) if compared == Compared::Same => compared = Compared::Refused,
            (Err(_), _) => {}
        }
    }
    compared
}

/// The parts of an undamaged segment file on which its checksums depend.
#[derive(Clone, Copy)]
pub struct Seals {
    salt: u128,
    checksums: (usize, usize),
    contents: usize,
    footer: usize,
}

impl Seals {
    pub fn of(sound: &[u8]) -> Self {
        let segment = Segment::from_bytes(sound.to_vec(), place()).unwrap();
        let checksums = segment.sections().iter().find(|section| section.kind == Kind::Checksums).unwrap();
        let footer = sound.len() - FOOTER_BYTES;
        Self {
            salt: segment.salt(),
            checksums: (checksums.offset as usize, checksums.end() as usize),
            contents: footer - segment.sections().len() * ENTRY_BYTES,
            footer,
        }
    }

    /// Returns the byte range of the table of contents.
    pub fn contents(&self) -> Range<usize> {
        self.contents..self.footer
    }

    /// Updates all checksums of a changed file, so that the change passes them and reaches the other checks. With
    /// `keep_salt`, restores the salt, which is derived from the content of the records; otherwise keeps a changed salt.
    pub fn reseal(&self, file: &mut [u8], keep_salt: bool) {
        let (mut header, _) = Header::read_from_prefix(file).unwrap();
        if keep_salt {
            header.salt.set(self.salt);
        }
        let salt = header.salt.get();
        let sealed = checksum(salt, 0, &header.as_bytes()[..HEADER_BYTES - 4]);
        header.checksum = U32::new(sealed);
        file[..HEADER_BYTES].copy_from_slice(header.as_bytes());

        let (start, end) = self.checksums;
        let pages: Vec<u8> = (0..)
            .zip(file[..start].chunks(PAGE as usize))
            .flat_map(|(page, bytes)| checksum(salt, page * PAGE, bytes).to_le_bytes())
            .collect();
        file[start..end].copy_from_slice(&pages);

        let mut footer = Footer::read_from_bytes(&file[self.footer..]).unwrap();
        footer.checksums_checksum = U32::new(checksum(salt, start as u64, &pages));
        let contents = checksum(salt, self.contents as u64, &file[self.contents..self.footer]);
        footer.contents_checksum = U32::new(contents);
        let footer = footer.sealed(salt, self.footer as u64);
        file[self.footer..].copy_from_slice(footer.as_bytes());
    }
}
