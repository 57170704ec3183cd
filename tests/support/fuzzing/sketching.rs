//! The body of the target `sketch`: checks the documented properties of `twindex::sketch` on arbitrary text, with every
//! kind of tokens, every shingle hash and every part of a sketch.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use twindex::IdfBuilder;
use twindex::idf::{from_bytes, to_bytes};
use twindex::params::{
    Family, Folding, NormalForm, SIGNATURE_BITS, ShingleHash, SimhashWeights, Stemming, StopWords, Tokens,
    Widths,
};
use twindex::sketch::cut::STEM_MAX;
use twindex::sketch::{
    Buffers, Cutter, IdfTable, MinHasher, Rabin, RabinKarp, Scratch, Shingler, Sketch, Sketcher, Units,
    features, jaccard, matches, pack, samples, tokens,
};
use twindex::{Fingerprint, Params, params::Shingling};
use twindex_kernel::Level;

use super::Choices;

/// Number of bytes of an input that encode the parameters; the text follows.
pub(super) const CHOICE_BYTES: usize = 16;

/// Splits a text into words with the function that defines plain words.
fn tokens_of(text: &str) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    tokens(text, &mut Vec::new(), |token| {
        assert!(std::str::from_utf8(token).is_ok(), "a token is text");
        found.push(token.to_vec());
    });
    found
}

/// Sketches arbitrary text with arbitrary parameters, both taken from `data`.
pub fn sketch(data: &[u8]) {
    let (first, rest) = data.split_at(data.len().min(CHOICE_BYTES));
    let mut choices = Choices(first);
    let text = String::from_utf8_lossy(rest);
    token_by_token(&text);

    let shingling = shingling(&mut choices, &text);
    assert_eq!(Shingling::decode(&shingling.encode()).unwrap(), shingling);
    let missing = shingling.tokens.unicode().is_none()
        || (NormalForm::nfkc().is_none() && shingling.stemming != Stemming::None);
    let Ok(shingler) = Shingler::new(&shingling) else {
        assert!(missing, "{shingling:?}");
        return;
    };
    cut(&shingling, &text);
    let of_features = shingling.tokens == Tokens::Features;
    let mut shingles = Vec::new();
    if !of_features {
        shingles = hash(&shingling, &shingler, &text);
    }
    let (params, table) = params(&mut choices, shingling, |counts| {
        let middle = (0..=text.len() / 2).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
        for part in [&text[..middle], &text[middle..], &text] {
            let mut set = Vec::new();
            shingler.distinct(part, &mut Buffers::default(), &mut set);
            counts.add(&set).unwrap();
        }
    });
    assert_eq!(Params::decode(&params.encode()).unwrap(), params);
    let sketcher = match &table {
        Some(table) => Sketcher::with_idf(&params, Arc::clone(table)),
        None => Sketcher::new(&params),
    };
    let sketcher = sketcher.unwrap();
    if of_features {
        assert!(sketcher.sketch(&text).is_err(), "features are no text");
        caller(&sketcher, &params, table.as_deref(), rest);
    } else {
        document(&sketcher, &params, table.as_deref(), &text, &shingles);
    }
}

/// Checks the properties of plain words, which need no parameters.
fn token_by_token(text: &str) {
    let found = tokens_of(text);
    assert!(found.iter().all(|token| !token.is_empty()));
    let middle = (0..=text.len() / 2).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    let (head, tail) = text.split_at(middle);
    let in_parts = [tokens_of(head), tokens_of(tail)].concat();
    assert_eq!(tokens_of(&format!("{head} {tail}")), in_parts, "cut at a separator");
}

