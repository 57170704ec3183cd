//! Tests that deleted documents are neither answers nor sources, that merging gives the same bytes as a single part of the
//! remaining documents, and that a crash during a change loses nothing.

use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::Path;

use proptest::prelude::*;
use twindex::Error;
use twindex_corpus::passages::index::{Answer, Builder, Extract, Limits};
use twindex_corpus::passages::{Exact, FinderScratch, Hashed, Hasher, PassageIndex, Shape};

use super::damage::for_each_damage;

fn hasher() -> Hasher {
    Hasher::new(5)
}

fn hashed(text: &str) -> Hashed {
    let (hasher, mut hashed) = (hasher(), Hashed::default());
    hashed.clear(Exact::Tokens);
    twindex_sketch::token::placed_tokens(text, &mut Vec::new(), |place, token| {
        hashed.push_token(&hasher, text, place, token);
    });
    hashed
}

/// Adds texts to an index as one part.
fn append(folder: &Path, shape: Shape, texts: &[(String, String)]) {
    let scratch = tempfile::tempdir().unwrap();
    let mut builder = Builder::new(scratch.path(), 0, shape, 5).unwrap();
    let mut work = FinderScratch::new(shape, hasher());
    for (key, text) in texts {
        builder.push(key.as_bytes(), &Extract::of(&hashed(text), &mut work)).unwrap();
    }
    PassageIndex::append(folder, builder.finish().unwrap(), "tokens=words").unwrap();
}

fn find(index: &PassageIndex, text: &str, limits: Limits) -> Answer {
    let mut work = FinderScratch::new(index.shape(), hasher());
    index.find(&hashed(text), &mut work, limits).unwrap()
}

/// Returns an answer in which documents are given by their keys instead of their numbers.
fn by_key(index: &PassageIndex, text: &str) -> (Vec<String>, u32, u64) {
    let answer = find(index, text, Limits::NONE);
    let shown = answer.documents.iter().map(|one| {
        let key = String::from_utf8(index.key(one.document).unwrap().to_vec()).unwrap();
        format!("{key} {} {:?}", one.words, one.runs)
    });
    (shown.collect(), answer.words_found, answer.documents_found)
}

/// Returns the t-grams of a text that occur in the index, each with the key of its first document and its position there.
fn sources(index: &PassageIndex, text: &str) -> Vec<String> {
    let (mut work, mut found) = (FinderScratch::new(index.shape(), hasher()), Vec::new());
    let each = |gram: twindex_corpus::passages::Gram, source: Option<(u32, u32)>| {
        let source = source.map(|(document, unit)| (index.key(document).unwrap().to_vec(), unit));
        found.push(format!("{} {source:?}", gram.position));
    };
    index.for_each_sourced(&hashed(text), &mut work, |_| true, each).unwrap();
    found
}

fn texts() -> impl Strategy<Value = Vec<(String, String)>> {
    let piece = (0..4_u32, 0..50_u32, 1..40_u32);
    let text = proptest::collection::vec(piece, 0..4).prop_map(|pieces| {
        let word = |source: u32, number: u32| format!("w{}", (source * 7 + number * number) % 61);
        let words = |(source, start, length): (u32, u32, u32)| {
            (start..start + length).map(move |number| word(source, number) + " ").collect::<String>()
        };
        pieces.into_iter().map(words).collect::<String>()
    });
    // Some keys may occur more than once.
    proptest::collection::vec((0..9_u32, text), 1..12)
        .prop_map(|all| all.into_iter().map(|(key, text)| (format!("key-{key}"), text)).collect())
}

