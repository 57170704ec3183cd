//! Whole files as documents: those of a folder, in an order that every machine repeats, and those named
//! alone.

use std::ffi::OsStr;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use serde::ser::{SerializeMap, Serializer};
use walkdir::{DirEntry, WalkDir};

use super::fields::Fields;
use super::open::{Origin, Reader};
use super::{InvalidUtf8, Place, Problem};

/// How much of a file is read before it is judged binary: enough to meet the zero bytes of nearly every
/// format.
const FIRST_LOOK: u64 = 8 << 10;

/// What a folder holds, listed before anything is read: files that appear later (a command's own output, for
/// one) are not part of the input.
pub(super) struct Listing {
    /// Regular files relative to the folder, ascending bytewise with `/` between names.
    pub(super) files: Vec<Box<Path>>,
    /// Their sizes, added up.
    pub(super) bytes: u64,
    /// Links, devices and files that `wanted` did not want.
    pub(super) ignored: u64,
    /// What could not be looked at.
    pub(super) unreadable: Vec<Problem>,
}

/// Lists `root` and every folder below it, not following symbolic links, and keeps the files that are
/// `wanted`.
pub(super) fn list(root: &Path, wanted: impl Fn(&Path) -> bool) -> Listing {
    let mut listing = Listing { files: Vec::new(), bytes: 0, ignored: 0, unreadable: Vec::new() };
    // The folder itself may be a link: whoever named it meant what it points to.
    let walk = WalkDir::new(root).min_depth(1).follow_root_links(true).follow_links(false);
    // guard: files of a folder come in the order of their names
    // without it: sort_name(a).cmp(sort_name(b)) -> sort_name(b).cmp(sort_name(a))
    for entry in walk.sort_by(|a, b| sort_name(a).cmp(sort_name(b))) {
        let looked_at = entry.and_then(|entry| Ok((entry.metadata()?, entry)));
        match looked_at {
            Err(error) => {
                let path = error.path().unwrap_or(root);
                let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                let reason = format!("cannot list: {reason}");
                listing.unreadable.push(Problem { place: Place::file(Arc::from(path)), reason });
            }
            Ok((metadata, _)) if metadata.is_dir() => {}
            Ok((metadata, entry)) if metadata.is_file() && wanted(entry.path()) => {
                let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
                listing.files.push(Box::from(below));
                listing.bytes += metadata.len();
            }
            Ok(_) => listing.ignored += 1,
        }
    }
    listing
}

/// What one entry of a folder is sorted by: a folder's name has a `/` after it, as in the paths of its files,
/// so that the walk meets all paths in bytewise order and nothing needs sorting as a whole.
fn sort_name(entry: &DirEntry) -> impl Iterator<Item = &u8> + use<'_> {
    let slash: &[u8] = if entry.file_type().is_dir() { b"/" } else { b"" };
    entry.file_name().as_encoded_bytes().iter().chain(slash)
}

/// The key of a file: its path below the folder, with `/` between names.
pub(super) fn key_below(below: &Path) -> Vec<u8> {
    let names: Vec<Vec<u8>> = below.components().map(|name| os_bytes(name.as_os_str())).collect();
    names.join(&b'/')
}

/// The bytes of a path as the system has them.
#[cfg(unix)]
pub(super) fn os_bytes(name: &OsStr) -> Vec<u8> {
    std::os::unix::ffi::OsStrExt::as_bytes(name).to_vec()
}

/// The bytes of a path in UTF-8; what has no UTF-8 is replaced, as the system has no bytes to give.
#[cfg(not(unix))]
pub(super) fn os_bytes(name: &OsStr) -> Vec<u8> {
    name.to_string_lossy().into_owned().into_bytes()
}

/// What the bytes of a whole file turned out to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Contents {
    Text(String),
    /// As [`Contents::Text`], bytes that are not UTF-8 replaced.
    Replaced(String),
    /// It has a zero byte there.
    Binary {
        offset: usize,
    },
    /// It has a byte there that is not UTF-8.
    NotUtf8 {
        offset: usize,
    },
    TooLong,
}