/// Returns shingling options. Checks that invalid combinations are refused, and replaces them with valid ones.
fn shingling(choices: &mut Choices<'_>, text: &str) -> Shingling {
    let seed = match choices.byte() {
        0 => 0,
        255 => u64::MAX,
        byte => u64::from(byte).wrapping_mul(0x0123_4567_89AB_CDEF),
    };
    let mut shingling = Shingling::words(1, seed);
    shingling.tokens = *choices.of(Tokens::ALL);
    shingling.unicode = shingling.tokens.unicode().unwrap_or(shingling.unicode);
    shingling.hash = *choices.of(ShingleHash::ALL);
    if choices.byte() % 2 == 1 {
        shingling.normal_form = NormalForm::nfkc().unwrap_or(NormalForm::None);
    }
    // This choice is derived from the seed and not from a new byte, so that stored inputs keep their meaning.
    shingling.folding.invisible = seed % 7 == 3;
    shingling.folding.marks = Folding::marks_here().filter(|_| seed % 5 == 2);
    let mask = choices.short();
    let widths: Vec<u8> = (0..16).filter(|bit| mask >> bit & 1 == 1).map(|bit| bit + 1).collect();
    shingling.widths = Widths::union(&widths).unwrap_or(shingling.widths);
    assert_eq!(shingling.widths.to_string().parse::<Widths>().unwrap(), shingling.widths);
    let every = choices.byte();
    if every > 0 {
        // Uses words of the text itself, because other words would rarely occur in it. 50 words of at most 8 KiB in total
        // are within the limits.
        let words = tokens_of(text).into_iter().step_by(every.into()).take(50);
        let words: Vec<String> = words.map(|word| String::from_utf8(word).unwrap()).collect();
        shingling.stop_words = match StopWords::new(words.iter().map(String::as_str).chain(["the"])) {
            Ok(list) => list,
            Err(error) => {
                assert!(text.len() > StopWords::BYTES_MAX / 4, "{error}");
                StopWords::default()
            }
        };
    }
    shingling.stemming = *choices.of(Stemming::ALL);
    if Params::builder().shingling(shingling.clone()).simhash(3).build().is_err() {
        let plain = Shingling::words(1, seed);
        assert!(!shingling.tokens.have_words(), "{shingling:?}");
        assert!(Cutter::new(&shingling).is_err());
        (shingling.stop_words, shingling.stemming) = (plain.stop_words.clone(), plain.stemming);
        if shingling.tokens == Tokens::Features {
            shingling = Shingling::words(1, seed);
            shingling.tokens = Tokens::Features;
        }
    }
    shingling
}

/// Returns parameters, with their IDF table if they use one. `add` adds the documents to count for the table.
fn params(
    choices: &mut Choices<'_>,
    shingling: Shingling,
    add: impl Fn(&mut IdfBuilder),
) -> (Params, Option<Arc<IdfTable>>) {
    let simhash = choices.byte();
    let within = simhash / 4 % 11;
    let (family, bands, rows) = (choices.byte(), choices.byte() % 24, u16::from(choices.byte() % 12) + 1);
    let bits = *choices.of(&SIGNATURE_BITS);
    let bottom = if choices.byte() % 2 == 1 { u16::from(choices.byte()) } else { 0 };
    let modulus = u32::from(choices.byte()) % 9;
    let mut table = None;
    let mut builder = Params::builder().bottom(bottom).modulus(modulus);
    if family % 2 == 1 {
        builder = builder.u64_keys();
    }
    builder = match simhash % 4 {
        0 => builder.simhash(within),
        1 => builder.simhash_weighted(within, SimhashWeights::Distinct),
        2 => {
            let mut counts = IdfBuilder::new(&shingling).min_df((simhash / 64).into());
            counts = counts.entries_max(usize::from(simhash) * 8);
            add(&mut counts);
            let made = counts.finish().unwrap();
            assert_eq!(from_bytes(&to_bytes(&made)).unwrap(), made);
            assert!(made.len() <= usize::from(simhash) * 8);
            builder = builder.simhash_weighted(within, made.weights());
            table = Some(Arc::new(made));
            builder
        }
        _ => builder,
    };
    builder = builder.shingling(shingling);
    if bands > 0 {
        let family = Family::ALL[usize::from(family / 2) % Family::ALL.len()];
        builder = builder.minhash(bands.into(), rows).family(family).signature_bits(bits);
    } else if simhash % 4 == 3 {
        assert!(builder.clone().build().is_err(), "nothing to compare documents by");
        builder = builder.simhash(within);
    }
    (builder.build().unwrap(), table)
}

