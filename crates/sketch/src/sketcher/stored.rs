//! Encodes sketches as bytes that another process can decode.

use super::{Sketch, Sketcher};
use crate::error::{Error, Result};
use crate::{Code, pack};

/// Number of lists in an encoded sketch. The lengths of all five come before the first list.
const LISTS: usize = 5;

impl Sketch {
    /// Appends the encoded sketch, which [`Sketcher::restore`] decodes. The first `whole` minima are stored with all 32
    /// bits, and the others with the number of bits in the parameters. The decoded minima and the original minima are
    /// [packed](crate::pack) to the same bytes.
    ///
    /// ```
    /// use twindex_sketch::params::{Shingling, SketchParams};
    /// use twindex_sketch::{Sketch, Sketcher};
    ///
    /// let sketcher = Sketcher::new(SketchParams::new(Shingling::words(2, 0)).with_minhash(6, 14))?;
    /// let (sketch, mut bytes) = (sketcher.sketch("the quick brown fox jumps")?, Vec::new());
    /// sketch.store(12, &mut bytes);
    /// let mut again = Sketch::default();
    /// let rest = sketcher.restore(12, &bytes, &mut again)?;
    /// assert!(rest.is_empty());
    /// assert_eq!((again.features(), &again.signature()[..12]), (sketch.features(), &sketch.signature()[..12]));
    /// # Ok::<(), twindex_sketch::Error>(())
    /// ```
    pub fn store(&self, whole: usize, out: &mut Vec<u8>) {
        let code = self.code();
        out.push(code.map_or(0, |code| code.words().len() as u8));
        let words = code.as_ref().map_or(&[0][..], Code::words);
        out.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        let lengths: [usize; LISTS] = [
            self.signature().len(),
            self.features().len(),
            self.bottom().len(),
            self.modular().len(),
            self.set().len(),
        ];
        out.extend(lengths.iter().flat_map(|&length| (length as u32).to_le_bytes()));
        let (first, others) = self.signature().split_at(whole.min(self.signature().len()));
        out.extend(first.iter().flat_map(|minimum| minimum.to_le_bytes()));
        pack(others, bits_of(self), out);
        for list in [self.features(), self.bottom(), self.modular(), self.set()] {
            out.extend(list.iter().flat_map(|value| value.to_le_bytes()));
        }
    }
}

impl Sketcher {
    /// Decodes the encoded sketch at the beginning of `bytes` into `sketch`, and returns the bytes after the encoded
    /// sketch. [`Sketch::store`] must have encoded the sketch with the same `whole` and with the parameters of this
    /// sketcher.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `bytes` does not begin with a sketch of these parameters.
    pub fn restore<'b>(&self, whole: usize, bytes: &'b [u8], sketch: &mut Sketch) -> Result<&'b [u8]> {
        self.restored(whole, bytes, sketch)
            .ok_or_else(|| Error::Invalid("these are not the bytes of a sketch with these parameters".into()))
    }

    fn restored<'b>(&self, whole: usize, bytes: &'b [u8], sketch: &mut Sketch) -> Option<&'b [u8]> {
        let (&count, bytes) = bytes.split_first()?;
        let (code, mut bytes) = bytes.split_at_checked(8 * usize::from(count.max(1)))?;
        let words = code.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        let words: Vec<u64> = words.take(count.into()).collect();
        let mut lengths = [0; LISTS];
        for length in &mut lengths {
            let (first, rest) = bytes.split_first_chunk()?;
            (*length, bytes) = (u32::from_le_bytes(*first) as usize, rest);
        }
        let [minima, features, bottom, modular, set] = lengths;
        let params = self.params();
        let of_minhash = params.minhash.map_or([0; 2], |minhash| [minhash.minima(), minhash.bands.into()]);
        // After `Sketch::shorten`, a sketch has `whole` minima and no features.
        let bits = usize::from(params.simhash_bits);
        let fits = (words.is_empty() || params.simhash.is_some() && 64 * words.len() == bits)
            && ([0, of_minhash[0]].contains(&minima) || minima == whole && features == 0)
            && (features == 0 || features == of_minhash[1])
            && bottom <= params.bottom.into();
        if !fits {
            return None;
        }
        self.clear(sketch);
        sketch.code = Code::of_words(&words);
        let bits = bits_of(sketch);
        let Sketch { signature, features: of_bands, bottom: min, modular: of_modulus, set: of_set, .. } =
            sketch;
        let first = whole.min(minima);
        let (taken, rest) = bytes.split_at_checked(4 * first)?;
        signature.extend(taken.as_chunks().0.iter().map(|minimum| u32::from_le_bytes(*minimum)));
        let (taken, rest) = rest.split_at_checked(((minima - first) * usize::from(bits)).div_ceil(8))?;
        unpack(taken, bits, minima - first, signature);
        let mut rest = rest;
        let lists = [(features, of_bands), (bottom, min), (modular, of_modulus), (set, of_set)];
        for (length, list) in lists {
            let (taken, after) = rest.split_at_checked(length.checked_mul(8)?)?;
            list.extend(taken.as_chunks().0.iter().map(|value| u64::from_le_bytes(*value)));
            rest = after;
        }
        Some(rest)
    }
}

