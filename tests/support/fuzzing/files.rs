//! The bodies of the targets `idf` and `sketches`: IDF tables and files of sketches. Decoded data must be encoded to the
//! same bytes.

use std::sync::{Arc, LazyLock};

use twindex::format::checksum::checksum;
use twindex::format::fields::{self, FIELDS_BYTES_MAX, Fields};
use twindex::format::footer;
use twindex::format::header::{HEADER_BYTES, Header, Role};
use twindex::format::idf as table_file;
use twindex::format::sketches::{
    BLOCK_BYTES, BLOCK_HEAD_BYTES, Decoder, END_BYTES, Encoded, Encoder, Row, SketchFileEnd,
};
use twindex::idf::{from_bytes, to_bytes};
use twindex::params::{KeyKind, ShingleHash, Shingling, StopWords, Tokens};
use twindex::sketch::idf::weight;
use twindex::sketch::{Sketcher, weighted};
use twindex::{KeyBuf, Params};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use super::super::Random;
use super::{Choices, patch};

/// The offset of the length of a table's text; the text follows the length.
const TEXT_LENGTH_AT: usize = HEADER_BYTES + 20;
/// The offset of the length of the parameters in a file of sketches; the parameters follow the length.
const PARAMS_AT: usize = HEADER_BYTES + 4;

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|bytes| u32::from_le_bytes(bytes.try_into().unwrap()))
}

/// Asserts that a file is encoded to the same bytes again. Only compatible features, which readers ignore, may be lost,
/// and with them the header's checksum may change.
fn assert_same(read: &[u8], written: &[u8]) {
    let mut header = Header::read_from_prefix(read).unwrap().0;
    let again = Header::read_from_prefix(written).unwrap().0;
    if header.compatible.get() == 0 && header.read_only_compatible.get() == 0 {
        assert!(read == written, "{} bytes encoded to {} others", read.len(), written.len());
    }
    header.compatible = again.compatible;
    header.read_only_compatible = again.read_only_compatible;
    header.checksum = again.checksum;
    assert_eq!(header.as_bytes(), again.as_bytes());
    assert!(read[HEADER_BYTES..] == written[HEADER_BYTES..], "encoded to other bytes");
}

/// Valid tables to patch, with different kinds of tokens: one with a few entries, one with many and one without entries.
static TABLES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let mut words = Shingling::words(2, 7);
    words.stop_words = StopWords::new(["a", "the", "łódź"]).unwrap();
    let mut characters = Shingling::words(5, 0);
    (characters.tokens, characters.hash) = (Tokens::Characters, ShingleHash::RabinKarp);
    let mut features = Shingling::words(1, 3);
    features.tokens = Tokens::Features;
    [(words, 3, 1), (characters, 300, 0), (features, 0, 4)]
        .map(|(shingling, entries, absent)| {
            let hashes: Vec<u64> = (0..entries).map(|i| i * (u64::MAX / 300) + i % 7).collect();
            let frequencies: Vec<u32> = (0..entries).map(|i| 1 + (i * i % 9) as u32).collect();
            table_file::encode(9, absent, &shingling, &hashes, &frequencies)
        })
        .into()
});

/// Updates the digests and the header checksum of a table.
fn reseal_table(file: &mut [u8]) {
    let Ok((mut header, _)) = Header::read_from_prefix(file) else { return };
    header.salt.set(xxh3_128(&file[HEADER_BYTES..]));
    let text =
        u32_at(file, TEXT_LENGTH_AT).and_then(|length| file[TEXT_LENGTH_AT + 4..].get(..length as usize));
    if let Some(text) = text {
        header.params_digest.set(xxh3_128(text));
    }
    seal_header(file, header);
}

fn seal_header(file: &mut [u8], mut header: Header) {
    header.checksum = U32::new(checksum(header.salt.get(), 0, &header.as_bytes()[..HEADER_BYTES - 4]));
    file[..HEADER_BYTES].copy_from_slice(header.as_bytes());
}

