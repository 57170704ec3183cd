//! Tests the rule of `dedup` against its definition on many small corpora.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::corpora::{Random, TextFields, by_definition, cases, shingles, texts};
use twindex::params::{Shingling, Widths};
use twindex_corpus::{
    Dedup, DedupTexts, FieldNumber, InvalidOptions, Keep, Near, Resources, Rule, TextAttributes, Weights,
};

#[test]
fn leaders_rule_holds_in_every_input_order_and_for_every_measure() {
    let (mut removed, mut all) = (0, 0);
    for seed in 0..cases() {
        let texts = texts(seed);
        let bytes: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let width = 1 + (seed % 3) as usize;
        let percent = [5, 50, 80, 90, 100][(seed / 3 % 5) as usize];
        let threshold: f64 = format!("{}.{:02}", percent / 100, percent % 100).parse().unwrap();
        for keep in [Keep::First, Keep::Longest] {
            for near in [Near::Resemblance(threshold), Near::Containment(threshold)] {
                let shingling = Shingling::words(width as u8, 0);
                let memory = if seed % 2 == 0 { 1 << 16 } else { 1 << 24 };
                let rule = Rule { near: Some(near), keep: keep.clone().into(), ..Rule::default() };
                let resources = Resources { memory, ..Resources::default() };
                let job = DedupTexts { rule, shingling, resources, ..DedupTexts::default() };
                let found = job.run(&bytes).unwrap();
                let wanted =
                    by_definition(&texts, &vec![TextFields::default(); texts.len()], &job, width, percent);
                assert_eq!(found.kept_of, wanted, "{seed} {keep:?} {near} {percent} of {width}: {texts:?}");
                let goes = (0..).zip(&wanted).filter(|&(text, &kept)| text != kept);
                let pairs: Vec<(u32, u32)> = goes.map(|(text, &kept)| (text, kept)).collect();
                assert_eq!(found.pairs.iter().map(|pair| (pair.0, pair.1)).collect::<Vec<_>>(), pairs);
                assert!(found.pairs.iter().all(|&(.., score)| score >= threshold), "{seed}");
                removed += pairs.len();
                all += texts.len();
            }
        }
    }
    assert!(removed * 5 > all && removed * 5 < all * 4, "a test of something: {removed} of {all}");
}

/// Returns a number for a field. Whole numbers are integers half of the time.
fn number(halves: i32) -> FieldNumber {
    let whole = (halves % 4 == 0).then_some(halves / 2).map(i128::from);
    let number = whole.map_or_else(|| FieldNumber::float(f64::from(halves) / 2.0), FieldNumber::integer);
    number.expect("neither infinite nor of many bits")
}

#[test]
fn leaders_rule_holds_for_priority_numbers_and_within_each_value_of_the_inside_field() {
    let (mut removed, mut across, mut all) = (0, 0, 0);
    for seed in 0..cases() {
        let texts = texts(seed);
        let bytes: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let mut random = Random(seed ^ 0xbe51);
        let values = 1 + random.below(3);
        // Few distinct numbers, so that many are equal; some are negative.
        let beside: Vec<TextFields> = texts
            .iter()
            .map(|_| TextFields {
                value: random.below(values),
                halves: [-3, -2, -1, 0, 1, 2, 3][random.below(7)],
            })
            .collect();
        let numbers: Vec<FieldNumber> = beside.iter().map(|one| number(one.halves)).collect();
        let names = ["en", "de", "a source with a longer name"];
        let inside: Vec<&[u8]> = beside.iter().map(|one| names[one.value].as_bytes()).collect();
        let width = 1 + (seed % 3) as usize;
        let percent = [5, 50, 80, 90, 100][(seed / 3 % 5) as usize];
        let threshold: f64 = format!("{}.{:02}", percent / 100, percent % 100).parse().unwrap();
        for (keep, near) in [
            (Keep::Max("score".into()), Near::Resemblance(threshold)),
            (Keep::Min("score".into()), Near::Containment(threshold)),
            (Keep::Longest, Near::Resemblance(threshold)),
        ] {
            let shingling = Shingling::words(width as u8, 0);
            let memory = if seed % 2 == 0 { 1 << 16 } else { 1 << 24 };
            let lists = [&numbers[..]];
            let numbers = if keep.field().is_some() { &lists[..] } else { &[] };
            let rule = Rule { near: Some(near), keep: keep.clone().into(), ..Rule::default() };
            let resources = Resources { memory, ..Resources::default() };
            let job = DedupTexts { rule, shingling, resources, ..DedupTexts::default() };
            let given = TextAttributes { numbers, inside: Some(&inside), ..TextAttributes::default() };
            let found = job.run_with_attributes(&bytes, given).unwrap();
            let wanted = by_definition(&texts, &beside, &job, width, percent);
            assert_eq!(found.kept_of, wanted, "{seed} {keep:?} {near} {percent} of {width}: {texts:?}");
            let goes = |wanted: &[u32]| (0..).zip(wanted).filter(|&(text, &kept)| text != kept).count();
            removed += goes(&wanted);
            let alike: Vec<TextFields> = beside.iter().map(|one| TextFields { value: 0, ..*one }).collect();
            across += goes(&by_definition(&texts, &alike, &job, width, percent));
            all += texts.len();
        }
    }
    assert!(
        removed * 8 > all && removed * 10 < across * 9,
        "a test of something: {removed}, {across} of {all}"
    );
}

/// Returns the first two columns of a table: the document, and the document for which it was removed or that contains
/// it.
fn first_columns(path: &Path) -> BTreeMap<String, String> {
    let table = fs::read_to_string(path).unwrap();
    let rows = table.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>());
    rows.map(|columns| (columns[0].to_owned(), columns[1].to_owned())).collect()
}

