//! The bodies of the fuzz targets. Fuzzing needs a nightly compiler; `tests/it/fuzz_regressions.rs` calls the same bodies
//! with the inputs that fuzzing found, on a stable compiler.

pub mod codecs;
mod directory;
mod files;
mod living;
mod many;
mod sketching;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use twindex::design::DesignName;
use twindex::format::attached::Attached;
use twindex::format::checksum::checksum;
use twindex::format::current::Current;
use twindex::format::fields::{self, Fields};
use twindex::format::header::{HEADER_BYTES, Header, Role};
use twindex::format::log::{LOG_HEAD_BYTES, LogBatch, encode_head, record_salt};
use twindex::format::manifest::{LogEntry, Logged, Manifest, SegmentEntry};
use twindex::format::sketches::Row;
use twindex::segment::records::Kept;
use twindex::segment::{Records, SearchOptions, SearchScratch, Segment, build};
use twindex::{Fingerprint, Index, Key, Params, Sketch, Sketcher};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

pub use codecs::{codecs, sections};
pub use directory::directory;
pub use files::{idf, sketches};
pub use living::{bands, living};
pub use many::many;
pub use sketching::sketch;

use super::memory::MemoryVfs;
use super::near::{self, CODECS, DESIGNS, FARTHEST, NearOrdinals};
use super::{Compared, Sample, Seals, SegmentQueries, compare, place, samples as segments};

/// A fuzz target. Panics if the library violates a property on this input.
pub type Target = fn(&[u8]);

/// All targets by name.
pub const TARGETS: [(&str, Target); 14] = [
    ("segment", segment),
    ("segment_resealed", segment_resealed),
    ("manifest", manifest),
    ("log", log),
    ("answers", answers),
    ("sketch", sketch),
    ("idf", idf),
    ("sketches", sketches),
    ("codecs", codecs),
    ("sections", sections),
    ("bands", bands),
    ("directory", directory),
    ("living", living),
    ("many", many),
];

type IndexAnswers = Vec<twindex::Result<Vec<u64>>>;
static SAMPLES: LazyLock<Vec<(Sample, Seals, SegmentQueries, IndexAnswers)>> = LazyLock::new(|| {
    let samples = segments().into_iter().map(|sample| {
        let sound = Segment::from_bytes(sample.bytes.clone(), place()).unwrap();
        let questions = SegmentQueries::of(&sound, &[0, 3, 10]);
        let answered = questions.ask(&sound);
        (Seals::of(&sample.bytes), questions, answered, sample)
    });
    samples.map(|(seals, questions, answered, sample)| (sample, seals, questions, answered)).collect()
});

/// Opens raw bytes as a segment; if they open, runs all queries.
pub fn segment(data: &[u8]) {
    if let Ok(segment) = Segment::from_bytes(data.to_vec(), place()) {
        for (_, _, questions, _) in &*SAMPLES {
            questions.ask(&segment);
        }
        segment.verify(|_| ());
    }
}

/// Changes `file` by patches of four bytes: an offset (2 bytes), an operation (2 bits) and a value. An operation can
/// repeat the value over the next 8 bytes, to fill a whole field.
fn patch(file: &mut [u8], patches: &[u8]) {
    for patch in patches.chunks_exact(4) {
        let at = usize::from(u16::from_le_bytes([patch[0], patch[1]])) % file.len();
        let value = patch[3];
        match patch[2] & 3 {
            0 => file[at] = value,
            1 => file[at] ^= 1 << (value % 8),
            2 => file[at] = file[at].wrapping_add(value),
            _ => {
                let end = file.len().min(at + 8);
                file[at..end].fill(value);
            }
        }
    }
}

/// Patches an undamaged segment, updates its checksums, opens it and runs all queries. If `verify` finds no problem, the
/// answers must equal the answers of the undamaged segment.
pub fn segment_resealed(data: &[u8]) {
    let Some((&which, patches)) = data.split_first() else { return };
    let (sample, seals, questions, answered) = &SAMPLES[usize::from(which) % SAMPLES.len()];
    let mut file = sample.bytes.clone();
    patch(&mut file, patches);
    seals.reseal(&mut file, true);
    let Ok(segment) = Segment::from_bytes(file, place()) else { return };
    let found = questions.ask(&segment);
    if segment.verify(|_| ()).is_empty() {
        let compared = compare(&found, answered);
        assert_eq!(compared, Compared::Same, "{}: verify found nothing", sample.name);
    }
}

