//! Documents come from files of many formats. Each format must give the same documents, skipped files and records must
//! be counted, and nothing may be changed while reading.

use std::fmt::Write as _;

use crate::support::{Bench, TWINDEX, corpus, documents, gzip, jsonl, refused, says, succeeded};

#[test]
fn plain_compressed_and_piped_input_give_the_same_files() {
    let bench = Bench::new();
    let lines = jsonl(&corpus(1, 150));
    bench.write("in.jsonl", &lines);
    bench.write("in2.jsonl.gz", gzip(lines.as_bytes()));
    bench.write("in3.jsonl.zst", zstd::encode_all(lines.as_bytes(), 3).unwrap());
    bench.ok("dedup in.jsonl -o plain -q");
    bench.ok("dedup in2.jsonl.gz -o gz -q");
    bench.ok("dedup in3.jsonl.zst -o zst -q");
    succeeded("stdin", bench.command("dedup - -o stdin -q").write_stdin(lines.clone()));
    succeeded("stdin, packed", bench.command("dedup - -o stdin-gz -q").write_stdin(gzip(lines.as_bytes())));
    // Splits the same documents into files of two formats.
    let (first, second) = lines.split_at(lines[..lines.len() / 2].rfind('\n').unwrap() + 1);
    bench.write("first.jsonl", first);
    bench.write("second.jsonl.gz", gzip(second.as_bytes()));
    bench.ok("dedup first.jsonl second.jsonl.gz -o halves -q");
    for file in ["pairs.tsv", "clusters.tsv", "kept.jsonl"] {
        let plain = bench.read(&format!("plain/{file}"));
        assert!(plain.lines().count() > 20, "a test of something");
        for other in ["gz", "zst", "stdin", "stdin-gz", "halves"] {
            assert!(bench.read(&format!("{other}/{file}")) == plain, "{other}/{file}");
        }
    }
}

#[test]
fn every_verb_that_reads_documents_reads_standard_input() {
    let bench = Bench::new();
    let lines = jsonl(&documents([("a", "one two three four five six")]));
    succeeded("build", bench.command("build i.twx - -q").write_stdin(lines.clone()));
    let out = succeeded("query", bench.command("query i.twx -").write_stdin(lines));
    assert_eq!(out, "a\ta\t0\t1.0000\t2\t2\n");
    let message = refused("build", bench.command("build i.twx -").write_stdin("{\"id\":1}\n"));
    says(&message, &["<stdin>:1: no field \"text\""]);
}

#[test]
fn folder_gives_one_document_per_file_and_counts_binary_files() {
    let bench = Bench::new();
    let text = "one two three four five six seven";
    bench.write("in/a.txt", text);
    bench.write("in/deep/er/b", text);
    bench.write("in/c.md", "One two three; four five six seven.");
    bench.write("in/empty", "");
    bench.write("in/deep/void", "");
    bench.write("in/picture.png", b"\x89PNG\0\0\0");
    bench.write("in/latin.txt", b"f\xfcr");
    bench.write("in/fixture.gz", gzip(b"\x89PNG\0\0\0"));
    let report = bench.json("dedup in -o out");
    assert_eq!(report["documents"], 5);
    assert_eq!((&report["skipped_binary"], &report["skipped_not_utf8"]), (&2.into(), &1.into()), "{report}");
    assert_eq!(
        bench.read("out/pairs.tsv"),
        "document\tkept\tresemblance\tintersection\tunion\n\
         c.md\ta.txt\t1.000000\t3\t3\ndeep/er/b\ta.txt\t1.000000\t3\t3\n\
         empty\tdeep/void\t1.000000\t0\t0\n"
    );
    assert_eq!(
        bench.read("out/kept.jsonl"),
        format!("{{\"id\":\"a.txt\",\"text\":\"{text}\"}}\n{{\"id\":\"deep/void\",\"text\":\"\"}}\n")
    );
    let kept = bench.json("dedup out/kept.jsonl -o again");
    assert_eq!((&kept["documents"], &kept["removed"]), (&2.into(), &0.into()), "the output is an input");
    says(&bench.ok("dedup in -o out --force"), &["3 files passed over", "not UTF-8"]);
    says(&bench.ok("build i.twx in"), &["i.twx: 5 documents", "3 files passed over"]);
}

