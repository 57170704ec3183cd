//! Checks the numbers in the documentation of the presets.

use super::Banding;
use crate::params::{FeatureScheme, Preset};

#[test]
fn every_preset_accepts_the_documented_fraction_of_pairs() {
    for (preset, resemblance, stated) in [
        (Preset::BRODER_84, 0.9, 0.415),
        (Preset::BRODER_200, 0.9, 0.449),
        (Preset::SMALL_8, 0.9, 0.411),
        (Preset::LSH_20X6, 0.8, 0.998),
        (Preset::LSH_20X6, 0.9, 1.0),
        (Preset::LSH_16X8, 0.9, 1.0),
        (Preset::LSH_16X8, 0.8, 0.947),
        (Preset::DATASKETCH, 0.9, 0.311),
        (Preset::TEXT_DEDUP, 0.9, 1.0),
        (Preset::TEXT_DEDUP, 0.7, 0.511),
        (Preset::DATATROVE, 0.9, 1.0),
        (Preset::DATATROVE, 0.8, 0.924),
        (Preset::NEMO_CURATOR, 0.9, 0.997),
        (Preset::NEMO_CURATOR, 0.8, 0.677),
    ] {
        let found = preset.scheme.fungible(resemblance);
        assert!((found - stated).abs() <= 5.0e-4, "{} at {resemblance}: {found}", preset.name);
    }
}

#[test]
fn default_preset_equals_bands_for_default_threshold() {
    assert_eq!(FeatureScheme::from(Banding::for_threshold(0.8)), Preset::LSH_20X6.scheme);
}

#[test]
fn groups_of_twelve_bring_small_8_closest_to_broder_84() {
    let wanted = Preset::BRODER_84.scheme.fungible(0.9);
    let off =
        |group_size| (FeatureScheme { group_size, ..Preset::SMALL_8.scheme }.fungible(0.9) - wanted).abs();
    for group_size in (1..40).filter(|&group_size| group_size != 12) {
        assert!(off(12) < off(group_size), "{group_size}: {} and {}", off(12), off(group_size));
    }
}

#[test]
fn common_bytes_thresholds_match_documented_accidental_matches() {
    let three = Preset::SMALL_8.scheme;
    let seven = FeatureScheme { threshold: 7, ..three };
    assert_eq!([49_999, 50_000].map(Preset::common_bytes), [three.threshold, seven.threshold]);
    // Returns the expected number of accidental matches per document.
    let partners =
        |scheme: FeatureScheme, documents: u64| scheme.accidental_pairs(documents) * 2.0 / documents as f64;
    assert!((partners(three, 50_000) - 1.0 / 6.0).abs() < 0.005);
    assert!((partners(three, 10_000) - 1.0 / 30.0).abs() < 0.001);
    assert!((partners(three, 304_000) - 1.0).abs() < 0.001);
    assert!((seven.accidental_pairs(134_447_694) - 1.0).abs() < 1e-6);
    assert!((FeatureScheme { group_size: 8, ..seven }.fungible(0.9) - 0.014).abs() < 5e-4);
}

/// Computes the bands by the rule of datasketch: they minimize the sum of the area under the S-curve left of the
/// threshold and the area above the S-curve right of the threshold.
#[test]
fn datasketch_and_text_dedup_bands_minimize_their_error_area() {
    for (threshold, minima, expected) in
        [(0.9, 128, Preset::DATASKETCH.scheme), (0.7, 256, Preset::TEXT_DEDUP.scheme)]
    {
        let area = |banding: Banding| -> f64 {
            // Integrate by Simpson's rule on each side of the threshold. With 200 steps, the error is far smaller than
            // the differences between bandings.
            let side = |from: f64, to: f64, f: &dyn Fn(f64) -> f64| {
                let h = (to - from) / 200.0;
                let weight = |i: i32| match i {
                    0 | 200 => 1.0,
                    _ if i % 2 == 1 => 4.0,
                    _ => 2.0,
                };
                (0..=200).map(|i| weight(i) * f(from + f64::from(i) * h)).sum::<f64>() * h / 3.0
            };
            side(0.0, threshold, &|j| banding.recall(j)) + side(threshold, 1.0, &|j| 1.0 - banding.recall(j))
        };
        let best = (1..=minima)
            .flat_map(|bands| (1..=minima / bands).map(move |rows| Banding { bands, rows }))
            .min_by(|&a, &b| area(a).total_cmp(&area(b)));
        assert_eq!(best.map(FeatureScheme::from), Some(expected));
    }
}