#[test]
fn containment_removes_new_documents_and_reports_history_documents() {
    let dir = tempfile::tempdir().unwrap();
    let (mut dropped, mut contained) = (0, 0);
    for seed in 0..cases() / 6 {
        let texts = texts(seed ^ 0x00c0_77a1);
        let (width, percent) = (1 + (seed % 3) as usize, [50, 80, 100][(seed / 3 % 3) as usize]);
        let sets: Vec<_> = texts.iter().map(|text| shingles(text, width)).collect();
        let (old, new) = (0..texts.len() / 2, texts.len() / 2..texts.len());
        let write = |name: &str, part: std::ops::Range<usize>| {
            let line = |at: usize| format!("{{\"id\":\"{at:03}\",\"text\":\"{}\"}}\n", texts[at]);
            fs::write(dir.path().join(name), part.map(line).collect::<String>()).unwrap();
        };
        write("old.jsonl", old.clone());
        write("new.jsonl", new.clone());
        let run = |input: &str, out: &str, against: &[&str]| {
            let mut dedup = Dedup::new([dir.path().join(input)], dir.path().join(out));
            dedup.results.force = true;
            dedup.rule.near = Some(Near::Containment(percent as f64 / 100.0));
            dedup.text.words = Some(Widths::one(width as u8).unwrap());
            dedup.resources.memory = 1 << 20;
            dedup.scope.against = against.iter().map(|name| dir.path().join(name)).collect();
            dedup.run().unwrap()
        };
        run("old.jsonl", "old", &[]);
        let report = run("new.jsonl", "new", &["old"]);

        let is_contained = |text: usize, other: usize| {
            let both = sets[text].intersection(&sets[other]).count();
            let is_part = sets[other].len() >= sets[text].len() && 100 * both >= percent * sets[text].len();
            texts[text] == texts[other] || (both > 0 && is_part)
        };
        let larger_first = |documents: &mut Vec<usize>| {
            documents.sort_by_key(|&text| (Reverse(sets[text].len()), text));
        };
        let clusters = first_columns(&dir.path().join("old/pairs.tsv"));
        let mut history: Vec<usize> = old.filter(|at| !clusters.contains_key(&format!("{at:03}"))).collect();
        larger_first(&mut history);
        let mut documents: Vec<usize> = new.collect();
        larger_first(&mut documents);
        let (mut against, mut kept) = (BTreeMap::new(), Vec::new());
        for text in documents {
            let name = |other: &usize| (format!("{text:03}"), format!("{other:03}"));
            if let Some(other) = history.iter().find(|&&other| is_contained(text, other)) {
                against.extend([name(other)]);
            } else if !kept.iter().any(|&other| is_contained(text, other)) {
                kept.push(text);
            }
        }
        let mut found = BTreeMap::new();
        for &text in history.iter().filter(|&&text| !sets[text].is_empty()) {
            if let Some(other) = kept.iter().find(|&&other| is_contained(text, other)) {
                found.insert(format!("{text:03}"), format!("{other:03}"));
            }
        }
        assert_eq!(first_columns(&dir.path().join("new/against.tsv")), against, "{seed}: {texts:?}");
        assert_eq!(first_columns(&dir.path().join("new/contained.tsv")), found, "{seed}: {texts:?}");
        let counts = (report.dropped, report.contained, report.kept);
        assert_eq!(counts, (Some(against.len() as u64), Some(found.len() as u64), kept.len() as u64));
        dropped += against.len();
        contained += found.len();
    }
    assert!(dropped > 100 && contained > 30, "a test of something: {dropped}, {contained}");
}

#[test]
fn numbers_and_values_must_have_one_entry_for_each_text() {
    let texts = [&b"a"[..], b"b"];
    let numbers = [number(1), number(2), number(3)];
    let rule = Rule { keep: Keep::Max("score".into()).into(), ..Rule::default() };
    let by_max = DedupTexts { rule, ..DedupTexts::default() };
    let first = DedupTexts::default();
    let inside = [&b"x"[..], b""];
    for (job, numbers, inside, part) in [
        (&by_max, None, None, "expected 1 lists of numbers, one for each rule with a field, found 0"),
        (&first, Some(&numbers[..2]), None, "expected 0 lists of numbers"),
        (&by_max, Some(&numbers[..]), None, "numbers: expected 2, one a text, found 3"),
        (&first, None, Some(&inside[..1]), "inside: expected 2, one a text, found 1"),
        (&first, None, Some(&inside[..]), "inside: the value at 1 is empty"),
    ] {
        let error = job
            .run_with_attributes(
                &texts,
                TextAttributes { numbers: numbers.as_slice(), inside, ..TextAttributes::default() },
            )
            .unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(error.is::<InvalidOptions>());
    }
}

#[test]
fn contradicting_options_are_refused() {
    let weighted = |near| Rule { near: Some(near), weights: Weights::Frequencies, ..Rule::default() };
    for (rule, part) in [
        (weighted(Near::Equal), "--weights goes with a resemblance or containment"),
        (weighted(Near::Within(3)), "--weights goes with a resemblance or containment"),
        (
            Rule { near: Some(Near::Equal), max_work: Some(9), ..Rule::default() },
            "--max-work goes with a resemblance or containment",
        ),
        (Rule { near: Some(Near::Within(3)), ..Rule::default() }, "--near within:K compares fingerprints"),
        (Rule { keep: Keep::KeyHash.into(), ..Rule::default() }, "no keys"),
    ] {
        let error = DedupTexts { rule, ..DedupTexts::default() }.run(&[b"a", b"b"]).unwrap_err();
        assert!(error.is::<InvalidOptions>() && error.to_string().contains(part), "{error}");
    }
}
