//! Parses a segment file. All sections of a [`ParsedSegment`] can be read; of their contents, only the parameters have
//! been checked.

use std::path::Path;

use xxhash_rust::xxh3::xxh3_128;
use zerocopy::little_endian::U32;

use super::file::SegmentFile;
use super::output;
use super::pages::PageChecks;
use crate::error::{Error, Result, corrupt, refused};
use crate::format::checksum::{PAGE, checksum};
use crate::format::contents::{self, ENTRY_BYTES, Kind, Section};
use crate::format::footer::{FOOTER_BYTES, Footer};
use crate::format::header::{FEATURE_PACKED, FEATURE_PARTS, HEADER_BYTES, Header, Role};
use crate::format::manifest::PARAMS_BYTES_MAX;
use crate::format::wire::{self, Fault};
use crate::format::{DOCUMENTS_MAX, bands};
use crate::params::Params;
use crate::sys::Access;
use crate::sys::mmap::View;
use crate::sys::vfs::ReadFile;

/// The contents of header, footer, table of contents, checksums and parameters, which agree with each other.
#[derive(Debug)]
pub(super) struct ParsedSegment {
    pub(super) file: SegmentFile,
    pub(super) params: Params,
    pub(super) salt: u128,
    pub(super) digest: u128,
    pub(super) documents: u64,
    pub(super) distinct: u64,
    /// The codec of the band sections.
    pub(super) band_codec: u16,
    /// Whether the file has parts of codes.
    pub(super) has_parts: bool,
    /// The offset of the table of contents.
    contents_offset: u64,
}

impl ParsedSegment {
    /// Runs steps 1 to 5 of [`open`](super::open).
    pub(super) fn read(file: Box<dyn ReadFile>, path: &Path, access: Access) -> Result<Self> {
        let length = file.len().map_err(|e| Error::io("get the length of", path, e))?;
        let fault = |section, base: u64, fault: Fault| corrupt(path, section, base, fault);
        let min = (HEADER_BYTES + FOOTER_BYTES) as u64;
        // guard: a file is long enough for a header and a footer
        if length < min {
            let cut = Fault::new(length, format!("at least {min} bytes"), format!("{length}"));
            return Err(fault("segment", 0, cut));
        }
        let read = |offset: u64, length: u64| -> Result<Vec<u8>> {
            let mut bytes = vec![0; in_memory("bytes in memory", length)?];
            file.read_exact_at(&mut bytes, offset).map_err(|e| Error::io("read", path, e))?;
            Ok(bytes)
        };

        let header = read(0, HEADER_BYTES as u64)?;
        let header =
            Header::read(&header, Role::Segment).map_err(|refusal| refused(path, "header", refusal))?;
        let salt = header.salt.get();

        let footer_offset = length - FOOTER_BYTES as u64;
        let footer = read(footer_offset, FOOTER_BYTES as u64)?;
        let footer = Footer::read(&footer, salt, length).map_err(|e| fault("footer", footer_offset, e))?;

        // The offsets in the footer are within the file, as was checked, so this reads at most the length of the file.
        let contents_offset = footer.contents_offset.get();
        let contents = read(contents_offset, footer_offset - contents_offset)?;
        let expected = checksum(salt, contents_offset, &contents);
        // guard: the footer and the contents are compared with their checksums
        if footer.contents_checksum.get() != expected {
            let found = format!("{:08x}", footer.contents_checksum.get());
            let sums = Fault::new(28, format!("checksum {expected:08x} of the table of contents"), found);
            return Err(fault("footer", footer_offset, sums));
        }
        let sections = contents::read(&contents, contents_offset)
            .map_err(|e| fault("table of contents", contents_offset, e))?;

        let sums = *sections.last().expect("contents::read asks for checksums");
        let page_checksums = read(sums.offset, sums.length)?;
        let expected = checksum(salt, sums.offset, &page_checksums);
        if footer.checksums_checksum.get() != expected {
            let found = format!("{:08x}", footer.checksums_checksum.get());
            let sums = Fault::new(32, format!("checksum {expected:08x} of the checksums section"), found);
            return Err(fault("footer", footer_offset, sums));
        }
        // No checksum covers the padding between the checksums and the table of contents, so it must be zero.
        let gap = read(sums.end(), contents_offset - sums.end())?;
        if let Some(at) = gap.iter().position(|&byte| byte != 0) {
            let padding = Fault::new(at as u64, "zero padding", format!("{:#04x}", gap[at]));
            return Err(fault("checksums", sums.end(), padding));
        }
        let columns = page_column(&page_checksums, &sums).map_err(|e| fault("checksums", sums.offset, e))?;
        let map_length = in_memory("bytes of a map", length)?;

        let bytes = View::new(file, map_length, access).map_err(|e| Error::io("map", path, e))?;
        let digest = output::digest(&header, &page_checksums, &contents, &footer);
        let file = SegmentFile::new(path, bytes, PageChecks::new(salt, columns, sums.offset), sections);
        let params = read_params(&file, header.params_digest.get(), contents_offset)?;
        header.check_features(&params).map_err(|e| corrupt(path, "header", 0, e))?;
        let (documents, distinct) = (footer.documents.get(), footer.distinct.get());
        if documents > DOCUMENTS_MAX || distinct > documents || (params.simhash.is_none() && distinct > 0) {
            let expected =
                format!("at most {DOCUMENTS_MAX} documents and no more fingerprints than documents");
            let lie = Fault::new(40, expected, format!("{documents} and {distinct}"));
            return Err(corrupt(path, "footer", footer_offset, lie));
        }
        let is_packed = header.incompatible.get() & FEATURE_PACKED != 0;
        let band_codec = if is_packed { bands::CODEC_PACKED } else { bands::CODEC_BYTES };
        let has_parts = header.incompatible.get() & FEATURE_PARTS != 0;
        Ok(Self { file, params, salt, digest, documents, distinct, band_codec, has_parts, contents_offset })
    }

