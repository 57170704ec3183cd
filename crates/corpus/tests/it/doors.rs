//! Tests that deduplication of files and of texts in memory gives the same results and rejects the same options.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use twindex::params::{Folding, NormalForm, Shingling};
use twindex_corpus::{
    BoilerplateSpans, Dedup, DedupTexts, InvalidOptions, Keep, Near, Resources, Rule, TextFold, TextForm,
};

/// Returns texts of random words: copies, near copies and unrelated texts.
fn texts() -> Vec<String> {
    let mut random = 7_u64;
    let mut draw = move |below: usize| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (random >> 33) as usize % below
    };
    let mut texts: Vec<String> = vec![String::new(), "...".to_owned()];
    for _ in 0..400 {
        let kind = draw(4);
        if kind < 2 || texts.len() < 10 {
            let words: Vec<String> = (0..40 + draw(60)).map(|_| format!("w{}", draw(3000))).collect();
            texts.push(words.join(" "));
        } else {
            let mut copy = texts[2 + draw(texts.len() - 2)].clone();
            if kind == 3 {
                let _ = write!(copy, " x{} y{}", draw(100), draw(100));
            }
            texts.push(copy);
        }
    }
    texts
}

/// Returns the rows of a table without its header, split into columns.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn files_and_texts_in_memory_ignore_the_same_spans() {
    let menu = "home about us products news contact imprint privacy terms login";
    let texts: Vec<String> = (texts().into_iter().enumerate())
        .map(|(at, text)| if at % 3 == 0 { format!("{menu} {text} {menu} again") } else { text })
        .collect();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.jsonl");
    let line = |(at, text): (usize, &String)| format!("{{\"id\":\"{at:06}\",\"text\":\"{text}\"}}\n");
    fs::write(&file, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    let bytes: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
    let mut kept = Vec::new();
    for without in [None, Some(60)] {
        let mut dedup = Dedup::new([&file], dir.path().join("out"));
        let spans = without.map(|more_than| BoilerplateSpans::SharedBy { more_than, words: Some(8) });
        let near = Some(Near::Resemblance(0.7));
        dedup.rule = Rule { near, without_boilerplate: spans, ..Rule::default() };
        dedup.results.force = true;
        let report = dedup.run().unwrap();
        let job = DedupTexts { rule: dedup.rule, ..DedupTexts::default() };
        let found = job.run(&bytes).unwrap();
        let stays = (0..).zip(&found.kept_of).filter(|&(at, &kept)| at == kept).count() as u64;
        assert_eq!(report.kept, stays);
        assert_eq!(report.boilerplate.map(|counts| counts.spans), found.spans_left_out);
        let shown: Vec<String> = found.kept_of.iter().map(|kept| format!("{kept:06}")).collect();
        let of_file: Vec<String> =
            rows(&dir.path().join("out/clusters.tsv")).into_iter().map(|row| row[2].clone()).collect();
        assert_eq!(of_file, shown);
        kept.push(stays);
    }
    // Three runs of eight words occur only in the menu.
    assert_ne!(kept[0], kept[1]);
    let list = Some(BoilerplateSpans::List(dir.path().join("out/boilerplate")));
    let rule = Rule { without_boilerplate: list, ..Rule::default() };
    let error = DedupTexts { rule, ..DedupTexts::default() }.run(&bytes).unwrap_err();
    assert!(error.is::<InvalidOptions>() && error.to_string().contains("is for files"), "{error}");
}

