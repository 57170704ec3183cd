//! The rule by which `dedup` removes documents, tested on inputs with known resemblances.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::support::{Bench, Document, Random, corpus, jsonl, resemblances, says};

const COVERING: &str = "document\tkept\tresemblance\tintersection\tunion";
const AGAINST: &str = "key\tother\tresemblance\tintersection\tunion";

/// Returns the keys of the documents that a run kept.
fn kept(bench: &Bench, out: &str) -> Vec<String> {
    let lines = bench.read(&format!("{out}/kept.jsonl"));
    lines.lines().map(|line| line.split('"').nth(3).unwrap().to_owned()).collect()
}

/// Returns texts of `size` distinct words, and for each a partner of the same size that shares `common` words with it.
fn partners(size: usize, common: usize, count: usize) -> (Vec<Document>, Vec<Document>) {
    let (mut old, mut new) = (Vec::new(), Vec::new());
    for number in 0..count {
        let word = |kind: &str, at: usize| format!("{kind}{number}n{at}");
        let shared: Vec<String> = (0..common).map(|at| word("s", at)).collect();
        let with = |kind: &str| -> String {
            let own = (common..size).map(|at| word(kind, at));
            shared.iter().cloned().chain(own).collect::<Vec<_>>().join(" ")
        };
        old.push((format!("o{number}"), with("o")));
        new.push((format!("n{number}"), with("n")));
    }
    (old, new)
}

#[test]
fn history_is_compared_by_exact_counts_not_estimates() {
    let bench = Bench::new();
    // The union has 100 words, the intersection 78 or 82.
    for (common, size, goes) in [(78, 89, false), (82, 91, true)] {
        let (old, new) = partners(size, common, 100);
        bench.write("old.jsonl", jsonl(&old));
        bench.write("new.jsonl", jsonl(&new));
        bench.ok("dedup old.jsonl -o old --index kept --words 1 --force -q");
        for options in ["--against old", "--against old/index", "--against old/index --texts old.jsonl"] {
            let report = bench.json(&format!("dedup new.jsonl -o new --words 1 --force {options}"));
            assert_eq!(report["dropped"], if goes { 100 } else { 0 }, "{options}");
            let rows = bench.rows("new/against.tsv", AGAINST);
            assert_eq!(rows.len(), if goes { 100 } else { 0 });
            assert!(rows.iter().all(|row| row.ends_with("\t0.820000\t82\t100")));
            assert_eq!(kept(&bench, "new").len(), if goes { 0 } else { 100 });
        }
    }
}

#[test]
fn runs_over_two_days_and_over_a_week_equal_one_run() {
    let bench = Bench::new();
    for seed in [51, 52, 53] {
        let mut documents = corpus(seed, 240);
        documents.push(("wordless".into(), "?!".into()));
        documents.insert(0, ("wordless too".into(), "?!".into()));
        let days: Vec<&[Document]> = documents.chunks(70).collect();
        bench.write("all.jsonl", jsonl(&documents));
        bench.ok("dedup all.jsonl -o all --threshold 0.7 --words 3 --force -q");
        let mut against = String::new();
        let mut union = Vec::new();
        for (number, day) in days.iter().enumerate() {
            bench.write("day.jsonl", jsonl(day));
            bench.ok(&format!(
                "dedup day.jsonl -o day{number} --threshold 0.7 --words 3 --force -q {against}"
            ));
            let _ = write!(against, " --against day{number}");
            union.extend(kept(&bench, &format!("day{number}")));
        }
        assert_eq!(union, kept(&bench, "all"), "{seed}");
        assert!(union.len() > 80 && union.len() < 200, "{}", union.len());
        // A document near several kept ones is listed with the one that has the smallest key, for any order.
        let covered = |out: &str, name: &str, head: &str| -> Vec<String> {
            let rows = bench.rows(&format!("{out}/{name}"), head);
            rows.iter().map(|row| row.split('\t').next().unwrap().to_owned()).collect()
        };
        let mut all = covered("all", "pairs.tsv", COVERING);
        let mut days: Vec<String> = (0..days.len())
            .flat_map(|number| {
                let out = format!("day{number}");
                let before = if number == 0 { Vec::new() } else { covered(&out, "against.tsv", AGAINST) };
                covered(&out, "pairs.tsv", COVERING).into_iter().chain(before)
            })
            .collect();
        all.sort();
        days.sort();
        assert_eq!(days, all, "{seed}");
        streams_keep(&bench, &kept(&bench, "all"), seed);
    }
}