/// Decodes manifests: raw bytes, and patched ones with updated checksums. Opens an index with each as its newest
/// manifest.
pub fn manifest(data: &[u8]) {
    let _ = Manifest::decode(data);
    let _ = Current::read(data);

    let sample = &SAMPLES[0];
    let segment = Segment::from_bytes(sample.0.bytes.clone(), place()).unwrap();
    let entry = |number, deleted: &[u32]| SegmentEntry {
        number,
        length: segment.length(),
        digest: segment.digest(),
        salt: segment.salt(),
        documents: segment.documents(),
        deleted: deleted.iter().collect(),
    };
    let sound = Manifest {
        uuid: 7,
        read_only_compatible: 0,
        generation: 3,
        next_segment: 4,
        params: segment.params().clone(),
        segments: vec![entry(1, &[0, 2]), entry(2, &[])],
        logged: None,
        now: None,
    };
    let mut bytes = sound.encode();
    // The first byte is the number of bytes to remove from the end, and determines whether bytes are appended instead.
    let Some((&cut, patches)) = data.split_first() else { return };
    let body = bytes.len() - 4;
    bytes.truncate(body - usize::from(cut % 64).min(body - HEADER_BYTES));
    if cut >= 128 {
        let tail = patches.len().min(128);
        bytes.extend_from_slice(&patches[..tail]);
        patch(&mut bytes, &patches[tail..]);
    } else {
        patch(&mut bytes, patches);
    }
    let (mut header, _) = Header::read_from_prefix(&bytes).unwrap();
    let salt = header.salt.get();
    header.checksum = U32::new(checksum(salt, 0, &header.as_bytes()[..HEADER_BYTES - 4]));
    bytes[..HEADER_BYTES].copy_from_slice(header.as_bytes());
    let sealed = checksum(salt, 0, &bytes);
    bytes.extend_from_slice(&sealed.to_le_bytes());

    let decoded = Manifest::decode(&bytes);
    if let Ok(manifest) = &decoded {
        assert_eq!(Manifest::decode(&manifest.encode()).as_ref(), Ok(manifest));
    }
    let dir = Path::new("index");
    let vfs = MemoryVfs::default();
    let generation = bytes.get(64..72).map_or(3, |field| u64::from_le_bytes(field.try_into().unwrap()));
    let current = Current::new(salt, header.params_digest.get(), generation, Manifest::digest(&bytes));
    vfs.set(&dir.join("CURRENT"), current.as_bytes().to_vec());
    vfs.set(&dir.join(format!("MANIFEST-{generation:06}")), bytes);
    for number in 1..3 {
        vfs.set(&dir.join(format!("{number:06}.seg")), sample.0.bytes.clone());
    }
    if let Ok(index) = Index::open_with(Arc::new(vfs), dir) {
        let snapshot = index.snapshot();
        assert!(decoded.is_ok());
        assert!(snapshot.documents() <= segment.documents() * 2);
        let _ = snapshot.get(5);
        let _ = snapshot.within(Fingerprint(0), 10).run();
        let _ = index.refresh();
    }
}

