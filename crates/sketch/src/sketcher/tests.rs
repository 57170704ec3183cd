//! Tests sketches of texts, sets and vectors, and the checks of parameters.

use super::*;
use crate::Fingerprint;
use crate::hash::mix;
use crate::params::{Family, MinhashParams, Shingling};

fn both() -> SketchParams {
    SketchParams::new(Shingling::words(3, 0)).with_simhash(SimhashWeights::Occurrences).with_minhash(6, 14)
}

#[test]
fn sketch_has_the_parts_that_the_parameters_request() {
    let text = "one two three four five";
    let sketch = Sketcher::new(both()).unwrap().sketch(text).unwrap();
    assert!(sketch.fingerprint().is_some());
    assert_eq!((sketch.signature().len(), sketch.features().len()), (84, 6));
    assert_eq!(sketch.params_digest(), both().digest());

    let simhash_only = SketchParams::new(Shingling::words(3, 0)).with_simhash(SimhashWeights::Occurrences);
    let sketch = Sketcher::new(&simhash_only).unwrap().sketch(text).unwrap();
    assert!(sketch.fingerprint().is_some() && !sketch.is_empty());
    assert_eq!((sketch.signature().len(), sketch.features().len()), (0, 0));

    let features_only = SketchParams {
        minhash: Some(MinhashParams { signature_bits: 0, ..MinhashParams::new(6, 14) }),
        ..SketchParams::new(Shingling::words(3, 0))
    };
    let sketch = Sketcher::new(&features_only).unwrap().sketch(text).unwrap();
    assert!(sketch.fingerprint().is_none() && !sketch.is_empty());
    assert_eq!((sketch.signature().len(), sketch.features().len()), (0, 6));
}

#[test]
fn document_without_tokens_has_an_empty_sketch() {
    for text in ["", "--- ***", "😀"] {
        let sketch = Sketcher::new(both()).unwrap().sketch(text).unwrap();
        assert!(sketch.is_empty() && sketch.signature().is_empty(), "{text:?}");
        assert_eq!(sketch.params_digest(), both().digest());
    }
}

#[test]
fn invalid_utf8_is_refused_with_its_offset() {
    let sketcher = Sketcher::new(both()).unwrap();
    let text = "Grammatik für die Küche";
    assert_eq!(sketcher.sketch_bytes(text.as_bytes()).unwrap(), sketcher.sketch(text).unwrap());
    for (bytes, said) in [
        (&b"ab\xff"[..], "byte 0xff at offset 2"),
        (b"\xe4\xb8", "byte 0xe4 at offset 0"),  // a truncated character
        (b"a\xc0\x80", "byte 0xc0 at offset 1"), // an overlong encoding of zero
        (b"\xed\xa0\x80", "byte 0xed at offset 0"), // a surrogate
    ] {
        let error = sketcher.sketch_bytes(bytes).unwrap_err().to_string();
        assert_eq!(error, format!("not UTF-8: {said}"));
    }
}

#[test]
fn sketch_does_not_depend_on_the_previous_document() {
    let sketcher = Sketcher::new(both()).unwrap();
    let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
    for text in ["a b c d e f g h", "", "a", "Ä ö ü ß x y", "a b c d e f g h"] {
        sketcher.sketch_into(text, &mut scratch, &mut sketch).unwrap();
        assert_eq!(sketch, sketcher.sketch(text).unwrap(), "{text:?}");
    }
}

#[test]
fn simhash_weights_change_only_the_fingerprint() {
    let distinct =
        SketchParams::new(Shingling::words(1, 0)).with_simhash(SimhashWeights::Distinct).with_minhash(6, 14);
    let occurrences = SketchParams::new(Shingling::words(1, 0))
        .with_simhash(SimhashWeights::Occurrences)
        .with_minhash(6, 14);
    let (text, once) = ("x y z x x x y x", "z y x");
    let of = |params: &SketchParams, text| Sketcher::new(params).unwrap().sketch(text).unwrap();
    assert_eq!(of(&distinct, text), of(&distinct, once));
    assert_ne!(of(&occurrences, text).fingerprint(), of(&occurrences, once).fingerprint());
    assert_eq!(of(&occurrences, text).signature(), of(&distinct, text).signature());
    // x has three of the five votes, so it determines every bit.
    assert_eq!(of(&occurrences, "x x x y z").fingerprint(), of(&occurrences, "x").fingerprint());
}

