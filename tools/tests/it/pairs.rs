//! Pairs by resemblance in one index and across two, estimated and counted, and queries with counted answers. All are
//! compared with brute-force counts on sets of words.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::support::{Bench, Document, corpus, jsonl, resemblance, resemblances, says};

/// Creates a corpus in two halves, with an index of each. Their bands miss hardly any pair at 0.8.
fn bench() -> (Bench, Vec<Document>) {
    let bench = Bench::new();
    let documents = corpus(5, 600);
    let (left, right) = documents.split_at(300);
    for (name, part) in [("left", left), ("right", right), ("all", &documents[..])] {
        bench.write(&format!("{name}.jsonl"), jsonl(part));
        bench.ok(&format!("build {name}.twx {name}.jsonl --bands 50 --rows 4 -q"));
    }
    (bench, documents)
}

/// Returns the pairs of documents with words whose resemblance is at least `least` hundredths.
fn near(documents: &[Document], least: usize) -> Vec<crate::support::Pair> {
    let pairs = resemblances(documents).into_iter();
    pairs.filter(|&(_, _, both, all)| all > 0 && 100 * both >= least * all).collect()
}

#[test]
fn pairs_counted_on_texts_equal_brute_force() {
    let (bench, documents) = bench();
    let out = bench.ok("pairs all.twx --near 0.8 --verify exact --texts all.jsonl -q");
    let wanted: BTreeSet<String> =
        near(&documents, 80).into_iter().map(|pair| crate::support::pair_line(&documents, pair)).collect();
    assert!(wanted.len() > 100, "a test of something");
    assert_eq!(out.lines().map(str::to_owned).collect::<BTreeSet<_>>(), wanted);
    // The sets in the index equal the sets of the texts. Documents without words form pairs with their copies.
    let by_sets = bench.ok("pairs all.twx --near 0.8 -q");
    let with_words = |line: &&str| !line.ends_with("\t1\t1") || wanted.contains(*line);
    assert_eq!(by_sets.lines().filter(with_words).map(str::to_owned).collect::<BTreeSet<_>>(), wanted);
    let small =
        bench.ok("pairs all.twx --near 0.8 --verify exact --texts all.jsonl -q --memory 64K --threads 1");
    assert_eq!(small, out);
}

/// The keys of one segment, and deleted documents, are interleaved with the keys of the other segment.
#[test]
fn resemblance_pairs_do_not_depend_on_the_number_of_segments() {
    let (bench, documents) = bench();
    for first in [1, 0] {
        let part: Vec<Document> = documents.iter().skip(first).step_by(2).cloned().collect();
        bench.write("part.jsonl", jsonl(&part));
        bench.ok("build several.twx part.jsonl --bands 50 --rows 4 -q");
    }
    for index in ["all.twx", "several.twx"] {
        for document in [3, 170, 450] {
            bench.ok(&format!("delete {index} {} -q", documents[document].0));
        }
    }
    assert_eq!(bench.json("stats several.twx")["segments"], 2);
    for options in ["", " --verify exact --texts all.jsonl"] {
        let [one, several] = ["all.twx", "several.twx"]
            .map(|index| bench.ok(&format!("pairs {index} --near 0.8 -q{options}")));
        assert!(one.lines().count() > 100, "a test of something");
        assert_eq!(several, one, "{options}");
    }
}

#[test]
fn pairs_across_two_indexes_have_one_document_from_each() {
    let (bench, documents) = bench();
    let across: BTreeSet<String> = near(&documents, 80)
        .into_iter()
        .filter(|&(a, b, ..)| a < 300 && b >= 300)
        .map(|(a, b, both, all)| {
            format!("{}\t{}\t{}\t{both}\t{all}", documents[a].0, documents[b].0, resemblance(both, all))
        })
        .collect();
    assert!(across.len() > 30, "a test of something");
    let line = "pairs left.twx --with right.twx --near 0.8 -q";
    let out = bench.ok(&format!("{line} --verify exact --texts left.jsonl --with-texts right.jsonl"));
    assert_eq!(out.lines().map(str::to_owned).collect::<BTreeSet<_>>(), across);
    // Estimates find most of the same pairs, with standard errors.
    let keys = |line: &str| line.split('\t').take(2).map(str::to_owned).collect::<Vec<_>>();
    let counted: BTreeSet<_> = across.iter().map(|line| keys(line)).collect();
    let estimated: BTreeSet<_> = bench.ok(line).lines().map(keys).collect();
    assert!(counted.intersection(&estimated).count() * 10 > counted.len() * 8, "{estimated:?}");
}