fn units_of(shingling: &Shingling, text: &str) -> Vec<Vec<u8>> {
    let mut units = Units::default();
    Cutter::new(shingling).unwrap().cut(text, &mut units);
    assert_eq!(units.len(), units.iter().len());
    units.iter().map(<[u8]>::to_vec).collect()
}

/// Compares the units of a text with those that other kinds of tokens give.
fn cut(shingling: &Shingling, text: &str) {
    let found = units_of(shingling, text);
    for unit in &found {
        assert!(!unit.is_empty() && std::str::from_utf8(unit).is_ok(), "{unit:?}");
    }
    // First fills the buffers with units of another kind, and with units of the end of the text.
    let mut units = Units::default();
    let mut other = Shingling::words(1, 0);
    other.tokens = Tokens::Characters;
    Cutter::new(&other).unwrap().cut(text, &mut units);
    let cutter = Cutter::new(shingling).unwrap();
    let end = (text.len() / 2..text.len()).find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    cutter.cut(&text[end..], &mut units);
    cutter.cut(text, &mut units);
    assert!(units.iter().eq(found.iter().map(Vec::as_slice)), "what units held before does not matter");

    let alike = |change: &dyn Fn(&mut Shingling)| {
        let mut changed = shingling.clone();
        change(&mut changed);
        changed.unicode = changed.tokens.unicode().unwrap_or(changed.unicode);
        units_of(&changed, text)
    };
    let own_form = shingling.normal_form == NormalForm::None && shingling.folding.is_empty();
    match shingling.tokens {
        Tokens::Features => assert!(found.is_empty()),
        Tokens::Words | Tokens::UnicodeWords => {
            let mut plain = alike(&|changed| {
                (changed.stop_words, changed.stemming) = (StopWords::default(), Stemming::None);
            });
            if own_form && shingling.tokens == Tokens::Words {
                assert_eq!(plain, tokens_of(text));
            }
            let of_words = alike(&|changed| {
                changed.tokens = Tokens::WordCharacters;
                (changed.stop_words, changed.stemming) = (StopWords::default(), Stemming::None);
            });
            let mut again = Shingling::words(1, 0);
            again.tokens = Tokens::WordCharacters;
            let joined = String::from_utf8(plain.join(&b' ')).unwrap();
            assert_eq!(units_of(&again, &joined), of_words, "words have all word characters");
            plain.retain(|word| !shingling.stop_words.contains(std::str::from_utf8(word).unwrap()));
            assert_eq!(found.len(), plain.len(), "stems are of words");
            for (stem, word) in found.iter().zip(&plain) {
                let kept = shingling.stemming == Stemming::None || word.len() > STEM_MAX;
                assert!(!kept || stem == word, "{stem:?} of {word:?}");
            }
        }
        Tokens::Sentences => {
            let words = alike(&|changed| changed.tokens = Tokens::Words);
            let of_sentences: Vec<&[u8]> = found.iter().flat_map(|s| s.split(|&byte| byte == b' ')).collect();
            assert!(of_sentences.iter().eq(words.iter()), "sentences have all words");
        }
        Tokens::WordsSymbols => {
            let whole = alike(&|changed| {
                (changed.stop_words, changed.stemming) = (StopWords::default(), Stemming::None);
            });
            if own_form {
                let case = |text: &str| {
                    let mut lower = text.to_lowercase().into_bytes();
                    lower.retain(|byte| !byte.is_ascii_whitespace());
                    lower
                };
                // For non-ASCII characters, this crate has its own rules for case and white space.
                assert!(!text.is_ascii() || whole.concat() == case(&text.replace('\u{b}', "")));
            }
            let words = alike(&|changed| changed.tokens = Tokens::Words);
            let mut rest = found.iter();
            assert!(words.iter().all(|word| rest.any(|one| one == word)), "words are among them, in order");
        }
        Tokens::Raw => {
            let bytes = found.concat();
            assert!(found.iter().all(|unit| std::str::from_utf8(unit).unwrap().chars().count() == 1));
            assert!(!bytes.starts_with(b" ") && !bytes.ends_with(b" "), "no space at an end");
            assert!(!found.windows(2).any(|two| two == [b" ", b" "]), "one space for a run");
            let again = units_of(shingling, std::str::from_utf8(&bytes).unwrap());
            assert_eq!(again, found, "what is one space already stays");
        }
        _ => {
            let words = alike(&|changed| changed.tokens = Tokens::Words);
            let mut bytes = found.concat();
            if shingling.tokens == Tokens::Characters {
                assert!(!bytes.starts_with(b" ") && !bytes.ends_with(b" "), "no space at an end");
                assert!(!found.windows(2).any(|two| two == [b" ", b" "]), "one space between words");
                bytes.retain(|&byte| byte != b' ');
            }
            assert!(found.iter().all(|unit| std::str::from_utf8(unit).unwrap().chars().count() == 1));
            assert_eq!(bytes, words.concat());
        }
    }
}

fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Computes the token hash `fast` as documented in `sketch::shingle`.
fn token_hash(seed: u64, token: &[u8]) -> u64 {
    let keys = [0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344].map(|pi| mix(seed ^ pi));
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut state = keys[0];
    // The name of a feature may be empty; it is then hashed as one empty piece.
    let pieces = token.len().div_ceil(16).max(1);
    for i in 0..pieces {
        let piece = &token[i * 16..token.len().min(i * 16 + 16)];
        let mut padded = [0; 16];
        padded[..piece.len()].copy_from_slice(piece);
        let whole = u128::from_le_bytes(padded);
        let length = if i + 1 == pieces { token.len() as u64 } else { 0 };
        state = fold(state ^ whole as u64, keys[1] ^ (whole >> 64) as u64 ^ length);
    }
    state
}

/// Returns the shingles of a text. Compares them with a naive computation, at every SIMD level, and with reused buffers.
fn hash(shingling: &Shingling, shingler: &Shingler, text: &str) -> Vec<u64> {
    let mut units = Units::default();
    Cutter::new(shingling).unwrap().cut(text, &mut units);
    let all: Vec<Vec<u8>> = units.iter().map(<[u8]>::to_vec).collect();
    let separator: &[u8] = match shingling.tokens {
        Tokens::Words | Tokens::UnicodeWords | Tokens::WordsSymbols => b" ",
        Tokens::Sentences => b"\n",
        _ => b"",
    };
    let rabin = (shingling.hash == ShingleHash::Rabin).then(|| Rabin::new(shingling.seed));
    let rabin_karp = RabinKarp::seeded(shingling.seed);
    let tokens: Vec<u64> = all.iter().map(|unit| token_hash(shingling.seed, unit)).collect();
    let mut widths: Vec<usize> = shingling.widths.iter().filter(|&width| width <= all.len()).collect();
    if widths.is_empty() && !all.is_empty() {
        widths.push(all.len());
    }
    let mut expected = Vec::new();
    for width in widths {
        for first in 0..=all.len() - width {
            let bytes = units.shingle(first, width);
            if first % 64 == 0 {
                assert_eq!(bytes, all[first..first + width].join(separator));
            }
            expected.push(mix(match (shingling.hash, &rabin) {
                (_, Some(rabin)) => rabin.extend_by_tables(Rabin::ONE, bytes),
                (ShingleHash::RabinKarp, _) => rabin_karp.extend(1, bytes),
                _ => {
                    let count = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(width as u64);
                    let run = tokens[first..first + width].iter().rev().zip(0..);
                    run.fold(count, |x, (hash, places)| x ^ hash.rotate_left(places))
                }
            }));
        }
    }
    let (mut buffers, mut shingles, mut set) = (Buffers::default(), vec![1, 2, 3], vec![4]);
    for level in levels() {
        let shingler = shingler.clone().at(level);
        shingler.occurrences(text, &mut buffers, &mut shingles);
        assert_eq!(shingles, expected, "{level}: {}", shingling.encode());
        shingler.distinct(text, &mut buffers, &mut set);
        shingler.distinct("Ä longer text, of other tokens. And", &mut buffers, &mut shingles);
    }
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(set, expected);
    assert_eq!(jaccard(&set, &set), (set.len(), set.len()));
    shingler.occurrences(text, &mut buffers, &mut shingles);
    shingles
}

