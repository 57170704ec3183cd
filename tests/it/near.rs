//! Tests that an index stores its near relation when it is created, and that `near`, `admit` and later users of the index
//! apply it; a writer or a query may override it. Earlier versions dropped duplicates at a resemblance of 0.8 in indexes
//! whose bands were chosen for 0.95, and reported documents as near because they shared a band, without estimating their
//! resemblance.

use std::path::Path;

use twindex::params::{Near, Preset, Shingling, Tokens};
use twindex::store::OnConflict;
use twindex::{Admitted, Error, Fingerprint, GROUP_QUESTIONS, Index, Params, WriterOptions};

use crate::support::Random;

/// Returns a text of `shared` words that occur in all documents and `own` words that occur only in this document.
fn text(name: &str, shared: usize, own: usize) -> String {
    let shared = (0..shared).map(|number| format!("shared{number}"));
    shared.chain((0..own).map(|number| format!("{name}{number}"))).collect::<Vec<_>>().join(" ")
}

/// Two near documents. Shingles are words: with 190 of 200 words in common, the resemblance is 190/210 = 0.905. The
/// documents of `far` have 140 words in common: 140/260 = 0.538.
fn close() -> [(&'static str, String); 2] {
    [("a", text("a", 190, 10)), ("b", text("b", 190, 10))]
}

fn far() -> [(&'static str, String); 2] {
    [("a", text("a", 140, 60)), ("b", text("b", 140, 60))]
}

/// Returns parameters whose bands find both pairs, and whose signatures are long enough to distinguish the pairs.
fn minhash(near: Near) -> Params {
    Params::builder().words(1).minhash(200, 2).near(near).build().unwrap()
}

fn resembling(threshold: f64) -> Near {
    Near::resembling(threshold).unwrap()
}

/// Returns whether the second document is a duplicate of the first, in a new index at `path`.
fn second_is_duplicate(
    path: &Path,
    params: Params,
    documents: &[(&str, String); 2],
    options: WriterOptions,
) -> bool {
    let index = Index::create(path, params).unwrap();
    let sketcher = index.sketcher().unwrap();
    let [(first, one), (second, other)] = documents;
    let mut writer = index.writer().unwrap();
    assert_eq!(writer.admit(*first, &sketcher.sketch(one).unwrap()).unwrap(), Admitted::New);
    writer.commit().unwrap();
    drop(writer);
    // A later user of the index gets the stored relation.
    let index = Index::open(path).unwrap();
    let near = index.snapshot().near(&sketcher.sketch(other).unwrap()).run().unwrap().hits;
    let mut writer = index.writer_with(options).unwrap();
    let admitted = writer.admit(*second, &sketcher.sketch(other).unwrap()).unwrap();
    let is_duplicate = matches!(&admitted, Admitted::Duplicate(hit) if hit.key.to_string() == *first);
    assert!(is_duplicate || admitted == Admitted::New, "{admitted:?}");
    assert_eq!(
        near.len(),
        usize::from(stored_relation_says(&index, documents)),
        "{:?}",
        index.params().near()
    );
    is_duplicate
}

/// Returns whether the resemblance of these documents reaches the stored threshold.
fn stored_relation_says(index: &Index, [(_, one), (_, other)]: &[(&str, String); 2]) -> bool {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<std::collections::BTreeSet<_>>();
    let (one, other) = (words(one), words(other));
    let resemblance = one.intersection(&other).count() as f64 / one.union(&other).count() as f64;
    index.params().near().threshold.is_some_and(|threshold| resemblance >= threshold.value())
}

#[test]
fn admit_and_near_use_the_stored_threshold() {
    let dir = tempfile::tempdir().unwrap();
    for (threshold, documents, expected) in
        [(0.8, close(), true), (0.98, close(), false), (0.4, far(), true), (0.8, far(), false)]
    {
        let path = dir.path().join(format!("{threshold}-{expected}"));
        let found =
            second_is_duplicate(&path, minhash(resembling(threshold)), &documents, WriterOptions::default());
        assert_eq!(found, expected, "{threshold}");
    }
}

#[test]
fn writer_may_use_another_threshold_than_the_stored_one() {
    let dir = tempfile::tempdir().unwrap();
    for (stored, asked, documents, expected) in [
        (0.8, 0.98, close(), false),
        (0.98, 0.8, close(), true),
        (0.8, 0.4, far(), true),
        (0.4, 0.8, far(), false),
    ] {
        let path = dir.path().join(format!("{stored}-{asked}"));
        let options = WriterOptions::default().near(resembling(asked));
        let found = second_is_duplicate(&path, minhash(resembling(stored)), &documents, options);
        assert_eq!(found, expected, "{asked} instead of {stored}");
    }
}

#[test]
fn resemblance_alone_decides_if_no_distance_is_given() {
    let dir = tempfile::tempdir().unwrap();
    let both = |near: Near| Params::builder().words(1).simhash(3).minhash(200, 2).near(near).build().unwrap();
    // The fingerprints differ in few bits, so a radius of 10 makes the documents near at any resemblance.
    let documents = [("a", text("a", 198, 2)), ("b", text("b", 198, 2))];
    for (number, (near, expected)) in [
        (resembling(0.999).or_within(10), true),
        (resembling(0.999), false),
        (Near::within(10), true),
        (resembling(0.9), true),
    ]
    .into_iter()
    .enumerate()
    {
        let index = Index::create(dir.path().join(number.to_string()), both(near)).unwrap();
        let sketcher = index.sketcher().unwrap();
        let sketches = documents.each_ref().map(|(_, text)| sketcher.sketch(text).unwrap());
        let mut writer = index.writer().unwrap();
        writer.admit("a", &sketches[0]).unwrap();
        let admitted = writer.admit("b", &sketches[1]).unwrap();
        assert_eq!(matches!(admitted, Admitted::Duplicate(_)), expected, "{near}: {admitted:?}");
        writer.commit().unwrap();
        let snapshot = index.snapshot();
        let found = snapshot.near(&sketches[1]).run().unwrap().hits.len();
        assert_eq!(found, 1 + usize::from(expected), "{near}");
        // A query can override the relation.
        let all = snapshot.near_by(&sketches[1], resembling(0.999).or_within(10)).run().unwrap().hits.len();
        assert_eq!(all, 2);
    }
}

/// Returns texts that mostly repeat one thing, so that their fingerprints are close although they have little in common:
/// text with the same word misread again and again, reads of a sequencer with long runs of A, tables whose cells are
/// mostly empty, and tables of contents with dot leaders.
fn repetitive() -> Vec<(Shingling, Vec<String>)> {
    let words =
        |name: &str, count: usize| (0..count).map(|number| format!("{name}{number}")).collect::<Vec<_>>();
    let of_each = |text: &dyn Fn(&str) -> String| ["one", "two", "three"].map(text).to_vec();
    let bases = |name: &str| {
        let mut random = Random(name.bytes().map(u64::from).sum());
        (0..40).map(|_| ["A", "C", "G", "T"][random.below(4)]).collect::<String>()
    };
    let characters = Shingling::words(9, 0).with_tokens(Tokens::Characters).unwrap();
    let symbols = Shingling::words(5, 0).with_tokens(Tokens::WordsSymbols).unwrap();
    vec![
        (Shingling::words(5, 0), of_each(&|name| "la ".repeat(500) + &words(name, 15).join(" "))),
        (Shingling::words(3, 0), of_each(&|name| words(name, 4).join("\t") + &"\tNA".repeat(300))),
        (characters, of_each(&|name| "A".repeat(900) + &bases(name))),
        (symbols, of_each(&|name| words(name, 3).join(&".".repeat(700)))),
    ]
}

#[test]
fn documents_that_only_repeat_the_same_are_near_if_a_distance_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    for (number, (shingling, texts)) in repetitive().into_iter().enumerate() {
        let builder = || Params::builder().shingling(shingling.clone()).simhash(3).preset(Preset::LSH_20X6);
        let asked = resembling(0.8).or_within(3);
        for (params, is_near) in [
            (builder().sets().marks(), false),
            (builder(), false),
            (builder().near(asked).sets().marks(), true),
            (Params::builder().shingling(shingling.clone()).simhash(3).marks(), true),
        ]
        .map(|(builder, is_near)| (builder.build().unwrap(), is_near))
        {
            let path = dir.path().join(format!("{number}-{:x}", params.digest()));
            drop(Index::create(&path, params).unwrap());
            let index = Index::open(&path).unwrap();
            let sketcher = index.sketcher().unwrap();
            let sketches: Vec<_> = texts.iter().map(|text| sketcher.sketch(text).unwrap()).collect();
            let mut writer = index.writer().unwrap();
            let keys = ["one", "two", "three"];
            for (key, sketch) in keys.into_iter().zip(&sketches) {
                let admitted = writer.admit(key, sketch).unwrap();
                let found = matches!(&admitted, Admitted::Duplicate(hit) if hit.key.as_str() == Some("one"));
                assert_eq!(found, is_near && key != "one", "{number} {key}: {admitted:?}");
                assert!(found || admitted == Admitted::New, "{admitted:?}");
            }
            writer.commit().unwrap();
            let snapshot = index.snapshot();
            for (key, sketch) in keys.into_iter().zip(&sketches) {
                let hits = snapshot.near(sketch).run().unwrap().hits;
                assert_eq!(hits.len(), if is_near { texts.len() } else { 1 }, "{number}: {hits:?}");
                // The fingerprints are stored, whatever the relation is.
                assert_eq!(hits[0].distance, Some(0));
                let close = snapshot.within(sketch.fingerprint().unwrap(), 3).run().unwrap().hits;
                assert_eq!(close.len(), texts.len());
                let size = snapshot.group_size(key, GROUP_QUESTIONS).unwrap().unwrap().decided();
                assert_eq!(size, Some(if is_near { texts.len() as u64 } else { 1 }));
            }
        }
    }
}

#[test]
fn query_beyond_the_radius_of_the_tables_misses_no_document() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().u64_keys().simhash(3).near(Near::within(1)).build().unwrap();
    let index = Index::create(dir.path().join("x"), params).unwrap();
    let mut writer = index.writer().unwrap();
    writer.admit(0, Fingerprint(0)).unwrap();
    let is_duplicate = |writer: &mut twindex::Writer, key: u64, fingerprint| {
        matches!(writer.admit(key, Fingerprint(fingerprint)).unwrap(), Admitted::Duplicate(_))
    };
    writer.set_options(writer.options().drop_duplicates(true)).unwrap();
    assert!(is_duplicate(&mut writer, 1, 1));
    assert!(!is_duplicate(&mut writer, 2, 0b1_1000_0000 << 40));
    for (radius, expected) in [(3, false), (4, true), (5, true)] {
        writer.set_options(writer.options().near(Near::within(radius))).unwrap();
        assert_eq!(is_duplicate(&mut writer, 10, 0b1111), expected, "{radius}");
        if !expected {
            writer.delete(10).unwrap();
        }
    }
    for near in [Near::within(11), resembling(0.9)] {
        assert!(matches!(writer.set_options(writer.options().near(near)), Err(Error::Invalid(_))));
    }
    assert!(is_duplicate(&mut writer, 11, 0b1111), "options that are refused change nothing");
    drop(writer);
    let refused = index.writer_with(WriterOptions::default().near(resembling(0.9)));
    assert!(matches!(refused, Err(Error::Invalid(_))));
    index.writer().unwrap();
}

