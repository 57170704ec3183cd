//! A threshold must mean the same in each verb: it is stored in the index, defines duplicates for `stream` and the
//! default answers of `query` and `pairs`, and can be overridden for one run. Earlier, the threshold only selected the
//! bands. Then documents far below it were dropped as duplicates, and an index without signatures answered with every
//! document that shared a band.

use crate::support::{Bench, Document, Random, jsonl, rows, says, words};
use twindex::Index;
use twindex::params::Near;

/// Returns a text of `shared` words that all documents of the group have, and `own` words that only this text has.
fn text(group: &str, name: &str, shared: usize, own: usize) -> String {
    let shared = (0..shared).map(|number| format!("{group}{number}"));
    shared.chain((0..own).map(|number| format!("{group}{name}{number}"))).collect::<Vec<_>>().join(" ")
}

/// Returns 40 pairs of documents with 100 words each. The documents of a pair share `shared` words.
fn pairs(of: &str, shared: usize) -> String {
    let both = |pair: usize| {
        let group = format!("{of}{pair}x");
        ["a", "b"].map(|name| (format!("{group}{name}"), text(&group, name, shared, 100 - shared)))
    };
    let line = |(key, text): (String, String)| format!("{{\"id\":\"{key}\",\"text\":\"{text}\"}}\n");
    (0..40).flat_map(both).map(line).collect::<Vec<String>>().concat()
}

/// The resemblances of the three files are 0.905 (95 of 105), 0.818 (90 of 110) and 0.538 (70 of 130).
fn bench() -> Bench {
    let bench = Bench::new();
    for (name, shared) in [("close", 95), ("below", 90), ("far", 70)] {
        bench.write(&format!("{name}.jsonl"), pairs(name, shared));
    }
    bench
}

fn near(bench: &Bench, index: &str) -> Near {
    Index::open(bench.path(index)).unwrap().params().near()
}

#[test]
fn stream_keeps_documents_below_its_threshold_and_finds_duplicates_above() {
    let bench = bench();
    for (input, threshold, duplicates) in
        [("below", 0.95, 0), ("below", 0.7, 40), ("close", 0.99, 0), ("far", 0.4, 40), ("far", 0.7, 0)]
    {
        let index = format!("{input}-{threshold}.twx");
        let line = format!("stream {index} {input}.jsonl --words 1 --near {threshold} --drop-duplicates");
        let report = bench.json(&line);
        assert_eq!(report["duplicates"].as_u64(), Some(duplicates), "{line}");
        assert_eq!(report["documents"].as_u64(), Some(80 - duplicates), "{line}");
        assert_eq!(near(&bench, &index), Near::resembling(threshold).unwrap());
        assert_eq!(report["near"]["threshold"].as_f64(), Some(threshold));
        assert!(report["near"]["within"].is_null() && report["verify"] == "exact");
        // Without options, the existing index determines the near relation.
        let again = bench.json(&format!("stream {index} {input}.jsonl"));
        assert_eq!(again["near"]["threshold"].as_f64(), Some(threshold));
    }
}

#[test]
fn stream_accepts_another_threshold_or_radius_for_one_run() {
    let bench = bench();
    let usual = Near::resembling(0.8).unwrap();
    let streamed = |options: &str| {
        let index = format!("usual{}.twx", options.replace(' ', ""));
        bench.ok(&format!("stream {index} below.jsonl --words 1 --drop-duplicates -q"));
        let output = bench.command(&format!("stream {index} close.jsonl {options}")).output().unwrap();
        let notes = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{notes}");
        assert_eq!(near(&bench, &index), usual, "{options}");
        let printed = String::from_utf8(output.stdout).unwrap();
        (printed.lines().filter(|line| line.contains("\tduplicate\t")).count(), notes)
    };
    let (duplicates, notes) = streamed("--near 0.99");
    assert_eq!(duplicates, 0);
    says(&notes, &["duplicates by a resemblance of 0.99 or more; a resemblance is counted"]);
    assert!(!notes.contains("its 20 bands"), "{notes}");
    says(
        &bench.refused("stream usual--near0.99.twx close.jsonl --near 0.5"),
        &["0.8 or more", "--verify signature"],
    );
    let (duplicates, notes) = streamed("--near 0.5 --verify signature");
    assert_eq!(duplicates, 40);
    says(&notes, &["its 20 bands of 6 minima find 27.0 % of the documents that resemble by 0.5"]);
    says(&notes, &["0.5 or more; a resemblance is an estimate"]);
    let (duplicates, notes) = streamed("--near 0.99 --near within:10");
    assert!(duplicates > 0, "{notes}");
    says(&notes, &["0.99 or more, or fingerprints at most 10 bits apart"]);
    let (duplicates, _) = streamed("");
    assert_eq!(duplicates, 40);
    bench.ok("build simhash.twx far.jsonl --words 1 --method simhash -q");
    says(
        &bench.refused("stream simhash.twx below.jsonl --near 0.9"),
        &["simhash.twx", "no MinHash", "--near J"],
    );
    bench.ok("build minhash.twx far.jsonl --words 1 --method minhash -q");
    says(
        &bench.refused("stream minhash.twx below.jsonl --near within:3"),
        &["minhash.twx", "no fingerprints"],
    );
}

