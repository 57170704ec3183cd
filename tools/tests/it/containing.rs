//! Compares `stream` and `query --near containment:J` with the definition, applied to all pairs.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use twindex::Key;

use crate::support::marks::{Live, duplicated};
use crate::support::{Bench, Document, Random, jsonl, says};

/// Returns texts: some are parts of earlier or later texts, some are copies, and some have no words.
fn texts(seed: u64, count: usize) -> Vec<Document> {
    let mut random = Random(seed);
    let mut texts: Vec<Vec<String>> = Vec::new();
    for _ in 0..count {
        let vocabulary = [30, 3000][random.below(2)];
        let mut text: Vec<String> =
            (0..random.below(25)).map(|_| format!("w{}", random.below(vocabulary))).collect();
        if !texts.is_empty() && random.below(4) > 0 {
            let other = &texts[random.below(texts.len())];
            let from = random.below(other.len() + 1) / 2;
            let part = other[from..].iter().cloned();
            text.truncate(random.below(6));
            if random.below(2) == 0 {
                text.extend(part);
            } else {
                text.splice(0..0, part);
            }
        }
        texts.push(text);
    }
    let document = |(at, text): (usize, &Vec<String>)| (format!("d{at:03}"), text.join(" "));
    texts.iter().enumerate().map(document).collect()
}

/// Returns the two-word shingles of a text; for a text of fewer words, the text itself.
fn shingles(text: &str) -> BTreeSet<String> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words.len() {
        0 | 1 => BTreeSet::from([text.to_owned()]),
        _ => words.windows(2).map(|two| two.join(" ")).collect(),
    }
}

/// A document of an index: its key, its set, and whether it is unmarked.
type Indexed<'a> = (&'a str, BTreeSet<String>, bool);

/// Adds documents in this order to `there`. Returns the lines that `stream` must print, computed from the definition, and
/// the number of documents that lose their marks. Keys may be repeated.
fn by_definition<'a>(
    documents: &'a [Document],
    percent: usize,
    there: &mut Vec<Indexed<'a>>,
) -> (Vec<String>, usize) {
    let (mut lines, mut promoted) = (Vec::new(), 0);
    let stands_in = |a: &BTreeSet<String>, b: &BTreeSet<String>| {
        let both = a.intersection(b).count();
        (b.len() >= a.len() && 100 * both >= percent * a.len()).then_some(both)
    };
    for (key, text) in documents {
        let set = shingles(text);
        let live = there.iter().map(|&(key, _, decides)| Live {
            key: Key::from(key),
            is_marked: !decides,
            priority: None,
        });
        let near = duplicated(
            &live.collect::<Vec<_>>(),
            Key::from(key.as_str()),
            |at| stands_in(&set, &there[at].1).map(Reverse),
            |a, b| stands_in(&there[b].1, &there[a].1).is_some(),
        );
        let mut contained: Vec<(&str, f64)> = Vec::new();
        if near.is_none() {
            let others = there.iter().filter(|(other, _, decides)| other != key && *decides);
            let found = others.filter_map(|(other, of, _)| {
                stands_in(of, &set).map(|both| (*other, both as f64 / of.len() as f64))
            });
            contained.extend(found);
            contained.sort_by_key(|(key, _)| *key);
        }
        let is_known = there.iter().any(|(other, ..)| other == key);
        let what = if is_known { "known" } else { near.map_or("new", |_| "duplicate") };
        match near {
            Some(at) => {
                let (other, of, decides) = &mut there[at];
                let both = set.intersection(of).count();
                promoted += usize::from(!*decides);
                *decides = true;
                lines.push(format!("{key}\t{what}\t{other}\t-\t{:.3}", both as f64 / set.len() as f64));
            }
            None => lines.push(format!("{key}\t{what}\t-\t-\t-")),
        }
        lines.extend(
            contained.iter().map(|(other, share)| format!("{other}\tcontained\t{key}\t-\t{share:.3}")),
        );
        there.retain(|(other, ..)| other != key);
        there.push((key, set, near.is_none()));
    }
    (lines, promoted)
}