#[test]
fn shared_band_alone_is_no_match_unless_unverified_is_set() {
    let dir = tempfile::tempdir().unwrap();
    let params = Params::builder().words(1).minhash(200, 2).signature_bits(0).build().unwrap();
    let index = Index::create(dir.path().join("x"), params).unwrap();
    let sketcher = index.sketcher().unwrap();
    let [one, other] = far().map(|(_, text)| sketcher.sketch(&text).unwrap());
    let mut writer = index.writer().unwrap();
    assert!(matches!(writer.admit("a", &one), Err(Error::Invalid(_))));
    writer.set_options(writer.options().unverified(true)).unwrap();
    assert_eq!(writer.admit("a", &one).unwrap(), Admitted::New);
    match writer.admit("b", &other).unwrap() {
        Admitted::Duplicate(hit) => assert!(hit.resemblance.is_none()),
        other => panic!("{other:?}"),
    }
    writer.set_options(writer.options().unverified(false)).unwrap();
    assert!(matches!(writer.admit("c", &other), Err(Error::Invalid(_))));
    assert_eq!(writer.admit("empty", &sketcher.sketch("").unwrap()).unwrap(), Admitted::New);
    writer.commit().unwrap();
    let snapshot = index.snapshot();
    assert_eq!(snapshot.documents(), 3);
    for refused in [snapshot.near(&other), snapshot.resembling(&other, 0.99)] {
        let error = refused.run().unwrap_err().to_string();
        assert!(error.contains("keeps no signatures"), "{error}");
    }
    assert!(snapshot.resembling(&other, 0.99).any().is_err());
    assert!(snapshot.resembling(&other, 0.99).count().is_err());
    for answered in [snapshot.near(&other).unverified(), snapshot.resembling(&other, 0.0)] {
        assert_eq!(answered.run().unwrap().hits.len(), 2);
    }
}

