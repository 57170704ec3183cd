//! Tests the method of Broder, Burrows and Manasse, which the benchmark `families` measures. Its implementation must
//! compute exact minima, and compute as few tails as theory predicts.

use crate::support::lead_byte::{LeadBytes, Minima};
use crate::support::random::Random;

fn draw(random: &mut Random, n: usize) -> Vec<u64> {
    (0..n).map(|_| random.next()).collect()
}

#[test]
fn minima_equal_a_full_computation_for_every_element() {
    let mut random = Random(1);
    let mut minima = Minima::default();
    for (permutations, n) in [(1, 1), (8, 3), (84, 20), (84, 900), (9, 5000)] {
        let lead_bytes = LeadBytes::new(permutations);
        let mut set = draw(&mut random, n);
        set.push(set[0]); // a repeated element
        lead_bytes.start(&mut minima);
        lead_bytes.extend(&mut minima, &set, |_, _| ());
        let min = |j| set.iter().map(|&x| lead_bytes.plain(x, j)).min().expect("an element");
        let expected: Vec<u128> = (0..permutations).map(min).collect();
        assert_eq!(lead_bytes.values(&minima), expected, "{permutations} permutations of {n}");
    }
}

/// Until the lead byte of the minimum is 0, a tail is computed for each element whose lead byte is at most all earlier
/// ones. In a sequence of random bytes, a value k > 0 is such a byte 1/k times on average: it occurs before all lower
/// values with probability `1/(k + 1)`, and then again with the same probability. 0 ends the sequence. The expected
/// number of tails is therefore `1 + H_255 = 7.1204`, and its variance is the sum of `(k + 1) / k^2`. After that, a tail
/// is computed for one element in 256.
#[test]
fn number_of_computed_tails_agrees_with_theory() {
    const PERMUTATIONS: usize = 84;
    const STREAMS: usize = 40;
    const ELEMENTS: usize = 8192; // the lead byte of a minimum is not 0 with probability (255/256)^8192 = 10^-14
    let lead_bytes = LeadBytes::new(PERMUTATIONS);
    let mut random = Random(2);
    let mut minima = Minima::default();
    let (mut tails, mut squares, mut later, mut later_elements) = (0.0, 0.0, 0.0, 0.0);
    for _ in 0..STREAMS {
        let stream = draw(&mut random, ELEMENTS);
        let mut computed = vec![Vec::new(); PERMUTATIONS.next_multiple_of(8)];
        lead_bytes.start(&mut minima);
        lead_bytes.extend(&mut minima, &stream, |permutation, place| computed[permutation].push(place));
        for (j, places) in computed.iter().enumerate().take(PERMUTATIONS) {
            let is_zero = |&place: &usize| lead_bytes.plain(stream[place], j) >> 64 == 0;
            let until = places.iter().position(is_zero).expect("a lead byte of 0") + 1;
            tails += until as f64;
            squares += (until * until) as f64;
            later += (places.len() - until) as f64;
            later_elements += (ELEMENTS - 1 - places[until - 1]) as f64;
        }
    }
    let n = (PERMUTATIONS * STREAMS) as f64;
    let theory: f64 = 1.0 + (1..256).map(|k| 1.0 / f64::from(k)).sum::<f64>();
    let variance: f64 = (1..256).map(|k| f64::from(k + 1) / f64::from(k * k)).sum();
    assert!((theory - 7.1204).abs() < 1e-4);
    let (mean, noise) = (tails / n, 3.0 * (variance / n).sqrt());
    let found = squares / n - mean * mean;
    println!(
        "{mean:.4} tails, theory {theory:.4}, noise {noise:.4}; variance {found:.3}, theory {variance:.3}"
    );
    assert!((mean - theory).abs() <= noise, "{mean} tails, theory {theory}, noise {noise}");
    assert!((found / variance - 1.0).abs() < 0.15, "variance {found}, theory {variance}");
    let (share, p) = (later / later_elements, 1.0 / 256.0);
    let noise = 3.0 * (p * (1.0 - p) / later_elements).sqrt();
    println!("{share:.6} of the elements afterwards, theory {p:.6}, noise {noise:.6}");
    assert!((share - p).abs() <= noise, "{share} of the elements afterwards");
}
