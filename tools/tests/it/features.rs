//! Documents that are sets or vectors of features, for example of images, sounds or programs, must work in every verb
//! like texts. Indexes of texts and of features must refuse each other's documents.

use std::fs;

use crate::support::{Bench, corpus, jsonl, says};

/// Writes documents as sets of words, and the same documents as texts with the same words.
fn sets(bench: &Bench) {
    let lines = [
        r#"{"id":"a","ops":["add","load","store",1,2,3]}"#,
        r#"{"id":"b","ops":["2","1","3","store","load","add"]}"#,
        r#"{"id":"c","ops":["add","load","store",1,2,4]}"#,
        r#"{"id":"d","ops":["jump"]}"#,
        r#"{"id":"e","ops":[]}"#,
    ];
    bench.write("sets.jsonl", lines.join("\n"));
}

#[test]
fn feature_sets_are_indexed_and_integers_equal_digit_strings() {
    let bench = Bench::new();
    sets(&bench);
    let report = bench.json("build i.twx sets.jsonl --features-field ops --bands 40 --rows 2");
    assert_eq!(report["documents"], 5);
    let hits = bench.ok("query i.twx sets.jsonl --features-field ops -q");
    let rows: Vec<&str> = hits.lines().collect();
    assert!(rows.contains(&"a\ta\t0\t1.0000\t6\t6") && rows.contains(&"a\tb\t0\t1.0000\t6\t6"), "{hits}");
    let near = bench.ok("query i.twx sets.jsonl --features-field ops --near 0.5 --verify signature -q");
    assert!(near.lines().any(|row| row.starts_with("a\tc\t")), "{near}");
    assert!(
        rows.contains(&"d\td\t0\t1.0000\t1\t1")
            && rows.ends_with(&["d\td\t0\t1.0000\t1\t1", "e\te\t-\t1.0000\t1\t1"]),
        "{hits}"
    );
}