/// Computes the weighted simhash by its definition.
fn votes(items: &(impl Iterator<Item = (u64, i128)> + Clone)) -> Fingerprint {
    let vote = |bit: u32| {
        items.clone().map(move |(hash, weight)| if hash >> bit & 1 == 1 { weight } else { -weight })
    };
    Fingerprint((0..64).fold(0, |all, bit| all | u64::from(vote(bit).sum::<i128>() > 0) << bit))
}

/// A sketcher whose sketches have every part; it fills reused buffers with other content.
static OTHER: LazyLock<Sketcher> = LazyLock::new(|| {
    let params = Params::builder().words(1).simhash(3).minhash(7, 3).bottom(5).modulus(2).build().unwrap();
    Sketcher::new(&params).unwrap()
});

/// Returns the SIMD levels that this processor supports.
fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// Makes a sketch at every SIMD level, with reused buffers, and checks that all results are equal.
fn everywhere(sketcher: &Sketcher, make: impl Fn(&Sketcher, &mut Scratch, &mut Sketch)) -> (Sketch, Scratch) {
    let (mut sketch, mut scratch) = (Sketch::default(), Scratch::default());
    make(sketcher, &mut scratch, &mut sketch);
    let mut again = Sketch::default();
    for level in levels() {
        OTHER.sketch_into("something else that is longer", &mut scratch, &mut again).unwrap();
        make(&sketcher.clone().at(level), &mut scratch, &mut again);
        assert_eq!(sketch, again, "{level}, or what a sketch held before");
    }
    assert_eq!(sketch.params_digest(), sketcher.params_digest());
    (sketch, scratch)
}

/// Checks the parts of a sketch that depend only on the set of shingles; `set` is ascending.
fn of_set(sketch: &Sketch, params: &Params, set: &[u64]) {
    let mut hashes: Vec<u64> = set.iter().map(|&shingle| samples::hash(shingle)).collect();
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(sketch.bottom(), &hashes[..hashes.len().min(params.bottom.into())]);
    hashes.retain(|hash| params.modulus > 0 && hash % u64::from(params.modulus) == 0);
    assert_eq!(sketch.modular(), hashes);

    let Some(minhash) = params.minhash.filter(|_| !set.is_empty()) else {
        assert!(sketch.signature().is_empty() && sketch.features().is_empty());
        return;
    };
    let turned: Vec<u64> = set.iter().rev().copied().collect();
    let (mut signature, mut groups) = (Vec::new(), Vec::new());
    MinHasher::of(minhash.family, minhash.minima()).at(Level::Scalar).signature(&turned, &mut signature);
    assert_eq!(signature.len(), minhash.minima());
    features(&signature, minhash.rows.into(), &mut Vec::new(), &mut groups);
    assert_eq!(sketch.features(), groups, "order and repetitions do not matter");
    assert_eq!(sketch.features().len(), usize::from(minhash.bands));
    let bits = minhash.signature_bits;
    assert_eq!(sketch.signature(), if bits > 0 { &signature[..] } else { &[] });
    if bits > 0 {
        let other: Vec<u32> =
            signature.iter().zip(0..).map(|(minimum, i)| minimum ^ (i % 3) << (i % 32)).collect();
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        pack(&signature, bits, &mut mine);
        pack(&other, bits, &mut theirs);
        assert_eq!(mine.len(), minhash.signature_bytes());
        let low = |minimum: u32| u64::from(minimum) & ((1_u64 << bits) - 1);
        let equal = signature.iter().zip(&other).filter(|(a, b)| low(**a) == low(**b)).count();
        assert_eq!(matches(&mine, &theirs, signature.len(), bits), equal, "{bits} bits");
    }
}