#[test]
fn query_and_pairs_use_the_stored_threshold_by_default() {
    let bench = bench();
    let hits = |line: &str| bench.ok(line).lines().filter(|line| !line.is_empty()).count();
    for (threshold, found) in [("0.97", 0), ("0.6", 40)] {
        let index = format!("{threshold}.twx");
        bench.ok(&format!("build {index} below.jsonl --words 1 --near {threshold} -q"));
        // Each document finds itself and, with the low threshold, also the other document of its pair.
        assert_eq!(hits(&format!("query {index} below.jsonl")), 80 + 2 * found, "{threshold}");
        assert_eq!(hits(&format!("pairs {index}")), found, "{threshold}");
        // The output is one line for each document of a cluster, and the header.
        assert_eq!(hits(&format!("groups --as clusters {index} -q")), 1 + 2 * found, "{threshold}");
        // Options override the stored threshold for one run.
        assert_eq!(hits(&format!("query {index} below.jsonl --near 0.98")), 80);
        assert_eq!(hits(&format!("query {index} below.jsonl --near within:0")), 80);
        assert_eq!(hits(&format!("pairs {index} --near 0.95")), 0);
    }
    bench.ok("build minhash.twx below.jsonl --words 1 --method minhash --near 0.6 -q");
    assert_eq!(hits("pairs minhash.twx"), 40);
    let stats = bench.json("stats minhash.twx");
    assert_eq!((stats["near"]["threshold"].as_f64(), stats["near"]["within"].is_null()), (Some(0.6), true));
    assert_eq!(stats["params"]["threshold"], "0.6");
    says(&bench.ok("stats minhash.twx"), &["near by: a resemblance of 0.6 or more"]);
}

#[test]
fn index_without_signatures_accepts_shared_bands_only_with_verify_none() {
    let bench = bench();
    bench.ok("build x.twx far.jsonl --words 1 --bands 100 --rows 2 --signature-bits 0 --sets none -q");
    let before = bench.contents(".");
    for line in [
        "query x.twx far.jsonl",
        "query x.twx far.jsonl --near 0.99",
        "pairs x.twx --near 0.99",
        "stream x.twx far.jsonl",
        "stream new.twx far.jsonl --words 1 --signature-bits 0 --sets none",
        "groups --as clusters x.twx --near 0.99",
        "stream new.twx far.jsonl --words 1 --sets none --drop-duplicates",
    ] {
        says(&bench.refused(line), &["no sets", "--verify signature"]);
    }
    for line in ["query x.twx far.jsonl", "pairs x.twx --near 0.99", "stream x.twx far.jsonl"] {
        says(&bench.refused(&format!("{line} --verify signature")), &["keeps no signatures"]);
    }
    assert!(bench.contents(".") == before, "what is refused leaves no trace");
    // Queries by distance and with exact counts work as before.
    assert_eq!(bench.ok("query x.twx far.jsonl --near within:0").lines().count(), 80);
    let counted = bench.ok("query x.twx far.jsonl --near 0.99 --verify exact --texts far.jsonl");
    assert_eq!(counted.lines().count(), 80);
    assert_eq!(
        bench.json("stream y.twx far.jsonl --words 1 --method simhash --near within:0")["duplicates"],
        0
    );

    let output = bench.command("query x.twx far.jsonl --near 0.99 --verify none").output().unwrap();
    says(&String::from_utf8(output.stderr).unwrap(), &["share a band", "whatever their resemblance"]);
    let all = String::from_utf8(output.stdout).unwrap();
    assert!(all.lines().count() > 140 && all.lines().all(|line| line.ends_with("\t-")), "{all}");
    let line = "stream new.twx far.jsonl --words 1 --bands 100 --rows 2 --signature-bits 0 --sets none --verify none";
    let output = bench.command(line).output().unwrap();
    says(
        &String::from_utf8(output.stderr).unwrap(),
        &["duplicates by a band in common, whatever the resemblance"],
    );
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(printed.lines().filter(|line| line.contains("\tduplicate\t")).count() > 30, "{printed}");
    // Without a resemblance, there is nothing to verify.
    for line in
        ["query x.twx far.jsonl --near within:3 --verify none", "stream y.twx far.jsonl --verify none"]
    {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8(output.stderr).unwrap(), &["--verify", "leave it out"]);
    }
}