/// Returns the number of bits of each minimum that the parameters of the sketch store.
fn bits_of(sketch: &Sketch) -> u8 {
    let minhash = sketch.params.as_ref().and_then(|params| params.minhash);
    minhash.map_or(0, |minhash| minhash.signature_bits)
}

/// Decodes `count` minima of `bits` bits each from the format of [`pack`], and appends them to `minima`.
fn unpack(packed: &[u8], bits: u8, count: usize, minima: &mut Vec<u32>) {
    let bits = u32::from(bits);
    let kept = (1_u64 << bits) - 1;
    let (mut waiting, mut filled, mut bytes) = (0_u64, 0, packed.iter());
    for _ in 0..count {
        while filled < bits {
            waiting |= u64::from(bytes.next().copied().unwrap_or(0)) << filled;
            filled += 8;
        }
        minima.push((waiting & kept) as u32);
        waiting >>= bits;
        filled -= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::{MinhashParams, Shingling, SimhashWeights, SketchParams};

    #[test]
    fn restored_sketch_equals_the_sketch_except_unstored_bits() {
        for (bits, whole) in [(8, 12), (1, 3), (32, 0), (0, 12), (4, 1000), (16, 5)] {
            let mut params = SketchParams::new(Shingling::words(3, 0))
                .with_simhash(SimhashWeights::Occurrences)
                .with_minhash(6, 14);
            params.minhash = Some(MinhashParams { signature_bits: bits, ..MinhashParams::new(6, 14) });
            (params.bottom, params.modulus, params.sets) = (9, 3, true);
            let sketcher = Sketcher::new(&params).unwrap();
            let (mut bytes, mut again) = (Vec::new(), Sketch::default());
            let texts =
                ["one two three four five six seven", "", "of a b c d e f g h i j k l m n o p q r s t"];
            let all = texts.map(|text| sketcher.sketch(text).unwrap());
            for sketch in &all {
                sketch.store(whole, &mut bytes);
            }
            let mut rest = &bytes[..];
            for sketch in &all {
                rest = sketcher.restore(whole, rest, &mut again).unwrap();
                let packed = |sketch: &Sketch| {
                    let mut packed = Vec::new();
                    pack(sketch.signature(), bits, &mut packed);
                    packed
                };
                assert_eq!(packed(&again), packed(sketch), "{bits}");
                let first = whole.min(sketch.signature().len());
                assert_eq!(again.signature()[..first], sketch.signature()[..first]);
                assert_eq!(
                    (again.fingerprint(), again.is_empty()),
                    (sketch.fingerprint(), sketch.is_empty())
                );
                assert_eq!((again.features(), again.bottom()), (sketch.features(), sketch.bottom()));
                assert_eq!((again.modular(), again.set()), (sketch.modular(), sketch.set()));
                assert_eq!(again.params_digest(), sketch.params_digest());
            }
            assert!(rest.is_empty());
            for end in [0, 5, 20, bytes.len() - 1] {
                let mut rest = Ok(&bytes[..end]);
                for _ in &all {
                    rest = rest.and_then(|rest| sketcher.restore(whole, rest, &mut again));
                }
                assert!(rest.unwrap_err().to_string().contains("not the bytes of a sketch"));
            }
            let mut short = all[2].clone();
            short.shorten(whole);
            bytes.clear();
            short.store(whole, &mut bytes);
            assert_eq!(sketcher.restore(whole, &bytes, &mut again).unwrap(), b"");
            assert_eq!((again.signature(), again.features()), (short.signature(), &[][..]));
            assert_eq!(again.is_empty(), again.fingerprint().is_none() && whole == 0);
            let mut bytes = Vec::new();
            all[2].store(whole, &mut bytes);
            let mut wrong = bytes.clone();
            wrong[13] = 7; // a number of features that differs from the number of bands
            assert!(sketcher.restore(whole, &wrong, &mut again).is_err());
        }
    }
}