/// Checks the sketch of a text whose shingles are `shingles`.
fn document(sketcher: &Sketcher, params: &Params, table: Option<&IdfTable>, text: &str, shingles: &[u64]) {
    let (sketch, scratch) = everywhere(sketcher, |sketcher, scratch, sketch| {
        sketcher.sketch_into(text, scratch, sketch).unwrap();
    });
    assert_eq!(sketcher.sketch_bytes(text.as_bytes()).unwrap(), sketch);
    assert_eq!(sketch.is_empty(), shingles.is_empty());
    let mut set = shingles.to_vec();
    set.sort_unstable();
    set.dedup();
    of_set(&sketch, params, &set);
    let weights = params.simhash.map(|simhash| simhash.weights);
    let votes_of = if weights == Some(SimhashWeights::Distinct) { &set[..] } else { shingles };
    assert_eq!(scratch.shingles(), votes_of);
    let weight = |&hash: &u64| (hash, table.map_or(1, |table| table.weight(hash).into()));
    let expected = weights.filter(|_| !shingles.is_empty()).map(|_| votes(&votes_of.iter().map(weight)));
    assert_eq!(sketch.fingerprint(), expected);
    let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
    assert!(sketcher.sketch_features(&set, &mut scratch, &mut sketch).is_err(), "text is no set");
    assert!(sketcher.sketch_weighted(&[(1, 1)], &mut scratch, &mut sketch).is_err(), "nor a vector");
}