fn for_features(change: impl FnOnce(SketchParams) -> SketchParams) -> Sketcher {
    let shingling = Shingling::words(1, 7).with_tokens(Tokens::Features).unwrap();
    let builder = change(SketchParams::new(shingling));
    Sketcher::new(builder).unwrap()
}

fn of_features(sketcher: &Sketcher, features: &[u64]) -> Sketch {
    // `sketch_features` must overwrite the sketch of another document.
    let mut sketch = of_weighted(sketcher, &[(5, 5)]).unwrap_or_default();
    sketcher.sketch_features(features, &mut Scratch::default(), &mut sketch).unwrap();
    sketch
}

fn of_weighted(sketcher: &Sketcher, features: &[(u64, i64)]) -> Result<Sketch> {
    let mut sketch = Sketch::default();
    sketcher.sketch_weighted(features, &mut Scratch::default(), &mut sketch)?;
    Ok(sketch)
}

#[test]
fn feature_name_is_hashed_as_a_shingle_of_one_token() {
    let sketcher = for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences));
    let words =
        Sketcher::new(SketchParams::new(Shingling::words(1, 7)).with_simhash(SimhashWeights::Occurrences))
            .unwrap();
    for name in ["rose", "a", "antidisestablishmentarianism"] {
        let mut shingles = Vec::new();
        words.shingler().occurrences(name, &mut Buffers::default(), &mut shingles);
        assert_eq!(shingles, [sketcher.feature(name.as_bytes())], "{name}");
    }
    assert_eq!(sketcher.feature_number(0x6162), sketcher.feature(b"ba\0\0\0\0\0\0"));
    assert_ne!(sketcher.feature(b""), sketcher.feature(b"\0"));
}

#[test]
fn set_of_features_has_the_sketch_of_the_same_shingles() {
    let features =
        for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences).with_minhash(6, 14));
    let words = SketchParams::new(Shingling::words(1, 7))
        .with_simhash(SimhashWeights::Occurrences)
        .with_minhash(6, 14);
    let of_text = Sketcher::new(&words).unwrap().sketch("a rose is a rose").unwrap();
    let hashes: Vec<u64> = ["a", "rose", "is", "a", "rose"].map(|w| features.feature(w.as_bytes())).into();
    let of_set = of_features(&features, &hashes);
    assert_eq!(of_set.fingerprint(), of_text.fingerprint());
    assert_eq!(of_set.signature(), of_text.signature());
    assert_eq!(of_set.features(), of_text.features());
    let vector = [(hashes[0], 2), (hashes[1], 2), (hashes[2], 1)];
    assert_eq!(of_weighted(&features, &vector).unwrap(), of_set);
    assert!(of_features(&features, &[]).is_empty());

    let distinct = for_features(|builder| builder.with_simhash(SimhashWeights::Distinct));
    assert_eq!(of_features(&distinct, &hashes), of_features(&distinct, &hashes[..3]));
    assert!(of_weighted(&distinct, &vector).unwrap_err().to_string().contains("simhash=distinct"));
}

#[test]
fn only_features_of_positive_weight_are_in_sets() {
    let sketcher =
        for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences).with_minhash(6, 14));
    let sketch = of_weighted(&sketcher, &[(1, 3), (2, 0), (4, -2)]).unwrap();
    assert_eq!(sketch.fingerprint(), Some(weighted([(1, 3), (4, -2)])));
    assert_eq!(sketch.signature(), of_features(&sketcher, &[1]).signature());
    for nothing in [&[][..], &[(1, 0)], &[(1, -1)]] {
        assert!(of_weighted(&sketcher, nothing).unwrap().is_empty(), "{nothing:?}");
    }
    let simhash_only = for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences));
    assert_eq!(of_weighted(&simhash_only, &[(1, -1)]).unwrap().fingerprint(), Some(Fingerprint(!1)));
    assert!(of_weighted(&simhash_only, &[(1, 0)]).unwrap().is_empty());
}