#[test]
fn parameters_list_the_threshold_only_if_it_is_not_default() {
    let bench = bench();
    bench.ok("build numbers.twx close.jsonl --words 1 --bands 20 --rows 6 -q");
    bench.ok("build usual.twx close.jsonl --words 1 --near 0.8 --bottom 0 -q");
    bench.ok("build either.twx close.jsonl --words 1 --near 0.8 --near within:3 -q");
    let params = |index: &str| Index::open(bench.path(index)).unwrap().params();
    let bands = params("usual.twx").minhash.unwrap();
    bench.ok(&format!(
        "build same.twx close.jsonl --words 1 --bands {} --rows {} -q",
        bands.bands, bands.rows
    ));
    assert_eq!(params("usual.twx").encode(), params("same.twx").encode());
    assert!(!params("numbers.twx").encode().contains("threshold"));
    assert!(bench.ok("stats numbers.twx").contains("near by: a resemblance of 0.8 or more\n"));
    says(
        &bench.ok("stats either.twx"),
        &["near by: a resemblance of 0.8 or more, or fingerprints at most 3 bits apart"],
    );
    assert!(!params("either.twx").encode().contains("near-within"));
    // Options must agree with the existing index, as for all stored parameters.
    bench.ok("build either.twx below.jsonl --words 1 --near 0.8 --near within:3 -q");
    bench.ok("build same.twx below.jsonl --words 1 --near 0.8 -q");
    for options in ["--near within:3", "--near 0.8 --near within:3"] {
        says(
            &bench.refused(&format!("build same.twx below.jsonl --words 1 {options}")),
            &[
                "same.twx: documents are near by a resemblance of 0.8 or more in this index",
                "--near within:3",
                "leave it out",
            ],
        );
    }
    bench.ok("build high.twx close.jsonl --words 1 --near 0.95 --near within:2 -q");
    assert_eq!(near(&bench, "high.twx"), Near::resembling(0.95).unwrap().or_within(2));
    says(&bench.refused("build high.twx below.jsonl --words 1 --near 0.952"), &["0.95", "--near 0.952"]);
    // The same holds for a file of sketches.
    bench.ok("build close.sketches close.jsonl --words 1 --near 0.95 -q --as sketches");
    bench.ok("build sketched.twx close.sketches -q");
    assert_eq!(near(&bench, "sketched.twx"), Near::resembling(0.95).unwrap());
}

/// Returns files of texts that mostly repeat one thing, so that their fingerprints are close although they have little in
/// common, and the options to read them with.
fn repetitive() -> [(&'static str, &'static str, Vec<Document>); 4] {
    let own =
        |name: &str, count: usize| (0..count).map(|number| format!("{name}{number}")).collect::<Vec<_>>();
    let of_each = |text: &dyn Fn(&str) -> String| {
        ["one", "two", "three"].map(|name| (name.to_owned(), text(name))).to_vec()
    };
    let bases = |name: &str| {
        let mut random = Random(name.bytes().map(u64::from).sum());
        (0..40).map(|_| ["A", "C", "G", "T"][random.below(4)]).collect::<String>()
    };
    [
        ("misread", "", of_each(&|name| "la ".repeat(500) + &own(name, 15).join(" "))),
        ("empty-cells", "--words 3", of_each(&|name| own(name, 4).join("\t") + &"\tNA".repeat(300))),
        ("poly-a", "--tokens characters", of_each(&|name| "A".repeat(900) + &bases(name))),
        ("leaders", "--tokens words-symbols", of_each(&|name| own(name, 3).join(&".".repeat(700)))),
    ]
}

