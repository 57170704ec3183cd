//! Tests that a passage index finds the passages of the definition, for any number of parts, and that damage causes an
//! error, never a different answer.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use twindex::Error;
use twindex_corpus::passages::index::{Answer, Builder, Extract, Limits};
use twindex_corpus::passages::{
    Exact, FinderScratch, Grams, Hashed, Hasher, Line, PassageIndex, Recurring, Shape,
};

/// Hashes the tokens of a text.
fn hashed(hasher: &Hasher, text: &str) -> Hashed {
    let mut hashed = Hashed::default();
    hashed.clear(Exact::Tokens);
    twindex_sketch::token::placed_tokens(text, &mut Vec::new(), |place, token| {
        hashed.push_token(hasher, text, place, token);
    });
    hashed
}

fn hasher() -> Hasher {
    Hasher::new(5)
}

/// Adds texts to an index as one part. The keys are the positions of the texts.
fn append(folder: &Path, shape: Shape, texts: &[String]) -> Result<(), Error> {
    let scratch = tempfile::tempdir().unwrap();
    let mut builder = Builder::new(scratch.path(), 0, shape, 5)?;
    let mut work = FinderScratch::new(shape, hasher());
    for (number, text) in texts.iter().enumerate() {
        builder
            .push(format!("key-{number}").as_bytes(), &Extract::of(&hashed(&hasher(), text), &mut work))?;
    }
    let built = builder.finish()?;
    // Scratch files have no names, so their directory can be removed.
    drop(scratch);
    PassageIndex::append(folder, built, "tokens=words")
}

/// Returns all maximal common runs of at least `t` words: byte ranges in both texts, and number of words.
fn common_runs(a: &str, b: &str, t: usize) -> BTreeSet<(usize, usize, usize, usize, usize)> {
    let split = |text: &str| {
        let (mut words, mut places) = (Vec::new(), Vec::new());
        twindex_sketch::token::placed_tokens(text, &mut Vec::new(), |place, token| {
            words.push(token.to_vec());
            places.push(place);
        });
        (words, places)
    };
    let ((a, a_places), (b, b_places)) = (split(a), split(b));
    let mut runs = BTreeSet::new();
    for i in 0..a.len() {
        for j in 0..b.len() {
            if i > 0 && j > 0 && a[i - 1] == b[j - 1] {
                continue;
            }
            let length = a[i..].iter().zip(&b[j..]).take_while(|(a, b)| a == b).count();
            if length >= t {
                let (last_a, last_b) = (i + length - 1, j + length - 1);
                let (start, end) = (a_places[i].start, a_places[last_a].end);
                runs.insert((start, end, b_places[j].start, b_places[last_b].end, length));
            }
        }
    }
    runs
}

fn ask(index: &PassageIndex, text: &str) -> Result<Answer, Error> {
    let mut work = FinderScratch::new(index.shape(), Hasher::new(index.seed()));
    index.find(&hashed(&hasher(), text), &mut work, Limits::NONE)
}

fn texts() -> impl Strategy<Value = Vec<String>> {
    let piece = (0..4_u32, 0..150_u32, 1..60_u32);
    let text = proptest::collection::vec(piece, 0..4).prop_map(|pieces| {
        let word = |source: u32, number: u32| format!("w{}", (source * 7 + number * number) % 61);
        let words = |(source, start, length): (u32, u32, u32)| {
            (start..start + length).map(move |number| word(source, number) + " ").collect::<String>()
        };
        pieces.into_iter().map(words).collect::<String>()
    });
    proptest::collection::vec(text, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, ..ProptestConfig::default() })]

    #[test]
    fn query_finds_exactly_the_common_runs_of_every_document(
        texts in texts(),
        question in texts(),
        t in 2..14_usize,
        cut in any::<prop::sample::Index>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let cut = cut.index(texts.len());
        for part in [&texts[..cut], &texts[cut..]] {
            append(folder.path(), Shape::words(t), part).unwrap();
        }
        let index = PassageIndex::open(folder.path()).unwrap();
        index.verify().unwrap();
        prop_assert_eq!((index.parts(), index.documents() as usize), (2, texts.len()));
        let question = question.concat();
        let answer = ask(&index, &question).unwrap();
        let mut found = vec![BTreeSet::new(); texts.len()];
        for one in &answer.documents {
            found[one.document as usize] = one.runs.iter().map(|one| {
                let places = [one.start, one.end, one.document_start, one.document_end].map(|at| at as usize);
                (places[0], places[1], places[2], places[3], one.words as usize)
            }).collect();
            let number = if (one.document as usize) < cut { one.document } else { one.document - cut as u32 };
            let key = format!("key-{number}");
            prop_assert_eq!(index.key(one.document).unwrap(), key.as_bytes());
        }
        for (text, found) in texts.iter().zip(&found) {
            prop_assert_eq!(found, &common_runs(&question, text, t));
        }
    }

    /// Tests daily batches: texts that are compared with an index have the same lines as texts that follow its documents.
    #[test]
    fn lines_against_an_index_equal_lines_after_its_documents(
        texts in texts(),
        (t, within) in (1..14_usize, any::<bool>()),
        cuts in any::<[prop::sample::Index; 2]>(),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let shape = Shape::words(t);
        let mut work = FinderScratch::new(shape, hasher());
        let all: Vec<Hashed> = texts.iter().map(|text| hashed(&hasher(), text)).collect();
        let lines = |first: usize, index: Option<&PassageIndex>, work: &mut FinderScratch| -> Vec<Line> {
            let recurring = Recurring::new(1 << 12).unwrap();
            all[first..].iter().for_each(|one| work.count(one, &recurring, within));
            let mut grams = Grams::of_words(folder.path(), 0, t);
            for (document, one) in (first as u32..).zip(&all[first..]) {
                if let Some(index) = index {
                    index.for_each_sourced(one, work, |one| recurring.recurs(one), |gram, source| match source {
                        Some(source) => grams.push_sourced(document, &gram, source).unwrap(),
                        None => grams.push(document, &gram).unwrap(),
                    }).unwrap();
                } else {
                    work.for_each_recurring(one, &recurring, |gram| grams.push(document, &gram).unwrap());
                }
            }
            let mut lines = Vec::new();
            let is_same = |place: (u32, u32), first: (u32, u32)| match index {
                Some(index) if place.0 < index.documents() => {
                    Ok((first.0 < index.documents() && index.is_same_gram(place, first)?).into())
                }
                _ => Ok(None),
            };
            grams.finish(within).unwrap().for_each_line_after(is_same, |line| {
                lines.push(line);
                Ok::<_, Error>(())
            }).unwrap();
            lines
        };
        let mut cuts = cuts.map(|cut| cut.index(texts.len()));
        cuts.sort_unstable();
        let [first, second] = cuts;
        let index_folder = folder.path().join("index");
        append(&index_folder, shape, &texts[..first]).unwrap();
        append(&index_folder, shape, &texts[first..second]).unwrap();
        let index = PassageIndex::open(&index_folder).unwrap();
        let mut expected = lines(0, None, &mut work);
        expected.retain(|line| line.document as usize >= second);
        let mut found = lines(second, Some(&index), &mut work);
        for line in &mut found {
            if (line.first_document as usize) < second {
                line.first_start = index.places(line.first_document).unwrap()[line.first_position as usize].0;
            }
        }
        prop_assert_eq!(found, expected);
    }
}

