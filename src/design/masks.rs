//! Enumerates all differences of at most a given number of bits.

/// Returns all numbers of `bits` bits (0 to 64) in which at most `radius` bits are set. They are ordered by the number
/// of set bits, then ascending.
#[inline(always)]
#[must_use]
pub fn masks(bits: u32, radius: u32) -> Masks {
    Masks { bits, radius: radius.min(bits), ones: 0, next: Some(0) }
}

/// Returns the number of values that [`masks`] yields; saturates at `u64::MAX`.
#[must_use]
pub fn count(bits: u32, radius: u32) -> u64 {
    (0..=radius.min(bits)).map(|ones| choices(bits.into(), ones.into())).fold(0, u64::saturating_add)
}

/// Returns the binomial coefficient C(of, chosen); saturates at `u64::MAX`.
#[must_use]
pub fn choices(of: u64, chosen: u64) -> u64 {
    let step = |count: u128, i: u64| count * u128::from(of - i) / u128::from(i + 1);
    let count = if chosen > of { 0 } else { (0..chosen.min(of - chosen)).fold(1, step) };
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// The iterator returned by [`masks`].
#[derive(Clone, Debug)]
pub struct Masks {
    bits: u32,
    radius: u32,
    ones: u32,
    next: Option<u64>,
}

impl Iterator for Masks {
    type Item = u64;

    #[inline(always)]
    fn next(&mut self) -> Option<u64> {
        let mask = self.next?;
        // Gosper's hack computes the next larger value with the same number of set bits. The top bit of the lowest run
        // of ones moves up by one, and the other bits of the run move down to bit 0.
        let low = mask & mask.wrapping_neg();
        let above = if mask == 0 { None } else { mask.checked_add(low) };
        let within = |value: u64| self.bits == 64 || value < 1 << self.bits;
        self.next = above.map(|above| above | (((mask ^ above) / low) >> 2)).filter(|&value| within(value));
        if self.next.is_none() && self.ones < self.radius {
            self.ones += 1;
            self.next = Some(u64::MAX >> (64 - self.ones));
        }
        Some(mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_yield_each_value_within_radius_once() {
        for bits in 0..=10 {
            for radius in 0..=4 {
                let mut expected: Vec<u64> =
                    (0..1_u64 << bits).filter(|value| value.count_ones() <= radius).collect();
                expected.sort_by_key(|value| (value.count_ones(), *value));
                assert_eq!(masks(bits, radius).collect::<Vec<_>>(), expected, "{bits} bits, radius {radius}");
                assert_eq!(count(bits, radius), expected.len() as u64);
            }
        }
        assert_eq!(masks(16, 2).count(), 137);
        assert_eq!(masks(64, 2).count(), 1 + 64 + 2016);
        assert_eq!(count(64, 3), 43_745);
        assert_eq!(masks(64, 64).take(3).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(count(64, 64), u64::MAX);
    }
}