#[test]
fn documents_that_only_repeat_the_same_are_near_in_no_verb_unless_a_distance_was_given() {
    let bench = Bench::new();
    let single = ["one\tone\t1", "three\tthree\t1", "two\ttwo\t1"];
    for (name, options, documents) in repetitive() {
        bench.write(&format!("{name}.jsonl"), jsonl(&documents));
        let input = format!("{name}.jsonl {options} -q");
        bench.ok(&format!("dedup {input} -o {name}-out"));
        assert_eq!(bench.read(&format!("{name}-out/kept.jsonl")).lines().count(), 3, "{name}");
        let streamed = bench.ok(&format!("stream {name}-s.twx {input} --drop-duplicates"));
        assert_eq!(streamed.lines().filter(|line| line.contains("\tnew\t")).count(), 3, "{streamed}");
        bench.ok(&format!("build {name}-b.twx {input}"));
        bench.ok(&format!("build {name}.sketches {input} --as sketches"));
        bench.ok(&format!("build {name}-k.twx {name}.sketches -q"));
        for index in ["b", "k", "s"].map(|index| format!("{name}-{index}.twx")) {
            assert_eq!(near(&bench, &index), Near::resembling(0.8).unwrap());
            assert_eq!(rows(&bench.ok(&format!("groups {index}")), "key\tleader\tsize"), single, "{index}");
            assert_eq!(bench.ok(&format!("query {index} {name}.jsonl")).lines().count(), 3, "{index}");
            assert_eq!(bench.ok(&format!("pairs {index} --count")), "0\n");
            assert_eq!(bench.ok(&format!("groups --as clusters {index} -q")).lines().count(), 1);
            // Fingerprints are stored, and decide where they are asked for.
            assert_eq!(bench.ok(&format!("query {index} {name}.jsonl --near within:3")).lines().count(), 9);
            assert_eq!(bench.ok(&format!("pairs {index} --near within:3 --count")), "3\n");
        }
        for asked in ["--near within:3", "--near 0.8 --near within:3", "--method simhash"] {
            let index = format!("{name}{}.twx", asked.replace(' ', ""));
            let streamed = bench.ok(&format!("stream {index} {input} {asked}"));
            assert_eq!(
                streamed.lines().filter(|line| line.contains("\tduplicate\tone\t")).count(),
                2,
                "{streamed}"
            );
            // The index has the rule from now on.
            let groups = rows(&bench.ok(&format!("groups {index}")), "key\tleader\tsize");
            assert!(groups.iter().all(|row| row.ends_with("\t3")), "{groups:?}");
            assert_eq!(bench.json(&format!("stream {index} {name}.jsonl --drop-duplicates"))["known"], 3);
        }
        // A distance that is given for one run of `stream` decides in this run.
        let others: Vec<Document> =
            documents.into_iter().map(|(key, text)| (format!("another {key}"), text)).collect();
        bench.write("others.jsonl", jsonl(&others));
        let streamed = bench.ok(&format!("stream {name}-b.twx others.jsonl --near within:3 -q"));
        assert_eq!(streamed.lines().filter(|line| line.contains("\tduplicate\t")).count(), 3, "{streamed}");
        assert_eq!(near(&bench, &format!("{name}-b.twx")), Near::resembling(0.8).unwrap());
    }
}

/// Returns documents, some near an earlier one or copies of it. Most repeat a word up to 400 times.
fn repeating(seed: u64, count: usize) -> Vec<Document> {
    let mut random = Random(seed);
    let mut texts: Vec<Vec<String>> = Vec::new();
    for place in 0..count {
        let mut text = match random.below(5) {
            0 | 1 if place > 0 => texts[random.below(place)].clone(),
            _ => {
                let own = 3 + random.below(30);
                let mut text = words(&mut random, own);
                let repeated = ["la", "n/a", "x", "..."][random.below(4)].to_owned();
                let at = random.below(text.len());
                let times = [0, 3, 60, 400][random.below(4)];
                text.splice(at..at, std::iter::repeat_n(repeated, times));
                text
            }
        };
        for _ in 0..random.below(4) {
            let at = random.below(text.len());
            text[at] = format!("w{}", random.below(700));
        }
        texts.push(text);
    }
    texts.into_iter().enumerate().map(|(place, text)| (format!("d{place:03}"), text.join(" "))).collect()
}

