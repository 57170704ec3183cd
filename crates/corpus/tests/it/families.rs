//! Tests large families of near documents: the kept documents follow the rule, and their comparisons are limited by
//! `max_work`.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fs;

use crate::corpora::{Random, shingles};
use twindex::params::Widths;
use twindex_corpus::{Dedup, Near};

/// Returns texts from two templates, in which some words are replaced. Two texts of a template share most shingles, and
/// some of them are near. All texts start with the same words.
fn family(count: usize) -> Vec<String> {
    let mut random = Random(5);
    let beginning: Vec<String> = (0..10).map(|at| format!("all{at}")).collect();
    let template = |of: usize| (0..60).map(move |at| format!("t{of}x{at}"));
    let of_each = |_| {
        let mut text: Vec<String> = template(random.below(2)).collect();
        for _ in 0..random.below(5) {
            let at = random.below(text.len());
            text[at] = format!("w{}", random.below(40));
        }
        [beginning.clone(), text].concat().join(" ")
    };
    (0..count).map(of_each).collect()
}

/// Returns a map from the key of each removed text to the key of the text that is kept for it by the rule. Compares each
/// text, in this order, with all kept texts.
fn by_rule(order: &[usize], is_near: impl Fn(usize, usize) -> bool) -> BTreeMap<String, String> {
    let (mut goes, mut kept) = (BTreeMap::new(), Vec::new());
    for &text in order {
        match kept.iter().find(|&&other| is_near(text, other)) {
            Some(&other) => _ = goes.insert(key(text), key(other)),
            None => kept.push(text),
        }
    }
    goes
}

fn key(text: usize) -> String {
    format!("{text:04}")
}

#[test]
fn large_families_follow_the_rule_with_a_bounded_number_of_comparisons() {
    let texts = family(500);
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.jsonl");
    let line = |(at, text): (usize, &String)| format!("{{\"id\":\"{}\",\"text\":\"{text}\"}}\n", key(at));
    fs::write(&input, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    let sets: Vec<_> = texts.iter().map(|text| shingles(text, 3)).collect();
    let mut kept_by = Vec::new();
    for near in [Near::Resemblance(0.8), Near::Containment(0.8)] {
        let mut order: Vec<usize> = (0..texts.len()).collect();
        if near != Near::Resemblance(0.8) {
            order.sort_by_key(|&text| Reverse(sets[text].len()));
        }
        let wanted = by_rule(&order, |a, b| {
            let both = sets[a].intersection(&sets[b]).count();
            let of = match near {
                Near::Containment(_) => sets[a].len(),
                _ => sets[a].len() + sets[b].len() - both,
            };
            10 * both >= 8 * of
        });
        let job = |max_work| {
            let mut job = Dedup::new([&input], dir.path().join("out"));
            (job.rule.near, job.rule.max_work, job.results.force) = (Some(near), max_work, true);
            job.text.words = Some(Widths::one(3).unwrap());
            job.resources.memory = 1 << 20;
            job
        };
        let report = job(None).run().unwrap();
        let table = fs::read_to_string(dir.path().join("out/pairs.tsv")).unwrap();
        let rows = table.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>());
        let found: BTreeMap<_, _> = rows.map(|row| (row[0].to_owned(), row[1].to_owned())).collect();
        assert_eq!(found, wanted, "{near}");
        assert_eq!(report.kept, report.input.documents - wanted.len() as u64);
        let pairs = (texts.len() * texts.len()) as u64 / 2;
        assert!(report.candidates < pairs, "{near}: {}", report.candidates);
        // Exceeding the limit of comparisons is an error.
        let error = format!("{:#}", job(Some(report.candidates - 1)).run().unwrap_err());
        assert!(error.contains("comparisons with kept sets"), "{error}");
        assert_eq!(job(Some(report.candidates)).run().unwrap().kept, report.kept);
        kept_by.push(report.kept);
    }
    assert!(kept_by.iter().all(|&kept| (3..400).contains(&kept)), "a test of something: {kept_by:?}");
}
