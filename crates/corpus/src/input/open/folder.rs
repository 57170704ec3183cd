//! Files that are one document each: those of a folder that patterns select, in the same order on every machine, and
//! those that the user named.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use walkdir::{DirEntry, WalkDir};

use crate::input::fields::record::Fields;
use crate::input::open::reader::{self, Foreign, Reader};
use crate::input::place::{Place, Problem, os_bytes};
use crate::input::text::charset::{self, Charset, Decoded};
use crate::input::text::lossy::{self, InvalidUtf8};

/// Number of bytes at the start of a file that are searched for a zero byte before the rest is read. Files of nearly
/// every binary format have a zero byte in this part.
const FIRST_LOOK: u64 = 8 << 10;

/// The files of a folder. All files are listed before the first is read, so files that appear later, such as output of
/// the command itself, are not part of the input.
#[derive(Default)]
pub(crate) struct Listing {
    /// Paths of regular files relative to the folder, in ascending byte order with `/` between names.
    pub(crate) files: Vec<ListedFile>,
    /// Total size of the files in bytes.
    pub(crate) bytes: u64,
    /// Number of links, devices and files that were ignored, including files that [`list`] does not want.
    pub(crate) ignored: u64,
    /// Number of hidden files and folders that were left out. The files of a hidden folder are not counted.
    pub(crate) hidden: u64,
    /// The path of the first hidden file or folder.
    pub(crate) first_hidden: Option<PathBuf>,
    /// Folders of Delta tables: in or above the folder, those that have a [log](LOG_OF_DELTA).
    pub(crate) delta_tables: Vec<PathBuf>,
    /// The folder of a table whose current files are not known, and the format of the table.
    pub(crate) unread_table: Option<(PathBuf, &'static str)>,
    /// The errors about entries of the folder that could not be read.
    pub(crate) unreadable: Vec<Problem>,
}

/// The name of the folder with the log of a Delta table.
pub(crate) const LOG_OF_DELTA: &str = "_delta_log";

/// A file of a folder.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ListedFile {
    /// The path relative to the folder.
    pub(crate) below: Box<Path>,
    /// The size of the file in bytes.
    pub(crate) bytes: u64,
}

impl Listing {
    /// Notes the table to which a folder belongs, if it is one in which a table format keeps its log or metadata.
    fn note_table(&mut self, folder: &Path) {
        let (Some(name), Some(table)) = (folder.file_name(), folder.parent()) else { return };
        if name == LOG_OF_DELTA {
            self.delta_tables.push(table.to_owned());
        } else if name == ".hoodie" {
            self.unread_table = Some((table.to_owned(), "a table of Apache Hudi"));
        } else if name == "metadata" && table.join("data").is_dir() {
            let mut files = std::fs::read_dir(folder).into_iter().flatten().flatten();
            if files.any(|file| file.file_name().as_encoded_bytes().ends_with(b".metadata.json")) {
                self.unread_table = Some((table.to_owned(), "a table of Apache Iceberg"));
            }
        }
    }

    fn hide(&mut self, path: &Path) {
        self.hidden += 1;
        self.first_hidden.get_or_insert_with(|| path.to_owned());
    }

    /// Removes the files whose path has a name that begins with `_`, unless a pattern names them: writers of tables keep
    /// their own data in such folders, as `_temporary` and `_delta_log`.
    pub(crate) fn hide_underscored(&mut self, root: &Path, patterns: &Patterns) {
        for file in std::mem::take(&mut self.files) {
            if is_hidden(&file.below, b'_') && !patterns.name_hidden(&file.below) {
                self.bytes -= file.bytes;
                self.hide(&root.join(&file.below));
            } else {
                self.files.push(file);
            }
        }
    }
}

/// Returns whether a name in this path begins with `mark`.
pub(crate) fn is_hidden(below: &Path, mark: u8) -> bool {
    below.components().any(|name| name.as_os_str().as_encoded_bytes().starts_with(&[mark]))
}

