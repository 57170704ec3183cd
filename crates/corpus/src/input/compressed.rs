//! Writes files that may be compressed.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use zstd::stream::write::Encoder;

use super::Compression;
use crate::hashed_file::{FileHash, HashedFile};

/// A file that is written sequentially, compressed or not, and then synced to disk. If a compressed file is opened again
/// for appending, another zstd frame or gzip member is added; readers of both formats read all of them as one stream.
pub(super) enum OutputFile {
    Plain(HashedFile),
    Gzip(Box<GzEncoder<HashedFile>>),
    Zstd(Encoder<'static, HashedFile>),
}

impl OutputFile {
    /// Wraps a file whose first or next byte is about to be written. `None` writes it uncompressed.
    pub(super) fn new(file: HashedFile, compression: Option<Compression>) -> io::Result<Self> {
        Ok(match compression {
            None => Self::Plain(file),
            Some(Compression::Gzip) => {
                Self::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::default())))
            }
            Some(Compression::Zstd) => Self::Zstd(Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?),
        })
    }

    /// Finishes the compressed stream, syncs the file, and returns the hash of its compressed bytes.
    pub(super) fn finish(self) -> io::Result<FileHash> {
        match self {
            Self::Plain(file) => file,
            Self::Gzip(encoder) => encoder.finish()?,
            Self::Zstd(encoder) => encoder.finish()?,
        }
        .finish()
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(file) => file.write(bytes),
            Self::Gzip(encoder) => encoder.write(bytes),
            Self::Zstd(encoder) => encoder.write(bytes),
        }
    }

    /// Does nothing, because [`finish`](Self::finish) writes the buffered bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