fn part_bytes(folder: &Path) -> Vec<Vec<u8>> {
    let files: BTreeMap<_, _> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "part"))
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect();
    files.into_values().collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, ..ProptestConfig::default() })]

    #[test]
    fn index_after_deletions_answers_like_an_index_of_remaining_documents(
        texts in texts(),
        question in texts(),
        t in 2..10_usize,
        cuts in any::<[prop::sample::Index; 2]>(),
        gone in proptest::collection::hash_set(0..12_u32, 0..5),
        later in proptest::collection::hash_set(0..12_u32, 0..3),
    ) {
        let shape = Shape::words(t);
        let bench = tempfile::tempdir().unwrap();
        let folder = bench.path().join("index");
        let mut cuts = cuts.map(|cut| cut.index(texts.len()));
        cuts.sort_unstable();
        for part in [&texts[..cuts[0]], &texts[cuts[0]..cuts[1]], &texts[cuts[1]..]] {
            append(&folder, shape, part);
        }
        let question: String = question.into_iter().map(|(_, text)| text).collect();
        let before = PassageIndex::open(&folder).unwrap();
        let answer_before = by_key(&before, &question);

        let (mut left, mut deleted) = (texts.clone(), 0);
        for keys in [&gone, &later] {
            let keys: HashSet<Vec<u8>> = keys.iter().map(|key| format!("key-{key}").into_bytes()).collect();
            let (length, is_there) = (left.len(), |key: &Vec<u8>| left.iter().any(|one| one.0.as_bytes() == &**key));
            let absent = keys.iter().filter(|key| !is_there(key)).count();
            left.retain(|(key, _)| !keys.contains(key.as_bytes()));
            let found = PassageIndex::delete(&folder, &keys).unwrap();
            prop_assert_eq!((found.documents as usize, found.absent as usize), (length - left.len(), absent));
            deleted += length - left.len();
        }
        let index = PassageIndex::open(&folder).unwrap();
        index.verify().unwrap();
        prop_assert_eq!((index.documents() as usize, index.deleted() as usize), (texts.len(), deleted));
        // Compares the answer with the answer of an index of only the remaining documents.
        let other = bench.path().join("other");
        append(&other, shape, &left);
        let expected = PassageIndex::open(&other).unwrap();
        let answer = by_key(&expected, &question);
        prop_assert_eq!(by_key(&index, &question), answer.clone());
        prop_assert_eq!(sources(&index, &question), sources(&expected, &question));

        let compacted = PassageIndex::compact(&folder, 0).unwrap().expect("three parts");
        prop_assert_eq!((compacted.parts, compacted.dropped as usize), (3, deleted));
        prop_assert_eq!(part_bytes(&folder), part_bytes(&other));
        let merged = PassageIndex::open(&folder).unwrap();
        merged.verify().unwrap();
        prop_assert_eq!((merged.parts(), merged.documents() as usize, merged.deleted()), (1, left.len(), 0));
        prop_assert_eq!(by_key(&merged, &question), answer);
        prop_assert_eq!(PassageIndex::compact(&folder, 0).unwrap(), None);
        // A reader that opened the index before must still find the deleted documents.
        prop_assert_eq!(by_key(&before, &question), answer_before);
    }

    /// With a limit, the answer has the first documents of the full answer, each with all of its matches.
    #[test]
    fn limited_answer_is_a_prefix_of_the_full_answer(
        texts in texts(),
        question in texts(),
        (t, documents, places) in (2..8_usize, 0..6_usize, 1..6_usize),
    ) {
        let bench = tempfile::tempdir().unwrap();
        let folder = bench.path().join("index");
        let cut = texts.len() / 2;
        append(&folder, Shape::words(t), &texts[..cut]);
        append(&folder, Shape::words(t), &texts[cut..]);
        let index = PassageIndex::open(&folder).unwrap();
        let question: String = question.into_iter().map(|(_, text)| text).collect();
        let mut all = find(&index, &question, Limits::NONE);
        prop_assert_eq!(all.documents_found as usize, all.documents.len());
        prop_assert_eq!(all.capped, 0);
        let bounded = find(&index, &question, Limits { places, ..Limits::NONE });
        // If the answer is incomplete, it must report capped fingerprints.
        prop_assert!(bounded.capped > 0 || bounded == all);
        for one in &bounded.documents {
            prop_assert!(all.documents.iter().any(|other| other.document == one.document && one.words <= other.words));
        }
        all.documents.truncate(documents);
        prop_assert_eq!(find(&index, &question, Limits { documents, ..Limits::NONE }), all);
    }
}

