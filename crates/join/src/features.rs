//! Converts the features that documents share to sets of elements, for [`cover_measured`](crate::cover_measured).

use std::path::Path;

use crate::candidates::{IndexSide, read_bits};
use crate::runs::Sorter;
use crate::sets::ShingleSets;
use twindex::error::Result;
use twindex::store::Snapshot;
use twindex::store::snapshot::Place;
use twindex::sys::{Column, MemoryBudget};

/// Returns one set for each of the numbers 0 to `count` - 1. Its elements are the features, truncated to their first `bits`
/// bits, that the documents of the number share with documents of other numbers. Each element is determined by a band and a
/// key. `number` assigns numbers to documents as for [`candidates`](crate::candidates()). Two numbers share an element if
/// and only if they are candidates.
///
/// Memory: `memory` bytes, and 36 bytes per number; data beyond the budget is written to unnamed files in `dir`. Time:
/// reads each band once, and sorts the shared features.
///
/// # Errors
/// [`Error::Invalid`](twindex::Error::Invalid) if `bits` exceeds the stored bits;
/// [`Error::Corrupt`](twindex::Error::Corrupt), [`Error::Io`](twindex::Error::Io) from a scratch file, or the error of
/// `number`.
pub fn shared_features(
    snapshot: &Snapshot,
    bits: u32,
    count: usize,
    (dir, memory): (&Path, usize),
    number: impl FnMut(Place<'_>) -> Result<Option<u32>>,
) -> Result<ShingleSets> {
    let budget = MemoryBudget::new(dir, memory / 4);
    let bands = match snapshot.params().minhash {
        Some(minhash) => {
            minhash.check_feature_bits(bits)?;
            usize::from(minhash.bands)
        }
        None => 0,
    };
    let sides = [IndexSide { snapshot, numbers: crate::numbers(snapshot, &budget, number)? }];
    // Records of number, band and key, from the upper to the lower bits.
    let mut sorter: Sorter<u128> = Sorter::new(dir, memory / 4);
    let mut entries = Column::new(&budget);
    for band in 0..bands {
        read_bits(&sides, band, bits, &mut entries)?;
        for bucket in entries.chunk_by(|a, b| a[0] == b[0]).filter(|bucket| bucket.len() > 1) {
            for &[key, number] in bucket {
                let element = (band as u64) << 32 | u64::from(key);
                sorter.push(u128::from(number) << 64 | u128::from(element))?;
            }
        }
    }
    drop((entries, sides));
    let mut sets = ShingleSets::new(dir, memory / 2);
    let mut set = Vec::new();
    sorter.finish()?.for_each(|one| {
        let number = (one >> 64) as usize;
        while sets.len() < number {
            sets.push(&set)?;
            set.clear();
        }
        set.push(one as u64);
        Ok::<_, twindex::Error>(())
    })?;
    while sets.len() < count {
        sets.push(&set)?;
        set.clear();
    }
    Ok(sets)
}
