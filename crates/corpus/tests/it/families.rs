//! Tests families of near documents that are larger than any cap. With bands and with sketches, the kept documents must
//! follow the leaders rule; components that would need too many pairs are an error.

use std::collections::BTreeMap;
use std::fs;

use crate::corpora::{Random, shingles};
use twindex::params::Widths;
use twindex::sketch::{Resemblance, Sample, Sketch, matches, pack};
use twindex::{Params, Sketcher};
use twindex_corpus::{Clustering, Dedup, Join, ListedPairs, Method, Verify};

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

/// Returns a map from the key of each removed text to the key of the text that is kept for it by the leaders rule. Compares
/// each text with all kept texts.
fn by_rule(count: usize, is_near: impl Fn(usize, usize) -> bool) -> BTreeMap<String, String> {
    let (mut goes, mut kept) = (BTreeMap::new(), Vec::new());
    for text in 0..count {
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
fn bands_and_sketches_follow_the_rule_for_families_over_any_cap() {
    let texts = family(500);
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.jsonl");
    let line = |(at, text): (usize, &String)| format!("{{\"id\":\"{}\",\"text\":\"{text}\"}}\n", key(at));
    fs::write(&input, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    let job = |method: Method, verify: Verify| {
        let mut job = Dedup::new([&input], dir.path().join("out"));
        (job.method, job.verify, job.force, job.max_bucket) = (method, Some(verify), true, Some(3));
        job.join = (method == Method::Minhash).then_some(Join::Bands);
        job.bottom = (method == Method::Shingles).then_some(24);
        job.text.words = Some(Widths::one(3).unwrap());
        job.memory = 1 << 20;
        job
    };
    let sets: Vec<_> = texts.iter().map(|text| shingles(text, 3)).collect();
    let counted = |a: usize, b: usize| {
        let both = sets[a].intersection(&sets[b]).count();
        Resemblance::Exact { intersection: both, union: sets[a].len() + sets[b].len() - both }
    };
    let sketches = |params: &Params| {
        let sketcher = Sketcher::new(params).unwrap();
        texts.iter().map(|text| sketcher.sketch(text).unwrap()).collect::<Vec<_>>()
    };
    let mut kept_by = Vec::new();
    for (method, verify) in [
        (Method::Minhash, Verify::Exact),
        (Method::Minhash, Verify::Signature),
        (Method::Minhash, Verify::None),
        (Method::Shingles, Verify::Exact),
        (Method::Shingles, Verify::Signature),
    ] {
        let job = job(method, verify);
        let params = job.params(None).unwrap();
        let bits = params.minhash.unwrap().signature_bits;
        let sketched = sketches(&params);
        let is_near = |a: usize, b: usize| {
            if texts[a] == texts[b] {
                return true;
            }
            let (x, y) = (&sketched[a], &sketched[b]);
            let share_band = x.features().iter().zip(y.features()).any(|(x, y)| x == y);
            let sampled = || Sample::bottom(x.bottom(), 24).resemblance(&Sample::bottom(y.bottom(), 24));
            match (method, verify) {
                (Method::Shingles, Verify::Exact) => {
                    let plausible =
                        sampled().is_some_and(|known| known.value() + 3.0 * known.standard_error() >= 0.8);
                    plausible && counted(a, b).at_least(0.8)
                }
                (Method::Shingles, _) => sampled().is_some_and(|known| known.at_least(0.8)),
                (_, Verify::Exact) => share_band && counted(a, b).at_least(0.8),
                (_, Verify::None) => share_band,
                _ => {
                    let packed = |sketch: &Sketch| {
                        let mut out = Vec::new();
                        pack(sketch.signature(), bits, &mut out);
                        out
                    };
                    let minima = x.signature().len();
                    let same = matches(&packed(x), &packed(y), minima, bits);
                    share_band && Resemblance::from_matches(same, minima, bits).at_least(0.8)
                }
            }
        };
        let wanted = by_rule(texts.len(), is_near);
        let report = job.run().unwrap();
        let table = fs::read_to_string(dir.path().join("out/pairs.tsv")).unwrap();
        let rows = table.lines().skip(1).map(|row| row.split('\t').collect::<Vec<_>>());
        let found: BTreeMap<_, _> = rows.map(|row| (row[0].to_owned(), row[1].to_owned())).collect();
        assert_eq!(found, wanted, "{method:?} {verify:?}");
        assert_eq!(
            (report.capped_buckets, report.capped_shingles, report.kept),
            (0, 0, report.input.documents - wanted.len() as u64)
        );
        let pairs = (texts.len() * texts.len()) as u64 / 2;
        assert!(report.candidates < pairs, "{method:?} {verify:?}: {}", report.candidates);
        kept_by.push(report.kept);

        // A list of all pairs, which the cap truncates, does not change which documents are kept.
        let listed = Dedup { pairs: ListedPairs::All, ..job.clone() }.run().unwrap();
        assert!(listed.capped_buckets + listed.capped_shingles > 0);
        assert_eq!(listed.kept, report.kept);
        // Exceeding the limit of comparisons is an error.
        let bounded = Dedup { max_work: Some(report.candidates - 1), ..job.clone() };
        let error = format!("{:#}", bounded.run().unwrap_err());
        assert!(error.contains("comparisons with kept sets"), "{error}");
        assert_eq!(Dedup { max_work: Some(report.candidates), ..job }.run().unwrap().kept, report.kept);
    }
    assert!(kept_by.iter().all(|&kept| (3..400).contains(&kept)), "a test of something: {kept_by:?}");
}

#[test]
fn components_over_the_default_cap_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let input = dir.path().join("in.jsonl");
    // More than 10,000 texts that share their rarest shingle.
    let line =
        |at: usize| format!("{{\"id\":\"{at}\",\"text\":\"a text of nine words, the last one {at}\"}}\n");
    fs::write(&input, (0..10_100).map(line).collect::<String>()).unwrap();
    for (method, join) in [
        (Method::Minhash, Some(Join::Bands)),
        (Method::Minhash, Some(Join::Prefix)),
        (Method::Shingles, None),
    ] {
        let mut job = Dedup::new([&input], dir.path().join("out"));
        (job.method, job.join, job.force) = (method, join, true);
        (job.clusters, job.threshold) = (Clustering::Components, Some(0.7));
        job.text.words = Some(Widths::one(3).unwrap());
        let error = format!("{:#}", job.run().unwrap_err());
        let parts = ["--clusters components: ", "(the largest in ", "--clusters leaders", "--max-bucket"];
        assert!(parts.iter().all(|part| error.contains(part)), "{method:?}: {error}");
        job.max_bucket = Some(100);
        assert_eq!(job.run().unwrap().kept, 1, "{method:?}");
        let leaders = Dedup { clusters: Clustering::Leaders, max_bucket: None, ..job };
        assert!(leaders.run().unwrap().kept < 20, "{method:?}");
    }
}
