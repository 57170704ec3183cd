//! The body of the fuzz target `legacy`, which upgrades segment files of versions 1 and 2 of the format.

use std::path::Path;
use std::sync::{Arc, LazyLock};

use twindex::sys::Vfs;
use twindex::{Error, Index, MemoryVfs, upgrade};

use super::super::legacy::{SEGMENTS, reseal};
use super::patch;

/// Upgrades a segment file, and returns the records of the new index as text.
fn documents(file: &[u8]) -> twindex::Result<Vec<String>> {
    let vfs: Arc<dyn Vfs> = Arc::new(MemoryVfs::default());
    let (old, new) = (Path::new("/old.seg"), Path::new("/new"));
    let mut written = vfs.create_temporary(Path::new("/")).unwrap();
    written.append(file).unwrap();
    written.publish(old, false).unwrap();
    let upgraded = match upgrade(&vfs, old, new, 1 << 16) {
        Ok(upgraded) => upgraded,
        Err(error) => {
            assert_eq!(
                vfs.list(Path::new("/")).unwrap().len(),
                1,
                "a failed upgrade leaves nothing: {error}"
            );
            return Err(error);
        }
    };
    let snapshot = Index::open_with(Arc::clone(&vfs), new)?.snapshot();
    assert_eq!(snapshot.documents(), upgraded.documents);
    let mut all = Vec::new();
    for (segment, _) in snapshot.segments() {
        let problems = segment.verify(|_| ());
        assert!(problems.is_empty(), "{problems:?}");
        segment.for_each_key(|_, key| all.push(key.to_buf().to_string()))?;
    }
    let mut records = Vec::new();
    for key in &all {
        records.push(format!("{key} {:?}", snapshot.get(key.as_str())?));
    }
    Ok(records)
}

static SOUND: LazyLock<Vec<Vec<String>>> =
    LazyLock::new(|| SEGMENTS.iter().map(|segment| documents(segment).unwrap()).collect());

/// Upgrades raw bytes, and then a patched segment of version 1 or 2, whose checksums are updated if bit 0 of the first byte
/// is set. The upgrade of the patched segment must fail, or copy the documents of the undamaged segment.
pub fn legacy(data: &[u8]) {
    let Some((&how, patches)) = data.split_first() else { return };
    let _ = documents(data);
    let which = usize::from(how >> 1) % SEGMENTS.len();
    let mut file = SEGMENTS[which].to_vec();
    patch(&mut file, patches);
    if how & 1 == 1 {
        reseal(&mut file, SEGMENTS[which]);
    }
    match documents(&file) {
        Ok(found) => assert_eq!(found, SOUND[which], "other documents"),
        Err(Error::Corrupt { .. } | Error::Unsupported { .. }) => {}
        Err(error) => assert!(file[10] != 1, "{error}"),
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let patched = [
        vec![0, 70, 1, 0, 1],
        vec![1, 70, 1, 0, 1, 200, 2, 3, 255],
        vec![3, 0, 3, 2, 9],
        vec![3, 64, 6, 1, 4],
    ];
    SEGMENTS.iter().map(|segment| segment.to_vec()).chain(patched).collect()
}