#[test]
fn files_and_texts_in_memory_give_the_same_decisions() {
    let texts = texts();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.jsonl");
    let line = |(at, text): (usize, &String)| format!("{{\"id\":\"{at:06}\",\"text\":\"{text}\"}}\n");
    fs::write(&file, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    for (threshold, keep) in [(0.8, Keep::First), (0.6, Keep::Longest), (1.0, Keep::SmallestKey)] {
        let out = dir.path().join("out");
        let mut dedup = Dedup::new([&file], &out);
        dedup.rule = Rule { near: Some(Near::Resemblance(threshold)), keep: keep.into(), ..Rule::default() };
        dedup.results.force = true;
        let report = dedup.run().unwrap();
        let job = DedupTexts { rule: dedup.rule, ..DedupTexts::default() };
        let bytes: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let found = job.run(&bytes).unwrap();

        let stays = (0..).zip(&found.kept_of).filter(|&(at, &kept)| at == kept).count();
        assert!(stays < texts.len() && stays > texts.len() / 4, "{stays} of {} stay", texts.len());
        assert_eq!(report.kept, stays as u64);
        let clusters: HashMap<String, (String, String)> = rows(&out.join("clusters.tsv"))
            .into_iter()
            .map(|row| (row[0].clone(), (row[2].clone(), row[3].clone())))
            .collect();
        for (at, (kept, score)) in found.kept_of.iter().zip(&found.scores).enumerate() {
            let of_memory = (format!("{kept:06}"), format!("{score:.6}"));
            assert_eq!(clusters[&format!("{at:06}")], of_memory, "text {at}, threshold {threshold}");
        }
        let pairs: Vec<[String; 3]> = found
            .pairs
            .iter()
            .map(|(a, b, near)| [format!("{a:06}"), format!("{b:06}"), format!("{near:.6}")])
            .collect();
        let of_file: Vec<Vec<String>> = rows(&out.join("pairs.tsv"));
        assert_eq!(of_file.iter().map(|row| &row[..3]).collect::<Vec<_>>(), pairs);
    }
}

/// Returns the error message of a job with changed options.
fn refused(change: impl FnOnce(&mut Dedup)) -> String {
    let mut dedup = Dedup::new(["in.jsonl"], "out");
    change(&mut dedup);
    dedup.run().unwrap_err().downcast::<InvalidOptions>().unwrap().to_string()
}

#[test]
fn options_out_of_range_are_refused_by_name_before_reading() {
    let near = |near| refused(|job| job.rule.near = Some(near));
    for (message, name) in [
        (near(Near::Resemblance(0.04)), "--near: expected 0.05 to 1, "),
        (near(Near::Resemblance(f64::NAN)), "--near: expected 0.05 to 1, "),
        (near(Near::Containment(1.5)), "--near: expected 0.05 to 1, "),
        (near(Near::Within(513)), "--near: expected 0.05 to 1, containment:J, within:K (0 to 512) or equal"),
        (
            near(Near::Within(11)),
            "--near within:K with a K above 10 goes with --simhash-bits or --fingerprint-field",
        ),
        (refused(|job| job.rule.keep = Keep::Max(String::new()).into()), "--keep: expected first, longest, "),
        (refused(|job| job.resources.memory = 0), "--memory: expected at least 64K"),
        (refused(|job| job.resources.threads = Some(0)), "--threads: expected 1 to 65535, found 0"),
        (
            refused(|job| {
                job.rule.without_boilerplate = Some(BoilerplateSpans::SharedBy { more_than: 0, words: None });
            }),
            "--without-boilerplate: expected a number of documents, 1 or more",
        ),
    ] {
        assert!(message.starts_with(name), "{message}");
    }
    let rule = |rule| DedupTexts { rule, ..DedupTexts::default() };
    let resources = Resources { memory: 1, ..Resources::default() };
    for job in [
        rule(Rule { near: Some(Near::Resemblance(f64::NAN)), ..Rule::default() }),
        rule(Rule { near: Some(Near::Within(3)), ..Rule::default() }),
        rule(Rule { keep: Keep::Min(String::new()).into(), ..Rule::default() }),
        DedupTexts { resources, ..DedupTexts::default() },
    ] {
        assert!(job.run(&[b"a"]).unwrap_err().is::<InvalidOptions>(), "{job:?}");
    }
}

#[test]
fn texts_without_tokens_are_identical_only_if_their_bytes_are_equal() {
    // The third text equals the first, and the last equals the second.
    let texts = ["?!", "", "?!", "? !", "\u{ad}", "\u{200b}", "\u{301}", "\u{1f600}", "\u{1f621}", ""];
    let kept_of = [0, 1, 0, 3, 4, 5, 6, 7, 8, 1];
    let mut folded = Shingling::words(5, 0);
    folded.folding.invisible = true;
    folded.folding.marks = Folding::marks_here();
    folded.normal_form = NormalForm::nfkc().unwrap();
    for (shingling, fold) in
        [(Shingling::words(5, 0), None), (folded, Some(TextFold { marks: true, invisible: true }))]
    {
        let rule = Rule { near: Some(Near::Resemblance(0.05)), ..Rule::default() };
        let job = DedupTexts { shingling, rule, ..DedupTexts::default() };
        let bytes: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        assert_eq!(job.run(&bytes).unwrap().kept_of, kept_of, "{fold:?}");

        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("in.jsonl");
        let line = |(at, text): (usize, &&str)| format!("{{\"id\":\"{at:02}\",\"text\":\"{text}\"}}\n");
        fs::write(&file, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
        for near in [Near::default(), Near::Containment(0.8), Near::Within(3), Near::Equal] {
            let out = dir.path().join("out");
            let mut dedup = Dedup::new([&file], &out);
            (dedup.rule.near, dedup.results.force, dedup.text.fold) = (Some(near), true, fold);
            dedup.text.normal_form = fold.map(|_| TextForm::Nfkc);
            let report = dedup.run().unwrap();
            assert_eq!((report.kept, report.identical), (8, 2), "{near}, {fold:?}");
            // Clusters are numbered in the order of their first documents.
            let found: Vec<String> =
                rows(&out.join("clusters.tsv")).into_iter().map(|row| row[1].clone()).collect();
            assert_eq!(found, ["1", "2", "1", "3", "4", "5", "6", "7", "8", "2"], "{near}, {fold:?}");
        }
    }
}