#[test]
fn texts_and_features_require_different_parameters() {
    let texts = Sketcher::new(both()).unwrap();
    let error = texts.sketch_features(&[1], &mut Scratch::default(), &mut Sketch::default()).unwrap_err();
    assert!(error.to_string().contains("tokens=words"), "{error}");
    assert!(of_weighted(&texts, &[(1, 1)]).is_err());
    let error = for_features(|builder| builder.with_simhash(SimhashWeights::Occurrences))
        .sketch("a text")
        .unwrap_err();
    assert!(error.to_string().contains("tokens=features"), "{error}");
}

#[test]
fn weights_of_repeated_features_are_added_first() {
    let mut shingling = Shingling::words(1, 0);
    shingling.tokens = Tokens::Features;
    let with_sets =
        SketchParams::new(shingling.clone()).with_simhash(SimhashWeights::Occurrences).with_minhash(6, 14);
    let without = SketchParams::new(shingling).with_simhash(SimhashWeights::Occurrences);
    let of = |params: &SketchParams, features: &[(u64, i64)]| {
        let mut sketch = Sketch::default();
        let sketcher = Sketcher::new(params).unwrap();
        sketcher.sketch_weighted(features, &mut Scratch::default(), &mut sketch).unwrap();
        sketch
    };
    let (a, b) = (mix(1), mix(2));
    for params in [&with_sets, &without] {
        assert!(of(params, &[(a, 3), (b, 1), (a, -3), (b, -1)]).is_empty());
        assert!(of(params, &[(a, i64::MIN), (a, i64::MIN), (a, i64::MAX), (a, i64::MAX), (a, 2)]).is_empty());
        assert_eq!(of(params, &[(b, 2), (a, 3), (b, 2)]), of(params, &[(a, 3), (b, 4)]));
    }
    assert_eq!(of(&with_sets, &[(a, 3), (a, -5), (b, 1)]).signature(), of(&with_sets, &[(b, 1)]).signature());
    assert!(of(&with_sets, &[(a, -1)]).is_empty() && !of(&without, &[(a, -1)]).is_empty());
}

#[test]
fn sketchers_can_be_shared_by_threads() {
    fn shared<T: Clone + Send + Sync>() {}
    shared::<Sketcher>();
    shared::<Sketch>();
}

fn weighted_params(family: Family, weights: MinhashWeights) -> SketchParams {
    let mut params = SketchParams::new(Shingling::words(1, 7)).with_minhash(50, 4);
    params.minhash = params.minhash.map(|minhash| MinhashParams { family, weights, ..minhash });
    params
}

const TEXTS: [&str; 2] = ["a rose is a rose is a rose", "a rose is no tulip and no tulip a rose a rose"];

#[test]
fn minima_weighted_by_frequencies_estimate_weighted_resemblance() {
    // In both texts, `a` and `rose` occur three times. `is` occurs twice in one text and once in the other. Only one
    // text has `no` and `tulip`, twice each, and `and`, once.
    let exact = f64::from(3 + 3 + 1) / f64::from(3 + 3 + 2 + 2 + 2 + 1);
    for &family in Family::ALL {
        let mut params = weighted_params(family, MinhashWeights::Frequencies);
        (params.sets, params.simhash) = (true, Some(SimhashWeights::Distinct));
        let sketcher = Sketcher::new(params).unwrap();
        let [a, b] = TEXTS.map(|text| sketcher.sketch(text).unwrap());
        let estimate = crate::Resemblance::of_signatures(a.signature(), b.signature());
        let error = estimate.standard_error();
        assert!((estimate.value() - exact).abs() < 4.0 * error, "{family}: {estimate:?}");
        assert_eq!(crate::jaccard(a.set(), b.set()), (7, 13), "{family}");
        // The weights of minima leave the fingerprint unchanged, in which each distinct shingle has one vote.
        let plain = SketchParams::new(Shingling::words(1, 7)).with_simhash(SimhashWeights::Distinct);
        let plain = Sketcher::new(plain).unwrap().sketch(TEXTS[1]).unwrap();
        assert_eq!(b.fingerprint(), plain.fingerprint());
    }
}