#[test]
fn compressed_files_of_a_folder_are_read_like_plain_ones() {
    let bench = Bench::new();
    let texts =
        [("a.txt", "one two three four five six seven"), ("b.md", "one; two three four five six seven")];
    let page = "<p>eight nine ten eleven twelve thirteen</p>";
    for (name, text) in texts {
        bench.write(&format!("plain/{name}"), text);
    }
    bench.write("plain/c.html", page);
    bench.ok("dedup plain -o plain-out -q");
    for (suffix, command) in
        [("gz", "gzip"), ("zst", "zstd -q"), ("xz", "xz"), ("bz2", "bzip2"), ("lz4", "lz4 -q")]
    {
        let pack = |text: &str| packed(suffix, text.as_bytes());
        for (name, text) in texts.into_iter().chain([("c.html", page)]) {
            bench.write(&format!("{suffix}/{name}.{suffix}"), pack(text));
        }
        bench.ok(&format!("dedup {suffix} -o {suffix}-out -q"));
        for file in ["pairs.tsv", "clusters.tsv", "kept.jsonl"] {
            assert_eq!(
                bench.read(&format!("{suffix}-out/{file}")),
                bench.read(&format!("plain-out/{file}")),
                "{command}"
            );
        }
        // Two members after each other, a file of another format, and one that is cut.
        let lines = jsonl(&documents([("a", texts[0].1)]));
        let twice = [pack(&lines), pack(&jsonl(&documents([("b", texts[1].1)])))].concat();
        bench.write(&format!("twice.jsonl.{suffix}"), &twice);
        let report = bench.json(&format!("dedup twice.jsonl.{suffix} -o twice-{suffix}"));
        assert_eq!((&report["documents"], &report["removed"]), (&2.into(), &1.into()), "{suffix}");
        bench.write(&format!("cut.jsonl.{suffix}"), &twice[..twice.len() - 9]);
        says(&bench.refused(&format!("dedup cut.jsonl.{suffix} -o cut")), &["cut.jsonl."]);
        bench.write(&format!("wrong/{suffix}.txt.{suffix}"), b"{}");
    }
    // What is named as a text is one: it is not passed over.
    says(
        &bench.refused("dedup wrong -o out"),
        &["wrong/bz2.txt.bz2: named as bzip2, but its first bytes are"],
    );
}