/// Truncates the file or appends bytes of `more`, depending on `by`. Half of the values of `by` do neither.
fn resize(file: &mut Vec<u8>, by: u8, more: &[u8]) {
    match by {
        0..128 => {}
        128..192 => file.truncate(file.len() - usize::from(by - 127).min(file.len())),
        192.. => file.extend_from_slice(&more[..more.len().min(usize::from(by - 191))]),
    }
}

/// Tests IDF tables: raw bytes, valid tables with patches and updated digests, and tables of arbitrary columns.
pub fn idf(data: &[u8]) {
    read_table(data);
    let mut choices = Choices(data);
    let (how, by) = (choices.byte(), choices.byte());
    if how % 3 == 0 {
        let mut file = Header::new(Role::Idf, 0, 0).as_bytes().to_vec();
        file.extend_from_slice(choices.0);
        reseal_table(&mut file);
        read_table(&file);
    } else if how % 3 == 1 {
        let mut file = TABLES[usize::from(how / 3) % TABLES.len()].clone();
        patch(&mut file, choices.0);
        resize(&mut file, by, choices.0);
        reseal_table(&mut file);
        read_table(&file);
    } else {
        let mut shingling = Shingling::words(how / 3 % 16 + 1, by.into());
        shingling.hash = *choices.of(ShingleHash::ALL);
        let (documents, absent) = (choices.word(), choices.word() >> 16);
        let (mut hashes, mut frequencies) = (Vec::new(), Vec::new());
        let mut last = 0_u64;
        while !choices.0.is_empty() {
            let (step, frequency) = (choices.short(), choices.byte());
            // Steps have any size, so that prefixes of hashes can be unique or shared by many hashes. If a step
            // is 0 or overflows, the hashes do not ascend.
            last = last.wrapping_add(u64::from(step >> 6) << (step & 63));
            hashes.push(last);
            frequencies.push(u32::from(frequency));
        }
        let file = table_file::encode(documents, absent, &shingling, &hashes, &frequencies);
        let ascending = hashes.is_sorted_by(|a, b| a < b);
        let in_range = frequencies.iter().all(|&df| df >= absent.max(1) && df <= documents);
        let sound = ascending && in_range && absent <= documents;
        assert_eq!(
            read_table(&file),
            sound,
            "{documents} documents, {absent} absent: {hashes:x?} {frequencies:?}"
        );
    }
}

/// Returns whether these bytes are a valid table. If so, checks the table's content and weights against the bytes.
fn read_table(bytes: &[u8]) -> bool {
    let parts = table_file::decode(bytes);
    let Ok(table) = from_bytes(bytes) else {
        assert!(parts.is_err());
        return false;
    };
    let parts = parts.unwrap();
    assert_eq!(to_bytes(&table), bytes);
    let (documents, absent) = (parts.documents, parts.absent);
    let (hashes, frequencies): (Vec<u64>, Vec<u32>) =
        parts.hashes.iter().map(|hash| hash.get()).zip(parts.frequencies.iter().map(|df| df.get())).unzip();
    let again = table_file::encode(documents, absent, &parts.shingling, &hashes, &frequencies);
    assert_same(bytes, &again);
    assert_eq!((table.documents(), table.absent(), table.digest()), (documents, absent, parts.digest));
    assert_eq!((table.len(), table.is_empty()), (parts.hashes.len(), parts.hashes.is_empty()));

    let columns =
        || parts.hashes.iter().map(|hash| hash.get()).zip(parts.frequencies.iter().map(|df| df.get()));
    assert!(table.iter().eq(columns()));
    let mut items = Vec::new();
    for (hash, frequency) in columns() {
        assert_eq!(table.weight(hash), weight(documents, frequency), "{hash:016x}");
        for near in [hash ^ 1, hash ^ 1 << 48, hash ^ 1 << 63] {
            let df = parts.hashes.binary_search_by_key(&near, |hash| hash.get());
            let df = df.map_or(absent, |place| parts.frequencies[place].get());
            assert_eq!(table.weight(near), weight(documents, df), "{near:016x}");
        }
        items.push((hash, i64::from(weight(documents, frequency))));
    }
    let hashes: Vec<u64> = items.iter().map(|item| item.0).collect();
    assert_eq!(table.simhash(&hashes), weighted(items));

    assert!(table.check_shingling(&parts.shingling).is_ok());
    let builder = Params::builder().shingling(parts.shingling.clone());
    let params = builder.simhash_weighted(3, table.weights()).build().unwrap();
    assert!(table.check(&params.sketch()).is_ok());
    let features = parts.shingling.tokens == Tokens::Features;
    // The table may need a Unicode version that this build does not support.
    if let Ok(sketcher) = Sketcher::with_idf(&params, Arc::new(table)) {
        assert_eq!(sketcher.sketch("The quick brown fox").is_err(), features);
    }
    true
}

