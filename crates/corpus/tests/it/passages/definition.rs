//! Tests that the lines found are exactly the lines of the definition, which are computed with a suffix array. Texts are
//! short and repetitive, because random texts share nothing.

use proptest::prelude::*;
use twindex_corpus::passages::{Exact, FinderScratch, Grams, Hashed, Hasher, Line, Recurring, Shape};
use twindex_sketch::Cutter;
use twindex_sketch::cut::PlacedUnits;
use twindex_sketch::params::{Folding, NormalForm, Shingling};

use crate::corpora::{Random, cases};

/// A document for the reference: its tokens with their byte ranges, and its text for comparing bytes.
struct Document {
    tokens: Vec<Vec<u8>>,
    places: Vec<(usize, usize)>,
    text: String,
}

/// A repeated position and its source, each a document and a position.
type Repeat = ((usize, usize), (usize, usize));

fn tokens(cutter: &Cutter, text: &str) -> Document {
    let (mut tokens, mut places) = (Vec::new(), Vec::new());
    cutter.for_each_placed(text, &mut PlacedUnits::default(), |place, token| {
        tokens.push(token.to_vec());
        places.push((place.start, place.end));
    });
    Document { tokens, places, text: text.to_owned() }
}

/// Computes the expected lines with a suffix array over the t-grams of all documents. Suffixes with the same first t-gram
/// are adjacent. The first of them in document order is the source of the others.
fn by_suffix_array(documents: &[Document], t: usize, exact: Exact, within: bool) -> Vec<Line> {
    let gram = |&(document, position): &(usize, usize)| -> Vec<Vec<u8>> {
        let Document { tokens, places, text } = &documents[document];
        match exact {
            Exact::Tokens => tokens[position..position + t].to_vec(),
            Exact::Bytes => {
                vec![text.as_bytes()[places[position].0..places[position + t - 1].1].to_vec()]
            }
        }
    };
    let mut suffixes: Vec<(usize, usize)> = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        suffixes
            .extend((0..(document.tokens.len() + 1).saturating_sub(t)).map(|position| (number, position)));
    }
    suffixes.sort_by_cached_key(|suffix| (gram(suffix), *suffix));
    let mut repeated = Vec::new();
    for group in suffixes.chunk_by(|a, b| gram(a) == gram(b)) {
        let source = group[0];
        let others = group[1..].iter().filter(|other| within || other.0 > source.0);
        repeated.extend(others.map(|&other| (other, source)));
    }
    repeated.sort_unstable();
    // A run goes on while the next position is repeated and has the t-gram at the next position of the source.
    let mut runs: Vec<(Repeat, usize)> = Vec::new();
    for (place, source) in repeated {
        let extended = runs.last_mut().filter(|(((document, position), (first, first_position)), count)| {
            let beside = (*first, first_position + *count);
            (*document, position + *count) == place
                && beside.1 + t <= documents[beside.0].tokens.len()
                && gram(&beside) == gram(&place)
        });
        match extended {
            Some((_, count)) => *count += 1,
            None => runs.push(((place, source), 1)),
        }
    }
    runs.into_iter()
        .map(|(((document, position), (first, first_position)), count)| {
            let end = position + count - 1 + t - 1;
            Line {
                document: document as u32,
                position: position as u32,
                units: (count + t - 1) as u32,
                start: documents[document].places[position].0 as u32,
                end: documents[document].places[end].1 as u32,
                first_document: first as u32,
                first_position: first_position as u32,
                first_start: documents[first].places[first_position].0 as u32,
                words: (count + t - 1) as u32,
            }
        })
        .collect()
}

pub(crate) struct Case {
    pub(crate) shape: Shape,
    pub(crate) exact: Exact,
    pub(crate) within: bool,
    /// Memory of the filter, and of each sort, in bytes.
    pub(crate) memory: usize,
}

pub(crate) fn found(cutter: &Cutter, texts: &[String], case: &Case) -> Vec<Line> {
    let folder = tempfile::tempdir().unwrap();
    let hasher = Hasher::new(3);
    let (mut work, mut placed) = (FinderScratch::new(case.shape, hasher), PlacedUnits::default());
    let mut hashed = Hashed::default();
    let mut hash = |text: &str, hashed: &mut Hashed| {
        hashed.clear(case.exact);
        cutter.for_each_placed(text, &mut placed, |place, token| {
            hashed.push_token(&hasher, text, place, token);
        });
    };
    let recurring = Recurring::new(case.memory).unwrap();
    for text in texts {
        hash(text, &mut hashed);
        work.count(&hashed, &recurring, case.within);
    }
    let mut grams = Grams::of_words(folder.path(), case.memory, case.shape.width());
    for (document, text) in (0..).zip(texts) {
        hash(text, &mut hashed);
        work.for_each_recurring(&hashed, &recurring, |gram| grams.push(document, &gram).unwrap());
    }
    let repeats = grams.finish(case.within).unwrap();
    let mut lines = Vec::new();
    repeats
        .for_each_line(|line| {
            lines.push(line);
            Ok::<_, twindex::Error>(())
        })
        .unwrap();
    lines
}