/// Returns the bytes in the compression of this suffix.
fn packed(suffix: &str, bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    match suffix {
        "gz" => gzip(bytes),
        "zst" => zstd::encode_all(bytes, 3).unwrap(),
        "xz" => {
            let options = lzma_rust2::XzOptions::with_preset(6);
            let mut writer = lzma_rust2::XzWriter::new(Vec::new(), options).unwrap();
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        "bz2" => {
            let mut writer = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::default());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
        _ => {
            let mut writer = lz4_flex::frame::FrameEncoder::new(Vec::new());
            writer.write_all(bytes).unwrap();
            writer.finish().unwrap()
        }
    }
}

#[test]
fn zero_bytes_after_gzip_members_are_ignored_and_other_bytes_are_not() {
    let bench = Bench::new();
    let lines = jsonl(&documents([("a", "one two three four five six")]));
    for zeros in [0, 1, 2, 8, 9, 512, 1 << 20] {
        let mut bytes = gzip(lines.as_bytes());
        bytes.resize(bytes.len() + zeros, 0);
        for members in 1..=2 {
            bench.write("in.jsonl.gz", bytes.repeat(members));
            let report = bench.json("dedup in.jsonl.gz -o out --force");
            assert_eq!(report["documents"], members, "{zeros}");
        }
        bytes.extend(b"rubbish");
        bench.write("in.jsonl.gz", &bytes);
        says(&bench.refused("dedup in.jsonl.gz -o out --force"), &["in.jsonl.gz: "]);
    }
}

#[test]
fn formats_that_are_not_read_are_named_alone_and_in_folders() {
    let bench = Bench::new();
    let mut tar = vec![b'a'; 512];
    tar[257..262].copy_from_slice(b"ustar");
    let cases: [(&str, &[u8], &str); 11] = [
        ("a.zip", b"PK\x03\x04\x14\0\0\0\x08\0\0\0", "zip"),
        ("b.7z", b"7z\xbc\xaf\x27\x1c\0\x04", "7z"),
        ("c.tar", &tar, "tar"),
        ("d.orc", b"ORC\x11\0\0\n\x06", "ORC"),
        ("e.avro", b"Obj\x01\x04\x16avro", "Avro"),
        ("f.db", b"SQLite format 3\0", "SQLite"),
        ("g.npy", b"\x93NUMPY\x01\0v\0", "NumPy"),
        ("h.h5", b"\x89HDF\r\n\x1a\n\0", "HDF5"),
        ("i.pkl", b"\x80\x04\x95\x0b\0\0", "pickle"),
        ("j.xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Microsoft Office"),
        ("k.pdf", b"%PDF-1.7\n1 0 obj", "PDF"),
    ];
    for (name, bytes, format) in cases {
        bench.write(name, bytes);
        bench.write(&format!("in/{name}"), bytes);
        let message = bench.refused(&format!("dedup {name} -o out"));
        says(&message, &[&format!("{name}: {format}, which twindex does not read: ")]);
        bench.write("named.jsonl", bytes);
        bench.refused("dedup named.jsonl -o out");
    }
    bench.write("in/c.tar.gz", gzip(&tar));
    let message = bench.refused("dedup in -o out");
    let formats =
        "1 7z, 1 Avro, 1 HDF5, 1 Microsoft Office, 1 NumPy, 1 ORC, 1 PDF, 1 SQLite, 1 pickle, 2 tar, 1 zip";
    says(
        &message,
        &["no document was found in the input: 12 files passed over: ", formats, "the first: in/a.zip"],
    );
    bench.write("in/text", "one two three");
    says(&bench.ok("dedup in -o out"), &["1 document", "12 files passed over", formats]);
    bench.write("empty/.hidden", "x");
    let message = bench.refused("build i.twx empty");
    says(
        &message,
        &["empty: no file below it; 1 entry of it left out, whose names begin with . or _ (--glob)"],
    );
}

#[test]
fn hidden_files_are_left_out_of_folders_and_named() {
    let bench = Bench::new();
    let lines = jsonl(&documents([("a", "one two three four"), ("b", "five six seven eight")]));
    for path in ["part-0.jsonl", "_temporary/0/part-0.jsonl", ".part-1.jsonl", "_log/0.csv", ".git/x.jsonl"] {
        bench.write(&format!("in/{path}"), &lines);
    }
    let report = bench.json("dedup in -o out");
    assert_eq!((&report["documents"], &report["hidden"]), (&2.into(), &4.into()), "{report}");
    says(&bench.ok("build i.twx in"), &["4 hidden files and folders left out, the first: in/.git (--glob)"]);
    let report = bench.json("dedup in -o out2 --glob *.jsonl --glob **/_*/**/*.jsonl --glob .*");
    assert_eq!((&report["documents"], &report["hidden"]), (&6.into(), &1.into()), "{report}");
    // Files of texts may begin with an underscore, as those of Python do.
    bench.write("code/__init__.py", "import one");
    bench.write("code/.DS_Store", "x");
    let report = bench.json("dedup code -o out3");
    assert_eq!((&report["documents"], &report["hidden"]), (&1.into(), &1.into()), "{report}");
}

#[cfg(unix)]
#[test]
fn closed_standard_input_is_an_error_and_an_empty_one_is_not() {
    let bench = Bench::new();
    let run = |redirection: &str| {
        let mut shell = std::process::Command::new("sh");
        let line = format!("exec \"$0\" build i.twx - -q {redirection}");
        shell.args(["-c", &line, TWINDEX]);
        let output = shell.current_dir(bench.root()).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, message) = run("<&-");
    assert_eq!(code, Some(1), "{message}");
    says(&message, &["<stdin>: cannot read on after 0 bytes: standard input is closed"]);
    assert_eq!(run("</dev/null").0, Some(0));
}

#[cfg(unix)]
#[test]
fn file_that_several_inputs_name_is_read_once() {
    let bench = Bench::new();
    bench.write("in/a.jsonl", jsonl(&documents([("a", "one two three four")])));
    bench.write("in/b.jsonl", jsonl(&documents([("b", "five six seven eight")])));
    std::os::unix::fs::symlink("in/a.jsonl", bench.path("link.jsonl")).unwrap();
    for inputs in
        ["in/a.jsonl in/../in/a.jsonl in/b.jsonl", "link.jsonl in", "in link.jsonl", "in in/b.jsonl"]
    {
        let report = bench.json(&format!("dedup {inputs} -o out --force"));
        assert_eq!((&report["documents"], &report["named_twice"]), (&2.into(), &1.into()), "{inputs}");
    }
    says(
        &bench.ok("dedup in in/a.jsonl -o out --force"),
        &["1 file named more than once and read once, the first: in/a.jsonl"],
    );
}

#[test]
fn mistakes_get_a_message_that_says_what_to_do() {
    let bench = Bench::new();
    bench.write("spread.jsonl", "{\n \"id\": \"a\",\n \"text\": \"x\"\n}\n");
    bench.write("within.jsonl", "{\"id\":\"a\",\"text\":{\"en\":\"x\"}}\n");
    bench.write("zeros.jsonl", "{\"id\":\"a\",\"text\":\"x\"}\n\0\0\0\0\n");
    bench.write("joined.csv", "id,text\n1,a b c\nid,text\n2,d e f\n");
    for (line, parts) in [
        ("s3://bucket/a.jsonl", &["s3://bucket/a.jsonl: a URL", "download it", "`-`"][..]),
        ("spread.jsonl", &["spread.jsonl:1", "one whole object, as `jq -c .` writes it"]),
        ("within.jsonl", &["within.jsonl:1", "--text-field 'text.NAME' takes a member of it"]),
        (
            "zeros.jsonl",
            &["zeros.jsonl:2", "zero bytes, as where a file was not written to its end: copy it again"],
        ),
        ("*.jsonl", &["*.jsonl: no file has this name", "--glob"]),
        ("joined.csv", &["joined.csv:3", "the names of the columns again", "remove this row"]),
    ] {
        says(&bench.refused(&format!("dedup {line} -o out")), parts);
    }
    says(&bench.misused("dedup joined.csv -o out --threads -1"), &["'-1' for '--threads <"]);
    let report = bench.json("dedup joined.csv -o out --skip-bad 1");
    assert_eq!((&report["documents"], &report["skipped_bad"]), (&2.into(), &1.into()), "{report}");
}

#[test]
fn folder_of_a_table_has_the_files_that_its_log_names() {
    let bench = Bench::new();
    let row = |key: &str| format!("{{\"id\":\"{key}\",\"text\":\"text of {key}\"}}\n");
    for key in ["old", "new one", "left"] {
        bench.write(&format!("lake/t/lang=en/{key}.jsonl"), row(key));
    }
    let commit = |number: u64, actions: &str| {
        bench.write(&format!("lake/t/_delta_log/{number:020}.json"), actions);
    };
    commit(
        0,
        "{\"protocol\":{}}\n{\"add\":{\"path\":\"lang=en/old.jsonl\"}}\n{\"add\":{\"path\":\"lang=en/left.jsonl\"}}\n",
    );
    commit(
        1,
        "{\"add\":{\"path\":\"lang=en/new%20one.jsonl\"}}\n{\"remove\":{\"path\":\"lang=en/old.jsonl\"}}\n",
    );
    for input in ["lake/t", "lake/t/lang=en", "lake", "lake --format jsonl"] {
        let report = bench.json(&format!("dedup {input} -o out --force"));
        let stale = (&report["documents"], &report["stale"]);
        assert_eq!(stale, (&2.into(), &1.into()), "{input}: {report}");
        assert!(report["first_stale"].as_str().unwrap().ends_with("lang=en/old.jsonl"), "{report}");
    }
    says(
        &bench.ok("dedup lake/t -o out --force"),
        &["1 file left out that the log of the Delta table no longer names"],
    );
    let refused = |parts: &[&str]| says(&bench.refused("dedup lake/t -o none"), parts);
    // A checkpoint of several files has what no commit has, and its number may be the largest there is.
    for version in [9, u64::MAX] {
        let parts = format!("lake/t/_delta_log/{version:020}.checkpoint.0000000001.0000000002.parquet");
        bench.write(&parts, "");
        refused(&["t/_delta_log: it has no commit 2"]);
        std::fs::remove_file(bench.path(&parts)).unwrap();
    }
    commit(3, "");
    refused(&["t/_delta_log: it has no commit 2", "write the table again"]);
    commit(2, "{\"add\":{\"path\":\"lang=en/old.jsonl\",\"deletionVector\":{\"storageType\":\"u\"}}}\n");
    refused(&["lang=en/old.jsonl has rows that a deletion vector deletes", "REORG"]);
    commit(2, "{\"add\":{\"path\":\"lang=en/gone.jsonl\"}}\n");
    refused(&["t: its log names lang=en/gone.jsonl, which is not there"]);
    commit(2, "{\"add\":{\"path\":\"s3://elsewhere/gone.jsonl\"}}\n");
    refused(&["s3://elsewhere/gone.jsonl is outside of the table"]);
    commit(2, "{\"add\":\n");
    refused(&["t/_delta_log/00000000000000000002.json", "EOF"]);
    // A log without any action of a table makes no table.
    bench.write("other/_delta_log/00000000000000000000.json", "{\"commitInfo\":{}}\n");
    bench.write("other/a.jsonl", row("a"));
    let report = bench.json("dedup other -o out --force");
    assert!(report["documents"] == 1 && report["stale"].is_null(), "{report}");
    bench.write("ice/data/a.jsonl", row("a"));
    bench.write("ice/metadata/v1.metadata.json", "{}");
    says(&bench.refused("dedup ice -o none"), &["ice: a table of Apache Iceberg", "export it as Parquet"]);
    bench.write("hudi/a.jsonl", row("a"));
    bench.write("hudi/.hoodie/hoodie.properties", "");
    says(&bench.refused("dedup hudi -o none"), &["a table of Apache Hudi"]);
}

#[test]
fn fields_can_be_chosen_and_errors_name_them() {
    let bench = Bench::new();
    bench.write("in.jsonl", "{\"url\":\"u\",\"body\":\"one two three four five six\"}\n");
    says(
        &bench.refused("dedup in.jsonl -o out"),
        &["in.jsonl:1", "no field \"text\"", "\"url\", \"body\"", "--text-field"],
    );
    bench.ok("dedup in.jsonl -o out --id-field url --text-field body -q");
    bench.ok("build i.twx in.jsonl --id-field url --text-field body -q");
    assert_eq!(bench.ok("query i.twx in.jsonl --id-field url --text-field body"), "u\tu\t0\t1.0000\t2\t2\n");
}

#[test]
fn bad_records_are_skipped_up_to_the_limit_and_counted() {
    let bench = Bench::new();
    let mut lines = jsonl(&documents([("a", "one two three"), ("b", "four five six")])).into_bytes();
    lines.extend(b"not json\n{\"id\":\"c\",\"text\":\"f\xfcr\"}\n");
    bench.write("in.jsonl", lines);
    for verb in ["dedup in.jsonl -o out", "build i.twx in.jsonl", "query i0.twx in.jsonl"] {
        if verb.starts_with("query") {
            bench.write("fine.jsonl", jsonl(&documents([("z", "seven eight nine")])));
            bench.ok("build i0.twx fine.jsonl -q");
        }
        let message = bench.refused(&format!("{verb} --skip-bad 1"));
        says(&message, &["in.jsonl:4: not UTF-8", "--skip-bad 1"]);
        says(&bench.refused(verb), &["in.jsonl:3: invalid JSON", "--skip-bad N"]);
        let report = bench.json(&format!("{verb} --skip-bad 2 -q"));
        if !verb.starts_with("query") {
            assert_eq!((&report["documents"], &report["skipped_bad"]), (&2.into(), &2.into()), "{verb}");
        }
    }
    let out = bench.ok("dedup in.jsonl -o out2 --skip-bad 2");
    says(&out, &["2 bad records skipped, the first: in.jsonl:3: invalid JSON"]);
    let out = bench.ok("build i2.twx in.jsonl --skip-bad 2");
    says(&out, &["2 bad records skipped, the first: in.jsonl:3: invalid JSON"]);
    let output = bench.command("query i0.twx in.jsonl --skip-bad 2").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), stderr.lines().count()), (Some(0), 1), "{stderr}");
    says(&stderr, &["note: 2 bad records skipped, the first: in.jsonl:3: invalid JSON"]);
}