#[test]
fn querying_a_history_index_equals_reading_its_texts() {
    let bench = Bench::new();
    let mut named = 0;
    for seed in 61..65 {
        let mut documents = corpus(seed, 260);
        documents.push(("wordless".into(), "?!".into()));
        documents.insert(3, ("wordless too".into(), "?!".into()));
        bench.write("one.jsonl", jsonl(&documents[..90]));
        bench.write("two.jsonl", jsonl(&documents[90..160]));
        bench.write("new.jsonl", jsonl(&documents[60..]));
        // With a limit of the work, the texts are read.
        let more = |out: &str| if out == "texts" { "--max-work 1000000000" } else { "" };
        for out in ["sets", "texts"] {
            for input in ["one", "two"] {
                let options = "--threshold 0.5 --words 2 --index all --force -q";
                bench.ok(&format!("dedup {input}.jsonl -o {out}.{input} {options}"));
            }
            // The history has near-duplicates, because the second day was not compared with the first.
            let against =
                format!("--against {out}.two --against {out}.one --repeated-keys number {}", more(out));
            bench.ok(&format!("dedup new.jsonl -o {out} --threshold 0.6 --words 2 --force -q {against}"));
        }
        for file in ["pairs.tsv", "clusters.tsv", "kept.jsonl"] {
            assert!(
                bench.read(&format!("sets/{file}")) == bench.read(&format!("texts/{file}")),
                "{seed} {file}"
            );
        }
        // If both histories have the text or the set, either may be named.
        let dropped = |out: &str| -> Vec<String> {
            let rows = bench.rows(&format!("{out}/against.tsv"), AGAINST);
            rows.iter().map(|row| row.split('\t').next().unwrap().to_owned()).collect()
        };
        assert_eq!(dropped("sets"), dropped("texts"), "{seed}");
        let counts = |out: &str, part: &str| {
            let options = format!("--threshold 0.6 --words 2 --force {}", more(out));
            let line = format!("dedup new.jsonl -o again {options} --against {out}.one{part}");
            let report = bench.json(&line);
            let counts =
                ["identical", "dropped", "removed", "kept", "lowest_pair"].map(|name| report[name].clone());
            (counts, bench.read("again/against.tsv"), bench.read("again/clusters.tsv"))
        };
        assert!(counts("sets", "") == counts("texts", ""), "{seed}");
        named += bench.rows("sets/against.tsv", AGAINST).len();
        // A folder that is not as its run wrote it is refused; its index alone answers alike.
        std::fs::remove_file(bench.path("sets.one/kept.jsonl")).unwrap();
        let changed = bench.command("dedup new.jsonl -o again --force --against sets.one").output().unwrap();
        assert_eq!(changed.status.code(), Some(2), "{changed:?}");
        assert!(counts("sets", "/index") == counts("texts", ""), "{seed}");
    }
    assert!(named > 200, "{named} documents went");
}

#[test]
fn lossily_decoded_document_is_no_duplicate_in_history_or_stream() {
    let bench = Bench::new();
    let line = |byte: u8| {
        let mut line = b"{\"id\":\"k\",\"text\":\"one two three four five six seven ".to_vec();
        line.extend_from_slice(&[byte]);
        line.extend_from_slice(b" eight nine ten eleven\"}\n");
        line
    };
    let days = [("a", 0xE9), ("b", 0xE8), ("c", 0xE9)];
    for (day, byte) in days {
        std::fs::write(bench.path(&format!("{day}.jsonl")), line(byte)).unwrap();
    }
    bench.ok("dedup a.jsonl -o old -q --invalid-utf8 replace");
    for (day, goes) in [("b", 0), ("c", 1)] {
        let report = bench.json(&format!("dedup {day}.jsonl -o {day} --against old --invalid-utf8 replace"));
        assert_eq!(report["dropped"], goes, "{day}");
    }
    for (day, _) in days {
        let lines = String::from_utf8_lossy(&line(0)).replace("\"k\"", &format!("\"{day}\"")).into_bytes();
        let byte = days.iter().find(|(name, _)| *name == day).unwrap().1;
        let lines: Vec<u8> = lines.into_iter().map(|of| if of == 0 { byte } else { of }).collect();
        std::fs::write(bench.path(&format!("{day}.jsonl")), lines).unwrap();
    }
    let said = bench.ok("stream s.twx a.jsonl b.jsonl c.jsonl --drop-duplicates --invalid-utf8 replace -q");
    let words: Vec<&str> = said.lines().map(|line| line.split('\t').nth(1).unwrap()).collect();
    assert_eq!(words, ["new", "new", "duplicate"]);
}

