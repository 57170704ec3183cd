//! Files of versions to come: what this version may do with them is written in their feature bits, and it must say
//! so by name instead of misreading or destroying them.

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

#[test]
fn an_index_with_a_read_only_compatible_feature_answers_but_takes_no_writer() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("index");
    let index = Index::create(&path, Params::builder().words(1).simhash(3).build().unwrap()).unwrap();
    let mut writer = index.writer().unwrap();
    writer.put("a", &index.sketcher().sketch("a rose is a rose")).unwrap();
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