fn some_texts(prefix: &str) -> Vec<(String, String)> {
    let words =
        |from: u32| (from..from + 30).map(|number| format!("w{} ", number % 23)).collect::<Vec<_>>().concat();
    let texts = [words(0), words(7), "short".into(), words(19) + "and more"];
    texts.into_iter().enumerate().map(|(number, text)| (format!("{prefix}{number}"), text)).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "LOCK")
        .collect();
    names.sort();
    names
}

/// A change writes files, then the list, then removes files. A crash therefore leaves the old list with some additional
/// files, or the new list with some obsolete files. Checks for each such state that the index opens, that it gives the
/// answer of its list, and that the next writer removes the other files. Returns the number of states.
fn check_states(bench: &Path, (before, after): (&Path, &Path), question: &str) -> u32 {
    let mut states = 0;
    for (base, other) in [(before, after), (after, before)] {
        let answer = by_key(&PassageIndex::open(base).unwrap(), question);
        let mut more = names(other);
        more.retain(|name| !names(base).contains(name));
        for bits in 0..1_u32 << more.len() {
            let state = bench.join("state");
            copy(base, &state);
            for (bit, name) in more.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1) {
                // Some of the additional files are only half written.
                let bytes = fs::read(other.join(name)).unwrap();
                fs::write(state.join(name), &bytes[..bytes.len() / (1 + bit % 2)]).unwrap();
            }
            fs::write(state.join(".twindex-tmp-1"), "half").unwrap();
            let index = PassageIndex::open(&state).unwrap();
            index.verify().unwrap();
            assert_eq!(by_key(&index, question), answer, "{bits:b} of {more:?}");
            drop(index);
            // The next writer must remove all files that the list of parts does not name.
            PassageIndex::delete(&state, &keys("nobody")).unwrap();
            assert_eq!(names(&state), names(base), "{bits:b} of {more:?}");
            fs::remove_dir_all(&state).unwrap();
            states += 1;
        }
    }
    states
}

fn keys(key: &str) -> HashSet<Vec<u8>> {
    HashSet::from([key.as_bytes().to_vec()])
}

#[test]
fn every_crash_leaves_the_index_before_or_after_the_change() {
    let bench = tempfile::tempdir().unwrap();
    let folder = bench.path().join("index");
    append(&folder, Shape::words(6), &some_texts("a"));
    append(&folder, Shape::words(6), &some_texts("b"));
    let question = &some_texts("a")[3].1;
    let steps: [&dyn Fn(&Path); 3] = [
        &|folder| assert_eq!(PassageIndex::delete(folder, &keys("a1")).unwrap().documents, 1),
        &|folder| assert_eq!(PassageIndex::delete(folder, &keys("a3")).unwrap().documents, 1),
        &|folder| assert_eq!(PassageIndex::compact(folder, 0).unwrap().unwrap().dropped, 2),
    ];
    for (number, step) in steps.into_iter().enumerate() {
        let before = bench.path().join(format!("before{number}"));
        copy(&folder, &before);
        step(&folder);
        let answers = [&before, &folder].map(|folder| by_key(&PassageIndex::open(folder).unwrap(), question));
        assert!(answers[0] != answers[1] || number == 2);
        let states = check_states(bench.path(), (&before, &folder), question);
        assert!(states >= 3, "{states}");
    }
    assert_eq!(names(&folder).len(), 2, "{:?}", names(&folder));
}

