//! The body of the target `directory`: the files of an index are damaged, removed, or mixed with files of another index.
//! In some cases checksums and digests are updated after that. If the result opens, it is queried, verified, salvaged and
//! written to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use twindex::format::checksum::checksum;
use twindex::format::current::Current;
use twindex::format::header::{HEADER_BYTES, Header};
use twindex::format::log::{LOG_HEAD_BYTES, record_salt};
use twindex::format::manifest::Manifest;
use twindex::segment::Segment;
use twindex::store::salvage::salvage;
use twindex::store::verify::verify;
use twindex::sys::Vfs;
use twindex::sys::vfs::TemporaryFile;
use twindex::{Document, Index, Params, Sketch, Sketcher, Writer, WriterOptions};
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, IntoBytes};

use super::super::Seals;
use super::super::model::{Disk, ModelVfs};
use super::{Choices, patch};

type Files = BTreeMap<String, Vec<u8>>;
type Answers = Vec<Option<String>>;

const DIR: &str = "/index";

struct SoundDirectory {
    files: Files,
    uuid: u128,
    seals: BTreeMap<String, Seals>,
    /// The answers after each commit; the last entry is the current state.
    answers: Vec<Answers>,
}

/// The sketches to query, for each of the two elements of [`params`].
static SKETCHES: LazyLock<[Vec<Sketch>; 2]> = LazyLock::new(|| {
    params().map(|params| {
        let sketcher = Sketcher::new(&params).unwrap();
        (0..5).map(|i| sketcher.sketch(&text(i * 7)).unwrap()).collect()
    })
});

/// Two indexes for each of the two elements of [`params`]; their files can be mixed.
static INDEXES: LazyLock<[SoundDirectory; 4]> = LazyLock::new(|| {
    let [plain, with_sets] = params();
    [made(0, &plain), made(3, &plain), made(0, &with_sets), made(3, &with_sets)]
});

fn params() -> [Params; 2] {
    let builder = || Params::builder().words(1).simhash(3).minhash(2, 2).bottom(2).values().expire_after(90);
    [builder(), builder().sets().suffixes().marks().priorities()].map(|builder| builder.build().unwrap())
}

fn sketches(params: &Params) -> &'static [Sketch] {
    &SKETCHES[usize::from(params.sets)]
}

fn text(i: u64) -> String {
    format!("page {} of {}", i % 11, i % 5)
}

fn made(salt: u64, params: &Params) -> SoundDirectory {
    let vfs = ModelVfs::default();
    let index = Index::create_with(Arc::new(vfs.clone()), Path::new(DIR), params.clone()).unwrap();
    let sketcher = index.sketcher().unwrap();
    let mut writer = index.writer_with(WriterOptions::default().background_merges(false)).unwrap();
    let mut answers = vec![ask(&index)];
    let mut add = |writer: &mut Writer, from: u64, to: u64| {
        for i in from..to {
            let sketch = sketcher.sketch(&text(i + salt)).unwrap();
            let value = vec![i as u8; i as usize % 5];
            let document = Document::from(&sketch).with_value(&value).with_stamp(i);
            let document = document.with_priority((params.priorities && i % 3 > 0).then_some(i * i));
            let key = format!("key {}", i % 30);
            if params.marks {
                writer.admit(key.as_str(), document).unwrap();
            } else {
                writer.put(key.as_str(), document).unwrap();
            }
        }
        writer.delete(format!("key {}", from % 30 + 1).as_str()).unwrap();
        writer.commit().unwrap();
        answers.push(ask(&index));
    };
    add(&mut writer, 0, 20);
    writer.flush().unwrap();
    add(&mut writer, 20, 36);
    writer.flush().unwrap();
    add(&mut writer, 36, 40);
    add(&mut writer, 40, 43);
    writer.gc().unwrap();
    drop(writer);
    let files = files_of(&vfs);
    let is_segment = |name: &str| Path::new(name).extension().is_some_and(|end| end == "seg");
    let seals = files.iter().filter(|(name, _)| is_segment(name));
    let seals = seals.map(|(name, bytes)| (name.clone(), Seals::of(bytes))).collect();
    let uuid = newest(&files).expect("there is a manifest").1.uuid;
    SoundDirectory { files, uuid, seals, answers }
}

fn files_of(vfs: &ModelVfs) -> Files {
    let dir = Path::new(DIR);
    let names = vfs.list(dir).unwrap().into_iter().map(|name| name.into_string().unwrap());
    names
        .map(|name| {
            let file = vfs.open(&dir.join(&name)).unwrap();
            let mut bytes = vec![0; file.len().unwrap() as usize];
            file.read_exact_at(&mut bytes, 0).unwrap();
            (name, bytes)
        })
        .collect()
}

