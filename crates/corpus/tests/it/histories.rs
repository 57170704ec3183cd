//! Compares deduplication of texts in memory with the definition of the rule: with a history, with orders by key, and
//! with weights. Compares runs over parts of a collection with one run over all of it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::corpora::{Random, cases, texts, words};
use twindex::Key;
use twindex::params::Shingling;
use twindex_corpus::{
    Dedup, DedupTexts, IndexOf, InvalidOptions, Keep, Near, RepeatedKeys, Resources, Rule, SharedProgress,
    TextAttributes, Weights,
};

/// Returns the number of occurrences of each shingle in a text; 1 if frequencies are not used.
fn frequencies(text: &str, width: usize, weights: Weights) -> BTreeMap<Vec<&str>, usize> {
    let words = words(text);
    let mut counts = BTreeMap::new();
    if words.len() < width && !words.is_empty() {
        counts.insert(words, 1);
        return counts;
    }
    for run in words.windows(width) {
        let count = counts.entry(run.to_vec()).or_insert(0);
        *count = if weights == Weights::Distinct { 1 } else { *count + 1 };
    }
    counts
}

/// Returns the indices of the texts after the history, in the order in which the texts are processed.
fn in_order(keep: &Keep, texts: &[String], keys: &[&[u8]], history: usize) -> Vec<usize> {
    let key = |text: usize| keys[text - history];
    let mut order: Vec<usize> = (history..texts.len()).collect();
    match keep {
        Keep::KeyHash => order.sort_by_key(|&text| (Key::Bytes(key(text)).priority_hash(), key(text))),
        Keep::SmallestKey => order.sort_by_key(|&text| key(text)),
        Keep::Longest => order.sort_by_key(|&text| Reverse(words(&texts[text]).len())),
        _ => {}
    }
    order
}

#[test]
fn leaders_rule_holds_with_history_with_key_order_and_with_frequencies() {
    let (mut removed, mut for_history, mut contained, mut all) = (0, 0, 0, 0);
    let mut differ = 0;
    for seed in 0..cases() / 6 {
        let texts = texts(seed ^ 0x4157);
        let bytes: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let mut random = Random(seed ^ 0x0c0f_fee0);
        let history = random.below(texts.len() + 1) * random.below(2);
        let names: Vec<String> = (history..texts.len()).map(|_| format!("k{}", random.below(40))).collect();
        let keys: Vec<&[u8]> = names.iter().map(String::as_bytes).collect();
        let width = 1 + (seed % 3) as usize;
        let percent = [5, 50, 80, 90, 100][(seed / 3 % 5) as usize];
        let threshold = percent as f64 / 100.0;
        for (keep, near, weights) in [
            (Keep::First, Near::Resemblance(threshold), Weights::Distinct),
            (Keep::KeyHash, Near::Resemblance(threshold), Weights::Frequencies),
            (Keep::SmallestKey, Near::Containment(threshold), Weights::Distinct),
            (Keep::Longest, Near::Containment(threshold), Weights::Frequencies),
        ] {
            let sets: Vec<_> = texts.iter().map(|text| frequencies(text, width, weights)).collect();
            let size = |text: usize| sets[text].values().sum::<usize>();
            let both = |text: usize, other: usize| -> usize {
                let common =
                    |(run, &count): (&Vec<&str>, &usize)| count.min(*sets[other].get(run).unwrap_or(&0));
                sets[text].iter().map(common).sum()
            };
            let is_by_containment = matches!(near, Near::Containment(_));
            let is_near = |text: usize, other: usize| {
                let (both, size, other_size) = (both(text, other), size(text), size(other));
                texts[text] == texts[other]
                    || if is_by_containment {
                        both > 0 && other_size >= size && 100 * both >= percent * size
                    } else {
                        both > 0 && 100 * both >= percent * (size + other_size - both)
                    }
            };
            let mut order = in_order(&keep, &texts, &keys, history);
            let mut kept: Vec<usize> = (0..history).collect();
            if is_by_containment {
                order.sort_by_key(|&text| Reverse(size(text)));
                kept.sort_by_key(|&text| Reverse(size(text)));
            }
            let mut wanted: Vec<u32> = (0..texts.len() as u32).collect();
            // Equal texts of the history are represented by the first of them.
            for text in 0..history {
                let equal = |&&other: &&usize| texts[other] == texts[text];
                wanted[text] = *kept.iter().find(equal).unwrap() as u32;
            }
            for text in order {
                // An equal text of the history takes precedence over other near texts.
                let equal = |&&other: &&usize| other < history && texts[other] == texts[text];
                let found = kept.iter().find(equal);
                match found.or_else(|| kept.iter().find(|&&other| is_near(text, other))) {
                    Some(&other) => wanted[text] = other as u32,
                    None => kept.push(text),
                }
            }
            let job = DedupTexts {
                rule: Rule { near: Some(near), weights, keep: keep.clone().into(), ..Rule::default() },
                shingling: Shingling::words(width as u8, 0),
                resources: Resources { memory: 1 << 20, ..Resources::default() },
                ..DedupTexts::default()
            };
            let beside = TextAttributes { history, keys: Some(&keys), ..TextAttributes::default() };
            let found = job.run_with_attributes(&bytes, beside).unwrap();
            assert_eq!(
                found.kept_of, wanted,
                "{seed} {history} {keep:?} {near} {percent} of {width}: {texts:?}"
            );
            let gone = (history..texts.len()).filter(|&text| wanted[text] != text as u32);
            let pairs: Vec<(u32, u32)> = gone.map(|text| (text as u32, wanted[text])).collect();
            assert_eq!(found.pairs.iter().map(|pair| (pair.0, pair.1)).collect::<Vec<_>>(), pairs, "{seed}");
            removed += pairs.len();
            for_history += pairs.iter().filter(|pair| (pair.1 as usize) < history).count();
            all += texts.len() - history;
            // Texts of the history that a later, kept text contains.
            let later: Vec<usize> = kept.iter().copied().filter(|&text| text >= history).collect();
            let mut stands = Vec::new();
            for text in (0..history).filter(|&text| is_by_containment && size(text) > 0) {
                let mut larger_first = later.clone();
                larger_first.sort_by_key(|&other| Reverse(size(other)));
                let first = larger_first.iter().find(|&&other| is_near(text, other));
                stands.extend(first.map(|&other| (text as u32, other as u32)));
            }
            let contained_pairs: Vec<_> = found.contained.iter().map(|found| (found.0, found.1)).collect();
            assert_eq!(contained_pairs, stands, "{seed} {history} {keep:?}: {texts:?}");
            contained += contained_pairs.len();
            let rule = Rule { near: Some(near), ..Rule::default() };
            let first = DedupTexts { rule, ..job };
            differ += usize::from(first.run_with_attributes(&bytes, beside).unwrap().kept_of != wanted);
        }
    }
    assert!(
        removed * 5 > all && for_history * 10 > removed && contained > 20 && differ > 40,
        "a test of something: {removed}, {for_history}, {contained}, {differ} of {all}"
    );
}