    /// Creates the error for the entry with index `entry` (from 0) of the table of contents.
    pub(super) fn wrong_entry(&self, entry: usize, expected: String, found: String) -> Error {
        let fault = Fault::new((entry * ENTRY_BYTES) as u64, expected, found);
        corrupt(self.file.path(), "table of contents", self.contents_offset, fault)
    }
}

fn in_memory(what: &'static str, length: u64) -> Result<usize> {
    usize::try_from(length).map_err(|_| Error::Limit { what, limit: usize::MAX as u64, found: length })
}

/// Returns the page checksums as a slice. There is one for each page before the checksums section.
fn page_column<'a>(bytes: &'a [u8], sums: &Section) -> std::result::Result<&'a [U32], Fault> {
    let pages = sums.offset.div_ceil(PAGE);
    let column: &[U32] = wire::column(bytes)?;
    if column.len() as u64 == pages && sums.rows == pages && sums.index == 0 && sums.codec == 1 {
        return Ok(column);
    }
    let Section { length, rows, index, codec, .. } = sums;
    let found = format!("{length} bytes, {rows} rows, index {index}, codec {codec}");
    Err(Fault::new(0, format!("{pages} checksums, codec 1"), found))
}

/// Reads the parameters. They must be the first section.
fn read_params(file: &SegmentFile, digest: u128, contents_offset: u64) -> Result<Params> {
    let section = file.sections()[0];
    let wrong = |expected: &str, found: String| file.corrupt_at(&section, Fault::new(0, expected, found));
    if section.kind != Kind::Params
        || section.index != 0
        || section.codec != 1
        || section.rows != section.length
    {
        let found = format!("{}, codec {}, {} rows", section.kind.name(), section.codec, section.rows);
        let fault = Fault::new(0, "the parameters as first section, codec 1", found);
        return Err(corrupt(file.path(), "table of contents", contents_offset, fault));
    }
    if section.length > u64::from(PARAMS_BYTES_MAX) {
        let expected = format!("at most {PARAMS_BYTES_MAX} bytes of parameters");
        return Err(wrong(&expected, section.length.to_string()));
    }
    let text = file.read(&section, 0..section.length)?;
    let text = std::str::from_utf8(text).map_err(|e| wrong("UTF-8 text", e.to_string()))?;
    let params = Params::decode(text).map_err(|e| wrong("parameters", e.to_string()))?;
    // The decoder accepts only one text for the same parameters, so a digest of the text identifies the parameters.
    if xxh3_128(text.as_bytes()) != digest {
        return Err(wrong("the parameters of the digest in the header", "others".into()));
    }
    Ok(params)
}
