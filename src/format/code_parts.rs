//! Parts of codes: sections that find the codes near a query without a comparison of all.
//!
//! The bits of a code are dealt to m parts: part i (from 0) has the bits i, i + m, i + 2m, ..., where bit 0 is the highest.
//! So neighbouring bits, which often agree in hashes of images, are in different parts. The key of a code in a part is the
//! number that these bits form. The section of a part is encoded as a [band](super::bands): the ordinals of all documents,
//! sorted by key.
//!
//! A query of radius r distributes r + 1 *levels* to the parts. Codes within r bits differ from the query, in at least one
//! part, in fewer bits than the part has levels: otherwise they would differ in r + 1 bits (the general pigeonhole
//! principle). So the query reads, in each part, the entries whose keys are that near, and compares the whole codes of
//! these documents. This is exact for any radius and any distribution of levels.

use super::bands::{Band, KEY_BITS};

/// How the bits of a code are dealt to parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    bits: u32,
    /// The number of parts.
    pub parts: u32,
}

impl Cut {
    /// Returns the cut of codes of `bits` bits into `parts` parts; `None` if a key had no bit or more than 32.
    #[must_use]
    pub fn new(bits: u16, parts: usize) -> Option<Self> {
        let (bits, parts) = (u32::from(bits), u32::try_from(parts).ok()?);
        (1..=bits).contains(&parts).then_some(())?;
        (bits.div_ceil(parts) <= KEY_BITS).then_some(Self { bits, parts })
    }

    /// Returns the number of bits of a key of part `part`, from 0.
    #[must_use]
    pub fn key_bits(self, part: u32) -> u32 {
        (self.bits - part).div_ceil(self.parts)
    }

    /// Returns the section layout of a part of `documents` codes.
    #[must_use]
    pub fn layout(self, part: u32, documents: u64) -> Band {
        Band::of_part(documents, self.key_bits(part))
    }

    /// Returns the bits of part `part`.
    #[must_use]
    pub fn bits_of(self, part: u32) -> PartBits {
        let all = (part..self.bits).step_by(self.parts as usize);
        PartBits { shifts: all.map(|bit| ((bit / 64) as u8, (63 - bit % 64) as u8)).collect() }
    }

    /// Returns the number of levels of each part for a radius. Their sum is the radius plus 1. A level is given to the part
    /// in which it adds the fewest documents, if bits are random.
    #[must_use]
    pub fn levels(self, within: u32) -> Vec<u32> {
        let added = |part: u32, level: u32| binomial(self.key_bits(part), level) / power(self.key_bits(part));
        let mut levels = vec![0; self.parts as usize];
        for _ in 0..=within {
            let cost = |part: &usize| added(*part as u32, levels[*part]);
            let least = (0..levels.len()).min_by(|a, b| cost(a).total_cmp(&cost(b)));
            levels[least.unwrap_or(0)] += 1;
        }
        levels
    }
}

/// The bits of a code that form the key of a part.
#[derive(Clone, Debug)]
pub struct PartBits {
    /// For each bit, from the highest of the key on: the word of the code, and the distance of the bit from its lowest bit.
    shifts: Vec<(u8, u8)>,
}

impl PartBits {
    /// Returns the key of a code with these words, the highest first. It is in the upper bits, as in a [band](super::bands).
    #[must_use]
    #[inline(always)]
    pub fn key(&self, words: &[u64]) -> u32 {
        let bit =
            |&(word, shift): &(u8, u8)| words.get(usize::from(word)).map_or(0, |word| word >> shift & 1);
        let key = self.shifts.iter().fold(0, |key, at| key << 1 | bit(at));
        (key << (KEY_BITS as usize - self.shifts.len())) as u32
    }
}

/// Calls `each` with each number of `bits` bits that has fewer than `levels` ones, and with the number of its ones, until
/// it returns an error.
///
/// # Errors
/// The error of `each`.
pub fn for_each_flip<E>(
    bits: u32,
    levels: u32,
    mut each: impl FnMut(u32, u32) -> Result<(), E>,
) -> Result<(), E> {
    for ones in 0..levels.min(bits + 1) {
        let mut flip: u64 = (1 << ones) - 1;
        while flip < 1 << bits {
            each(flip as u32, ones)?;
            if flip == 0 {
                break;
            }
            // The next larger number with as many bits.
            let lowest = flip & flip.wrapping_neg();
            let carried = flip + lowest;
            flip = carried | (((flip ^ carried) / lowest) >> 2);
        }
    }
    Ok(())
}

pub(crate) fn power(bits: u32) -> f64 {
    (1_u64 << bits) as f64
}

pub(crate) fn binomial(n: u32, k: u32) -> f64 {
    (0..k).fold(1.0, |product, i| product * f64::from(n.saturating_sub(i)) / f64::from(i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    #[test]
    fn keys_of_all_parts_have_each_bit_of_a_code_once() {
        for (bits, parts) in [(64, 2), (64, 3), (128, 5), (256, 8), (256, 11), (512, 23)] {
            let cut = Cut::new(bits, parts).unwrap();
            let all = 0..parts as u32;
            assert_eq!(all.clone().map(|part| cut.key_bits(part)).sum::<u32>(), u32::from(bits));
            for bit in 0..usize::from(bits) {
                let mut words = vec![0; usize::from(bits) / 64];
                words[bit / 64] = 1 << (63 - bit % 64);
                let keys: Vec<u32> = all.clone().map(|part| cut.bits_of(part).key(&words)).collect();
                let place = bit / parts;
                assert_eq!(keys[bit % parts], 1 << (31 - place), "{bits} {parts} {bit}");
                assert_eq!(keys.iter().filter(|&&key| key > 0).count(), 1);
            }
        }
        assert_eq!([0, 1, 7, 257].map(|parts| Cut::new(256, parts)), [None; 4]);
    }

    #[test]
    fn levels_sum_to_the_radius_plus_one() {
        for (bits, parts) in [(64, 2), (128, 5), (256, 11), (512, 23)] {
            let cut = Cut::new(bits, parts).unwrap();
            for within in [0, 1, 5, 31, u32::from(bits)] {
                assert_eq!(cut.levels(within).iter().sum::<u32>(), within + 1);
            }
        }
        // The example of the specification.
        assert_eq!(Cut::new(256, 11).unwrap().levels(31), [3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 2]);
    }

    #[test]
    fn flips_are_all_numbers_of_few_bits() {
        for (bits, levels) in [(0, 3), (1, 1), (5, 0), (5, 3), (5, 9), (12, 4), (32, 2)] {
            let mut found = Vec::new();
            for_each_flip(bits, levels, |flip, ones| {
                assert_eq!(flip.count_ones(), ones);
                found.push(u64::from(flip));
                Ok::<_, Infallible>(())
            })
            .unwrap();
            let count: f64 = (0..levels).map(|ones| binomial(bits, ones)).sum();
            found.sort_unstable();
            found.dedup();
            assert!((found.len() as f64 - count).abs() < 0.5 && found.iter().all(|&flip| flip < 1 << bits));
        }
    }
}