#[test]
fn options_that_contradict_a_history_are_refused() {
    let texts = [&b"a"[..], b"b"];
    let keys = [&b"x"[..]];
    for (beside, part) in [
        (TextAttributes { history: 3, ..TextAttributes::default() }, "history: expected at most 2, found 3"),
        (
            TextAttributes { keys: Some(&keys), ..TextAttributes::default() },
            "keys: expected 2, one a text, found 1",
        ),
        (
            TextAttributes { history: 2, keys: Some(&keys), ..TextAttributes::default() },
            "keys: expected 0, one a text, found 1",
        ),
    ] {
        let error = DedupTexts::default().run_with_attributes(&texts, beside).unwrap_err();
        assert!(error.to_string().contains(part) && error.is::<InvalidOptions>(), "{error}");
    }
    assert!(
        DedupTexts::default()
            .run_with_attributes(&texts, TextAttributes { history: 2, ..TextAttributes::default() })
            .is_ok()
    );
}

#[test]
fn job_reports_progress_and_stops_on_request() {
    let texts: Vec<String> =
        (0..3000).map(|at| format!("a{at} b{} c d e f g h{}", at % 7, at % 11)).collect();
    let bytes: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let watched = SharedProgress::default();
    let rule = Rule { near: Some(Near::Resemblance(0.5)), ..Rule::default() };
    DedupTexts { rule, ..DedupTexts::default() }
        .run_watched(&bytes, TextAttributes::default(), &watched)
        .unwrap();
    let (stage, done, parts) = watched.now();
    assert!(stage == "comparing" && parts == 3000 && done > 0, "{stage} {done} of {parts}");
    watched.stop();
    let error = DedupTexts::default().run_watched(&bytes, TextAttributes::default(), &watched).unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(twindex::Error::Cancelled)), "{error}");
    assert_eq!(watched.now().0, "shingling");
}