#[test]
fn feature_weights_may_be_repetitions_pairs_or_objects() {
    let bench = Bench::new();
    let table = |lines: &str| {
        bench.write("in.jsonl", lines);
        bench.ok("build - in.jsonl --features-field f --bands 3 --rows 2 --as table -q")
    };
    let of = |value: &str| table(&format!("{{\"id\":1,\"f\":{value}}}"));
    assert_eq!(of(r#"["x","y","x","x","z"]"#), of(r#"{"x":3,"y":1,"z":1}"#));
    assert_eq!(of(r#"[["x",0.75],["y",0.25],["z",2.5e-1]]"#), of(r#"{"x":3,"y":1,"z":1}"#));
    assert_eq!(of(r#"[["x",1],["x",2],["y",1],["z",1]]"#), of(r#"{"z":1,"y":1,"x":3}"#));
    assert_ne!(of(r#"{"x":1,"y":3,"z":1}"#), of(r#"{"x":3,"y":1,"z":1}"#));
    assert_eq!(of(r#"{"x":0}"#), of("[]"));
    assert_eq!(of("[]"), "key\tfingerprint\tfeatures\n1\t-\t-\n");
}

#[test]
fn index_built_from_feature_sketches_equals_one_built_from_features() {
    let bench = Bench::new();
    sets(&bench);
    bench.ok("build out sets.jsonl --features-field ops -q --as sketches");
    bench.ok("build staged.twx out -q");
    bench.ok("build direct.twx sets.jsonl --features-field ops -q");
    let segment = |index| fs::read(bench.path(&format!("{index}/000001.seg"))).unwrap();
    assert!(segment("staged.twx") == segment("direct.twx"));
}

#[test]
fn dedup_compares_sets_exactly_and_keeps_lines_verbatim() {
    let bench = Bench::new();
    sets(&bench);
    bench.ok("dedup sets.jsonl --features-field ops --threshold 0.7 -o out -q");
    assert_eq!(
        bench.read("out/pairs.tsv"),
        "document\tkept\tresemblance\tintersection\tunion\nb\ta\t1.000000\t6\t6\nc\ta\t0.714286\t5\t7\n"
    );
    let kept = bench.read("out/kept.jsonl");
    assert_eq!(kept.lines().next(), Some(r#"{"id":"a","ops":["add","load","store",1,2,3]}"#));
    assert_eq!(kept.lines().count(), 3, "{kept}");
    // Equal sets are copies, regardless of the order and spelling of their elements.
    assert_eq!(bench.json("dedup sets.jsonl --features-field ops --near equal -o exact")["identical"], 1);
    assert_eq!(bench.json("dedup out/kept.jsonl --features-field ops -o again")["removed"], 0);
}

#[test]
fn texts_and_features_cannot_be_mixed_in_an_index() {
    let bench = Bench::new();
    sets(&bench);
    bench.write("texts.jsonl", jsonl(&corpus(1, 20)));
    bench.write("folder/a.txt", "a text");
    bench.ok("build sets.twx sets.jsonl --features-field ops -q");
    bench.ok("build texts.twx texts.jsonl -q");
    bench.ok("build sets.sketches sets.jsonl --features-field ops -q --as sketches");
    let before = bench.contents(".");
    for (line, parts) in [
        ("query texts.twx sets.jsonl --features-field ops", &["texts.twx: made of texts"][..]),
        ("query sets.twx texts.jsonl", &["sets.twx: made of features", "--features-field NAME"]),
        ("build texts.twx sets.jsonl --features-field ops", &["texts.twx: made of texts"]),
        ("build sets.twx texts.jsonl", &["sets.twx: made of features"]),
        (
            "build texts.twx sets.sketches",
            &["tokens is features/14.0.0 in sets.sketches, and words/14.0.0 in texts.twx"],
        ),
        ("build new.twx folder --features-field ops", &["folder: no JSONL", "--features-field ops"]),
        ("build new.twx folder/a.txt --features-field ops", &["folder/a.txt: no JSONL"]),
        ("dedup sets.jsonl --features-field ops -o out --id-field ops", &["the id and the features"]),
    ] {
        says(&bench.refused(line), parts);
    }
    for line in [
        "build new.twx sets.jsonl --features-field ops --text-field text",
        "build new.twx sets.jsonl --features-field ops --words 3",
        "dedup sets.jsonl --features-field ops --words 3 -o out",
        "build out sets.jsonl --features-field ops --words 3 --as sketches",
    ] {
        let output = bench.command(line).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
    }
    assert!(bench.contents(".") == before);
}

#[test]
fn feature_inputs_refuse_text_options_and_name_them() {
    let bench = Bench::new();
    sets(&bench);
    bench.ok("build i.twx sets.jsonl --features-field ops -q");
    let before = bench.contents(".");
    for option in [
        "tokens words",
        "words 1",
        "words 5",
        "normal-form none",
        "stop-words none",
        "stemming none",
        "shingle-hash fast",
    ] {
        for verb in ["build i.twx", "build new.twx", "build new --as sketches", "dedup -o new", "idf -o new"]
        {
            let line = format!("{verb} sets.jsonl --features-field ops --{option}");
            let output = bench.command(&line).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{line}: {stderr}");
            let name = option.split(' ').next().unwrap();
            says(&stderr, &[&format!("--{name} says how text is cut"), "--features-field"]);
        }
    }
    assert!(bench.contents(".") == before);
    bench.ok("dedup sets.jsonl --features-field ops --seed 7 -o new -q");
}

#[test]
fn dedup_weights_features_by_their_idf_table() {
    let bench = Bench::new();
    sets(&bench);
    bench.write("texts.jsonl", jsonl(&corpus(1, 20)));
    bench.ok("idf sets.jsonl --features-field ops --min-df 1 -o sets.idf -q");
    bench.ok("idf texts.jsonl --words 1 -o texts.idf -q");
    let report = bench
        .json("dedup sets.jsonl --features-field ops --near within:3 --idf sets.idf --index kept -o out");
    assert_eq!([&report["documents"], &report["identical"], &report["empty"]], [5, 1, 1]);
    assert_eq!(bench.json("stats out/index")["params"]["simhash"], "idf");
    bench.ok("build direct.twx sets.jsonl --features-field ops --method simhash --idf sets.idf -q");
    let before = bench.contents(".");
    for verb in [
        "dedup -o new --near within:3",
        "build new.twx --method simhash",
        "build new --method simhash --as sketches",
    ] {
        let line = format!("{verb} sets.jsonl --features-field ops --idf texts.idf");
        says(&bench.refused(&line), &["texts.idf: made of texts, and --features-field reads features"]);
        let line = format!("{verb} texts.jsonl --idf sets.idf");
        says(&bench.refused(&line), &["sets.idf: made of features or of fingerprints, and these are texts"]);
    }
    assert!(bench.contents(".") == before);
}

#[test]
fn documents_without_features_are_counted_and_reported() {
    let bench = Bench::new();
    sets(&bench);
    assert_eq!(bench.json("build i.twx sets.jsonl --features-field ops")["empty"], 1);
    bench.ok("build sketches sets.jsonl --features-field ops -q --as sketches");
    let note = "note: 1 document without words or features: it is near nothing";
    says(&bench.ok("build staged.twx sketches"), &[note]);
    let note = "note: 1 document without a fingerprint or features, near nothing but one with the same key";
    says(&bench.ok("build direct.twx sets.jsonl --features-field ops"), &[note]);
    says(&bench.ok("dedup sets.jsonl --features-field ops -o out"), &[note]);
    bench.write("one.jsonl", r#"{"id":1,"ops":["a"]}"#);
    assert!(!bench.ok("dedup one.jsonl --features-field ops -o one").contains("without words"));
}

#[test]
fn invalid_sets_are_refused_with_their_position_or_skipped() {
    let bench = Bench::new();
    bench.write(
        "in.jsonl",
        "{\"id\":1,\"f\":[1]}\n{\"id\":2,\"f\":[1,null]}\n{\"id\":3,\"f\":{\"a\":1e99}}\n",
    );
    let message = bench.refused("build i.twx in.jsonl --features-field f");
    says(&message, &["in.jsonl:2: field \"f\" has null as element 1"]);
    let message = bench.refused("build i.twx in.jsonl --features-field f --skip-bad 1");
    says(
        &message,
        &["in.jsonl:3: field \"f\" has 1e99, which is not between -2^47 and 2^47, as the weight of \"a\""],
    );
    assert_eq!(bench.json("build i.twx in.jsonl --features-field f --skip-bad 2")["documents"], 1);
}

#[test]
fn rows_without_features_are_kept_counted_and_named() {
    let bench = Bench::new();
    let values =
        ["\"f\":[\"x\",\"y\"]", "\"f\":[]", "\"f\":{}", "\"f\":null", "\"g\":1", "\"f\":[\"y\",\"x\"]"];
    let lines = values.iter().enumerate().map(|(at, value)| format!("{{\"id\":{at},{value}}}\n"));
    bench.write("in.jsonl", lines.collect::<String>());
    for near in ["0.8", "equal", "containment:0.9"] {
        let report = bench.json(&format!("dedup in.jsonl --features-field f --near {near} -o {near}"));
        assert_eq!(
            (&report["kept"], &report["identical"], &report["contentless"]),
            (&5.into(), &1.into(), &4.into()),
            "{report}"
        );
        assert_eq!(report["first_contentless"], "in.jsonl:2");
    }
    let fates = bench.ok("stream i.twx in.jsonl --features-field f -q");
    assert_eq!(fates.lines().filter(|line| line.contains("\tnew\t")).count(), 5, "{fates}");
    assert_eq!(bench.ok("query i.twx in.jsonl --features-field f -q").lines().count(), 8);
}
