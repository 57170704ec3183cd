//! Salvages the readable records of a damaged segment.

use std::ops::Range;

use roaring::RoaringBitmap;

use super::open::Segment;
use super::records::Kept;
use crate::error::{Error, Result};
use crate::format::attached::Attached;
use crate::format::fields::Fields;
use crate::key::KeyBuf;

/// Maximum number of errors that are returned for a segment.
const REASONS: usize = 8;

/// The result of salvaging a segment.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// The number of live documents that were passed to the caller.
    pub saved: u64,
    /// The number of live documents that were lost because a part of the record cannot be read.
    pub lost: u64,
    /// The keys of lost documents, as far as they can be read; at most a thousand.
    pub lost_keys: Vec<KeyBuf>,
    /// The first errors, at most eight.
    pub reasons: Vec<Error>,
}

impl Salvaged {
    fn because(&mut self, error: Error) {
        if self.reasons.len() < REASONS {
            self.reasons.push(error);
        }
    }
}

/// Maximum number of bytes of band entries that are in memory at the same time.
const STRIPE_BYTES: u64 = 256 << 20;

/// An entry of a band: a document and its key in that band.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BandMember {
    ordinal: u32,
    band: u16,
    key: u32,
}

/// Maximum number of lost keys that are returned.
const LOST_KEYS: usize = 1000;

impl Segment {
    /// Calls `each` with the record of each live document that can be read completely, in the order of keys. A page
    /// whose checksum matches is trusted.
    ///
    /// Reads the whole segment once, and each band once per 256 MiB of band entries. Memory is proportional to the band
    /// entries that are in memory at the same time.
    ///
    /// # Errors
    /// The error that `each` returns. Damage is not an error.
    pub fn salvage(
        &self,
        deleted: &RoaringBitmap,
        mut each: impl FnMut(&KeyBuf, Option<Kept<'_>>, Attached<'_>) -> Result<()>,
    ) -> Result<Salvaged> {
        let mut salvaged = Salvaged::default();
        let bands = self.band_count();
        let documents = self.documents() as u32;
        // The product does not overflow: an entry takes at least one bit of the file, and the section lengths were
        // checked when the segment was opened.
        let entries = self.band_rows() * size_of::<BandMember>() as u64;
        let stripes = entries.div_ceil(STRIPE_BYTES).max(1);
        let stripe = u64::from(documents).div_ceil(stripes).max(1) as u32;
        let mut bands_whole = true;
        let mut start = 0;
        while start < documents {
            let end = start.saturating_add(stripe).min(documents);
            let mut found: Vec<BandMember> = Vec::new();
            for band in 0..bands {
                self.for_each_sound_band_entry(
                    band,
                    |key, ordinal| {
                        if (start..end).contains(&ordinal) {
                            found.push(BandMember { ordinal, band: band as u16, key });
                        }
                    },
                    |error| {
                        bands_whole = false;
                        if start == 0 {
                            salvaged.because(error);
                        }
                    },
                );
            }
            found.sort_unstable();
            self.salvage_stripe(start..end, deleted, &found, bands_whole, &mut salvaged, &mut each)?;
            start = end;
        }
        Ok(salvaged)
    }

    /// Salvages the documents with these ordinals. `found` has the band entries of these documents, sorted.
    fn salvage_stripe(
        &self,
        ordinals: Range<u32>,
        deleted: &RoaringBitmap,
        found: &[BandMember],
        bands_whole: bool,
        salvaged: &mut Salvaged,
        each: &mut impl FnMut(&KeyBuf, Option<Kept<'_>>, Attached<'_>) -> Result<()>,
    ) -> Result<()> {
        let bands = self.band_count();
        let mut rest = found;
        let mut features = Vec::new();
        let (mut bottom, mut modular) = (Vec::new(), Vec::new());
        for ordinal in ordinals {
            let (mine, others) = rest.split_at(rest.partition_point(|entry| entry.ordinal <= ordinal));
            rest = others;
            if deleted.contains(ordinal) {
                continue;
            }
            // The band entries of a document are trusted only if each band lists the document exactly once.
            let each_once = mine.iter().enumerate().all(|(band, entry)| usize::from(entry.band) == band);
            features.clear();
            features.extend(mine.iter().map(|entry| u64::from(entry.key) << 32));
            let read = (|| {
                let key = self.key(ordinal)?;
                let fingerprint = self.rank(ordinal)?.map(|rank| self.fingerprint(rank)).transpose()?;
                let signature = self.signature(ordinal)?;
                self.bottom(ordinal, &mut bottom)?;
                self.modular(ordinal, &mut modular)?;
                let attached = self.attached(ordinal)?;
                let fields = Fields::of(attached.fields.unwrap_or_default());
                fields.check(self.params()).map_err(|fault| self.wrong_fields(ordinal, fault))?;
                Ok((key, fingerprint, signature, attached))
            })();
            // Band entries were lost if only some of the bands list a document, or if it has a fingerprint but no band
            // lists it.
            let in_bands = mine.len();
            let whole = |fingerprint: Option<u64>| match (self.fingerprints.is_some(), bands) {
                (_, 0) => true,
                (true, _) => each_once && in_bands == if fingerprint.is_some() { bands } else { 0 },
                (false, _) => each_once && in_bands == bands || in_bands == 0 && bands_whole,
            };
            match read {
                Ok((key, fingerprint, signature, attached)) if whole(fingerprint) => {
                    let sketched = fingerprint.is_some() || in_bands > 0;
                    let kept = sketched.then(|| Kept {
                        fingerprint: fingerprint.unwrap_or(0),
                        features: &features,
                        signature,
                        bottom: &bottom,
                        modular: &modular,
                    });
                    let attached = Attached {
                        value: attached.value.unwrap_or_default(),
                        stamp: attached.stamp,
                        fields: Fields::of(attached.fields.unwrap_or_default()),
                    };
                    each(&key, kept, attached)?;
                    salvaged.saved += 1;
                }
                read => {
                    salvaged.lost += 1;
                    let key = match read {
                        Ok((key, ..)) => Some(key),
                        Err(error) => {
                            salvaged.because(error);
                            self.key(ordinal).ok()
                        }
                    };
                    if salvaged.lost_keys.len() < LOST_KEYS {
                        salvaged.lost_keys.extend(key);
                    }
                }
            }
        }
        Ok(())
    }
}