pub(super) fn idf_seeds() -> Vec<Vec<u8>> {
    let patched = (0..3).map(|which| vec![which * 3 + 1, 0, 64, 0, 1, 3, 80, 0, 2, 1]);
    let bodies = TABLES.iter().map(|table| [&[0, 0], &table[HEADER_BYTES..]].concat());
    let ascending = (0..40_u8).flat_map(|i| [0x40 + i / 2, 0, 1 + i % 5]);
    let columns: Vec<u8> = [2, 9, 0, 9, 0, 0, 0, 0, 0, 1, 0].into_iter().chain(ascending).collect();
    // A table of one document, without entries, that assigns a document frequency of nine to absent shingles, which is
    // impossible.
    let absent = vec![2, 9, 0, 1, 0, 0, 0, 0, 0, 9, 0];
    TABLES.iter().cloned().chain(patched).chain(bodies).chain([columns, absent]).collect()
}

/// A record of a file of sketches.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Record {
    key: KeyBuf,
    sketch: Option<KeptRecord>,
    /// The encoded set; empty if the file stores no sets.
    set: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct KeptRecord {
    fingerprint: u64,
    features: Vec<u64>,
    signature: Vec<u8>,
    bottom: Vec<u64>,
    modular: Vec<u64>,
}

impl KeptRecord {
    fn of(row: Row<'_>) -> Self {
        Self {
            fingerprint: row.fingerprint,
            features: row.features.to_vec(),
            signature: row.signature.to_vec(),
            bottom: row.bottom.to_vec(),
            modular: row.modular.to_vec(),
        }
    }

    fn row(&self) -> Row<'_> {
        Row {
            fingerprint: self.fingerprint,
            features: &self.features,
            signature: &self.signature,
            bottom: &self.bottom,
            modular: &self.modular,
        }
    }
}

/// Encodes these records as a file. Passes `at_once` records at a time to the encoder.
fn write_sketches(params: &Params, records: &[Record], at_once: usize) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = Encoder::new(params, &mut file);
    let mut encoded = Encoded::new(params);
    for some in records.chunks(at_once.max(1)) {
        encoded.clear();
        for Record { key, sketch, set } in some {
            encoded.push_with(key.as_key(), sketch.as_ref().map(KeptRecord::row), Fields::of(set)).unwrap();
        }
        encoder.append(&encoded, &mut file);
    }
    encoder.finish(&mut file);
    file
}