fn some_texts() -> Vec<String> {
    let words =
        |from: u32| (from..from + 30).map(|number| format!("w{} ", number % 23)).collect::<Vec<_>>().concat();
    vec![words(0), words(7), "short".into(), words(19) + "and more", String::new()]
}

#[test]
fn damage_never_changes_an_answer_and_verify_finds_it() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("index");
    append(&folder, Shape::words(6), &some_texts()).unwrap();
    let index = PassageIndex::open(&folder).unwrap();
    let question = &some_texts()[3];
    let answer = ask(&index, question).unwrap();
    assert_eq!((answer.documents.len(), answer.words_found), (3, 32));
    drop(index);
    for name in ["PASSAGES", "passages-000001.part"] {
        let path = folder.join(name);
        let bytes = fs::read(&path).unwrap();
        let check = |damaged: &[u8], what: &str| {
            fs::remove_file(&path).unwrap();
            fs::write(&path, damaged).unwrap();
            let index = match PassageIndex::open(&folder) {
                Ok(index) => index,
                Err(error) => return assert!(error.is_corruption(), "{what}: {error}"),
            };
            match ask(&index, question) {
                Ok(found) => assert_eq!(found, answer, "{what}"),
                Err(error) => assert!(error.is_corruption(), "{what}: {error}"),
            }
            let damage = index.verify().expect_err(what);
            assert!(damage.is_corruption() && damage.to_string().contains(name), "{what}: {damage}");
        };
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << (at % 8);
            check(&damaged, &format!("{name}: bit {} of byte {at}", at % 8));
        }
        for length in (0..bytes.len()).step_by(7) {
            check(&bytes[..length], &format!("{name}: cut to {length}"));
        }
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
    }
    PassageIndex::open(&folder).unwrap().verify().unwrap();
}

#[test]
fn index_refuses_foreign_files_and_ignores_crash_leftovers() {
    let bench = tempfile::tempdir().unwrap();
    let folder = bench.path().join("index");
    assert!(matches!(PassageIndex::open(&folder), Err(Error::NotAnIndex { .. })));
    append(&folder, Shape::words(6), &some_texts()).unwrap();
    let error = append(&folder, Shape::words(7), &some_texts()).unwrap_err();
    assert!(matches!(&error, Error::ParamsMismatch { field, .. } if field == "min-words"), "{error}");
    // A part that is not in the list must be ignored, and removed by the next writer.
    fs::write(folder.join("passages-000002.part"), "half").unwrap();
    assert_eq!(PassageIndex::open(&folder).unwrap().parts(), 1);
    append(&folder, Shape::words(6), &some_texts()).unwrap();
    let index = PassageIndex::open(&folder).unwrap();
    assert_eq!((index.parts(), index.documents()), (2, 10));
    index.verify().unwrap();
    fs::write(folder.join("mine.txt"), "mine").unwrap();
    let error = append(&folder, Shape::words(6), &some_texts()).unwrap_err();
    assert!(matches!(error, Error::AlreadyExists { .. }), "{error}");
    // The same documents must give the same bytes.
    let again = bench.path().join("again");
    append(&again, Shape::words(6), &some_texts()).unwrap();
    let part = |folder: &Path| fs::read(folder.join("passages-000001.part")).unwrap();
    assert_eq!(part(&again), part(&folder));
}