#[test]
fn pairs_across_indexes_need_only_the_parameters_by_which_they_compare() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(5, 60)));
    for (name, options) in [
        ("usual", ""),
        ("minhash", "--method minhash"),
        ("simhash", "--method simhash"),
        ("bands", "--bands 30 --rows 5"),
        ("bits", "--signature-bits 16"),
        ("nosets", "--sets none"),
        ("wide", "--words 7"),
    ] {
        bench.ok(&format!("build {name}.twx in.jsonl -q {options}"));
    }
    let of = |other: &str, options: &str| bench.ok(&format!("pairs usual.twx --with {other}.twx {options}"));
    // Sets are compared without fingerprints, bands and signatures.
    let wanted = of("usual", "--near 0.8");
    assert!(wanted.lines().count() > 60, "{wanted}");
    for other in ["minhash", "bands", "bits"] {
        assert_eq!(of(other, "--near 0.8"), wanted, "{other}");
    }
    assert_eq!(bench.ok("pairs minhash.twx --with usual.twx --near 0.8"), wanted);
    // Fingerprints are compared without minima, and signatures without fingerprints.
    assert_eq!(of("simhash", "--near within:3"), of("usual", "--near within:3"));
    let estimated = "--near 0.8 --verify signature";
    assert_eq!(of("minhash", estimated), of("usual", estimated));
    // Texts are compared among documents that share a band.
    let texts = "--near 0.8 --texts in.jsonl";
    assert_eq!(of("bits", texts), of("usual", texts));
    for (line, words) in [
        ("--with nosets.twx --near 0.8", "nosets.twx: no sets are kept"),
        ("--with minhash.twx --near within:3", "simhash is kept in usual.twx, and not kept in minhash.twx"),
        ("--with wide.twx --near within:3", "width is 5 in usual.twx, and 7 in wide.twx"),
        ("--with wide.twx --near 0.8", "wide.twx: cannot be compared with usual.twx: width is 5"),
        (
            "--with bits.twx --near 0.8 --verify signature",
            "signature-bits is 8 in usual.twx, and 16 in bits.twx",
        ),
        ("--with bands.twx --near 0.8 --texts in.jsonl", "bands is 20 in usual.twx, and 30 in bands.twx"),
        ("--with bands.twx --near 0.8 --sharing 1", "bands is 20 in usual.twx, and 30 in bands.twx"),
    ] {
        says(&bench.refused(&format!("pairs usual.twx {line}")), &[words]);
    }
}

#[test]
fn fingerprint_pairs_across_two_indexes_exclude_pairs_within_one() {
    let bench = Bench::new();
    let mut random = crate::support::Random(3);
    let left: Vec<u64> = (0..3000).map(|_| random.next()).collect();
    let right: Vec<u64> = (0..2000)
        .map(|i| if i % 3 == 0 { left[i] ^ 1 << (i % 64) ^ 1 << (i % 7) } else { random.next() })
        .collect();
    for (name, numbers) in [("a", &left), ("b", &right)] {
        bench.write(&format!("{name}.u64"), crate::support::raw(numbers));
        bench.ok(&format!("build {name}.twx --fingerprints {name}.u64 -q"));
    }
    let mut wanted = String::new();
    for (i, x) in left.iter().enumerate() {
        for (j, y) in right.iter().enumerate() {
            let distance = (x ^ y).count_ones();
            if distance <= 3 {
                writeln!(wanted, "{i}\t{j}\t{distance}").unwrap();
            }
        }
    }
    assert!(wanted.lines().count() > 500, "a test of something");
    assert_eq!(bench.ok("pairs a.twx --with b.twx --near within:3"), wanted);
}