/// Nine parts of one size are merged, but eight are not. A larger part before them is not changed.
#[test]
fn ninth_part_of_a_tier_triggers_a_merge_that_survives_crashes() {
    let bench = tempfile::tempdir().unwrap();
    let (folder, shape) = (bench.path().join("index"), Shape::words(6));
    let words = |number: u32| format!("w{} ", number.wrapping_mul(2_654_435_761) >> 8);
    let large = [("large".to_owned(), (0..1_200_000).map(words).collect::<String>())];
    append(&folder, shape, &large);
    let first = part_bytes(&folder).remove(0);
    assert!(first.len() > 8 << 20, "{} bytes are of tier 0", first.len());
    let mut all = large.to_vec();
    for day in 0..9 {
        assert_eq!(PassageIndex::merge(&folder, 0).unwrap(), None, "{day} small parts");
        let texts = some_texts(&format!("day{day}-"));
        append(&folder, shape, &texts);
        all.extend(texts);
    }
    assert_eq!(PassageIndex::delete(&folder, &keys("day4-2")).unwrap().documents, 1);
    all.retain(|(key, _)| key != "day4-2");
    let question = &some_texts("a")[3].1;
    let answer = by_key(&PassageIndex::open(&folder).unwrap(), question);
    let merged = PassageIndex::merge(&folder, 0).unwrap().expect("nine small parts");
    assert_eq!((merged.parts, merged.dropped), (9, 1));
    assert!(merged.bytes.1 < merged.bytes.0, "{merged:?}");
    let index = PassageIndex::open(&folder).unwrap();
    index.verify().unwrap();
    assert_eq!((index.parts(), index.documents(), index.deleted()), (2, 1 + 4 * 9 - 1, 0));
    assert_eq!(by_key(&index, question), answer);
    assert_eq!(part_bytes(&folder)[0], first);
    let small = bench.path().join("small");
    append(&small, shape, &all[1..]);
    assert_eq!(part_bytes(&folder)[1..], part_bytes(&small), "as if they had been added together");
    assert_eq!(PassageIndex::merge(&folder, 0).unwrap(), None);
    assert_eq!(names(&folder).len(), 3, "{:?}", names(&folder));

    let states = bench.path().join("small-days");
    for day in 0..9 {
        append(&states, shape, &some_texts(&format!("day{day}-")));
    }
    let before = bench.path().join("nine");
    copy(&states, &before);
    PassageIndex::merge(&states, 0).unwrap().expect("nine small parts");
    assert_eq!(check_states(bench.path(), (&before, &states), question), 2 + (1 << 9));
    let nothing = bench.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    assert!(matches!(PassageIndex::merge(&nothing, 0), Err(Error::NotAnIndex { .. })));
    assert_eq!(names(&nothing), [""; 0]);
}

#[test]
fn damaged_list_of_deletions_is_an_error() {
    let bench = tempfile::tempdir().unwrap();
    let folder = bench.path().join("index");
    append(&folder, Shape::words(6), &some_texts("a"));
    PassageIndex::delete(&folder, &HashSet::from([b"a1".to_vec(), b"a2".to_vec()])).unwrap();
    for name in ["passages-000002.gone", "PASSAGES"] {
        let path = folder.join(name);
        let bytes = fs::read(&path).unwrap();
        let refused = |damaged: &[u8], what: &str| {
            fs::write(&path, damaged).unwrap();
            let error = PassageIndex::open(&folder).expect_err(what);
            assert!(error.is_corruption() && error.to_string().contains(name), "{what}: {error}");
        };
        for_each_damage(&bytes, refused);
        fs::write(&path, &bytes).unwrap();
    }
    let gone = folder.join("passages-000002.gone");
    fs::remove_file(gone).unwrap();
    assert!(matches!(PassageIndex::open(&folder), Err(Error::Io { .. })), "a file that is not there");
    let nothing = bench.path().join("nothing");
    fs::create_dir(&nothing).unwrap();
    assert!(matches!(PassageIndex::compact(&nothing, 0), Err(Error::NotAnIndex { .. })));
    assert!(matches!(PassageIndex::delete(&nothing, &HashSet::new()), Err(Error::NotAnIndex { .. })));
    assert_eq!(names(&nothing), [""; 0]);
}