/// Checks that a stream over all documents, in two parts, reports exactly the documents in `kept` as new, whether
/// duplicates are dropped or marked.
fn streams_keep(bench: &Bench, kept: &[String], seed: u64) {
    let lines = bench.read("all.jsonl");
    let (first, second) = lines.split_at(lines.match_indices('\n').nth(100).unwrap().0 + 1);
    bench.write("first.jsonl", first);
    bench.write("second.jsonl", second);
    for drops in ["", "--drop-duplicates"] {
        let index = format!("s{seed}{}.twx", drops.len());
        let mut new = Vec::new();
        for part in ["first.jsonl", "second.jsonl"] {
            let options = "--threshold 0.7 --words 3 --commit-ms 0 -q";
            let printed = bench.ok(&format!("stream {index} {part} {options} {drops}"));
            let is_new = |line: &&str| line.split('\t').nth(1) == Some("new");
            new.extend(
                printed.lines().filter(is_new).map(|line| line.split('\t').next().unwrap().to_owned()),
            );
        }
        assert_eq!(new, kept, "{seed} {drops}");
        if !drops.is_empty() {
            let mut stored: Vec<String> =
                bench.ok(&format!("get {index}")).lines().map(str::to_owned).collect();
            let mut kept = kept.to_vec();
            stored.sort();
            kept.sort();
            assert_eq!(stored, kept, "{seed}");
        }
    }
}

#[test]
fn corpus_against_itself_is_removed_completely() {
    let bench = Bench::new();
    let mut documents = corpus(54, 120);
    documents.push(("nothing".into(), String::new()));
    documents.push(("faces".into(), "\u{1f600}\u{1f600}".into()));
    bench.write("in.jsonl", jsonl(&documents));
    bench.ok("dedup in.jsonl -o out -q");
    let renamed: Vec<Document> =
        documents.iter().map(|(key, text)| (format!("again {key}"), text.clone())).collect();
    bench.write("again.jsonl", jsonl(&renamed));
    let report = bench.json("dedup again.jsonl -o again --against out");
    assert_eq!((&report["kept"], &report["dropped"]), (&0.into(), &documents.len().into()));
    assert_eq!(bench.read("again/kept.jsonl"), "");
    // Some documents that were removed at the lower threshold are now kept, and previously kept ones are removed.
    let report = bench.json("dedup again.jsonl -o strict --threshold 0.95 --against out");
    let dropped = report["dropped"].as_u64().unwrap() as usize;
    assert!(dropped >= kept(&bench, "out").len() && dropped < documents.len(), "{report}");
    let report = bench.json("dedup again.jsonl -o exact --near equal --against out");
    assert!(report["dropped"].as_u64().unwrap() as usize >= kept(&bench, "out").len());
}

#[test]
fn chain_keeps_documents_that_are_not_near_each_other() {
    let bench = Bench::new();
    // Each text shares 27 of its 30 words with the next, and 24 with the one after that: resemblances of 27/33 and
    // 24/36.
    let documents: Vec<Document> = (0..25)
        .map(|place| {
            let text: Vec<String> = (0..30).map(|word| format!("w{}", place * 3 + word)).collect();
            (format!("k{place:02}"), text.join(" "))
        })
        .collect();
    bench.write("in.jsonl", jsonl(&documents));
    let report = bench.json("dedup in.jsonl -o out --words 1");
    let wanted: Vec<String> = (0..25).step_by(2).map(|place| format!("k{place:02}")).collect();
    assert_eq!(kept(&bench, "out"), wanted);
    assert_eq!(report["removed"], 12);
    assert_eq!(bench.json("dedup out/kept.jsonl -o again --words 1")["removed"], 0);
}

/// Returns records from one template: each has some of its words, and some distinct words.
fn records(seed: u64, count: usize, words: usize, of: usize) -> Vec<Document> {
    let mut random = Random(seed);
    (0..count)
        .map(|number| {
            let mut common = BTreeSet::new();
            while common.len() < words {
                common.insert(random.below(of));
            }
            let own = (0..3).map(|at| format!("own{number}x{at}"));
            let text: Vec<String> = common.into_iter().map(|word| format!("b{word}")).chain(own).collect();
            (format!("d{number:05}"), text.join(" "))
        })
        .collect()
}

