//! Opens a path or standard input as a stream of decompressed bytes, and buffers a window of a stream. Recognizes
//! archives and other formats that are not read, which are errors.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use twindex::format::header::{self, Role};
use zstd::stream::read::Decoder;

use crate::input::place::{Place, Problem};

/// Size in bytes of reads from a compressed file.
const COMPRESSED_BUFFER: usize = if cfg!(fuzzing) { 100 } else { 128 << 10 };

/// Base-2 logarithm of the maximum window size of a zstd stream in bytes: 128 MiB, the default limit of `zstd -d`. It
/// is smaller in fuzzing, which reports larger allocations as bugs.
const WINDOW_LOG_MAX: u32 = if cfg!(fuzzing) { 24 } else { 27 };

/// Maximum memory of the decoder of an xz stream, in KiB. `xz -9` needs 65 MiB.
const XZ_KIB_MAX: u32 = if cfg!(fuzzing) { 16 << 10 } else { 132 << 10 };

/// A compression that output files may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// gzip, with the file name suffix `.gz`.
    Gzip,
    /// zstd, with the file name suffix `.zst`.
    Zstd,
}

impl Compression {
    /// Returns the suffix that is added to the name of a compressed file.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Gzip => ".gz",
            Self::Zstd => ".zst",
        }
    }
}

/// A compression that inputs may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
    Xz,
    Bzip2,
    Lz4,
}

impl Packing {
    /// Each compression with its name and its file name suffixes.
    const ALL: [(Self, &str, &[&str]); 5] = [
        (Self::Gzip, "gzip", &["gz"]),
        (Self::Zstd, "zstd", &["zst", "zstd"]),
        (Self::Xz, "xz", &["xz"]),
        (Self::Bzip2, "bzip2", &["bz2"]),
        (Self::Lz4, "lz4", &["lz4"]),
    ];

    /// Returns the compression that the suffix of `path` indicates, in upper or lower case.
    pub(crate) fn promised(path: &Path) -> Option<Self> {
        let suffix = path.extension()?;
        let has = |suffixes: &[&str]| suffixes.iter().any(|name| suffix.eq_ignore_ascii_case(name));
        Self::ALL.iter().find(|(_, _, suffixes)| has(suffixes)).map(|&(packing, ..)| packing)
    }

    /// Returns the compression that the first bytes of a stream indicate. A text cannot start with a magic number: these
    /// are invalid UTF-8 or contain control characters, except that of bzip2, which has six bytes of the number pi, or of
    /// the square root of pi, after its fourth letter.
    fn found(start: &[u8]) -> Option<Self> {
        match start {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Self::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Self::Xz),
            [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, 0x59, 0x26, 0x53, 0x59, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, 0x45, 0x38, 0x50, 0x90, ..] => Some(Self::Bzip2),
            [0x04, 0x22, 0x4d, 0x18, ..] => Some(Self::Lz4),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// Returns `path` without its compression suffix, if it has one.
pub(crate) fn without_compression(path: &Path) -> PathBuf {
    if Packing::promised(path).is_some() { path.with_extension("") } else { path.to_owned() }
}

/// Decompresses the members of a gzip file. Zero bytes between and after members are ignored: copies in blocks leave them.
struct GzipMembers<R> {
    /// `None` after the last member.
    member: Option<flate2::bufread::GzDecoder<R>>,
}

impl<R: BufRead> GzipMembers<R> {
    fn new(inner: R) -> Self {
        Self { member: Some(flate2::bufread::GzDecoder::new(inner)) }
    }

    /// Returns whether another member follows in `inner`, after zero bytes are removed.
    fn follows(inner: &mut R) -> io::Result<bool> {
        loop {
            let held = inner.fill_buf()?;
            let (all, zeros) = (held.len(), held.iter().take_while(|&&byte| byte == 0).count());
            inner.consume(zeros);
            if zeros < all || all == 0 {
                return Ok(all > 0);
            }
        }
    }
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            // guard: all members of gzip are decompressed
            // without it: Self::follows(member.get_mut())? -> false
            if Self::follows(member.get_mut())? {
                self.member = self.member.take().and_then(|ended| Self::new(ended.into_inner()).member);
            } else {
                self.member = None;
            }
        }
        Ok(0)
    }
}

