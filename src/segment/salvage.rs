//! What can be read of a segment that is damaged, record by record.

use roaring::RoaringBitmap;

use super::open::Segment;
use super::records::Kept;
use crate::error::{Error, Result};
use crate::format::attached::Attached;
use crate::key::KeyBuf;

/// Reasons kept for each segment, beside the number of documents lost.
const REASONS: usize = 8;

/// What was saved of a segment, and what was not.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Salvaged {
    /// Live documents whose records were handed out.
    pub saved: u64,
    /// Live documents that are lost: a part of each cannot be read.
    pub lost: u64,
    /// The keys of those lost whose keys can be read, the first thousand.
    pub lost_keys: Vec<KeyBuf>,
    /// Why, the first few.
    pub reasons: Vec<Error>,
}

impl Salvaged {
    fn because(&mut self, error: Error) {
        if self.reasons.len() < REASONS {
            self.reasons.push(error);
        }
    }
}

/// Keys of lost documents that are told.
const LOST_KEYS: usize = 1000;

impl Segment {
    /// Hands the record of each live document that can be read as a whole to `each`, in the order of keys. What is
    /// believed of a page is what its checksum says.
    ///
    /// Time is that of reading everything once; memory 4 bytes for each document and band.
    ///
    /// # Errors
    /// What `each` returns. Damage is no error here.
    pub fn salvage(
        &self,
        deleted: &RoaringBitmap,
        mut each: impl FnMut(&KeyBuf, Option<Kept<'_>>, Attached<'_>) -> Result<()>,
    ) -> Result<Salvaged> {
        let mut salvaged = Salvaged::default();
        let bands = self.band_count();
        let documents = self.documents() as usize;
        let mut keys = vec![0_u32; documents * bands];
        let mut seen = vec![0_u16; documents];
        for band in 0..bands {
            let read = self.for_each_band_entry(band, |key, ordinal| {
                keys[ordinal as usize * bands + band] = key;
                seen[ordinal as usize] += 1;
                Ok(())
            });
            if let Err(error) = read {
                salvaged.because(error); // the rest of this band
            }
        }
        let mut features = Vec::new();
        let (mut bottom, mut modular) = (Vec::new(), Vec::new());
        for ordinal in (0..self.documents() as u32).filter(|&ordinal| !deleted.contains(ordinal)) {
            let row = ordinal as usize;
            features.clear();
            features.extend(keys[row * bands..(row + 1) * bands].iter().map(|&key| u64::from(key) << 32));
            let read = (|| {
                let key = self.key(ordinal)?;
                let fingerprint = self.rank(ordinal)?.map(|rank| self.fingerprint(rank)).transpose()?;
                let signature = self.signature(ordinal)?;
                self.bottom(ordinal, &mut bottom)?;
                self.modular(ordinal, &mut modular)?;
                Ok((key, fingerprint, signature, self.attached(ordinal)?))
            })();
            // In some bands and not in others, or in none and with a fingerprint: a band was lost.
            let in_bands = usize::from(seen[row]);
            let whole = |fingerprint: Option<u64>| match (self.fingerprints.is_some(), bands) {
                (_, 0) => true,
                (true, _) => in_bands == if fingerprint.is_some() { bands } else { 0 },
                (false, _) => in_bands == bands || in_bands == 0 && salvaged.reasons.is_empty(),
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
                    let attached =
                        Attached { value: attached.value.unwrap_or_default(), stamp: attached.stamp };
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
        Ok(salvaged)
    }
}