/// Checks the sketches of a set and of a vector passed by the caller, made from the pieces of `data` between spaces.
fn caller(sketcher: &Sketcher, params: &Params, table: Option<&IdfTable>, data: &[u8]) {
    let seed = params.shingling.seed;
    let mut vector = Vec::new();
    for name in data.split(|&byte| byte == b' ') {
        let feature = sketcher.feature(name);
        assert_eq!(feature, mix(token_hash(seed, name) ^ 0x9e37_79b9_7f4a_7c15));
        let value = name.iter().fold(0_i64, |value, &byte| value << 5 ^ i64::from(byte.cast_signed()));
        vector.push((
            feature,
            match name.len() % 8 {
                0 => i64::MIN,
                1 => 1,
                2 => value,
                3 => i64::MAX,
                4 => value.wrapping_mul(0x0101_0101_0101),
                5 => -1,
                6 => 0,
                _ => value >> 3,
            },
        ));
    }
    let given: Vec<u64> = vector.iter().map(|item| item.0).collect();
    let weights = params.simhash.map(|simhash| simhash.weights);
    let times = |hash: u64| table.map_or(1, |table| i128::from(table.weight(hash)));

    let of_features = |given: &[u64]| {
        let make = |sketcher: &Sketcher, scratch: &mut Scratch, sketch: &mut Sketch| {
            sketcher.sketch_features(given, scratch, sketch).unwrap();
        };
        everywhere(sketcher, make).0
    };
    let sketch = of_features(&given);
    let turned: Vec<u64> = given.iter().rev().copied().collect();
    assert_eq!(of_features(&turned), sketch, "the order of a set does not matter");
    let mut set = given.clone();
    set.sort_unstable();
    set.dedup();
    of_set(&sketch, params, &set);
    let votes_of = if weights == Some(SimhashWeights::Distinct) { &set } else { &given };
    let expected = weights.map(|_| votes(&votes_of.iter().map(|&hash| (hash, times(hash)))));
    assert_eq!(sketch.fingerprint(), expected);
    assert!(of_features(&[]).is_empty());

    let (mut scratch, mut again) = (Scratch::default(), Sketch::default());
    if weights == Some(SimhashWeights::Distinct) {
        assert!(sketcher.sketch_weighted(&vector, &mut scratch, &mut again).is_err());
        return;
    }
    let of_vector = |vector: &[(u64, i64)]| {
        let make = |sketcher: &Sketcher, scratch: &mut Scratch, sketch: &mut Sketch| {
            sketcher.sketch_weighted(vector, scratch, sketch).unwrap();
        };
        everywhere(sketcher, make).0
    };
    let sketch = of_vector(&vector);
    let turned: Vec<(u64, i64)> = vector.iter().rev().copied().collect();
    assert_eq!(of_vector(&turned), sketch, "the order of a vector does not matter");
    let mut above: Vec<u64> = vector.iter().filter(|item| item.1 > 0).map(|item| item.0).collect();
    above.sort_unstable();
    above.dedup();
    of_set(&sketch, params, &above);
    let sets_kept = params.minhash.is_some() || params.bottom > 0 || params.modulus > 0;
    let counts = if sets_kept { !above.is_empty() } else { vector.iter().any(|item| item.1 != 0) };
    let items = vector.iter().map(|&(hash, weight)| (hash, i128::from(weight) * times(hash)));
    assert_eq!(sketch.fingerprint(), weights.filter(|_| counts).map(|_| votes(&items)));
    assert_eq!(sketch.is_empty(), !counts);

    // The weights of a repeated feature are added. This is checked only if all have the same sign and the sum does not
    // overflow.
    let mut merged: BTreeMap<u64, Option<i64>> = BTreeMap::new();
    for &(hash, weight) in &vector {
        let sum = merged.entry(hash).or_insert(Some(0));
        *sum = sum.filter(|sum| sum.signum() * weight.signum() >= 0).and_then(|sum| sum.checked_add(weight));
    }
    if let Some(merged) = merged.into_iter().map(|(hash, sum)| Some((hash, sum?))).collect::<Option<Vec<_>>>()
    {
        assert_eq!(of_vector(&merged), sketch);
    }
    let ones: Vec<(u64, i64)> = given.iter().map(|&hash| (hash, 1)).collect();
    assert_eq!(of_vector(&ones), of_features(&given), "a weight of one is an occurrence");
}

/// Returns inputs with every combination of tokens and shingle hash; weights and families alternate.
pub(super) fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "",
        "the quick brown fox jumps over the lazy dog, and the dog runs",
        "Łódź: 2 BOATS, 東京 नमस्ते 한국어 e\u{301}\u{301} İSTANBUL ﬁne Ａ. Don't stop! 3.14 is pi?",
        "Running runs ran. The  houses,\r\nhousing --- the\u{2029}thE house\u{ad}hold ที่นี่ ",
    ];
    let mut seeds = Vec::new();
    for (tokens, hash) in (0..6).flat_map(|tokens| (0..3).map(move |hash| (tokens, hash))) {
        let i = tokens * 3 + hash;
        // Sixteen bytes: seed, tokens, hash, normal form, widths (low and high byte), stop words, stemming, simhash,
        // family, bands, rows, bits, bottom (whether samples are stored, and how many hashes), modulus.
        let widths = [1, 2, 3, 16, 0x13, 5][usize::from(hash + tokens) % 6];
        let words = u8::from(tokens != 2 && tokens != 3 && tokens != 5);
        let choices: [u8; CHOICE_BYTES] = [
            i,
            tokens,
            hash,
            i / 3,
            widths,
            i % 2 * 3,
            i % 4 * words,
            i * words,
            i + 64,
            i,
            5,
            2,
            i,
            1,
            7,
            2,
        ];
        let text = texts[usize::from(i) % texts.len()];
        seeds.push([&choices, text.as_bytes()].concat());
    }
    seeds
}