fn check(cutter: &Cutter, texts: &[String], case: &Case) {
    let documents: Vec<Document> = texts.iter().map(|text| tokens(cutter, text)).collect();
    let expected = by_suffix_array(&documents, case.shape.width(), case.exact, case.within);
    let lines = found(cutter, texts, case);
    assert_eq!(lines, expected, "{texts:?}");
    // All tokens of a line must occur in its source, even if only the bytes of the line are split into tokens.
    for line in lines {
        let (text, source) = (&texts[line.document as usize], &texts[line.first_document as usize]);
        let span = tokens(cutter, &text[line.start as usize..line.end as usize]).tokens;
        let there = tokens(cutter, &source[line.first_start as usize..]).tokens;
        assert_eq!(span.len(), line.words as usize);
        assert_eq!(there[..span.len()], span[..]);
    }
}

pub(crate) fn plain() -> Cutter {
    Cutter::new(&Shingling::words(5, 0)).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// Texts use a tiny alphabet in upper and lower case, so that most t-grams recur within and between texts.
    #[test]
    fn lines_of_repetitive_texts_equal_lines_of_a_suffix_array(
        texts in proptest::collection::vec("([aB]|A|b|é|É|東|京|[ .]| \n){0,60}", 0..6),
        (t, k, within, bytes) in (1..9_usize, 1..9_usize, any::<bool>(), any::<bool>()),
    ) {
        let exact = if bytes { Exact::Bytes } else { Exact::Tokens };
        check(&plain(), &texts, &Case { shape: Shape::words_by(t, k), exact, within, memory: 1 << 12 });
    }

    /// Composed and decomposed letters, wide and narrow letters, and letters with invisible characters are equal. Lines
    /// refer to the original bytes of the text.
    #[test]
    fn lines_in_several_normal_forms_equal_lines_of_a_suffix_array(
        texts in proptest::collection::vec("(é|e\u{301}|E\u{301}|e|ｅ|e\u{ad}|Ｅ|\u{1112}\u{1161}|하|か\u{3099}|が|[ .]| |　){0,50}", 0..5),
        (t, within, marks) in (1..6_usize, any::<bool>(), any::<bool>()),
    ) {
        let mut shingling = Shingling::words(5, 0);
        shingling.normal_form = NormalForm::nfkc().unwrap();
        shingling.folding.invisible = true;
        shingling.folding.marks = Folding::marks_here().filter(|_| marks);
        let cutter = Cutter::new(&shingling).unwrap();
        check(&cutter, &texts, &Case { shape: Shape::words(t), exact: Exact::Tokens, within, memory: 1 << 12 });
    }

    /// Texts are recombined from long pieces of a few texts with small changes. Some filters have only one block, which
    /// reports nearly all fingerprints.
    #[test]
    fn spans_of_recombined_texts_equal_those_from_a_suffix_array(
        cuts in proptest::collection::vec((0..3_usize, 0..200_usize, 1..80_usize, any::<bool>()), 1..24),
        (t, within, bytes, memory) in (4..30_usize, any::<bool>(), any::<bool>(), 0..4096_usize),
    ) {
        let word = |source: usize, number: usize| format!("w{}", (source * 7 + number * number) % 97);
        let mut texts = vec![String::new()];
        for (source, start, length, ends) in cuts {
            let text = texts.last_mut().unwrap();
            for number in start..start + length {
                text.push_str(&word(source, number));
                text.push_str(if number % 11 == 0 { ", " } else { " " });
            }
            if ends {
                texts.push(String::new());
            }
        }
        let exact = if bytes { Exact::Bytes } else { Exact::Tokens };
        check(&plain(), &texts, &Case { shape: Shape::words(t), exact, within, memory });
    }
}

#[test]
fn periodic_and_fully_copied_texts_have_the_defined_lines() {
    let texts: Vec<String> = [
        "a ".repeat(300),
        "a b ".repeat(200),
        "a ".repeat(120) + "c " + &"a ".repeat(90),
        "a b ".repeat(200),
        String::new(),
        "b a ".repeat(31) + &"a b c ".repeat(40),
    ]
    .into();
    for t in [1, 2, 7, 50] {
        for within in [false, true] {
            for exact in [Exact::Tokens, Exact::Bytes] {
                check(&plain(), &texts, &Case { shape: Shape::words(t), exact, within, memory: 1 << 16 });
            }
        }
    }
}

/// Texts of a few words with short periods, which repeat themselves and each other.
#[test]
fn spans_of_tiny_periodic_texts_equal_the_definition() {
    let mut random = Random(11);
    let mut below = |limit: usize| random.below(limit);
    for _ in 0..cases() {
        let letters = 1 + below(3);
        let texts: Vec<String> = (0..=below(4))
            .map(|_| {
                let mut words: Vec<usize> = Vec::new();
                for _ in 0..below(4) {
                    let period: Vec<usize> = (0..=below(4)).map(|_| below(letters)).collect();
                    words.extend(period.iter().cycle().take(below(14)));
                }
                words.iter().map(|&word| ["a ", "b ", "c "][word]).collect()
            })
            .collect();
        let shape = Shape::words(1 + below(5));
        check(
            &plain(),
            &texts,
            &Case { shape, exact: Exact::Tokens, within: below(2) == 1, memory: 1 << 12 },
        );
    }
}
