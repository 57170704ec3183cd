//! `--preset` must have exactly the same effect as options with the numbers of bands and rows of the preset.

use crate::support::{Bench, corpus, documents, jsonl, says};
use twindex::Index;
use twindex::params::Preset;

fn bench() -> Bench {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(11, 30)));
    bench
}

#[test]
fn preset_builds_the_same_index_as_explicit_band_numbers() {
    let bench = bench();
    for preset in Preset::ALL {
        let (name, scheme) = (preset.name, preset.scheme);
        bench.ok(&format!("build {name}.twx in.jsonl -q --preset {name}"));
        let index = Index::open(bench.path(&format!("{name}.twx"))).unwrap();
        let minhash = index.params().minhash.unwrap();
        assert_eq!((minhash.bands, minhash.rows), (scheme.groups, scheme.group_size), "{name}");
        let bits = scheme.feature_bits.min(32);
        assert_eq!(minhash.feature_bits, bits, "{name}");
        let numbers = format!("--bands {} --rows {} --feature-bits {bits}", scheme.groups, scheme.group_size);
        bench.ok(&format!("build {name}-n.twx in.jsonl -q {numbers}"));
        let same = Index::open(bench.path(&format!("{name}-n.twx"))).unwrap();
        assert_eq!(index.params().digest(), same.params().digest(), "{name}");
        // Documents can be added to the index with either form of the options.
        bench.ok(&format!("build {name}.twx in.jsonl -q {numbers}"));
        bench.ok(&format!("build {name}-n.twx in.jsonl -q --preset {name}"));
    }
}

#[test]
fn contradicting_preset_is_refused() {
    let bench = bench();
    bench.ok("build i.twx in.jsonl -q");
    bench.ok("build simhash.twx in.jsonl -q --method simhash");
    let before = bench.contents(".");
    // Contradicting the index gives exit code 1; contradicting another option gives 2, as a usage error.
    for (line, parts) in [
        ("build i.twx in.jsonl --preset broder-84", &["20 x 6", "--preset broder-84 has 6 x 14"][..]),
        ("build simhash.twx in.jsonl --preset broder-84", &["none", "6 x 14"]),
    ] {
        says(&bench.refused(line), parts);
    }
    let methods = &["--preset broder-84 goes with --method minhash"][..];
    for (line, parts) in [
        ("build new.twx in.jsonl --method simhash --preset broder-84", methods),
        ("build new.twx in.jsonl --preset broder", &["'broder'", "expected one of broder-84, broder-200"]),
        ("build new.twx in.jsonl --preset broder-84 --bands 6", &["cannot be used with"]),
        ("build new.twx in.jsonl --rows 14 --preset broder-84", &["cannot be used with"]),
        ("build new.twx in.jsonl --preset Broder-84", &["expected one of"]),
    ] {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8_lossy(&output.stderr), parts);
    }
    assert!(before == bench.contents("."), "a refusal changed something");
}

#[test]
fn threshold_bands_are_chosen_at_creation_and_then_fixed() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "one two three four five six seven")])));
    bench.ok("build i.twx in.jsonl --near 0.5 -q");
    let stats = bench.json("stats i.twx");
    let chosen = twindex::planner::Banding::for_threshold(0.5);
    assert_eq!(stats["params"]["bands"], chosen.bands.to_string());
    assert_eq!(stats["params"]["rows"], chosen.rows.to_string());
    bench.ok("build i.twx in.jsonl --near 0.5 -q");
    let message = bench.refused("build i.twx in.jsonl --near 0.9");
    says(&message, &["--near 0.9 has", &format!("{} x {} in this index", chosen.bands, chosen.rows)]);
    for bad in ["--near 0.5 --bands 3", "--near 0.01", "--near 2", "--near 0.5 --method simhash"] {
        let output = bench.command(&format!("build new.twx in.jsonl {bad}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{bad}");
    }
}