fn disk_of(files: &Files) -> ModelVfs {
    let vfs = ModelVfs::of(Disk::default());
    let dir = Path::new(DIR);
    vfs.create_dir(dir).unwrap();
    for (name, bytes) in files {
        let mut file: Box<dyn TemporaryFile> = vfs.create_temporary(dir).unwrap();
        file.append(bytes).unwrap();
        file.publish(&dir.join(name), true).unwrap();
    }
    vfs
}

/// Runs all queries and returns their answers; `None` for a query that failed.
fn ask(index: &Index) -> Answers {
    let snapshot = index.snapshot();
    let mut answers = vec![Some(format!("{} {:?}", snapshot.documents(), snapshot.now()))];
    let mut keys = Vec::new();
    let walked = snapshot.for_each_key(|key| {
        keys.push(key.to_buf());
        Ok(())
    });
    answers.push(walked.ok().map(|()| format!("{keys:?}")));
    for key in 0..31 {
        let record = snapshot.get(format!("key {key}").as_str());
        answers.push(record.ok().map(|record| format!("{record:?}")));
    }
    for (i, sketch) in sketches(snapshot.params()).iter().enumerate() {
        answers.push(snapshot.near(sketch).run().ok().map(|found| format!("{found:?}")));
        let feature = sketch.features().get(i % 2).copied().unwrap_or(0);
        let found = snapshot.same_feature(i % 2, feature);
        answers.push(found.ok().map(|mut keys| {
            keys.sort();
            format!("{keys:?}")
        }));
    }
    answers
}

/// Returns the name and the content of the newest manifest that can be decoded.
fn newest(files: &Files) -> Option<(String, Manifest)> {
    let mut manifests = files.iter().rev().filter(|(name, _)| name.starts_with("MANIFEST"));
    manifests.find_map(|(name, bytes)| Some((name.clone(), Manifest::decode(bytes).ok()?)))
}