#[test]
fn dart_minima_use_frequencies_table_weights_and_vector_weights() {
    let shingling = Shingling::words(1, 7).with_tokens(Tokens::Features).unwrap();
    let (one, two) = (0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3210);
    let signature = |weights: &[(u64, u64)]| {
        let mut signature = Vec::new();
        WeightedMinHasher::new(200).unwrap().signature(weights, &mut signature).unwrap();
        signature
    };
    let mut params = weighted_params(Family::Darts, MinhashWeights::Frequencies);
    params.shingling = shingling.clone();
    let sketcher = Sketcher::new(&params).unwrap();
    let counted = signature(&[(one, 3 << 16), (two, 1 << 16)]);
    assert_eq!(of_features(&sketcher, &[one, two, one, one]).signature(), counted);
    let vector = [(two, 40_000), (one, 70_000), (two, 25_536), (one, -5), (5, -1), (one, 126_613)];
    assert_eq!(of_weighted(&sketcher, &vector).unwrap().signature(), counted);
    // If all weights are 1, the result equals that of an unweighted set.
    let mut plain = params.clone();
    plain.minhash.as_mut().unwrap().weights = MinhashWeights::Distinct;
    let plain = Sketcher::new(plain).unwrap();
    let ones = signature(&[(one, 1 << 16), (two, 1 << 16)]);
    assert_eq!(of_features(&plain, &[one, two, one]).signature(), ones);
    assert_eq!(of_weighted(&plain, &vector).unwrap().signature(), ones);

    let table = Arc::new(IdfTable::new(9, 1023, 0, shingling, vec![one, two], vec![1023, 511]).unwrap());
    params.minhash.as_mut().unwrap().weights = MinhashWeights::Idf { table: 9 };
    assert!(Sketcher::new(&params).unwrap_err().to_string().contains("minhash-weights=idf"));
    let by_table = Sketcher::with_idf(&params, Arc::clone(&table)).unwrap();
    let counted = signature(&[(one, 3 << 16), (two, 2 << 16), (5, 11 << 16)]);
    assert_eq!(of_features(&by_table, &[one, two, one, 5, one]).signature(), counted);
    let vector = [(one, 3 << 16), (two, 1 << 16), (5, 1 << 16)];
    assert_eq!(of_weighted(&by_table, &vector).unwrap().signature(), counted);
    params.simhash = Some(SimhashWeights::Idf { table: 8 });
    assert!(params.check().unwrap_err().to_string().contains("one table for both"));
}