/// Decompresses the frames of an lz4 file. The decoder reports the end of each frame as the end of the stream.
struct Lz4Frames<R: Read>(lz4_flex::frame::FrameDecoder<R>);

impl<R: BufRead> Read for Lz4Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.0.read(buffer)?;
            if count > 0 || buffer.is_empty() || self.0.get_mut().fill_buf()?.is_empty() {
                return Ok(count);
            }
        }
    }
}

/// The source of a stream's bytes.
pub(crate) enum Origin {
    /// A regular file. It is opened only when it is read, because a process may open only a limited number of files.
    File(PathBuf),
    /// Standard input or a pipe, which can be opened only once.
    Stream { name: Arc<Path>, reader: Box<dyn Read + Send> },
}

impl Origin {
    /// Returns the name of the input for messages.
    pub(crate) fn name(&self) -> Arc<Path> {
        match self {
            Self::File(path) => Arc::from(path.as_path()),
            Self::Stream { name, .. } => Arc::clone(name),
        }
    }
}

/// Creates a zstd decoder that accepts a window of up to 2 to the power of `window_log_max` bytes.
///
/// # Errors
///
/// The zstd library cannot allocate memory.
pub(crate) fn zstd_within<'d, R: BufRead>(stream: R, window_log_max: u32) -> Result<Decoder<'d, R>, String> {
    zstd_by(stream, window_log_max, &[])
}

/// Magic number of a skippable frame that contains the dictionary of the frames after it, as in `.warc.zst` archives of
/// the IIPC. Decoders without support for such dictionaries skip the frame.
const DICTIONARY_FRAME: [u8; 4] = [0x5d, 0x2a, 0x4d, 0x18];
/// Magic numbers at the start of the frame's content: those of a dictionary and of a compressed dictionary.
const DICTIONARY: [u8; 4] = [0x37, 0xa4, 0x30, 0xec];
const COMPRESSED: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Maximum size of a dictionary in bytes.
const DICTIONARY_BYTES_MAX: usize = if cfg!(fuzzing) { 1 << 20 } else { 16 << 20 };

/// Returns the dictionary in the skippable frame at the start of a stream; empty if the frame has other content.
fn dictionary(stream: &mut impl BufRead) -> Result<Vec<u8>, String> {
    let cannot = |error: io::Error| format!("cannot read its zstd dictionary: {error}");
    let mut head = [0; 8];
    stream.read_exact(&mut head).map_err(cannot)?;
    let [.., a, b, c, d] = head;
    let length = u32::from_le_bytes([a, b, c, d]) as usize;
    if length > DICTIONARY_BYTES_MAX {
        return Err(format!(
            "its zstd dictionary has {length} bytes, and {DICTIONARY_BYTES_MAX} is the most"
        ));
    }
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).map_err(cannot)?;
    if bytes.len() < length {
        return Err("truncated: it ends in its zstd dictionary".to_owned());
    }
    if bytes.starts_with(&COMPRESSED) {
        let mut plain = Vec::new();
        let decoder = zstd_within(&bytes[..], WINDOW_LOG_MAX)?;
        decoder.take(DICTIONARY_BYTES_MAX as u64 + 1).read_to_end(&mut plain).map_err(cannot)?;
        if plain.len() > DICTIONARY_BYTES_MAX {
            return Err(format!("its zstd dictionary has more than {DICTIONARY_BYTES_MAX} bytes"));
        }
        bytes = plain;
    }
    Ok(if bytes.starts_with(&DICTIONARY) { bytes } else { Vec::new() })
}