#[test]
fn query_lists_the_skipped_files_of_a_folder() {
    let bench = Bench::new();
    bench.write("in/a.txt", "one two three four five six");
    bench.write("in/picture.png", b"\x89PNG\0\0\0");
    bench.ok("build i.twx in -q");
    for (options, notes) in [("", 1), ("--count", 1), ("-q", 0)] {
        let output = bench.command(&format!("query i.twx in {options}")).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), stderr.lines().count()), (Some(0), notes), "{options}: {stderr}");
        assert!(notes == 0 || stderr.contains("note: 1 file passed over: 1 binary"), "{stderr}");
        assert!(!output.stdout.is_empty() && !String::from_utf8_lossy(&output.stdout).contains("note"));
    }
}

#[test]
fn repeated_key_is_refused_with_advice_for_its_source() {
    let bench = Bench::new();
    bench.write("in/one/a.txt", "one");
    bench.write("in/two/a.txt", "two");
    let message = bench.refused("dedup in/one in/two -o out --repeated-keys error");
    says(&message, &["in/two/a.txt: ", "`a.txt`", "in/one/a.txt", "name the folder above them instead"]);
    assert!(!message.contains("a key of its own"), "{message}");
    bench.ok("dedup in -o out -q");
    // Lines can be given other keys.
    bench.write("x.jsonl", jsonl(&documents([("a.txt", "one")])));
    bench.write("y.jsonl", jsonl(&documents([("a.txt", "two")])));
    for inputs in ["x.jsonl y.jsonl", "in/one x.jsonl", "x.jsonl in/one"] {
        let message = bench.refused(&format!("dedup {inputs} -o out2 --repeated-keys error"));
        says(&message, &["give each document a key of its own"]);
    }
    // An input that is given twice is read once, so no key is repeated.
    for inputs in ["x.jsonl x.jsonl", "in in", "in/one/a.txt in/one/a.txt"] {
        bench.ok(&format!("dedup {inputs} -o out2 --repeated-keys error --force -q"));
    }
}