/// The keys of one run over all documents, or of runs over its parts that have the earlier runs as histories.
#[derive(Debug, Default, PartialEq)]
struct Keys {
    kept: BTreeSet<String>,
    removed: BTreeSet<String>,
    numbered: u64,
    skipped: u64,
    /// The line of the document that the run refused, counted over all inputs, and its key.
    refused: Option<(usize, String)>,
}

impl Keys {
    /// Adds the results of a run, whose first document is on the line after `before`.
    fn add(&mut self, job: &Dedup, before: usize) {
        let report = match job.run() {
            Ok(report) => report,
            Err(error) => {
                let message = format!("{error:#}");
                let (place, rest) = message.split_once(": the key `").expect(&message);
                let line = place.rsplit(':').next().unwrap().parse::<usize>().unwrap();
                self.refused = Some((before + line, rest.split('`').next().unwrap().to_owned()));
                return;
            }
        };
        self.numbered += report.input.numbered_keys;
        self.skipped += report.input.repeated_keys;
        for (table, kept) in [("clusters.tsv", 2), ("against.tsv", usize::MAX)] {
            let Ok(rows) = std::fs::read_to_string(job.results.out.join(table)) else { continue };
            for row in rows.lines().skip(1) {
                let fields: Vec<&str> = row.split('\t').collect();
                let is_kept = fields.get(kept) == Some(&fields[0]);
                let keys = if is_kept { &mut self.kept } else { &mut self.removed };
                assert!(keys.insert(fields[0].to_owned()), "{table}: {row}");
            }
        }
    }
}

#[test]
fn runs_against_earlier_results_name_documents_as_one_run_does() {
    let (mut removed, mut numbered, mut skipped, mut refused, mut accepted) = (0, 0, 0, 0, 0);
    for seed in 0..cases() / 50 {
        let texts = texts(seed ^ 0x6b65_7973);
        let mut random = Random(seed ^ 0x0007_0ffe);
        let folder = tempfile::tempdir().unwrap();
        for (repeated, different) in
            [(RepeatedKeys::Number, 12), (RepeatedKeys::First, 12), (RepeatedKeys::Error, 400)]
        {
            let folder = folder.path().join(format!("{repeated:?}"));
            std::fs::create_dir(&folder).unwrap();
            let near = [Near::Resemblance(0.8), Near::Equal, Near::Within(3)][random.below(3)];
            // Some documents already have a key that looks numbered.
            let lines: Vec<String> = texts
                .iter()
                .map(|text| {
                    let number = ["", "", "#2", "#3"][random.below(4)];
                    let most = random.below(different) + 1;
                    let key = random.below(most);
                    format!("{{\"id\":\"k\\t{key}{number}\",\"text\":\"{text}\"}}\n")
                })
                .collect();
            let (first, second) = (random.below(lines.len() + 1), random.below(lines.len() + 1));
            let cuts = [0, first.min(second), first.max(second), lines.len()];
            let job = |name: &str, lines: &[String], against: &[PathBuf]| {
                let input = folder.join(format!("{name}.jsonl"));
                std::fs::write(&input, lines.concat()).unwrap();
                let mut job = Dedup::new([input], folder.join(name));
                job.rule.near = Some(near);
                (job.scope.repeated_keys, job.scope.against) = (repeated, against.to_vec());
                job
            };
            let (mut whole, mut parts) = (Keys::default(), Keys::default());
            whole.add(&job("whole", &lines, &[]), 0);
            let mut histories: Vec<PathBuf> = Vec::new();
            for (number, part) in cuts.windows(2).enumerate() {
                let mut job = job(&format!("part{number}"), &lines[part[0]..part[1]], &histories);
                if near != Near::Equal {
                    job.results.index = [IndexOf::Kept, IndexOf::All, IndexOf::None][random.below(3)];
                }
                parts.add(&job, part[0]);
                if parts.refused.is_some() {
                    break;
                }
                histories.push(job.results.out);
            }
            if whole.refused.is_some() {
                assert_eq!(parts.refused, whole.refused, "{seed} {near} {cuts:?}: {lines:?}");
                refused += 1;
                continue;
            }
            assert_eq!(parts, whole, "{seed} {repeated:?} {near} {cuts:?}: {lines:?}");
            accepted += usize::from(repeated == RepeatedKeys::Error && lines.len() > 1);
            (removed, numbered, skipped) =
                (removed + whole.removed.len(), numbered + whole.numbered, skipped + whole.skipped);
        }
    }
    assert!(
        removed > 50 && numbered > 50 && skipped > 50 && refused > 3 && accepted > 3,
        "a test of something: {removed}, {numbered}, {skipped}, {refused}, {accepted}"
    );
}