#[test]
fn kept_documents_of_any_group_size_follow_the_rule() {
    let bench = Bench::new();
    let documents = records(7, 1500, 47, 52);
    bench.write("in.jsonl", jsonl(&documents));
    let sets: Vec<BTreeSet<&str>> =
        documents.iter().map(|(_, text)| text.split(' ').collect::<BTreeSet<_>>()).collect();
    let mut wanted: Vec<usize> = Vec::new();
    for (place, set) in sets.iter().enumerate() {
        let is_near = |&other: &usize| {
            let both = set.intersection(&sets[other]).count();
            10 * both >= 8 * (2 * 50 - both)
        };
        if !wanted.iter().any(is_near) {
            wanted.push(place);
        }
    }
    let wanted: Vec<String> = wanted.into_iter().map(|place| documents[place].0.clone()).collect();
    assert!(wanted.len() > 20 && wanted.len() < 1000, "{}", wanted.len());
    for options in ["", "--memory 1M", "--index kept"] {
        let report = bench.json(&format!("dedup in.jsonl -o out --words 1 --force {options}"));
        assert_eq!(kept(&bench, "out"), wanted, "{options}");
        assert!(report["candidates"].as_u64().unwrap() < 200 * 1500, "{report}");
        assert!(report["counted"].as_u64().unwrap() <= report["candidates"].as_u64().unwrap());
    }
    says(
        &bench.refused("dedup in.jsonl -o limited --words 1 --max-work 100"),
        &["comparisons with kept sets", "limit of 100"],
    );
    assert_eq!(bench.names("."), ["in.jsonl", "out"]);
}

#[test]
fn key_hash_order_does_not_depend_on_the_input_order() {
    let bench = Bench::new();
    let mut documents = corpus(55, 300);
    bench.write("in.jsonl", jsonl(&documents));
    documents.reverse();
    bench.write("back.jsonl", jsonl(&documents));
    for (out, input) in [("one", "in.jsonl"), ("two", "back.jsonl")] {
        bench.ok(&format!("dedup {input} -o {out} --keep key-hash -q"));
    }
    for file in ["pairs.tsv", "clusters.tsv"] {
        assert_eq!(bench.read(&format!("one/{file}")), bench.read(&format!("two/{file}")));
    }
    bench.ok("dedup in.jsonl -o first -q");
    assert_ne!(bench.read("one/clusters.tsv"), bench.read("first/clusters.tsv"));
    // Computes the kept documents from the definition of the rule, for this order.
    let near = resemblances(&documents);
    let hash = |key: &String| (xxhash_rust::xxh3::xxh3_64(key.as_bytes()), key.clone());
    let mut order: Vec<usize> = (0..documents.len()).collect();
    order.sort_by_key(|&document| hash(&documents[document].0));
    let pairs: BTreeSet<(usize, usize)> =
        near.into_iter().filter(|pair| 10 * pair.2 >= 8 * pair.3).map(|pair| (pair.0, pair.1)).collect();
    let mut wanted: Vec<usize> = Vec::new();
    for document in order {
        let is_near = |&other: &usize| pairs.contains(&(document.min(other), document.max(other)));
        if !wanted.iter().any(is_near) {
            wanted.push(document);
        }
    }
    let mut wanted: Vec<String> = wanted.into_iter().map(|document| documents[document].0.clone()).collect();
    let mut found = kept(&bench, "one");
    wanted.sort();
    found.sort();
    assert_eq!(found, wanted);
}

#[test]
fn document_contained_in_a_larger_one_is_removed_by_containment() {
    let bench = Bench::new();
    let words =
        |range: std::ops::Range<usize>| range.map(|at| format!("w{at}")).collect::<Vec<_>>().join(" ");
    // 8 of 10 shingles are in the first text, 7 in the next, and all in the last.
    let eight = format!("{} x0 x1", words(2..10));
    let seven = format!("{} y0 y1 y2", words(3..10));
    let documents = [
        ("eight", eight.as_str()),
        ("seven", seven.as_str()),
        ("large", &words(0..100)),
        ("part", &words(40..60)),
    ];
    bench.write("in.jsonl", jsonl(&crate::support::documents(documents)));
    let line = "dedup in.jsonl --words 1 --near containment:0.8";
    let report = bench.json(&format!("{line} -o out"));
    assert_eq!(kept(&bench, "out"), ["seven", "large"]);
    assert_eq!(report["removed"], 2);
    assert_eq!(
        bench.rows("out/pairs.tsv", "document\tkept\tcontainment\tintersection\tshingles"),
        ["eight\tlarge\t0.800000\t8\t10", "part\tlarge\t1.000000\t20\t20"]
    );
    says(&bench.ok(&format!("{line} -o out --force")), &["a containment of 0.8 or more, counted exactly"]);
    let why = bench.ok("why out eight");
    says(&why, &["large", "containment 8 / 10 = 0.800000, at least 0.8"]);
}