/// Returns the parameters and records of a file, or `None` if the file is invalid. Checks that the records are encoded to
/// the same bytes.
fn read_sketches(file: &[u8]) -> Option<(Params, Vec<Record>)> {
    let (mut decoder, mut rest, mut records) = (Decoder::new(), file, Vec::new());
    while decoder.wants() > 0 {
        // A set in a file can be as long as in an index.
        let max = if decoder.params().is_some_and(|params| params.sets) { FIELDS_BYTES_MAX } else { 0 };
        assert!(decoder.wants() < max + (1 << 20), "{} bytes, unchecked", decoder.wants());
        assert_eq!(decoder.offset(), (file.len() - rest.len()) as u64);
        let at_block = decoder.is_at_block();
        let (part, later) = rest.split_at_checked(decoder.wants())?;
        let mut rows = decoder.feed(part).ok()?;
        while let Some((key, row, set)) =
            rows.next_with_set().expect("a block is checked before its records are given")
        {
            assert!(at_block);
            set.set_into(&mut Vec::new()).unwrap();
            records.push(Record {
                key: key.to_buf(),
                sketch: row.map(KeptRecord::of),
                set: set.bytes().to_vec(),
            });
        }
        rest = later;
    }
    assert_eq!(decoder.documents(), records.len() as u64);
    let params = decoder.params().cloned().expect("there are parameters before the end");
    assert_same(&file[..file.len() - rest.len()], &write_sketches(&params, &records, 2));
    rest.is_empty().then_some((params, records))
}

/// Returns an encoded set of `count` hashes; empty if the parameters store no sets.
fn set_of(params: &Params, count: u64, shift: u32) -> Vec<u8> {
    let mut encoded = Vec::new();
    let set: Vec<u64> = (0..count).map(|hash| hash << shift | hash).collect();
    fields::encode(params, false, &set, None, &mut encoded);
    encoded
}

/// Valid files to patch. Together they have records with every combination of parts, and several blocks, one or none.
static FILES: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let only_simhash = Params::builder().u64_keys().simhash(3).build().unwrap();
    let both = Params::builder().simhash(3).minhash(2, 3).signature_bits(1).build().unwrap();
    let sampled = Params::builder().minhash(2, 2).signature_bits(8).bottom(4).modulus(3).build().unwrap();
    let narrow = Params::builder().minhash(2, 2).signature_bits(0).feature_bits(8).build().unwrap();
    let with_sets = Params::builder().simhash(3).minhash(1, 1).sets().marks().build().unwrap();
    let file = |params: &Params, count: u64, key_bytes: usize| {
        let mut random = Random(count);
        let records: Vec<Record> = (0..count)
            .map(|i| Record {
                key: match params.key {
                    KeyKind::U64 => KeyBuf::U64(i * 300),
                    KeyKind::Bytes => KeyBuf::Bytes(vec![b'a' + i as u8 % 26; key_bytes].into()),
                },
                sketch: (i % 5 != 2).then(|| KeptRecord {
                    fingerprint: random.next(),
                    features: (0..params.minhash.map_or(0, |m| m.bands)).map(|_| random.next()).collect(),
                    // Signatures have six bits, or a multiple of eight bits.
                    signature: vec![0x2A; params.minhash.map_or(0, |m| m.signature_bytes())],
                    bottom: (0..u64::from(params.bottom)).map(|hash| hash << 40 | i).collect(),
                    modular: (0..u64::from(params.modulus) * i % 4).map(|hash| hash * 3).collect(),
                }),
                set: set_of(params, [0, 1, 3, 60][i as usize % 4], 57),
            })
            .collect();
        write_sketches(params, &records, 3)
    };
    vec![
        file(&only_simhash, 6, 0),
        file(&both, 12, 5),
        file(&sampled, 9, 2),
        file(&both, 5, 30_000),
        file(&sampled, 0, 1),
        file(&narrow, 6, 3),
        file(&with_sets, 9, 2),
    ]
});

