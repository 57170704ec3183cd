//! Encodes and writes sections as bands. An entry has a 32-bit key in the high half and an ordinal in the low.

use super::output::SegmentOutput;
use super::spilled::{SliceSource, SpillBudget, SpilledParts};
use crate::error::Result;
use crate::format::bands::{Band, BandEntry, CODEC_PACKED};
use crate::format::contents::Kind;
use crate::format::directory::DirectoryBuilder;
use crate::format::table::Columns;

/// Number of entries that are encoded before their bytes are written.
const CHUNK: usize = 8192;

/// The contents of a section that is encoded as a band.
pub(super) struct EncodedEntries<'r> {
    rows: u64,
    parts: SpilledParts<'r>,
}

impl EncodedEntries<'_> {
    pub(super) fn write(&self, out: &mut SegmentOutput, kind: Kind, index: u16) -> Result<()> {
        out.section(kind, index, CODEC_PACKED, self.rows, |out| {
            self.parts.write(out, true)?;
            // The entries start at a multiple of 64, so the directory is padded even if no entry follows.
            if self.rows == 0 { out.align() } else { Ok(()) }
        })
    }
}

/// Encodes a section as a band. `entries` yields the ascending entries of this layout, of codec 2, with the key in the high
/// 32 bits and the ordinal in the low 32 bits.
pub(super) fn encode_entries<'r>(
    layout: Band,
    budget: SpillBudget<'r>,
    entries: &mut impl SliceSource<u64>,
) -> Result<EncodedEntries<'r>> {
    let mut directory = DirectoryBuilder::new(layout.directory);
    let mut parts = SpilledParts::new(budget, budget.share(8));
    let (mut bytes, mut writer) = (Vec::new(), layout.writer());
    while let Some(chunk) = entries.next_slice()? {
        for some in chunk.chunks(CHUNK) {
            bytes.clear();
            for &entry in some {
                directory.count(entry);
                let entry = BandEntry { tag: layout.tag((entry >> 32) as u32), ordinal: entry as u32 };
                writer.put(layout.encode(entry), &mut bytes);
            }
            parts.put(1, &bytes)?;
        }
    }
    bytes.clear();
    writer.finish(&mut bytes);
    parts.put(1, &bytes)?;
    directory.encode(|bytes| parts.put(0, bytes))?;
    Ok(EncodedEntries { rows: layout.directory.rows, parts })
}