/// Builds tables of any design and codec from arbitrary fingerprints, and runs arbitrary queries. The answers must equal the
/// answers of a brute-force search or, for a free design, of the definition. A batch of queries must give the same answers
/// as the queries one by one.
pub fn answers(data: &[u8]) {
    let &[design, codecs, keys, ref rest @ ..] = data else { return };
    let (design, codecs) = (DESIGNS[usize::from(design) % 16], CODECS[usize::from(codecs) % 11]);
    let mut fingerprints: Vec<u64> = Vec::new();
    for bytes in rest.chunks_exact(5).take(400) {
        let mask = u64::from(u32::from_le_bytes([bytes[1], bytes[2], bytes[3], bytes[4]]));
        let last = fingerprints.last().copied().unwrap_or(0);
        let turned = mask.rotate_left(u32::from(bytes[0]) / 4);
        fingerprints.push(match bytes[0] % 4 {
            0 => last,
            1 => last ^ turned,
            2 => mask.wrapping_mul(0x9E37_79B9_7F4A_7C15),
            _ => fingerprints[usize::from(bytes[1]) % fingerprints.len().max(1)..]
                .first()
                .map_or(turned, |old| {
                    old ^ 1 << (bytes[2] % 64) ^ 1 << (bytes[3] % 64) ^ 1 << (bytes[4] % 64)
                }),
        });
    }
    let (queries, given) = fingerprints.split_at(fingerprints.len() / 8);
    // Tables are probed only if they have many fingerprints. Some fingerprints therefore add a group of others with the
    // same first bits.
    let crowd = |&fingerprint: &u64| {
        let mut random = super::Random(fingerprint);
        let (size, agree) = (fingerprint % 16, fingerprint >> 4 & 31);
        std::iter::once(fingerprint).chain((0..size).map(move |_| fingerprint ^ random.next() >> agree))
    };
    // Makes the order of the keys differ from the order of the fingerprints.
    let stored: Vec<(u64, u64)> =
        (0..).map(|key| key ^ u64::from(keys)).zip(given.iter().flat_map(crowd)).collect();
    let mut records = Records::new(&near::params(design, codecs));
    for &(key, fingerprint) in &stored {
        records.push(Key::U64(key), Some(Kept { fingerprint, ..Kept::default() })).unwrap();
    }
    let vfs = MemoryVfs::default();
    build::build(&records, &vfs, Path::new("")).unwrap().publish(place()).unwrap();
    let segment = Segment::open(&vfs, place()).unwrap();
    assert!(segment.verify(|_| ()).is_empty());
    let mut by_key = stored;
    by_key.sort_unstable();
    let by_ordinal: Vec<u64> = by_key.into_iter().map(|(_, fingerprint)| fingerprint).collect();

    let queries = &queries[..queries.len().min(24)];
    let all: Vec<NearOrdinals> = queries.iter().map(|&query| near::scan(&by_ordinal, query)).collect();
    let mut scratch = SearchScratch::default();
    for within in 0..=design.parse::<DesignName>().unwrap().within_max().min(FARTHEST) {
        let expected: Vec<NearOrdinals> = queries
            .iter()
            .zip(&all)
            .map(|(&query, all)| near::expected(design, &by_ordinal, query, all, within))
            .collect();
        for together in [1, queries.len().max(1)] {
            let batches = queries.chunks(together).zip(expected.chunks(together));
            for (queries, expected) in batches {
                let mut found = vec![NearOrdinals::new(); queries.len()];
                let each = |query: usize, ordinal, distance| {
                    found[query].push((ordinal, distance));
                    Ok(ControlFlow::Continue(()))
                };
                segment.search_documents(queries, SearchOptions::within(within), &mut scratch, each).unwrap();
                for found in &mut found {
                    found.sort_unstable();
                }
                assert_eq!(found, expected, "{design} {codecs}: {queries:x?} within {within}");
            }
        }
    }
}

/// Reads choices from consecutive bytes of an input. After the end of the input, all choices are 0.
pub(super) struct Choices<'a>(&'a [u8]);

impl Choices<'_> {
    fn byte(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn short(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    fn word(&mut self) -> u32 {
        u32::from(self.short()) | u32::from(self.short()) << 16
    }

    fn of<'b, T>(&mut self, all: &'b [T]) -> &'b T {
        &all[usize::from(self.byte()) % all.len()]
    }
}

/// The UUID of the index and the number of the fuzzed log.
const LOGGED: (u128, u64) = (7, 1);

/// Returns a valid log of three batches, and the offsets of the start and the end of each record.
fn sound_log(params: &Params) -> (Vec<u8>, Vec<(usize, usize)>) {
    let (uuid, number) = LOGGED;
    let mut bytes = encode_head(uuid, params, number, 2);
    let (mut records, mut encoded) = (Vec::new(), Vec::new());
    for commit in 2..5_u64 {
        let mut batch = LogBatch::default();
        let set: Vec<u64> = (0..commit * 20).map(|hash| hash << 52 | commit).collect();
        let priority = params.priorities.then_some(commit);
        fields::encode(params, params.marks && commit == 3, &set, priority, &mut encoded);
        let of_document = Fields::of(&encoded);
        let attached = |stamp| Attached { value: b"value", stamp: Some(stamp), fields: of_document };
        for key in ["a", "bb", "ccc"] {
            let features = [commit << 32, 9 << 40];
            let row = Row {
                fingerprint: commit,
                features: &features,
                signature: &[1, 2, 3, 4],
                bottom: &[commit],
                modular: &[],
            };
            batch.put(params, Key::from(key), Some(row), attached(commit * 3));
        }
        batch.put(params, Key::from("empty"), None, attached(7));
        batch.delete(Key::from("bb"));
        let start = bytes.len();
        batch.encode(&mut bytes, record_salt(uuid, number), start as u64, commit, 88, Some(b"payload"));
        records.push((start, bytes.len()));
    }
    (bytes, records)
}

/// The parameters of the fuzzed logs, each with a sketch to query.
static OF_LOGS: LazyLock<[(Params, Sketch); 2]> = LazyLock::new(|| {
    let builder = || Params::builder().simhash(3).minhash(2, 2).bottom(3).values().expire_after(5);
    [builder(), builder().sets().marks().priorities()].map(|builder| {
        let params = builder.build().unwrap();
        let sketch = Sketcher::new(&params).unwrap().sketch("one two three four five six seven").unwrap();
        (params, sketch)
    })
});