/// Creates the decoder of [`zstd_within`]. The decoder uses `dictionary` unless it is empty.
fn zstd_by<'d, R: BufRead>(
    stream: R,
    window_log_max: u32,
    dictionary: &[u8],
) -> Result<Decoder<'d, R>, String> {
    Decoder::with_dictionary(stream, dictionary)
        .and_then(|mut decoder| {
            decoder.window_log_max(window_log_max)?;
            Ok(decoder)
        })
        .map_err(|error| format!("cannot start zstd: {error}"))
}

/// Length in bytes of the magic number, version and role at the start of twindex files.
const OURS_BYTES: usize = 11;

/// Returns a description of a twindex file for the error that it cannot be read as documents. Returns `None` if `start`
/// is not the start of a twindex file.
fn one_of_ours(start: &[u8; OURS_BYTES]) -> Option<&'static str> {
    let role = start[OURS_BYTES - 1];
    start.starts_with(&header::MAGIC).then_some(if role == Role::Sketches as u8 {
        "a file of sketches; `twindex build` reads it, from a regular file"
    } else if role == Role::Idf as u8 {
        "an idf table, not documents; name it with --idf"
    } else {
        "a file of an index, not documents"
    })
}

/// Returns an error if a file cannot be read, or its name indicates a compression that it does not have.
///
/// Decompresses one byte, because a zstd window above the limit is detected only during decompression. With
/// `may_break`, truncation before this byte is no error.
///
/// # Errors
///
/// The errors of [`Reader::open`] and of reading the first bytes.
pub(crate) fn check_file(path: &Path, may_break: bool) -> Result<(), Problem> {
    let mut reader = Reader::open(Origin::File(path.to_owned()), &Arc::default())?;
    reader.may_break = may_break;
    reader.read_once(&mut [0]).map(drop)
}

/// Reads the decompressed bytes of an input, and counts the bytes before decompression.
pub(crate) struct Reader {
    name: Arc<Path>,
    inner: Box<dyn Read + Send>,
    compression: Option<Packing>,
    /// Whether a truncated compressed stream is read to its end without an error.
    may_break: bool,
    broke_off: Option<String>,
    /// The counter of bytes read from all inputs.
    consumed: Arc<AtomicU64>,
    /// Number of bytes read from this input.
    read: Arc<AtomicU64>,
    /// The size of a regular file in bytes; `None` for other inputs.
    file_bytes: Option<u64>,
}