#[test]
fn sketches_do_not_depend_on_the_near_relation() {
    let dir = tempfile::tempdir().unwrap();
    let index = Index::create(dir.path().join("x"), minhash(resembling(0.8))).unwrap();
    let elsewhere = twindex::Sketcher::new(&minhash(resembling(0.95))).unwrap();
    let [(_, one), (_, other)] = close();
    let mut writer = index.writer().unwrap();
    writer.put("a", &elsewhere.sketch(&one).unwrap()).unwrap();
    writer.commit().unwrap();
    assert_eq!(index.snapshot().near(&elsewhere.sketch(&other).unwrap()).run().unwrap().hits.len(), 1);
}

#[test]
fn indexes_with_different_near_relations_are_not_merged() {
    let dir = tempfile::tempdir().unwrap();
    let made = |name: &str, near: Near| {
        let params = Params::builder().words(1).simhash(3).minhash(20, 6).near(near).build().unwrap();
        Index::create(dir.path().join(name), params).unwrap()
    };
    let usual = made("usual", resembling(0.8).or_within(3));
    for (name, near) in [("high", resembling(0.9).or_within(3)), ("alone", resembling(0.8))] {
        for shards in [[usual.clone(), made(name, near)], [made(&format!("{name}2"), near), usual.clone()]] {
            let into = dir.path().join("merged");
            match Index::merge(&into, &shards, OnConflict::Refuse, 1 << 20) {
                Err(Error::ParamsDiffer { first, .. }) => {
                    assert_eq!(first.0, "near");
                    assert_eq!(first.1, [shown(&shards[0]), shown(&shards[1])]);
                }
                other => panic!("{other:?}"),
            }
            assert!(!into.exists());
        }
    }
}

fn shown(index: &Index) -> String {
    index.params().near().to_string()
}