/// Opens an index with the raw bytes as its log, and an index with a valid log that is patched and has updated checksums.
/// Reads all documents of both. Runs with an index without fields, and with one that stores sets, marks and priorities.
pub fn log(data: &[u8]) {
    for (params, sketch) in &*OF_LOGS {
        log_of(params, sketch, data);
    }
}

fn log_of(params: &Params, sketch: &Sketch, data: &[u8]) {
    let (uuid, number) = LOGGED;
    let logs = vec![LogEntry { number, first: 2, length: 0, grows: true }];
    let manifest = Manifest {
        uuid,
        read_only_compatible: 0,
        generation: 2,
        next_segment: 1,
        params: params.clone(),
        segments: Vec::new(),
        logged: Some(Logged { next_log: 2, payload: None, logs }),
        now: None,
    };
    let manifest = manifest.encode();
    let current = Current::new(uuid, params.digest(), 2, Manifest::digest(&manifest));
    let open = |log: Vec<u8>| {
        let vfs = MemoryVfs::default();
        vfs.set(Path::new("x/CURRENT"), current.as_bytes().to_vec());
        vfs.set(Path::new("x/MANIFEST-000002"), manifest.clone());
        vfs.set(Path::new("x/LOG-000001"), log);
        let Ok(index) = Index::open_with(Arc::new(vfs), Path::new("x")) else { return false };
        let snapshot = index.snapshot();
        let mut count = 0;
        snapshot
            .for_each_key(|key| {
                count += 1;
                assert!(snapshot.get(key)?.is_some());
                Ok(())
            })
            .unwrap();
        assert_eq!(count, snapshot.documents());
        assert!(snapshot.within(Fingerprint(3), 3).run().unwrap().hits.len() as u64 <= count);
        assert!(snapshot.near(sketch).run().unwrap().hits.len() as u64 <= count);
        true
    };
    open(data.to_vec());
    let (mut bytes, records) = sound_log(params);
    assert!(!data.is_empty() || open(bytes.clone()), "a sound log does not open");
    patch(&mut bytes[LOG_HEAD_BYTES as usize..], data);
    for (start, end) in records {
        let sum = checksum(record_salt(uuid, number), start as u64, &bytes[start + 4..end]);
        bytes[start..start + 4].copy_from_slice(&sum.to_le_bytes());
    }
    open(bytes);
}

/// Returns the seeds of a target: valid inputs with which fuzzing starts.
pub fn seeds(target: &str) -> Vec<Vec<u8>> {
    match target {
        "segment" => segments().into_iter().map(|sample| sample.bytes).collect(),
        "segment_resealed" => {
            (0..segments().len() as u8).map(|which| vec![which, 70, 1, 0, 1, 200, 2, 3, 255]).collect()
        }
        "manifest" => {
            let header = Header::new(Role::Manifest, 7, 9);
            vec![header.as_bytes().to_vec(), vec![0, 64, 0, 0, 5], vec![130, 1, 2, 3, 4, 5, 6, 7, 8]]
        }
        "log" => {
            let params = Params::builder().simhash(3).minhash(2, 2).bottom(3).build().unwrap();
            let (sound, _) = sound_log(&params);
            let (with_sets, _) = sound_log(&OF_LOGS[1].0);
            // The last patch changes the set of the first document.
            let patches = [vec![20, 0, 0, 9], vec![50, 0, 3, 255, 60, 0, 2, 1], vec![130, 0, 1, 3]];
            [sound, with_sets, Vec::new()].into_iter().chain(patches).collect()
        }
        "answers" => {
            let mut random = super::Random(1);
            let mut seed = |size: usize, design: usize, codecs: usize| {
                let mut bytes = vec![design as u8, codecs as u8];
                bytes.extend((0..size).map(|_| random.next() as u8));
                bytes
            };
            let sizes = [0, 6, 60, 300, 2001];
            let of_sizes: Vec<Vec<u8>> = sizes.iter().map(|&size| seed(size, 3, 5)).collect();
            let of_designs = (0..DESIGNS.len()).map(|design| seed(1001, design, design * 3 % CODECS.len()));
            of_sizes.into_iter().chain(of_designs).collect()
        }
        "idf" => files::idf_seeds(),
        "sketches" => files::sketches_seeds(),
        "codecs" => codecs::codecs_seeds(),
        "sections" => codecs::sections_seeds(),
        "bands" => living::bands_seeds(),
        "directory" => directory::seeds(),
        "living" => living::living_seeds(),
        "many" => many::seeds(),
        _ => sketching::seeds(),
    }
}