#[test]
fn weights_out_of_range_are_refused() {
    let shingling = Shingling::words(1, 7).with_tokens(Tokens::Features).unwrap();
    let of = |family, change: fn(&mut SketchParams), vector: &[(u64, i64)]| {
        let mut params = weighted_params(family, MinhashWeights::Frequencies);
        params.shingling = shingling.clone();
        change(&mut params);
        of_weighted(&Sketcher::new(params).unwrap(), vector).map(drop)
    };
    assert_eq!(of(Family::Darts, |_| {}, &[(1, 4096), (2, (1 << 40) - 1)]), Ok(()));
    for (result, named) in [
        (of(Family::Darts, |_| {}, &[(1, 4095)]), "4095 / 65536"),
        (of(Family::Darts, |_| {}, &[(1, 1 << 39), (1, 1 << 39)]), "1099511627776 / 65536"),
        (of(Family::Linear, |_| {}, &[(1, 65_536)]), "minhash=darts"),
        (of(Family::Darts, |params| params.sets = true, &[(1, 65_536)]), "sets"),
        (of(Family::Darts, |params| params.modulus = 4, &[(1, 65_536)]), "modulus"),
    ] {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
    for (family, sets, named) in
        [(Family::Linear, false, "minhash=darts"), (Family::Darts, true, "fractions")]
    {
        let mut params = weighted_params(family, MinhashWeights::Idf { table: 1 });
        params.sets = sets;
        let error = params.check().unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
}

/// Computes the elements, in whole units, of shingles with weights in units of 2^-16. Serves as a simple reference.
#[allow(clippy::cast_sign_loss, reason = "weights are above 0")]
fn in_units(weights: &[(u64, u64)], unit: WeightUnit) -> (Vec<u64>, Vec<(u64, u64)>) {
    let (mut elements, mut darts) = (Vec::new(), Vec::new());
    for &(shingle, weight) in weights {
        let count = (weight as f64 / f64::from(unit.units()) + 0.5).floor() as u64;
        let mut same = vec![shingle; count as usize];
        set_apart(&mut same);
        elements.extend(same);
        darts.push((shingle, count << 16));
    }
    elements.sort_unstable();
    (elements, darts)
}

#[test]
fn weights_in_units_are_elements_of_sets_samples_and_minima() {
    let shingling = Shingling::words(1, 7).with_tokens(Tokens::Features).unwrap();
    let (one, two, three) = (0x1234_5678_9abc_def0, 0xfedc_ba98_7654_3210, 5);
    let table = IdfTable::new(9, 1023, 0, shingling.clone(), vec![one, two], vec![1000, 500]);
    let table = Arc::new(table.unwrap());
    let times = |shingle: u64, units: u64| (shingle, units * u64::from(table.weight(shingle)) / 256);
    for &family in Family::ALL {
        for (by_table, unit) in [(false, "1"), (false, "0.25"), (true, "2"), (true, "1"), (true, "0.125")] {
            let unit: WeightUnit = unit.parse().unwrap();
            let weights =
                if by_table { MinhashWeights::Idf { table: 9 } } else { MinhashWeights::Frequencies };
            let mut params = weighted_params(family, weights);
            params.shingling = shingling.clone();
            params.minhash.as_mut().unwrap().unit = Some(unit);
            (params.sets, params.bottom, params.modulus) = (true, 5, 3);
            params.check().unwrap();
            let sketcher = if by_table {
                Sketcher::with_idf(&params, Arc::clone(&table)).unwrap()
            } else {
                Sketcher::new(&params).unwrap()
            };
            let weight = |shingle, units| if by_table { times(shingle, units) } else { (shingle, units) };
            let vector =
                [(one, 200_000_i64), (two, 70_000), (three, 131_072), (one, 12_288), (7, -4), (8, 0)];
            let of_vector = [weight(one, 212_288), weight(two, 70_000), weight(three, 131_072)];
            let set = [one, two, one, three, one];
            let of_set = [weight(one, 3 << 16), weight(two, 1 << 16), weight(three, 1 << 16)];
            let found = [of_weighted(&sketcher, &vector).unwrap(), of_features(&sketcher, &set)];
            for (sketch, weights) in found.into_iter().zip([of_vector, of_set]) {
                let (elements, darts) = in_units(&weights, unit);
                assert_eq!(sketch.set(), elements, "{family} {unit} {by_table}");
                let mut wanted = Vec::new();
                if family == Family::Darts {
                    WeightedMinHasher::new(200).unwrap().signature(&darts, &mut wanted).unwrap();
                } else {
                    MinHasher::of(family, 200).signature(&elements, &mut wanted);
                }
                assert_eq!(sketch.signature(), wanted, "{family} {unit} {by_table}");
                let (mut bottom, mut modular) = (Vec::new(), Vec::new());
                samples::bottom(&elements, 5, &mut Vec::new(), &mut bottom);
                samples::modular(&elements, 3, &mut modular);
                assert_eq!((sketch.bottom(), sketch.modular()), (&bottom[..], &modular[..]));
            }
        }
    }
}

#[test]
fn elements_of_a_text_with_unit_one_are_its_occurrences() {
    let of = |unit| {
        let mut params = weighted_params(Family::OnePermutationFilled, MinhashWeights::Frequencies);
        (params.minhash.as_mut().unwrap().unit, params.sets) = (unit, true);
        Sketcher::new(params).unwrap()
    };
    let (plain, whole, halves) = (of(None), of(Some(WeightUnit::ONE)), of(Some("0.5".parse().unwrap())));
    for text in [TEXTS[0], TEXTS[1], "", "a"] {
        let sketches = [&plain, &whole, &halves].map(|sketcher| sketcher.sketch(text).unwrap());
        assert_eq!(sketches[0].set(), sketches[1].set());
        assert_eq!(sketches[0].signature(), sketches[1].signature());
        let twice = if text.is_empty() { 1 } else { 2 * sketches[0].set().len() };
        assert_eq!(sketches[2].set().len(), twice, "{text}");
    }
    let error = plain.sketch("a").unwrap().check_comparable(whole.params()).unwrap_err().to_string();
    assert!(error.contains("minhash-unit"), "{error}");
}

#[test]
fn weights_out_of_the_range_of_units_are_refused() {
    let shingling = Shingling::words(1, 7).with_tokens(Tokens::Features).unwrap();
    let mut params = weighted_params(Family::OnePermutationFilled, MinhashWeights::Frequencies);
    params.shingling = shingling;
    params.minhash.as_mut().unwrap().unit = Some("0.25".parse().unwrap());
    let sketcher = Sketcher::new(&params).unwrap();
    assert!(of_weighted(&sketcher, &[(1, 8192)]).is_ok(), "half a unit is one");
    for (vector, named) in [
        (&[(1, 8191)][..], "8191 / 65536: less than half of the unit 0.25"),
        (&[(1, 1 << 40)], "more than 16777216 units"),
        (&[(1, i64::MAX), (1, i64::MAX)], "more than 16777216 units"),
    ] {
        let error = of_weighted(&sketcher, vector).unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
    }
    params.minhash.as_mut().unwrap().weights = MinhashWeights::Distinct;
    assert!(params.check().unwrap_err().to_string().contains("minhash-unit without"));
}

/// Computes the fingerprint of `bits` bits from the definition: votes are the hashes and weights.
fn naive_code(votes: &[(u64, i64)], bits: usize) -> Code {
    let mut words = vec![0_u64; bits / 64];
    for (place, word) in (0_u64..).zip(&mut words) {
        for bit in 0..64 {
            let sum: i128 = votes
                .iter()
                .map(|&(hash, weight)| {
                    let hash = match place {
                        0 => hash,
                        _ => mix(hash.wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))),
                    };
                    if hash >> bit & 1 == 1 { i128::from(weight) } else { -i128::from(weight) }
                })
                .sum();
            *word |= u64::from(sum > 0) << bit;
        }
    }
    Code::of_words(&words).unwrap()
}