impl Reader {
    /// Opens `origin`. Decompresses it if its first bytes indicate a compression.
    ///
    /// # Errors
    ///
    /// The file cannot be opened or read, or its name indicates a compression that its content does not have.
    pub(crate) fn open(origin: Origin, consumed: &Arc<AtomicU64>) -> Result<Self, Problem> {
        let promised = match &origin {
            Origin::File(path) => Packing::promised(path),
            Origin::Stream { .. } => None,
        };
        let mut reader = Self::open_verbatim(origin, consumed)?;
        let mut start = [0; OURS_BYTES];
        let mut filled = 0;
        while filled < start.len() {
            match reader.read_once(&mut start[filled..])? {
                0 => break,
                count => filled += count,
            }
        }
        if let Some(ours) = one_of_ours(&start) {
            return Err(reader.problem(ours.to_owned()));
        }
        if let Some(what) = Foreign::of(&start[..filled]) {
            return Err(reader.problem(what.refusal()));
        }
        if promised.is_some() && filled == 0 {
            return Err(reader.problem("empty, where its name says that it is compressed".to_owned()));
        }
        let found = Packing::found(&start[..filled]);
        if let Some(promised) = promised
            && found != Some(promised)
        {
            let found = found.map_or_else(
                || format!("its first bytes are \"{}\"", start[..filled].escape_ascii()),
                |other| format!("it is {}", other.name()),
            );
            return Err(reader.problem(format!("named as {}, but {found}; rename it", promised.name())));
        }
        let whole = Cursor::new(start).take(filled as u64).chain(reader.inner);
        reader.inner = match found {
            None => Box::new(whole),
            Some(Packing::Gzip) => {
                Box::new(GzipMembers::new(BufReader::with_capacity(COMPRESSED_BUFFER, whole)))
            }
            Some(Packing::Xz) => {
                let whole = BufReader::with_capacity(COMPRESSED_BUFFER, whole);
                Box::new(lzma_rust2::XzReader::new_mem_limit(whole, true, XZ_KIB_MAX))
            }
            Some(Packing::Bzip2) => {
                let whole = BufReader::with_capacity(COMPRESSED_BUFFER, whole);
                Box::new(bzip2::bufread::MultiBzDecoder::new(whole))
            }
            Some(Packing::Lz4) => {
                let whole = BufReader::with_capacity(COMPRESSED_BUFFER, whole);
                Box::new(Lz4Frames(lz4_flex::frame::FrameDecoder::new(whole)))
            }
            Some(Packing::Zstd) => {
                let mut whole = BufReader::with_capacity(COMPRESSED_BUFFER, whole);
                let dictionary = if start.starts_with(&DICTIONARY_FRAME) {
                    dictionary(&mut whole)
                } else {
                    Ok(Vec::new())
                };
                // guard: zstd of an input has a window of 128 MiB at most
                // without it: WINDOW_LOG_MAX -> 31
                let decoder = dictionary.and_then(|dictionary| zstd_by(whole, WINDOW_LOG_MAX, &dictionary));
                Box::new(decoder.map_err(|reason| {
                    let place = Place::file(Arc::clone(&reader.name));
                    Problem { place, reason }
                })?)
            }
        };
        reader.compression = found;
        Ok(reader)
    }

    /// Opens `origin` without decompressing it.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub(crate) fn open_verbatim(origin: Origin, consumed: &Arc<AtomicU64>) -> Result<Self, Problem> {
        let name = origin.name();
        let (inner, file_bytes): (Box<dyn Read + Send>, _) = match origin {
            Origin::File(path) => {
                let file = File::open(&path).map_err(|error| cannot(&path, "open", &error))?;
                let metadata = file.metadata().map_err(|error| cannot(&path, "read the size", &error))?;
                (Box::new(file), metadata.is_file().then_some(metadata.len()))
            }
            Origin::Stream { reader, .. } => (reader, None),
        };
        let (consumed, read) = (Arc::clone(consumed), Arc::default());
        let counts = [Arc::clone(&consumed), Arc::clone(&read)];
        let inner = Box::new(Counting { inner, counts });
        let (may_break, broke_off) = (false, None);
        Ok(Self { name, inner, compression: None, may_break, broke_off, consumed, read, file_bytes })
    }

    /// Returns the name of the input for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        &self.name
    }

    /// Returns the size in bytes of a regular file that is not decompressed; `None` for other inputs.
    pub(crate) fn plain_bytes(&self) -> Option<u64> {
        self.file_bytes.filter(|_| self.compression.is_none())
    }

    /// Returns whether the input is standard input or another pipe.
    pub(crate) fn is_stream(&self) -> bool {
        self.file_bytes.is_none()
    }

    /// Reads up to `buffer.len()` bytes. Returns the number of bytes read, 0 at the end.
    ///
    /// # Errors
    ///
    /// The error of [`Reader::explain`].
    pub(crate) fn read_once(&mut self, buffer: &mut [u8]) -> Result<usize, Problem> {
        loop {
            match self.inner.read(buffer) {
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error)
                    if self.may_break
                        && self.compression.is_some()
                        && error.kind() == io::ErrorKind::UnexpectedEof =>
                {
                    self.broke_off = Some(self.explain(&error).reason);
                    return Ok(0);
                }
                Err(error) => return Err(self.explain(&error)),
            }
        }
    }

    /// Makes the reader treat the truncation of compressed data as the end of the stream, and not as an error.
    pub(crate) fn read_to_its_break(&mut self) {
        self.may_break = true;
    }

    /// Returns the reason why the stream is truncated; `None` if it is complete.
    pub(crate) fn broke_off(&self) -> Option<&str> {
        self.broke_off.as_deref()
    }

    /// Converts an I/O error of the input to an error message with advice.
    pub(crate) fn explain(&self, error: &io::Error) -> Problem {
        let read = self.read.load(Ordering::Relaxed);
        let Some(compression) = self.compression.map(Packing::name) else {
            return self.problem(format!("cannot read on after {read} bytes: {error}"));
        };
        self.problem(if error.kind() == io::ErrorKind::UnexpectedEof {
            format!("truncated: the {compression} stream does not end, {read} bytes were read; copy the file again")
        } else if error.to_string().contains("too much memory") {
            format!("cannot undo {compression}: {error}; pipe it in as `-` from `zstd -dc --long=31`")
        } else if error.kind() == io::ErrorKind::OutOfMemory {
            format!("cannot undo {compression}: {error}; pipe it in as `-` from `xz -dc`")
        } else {
            format!("cannot undo {compression} after {read} bytes: {error}")
        })
    }

    /// Returns an error that concerns the whole input.
    fn problem(&self, reason: String) -> Problem {
        Problem { place: Place::file(Arc::clone(&self.name)), reason }
    }

    /// Adds the unread bytes of the file to the count of bytes read, so that a progress bar reaches its end.
    pub(crate) fn skip_rest(self) {
        let read = self.read.load(Ordering::Relaxed);
        let rest = self.file_bytes.unwrap_or(0).saturating_sub(read);
        self.consumed.fetch_add(rest, Ordering::Relaxed);
    }
}

