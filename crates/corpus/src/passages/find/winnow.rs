//! Winnowing: selects a subset of fingerprints such that equal runs in two texts select equal fingerprints.

/// Selects one fingerprint in each window of `w` consecutive fingerprints: the minimum, or the rightmost one of several
/// equal minima.
///
/// - Equal windows select equal fingerprints. If two texts share a run of `t = w + k - 1` tokens, they therefore share a
///   selected fingerprint of `k` tokens.
/// - Shared runs shorter than `k` tokens are not found.
/// - In a random text, the *density* is 2 / (w + 1): the fraction of fingerprints that are selected.
///
/// *Robust* winnowing, which is not used here, keeps the selection of the previous window if it is still minimal. It
/// selects fewer fingerprints in repetitive texts. But the selection then depends on the preceding text, so equal
/// windows may select different fingerprints.
///
/// ```
/// use twindex_corpus::passages::Winnowing;
///
/// let mut selected = Vec::new();
/// Winnowing::new(3).for_each_window(&[7, 2, 5, 2, 9, 8], |_, at| selected.push(at));
/// assert_eq!(selected, [1, 3, 3, 3]);
/// ```
#[derive(Clone, Debug)]
pub struct Winnowing {
    width: usize,
    /// Positions of fingerprints that may be the minimum of this or a later window, ascending in position and in value.
    waiting: Vec<u32>,
    /// Number of leading entries of `waiting` whose positions are before the current window.
    gone: usize,
}

impl Winnowing {
    /// Creates a selector with windows of `width` fingerprints; a width of 0 means 1.
    #[must_use]
    pub fn new(width: usize) -> Self {
        Self { width: width.max(1), waiting: Vec::new(), gone: 0 }
    }

    /// Passes each window to `each`: its first position, and the position of the fingerprint that it selects. Passes
    /// nothing if there are fewer fingerprints than a window has. Positions are counted from 0 and fit in 32 bits.
    ///
    /// Takes linear time for any input. Memory: up to 8 bytes per fingerprint of a window, reused by the next call.
    #[inline]
    pub fn for_each_window(&mut self, fingerprints: &[u64], mut each: impl FnMut(usize, usize)) {
        let Self { width, waiting, gone } = self;
        waiting.clear();
        *gone = 0;
        for (at, &new) in fingerprints.iter().enumerate() {
            // An earlier fingerprint that is not smaller than the new one can no longer be the rightmost minimum.
            while waiting.len() > *gone
                && waiting.last().is_some_and(|&last| fingerprints[last as usize] >= new)
            {
                waiting.pop();
            }
            if *gone == waiting.len() {
                waiting.clear();
                *gone = 0;
            }
            waiting.push(at as u32);
            let Some(window) = (at + 1).checked_sub(*width) else { continue };
            if (waiting[*gone] as usize) < window {
                *gone += 1;
                // Limits `waiting` to twice the length of a window.
                if *gone > *width {
                    waiting.drain(..*gone);
                    *gone = 0;
                }
            }
            each(window, waiting[*gone] as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn selected(width: usize, fingerprints: &[u64]) -> Vec<usize> {
        let mut all = Vec::new();
        Winnowing::new(width).for_each_window(fingerprints, |window, at| {
            assert_eq!(window, all.len());
            all.push(at);
        });
        all
    }

    proptest! {
        #[test]
        fn each_window_selects_its_rightmost_minimum(
            fingerprints in proptest::collection::vec(0..5_u64, 0..200),
            width in 1..12_usize,
        ) {
            let expected: Vec<usize> = fingerprints.windows(width).enumerate().map(|(start, window)| {
                let min = window.iter().min().unwrap();
                start + window.iter().rposition(|one| one == min).unwrap()
            }).collect();
            prop_assert_eq!(selected(width, &fingerprints), expected);
        }
    }

    #[test]
    fn windows_select_random_fingerprints_at_the_expected_density() {
        let mut state = 1_u64;
        let fingerprints: Vec<u64> = std::iter::repeat_with(|| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            state ^ state >> 29
        })
        .take(300_000)
        .collect();
        for width in [1, 2, 7, 26, 100] {
            let mut places = selected(width, &fingerprints);
            places.dedup();
            let (density, expected) =
                (places.len() as f64 / fingerprints.len() as f64, 2.0 / (width as f64 + 1.0));
            assert!((density / expected - 1.0).abs() < 0.03, "{width}: {density} instead of {expected}");
        }
    }

    #[test]
    fn ascending_and_equal_fingerprints_take_linear_time_and_bounded_memory() {
        for fingerprints in [(0..1_000_000).collect::<Vec<u64>>(), vec![7; 1_000_000]] {
            let mut winnowing = Winnowing::new(100);
            let mut windows = 0;
            winnowing.for_each_window(&fingerprints, |_, _| windows += 1);
            assert_eq!(windows, 1_000_000 - 99);
            assert!(winnowing.waiting.capacity() <= 512);
        }
    }
}