#[test]
fn fingerprints_of_every_width_and_weight_equal_the_definition() {
    let shingling = Shingling::words(1, 7).with_tokens(Tokens::Features).unwrap();
    let all: Vec<u64> = (0..5000).map(|number| mix(number * 7 + number % 3)).collect();
    let frequencies = (0..5000).map(|number| number % 1000).collect();
    let mut hashes = all.clone();
    hashes.sort_unstable();
    let table = Arc::new(IdfTable::new(9, 1023, 0, shingling.clone(), hashes, frequencies).unwrap());
    for bits in crate::CODE_WIDTHS {
        for weights in
            [SimhashWeights::Occurrences, SimhashWeights::Distinct, SimhashWeights::Idf { table: 9 }]
        {
            let params = SketchParams::new(shingling.clone()).with_simhash(weights);
            let params = params.with_simhash_bits(bits as u16);
            params.check().unwrap();
            let sketcher = match weights {
                SimhashWeights::Idf { .. } => Sketcher::with_idf(&params, Arc::clone(&table)),
                _ => Sketcher::new(&params),
            };
            let sketcher = sketcher.unwrap();
            let weight = |hash| match weights {
                SimhashWeights::Idf { .. } => i64::from(table.weight(hash)),
                _ => 1,
            };
            for count in [0, 1, 2, 9, 127, 128, 300, 4097] {
                let mut features: Vec<u64> = all[..count].to_vec();
                features.extend_from_within(..count / 3);
                let mut voters = features.clone();
                if weights == SimhashWeights::Distinct {
                    voters.truncate(count);
                }
                let votes: Vec<(u64, i64)> = voters.iter().map(|&hash| (hash, weight(hash))).collect();
                let expected = (count > 0).then(|| naive_code(&votes, bits));
                for level in Level::tested() {
                    let found = of_features(&sketcher.clone().at(level), &features);
                    assert_eq!(found.code(), expected, "{bits} bits, {weights:?}, {count}, {level}");
                    let fingerprint =
                        expected.filter(|_| bits == 64).map(|code| Fingerprint(code.words()[0]));
                    assert_eq!((found.fingerprint(), found.is_empty()), (fingerprint, count == 0));
                    let (mut bytes, mut again) = (Vec::new(), Sketch::default());
                    found.store(0, &mut bytes);
                    assert!(sketcher.restore(0, &bytes, &mut again).unwrap().is_empty());
                    assert_eq!(again, found);
                }
                if weights != SimhashWeights::Distinct {
                    let vector: Vec<(u64, i64)> =
                        features.iter().zip(1..).map(|(&hash, place)| (hash, place % 5 - 2)).collect();
                    let votes: Vec<(u64, i64)> =
                        vector.iter().map(|&(hash, value)| (hash, value * weight(hash))).collect();
                    let found = of_weighted(&sketcher, &vector).unwrap();
                    assert_eq!(found.code(), (count > 0).then(|| naive_code(&votes, bits)), "{bits} {count}");
                }
            }
        }
    }
}

