//! `build --as sketches` runs the first stage of all other verbs by itself. Every build from its file must give the same index as a
//! build from the documents, and a truncated file must be refused.

use std::fs;

use crate::support::{Bench, corpus, documents, has_fields, jsonl, refused, says, succeeded};

/// Returns the segments of an index with their names.
fn segments(bench: &Bench, index: &str) -> Vec<(String, Vec<u8>)> {
    let names = bench.names(index).into_iter().filter(|name| name.contains(".seg"));
    names.map(|name| (name.clone(), fs::read(bench.path(&format!("{index}/{name}"))).unwrap())).collect()
}

#[test]
fn index_built_from_sketches_equals_one_built_from_documents() {
    let bench = Bench::new();
    bench.write("a.jsonl", jsonl(&corpus(1, 300)));
    // Replaces some documents of the first file and adds others.
    bench.write("b.jsonl", jsonl(&corpus(2, 400)[200..]));
    for (name, options) in [
        ("both", ""),
        ("simhash", "--method simhash --near within:2 --words 3"),
        ("minhash", "--method minhash --bands 7 --rows 3 --signature-bits 4 --seed 9"),
        ("bands", "--method minhash --bands 7 --rows 3 --signature-bits 0"),
    ] {
        bench.ok(&format!("build {name}-a a.jsonl {options} -q --as sketches"));
        bench.ok(&format!("build {name}-b b.jsonl {options} -q --as sketches"));
        bench.ok(&format!("build {name}-direct.twx a.jsonl b.jsonl {options} -q"));
        bench.ok(&format!("build {name}-staged.twx {name}-a {name}-b -q"));
        let direct = segments(&bench, &format!("{name}-direct.twx"));
        assert!(direct.len() == 1 && direct[0].1.len() > 4_000, "a test of something");
        assert!(direct == segments(&bench, &format!("{name}-staged.twx")), "{name}");
        // The same holds for an existing index.
        bench.ok(&format!("build {name}-direct2.twx a.jsonl {options} -q"));
        bench.ok(&format!("build {name}-direct2.twx b.jsonl -q"));
        bench.ok(&format!("build {name}-staged2.twx a.jsonl {options} -q"));
        bench.ok(&format!("build {name}-staged2.twx {name}-b -q"));
        let direct = segments(&bench, &format!("{name}-direct2.twx"));
        assert!(direct.len() == 2 && direct == segments(&bench, &format!("{name}-staged2.twx")), "{name}");
        assert_eq!(bench.json(&format!("verify {name}-staged2.twx"))["sound"], true);
    }
}

#[test]
fn sketch_file_does_not_depend_on_threads_or_pipes() {
    let bench = Bench::new();
    let mut all = corpus(3, 500);
    all.push(("long".into(), "word and ".repeat(600_000)));
    all.extend(corpus(4, 30).into_iter().map(|(key, text)| (format!("e{key}"), text)));
    let lines = jsonl(&all);
    bench.write("in.jsonl", &lines);
    bench.ok("build one in.jsonl --threads 1 -q --as sketches");
    bench.ok("build four in.jsonl --threads 4 -q --as sketches");
    succeeded("stdin", bench.command("build piped - -q --as sketches").write_stdin(lines));
    let one = fs::read(bench.path("one")).unwrap();
    assert!(one.len() > 100_000, "more than one block");
    assert!(one == fs::read(bench.path("four")).unwrap() && one == fs::read(bench.path("piped")).unwrap());
    let table = bench.ok("build - in.jsonl --threads 1 --as table");
    assert_eq!(table, bench.ok("build - in.jsonl --threads 3 --as table"));
    assert_eq!(table.lines().count(), 532);
}

#[test]
fn sketch_table_has_one_row_per_document_in_input_order() {
    let bench = Bench::new();
    let all = documents([
        ("z", "one two three four five six"),
        ("a\tb", "..."),
        ("c", "One, two, three; four. FIVE six"),
    ]);
    bench.write("in.jsonl", jsonl(&all));
    let table = bench.ok("build - in.jsonl --bands 2 --rows 2 --as table");
    let rows = crate::support::rows(&table, "key\tfingerprint\tfeatures");
    let cells: Vec<Vec<&str>> = rows.iter().map(|row| row.split('\t').collect()).collect();
    assert_eq!(cells.iter().map(|row| row[0]).collect::<Vec<_>>(), ["z", "a\\tb", "c"]);
    assert_eq!(cells[1][1..], ["-", "-"]);
    assert_eq!(cells[0][1..], cells[2][1..]);
    assert_eq!((cells[0][1].len(), cells[0][2].len()), (16, 33));
    let simhash = bench.ok("build - in.jsonl --method simhash --as table");
    assert_eq!(simhash.lines().nth(1).unwrap(), format!("z\t{}\t-", cells[0][1]));
    bench.ok("build table in.jsonl --bands 2 --rows 2 -q --as table");
    assert_eq!(bench.read("table"), table);
    bench.ok("build table in.jsonl --force -q --as table");
    // `build` does not recognize the table by its name or first bytes, so it reads the table as one text.
    assert_eq!(bench.json("build i.twx table")["documents"], 1);
}

#[test]
fn sketch_summary_has_the_documented_fields() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&documents([("a", "one two three"), ("b", ""), ("c", "...")])));
    let report = bench.json("build out in.jsonl --as sketches");
    has_fields(
        &report,
        &[
            ("documents", "count"),
            ("text_bytes", "count"),
            ("empty", "count"),
            ("bytes_on_disk", "count"),
            ("cpu_seconds", "number"),
            ("seconds", "number"),
            ("mb_per_cpu_second", "number"),
            ("peak_rss_bytes", "count"),
        ],
    );
    assert_eq!((&report["documents"], &report["empty"]), (&3.into(), &2.into()));
    assert_eq!(report["text_bytes"], 16);
    assert_eq!(report["bytes_on_disk"], fs::metadata(bench.path("out")).unwrap().len());
    says(&bench.ok("build out in.jsonl --force --as sketches"), &["out: 3 documents, 16 bytes of text"]);
}

