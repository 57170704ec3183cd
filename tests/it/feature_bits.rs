//! Tests files of later versions. The feature bits of a file determine which operations this version may perform on it.
//! This version must refuse the other operations with the name of the feature, rather than misread or destroy the file.

use std::path::Path;

use twindex::format::current::Current;
use twindex::format::manifest::Manifest;
use twindex::sys::{RealVfs, Vfs};
use twindex::{Error, Index, Params};
use zerocopy::IntoBytes;

fn read(path: &Path) -> Vec<u8> {
    let file = RealVfs.open(path).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn replace(dir: &Path, name: &str, bytes: &[u8]) {
    let mut file = RealVfs.create_temporary(dir).unwrap();
    file.append(bytes).unwrap();
    file.publish(&dir.join(name), true).unwrap();
}

/// A file of a newer or older format version is refused with the version number and advice.
#[test]
fn unknown_version_or_feature_is_refused_with_advice() {
    use twindex::format::header::{HEADER_BYTES, Header, Refusal, Role};
    let with = |change: fn(&mut Header)| {
        let mut header = Header::new(Role::Segment, 1, 2);
        change(&mut header);
        let sum = twindex::format::checksum::checksum(1, 0, &header.as_bytes()[..HEADER_BYTES - 4]);
        header.checksum.set(sum);
        Header::read(header.as_bytes(), Role::Segment).unwrap_err()
    };
    let refused = |field, found: &str, supported: &str| {
        Refusal::Unsupported(field, found.to_owned(), supported.to_owned())
    };
    assert_eq!(
        with(|header| header.version.set(1)),
        refused("format version", "1", "3; no release wrote version 1: build the index again")
    );
    assert_eq!(
        with(|header| header.version.set(4)),
        refused("format version", "4", "3; use a newer version")
    );
    assert_eq!(
        with(|header| header.incompatible.set(0x1_0000)),
        refused("incompatible feature set", "0x10000", "0xfff6; use a newer version")
    );
    // The widths 128 and 256. A width of 256 does not fit in the byte, and would be written as 0.
    for (bits, change) in [
        ("128", (|header| header.fingerprint_bits = 128) as fn(&mut Header)),
        ("0", |header| {
            header.fingerprint_bits = 0;
        }),
    ] {
        assert_eq!(with(change), refused("fingerprint width", bits, "64; use a newer version"));
    }
}

/// A bit of `incompatible` that is known only for other roles is refused, too.
#[test]
fn compatible_bits_are_ignored_and_unknown_incompatible_bits_refused_in_every_role() {
    use twindex::format::header::{HEADER_BYTES, Header, Refusal, Role};
    for role in Role::ALL {
        let sealed = |mut header: Header| {
            let sum = twindex::format::checksum::checksum(1, 0, &header.as_bytes()[..HEADER_BYTES - 4]);
            header.checksum.set(sum);
            Header::read(header.as_bytes(), role)
        };
        let mut header = Header::new(role, 1, 2);
        header.compatible.set(u32::MAX);
        assert_eq!(sealed(header).unwrap().compatible.get(), u32::MAX, "{role:?}");
        for bit in (0..32).map(|bit| 1_u32 << bit) {
            let mut header = Header::new(role, 1, 2);
            header.incompatible.set(bit);
            let read = sealed(header);
            if role.incompatible_known() & bit != 0 {
                assert!(read.is_ok(), "{role:?}, bit {bit:#x}");
            } else {
                let is_named = matches!(&read, Err(Refusal::Unsupported("incompatible feature set", found, _))
                    if *found == format!("{bit:#x}"));
                assert!(is_named, "{role:?}, bit {bit:#x}: {read:?}");
            }
        }
    }
}

/// The version and the features in a header are used only after the checksum of the header was verified.
#[test]
fn flipped_header_bit_is_damage_not_a_newer_version() {
    use twindex::format::header::{HEADER_BYTES, Header, Refusal, Role};
    let sound = Header::new(Role::Segment, 1, 2);
    assert_eq!(Header::read(sound.as_bytes(), Role::Segment).unwrap().as_bytes(), sound.as_bytes());
    for bit in 0..8 * HEADER_BYTES {
        let mut bytes = sound.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let read = Header::read(&bytes, Role::Segment);
        assert!(matches!(read, Err(Refusal::Damaged(_))), "bit {bit}: {read:?}");
    }
}

#[test]
fn index_with_read_only_feature_answers_queries_but_refuses_writers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, Params::builder().words(1).simhash(3).build().unwrap()).unwrap();
    let mut writer = index.writer().unwrap();
    writer.put("a", &index.sketcher().unwrap().sketch("a rose is a rose").unwrap()).unwrap();
    writer.commit().unwrap();
    drop((writer, index));

    let current = Current::read(&read(&path.join("CURRENT"))).unwrap();
    let name = format!("MANIFEST-{:06}", current.generation);
    let mut manifest = Manifest::decode(&read(&path.join(&name))).unwrap();
    manifest.read_only_compatible = 0b100;
    let bytes = manifest.encode();
    let digest = Manifest::digest(&bytes);
    let params = manifest.params.digest();
    replace(&path, &name, &bytes);
    replace(&path, "CURRENT", Current::new(manifest.uuid, params, manifest.generation, digest).as_bytes());

    let index = Index::open(&path).unwrap();
    assert!(index.snapshot().get("a").unwrap().is_some());
    match index.writer() {
        Err(Error::Unsupported { field, found, .. }) => {
            assert_eq!((field, found.as_str()), ("read-only-compatible feature set", "0x4"));
        }
        other => panic!("a writer of another version's index: {other:?}"),
    }
}