impl Read for Reader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer)
    }
}

/// Returns an error with the message `path: cannot OPERATION: error`.
pub(crate) fn cannot(path: &Path, operation: &str, error: &io::Error) -> Problem {
    of_file(path, format!("cannot {operation}: {error}"))
}

/// Returns an error that concerns the whole file.
pub(crate) fn of_file(path: &Path, reason: String) -> Problem {
    Problem { place: Place::file(Arc::from(path)), reason }
}

/// Counts the bytes read from an input, before decompression.
struct Counting {
    inner: Box<dyn Read + Send>,
    /// The counters of bytes read from all inputs, and from this input.
    counts: [Arc<AtomicU64>; 2],
}

impl Read for Counting {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        for read in &self.counts {
            read.fetch_add(count as u64, Ordering::Relaxed);
        }
        Ok(count)
    }
}

/// A format that is recognized and not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Foreign {
    name: &'static str,
    /// How to convert a file of this format.
    advice: &'static str,
}

/// Advice on archives of files.
const UNPACK: &str = "unpack it, and name the files or the folder";
/// Advice on tables.
const CONVERT: &str = "convert it to Parquet or JSON Lines";

impl Foreign {
    /// Returns the format that the first bytes of a file indicate; `None` if they indicate none of these.
    pub(crate) fn of(start: &[u8]) -> Option<Self> {
        let (name, advice) = match start {
            [b'P', b'K', 3, 4, ..] => {
                ("zip", "unpack it, and name the files or the folder; save office documents as text or CSV")
            }
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => ("7z", UNPACK),
            _ if start.get(257..262) == Some(b"ustar") => ("tar", UNPACK),
            [b'O', b'R', b'C', _, 0, 0, ..] => ("ORC", CONVERT),
            [b'O', b'b', b'j', 1, ..] => ("Avro", CONVERT),
            _ if start.starts_with(b"SQLite for") => ("SQLite", "export its table to CSV or JSON Lines"),
            [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => ("NumPy", CONVERT),
            [0x89, b'H', b'D', b'F', b'\r', b'\n', ..] => ("HDF5", CONVERT),
            [0x80, 2..=5, 0x95 | b'}' | b']' | b'c' | b'(', ..] => ("pickle", CONVERT),
            [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, ..] => ("Microsoft Office", "save it as CSV or text"),
            [b'%', b'P', b'D', b'F', b'-', ..] => ("PDF", "extract its text, as `pdftotext` does"),
            _ => return None,
        };
        Some(Self { name, advice })
    }

    pub(crate) fn name(self) -> &'static str {
        self.name
    }