#[test]
fn invalid_utf8_is_replaced_on_request_in_every_input_format() {
    let bench = Bench::new();
    let text = |bad: &[u8]| [&b"one two three four f"[..], bad, b"r five six"].concat();
    let line = |id: &str, bad: &[u8]| {
        [format!("{{\"id\":\"{id}\",\"text\":\"").as_bytes(), &text(bad), b"\"}\n"].concat()
    };
    let replaced = "\u{fffd}";
    bench.write("bad.jsonl", [line("a", b"\xfc"), line("b", replaced.as_bytes())].concat());
    bench.write("bad.txt", text(b"\xfc"));
    bench.write("in/bad.txt", text(b"\xfc"));
    bench.write("in/good.txt", text(replaced.as_bytes()));
    bench.write("in/binary", b"\xfc\0");
    says(
        &bench.refused("build out bad.jsonl --as sketches"),
        &["bad.jsonl:1: not UTF-8: byte 0xfc at offset 38 of the line"],
    );
    says(
        &bench.refused("build out bad.txt --as sketches"),
        &["bad.txt: not UTF-8: a bad byte at offset 20", "--invalid-utf8"],
    );
    assert_eq!(bench.json("build out in --as sketches")["skipped_not_utf8"], 1);
    for (input, documents, counted) in [("bad.jsonl", 2, 1), ("bad.txt", 1, 1), ("in", 2, 1)] {
        let report = bench.json(&format!("build out {input} --force --invalid-utf8 replace --as sketches"));
        let found = (&report["documents"], &report["replaced_utf8"], &report["skipped_not_utf8"]);
        assert_eq!(found, (&documents.into(), &counted.into(), &0.into()), "{input}");
    }
    for input in ["bad.jsonl", "in"] {
        // No replaced text is equal to a text that really contains U+FFFD.
        let report = bench.json(&format!("dedup {input} -o out-{input} --invalid-utf8 replace"));
        assert_eq!(
            (&report["identical"], &report["skipped_binary"]),
            (&0.into(), &u64::from(input == "in").into())
        );
    }
    // Kept documents are unchanged.
    let kept = std::fs::read(bench.path("out-bad.jsonl/kept.jsonl")).unwrap();
    assert_eq!(kept, [line("a", b"\xfc"), line("b", replaced.as_bytes())].concat());
    // Keys are never changed; a key may contain U+FFFD.
    bench.write(
        "keys.jsonl",
        [line(replaced, b"\xfc"), b"{\"id\":\"\xfc\",\"text\":\"\"}\n".to_vec()].concat(),
    );
    says(
        &bench.refused("build no keys.jsonl --invalid-utf8 replace --as sketches"),
        &["keys.jsonl:2: field \"id\": not UTF-8"],
    );
    says(&bench.ok("build i.twx bad.jsonl --invalid-utf8 replace"), &["note: 1 document not UTF-8"]);
}

