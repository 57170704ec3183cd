//! All of a segment, in the order of table 1.

use zerocopy::little_endian::{U16, U32};

use super::open::Segment;
use crate::error::Result;

impl Segment {
    /// Hands all distinct fingerprints to `each`, ascending, with their ranks.
    ///
    /// # Errors
    /// [`Error::Corrupt`](crate::Error::Corrupt), or what `each` returns.
    pub fn for_each_fingerprint(&self, mut each: impl FnMut(u32, u64) -> Result<()>) -> Result<()> {
        let Some(fingerprints) = &self.fingerprints else { return Ok(()) };
        let (section, layout) = (&fingerprints.table, &fingerprints.complete);
        let mut rows = 0..0;
        for prefix in 0..1_u32 << layout.directory.bits {
            rows = self.next_bucket(section, layout.directory, prefix as u16, rows.end)?;
            let middles: &[U32] = self.column(section, layout.middle(&rows))?;
            let lasts: &[U16] = self.column(section, layout.last(&rows))?;
            let firsts: &[U16] = self.column(section, layout.first(&rows))?;
            for (place, (middle, last)) in middles.iter().zip(lasts).enumerate() {
                let first = firsts.get(place).map_or(prefix as u16, |first| first.get());
                let fingerprint =
                    u64::from(first) << 48 | u64::from(middle.get()) << 16 | u64::from(last.get());
                each((rows.start + place as u64) as u32, fingerprint)?;
            }
        }
        Ok(())
    }
}