/// Updates the checksums and digests of a changed file. With `counts`, also updates the counts at its end.
fn reseal_sketches(file: &mut [u8], counts: bool) {
    let (Ok((mut header, _)), Some(length)) = (Header::read_from_prefix(file), u32_at(file, HEADER_BYTES))
    else {
        return;
    };
    let params_end = PARAMS_AT + length as usize;
    let text = file.get(PARAMS_AT..params_end);
    let salt = text.map_or(header.salt.get(), xxh3_128);
    header.salt.set(salt);
    header.params_digest.set(salt);
    seal_header(file, header);
    let seal = |file: &mut [u8], start: usize, end: usize| {
        let sum = checksum(salt, start as u64, file.get(start..end)?);
        file.get_mut(end..end + 4)?.copy_from_slice(&sum.to_le_bytes());
        Some(sum)
    };
    let mut at = params_end + 4;
    let (mut blocks, mut sums) = (0, Xxh3Default::new());
    let mut sealed = seal(file, HEADER_BYTES, params_end);
    while sealed.is_some() {
        if file.get(at..at + 8) == Some(&footer::MAGIC[..]) {
            let Some(Ok(mut end)) = file.get(at..at + END_BYTES).map(SketchFileEnd::read_from_bytes) else {
                return;
            };
            end.digest.set(sums.digest128());
            if counts {
                end.blocks.set(blocks);
                end.file_length.set((at + END_BYTES) as u64);
            }
            file[at..at + END_BYTES].copy_from_slice(end.as_bytes());
            seal(file, at, at + END_BYTES - 4);
            return;
        }
        let Some(length) = u32_at(file, at + 4) else { return };
        let end = at + BLOCK_HEAD_BYTES + length as usize;
        sealed = seal(file, at, end);
        sums.update(&sealed.unwrap_or(0).to_le_bytes());
        blocks += 1;
        at = end + 4;
    }
}

/// Tests files of sketches: raw bytes, valid files with patches and updated checksums, and files of arbitrary records.
pub fn sketches(data: &[u8]) {
    read_sketches(data);
    let mut choices = Choices(data);
    let (how, by) = (choices.byte(), choices.byte());
    if how % 2 == 0 {
        let mut file = FILES[usize::from(how / 4) % FILES.len()].clone();
        patch(&mut file, choices.0);
        resize(&mut file, by, choices.0);
        reseal_sketches(&mut file, how & 2 == 0);
        read_sketches(&file);
    } else {
        records(how, by, choices);
    }
}

static WITH_SETS: LazyLock<Params> =
    LazyLock::new(|| Params::builder().minhash(1, 1).sets().build().unwrap());