#[test]
fn requiring_more_shared_features_gives_fewer_pairs_and_hits() {
    let bench = Bench::new();
    let documents = corpus(12, 200);
    bench.write("in.jsonl", jsonl(&documents));
    bench.ok("build i.twx in.jsonl -q --method minhash --preset small-8 --feature-bits 32");
    let keys = |table: String| -> std::collections::BTreeSet<String> {
        table.lines().map(|line| line.rsplitn(3, '\t').last().unwrap().to_owned()).collect()
    };
    let mut last = None;
    for sharing in [1, 2, 5, 8] {
        let pairs =
            keys(bench.ok(&format!("pairs i.twx --near 0.5 --verify signature --sharing {sharing} -q")));
        assert!(!pairs.is_empty());
        if let Some(more) = last.replace(pairs.clone()) {
            assert!(pairs.len() < more.len() && pairs.is_subset(&more), "{sharing}");
        }
        let hits =
            bench.ok(&format!("query i.twx in.jsonl --near 0.5 --verify signature --sharing {sharing} -q"));
        let hits: std::collections::BTreeSet<String> = hits
            .lines()
            .map(|line| line.split('\t').take(2).collect::<Vec<_>>())
            .filter(|pair| pair[0] < pair[1])
            .map(|pair| pair.join("\t"))
            .collect();
        assert!(hits == pairs, "{sharing}: {} {}", hits.len(), pairs.len());
    }
    // For a small number of documents, three bytes must be equal.
    let bytes = keys(bench.ok("pairs i.twx --near 0.5 --verify signature --feature-bits 8 -q"));
    assert_eq!(
        bytes,
        keys(bench.ok("pairs i.twx --near 0.5 --verify signature --feature-bits 8 --sharing 3 -q"))
    );
    assert_ne!(
        bytes,
        keys(bench.ok("pairs i.twx --near 0.5 --verify signature --feature-bits 8 --sharing 7 -q"))
    );
    // Pairs that share features only by chance are not near by exact counts.
    bench.ok("build all.twx in.jsonl -q --method minhash --bands 100 --rows 2");
    let rows = |line: &str| -> Vec<String> { bench.ok(line).lines().map(str::to_owned).collect() };
    let all = rows("pairs all.twx --near 0.8 --verify exact --texts in.jsonl -q");
    let some = rows("pairs i.twx --near 0.8 --verify exact --texts in.jsonl -q --feature-bits 8");
    assert!(some.len() > 50 && some.len() < all.len() && some.iter().all(|pair| all.contains(pair)));
    for (line, why) in [
        ("pairs i.twx --near within:3 --sharing 2", "go with --near J"),
        ("query i.twx in.jsonl --sharing 2", "go with --near J"),
        ("pairs i.twx --near 0.5 --sharing 9", "a document has 8 features"),
        ("pairs i.twx --near 0.5 --feature-bits 33", "33 is not in 1..=32"),
    ] {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8_lossy(&output.stderr), &[why]);
    }
}

#[test]
fn index_of_8_bit_features_answers_like_8_bit_queries() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(12, 200)));
    bench.ok("build bytes.twx in.jsonl -q --method minhash --preset small-8");
    bench.ok("build wide.twx in.jsonl -q --method minhash --preset small-8 --feature-bits 32");
    let stats = ["bytes.twx", "wide.twx"].map(|name| bench.json(&format!("stats {name}")));
    assert_eq!(stats[0]["params"]["feature-bits"], "8");
    assert!(stats[1]["params"].get("feature-bits").is_none());
    for (asked, of_wide) in [
        ("", "--feature-bits 8"),
        ("--sharing 7", "--feature-bits 8 --sharing 7"),
        ("--feature-bits 5 --sharing 2", "--feature-bits 5 --sharing 2"),
    ] {
        let narrow = bench.ok(&format!("pairs bytes.twx --near 0.5 --verify signature -q {asked}"));
        assert!(!narrow.is_empty());
        assert_eq!(
            narrow,
            bench.ok(&format!("pairs wide.twx --near 0.5 --verify signature -q {of_wide}")),
            "{asked}"
        );
        let hits = |name: &str, how: &str| {
            bench.ok(&format!("query {name} in.jsonl --near 0.5 --verify signature -q {how}"))
        };
        assert_eq!(hits("bytes.twx", asked), hits("wide.twx", of_wide), "{asked}");
    }
    // Two indexes are compared by the bits that both keep.
    let across = |one: &str, other: &str, how: &str| {
        bench.ok(&format!("pairs {one} --with {other} --near 0.5 --verify signature -q {how}"))
    };
    let both = across("wide.twx", "wide.twx", "--feature-bits 8");
    assert_eq!(both, across("bytes.twx", "wide.twx", ""));
    assert_eq!(both, across("wide.twx", "bytes.twx", ""));

    let kept = ["--feature-bits 9", "8 bits are kept of each feature here", "1 to 8"];
    for line in [
        "pairs bytes.twx --near 0.5 --feature-bits 9",
        "query bytes.twx in.jsonl --near 0.5 --verify signature --feature-bits 9",
        "pairs wide.twx --with bytes.twx --near 0.5 --feature-bits 9",
    ] {
        let output = bench.command(line).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{line}");
        says(&String::from_utf8_lossy(&output.stderr), &kept);
    }
    let message = bench.refused("build wide.twx in.jsonl --feature-bits 8");
    says(&message, &["wide.twx: 32 bits", "--feature-bits 8 was given"]);
    let output = bench.command("build new.twx in.jsonl --method simhash --feature-bits 8").output().unwrap();
    says(&String::from_utf8_lossy(&output.stderr), &["--feature-bits, --family", "go with --method minhash"]);
    // Documents can still be added to an index that was made with this preset before feature bits could be chosen.
    bench.ok("build wide.twx in.jsonl -q --method minhash --preset small-8");

    // Sketches store all bits of each feature, so they can be added to any index with these bands.
    bench.ok("build in.sketches in.jsonl -q --method minhash --preset small-8 --as sketches");
    bench.ok("build sketched.twx in.sketches -q");
    let segment = |name: &str| {
        let mut files = bench.contents(name).into_iter();
        files.find(|(path, _)| path.ends_with("000001.seg")).unwrap().1
    };
    assert!(segment("sketched.twx") == segment("bytes.twx"));
    bench.ok("build again.twx in.jsonl -q --method minhash --preset small-8 --feature-bits 32");
    bench.ok("build again.twx in.sketches -q");
    assert_eq!(bench.ok("pairs again.twx --near 0.5 -q"), bench.ok("pairs wide.twx --near 0.5 -q"));
}