#[test]
fn document_order_does_not_depend_on_the_number_of_threads() {
    let bench = Bench::new();
    // Batches and chunks end within the data; some lines need the complete JSON parser.
    let mut lines = String::new();
    for i in 0..6000 {
        let text = format!("document {i} says \\\"{}\\\" \\u00fc\\n", "word ".repeat(i * 7 % 200));
        match i % 5 {
            0 => writeln!(lines, "{{\"text\":\"{text}\",\t\"id\":{i}}}").unwrap(),
            1 => write!(lines, "{{\"i\\u0064\":\"{i}\",\"text\":\"{text}\"}}\n\n").unwrap(),
            _ => {
                let meta = "{\"a\":[1,2.5e3,null]}";
                writeln!(lines, "{{\"id\":\"{i}\",\"meta\":{meta},\"text\":\"{text}\"}}").unwrap();
            }
        }
    }
    bench.write("in.jsonl", &lines);
    let one = bench.ok("build - in.jsonl --threads 1 --method simhash --as table");
    assert_eq!(one, bench.ok("build - in.jsonl --threads 4 --method simhash --as table"));
    let keys: Vec<&str> = one.lines().skip(1).map(|row| row.split('\t').next().unwrap()).collect();
    assert!(keys.iter().enumerate().all(|(i, key)| *key == i.to_string()) && keys.len() == 6000);
    // The same texts, written without escapes.
    let plain: Vec<(String, String)> = lines
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .enumerate()
        .map(|(i, line)| (i.to_string(), line["text"].as_str().unwrap().replace('\n', " ").replace('"', "'")))
        .collect();
    bench.write("plain.jsonl", jsonl(&plain));
    assert_eq!(one, bench.ok("build - plain.jsonl --method simhash --as table"));
    // The first bad line is reported, regardless of the thread that parsed it.
    let bad =
        lines.replacen("\"id\":\"2602\"", "\"id\":\"\"", 1).replacen("\"id\":\"5608\"", "\"id\":2.5", 1);
    bench.write("bad.jsonl", &bad);
    for threads in [1, 4] {
        let message = bench.refused(&format!("build out bad.jsonl --threads {threads} --as sketches"));
        says(&message, &["bad.jsonl:3124: field \"id\": the key is empty"]);
    }
}
