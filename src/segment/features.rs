//! A column of band keys, indexed by document. Band sections map keys to documents; the column is their inverse.

use roaring::RoaringBitmap;

use crate::sys::column::Column;

/// The band keys of all documents of a segment. Takes 4 bytes per document and band.
#[derive(Debug)]
pub struct FeatureColumn {
    pub(super) bands: usize,
    pub(super) keys: Column<u32>,
    /// The ordinals of documents that have a sketch.
    pub(super) sketched: RoaringBitmap,
}

impl FeatureColumn {
    pub(super) fn bytes(&self) -> usize {
        size_of::<u32>() * self.keys.len() + self.sketched.serialized_size()
    }

    /// Replaces `out` by the features of a document. Bits that are not stored are 0. If the document has no sketch,
    /// returns false and leaves `out` empty.
    pub fn features(&self, ordinal: u32, out: &mut Vec<u64>) -> bool {
        out.clear();
        let start = ordinal as usize * self.bands;
        let keys = self.keys.get(start..start + self.bands).unwrap_or_default();
        if !self.sketched.contains(ordinal) {
            return false;
        }
        out.extend(keys.iter().map(|&key| u64::from(key) << 32));
        true
    }
}
