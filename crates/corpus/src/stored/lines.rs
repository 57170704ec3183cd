//! Stores the lines of documents, or their positions in the inputs, so that the lines can be read again.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use anyhow::Context;
use twindex::sys::vfs::ReadFile;
use twindex::sys::{Column, MemoryBudget, RealVfs, Vfs};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::input::content::{Ending, Form};
use crate::sketching::documents::{DocumentLine, line_hash};
use crate::sketching::known_texts::TextLine;
use crate::stored::keys::arrange;
use crate::work::line_blocks::{ReadBlock, SharedLines};
use crate::work::numbered_paths::NumberedPaths;
use crate::work::packed_lines::{LineDictionary, PackedLines};

/// Stores lines, which are identified by their index in the order of addition. Of a line in a regular file, only the
/// position is stored. Lines of pipes and compressed files are copied to compressed blocks in a scratch file.
pub(crate) struct LineStore {
    at: Column<LinePosition>,
    blocks: SharedLines,
    /// The packed lines that were added last, and the offset of the first.
    packed: Option<(Arc<PackedLines>, u64)>,
    /// The block that [`get`](Self::get) decompressed last.
    block: Mutex<ReadBlock>,
    /// The folder for scratch files.
    folder: PathBuf,
    files: NumberedPaths,
    /// The first line of each run of lines that was moved, and the least offset in `blocks` from this line on.
    runs: Vec<(usize, u64)>,
    /// The file read last. Only one file is open at a time, because the number of open files of a process is limited.
    open: Mutex<Option<(u32, Box<dyn ReadFile>)>>,
}

/// The position of a line, and the line's hash and form.
#[derive(Clone, Copy, FromBytes, Immutable, IntoBytes, KnownLayout)]
#[repr(C)]
struct LinePosition {
    /// The offset in the input file; for lines in the scratch file, the offset in [`SharedLines`].
    offset: u64,
    /// The hash of the line, by which a change of the file is detected.
    hash: u64,
    length: u32,
    /// 0 for the scratch file; otherwise the index of an input file plus 1.
    file: u32,
    /// The form and the line ending, encoded by [`packed`].
    form: [u32; 2],
}

/// Number of low bits of `form[0]` that store the kind of the form. The line ending is in the bits above them.
const FORM_BITS: u32 = 8;

fn packed(form: Form, ending: Ending) -> [u32; 2] {
    let ending: u32 = match ending {
        Ending::Newline => 0,
        Ending::Crlf => 1,
        Ending::None => 2,
    };
    let [kind, number] = form.numbers();
    [kind | ending << FORM_BITS, number]
}

fn unpacked([kind, number]: [u32; 2]) -> (Form, Ending) {
    let ending = match kind >> FORM_BITS {
        0 => Ending::Newline,
        1 => Ending::Crlf,
        _ => Ending::None,
    };
    (Form::of_numbers([kind & ((1 << FORM_BITS) - 1), number]), ending)
}

impl LineStore {
    /// Creates an empty store. A line takes 32 bytes of memory or of a scratch file.
    pub(crate) fn new(folder: &Path, budget: &MemoryBudget) -> anyhow::Result<Self> {
        Self::with(folder, budget, LineDictionary::default())
    }

    /// Creates an empty store, to which lines that were packed for this one can be added.
    pub(crate) fn beside(&self, folder: &Path, budget: &MemoryBudget) -> anyhow::Result<Self> {
        Self::with(folder, budget, self.blocks.dictionary())
    }

    fn with(folder: &Path, budget: &MemoryBudget, dictionary: LineDictionary) -> anyhow::Result<Self> {
        let blocks = SharedLines::new(folder, budget, dictionary)
            .with_context(|| format!("{}: cannot create a scratch file", folder.display()))?;
        Ok(Self {
            at: Column::new(budget),
            blocks,
            packed: None,
            block: Mutex::default(),
            folder: folder.to_owned(),
            files: NumberedPaths::default(),
            runs: Vec::new(),
            open: Mutex::new(None),
        })
    }

    /// Returns the lines that cannot be read again from their files, for threads that read and pack them.
    pub(crate) fn shared(&self) -> SharedLines {
        self.blocks.clone()
    }