#[test]
fn stream_without_options_admits_what_dedup_keeps_of_documents_that_repeat_words() {
    let bench = Bench::new();
    for (seed, options) in
        [(81, ""), (82, "--words 2"), (83, "--tokens characters"), (84, "--tokens words-symbols")]
    {
        bench.write("in.jsonl", jsonl(&repeating(seed, 250)));
        bench.ok(&format!("dedup in.jsonl -o out{seed} {options} -q"));
        let kept = bench.read(&format!("out{seed}/kept.jsonl"));
        let kept: Vec<&str> = kept.lines().map(|line| &line[7..11]).collect();
        assert!(kept.len() > 100 && kept.len() < 240, "{seed}: {}", kept.len());
        for how in ["", "--drop-duplicates"] {
            let streamed = bench.ok(&format!("stream s{seed}{how}.twx in.jsonl {options} {how} -q"));
            let new: Vec<&str> =
                streamed.lines().filter_map(|line| line.split_once("\tnew\t")).map(|(key, _)| key).collect();
            assert_eq!(new, kept, "{seed} {how}");
        }
        // `groups` decides by the same rule, in another order.
        bench.ok(&format!("build b{seed}.twx in.jsonl {options} -q"));
        bench.ok(&format!("dedup in.jsonl -o by-hash{seed} --keep key-hash {options} -q"));
        let groups = rows(&bench.ok(&format!("groups b{seed}.twx")), "key\tleader\tsize");
        let leaders: Vec<&str> = groups
            .iter()
            .map(|row| row.split('\t').collect::<Vec<_>>())
            .filter(|row| row[0] == row[1])
            .map(|row| row[0])
            .collect();
        let by_hash = bench.read(&format!("by-hash{seed}/kept.jsonl"));
        let mut by_hash: Vec<&str> = by_hash.lines().map(|line| &line[7..11]).collect();
        by_hash.sort_unstable();
        assert_eq!(leaders, by_hash, "{seed}");
    }
}

#[test]
fn forms_of_near_and_keep_that_a_verb_does_not_take_are_refused_with_the_reason() {
    let bench = bench();
    bench.ok("build i.twx close.jsonl -q");
    let before = bench.contents(".");
    let twice = "give one resemblance, one distance, or one of each";
    for (line, why) in [
        ("build n.twx close.jsonl --near 0.8 --near 0.9", twice),
        ("build n close.jsonl --near within:3 --near within:4 --as sketches", twice),
        ("stream n.twx close.jsonl --near 0.8 --near containment:0.8", twice),
        ("stream n.twx close.jsonl --near within:3 --near containment:0.8", "containment:J goes alone"),
        (
            "build n.twx close.jsonl --near containment:0.8",
            "an index is made for a resemblance or a distance",
        ),
        ("build n.twx close.jsonl --near equal", "equal is not taken here: an index keeps no texts"),
        (
            "build n.twx close.jsonl --near 0.5 --bands 3",
            "--near 0.5 and --bands both say which bands are made",
        ),
        (
            "build n.twx close.jsonl --near within:3 --method minhash",
            "--near within:K goes with --method simhash",
        ),
        ("query i.twx close.jsonl --near equal", "`dedup --near equal` reads them"),
        ("query i.twx --fingerprints f --near 0.8", "give --near within:K"),
        ("pairs i.twx --near containment:0.8", "`dedup` and `query` measure containment"),
        ("pairs --fingerprints f", "--fingerprints needs a distance: give --near within:K"),
        ("groups --as clusters i.twx --near equal", "an index keeps no texts"),
        (
            "groups --as clusters i.twx --keep max:score",
            "--keep max:score goes by the documents, which are not in an index or a file of pairs: name them with --texts",
        ),
        ("stats i.twx --html - --near within:3", "documents are compared by resemblance"),
        (
            "study close.jsonl --method simhash --near containment:0.8",
            "pairs are found by resemblance or by distance",
        ),
        ("study --apply rules --near 0.8", "--near goes without --apply"),
    ] {
        let output = bench.command(line).output().unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}: {message}");
        says(&message.split_whitespace().collect::<Vec<_>>().join(" "), &[why]);
    }
    assert!(bench.contents(".") == before, "a refusal wrote something");
}