/// Updates the checksums of a file after a change of its content.
fn seal(sound: &SoundDirectory, name: &str, bytes: &mut [u8]) {
    if let Some(seals) = sound.seals.get(name) {
        if bytes.len() == sound.files[name].len() {
            seals.reseal(bytes, true);
        }
    } else if name.starts_with("LOG") {
        let number = name[4..].parse().unwrap_or(0);
        let mut at = LOG_HEAD_BYTES as usize;
        while let Some(length) = bytes.get(at + 4..at + 8) {
            let end = at + u32::from_le_bytes(length.try_into().unwrap()) as usize;
            if end < at + 8 || end > bytes.len() {
                break;
            }
            let sum = checksum(record_salt(sound.uuid, number), at as u64, &bytes[at + 4..end]);
            bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
            at = end;
        }
    } else if bytes.len() > HEADER_BYTES {
        let (mut header, _) = Header::read_from_prefix(bytes).unwrap();
        let salt = header.salt.get();
        header.checksum = U32::new(checksum(salt, 0, &header.as_bytes()[..HEADER_BYTES - 4]));
        bytes[..HEADER_BYTES].copy_from_slice(header.as_bytes());
        let body = bytes.len() - 4;
        let sum = checksum(salt, 0, &bytes[..body]);
        bytes[body..].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Updates the digests of the segments in the manifest, and the digest of the manifest in `CURRENT`.
fn tie(files: &mut Files) {
    let Some((name, mut manifest)) = newest(files) else { return };
    for entry in &mut manifest.segments {
        let file = format!("{:06}.seg", entry.number);
        let Some(bytes) = files.get(&file) else { continue };
        let Ok(segment) = Segment::from_bytes(bytes.clone(), Path::new(&file)) else { continue };
        entry.length = segment.length();
        entry.digest = segment.digest();
        entry.salt = segment.salt();
        entry.documents = segment.documents();
    }
    let bytes = manifest.encode();
    let digest = Manifest::digest(&bytes);
    let current = Current::new(manifest.uuid, manifest.params.digest(), manifest.generation, digest);
    files.insert(name, bytes);
    files.insert("CURRENT".to_owned(), current.as_bytes().to_vec());
}

/// Damages a directory as `data` determines, and performs all operations on the result. Unless checksums were updated,
/// each operation must fail or give the answers of the current state or of a recent commit.
#[allow(clippy::too_many_lines, reason = "one way to damage after the other")]
pub fn directory(data: &[u8]) {
    let mut choices = Choices(data);
    let which = usize::from(choices.byte() % 4);
    let (sound, other) = (&INDEXES[which], &INDEXES[which ^ 1]);
    let mut files = sound.files.clone();
    let mut lies = false;
    let mut left = 6;
    while !choices.0.is_empty() && left > 0 && !files.is_empty() {
        left -= 1;
        let how = choices.byte();
        let names: Vec<String> = files.keys().cloned().collect();
        let name = choices.of(&names).clone();
        match how % 10 {
            0 => drop(files.remove(&name)),
            1 => {
                let bytes = files[choices.of(&names)].clone();
                files.insert(name, bytes);
            }
            2 => {
                let cut = usize::from(choices.short()) % files[&name].len().max(1);
                files.get_mut(&name).unwrap().truncate(cut);
            }
            3 => {
                let more = vec![choices.byte(); usize::from(choices.byte())];
                files.get_mut(&name).unwrap().extend(more);
            }
            4 => {
                let number = choices.byte() % 8;
                let to = ["MANIFEST-", "LOG-", ""][usize::from(how / 10 % 3)];
                let end = if to.is_empty() { ".seg" } else { "" };
                let bytes = files.remove(&name).unwrap();
                files.insert(format!("{to}{number:06}{end}"), bytes);
            }
            5 => {
                if let Some(bytes) = other.files.get(&name) {
                    files.insert(name, bytes.clone());
                    // If all files are replaced by the files of the other index, the answers are the answers of that index.
                    lies |= how >= 128;
                }
                if lies {
                    tie(&mut files);
                }
            }
            6 | 7 => {
                let some = usize::from(how / 10 % 4 + 1) * 4;
                let (patches, rest) = choices.0.split_at(some.min(choices.0.len()));
                choices.0 = rest;
                let bytes = files.get_mut(&name).unwrap();
                if !bytes.is_empty() {
                    patch(bytes, patches);
                }
            }
            _ => {
                let some = usize::from(how / 10 % 4 + 1) * 4;
                let (patches, rest) = choices.0.split_at(some.min(choices.0.len()));
                choices.0 = rest;
                let bytes = files.get_mut(&name).unwrap();
                if bytes.len() > HEADER_BYTES {
                    patch(bytes, patches);
                    seal(sound, &name, bytes);
                    lies = true;
                    tie(&mut files);
                }
            }
        }
    }
    let vfs = disk_of(&files);
    let shared: Arc<dyn Vfs> = Arc::new(vfs);
    let dir = Path::new(DIR);
    let opened = Index::open_with(Arc::clone(&shared), dir);
    if let Ok(index) = &opened {
        let found = ask(index);
        let agrees = |sound: &Answers| found.iter().zip(sound).all(|(f, s)| f.is_none() || f == s);
        let several = sound.answers.iter().chain(&other.answers);
        assert!(lies || several.clone().any(agrees), "{found:?}");
        let findings = verify(&*shared, dir, |_| ());
        if findings.problems.is_empty() && !lies {
            assert!(found.iter().all(Option::is_some), "verify finds nothing, and there are errors");
        }
    } else {
        assert!(
            !verify(&*shared, dir, |_| ()).problems.is_empty(),
            "it does not open, and verify finds nothing"
        );
    }
    let out = PathBuf::from("/saved");
    if salvage(&shared, dir, &out).is_ok() {
        let saved = Index::open_with(Arc::clone(&shared), &out).unwrap();
        assert!(ask(&saved).iter().all(Option::is_some), "what was saved has errors");
        assert!(verify(&*shared, &out, |_| ()).problems.is_empty(), "what was saved is not sound");
    }
    let Ok(Ok(mut writer)) = opened.map(|index| index.writer()) else { return };
    writer.set_options(writer.options().background_merges(false)).unwrap();
    // Each operation may fail. After a failure, the next operation must fail as well or succeed completely.
    let document = Document::from(&SKETCHES[which / 2][0]);
    let _ = writer.put("new", document.with_value(b"new").with_stamp(41));
    let _ = writer.commit();
    let _ = writer.flush();
    let _ = writer.merge_step();
    let _ = writer.compact();
    let _ = writer.gc();
    drop(writer);
    if let Ok(index) = Index::open_with(Arc::clone(&shared), dir) {
        ask(&index);
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![vec![0], vec![1], vec![2], vec![3]];
    for how in 0..10 {
        for file in 0..7 {
            seeds.push(vec![file % 4, how, file, 200, 1, 0, 9, 40, 0, 1, 3]);
            seeds.push(vec![
                (file + 1) % 4,
                how + 130,
                file,
                40 + file * 9,
                0,
                3,
                255,
                90,
                1,
                2,
                1,
                how,
                file + 1,
                7,
            ]);
        }
    }
    seeds
}
