//! Finds the group of documents with a given text. Any thread finds groups and compares texts; the thread that takes
//! documents in input order adds groups.

use std::fmt::{Debug, Formatter};
use std::path::Path;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use twindex::sys::vfs::ReadFile;
use twindex::sys::{Column, MemoryBudget, RealVfs, Vfs};
use twindex_join::EqualGroups;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::input::content::Form;
use crate::input::parser::{AcceptedLines, Parser};
use crate::work::line_blocks::{ReadBlock, SharedLines};
use crate::work::numbered_paths::NumberedPaths;

/// The groups of equal texts.
pub struct KnownTexts(RwLock<Texts>);

struct Texts {
    groups: EqualGroups,
    /// Where the texts of groups can be read again, up to the last group for which this is known.
    at: Column<TextPosition>,
    files: NumberedPaths,
}

/// The position of the line of a text.
#[derive(Clone, Copy, Default, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct TextPosition {
    offset: u64,
    length: u32,
    /// The index of the file plus 1; 0 if only the thread that takes documents can read the text; [`SHARED`] if the line
    /// is among the shared lines.
    file: u32,
    form: [u32; 2],
}

const SHARED: u32 = u32::MAX;

/// The line of a text.
#[derive(Clone, Copy)]
pub(crate) struct TextLine<'t> {
    /// The file; `None` if the line is among the shared lines.
    pub(crate) file: Option<&'t Arc<Path>>,
    pub(crate) offset: u64,
    pub(crate) length: u32,
    pub(crate) form: Form,
}

/// Reads texts again, to compare them. Each thread has its own.
pub(crate) struct TextReader {
    lines: AcceptedLines,
    line: Vec<u8>,
    open: Option<(Arc<Path>, Box<dyn ReadFile>)>,
    shared: Option<SharedLines>,
    block: ReadBlock,
}

impl Debug for KnownTexts {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        out.write_str("KnownTexts")
    }
}

impl KnownTexts {
    /// Creates an empty collection. A group takes 11 to 22 bytes of `budget`, or 24 more if any thread can read its text.
    pub(crate) fn new(budget: &MemoryBudget) -> twindex::Result<Self> {
        let (groups, at) = (EqualGroups::new(budget)?, Column::new(budget));
        Ok(Self(RwLock::new(Texts { groups, at, files: NumberedPaths::default() })))
    }

    fn read(&self) -> RwLockReadGuard<'_, Texts> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Texts> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a group may have this hash. If false, no group has this hash.
    pub(crate) fn may_have(&self, hash: u128) -> bool {
        self.read().groups.probable(hash).is_some()
    }

    /// Begins to load what [`group`](Self::group) reads for these hashes.
    pub(crate) fn prefetch(&self, hashes: impl Iterator<Item = u128>) {
        let texts = self.read();
        hashes.for_each(|hash| texts.groups.prefetch(hash));
    }

    /// Returns the group of a text with this hash: a group for which `is_same` returns true, or a new group. Groups are
    /// numbered from 0. `line` is the place of the text, if any thread may read it there.
    pub(crate) fn group<E: From<twindex::Error>>(
        &self,
        hash: u128,
        line: Option<TextLine<'_>>,
        is_same: impl FnMut(u32) -> Result<bool, E>,
    ) -> Result<u32, E> {
        let mut texts = self.write();
        let Texts { groups, at, files } = &mut *texts;
        let group = groups.group(hash, is_same)?;
        if let Some(TextLine { file, offset, length, form }) = line
            && group as usize >= at.len()
        {
            let file = file.map_or(SHARED, |file| files.number(file) + 1);
            at.resize(group as usize, TextPosition::default())?;
            at.push(TextPosition { offset, length, file, form: form.numbers() })?;
        }
        Ok(group)
    }

    /// Returns a group with this text, which has this hash. `None` if there is no such group, or if its text cannot be
    /// read here.
    pub(crate) fn find(&self, hash: u128, identity: &[u8], reader: &mut TextReader) -> Option<u32> {
        let texts = self.read();
        let group = texts.groups.probable(hash)?;
        let &TextPosition { offset, length, file, form } = texts.at.get(group as usize)?;
        let TextReader { lines, line, open, shared, block } = reader;
        if file == SHARED {
            drop(texts);
            let line = shared.as_ref()?.read(block, offset, length as usize).ok()?;
            let is_equal = lines.has_identity(Form::of_numbers(form), line, identity);
            block.shrink();
            return is_equal.then_some(group);
        }
        let path = texts.files.get(file.checked_sub(1)?);
        if open.as_ref().is_none_or(|(open, _)| !Arc::ptr_eq(open, path)) {
            let path = Arc::clone(path);
            drop(texts);
            *open = Some((Arc::clone(&path), RealVfs.open(&path).ok()?));
        } else {
            drop(texts);
        }
        line.clear();
        line.resize(length as usize, 0);
        open.as_ref()?.1.read_exact_at(line, offset).ok()?;
        lines.has_identity(Form::of_numbers(form), line, identity).then_some(group)
    }
}

impl TextReader {
    /// `shared` has the lines that are not in files.
    pub(crate) fn new(parser: &Parser, shared: Option<&SharedLines>) -> Self {
        let (lines, block) = (AcceptedLines::new(parser), ReadBlock::default());
        Self { lines, line: Vec::new(), open: None, shared: shared.cloned(), block }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use xxhash_rust::xxh3::xxh3_128;

    use super::*;
    use crate::input::options::InputOptions;

    #[test]
    fn copies_are_found_only_where_the_text_in_the_file_is_equal() {
        let folder = tempfile::tempdir().unwrap();
        let file: Arc<Path> = Arc::from(folder.path().join("in.jsonl"));
        let lines =
            [r#"{"id":"a","text":"a rose"}"#, r#"{"id":"b","text":"is"}"#, r#"{"id":"c","text":"no file"}"#];
        fs::write(&file, lines.join("\n")).unwrap();
        let texts = KnownTexts::new(&MemoryBudget::new(folder.path(), 0)).unwrap();
        let mut offset = 0;
        for (number, (line, text)) in lines.iter().zip(["a rose", "is", "no file"]).enumerate() {
            let place = TextLine { file: Some(&file), offset, length: line.len() as u32, form: Form::Json };
            let place = Some(place).filter(|_| number != 2);
            let group =
                texts.group(xxh3_128(text.as_bytes()), place, |_| Ok::<_, twindex::Error>(true)).unwrap();
            assert_eq!(group as usize, number);
            offset += line.len() as u64 + 1;
        }
        let mut reader = TextReader::new(&Parser::new(&InputOptions::default()), None);
        let mut find = |hash_of: &str, text: &str| {
            texts.find(xxh3_128(hash_of.as_bytes()), text.as_bytes(), &mut reader)
        };
        assert_eq!([find("a rose", "a rose"), find("is", "is")], [Some(0), Some(1)]);
        // A text with the hash of another text, a text that is not in a file, and a new text.
        assert_eq!([find("is", "a rose"), find("no file", "no file"), find("new", "new")], [None; 3]);
        fs::write(&file, lines.join("\n").replace("is", "at")).unwrap();
        assert_eq!([find("a rose", "a rose"), find("is", "is")], [Some(0), None]);
        fs::write(&file, "").unwrap();
        assert_eq!(find("a rose", "a rose"), None);
        assert!(texts.may_have(xxh3_128(b"no file")) && !texts.may_have(xxh3_128(b"new")));
    }
}