/// Reads all of `reader`, unless it turns out early not to be text, or to be longer than `bytes_max`.
///
/// # Errors
///
/// The input cannot be read on.
pub(super) fn read_contents(
    mut reader: Reader,
    bytes_max: usize,
    invalid: InvalidUtf8,
) -> Result<Contents, Problem> {
    let most = (bytes_max as u64).saturating_add(1);
    let size = reader.plain_bytes().unwrap_or(0).min(most);
    let mut bytes = Vec::with_capacity(size as usize);
    for up_to in [FIRST_LOOK.min(most), most] {
        let seen = bytes.len();
        let rest = up_to - seen as u64;
        (&mut reader).take(rest).read_to_end(&mut bytes).map_err(|error| reader.explain(&error))?;
        if let Some(offset) = bytes[seen..].iter().position(|&byte| byte == 0) {
            reader.skip_rest();
            return Ok(Contents::Binary { offset: seen + offset });
        }
        if (bytes.len() as u64) < up_to {
            break;
        }
    }
    // guard: a long file of text is refused
    if bytes.len() > bytes_max {
        reader.skip_rest();
        return Ok(Contents::TooLong);
    }
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    Ok(match String::from_utf8(bytes) {
        Ok(text) => Contents::Text(text),
        Err(error) => match invalid {
            InvalidUtf8::Error => Contents::NotUtf8 { offset: error.utf8_error().valid_up_to() },
            InvalidUtf8::Replace => {
                Contents::Replaced(String::from_utf8_lossy(error.as_bytes()).into_owned())
            }
        },
    })
}

/// Opens and reads one file of a folder as it is: a compressed one is binary there.
///
/// # Errors
///
/// The file cannot be opened or read.
pub(super) fn read_file(
    path: &Path,
    bytes_max: usize,
    invalid: InvalidUtf8,
    consumed: &Arc<std::sync::atomic::AtomicU64>,
) -> Result<Contents, Problem> {
    read_contents(Reader::open_verbatim(Origin::File(path.to_owned()), consumed)?, bytes_max, invalid)
}