/// Lists the files in `root` and all its subfolders that the patterns select and for which `wanted` returns true. Files
/// and folders whose names begin with `.` are left out, unless a pattern names them. Follows symbolic links, except to a
/// folder that contains `root`, and to folders and wanted files below `root`, which are listed anyway.
pub(crate) fn list(root: &Path, patterns: &Patterns, wanted: impl Fn(&Path) -> bool) -> Listing {
    let mut listing = Listing::default();
    let above = root.ancestors().skip(1).filter(|above| above.join(LOG_OF_DELTA).is_dir());
    listing.delta_tables.extend(above.map(Path::to_owned));
    let resolved = std::fs::canonicalize(root).unwrap_or_else(|_| root.to_owned());
    let wanted =
        |path: &Path, root: &Path| patterns.want(path.strip_prefix(root).unwrap_or(path)) && wanted(path);
    let is_listed_anyway = |path: &Path| {
        let Ok(target) = std::fs::canonicalize(path) else { return false };
        let is_around = target.is_dir() && resolved.starts_with(&target);
        let below = target.strip_prefix(&resolved).ok();
        let is_below = below.is_some_and(|below| !is_hidden(below, b'.') || patterns.name_hidden(below));
        is_around || is_below && (target.is_dir() || wanted(&target, &resolved))
    };
    let is_left_out = |path: &Path, is_folder: bool| {
        let below = path.strip_prefix(root).unwrap_or(path);
        let is_named = if is_folder { patterns.have_hidden() } else { patterns.name_hidden(below) };
        is_hidden(below, b'.') && !is_named
    };
    let walk = WalkDir::new(root).min_depth(1).follow_links(true).sort_by(|a, b| {
        // guard: files of a folder come in the order of their names
        // without it: sort_name(a).cmp(sort_name(b)) -> sort_name(b).cmp(sort_name(a))
        sort_name(a).cmp(sort_name(b))
    });
    let walk = &mut walk.into_iter();
    while let Some(entry) = walk.next() {
        let checked = entry.and_then(|entry| Ok((entry.metadata()?, entry)));
        match checked {
            Err(error) => {
                let path = error.path().unwrap_or(root);
                // Ignores a broken link, or a link to a folder that contains the link. Neither is an error.
                if error.loop_ancestor().is_some() || path.is_symlink() {
                    listing.ignored += 1;
                    continue;
                }
                let reason = error.io_error().map_or_else(|| error.to_string(), ToString::to_string);
                let reason = format!("cannot list: {reason}");
                listing.unreadable.push(Problem { place: Place::file(Arc::from(path)), reason });
            }
            Ok((metadata, entry)) if is_left_out(entry.path(), metadata.is_dir()) => {
                if metadata.is_dir() {
                    walk.skip_current_dir();
                    listing.hide(entry.path());
                    listing.note_table(entry.path());
                } else if wanted(entry.path(), root) {
                    listing.hide(entry.path());
                }
            }
            Ok((metadata, entry)) if entry.path_is_symlink() && is_listed_anyway(entry.path()) => {
                listing.ignored += 1;
                if metadata.is_dir() {
                    walk.skip_current_dir();
                }
            }
            Ok((metadata, entry)) if metadata.is_dir() => {
                listing.note_table(entry.path());
            }
            Ok((metadata, entry)) if metadata.is_file() && wanted(entry.path(), root) => {
                let below = entry.path().strip_prefix(root).unwrap_or(entry.path());
                listing.files.push(ListedFile { below: Box::from(below), bytes: metadata.len() });
                listing.bytes += metadata.len();
            }
            Ok(_) => listing.ignored += 1,
        }
    }
    listing
}

/// Returns the sort key of a folder entry. The key of a folder is its name and `/`, as in the paths of the folder's
/// files. So all paths are visited in byte order, although each folder is sorted separately.
fn sort_name(entry: &DirEntry) -> impl Iterator<Item = &u8> + use<'_> {
    let slash: &[u8] = if entry.file_type().is_dir() { b"/" } else { b"" };
    entry.file_name().as_encoded_bytes().iter().chain(slash)
}

/// Returns the key of a file: its path relative to the folder, with `/` between names and without a suffix for
/// compression.
pub(crate) fn key_below(below: &Path) -> Vec<u8> {
    let below = reader::without_compression(below);
    let names: Vec<Vec<u8>> = below.components().map(|name| os_bytes(name.as_os_str())).collect();
    names.join(&b'/')
}

/// The content of a whole file, or the reason why it cannot be a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    Text(FileText),
    /// The file has a format that is not read.
    Foreign(Foreign),
    /// The file is binary: it has a zero byte at this offset.
    Binary {
        offset: usize,
    },
    /// The text cannot be decoded without loss, and the options do not allow loss. `offset` is the offset of the first
    /// byte that is not UTF-8. It is `None` if the options set another encoding.
    Lossy {
        offset: Option<usize>,
    },
    TooLong,
}