    /// Returns the reason why a named file of this format is not read.
    pub(crate) fn refusal(self) -> String {
        let Self { name, advice } = self;
        format!("{name}, which twindex does not read: {advice}")
    }
}

/// Size of reads in bytes. It is small in fuzzing, so that short inputs cross buffer boundaries.
const CHUNK: usize = if cfg!(fuzzing) { 128 } else { 256 << 10 };

/// The bytes of a stream that were read and not yet taken.
pub(crate) struct Window {
    reader: Reader,
    /// Number of bytes of the stream before the start of the buffer.
    before: u64,
    /// `buffer[start..end]` is the window.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    ended: bool,
}

impl Window {
    pub(crate) fn new(reader: Reader) -> Self {
        Self { reader, before: 0, buffer: Vec::new(), start: 0, end: 0, ended: false }
    }

    /// Makes the window treat the truncation of compressed data as the end of the stream, and not as an error.
    pub(crate) fn up_to_its_break(mut self) -> Self {
        self.reader.read_to_its_break();
        self
    }

    /// Returns the reason why the stream is truncated; `None` if it is complete.
    pub(crate) fn broke_off(&self) -> Option<&str> {
        self.reader.broke_off()
    }

    /// Returns the name of the stream for messages.
    pub(crate) fn name(&self) -> &Arc<Path> {
        self.reader.name()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Returns the offset of the window in its file; `None` unless the input is a regular file that is read without
    /// decompression.
    pub(crate) fn offset(&self) -> Option<u64> {
        self.reader.plain_bytes().map(|_| self.position())
    }

    /// Returns the offset of the window in the decompressed stream.
    pub(crate) fn position(&self) -> u64 {
        self.before + self.start as u64
    }

    /// Removes bytes from the start of the window.
    pub(crate) fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.end - self.start, "no more than there is");
        self.start += bytes;
    }

    /// Reads until the window has at least `bytes` bytes, or the stream ends. Returns whether the window has that
    /// number of bytes.
    ///
    /// # Errors
    ///
    /// The stream cannot be read further.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<bool, Problem> {
        while self.end - self.start < bytes && self.more()? {}
        Ok(self.end - self.start >= bytes)
    }

    /// Reads more bytes. Returns false if the stream has ended.
    ///
    /// # Errors
    ///
    /// The stream cannot be read further.
    pub(crate) fn more(&mut self) -> Result<bool, Problem> {
        if self.ended {
            return Ok(false);
        }
        if self.start > 0 && self.buffer.len() - self.end < CHUNK / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.before += self.start as u64;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK / 2 {
            // The size is doubled each time, so that a long record is moved only a few times.
            self.buffer.resize(2 * self.end + CHUNK, 0);
        } else if self.end < CHUNK / 2 && self.buffer.len() > 4 * CHUNK {
            // Frees the memory that a single long record needed.
            self.buffer.truncate(CHUNK);
            self.buffer.shrink_to_fit();
        }
        let count = self.reader.read_once(&mut self.buffer[self.end..])?;
        self.end += count;
        self.ended = count == 0;
        Ok(!self.ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suffix_in_any_case_determines_compression_and_format() {
        let cases = [
            ("a.jsonl", None, true),
            ("a.ndjson.gz", Some(Packing::Gzip), true),
            ("a.JSON.ZST", Some(Packing::Zstd), true),
            ("a.txt.gz", Some(Packing::Gzip), false),
            ("a.gz", Some(Packing::Gzip), false),
            ("jsonl", None, false),
            (".gz", None, false),
            ("a.jsonl.gz.gz", Some(Packing::Gzip), false),
            ("a.jl.zstd", Some(Packing::Zstd), true),
            ("a.jsonlines", None, true),
        ];
        for (name, compression, jsonl) in cases {
            assert_eq!(Packing::promised(Path::new(name)), compression, "{name}");
            let kind = crate::input::open::kind::Kind::of_name(Path::new(name));
            assert_eq!(kind == Some(crate::input::open::kind::Kind::Jsonl), jsonl, "{name}");
        }
        assert_eq!(without_compression(Path::new("./b/a.txt.gz")), Path::new("./b/a.txt"));
        assert_eq!(without_compression(Path::new("a.b.txt")), Path::new("a.b.txt"));
    }

    /// Returns a zstd file: a dictionary, which may be compressed, followed by frames.
    fn with_dictionary(dictionary: &[u8], frames: &[&[u8]]) -> Vec<u8> {
        let mut all = DICTIONARY_FRAME.to_vec();
        all.extend_from_slice(&(dictionary.len() as u32).to_le_bytes());
        all.extend_from_slice(dictionary);
        for frame in frames {
            all.extend_from_slice(frame);
        }
        all
    }

    #[test]
    fn zstd_is_decoded_with_the_dictionary_before_it() {
        // By `zstd --train --maxdict=512` from 400 lines like these.
        let dictionary = include_bytes!("../../../tests/zstd.dictionary");
        let lines: Vec<Vec<u8>> = (0..3_u32)
            .map(|at| format!("WARC/1.0 header {at} of a record, {}", at * 7919).into_bytes())
            .collect();
        let mut compressor = zstd::bulk::Compressor::with_dictionary(3, dictionary).unwrap();
        let frames: Vec<Vec<u8>> = lines.iter().map(|line| compressor.compress(line).unwrap()).collect();
        let frames: Vec<&[u8]> = frames.iter().map(Vec::as_slice).collect();
        let wanted = lines.concat();
        let read = |bytes: Vec<u8>| {
            let reader = Box::new(Cursor::new(bytes));
            let origin = Origin::Stream { name: Arc::from(Path::new("t")), reader };
            let mut all = Vec::new();
            let mut reader = Reader::open(origin, &Arc::default()).map_err(|problem| problem.to_string())?;
            reader.read_to_end(&mut all).map_err(|error| error.to_string())?;
            Ok::<_, String>(all)
        };
        assert_eq!(read(with_dictionary(dictionary, &frames)), Ok(wanted.clone()));
        let packed = zstd::bulk::compress(dictionary, 3).unwrap();
        assert_eq!(read(with_dictionary(&packed, &frames)), Ok(wanted.clone()));
        // Without the dictionary, the frames cannot be decoded. A skippable frame without a dictionary is ignored.
        assert!(read(frames.concat()).is_err());
        let plain = zstd::bulk::compress(b"words", 3).unwrap();
        assert_eq!(read(with_dictionary(b"something else", &[&plain])), Ok(b"words".to_vec()));
        let mut long = DICTIONARY_FRAME.to_vec();
        long.extend_from_slice(&u32::MAX.to_le_bytes());
        assert!(read([&long[..], b"    "].concat()).unwrap_err().contains("16777216 is the most"));
        assert!(read(with_dictionary(dictionary, &[])[..100].to_vec()).unwrap_err().contains("truncated"));
    }

    #[test]
    fn skippable_frame_is_recognised_as_zstd() {
        assert_eq!(Packing::found(b"\x50\x2a\x4d\x18\x04"), Some(Packing::Zstd));
        assert_eq!(Packing::found(b"P*M"), None);
        assert_eq!(Packing::found(b""), None);
    }
}