    /// Returns where any thread can read a line again.
    pub(crate) fn text_line(&self, number: usize) -> TextLine<'_> {
        let LinePosition { offset, length, file, form, .. } = self.at[number];
        let file = file.checked_sub(1).map(|file| self.files.get(file));
        TextLine { file, offset, length, form: unpacked(form).0 }
    }

    pub(crate) fn push(&mut self, form: Form, ending: Ending, line: &DocumentLine) -> anyhow::Result<()> {
        let short = |length: usize| u32::try_from(length).context("longer than 2^32 bytes");
        let at = match line {
            DocumentLine::Held(line) => LinePosition {
                offset: self
                    .blocks
                    .append(line)
                    .with_context(|| format!("{}: cannot write a scratch file", self.folder.display()))?,
                hash: 0,
                length: short(line.len())?,
                file: 0,
                form: packed(form, ending),
            },
            DocumentLine::Packed { lines, at, length } => {
                let start = match &self.packed {
                    Some((last, start)) if Arc::ptr_eq(last, lines) => *start,
                    _ => {
                        let start = self.blocks.add(lines);
                        start.with_context(|| {
                            format!("{}: cannot write a scratch file", self.folder.display())
                        })?
                    }
                };
                self.packed = Some((Arc::clone(lines), start));
                let (offset, length) = (start + *at as u64, short(*length)?);
                LinePosition { offset, hash: 0, length, file: 0, form: packed(form, ending) }
            }
            DocumentLine::In { file, offset, length, hash } => {
                let (length, file) = (short(*length)?, self.files.number(file) + 1);
                LinePosition { offset: *offset, hash: *hash, length, file, form: packed(form, ending) }
            }
        };
        Ok(self.at.push(at)?)
    }

    /// Replaces the list by these runs of its lines.
    pub(crate) fn arrange(&mut self, runs: &[Range<u32>]) -> twindex::Result<()> {
        let mut first = 0;
        for run in runs {
            self.runs.push((first, u64::MAX));
            first += run.len();
        }
        arrange(&mut self.at, runs)?;
        let (mut end, mut least) = (self.at.len(), u64::MAX);
        for (first, from) in self.runs.iter_mut().rev() {
            let held = self.at[*first..end].iter().filter(|at| at.file == 0);
            least = held.map(|at| at.offset).fold(least, u64::min);
            (end, *from) = (*first, least);
        }
        Ok(())
    }

    /// Returns the form in which a line is stored.
    pub(crate) fn form(&self, number: usize) -> Form {
        unpacked(self.at[number].form).0
    }

    /// Returns the line ending that followed the line in its file.
    pub(crate) fn ending(&self, number: usize) -> Ending {
        unpacked(self.at[number].form).1
    }

    /// Returns the length of a line in bytes.
    pub(crate) fn length(&self, number: usize) -> usize {
        self.at[number].length as usize
    }

    /// Frees the disk space of the lines before line `number`, in steps of 16 MiB. They must not be read afterwards.
    pub(crate) fn release_before(&self, number: usize) {
        let LinePosition { offset, file, .. } = self.at[number];
        let run = self.runs.partition_point(|&(first, _)| first <= number);
        let needed = run.checked_sub(1).map(|run| self.runs[run].1).or((file == 0).then_some(offset));
        if let Some(needed) = needed {
            self.blocks.release_before(needed);
        }
    }

    /// Returns a reader that is fast if lines are read mostly in the order of addition.
    pub(crate) fn reading(&self) -> LineReader<'_> {
        LineReader {
            lines: self,
            window: Vec::new(),
            start: 0,
            ahead: LEAST,
            open: None,
            held: ReadBlock::default(),
        }
    }

    /// Returns a line; `None` if its file has changed.
    pub(crate) fn get(&self, number: usize) -> io::Result<Option<Vec<u8>>> {
        let LinePosition { offset, hash, length, file, .. } = self.at[number];
        if file == 0 {
            // Takes the cached block out of the mutex, so that no other thread waits. Threads that find no block create
            // their own.
            let mut block =
                self.block.try_lock().map(|mut block| std::mem::take(&mut *block)).unwrap_or_default();
            let line = self.blocks.read(&mut block, offset, length as usize)?.to_vec();
            block.shrink();
            if let Ok(mut held) = self.block.try_lock() {
                *held = block;
            }
            return Ok(Some(line));
        }
        let mut line = vec![0; length as usize];
        let mut open =
            self.open.lock().map_err(|_| io::Error::other("a thread that was reading it panicked"))?;
        let reader = match open.take() {
            Some((number, reader)) if number == file => reader,
            _ => RealVfs.open(self.files.get(file - 1))?,
        };
        let read = reader.read_exact_at(&mut line, offset);
        *open = Some((file, reader));
        match read {
            Ok(()) => Ok((line_hash(&line) == hash).then_some(line)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Number of bytes to read at a time: initially, and after each jump to another position.
const LEAST: u64 = 8 << 10;
/// Maximum number of bytes to read at a time while lines are consecutive.
const WINDOW: u64 = 256 << 10;
/// Lines separated by at most this number of bytes are consecutive.
const GAP: u64 = 4 << 10;

/// Reads lines in mostly ascending order through a window that moves over the file.
pub(crate) struct LineReader<'l> {
    lines: &'l LineStore,
    /// The bytes of the open file from offset `start` on.
    window: Vec<u8>,
    start: u64,
    /// Number of bytes to read at a time. It doubles while lines are consecutive.
    ahead: u64,
    open: Option<(u32, Box<dyn ReadFile>, u64)>,
    held: ReadBlock,
}

impl LineReader<'_> {
    /// Returns a line; `None` if its file has changed.
    pub(crate) fn get(&mut self, number: usize) -> io::Result<Option<&[u8]>> {
        let LinePosition { offset, hash, length, file, .. } = self.lines.at[number];
        if file == 0 {
            return self.lines.blocks.read(&mut self.held, offset, length as usize).map(Some);
        }
        let end = offset + u64::from(length);
        let size = match &self.open {
            Some((open, _, size)) if *open == file => *size,
            _ => {
                let reader = RealVfs.open(self.lines.files.get(file - 1))?;
                let size = reader.len()?;
                self.window.clear();
                self.open = Some((file, reader, size));
                size
            }
        };
        if end > size {
            return Ok(None);
        }
        if offset < self.start || end > self.start + self.window.len() as u64 {
            let read = self.start..self.start + self.window.len() as u64 + GAP;
            self.ahead = if read.contains(&offset) { WINDOW.min(2 * self.ahead) } else { LEAST };
            // Reads `ahead` bytes, or the whole line if it is longer.
            self.window.resize((size - offset).min(self.ahead.max(length.into())) as usize, 0);
            self.start = offset;
            if let Some((_, reader, _)) = &self.open {
                match reader.read_exact_at(&mut self.window, offset) {
                    Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
                    read => read?,
                }
            }
        }
        let line = &self.window[(offset - self.start) as usize..][..length as usize];
        Ok((line_hash(line) == hash).then_some(line))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn lines_are_read_again_and_changed_inputs_are_detected() {
        let dir = tempfile::tempdir().unwrap();
        let path: Arc<Path> = Arc::from(dir.path().join("in.jsonl"));
        fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let mut lines = LineStore::new(dir.path(), &MemoryBudget::new(dir.path(), 0)).unwrap();
        let there = |line: &str, offset| DocumentLine::In {
            file: Arc::clone(&path),
            offset,
            length: line.len(),
            hash: line_hash(line.as_bytes()),
        };
        for line in [there("one", 0), DocumentLine::Held(b"held".into()), there("three", 8)] {
            lines.push(Form::Json, Ending::Newline, &line).unwrap();
        }
        let all = |lines: &LineStore| {
            let mut reading = lines.reading();
            [0, 1, 2].map(|number| {
                let line = lines.get(number).unwrap();
                assert_eq!(reading.get(number).unwrap(), line.as_deref());
                line
            })
        };
        assert_eq!(all(&lines), [&b"one"[..], b"held", b"three"].map(|line| Some(line.to_vec())));
        fs::write(&path, "one\ntwo\nThree").unwrap();
        assert_eq!(all(&lines)[2], None);
        fs::write(&path, "one").unwrap();
        assert_eq!(all(&lines), [Some(b"one".to_vec()), Some(b"held".to_vec()), None]);
    }

    #[test]
    fn packed_form_unpacks_to_the_original() {
        for form in [
            Form::Json,
            Form::Html,
            Form::Row(7),
            Form::Archive { texts: true },
            Form::Archive { texts: false },
            Form::Columns(u32::MAX),
            Form::Arc,
        ] {
            for ending in [Ending::Newline, Ending::Crlf, Ending::None] {
                assert_eq!(unpacked(packed(form, ending)), (form, ending));
            }
        }
    }

    #[test]
    fn sequential_reads_return_the_same_lines_as_single_reads() {
        let dir = tempfile::tempdir().unwrap();
        let mut lines = LineStore::new(dir.path(), &MemoryBudget::unlimited()).unwrap();
        for name in ["a", "b"] {
            let path: Arc<Path> = Arc::from(dir.path().join(name));
            let texts: Vec<String> = (0..200_u64)
                .map(|i| name.repeat((i * 7919 % 5000 + i / 199 * WINDOW * 2) as usize))
                .collect();
            fs::write(&path, texts.concat()).unwrap();
            let mut offset = 0;
            for text in &texts {
                let hash = line_hash(text.as_bytes());
                let line = DocumentLine::In { file: Arc::clone(&path), offset, length: text.len(), hash };
                lines.push(Form::Json, Ending::Newline, &line).unwrap();
                offset += text.len() as u64;
            }
        }
        let mut reading = lines.reading();
        for number in (0..400).chain([3, 399, 200, 0]) {
            assert_eq!(reading.get(number).unwrap(), lines.get(number).unwrap().as_deref(), "{number}");
            assert!(reading.window.len() as u64 <= WINDOW * 2 + 5000);
        }
    }
}