/// What stands for a whole file in a file of JSON lines: an object of the two fields. A key that is not UTF-8 has
/// its bad bytes replaced there, JSON having no other way: the document's own key keeps them.
///
/// # Errors
///
/// None that writing to memory could give.
pub(super) fn line(key: &[u8], text: &str, fields: &Fields) -> anyhow::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(text.len() + text.len() / 16 + key.len() + 64);
    let mut serializer = serde_json::Serializer::new(&mut line);
    let mut object = serializer.serialize_map(Some(2))?;
    object.serialize_entry(&fields.id, &String::from_utf8_lossy(key))?;
    object.serialize_entry(&fields.text, text)?;
    object.end()?;
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn contents(bytes: &[u8], bytes_max: usize) -> (Contents, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, bytes).unwrap();
        let consumed = Arc::default();
        let contents = read_file(&path, bytes_max, InvalidUtf8::Error, &consumed).unwrap();
        (contents, consumed.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[test]
    fn files_come_in_bytewise_order_of_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        // `.` and `-` stand before `/`, `0` and `a` behind it.
        let paths = ["a/z", "a.txt", "a-b", "a0", "a/b/c", "a/b.d", "b", "A", "ab", "a-/x", "\u{fc}"];
        for path in paths {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let listing = list(folder.path(), |_| true);
        let keys: Vec<_> = listing.files.iter().map(|path| key_below(path)).collect();
        let mut wanted: Vec<_> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        wanted.sort();
        assert_eq!(keys, wanted);
        assert_eq!(listing.bytes, paths.len() as u64);
        assert!(listing.unreadable.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed_except_the_folder_named_itself() {
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).unwrap();
        fs::write(inside.join("real"), "x").unwrap();
        std::os::unix::fs::symlink("real", inside.join("to-file")).unwrap();
        std::os::unix::fs::symlink("..", inside.join("to-folder")).unwrap();
        std::os::unix::fs::symlink("nowhere", inside.join("to-nothing")).unwrap();
        let named = folder.path().join("named");
        std::os::unix::fs::symlink("inside", &named).unwrap();
        for root in [inside, named] {
            let listing = list(&root, |_| true);
            assert_eq!(listing.files, [Box::from(Path::new("real"))]);
            assert_eq!(listing.ignored, 3);
        }
    }

    #[test]
    fn a_folder_that_is_gone_is_told_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let listing = list(&gone, |_| true);
        assert_eq!(listing.unreadable.len(), 1);
        let message = listing.unreadable[0].to_string();
        assert!(message.starts_with(&format!("{}: cannot list: ", gone.display())), "{message}");
    }

    #[test]
    fn a_zero_byte_anywhere_makes_a_file_binary() {
        assert_eq!(contents(b"a\0b", 100), (Contents::Binary { offset: 1 }, 3));
        let mut late = vec![b'a'; 10_000];
        late.push(0);
        assert_eq!(contents(&late, 100_000).0, Contents::Binary { offset: 10_000 });
    }

    #[test]
    fn a_binary_file_is_given_up_at_the_first_look() {
        let consumed = Arc::default();
        let reader = Box::new(std::io::repeat(0));
        let origin = Origin::Stream { name: Arc::from(Path::new("zeros")), reader };
        let reader = Reader::open_verbatim(origin, &consumed).unwrap();
        assert_eq!(
            read_contents(reader, 1 << 20, InvalidUtf8::Error).unwrap(),
            Contents::Binary { offset: 0 }
        );
        assert_eq!(consumed.load(std::sync::atomic::Ordering::Relaxed), FIRST_LOOK);
    }

    #[test]
    fn what_is_not_read_of_a_file_counts_as_read() {
        let mut early = vec![b'a'; 100_000];
        assert_eq!(contents(&early, 50_000), (Contents::TooLong, 100_000));
        early[0] = 0;
        assert_eq!(contents(&early, 200_000), (Contents::Binary { offset: 0 }, 100_000));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_found_with_their_offset() {
        assert_eq!(contents(b"abc\xffd", 100).0, Contents::NotUtf8 { offset: 3 });
        assert_eq!(contents(b"abc\xe4\xb8", 100).0, Contents::NotUtf8 { offset: 3 });
    }

    #[test]
    fn texts_are_read_whole_up_to_the_limit() {
        for bytes in [0, 1, 8191, 8192, 8193, 100_000] {
            let text = "a".repeat(bytes);
            assert_eq!(contents(text.as_bytes(), bytes).0, Contents::Text(text.clone()), "{bytes}");
            if bytes > 0 {
                assert_eq!(contents(text.as_bytes(), bytes - 1).0, Contents::TooLong, "{bytes}");
            }
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_text() {
        assert_eq!(contents(b"\xef\xbb\xbfabc", 100).0, Contents::Text("abc".to_owned()));
    }

    #[test]
    fn the_line_of_a_file_is_an_object_of_both_fields() {
        let fields =
            Fields { id: "key".to_owned(), text: "body".to_owned(), features: false, ..Default::default() };
        let made = line(b"a/\"b\"", "one\ntwo", &fields).unwrap();
        assert_eq!(made, br#"{"key":"a/\"b\"","body":"one\ntwo"}"#);
        let lossy = line(b"a\xff", "", &fields).unwrap();
        assert_eq!(lossy, "{\"key\":\"a\u{fffd}\",\"body\":\"\"}".as_bytes());
    }

    #[test]
    fn bytes_that_are_not_utf8_are_replaced_on_demand_but_not_in_binary_files() {
        let read = |bytes: &'static [u8]| {
            let name = Arc::from(Path::new("in"));
            let origin = Origin::Stream { name, reader: Box::new(bytes) };
            let reader = Reader::open_verbatim(origin, &Arc::default()).unwrap();
            read_contents(reader, 100, InvalidUtf8::Replace).unwrap()
        };
        assert_eq!(read(b"f\xfcr\xe4\xb8"), Contents::Replaced("f\u{fffd}r\u{fffd}".to_owned()));
        assert_eq!(read("für".as_bytes()), Contents::Text("für".to_owned()));
        assert_eq!(read(b"f\xfc\0"), Contents::Binary { offset: 2 });
    }
}