#[test]
fn counted_answers_equal_brute_force_with_containment() {
    let (bench, documents) = bench();
    let mut wanted = BTreeSet::new();
    for (a, b, both, all) in near(&documents, 70) {
        if a < 300 && b >= 300 {
            let sizes = [a, b].map(|document| crate::support::shingles(&documents[document].1).len());
            let [in_hit, in_query] = [sizes[1], sizes[0]].map(|size| both as f64 / size as f64);
            let (hit, query) = (&documents[a].0, &documents[b].0);
            let value = both as f64 / all as f64;
            wanted
                .insert(format!("{query}\t{hit}\t-\t{value:.4}\t{both}\t{all}\t{in_hit:.4}\t{in_query:.4}"));
        }
    }
    assert!(wanted.len() > 30, "a test of something");
    bench.ok("build narrow.twx left.jsonl --method minhash --bands 60 --rows 3 -q");
    let out = bench
        .ok("query narrow.twx right.jsonl --near 0.7 --verify exact --texts left.jsonl --containment -q");
    assert_eq!(out.lines().map(str::to_owned).collect::<BTreeSet<_>>(), wanted);
}

#[test]
fn exact_counts_without_sets_or_texts_are_refused_with_advice() {
    let (bench, documents) = bench();
    bench.ok("build bare.twx left.jsonl right.jsonl --sets none -q");
    for line in ["pairs bare.twx --near 0.8", "pairs bare.twx --near 0.8 --verify exact"] {
        says(&bench.refused(line), &["bare.twx", "no sets", "--texts INPUT", "--verify signature"]);
    }
    let line = "pairs all.twx --near 0.8 --verify exact";
    says(&bench.refused(&format!("{line} --texts left.jsonl -q")), &["--texts has no document", "needs"]);
    let mut changed = documents;
    for (_, text) in &mut changed {
        *text += " and more words that were not there before";
    }
    bench.write("changed.jsonl", jsonl(&changed));
    says(&bench.refused(&format!("{line} --texts changed.jsonl -q")), &["changed.jsonl", "has another text"]);
}

#[test]
fn raw_fingerprint_pairs_equal_index_pairs_for_any_memory_and_threads() {
    let bench = Bench::new();
    let mut random = crate::support::Random(8);
    let mut numbers: Vec<u64> = Vec::new();
    for at in 0..9000_usize {
        let near = numbers.get(random.next() as usize % (2 * at + 1)).copied();
        let value = near.map(|near| near ^ 1 << (random.next() % 64) ^ (random.next() & (random.next() % 2)));
        numbers.push(value.unwrap_or_else(|| random.next()));
    }
    bench.write("f.u64", crate::support::raw(&numbers));
    bench.write(
        "g.u64",
        crate::support::raw(&numbers[..3000].iter().map(|value| value ^ 5).collect::<Vec<_>>()),
    );
    let ids: Vec<u64> = (0..9000).map(|at| 1_000_000 - at).collect();
    bench.write("ids.u64", crate::support::raw(&ids));
    bench.ok("build f.twx --fingerprints f.u64 -q");
    bench.ok("build g.twx --fingerprints g.u64 -q");
    bench.ok("build ids.twx --fingerprints f.u64 --ids ids.u64 -q");
    for (index, raw) in [
        ("pairs f.twx", "pairs --fingerprints f.u64"),
        ("pairs ids.twx", "pairs --fingerprints f.u64 --ids ids.u64"),
        ("pairs f.twx --with g.twx", "pairs --fingerprints f.u64 --with g.u64"),
    ] {
        for within in [0, 3, 7] {
            let wanted = bench.ok(&format!("{index} --near within:{within}"));
            assert!(within == 0 || wanted.lines().count() > 1000, "a test of something");
            for options in ["", "--threads 1", "--threads 3 --memory 64K"] {
                let found = bench.ok(&format!("{raw} --near within:{within} {options}"));
                assert!(found == wanted, "{raw} --near within:{within} {options}");
                let found = bench.ok(&format!("{index} --near within:{within} {options}"));
                assert!(found == wanted, "{index} --near within:{within} {options}");
            }
            let count = format!("{}\n", wanted.lines().count());
            assert_eq!(bench.ok(&format!("{index} --near within:{within} --count")), count);
            assert_eq!(bench.ok(&format!("{raw} --near within:{within} --count")), count);
            let sums = [index, raw].map(|verb| {
                let report = bench.json(&format!("{verb} --near within:{within}"));
                (report["pairs"].clone(), report["checksum"].clone())
            });
            assert_eq!(sums[0], sums[1]);
        }
    }
}