#[test]
fn long_fingerprint_is_never_zero_and_begins_with_the_short_one() {
    let params = SketchParams::new(Shingling::words(2, 0)).with_simhash(SimhashWeights::Occurrences);
    let text = "a rose is a rose is a rose";
    let short = Sketcher::new(&params).unwrap().sketch(text).unwrap();
    let long = Sketcher::new(params.with_simhash_bits(512)).unwrap().sketch(text).unwrap();
    assert_eq!(long.code().unwrap().words()[0], short.fingerprint().unwrap().0);
    assert_eq!((long.fingerprint(), short.code().map(|code| code.bits())), (None, Some(64)));
    assert!(
        long.check_comparable(short.params.as_ref().unwrap())
            .unwrap_err()
            .to_string()
            .contains("simhash-bits")
    );
    let tied = Code::of_votes(128, |_| Fingerprint(0));
    assert_eq!((tied.words(), tied.is_zero()), (&[0, 1][..], false));
    assert!(Code::of_votes(64, |_| Fingerprint(0)).is_zero());
}

#[test]
fn long_fingerprint_beside_other_sketches_is_refused() {
    let long = |bits| {
        let params = SketchParams::new(Shingling::words(1, 0)).with_simhash(SimhashWeights::Distinct);
        params.with_simhash_bits(bits)
    };
    let with = |change: fn(&mut SketchParams)| {
        let mut params = long(256);
        change(&mut params);
        params
    };
    for (params, named) in [
        (long(256).with_minhash(6, 14), "minhash with a simhash of 256 bits"),
        (with(|params| params.sets = true), "sets with"),
        (with(|params| params.bottom = 1), "bottom with"),
        (with(|params| params.modulus = 1), "modulus with"),
        (with(|params| params.simhash = None), "simhash-bits without simhash"),
        (long(100), "simhash-bits is 100, allowed are [64"),
        (long(0), "simhash-bits is 0"),
    ] {
        let error = params.check().unwrap_err().to_string();
        assert!(error.contains(named), "{error}");
        assert!(Sketcher::new(params).is_err());
    }
    let features = Shingling::words(1, 0).with_tokens(Tokens::Features).unwrap();
    let sketcher = Sketcher::new(SketchParams { shingling: features, ..long(128) }).unwrap();
    let refused =
        sketcher.sketch_fingerprint(Fingerprint(1), &mut Scratch::default(), &mut Sketch::default());
    assert!(refused.unwrap_err().to_string().contains("fingerprints of 128 bits"));
}