#[test]
fn damaged_or_truncated_sketch_file_is_refused_with_its_offset() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(5, 900)));
    bench.ok("build good in.jsonl -q --as sketches");
    bench.ok("build i.twx in.jsonl -q");
    let good = fs::read(bench.path("good")).unwrap();
    let mut state = crate::support::Random(7);
    let mut damages: Vec<Vec<u8>> = (0..40)
        .map(|_| {
            let mut bytes = good.clone();
            // Without the magic number, the file would be read as documents, so these bytes are not damaged.
            let at = 8 + state.below(good.len() - 8);
            bytes[at] ^= 1 << state.below(8);
            bytes
        })
        .collect();
    damages.extend(
        [good.len() - 1, good.len() - 64, good.len() / 2, 70, 20].map(|length| good[..length].to_vec()),
    );
    damages.push([&good[..], b"more"].concat());
    for damaged in damages {
        bench.write("bad", damaged);
        let before = bench.contents(".");
        for line in ["build i.twx bad", "build new.twx bad"] {
            says(&bench.refused(line), &["bad: damaged: sketches at offset"]);
            assert!(bench.contents(".") == before, "{line}: something changed");
        }
    }
}

#[test]
fn differing_sketch_parameters_are_refused_and_named() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(6, 30)));
    bench.ok("build five in.jsonl -q --as sketches");
    bench.ok("build three in.jsonl --words 3 -q --as sketches");
    bench.ok("build i.twx in.jsonl -q");
    let before = bench.contents(".");
    says(&bench.refused("build i.twx three"), &["three: ", "width is 3 in three, and 5 in i.twx"]);
    says(&bench.refused("build new.twx five three"), &["three: ", "width is 3 in three, and 5 in five"]);
    says(
        &bench.refused("build new.twx three --words 5"),
        &["three: words is 3 in this file of sketches", "--words 5 was given"],
    );
    let output = bench.command("build new.twx five in.jsonl").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(&String::from_utf8_lossy(&output.stderr), &["five is a file of sketches and in.jsonl is none"]);
    assert!(bench.contents(".") == before);
    bench.ok("build new.twx three --words 3 -q");
}

#[test]
fn only_build_reads_sketch_files_and_only_regular_files() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(6, 30)));
    bench.ok("build s in.jsonl -q --as sketches");
    bench.ok("build i.twx s -q");
    let before = bench.contents(".");
    for line in ["query i.twx s", "dedup s -o out", "idf s -o out", "build out s --as sketches"] {
        says(&bench.refused(line), &["s: a file of sketches; `twindex build` reads it, from a regular file"]);
    }
    let mut piped = bench.command("build i.twx -");
    let piped = piped.write_stdin(fs::read(bench.path("s")).unwrap());
    says(&refused("piped", piped), &["a file of sketches; `twindex build` reads it, from a regular file"]);
    says(&bench.refused("build n.twx i.twx/000001.seg"), &["000001.seg: a file of an index"]);
    for option in [
        "features-field f",
        "text-field text",
        "id-field id",
        "format auto",
        "skip-bad 0",
        "invalid-utf8 error",
    ] {
        let output = bench.command(&format!("build i.twx s --{option}")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}");
        let name = option.split(' ').next().unwrap();
        says(
            &String::from_utf8_lossy(&output.stderr),
            &[&format!("--{name} says how documents are read"), "s is"],
        );
    }
    for (option, value) in [("bands", "0"), ("bands", "1025"), ("rows", "4097"), ("bottom", "4097")] {
        let output =
            bench.command(&format!("build new in.jsonl --{option} {value} --as sketches")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}");
    }
    for options in ["--signature-bits 3", "--bands 1024 --rows 5"] {
        let output = bench.command(&format!("build new in.jsonl {options} --as sketches")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{options}");
    }
    assert!(bench.contents(".") == before);
}

#[test]
fn force_replaces_only_existing_sketch_files() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&corpus(7, 20)));
    bench.write("mine", "mine");
    bench.ok("build out in.jsonl -q --as sketches");
    bench.ok("build i.twx in.jsonl -q");
    let before = bench.contents(".");
    says(&bench.refused("build out none.jsonl --as sketches"), &["out: already exists", "--force"]);
    for out in ["mine", "i.twx"] {
        says(
            &bench.refused(&format!("build {out} in.jsonl --force --as sketches")),
            &["is not a file of sketches"],
        );
    }
    says(&bench.refused("build out in.jsonl --force --as table"), &["is not a table of sketches"]);
    says(&bench.refused("build nowhere/out in.jsonl --as sketches"), &["cannot create a file in nowhere"]);
    assert!(bench.contents(".") == before);
    bench.ok("build out in.jsonl --force --words 3 -q --as sketches");
    assert!(bench.contents(".") != before);
}

#[test]
fn sketch_refuses_a_bad_line_with_its_position() {
    let bench = Bench::new();
    let mut lines = jsonl(&corpus(8, 200)).into_bytes();
    lines.extend(b"{\"id\":\"x\"}\n");
    bench.write("in.jsonl", lines);
    let message = refused("sketch", &mut bench.command("build out in.jsonl --as sketches"));
    says(&message, &["in.jsonl:201: no field \"text\""]);
    assert_eq!(bench.names("."), ["in.jsonl"]);
    let report = bench.json("build out in.jsonl --skip-bad 1 --as sketches");
    assert_eq!((&report["documents"], &report["skipped_bad"]), (&200.into(), &1.into()));
}