/// Encodes records made from the input. The encoder must accept exactly the records that match the parameters, and these
/// must round-trip.
fn records(how: u8, by: u8, mut choices: Choices<'_>) {
    let bands = by % 4;
    let mut builder =
        Params::builder().bottom(300 * u16::from(how >> 1 & 1)).modulus(u32::from(how >> 2 & 1));
    if how & 8 > 0 {
        builder = builder.u64_keys();
    }
    if how & 16 > 0 || bands == 0 {
        builder = builder.simhash(3);
    }
    if bands > 0 {
        builder = builder.minhash(bands.into(), (how >> 5).max(1).into()).signature_bits(1 << (by >> 2 & 3));
    }
    if bands > 0 && by >= 128 {
        builder = builder.sets();
    }
    let params = builder.build().unwrap();
    let (mut records, mut bytes) = (Vec::new(), 0);
    let mut encoded = Encoded::new(&params);
    while !choices.0.is_empty() && bytes < 2 * BLOCK_BYTES {
        let (flags, fill) = (choices.byte(), choices.byte());
        // One record in eight has a key of the wrong kind.
        let number = (params.key == KeyKind::U64) != (flags & 7 == 7);
        let length = usize::from(choices.short());
        let key = if number { KeyBuf::U64(length as u64) } else { KeyBuf::Bytes(vec![fill; length].into()) };
        let mut fits = (params.key == KeyKind::U64) == number && (number || length > 0);
        let sketch = (flags & 8 == 0).then(|| {
            let minhash = params.minhash;
            let bands = minhash.map_or(0, |m| usize::from(m.bands)) + usize::from(flags >> 4 == 15);
            let bits = minhash.map_or(0, |m| m.minima() * usize::from(m.signature_bits));
            let mut signature = vec![fill; bits.div_ceil(8)];
            if let Some(last) = signature.last_mut() {
                *last &= 0xFF >> (bits.div_ceil(8) * 8 - bits);
            }
            fits &= flags >> 4 != 15;
            let mut sampled = |kept: bool, allowed: std::ops::RangeInclusive<usize>| {
                // Samples are mostly valid. They have up to 255 hashes, rarely more, and none if the parameters store no
                // samples.
                let mut count = if kept { usize::from(choices.byte()) } else { 0 };
                let step = u64::from(choices.byte());
                if step == 99 {
                    count = usize::from(choices.short()) + 1;
                }
                let sample: Vec<u64> = (1..=count as u64).map(|i| (i * step) << (step & 31)).collect();
                let ascend = sample.is_sorted_by(|a, b| a < b);
                let fits_width =
                    sample.last().is_none_or(|last| last >> (8 * twindex::format::samples::VALUE_BYTES) == 0);
                let size = if kept { allowed } else { 0..=0 };
                fits &= ascend && fits_width && size.contains(&sample.len());
                sample
            };
            let (bottom, modular) =
                (sampled(params.bottom > 0, 1..=300), sampled(params.modulus > 0, 0..=65_535));
            let fingerprint = if params.simhash.is_some() { u64::from(fill) << (flags & 63) } else { 0 };
            KeptRecord {
                fingerprint,
                features: vec![u64::from(fill) << 32; bands],
                signature,
                bottom,
                modular,
            }
        });
        // One record in sixteen has a set that it must not have, or lacks a set that it must have.
        let turned = flags >> 4 == 14;
        fits &= !turned;
        let set =
            if params.sets == turned { Vec::new() } else { set_of(&WITH_SETS, u64::from(fill) % 64, 40) };
        let row = sketch.as_ref().map(KeptRecord::row);
        let pushed = encoded.push_with(key.as_key(), row, Fields::of(&set));
        let refusal = pushed.err().map_or_else(String::new, |error| error.to_string());
        assert_eq!(refusal.is_empty(), fits, "{refusal}: {length} bytes of key");
        assert!(refusal.len() < 1000, "{} bytes to refuse one record", refusal.len());
        bytes += length
            + set.len()
            + sketch.as_ref().map_or(0, |kept| 6 * (kept.bottom.len() + kept.modular.len()));
        if fits {
            records.push(Record { key, sketch, set });
        }
    }
    let file = write_sketches(&params, &records, usize::from(by >> 4));
    let mut whole = Vec::new();
    let mut encoder = Encoder::new(&params, &mut whole);
    encoder.append(&encoded, &mut whole);
    encoder.finish(&mut whole);
    assert!(file == whole, "the file does not depend on who encoded the records");
    assert_eq!(read_sketches(&file), Some((params, records)));
}

pub(super) fn sketches_seeds() -> Vec<Vec<u8>> {
    let patched = (0..7).map(|which| vec![which * 4, 0, 200, 1, 1, 3]);
    let records = [
        // The first seed has numeric keys; the second has all parts of a sketch.
        [&[1 | 8 | 16, 0][..], &[0, 7, 1, 0, 0, 0, 8, 0, 2, 0]].concat(),
        [&[1 | 6 | 16, 2][..], &[0, 9, 3, 0, 2, 1, 3, 1, 8, 1, 2, 0, 0, 5, 1, 0, 9, 3, 0, 1]].concat(),
        // The first of these stores sets, and one set is missing. The second has long samples and keys, so that the file
        // has several blocks.
        [&[1 | 16, 128 + 16 + 1][..], &[0, 9, 3, 0, 8, 50, 1, 0, 16, 1, 2, 0, 224, 7, 2, 0]].concat(),
        [&[1 | 6 | 16, 1][..], &[16, 9, 255, 255, 2, 99, 255, 63, 3, 1].repeat(5)].concat(),
    ];
    FILES.iter().filter(|file| file.len() < 8192).cloned().chain(patched).chain(records).collect()
}