#[test]
fn containment_stream_drops_contained_documents_and_reports_containing_ones() {
    let bench = Bench::new();
    let (mut duplicates, mut contained, mut promoted) = (0, 0, 0);
    for seed in 0..8 {
        let mut documents = texts(seed, 150);
        // Some keys are repeated with another text.
        for at in (20..150).step_by(13) {
            documents[at].0 = documents[at - 17].0.clone();
        }
        let percent = [50, 80, 90, 100][seed as usize % 4];
        let (first, second) = documents.split_at(90);
        let mut there = Vec::new();
        let (mut wanted, of_first) = by_definition(first, percent, &mut there);
        // Between the runs, every third leader is deleted.
        let leaders: Vec<&str> =
            there.iter().filter(|(.., decides)| *decides).map(|(key, ..)| *key).collect();
        let deleted: Vec<&str> = leaders.into_iter().step_by(3).collect();
        there.retain(|(key, ..)| !deleted.contains(key));
        let (of_second, promoted_second) = by_definition(second, percent, &mut there);
        wanted.extend(of_second);
        promoted += of_first + promoted_second;
        duplicates += wanted.iter().filter(|line| line.contains("\tduplicate\t")).count();
        contained += wanted.iter().filter(|line| line.contains("\tcontained\t")).count();
        bench.write("first.jsonl", jsonl(first));
        bench.write("second.jsonl", jsonl(second));
        let stream = |input: &str| {
            let line = format!(
                "stream {seed}.twx {input}.jsonl -q --near containment:{} --words 2 --memory 8M --sets {}",
                percent as f64 / 100.0,
                ["kept", "containment"][seed as usize / 4]
            );
            bench.ok(&line).lines().map(str::to_owned).collect::<Vec<_>>()
        };
        // The second run finds the documents of the first run in the index.
        let mut found = stream("first");
        bench.ok(&format!("delete -q {seed}.twx {}", deleted.join(" ")));
        found.extend(stream("second"));
        assert_eq!(found, wanted, "{seed}");
    }
    assert!(
        duplicates > 200 && contained > 50 && promoted > 5,
        "a test of something: {duplicates} {contained} {promoted}"
    );
}

#[test]
fn dropped_documents_are_not_indexed_but_counted() {
    let bench = Bench::new();
    let page = "one two three four five six seven eight nine ten";
    let documents = [
        ("page", page),
        ("part", "two three four five six"),
        ("larger", "zero one two three four five six seven eight nine ten eleven"),
    ];
    let documents: Vec<Document> =
        documents.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    bench.write("in.jsonl", jsonl(&documents));
    let lines = bench.json_lines("stream i.twx in.jsonl --near containment:0.8 --words 3 --drop-duplicates");
    assert_eq!((&lines[1]["decision"], &lines[1]["near_key"]), (&"duplicate".into(), &"page".into()));
    assert_eq!((&lines[3]["key"], &lines[3]["near_key"]), (&"page".into(), &"larger".into()));
    assert_eq!(lines[3]["containment"], 1.0);
    let report = &lines[4];
    assert_eq!(
        (&report["new"], &report["duplicates"], &report["contained"]),
        (&2.into(), &1.into(), &1.into())
    );
    assert_eq!((&report["near"], &report["containment"]), (&serde_json::Value::Null, &0.8.into()));
    assert_eq!(report["documents"], 2);
}

#[test]
fn containment_is_refused_without_sets_or_enough_memory() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&texts(9, 60)));
    bench.ok("build none.twx in.jsonl -q --method minhash --sets none");
    bench.ok("build sim.twx in.jsonl -q --method simhash");
    bench.ok("stream living.twx in.jsonl -q --words 2 --verify exact");
    for (line, why) in [
        ("stream none.twx in.jsonl --near containment:0.8", "an index that keeps sets"),
        ("stream sim.twx in.jsonl --near containment:0.8", "an index that keeps sets"),
        ("stream living.twx in.jsonl --near containment:0.8 --verify signature", "leave out --verify"),
        ("stream living.twx in.jsonl --near containment:0.8 --groups", "--groups does not go with"),
    ] {
        says(&bench.refused(line), &[why]);
    }
    let long = |at: usize| {
        let words: Vec<String> = (0..2000).map(|word| format!("w{at}x{word}")).collect();
        (format!("l{at}"), words.join(" "))
    };
    let long: Vec<Document> = (0..40).map(long).collect();
    bench.write("long.jsonl", jsonl(&long));
    let said = bench.failed("stream small.twx long.jsonl --near containment:0.8 --memory 1M");
    says(&said, &["--near containment:J", "give more --memory", "dedup --near containment:J --against"]);
}

/// Returns the lines that `query --near containment:J` must print, computed from the definition.
fn contained_by_definition(documents: &[Document], queries: &[Document], percent: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for (query, text) in queries {
        let set = shingles(text);
        let mut hits: Vec<(f64, &str, String)> = Vec::new();
        for (key, other) in documents {
            let of = shingles(other);
            let both = set.intersection(&of).count();
            if both == 0 || 100 * both < percent * set.len().min(of.len()) {
                continue;
            }
            let union = set.len() + of.len() - both;
            let [resemblance, query_in_hit, hit_in_query] =
                [union, set.len(), of.len()].map(|whole| both as f64 / whole as f64);
            let counts = format!("{resemblance:.4}\t{both}\t{union}\t{query_in_hit:.4}\t{hit_in_query:.4}");
            hits.push((query_in_hit.max(hit_in_query), key, format!("{query}\t{key}\t-\t{counts}")));
        }
        hits.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        lines.extend(hits.into_iter().map(|(.., line)| line));
    }
    lines
}