#[test]
fn every_query_strategy_gives_the_same_answers() {
    let bench = Bench::new();
    let mut random = crate::support::Random(9);
    let numbers: Vec<u64> = (0..7000).map(|_| random.next()).collect();
    let asked: Vec<u64> = (0..5000)
        .map(|at| if at % 2 == 0 { random.next() } else { numbers[at / 7] ^ 1 << (at % 64) ^ 1 << (at % 13) })
        .collect();
    bench.write("f.u64", crate::support::raw(&numbers));
    bench.write("q.u64", crate::support::raw(&asked));
    bench.ok("build f.twx --fingerprints f.u64 -q");
    for (name, range) in [("first", 0..4000), ("second", 4000..7000)] {
        bench.write(&format!("{name}.u64"), crate::support::raw(&numbers[range.clone()]));
        bench.write(
            &format!("{name}.ids"),
            crate::support::raw(&range.map(|at| at as u64).collect::<Vec<_>>()),
        );
        bench.ok(&format!("build several.twx --fingerprints {name}.u64 --ids {name}.ids -q"));
    }
    let stats: serde_json::Value = serde_json::from_str(&bench.ok("stats several.twx --json")).unwrap();
    assert_eq!(stats["segments"], 2, "{stats}");
    // For so few queries, reading all keys would cost more than answering the queries one by one.
    bench.write("few.u64", crate::support::raw(&asked[..500]));
    for options in
        ["--near within:3", "--near within:3 --limit 1", "--near within:8 --limit 2 --threads 1 --memory 64K"]
    {
        let wanted = bench.ok(&format!("query f.twx --fingerprints q.u64 --by probes {options}"));
        assert!(wanted.lines().count() > 1000, "a test of something");
        for way in ["auto", "merge", "scan"] {
            for whom in ["f.twx", "--against-fingerprints f.u64"] {
                let found = bench.ok(&format!("query {whom} --fingerprints q.u64 --by {way} {options}"));
                assert!(found == wanted, "{whom} --by {way} {options}");
            }
        }
        let few: String = wanted
            .split_inclusive('\n')
            .take_while(|line| line.split('\t').next().unwrap().parse::<u64>().is_ok_and(|query| query < 500))
            .collect();
        // With `--visits`, each query is answered by itself.
        for how in
            ["several.twx", "several.twx --by merge", "several.twx --by probes", "f.twx --visits 1000000"]
        {
            for (queries, wanted) in [("q.u64", &wanted), ("few.u64", &few)] {
                let found = bench.ok(&format!("query {how} --fingerprints {queries} {options}"));
                assert!(found == *wanted, "{how} {queries} {options}");
            }
        }
    }
    let sums = ["f.twx --by probes", "f.twx --by merge", "f.twx --by scan", "--against-fingerprints f.u64"]
        .map(|how| {
            let report = bench.json(&format!("query {how} --fingerprints q.u64 --near within:3"));
            (report["hits"].clone(), report["checksum"].clone())
        });
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");
    for (line, parts) in [
        ("query f.twx --fingerprints q.u64 --by scan --first", ["--first", "--by probes"]),
        (
            "query --against-fingerprints f.u64 --fingerprints q.u64 --near within:3 --by probes",
            ["no tables", "--by merge"],
        ),
    ] {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        says(&String::from_utf8(output.stderr).unwrap(), &parts);
    }
}