/// The text of a whole file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileText {
    pub(crate) shown: String,
    /// The original bytes of the file, if some were replaced with U+FFFD; otherwise `None`.
    pub(crate) lossy: Option<Vec<u8>>,
    /// Whether the encoding of the file was detected from its bytes.
    pub(crate) is_detected: bool,
}

/// Options for reading a whole file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileReadOptions {
    pub(crate) bytes_max: usize,
    pub(crate) invalid: InvalidUtf8,
    pub(crate) charset: Option<Charset>,
    pub(crate) html: bool,
}

/// Reads `reader` to its end. Stops earlier if the content is not text or exceeds the size limit.
///
/// # Errors
///
/// The input cannot be read to its end.
pub(crate) fn read_contents(mut reader: Reader, reading: &FileReadOptions) -> Result<Contents, Problem> {
    let bytes_max = reading.bytes_max;
    let max = (bytes_max as u64).saturating_add(1);
    let size = reader.plain_bytes().unwrap_or(0).min(max);
    let mut bytes = Vec::with_capacity(size as usize);
    let is_wide = reading.charset.is_some_and(Charset::is_utf16);
    for up_to in [FIRST_LOOK.min(max), max] {
        let seen = bytes.len();
        let rest = up_to - seen as u64;
        (&mut reader).take(rest).read_to_end(&mut bytes).map_err(|error| reader.explain(&error))?;
        if let Some(foreign) = Foreign::of(&bytes).filter(|_| seen == 0) {
            reader.skip_rest();
            return Ok(Contents::Foreign(foreign));
        }
        let zero = bytes[seen..].iter().position(|&byte| byte == 0);
        if let Some(offset) = zero.filter(|_| !is_wide && charset::marked_wide(&bytes).is_none()) {
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
    Ok(decode(bytes, reading))
}

fn decode(mut bytes: Vec<u8>, reading: &FileReadOptions) -> Contents {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    let bytes = match String::from_utf8(bytes) {
        // HTML that is valid UTF-8 is decoded again below, because the page may declare another encoding.
        Ok(shown) if !reading.html && !reading.charset.is_some_and(Charset::is_utf16) => {
            return Contents::Text(FileText { shown, ..FileText::default() });
        }
        Ok(shown) => shown.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    let Decoded { text, is_lossy, is_detected } = if reading.html {
        charset::page(&bytes, b"", reading.charset)
    } else {
        charset::text(&bytes, reading.charset)
    };
    let shown = text.into_owned();
    if is_lossy && reading.invalid != InvalidUtf8::Replace {
        let is_utf8 = reading.charset.is_none() && charset::marked_wide(&bytes).is_none();
        let offset = std::str::from_utf8(&bytes).err().map(|error| error.valid_up_to());
        return Contents::Lossy { offset: offset.filter(|_| is_utf8) };
    }
    Contents::Text(FileText { shown, lossy: is_lossy.then_some(bytes), is_detected })
}

/// Encodes a whole file as a JSON line: an object with key and text. Invalid bytes of the key are replaced, because
/// JSON cannot represent them. Invalid bytes of the text are encoded as lone surrogates, which lose no information.
///
/// # Errors
///
/// None: writing to memory does not fail.
pub(crate) fn line(key: &[u8], text: &FileText, fields: &Fields) -> anyhow::Result<Vec<u8>> {
    let mut line = Vec::with_capacity(text.shown.len() + text.shown.len() / 16 + key.len() + 64);
    line.push(b'{');
    serde_json::to_writer(&mut line, &fields.id)?;
    line.push(b':');
    serde_json::to_writer(&mut line, &String::from_utf8_lossy(key))?;
    line.push(b',');
    serde_json::to_writer(&mut line, &fields.text)?;
    line.push(b':');
    match &text.lossy {
        None => serde_json::to_writer(&mut line, &text.shown)?,
        Some(bytes) => lossy::push_json(&mut line, bytes)?,
    }
    line.push(b'}');
    Ok(line)
}

/// Glob patterns that select the files of a folder.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patterns {
    /// The patterns of files to read; `None` to read all files.
    include: Option<Set>,
    /// Those of them with a name that begins with `.` or `_`.
    hidden: Set,
    exclude: Set,
}

#[derive(Clone, Debug, Default)]
struct Set {
    /// Patterns without a `/`, which match a file name in any folder.
    names: GlobSet,
    /// Patterns with a `/`, which match a path relative to the folder.
    paths: GlobSet,
}

impl Patterns {
    /// Compiles glob patterns. Files that match a pattern with a leading `!` are ignored. If there are patterns without
    /// `!`, only files that match one of these are read. `*` and `?` match within a name, `**` matches any number of
    /// folders, and `[ab]` and `{a,b}` match alternatives.
    ///
    /// # Errors
    ///
    /// A pattern is invalid; the message names the option.
    pub(crate) fn new(globs: &[String]) -> Result<Self, String> {
        let (exclude, include): (Vec<&str>, Vec<&str>) =
            globs.iter().map(String::as_str).partition(|glob| glob.starts_with('!'));
        let exclude: Vec<&str> = exclude.into_iter().map(|glob| &glob[1..]).collect();
        let names_hidden = |glob: &&str| glob.split('/').any(|name| name.starts_with(['.', '_']));
        let hidden: Vec<&str> = include.iter().copied().filter(names_hidden).collect();
        let include = if include.is_empty() { None } else { Some(Set::of(&include)?) };
        Ok(Self { include, hidden: Set::of(&hidden)?, exclude: Set::of(&exclude)? })
    }

    /// Returns whether to read the file with this path relative to the folder.
    pub(crate) fn want(&self, below: &Path) -> bool {
        self.include.as_ref().is_none_or(|include| include.fits(below)) && !self.exclude.fits(below)
    }

    /// Returns whether a pattern with a name that begins with `.` or `_` matches the path of a hidden file.
    pub(crate) fn name_hidden(&self, below: &Path) -> bool {
        self.hidden.fits(below)
    }

    /// Returns whether there is a pattern with a name that begins with `.` or `_`.
    fn have_hidden(&self) -> bool {
        !self.hidden.is_empty()
    }

    /// Returns whether there is any pattern.
    pub(crate) fn are_given(&self) -> bool {
        self.include.is_some() || !self.exclude.is_empty()
    }
}

impl Set {
    fn of(patterns: &[&str]) -> Result<Self, String> {
        let (mut names, mut paths) = (GlobSetBuilder::new(), GlobSetBuilder::new());
        let wrong = |error: globset::Error| format!("--glob: {error}");
        for pattern in patterns {
            let glob = GlobBuilder::new(pattern).literal_separator(true).build().map_err(wrong)?;
            if pattern.contains('/') {
                paths.add(glob)
            } else {
                names.add(glob)
            };
        }
        Ok(Self { names: names.build().map_err(wrong)?, paths: paths.build().map_err(wrong)? })
    }

    fn is_empty(&self) -> bool {
        self.names.is_empty() && self.paths.is_empty()
    }

    fn fits(&self, below: &Path) -> bool {
        below.file_name().is_some_and(|name| self.names.is_match(name)) || self.paths.is_match(below)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::input::open::reader::Origin;

    fn reading(bytes_max: usize, invalid: InvalidUtf8) -> FileReadOptions {
        FileReadOptions { bytes_max, invalid, charset: None, html: false }
    }

    fn text(shown: &str) -> Contents {
        Contents::Text(FileText { shown: shown.to_owned(), ..FileText::default() })
    }

    fn contents(bytes: &[u8], bytes_max: usize) -> (Contents, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, bytes).unwrap();
        let consumed = Arc::default();
        let reader = Reader::open_verbatim(Origin::File(path), &consumed).unwrap();
        let contents = read_contents(reader, &reading(bytes_max, InvalidUtf8::Error)).unwrap();
        (contents, consumed.load(std::sync::atomic::Ordering::Relaxed))
    }

    #[test]
    fn files_are_listed_in_byte_order_of_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        // `.` and `-` sort before `/`; `0` and `a` sort after it.
        let paths = ["a/z", "a.txt", "a-b", "a0", "a/b/c", "a/b.d", "b", "A", "ab", "a-/x", "\u{fc}"];
        for path in paths {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        let listing = list(folder.path(), &Patterns::default(), |_| true);
        let keys: Vec<_> = listing.files.iter().map(|file| key_below(&file.below)).collect();
        let mut wanted: Vec<_> = paths.iter().map(|path| path.as_bytes().to_vec()).collect();
        wanted.sort();
        assert_eq!(keys, wanted);
        assert_eq!(listing.bytes, paths.len() as u64);
        assert!(listing.unreadable.is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_unless_their_target_is_listed_already() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let inside = folder.path().join("inside");
        fs::create_dir(&inside).unwrap();
        fs::create_dir(folder.path().join("outside")).unwrap();
        fs::write(inside.join("real"), "x").unwrap();
        fs::write(folder.path().join("outside/blob"), "xyz").unwrap();
        symlink("real", inside.join("to-file")).unwrap();
        symlink("..", inside.join("to-folder-around")).unwrap();
        symlink("nowhere", inside.join("to-nothing")).unwrap();
        symlink("../outside", inside.join("to-outside")).unwrap();
        symlink("../outside/blob", inside.join("to-outside-file")).unwrap();
        let named = folder.path().join("named");
        symlink("inside", &named).unwrap();
        for root in [inside, named] {
            let listing = list(&root, &Patterns::default(), |_| true);
            let found: Vec<_> = listing.files.iter().map(|file| file.below.to_str().unwrap()).collect();
            let wanted = ["real", "to-outside/blob", "to-outside-file"];
            assert_eq!((&found[..], listing.bytes), (&wanted[..], 7), "{}", root.display());
            assert_eq!((listing.ignored, listing.unreadable.len()), (3, 0));
        }
        // A link is listed if its own name is wanted.
        let by_name =
            list(&folder.path().join("inside"), &Patterns::default(), |path| path.ends_with("to-file"));
        let names: Vec<_> = by_name.files.iter().map(|file| &*file.below).collect();
        assert_eq!(names, [Path::new("to-file")]);
    }

    #[cfg(unix)]
    #[test]
    fn hidden_files_are_left_out_unless_a_pattern_names_them() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [".git/HEAD", ".git/info/x", ".a.txt", "a.txt", "b/.c/d.txt", "b/_e.txt", "_f/g.txt"];
        for path in paths {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
        std::os::unix::fs::symlink(".git/HEAD", folder.path().join("head")).unwrap();
        let found = |globs: &[&str], of_records: bool| {
            let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
            let patterns = Patterns::new(&globs).unwrap();
            let mut listing = list(folder.path(), &patterns, |_| true);
            if of_records {
                listing.hide_underscored(folder.path(), &patterns);
            }
            let files = listing.files.iter().map(|file| file.below.to_str().unwrap().to_owned());
            assert_eq!(listing.bytes, listing.files.len() as u64);
            (files.collect::<Vec<_>>().join(" "), listing.hidden)
        };
        let text = |files: &str, hidden| (files.to_owned(), hidden);
        assert_eq!(found(&[], false), text("_f/g.txt a.txt b/_e.txt head", 3));
        assert_eq!(found(&[], true), text("a.txt head", 5));
        assert_eq!(found(&["*.txt"], true), text("a.txt", 5));
        assert_eq!(found(&["*.txt", "_*"], true), text("a.txt b/_e.txt", 3));
        assert_eq!(found(&[".git/**"], false), text(".git/HEAD .git/info/x", 0));
        assert_eq!(
            found(&["**", "**/.*/**", "!head"], true),
            text(".git/HEAD .git/info/x a.txt b/.c/d.txt", 3)
        );
    }

    #[test]
    fn removed_folder_is_reported_by_its_path() {
        let folder = tempfile::tempdir().unwrap();
        let gone = folder.path().join("gone");
        let listing = list(&gone, &Patterns::default(), |_| true);
        assert_eq!(listing.unreadable.len(), 1);
        let message = listing.unreadable[0].to_string();
        assert!(message.starts_with(&format!("{}: cannot list: ", gone.display())), "{message}");
    }

    #[test]
    fn file_with_a_zero_byte_anywhere_is_binary() {
        assert_eq!(contents(b"a\0b", 100), (Contents::Binary { offset: 1 }, 3));
        let mut late = vec![b'a'; 10_000];
        late.push(0);
        assert_eq!(contents(&late, 100_000).0, Contents::Binary { offset: 10_000 });
    }

    #[test]
    fn binary_file_is_rejected_after_its_first_block() {
        let consumed = Arc::default();
        let reader = Box::new(std::io::repeat(0));
        let origin = Origin::Stream { name: Arc::from(Path::new("zeros")), reader };
        let reader = Reader::open_verbatim(origin, &consumed).unwrap();
        assert_eq!(
            read_contents(reader, &reading(1 << 20, InvalidUtf8::Error)).unwrap(),
            Contents::Binary { offset: 0 }
        );
        assert_eq!(consumed.load(std::sync::atomic::Ordering::Relaxed), FIRST_LOOK);
    }

    #[test]
    fn skipped_rest_of_a_file_counts_as_read() {
        let mut early = vec![b'a'; 100_000];
        assert_eq!(contents(&early, 50_000), (Contents::TooLong, 100_000));
        early[0] = 0;
        assert_eq!(contents(&early, 200_000), (Contents::Binary { offset: 0 }, 100_000));
    }

    #[test]
    fn bytes_that_are_not_utf8_are_found_with_their_offset() {
        assert_eq!(contents(b"abc\xffd", 100).0, Contents::Lossy { offset: Some(3) });
        assert_eq!(contents(b"abc\xe4\xb8", 100).0, Contents::Lossy { offset: Some(3) });
    }

    #[test]
    fn texts_up_to_the_limit_are_read_whole() {
        for bytes in [0, 1, 8191, 8192, 8193, 100_000] {
            let long = "a".repeat(bytes);
            assert_eq!(contents(long.as_bytes(), bytes).0, text(&long), "{bytes}");
            if bytes > 0 {
                assert_eq!(contents(long.as_bytes(), bytes - 1).0, Contents::TooLong, "{bytes}");
            }
        }
    }

    #[test]
    fn byte_order_mark_is_not_part_of_the_text() {
        assert_eq!(contents(b"\xef\xbb\xbfabc", 100).0, text("abc"));
    }

    #[test]
    fn file_becomes_a_json_line_with_key_and_text() {
        let fields =
            Fields { id: "key".to_owned(), text: "body".to_owned(), features: false, ..Default::default() };
        let plain = |shown: &str| FileText { shown: shown.to_owned(), ..FileText::default() };
        let made = line(b"a/\"b\"", &plain("one\ntwo"), &fields).unwrap();
        assert_eq!(made, br#"{"key":"a/\"b\"","body":"one\ntwo"}"#);
        let lossy = line(b"a\xff", &plain(""), &fields).unwrap();
        assert_eq!(lossy, "{\"key\":\"a\u{fffd}\",\"body\":\"\"}".as_bytes());
        let lost = FileText { lossy: Some(b"f\xfc\"r".to_vec()), ..plain("f\u{fffd}\"r") };
        assert_eq!(line(b"a", &lost, &fields).unwrap(), br#"{"key":"a","body":"f\udcfc\"r"}"#);
    }

    #[test]
    fn invalid_utf8_is_replaced_on_request_but_not_in_binary_files() {
        let read = |bytes: &'static [u8]| {
            let name = Arc::from(Path::new("in"));
            let origin = Origin::Stream { name, reader: Box::new(bytes) };
            let reader = Reader::open_verbatim(origin, &Arc::default()).unwrap();
            read_contents(reader, &reading(100, InvalidUtf8::Replace)).unwrap()
        };
        let lossy = Some(b"f\xfcr\xe4\xb8".to_vec());
        let replaced = FileText { shown: "f\u{fffd}r\u{fffd}".to_owned(), lossy, is_detected: false };
        assert_eq!(read(b"f\xfcr\xe4\xb8"), Contents::Text(replaced));
        assert_eq!(read("für".as_bytes()), text("für"));
        assert_eq!(read(b"f\xfc\0"), Contents::Binary { offset: 2 });
    }

    fn wanted(globs: &[&str], paths: &[&'static str]) -> Vec<&'static str> {
        let globs: Vec<String> = globs.iter().map(|&glob| glob.to_owned()).collect();
        let patterns = Patterns::new(&globs).unwrap();
        paths.iter().copied().filter(|path| patterns.want(Path::new(path))).collect()
    }

    #[test]
    fn patterns_match_names_or_paths_below_the_folder() {
        let paths = ["a.jsonl", "en/a.jsonl", "en/b.txt", "en/old/c.jsonl", "de/a.jsonl"];
        assert_eq!(wanted(&[], &paths), paths);
        assert_eq!(wanted(&["*.jsonl"], &paths), ["a.jsonl", "en/a.jsonl", "en/old/c.jsonl", "de/a.jsonl"]);
        assert_eq!(wanted(&["en/*"], &paths), ["en/a.jsonl", "en/b.txt"]);
        assert_eq!(wanted(&["!*.txt", "{en,de}/**", "!**/old/**"], &paths), ["en/a.jsonl", "de/a.jsonl"]);
        assert_eq!(wanted(&["![ab].*"], &paths), ["en/old/c.jsonl"]);
        let bad = Patterns::new(&["![".to_owned()]).unwrap_err();
        assert!(bad.starts_with("--glob: "), "{bad}");
    }
}
