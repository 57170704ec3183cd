//! Writes files that may be compressed.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use twindex::sys::DurableFile;
use zstd::stream::write::Encoder;

use super::Compression;

/// A file that is written sequentially, compressed or not, and then synced to disk. Each file that is opened for
/// appending gets another frame or member; readers of both formats read them as one stream.
pub(super) enum OutputFile {
    Plain(DurableFile),
    Gzip(Box<GzEncoder<DurableFile>>),
    Zstd(Encoder<'static, DurableFile>),
}

impl OutputFile {
    pub(super) fn new(file: DurableFile, compression: Option<Compression>) -> io::Result<Self> {
        Ok(match compression {
            None => Self::Plain(file),
            Some(Compression::Gzip) => Self::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::default()))),
            Some(Compression::Zstd) => Self::Zstd(Encoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?),
        })
    }

    /// Writes the end of the compressed stream, and syncs the file.
    pub(super) fn finish(self) -> io::Result<()> {
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

    /// Does nothing. [`finish`](Self::finish) writes the buffered bytes.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