#[test]
fn containment_query_finds_containing_and_contained_documents() {
    let bench = Bench::new();
    let mut found = 0;
    for seed in 20..24 {
        let documents = texts(seed, 160);
        let (documents, queries) = documents.split_at(100);
        let queries: Vec<Document> =
            queries.iter().map(|(key, text)| (key.replace('d', "q"), text.clone())).collect();
        bench.write("documents.jsonl", jsonl(documents));
        bench.write("queries.jsonl", jsonl(&queries));
        // The index's threshold of 0.9 must not restrict the results of containment queries.
        let sets = ["kept", "containment"][seed as usize % 2];
        let build = "-q --method minhash --words 2 --near 0.9 --sets";
        bench.ok(&format!("build {seed}.twx documents.jsonl {build} {sets}"));
        for (options, percent) in [("0.9", 90), ("0.5", 50), ("1 --memory 1M", 100)] {
            let line = format!("query {seed}.twx queries.jsonl -q --near containment:{options}");
            let wanted = contained_by_definition(documents, &queries, percent);
            assert_eq!(bench.ok(&line).lines().collect::<Vec<_>>(), wanted, "{seed} {options}");
            found += wanted.len();
            // `--limit 1` prints the nearest hit, and each shard prints its own part of the hits.
            let first = bench.ok(&format!("{line} --limit 1"));
            let mut keys: Vec<&str> = wanted.iter().filter_map(|line| line.split('\t').next()).collect();
            keys.dedup();
            assert_eq!(first.lines().count(), keys.len());
            assert!(first.lines().all(|line| wanted.iter().any(|wanted| wanted == line)));
            let shards = [1, 2].map(|shard| bench.ok(&format!("{line} --shard {shard}/2")));
            assert_eq!(shards.iter().flat_map(|shard| shard.lines()).count(), wanted.len());
            let report = bench.json(&line);
            assert_eq!(report["hits"], wanted.len(), "{report}");
        }
    }
    assert!(found > 1000, "a test of something: {found}");
}

#[test]
fn gather_covers_each_query_and_prints_what_each_document_adds() {
    let bench = Bench::new();
    let documents =
        [("a", "one two three four"), ("b", "three four five"), ("c", "six seven eight nine five")];
    let documents = documents.map(|(key, text)| (key.to_owned(), text.to_owned()));
    bench.write("in.jsonl", jsonl(&documents));
    bench.write("q.jsonl", jsonl(&[("q".to_owned(), "one two three four five six new".to_owned())]));
    for sets in ["kept", "containment"] {
        bench.ok(&format!("build {sets}.twx in.jsonl -q --method minhash --words 1 --sets {sets}"));
        let line = format!("query {sets}.twx q.jsonl -q --near containment");
        let cover = "q\ta\t-\t0.5714\t4\t7\t0.5714\t1.0000\t4\t0.5714\n\
                     q\tc\t-\t0.2000\t2\t10\t0.2857\t0.4000\t2\t0.2857\n";
        assert_eq!(bench.ok(&format!("{line}:0.05 --gather")), cover, "nothing is left for b");
        let first = cover.lines().next().unwrap();
        for options in ["0.3 --gather", "0.05 --gather --limit 1"] {
            assert_eq!(bench.ok(&format!("{line}:{options}")).trim_end(), first, "{options}");
        }
        bench.ok(&format!("{line}:0.05 --gather --out {sets}.hits"));
        let header = "query\tkey\tdistance\tresemblance\tintersection\tunion\tquery_in_hit\thit_in_query\tunique\tunique_in_query";
        assert_eq!(bench.read(&format!("{sets}.hits")).lines().next(), Some(header));
    }
}

#[test]
fn containment_query_refuses_unsuitable_indexes_and_options() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&texts(9, 30)));
    bench.ok("build none.twx in.jsonl -q --method minhash --sets none");
    bench.ok("build sim.twx in.jsonl -q --method simhash");
    bench.ok("build with.twx in.jsonl -q");
    for index in ["none.twx", "sim.twx"] {
        let message = bench.refused(&format!("query {index} in.jsonl --near containment:0.8"));
        says(&message, &[index, "--near containment:J", "keeps no sets", "make another index with sets"]);
    }
    for (options, why) in [
        ("--near containment:0.8 --near within:3", "cannot be used multiple times"),
        ("--near containment:0.8 --verify signature", "--verify does not go with"),
        ("--near containment:0.8 --texts in.jsonl", "--texts does not go with"),
        ("--near containment:0.8 --first", "--first does not go with"),
        ("--near 0.8 --gather", "--gather goes with --near containment:J"),
    ] {
        let line = format!("query with.twx in.jsonl {options}");
        let output = bench.command(&line).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        says(&message, &[why]);
    }
    bench.ok("query with.twx in.jsonl --near containment:0.8 --verify exact -q");
}