#[test]
fn index_of_a_run_stores_its_threshold() {
    let bench = Bench::new();
    // 9 of 11 words are in both texts: a resemblance of 0.818.
    let (old, new) = partners(10, 9, 30);
    bench.write("old.jsonl", jsonl(&old));
    bench.write("new.jsonl", jsonl(&new));
    for (threshold, hits) in [("0.7", 30), ("0.9", 0)] {
        bench
            .ok(&format!("dedup old.jsonl -o out --index kept --words 1 --threshold {threshold} --force -q"));
        let stored = bench.json("stats out/index")["near"].to_string();
        assert!(stored.contains(threshold), "{stored}");
        let found = bench.ok("query out/index new.jsonl -q").lines().count();
        // Estimates have errors of a few hundredths.
        assert!(found.abs_diff(hits) < 8, "{threshold}: {found}");
    }
}

#[test]
fn history_format_follows_file_names_and_missing_texts_are_refused() {
    let bench = Bench::new();
    let text = "one two three four five six seven eight nine ten";
    bench.write("old/a.dat", text);
    bench.write("new/b.dat", text);
    bench.write("new/c.dat", "something else that is not like any of the others here");
    bench.ok("dedup old --format text -o out -q");
    let report = bench.json("dedup new --format text -o next --against out");
    assert_eq!((&report["dropped"], &report["kept"]), (&1.into(), &1.into()));
    // The file has the markup of a page, not the text that is compared.
    bench.write("pages/a.html", format!("<p>{text}</p>"));
    bench.write("later/b.html", format!("<html><body><b>{text}</b></body></html>"));
    if !bench.command("dedup pages -o read -q").output().unwrap().status.success() {
        return; // the feature `html` is disabled
    }
    let output = bench.command("dedup later -o later.out --against read").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(
        &String::from_utf8_lossy(&output.stderr),
        &["--against read", "HTML", "run it again with --index kept"],
    );
    bench.ok("dedup pages -o read --index kept --force -q");
    let counted = "dedup later -o later.out --max-work 1000 --against";
    let output = bench.command(&format!("{counted} read")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(&String::from_utf8_lossy(&output.stderr), &["--against read", "HTML", "--texts PAGES"]);
    let report = bench.json(&format!("{counted} read/index --texts pages"));
    assert_eq!((&report["dropped"], &report["kept"]), (&1.into(), &0.into()));
    // The sets were computed from the page's text.
    let report = bench.json("dedup later -o later.out --against read --force");
    assert_eq!((&report["dropped"], &report["kept"]), (&1.into(), &0.into()));
}

#[test]
fn every_history_index_needs_texts_and_may_be_empty() {
    let bench = Bench::new();
    let (old, new) = partners(20, 19, 6);
    bench.write("old.jsonl", jsonl(&old[..4]));
    bench.write("older.jsonl", jsonl(&old[4..]));
    bench.write("new.jsonl", jsonl(&new));
    bench.ok("build old.twx old.jsonl --method minhash -q");
    bench.ok("build older.twx older.jsonl --method minhash -q");
    let line = "dedup new.jsonl --words 1 --against old.twx --against older.twx --texts old.jsonl";
    let report = bench.json(&format!("{line} --texts older.jsonl -o out"));
    assert_eq!(report["dropped"], 6);
    let output = bench.command(&format!("{line} -o no")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(&String::from_utf8_lossy(&output.stderr), &["has 0 of the 2 documents of older.twx"]);
    // Uses the results of a run that kept no document as the history.
    bench.write("none.jsonl", "");
    bench.ok("dedup none.jsonl -o empty -q");
    let report = bench.json("dedup new.jsonl -o all --against empty");
    assert_eq!(report["dropped"], 0);
    assert_eq!(bench.rows("all/against.tsv", AGAINST), [""; 0]);
}
