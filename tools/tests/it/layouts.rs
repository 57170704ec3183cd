//! Files and folders in common layouts: a file of records must never be read silently as one text, links must be
//! followed, and unsupported files must be refused by name.

use std::fs;

use crate::formats::write_parquet;
use crate::support::{Bench, gzip, says};

const ONE: &str = "{\"id\":1,\"text\":\"one two three four five six seven\"}\n";
const TWO: &str = "{\"id\":2,\"text\":\"the quick brown fox jumps over a lazy dog\"}\n";

fn documents(bench: &Bench, command: &str) -> u64 {
    bench.json(&format!("dedup {command} -o out --force"))["documents"].as_u64().unwrap()
}

#[test]
fn format_is_detected_by_content_if_the_name_is_ambiguous() {
    let bench = Bench::new();
    let lines = [ONE, TWO].concat();
    for name in ["items.jl", "data.jsonlines", "part-00000", "export", "dump.dat"] {
        bench.write(name, &lines);
        assert_eq!(documents(&bench, name), 2, "{name}");
    }
    bench.write("x.jsonl.zstd", zstd::encode_all(lines.as_bytes(), 3).unwrap());
    bench.write("packed.gz", gzip(lines.as_bytes()));
    assert_eq!((documents(&bench, "x.jsonl.zstd"), documents(&bench, "packed.gz")), (2, 2));
    let said = bench.ok("dedup export -o out --force");
    says(&said, &["1 file read as records by the content, the first: export as jsonl (--format text"]);
    assert!(!bench.ok("dedup items.jl -o out --force").contains("by the content"), "the name says it");
    bench.write("crawl.wat", "WARC/1.0\r\nWARC-Type: metadata\r\nContent-Length: 2\r\n\r\n{}\r\n\r\n");
    says(&bench.ok("dedup crawl.wat -o out --force"), &["crawl.wat as warc", "no document was found"]);

    // A file without records is read as one text, with a note unless its name identifies it as text.
    bench.write("notes", "{ not json }\nsome words\n");
    let said = bench.ok("dedup notes -o out --force");
    says(
        &said,
        &["of 1 document removed", "1 file read as one text each, the first: notes (--format reads records"],
    );
    bench.write("notes.txt", ONE);
    let said = bench.ok("dedup notes.txt -o out --force");
    assert!(said.contains("of 1 document removed") && !said.contains("one text"), "{said}");
    assert_eq!(documents(&bench, "export --format text"), 1);
}

/// The usual layout of a data set. Earlier, each part was silently read as one text, and none of three equal records was
/// removed.
#[test]
fn record_files_beside_a_readme_are_not_read_as_texts() {
    let bench = Bench::new();
    bench.write("set/README.md", "Two parts of the same.");
    bench.write("set/one.jsonl", [ONE, &ONE.replace('1', "2")].concat());
    bench.write("set/two.jsonl", ONE.replace('1', "3"));
    says(
        &bench.refused("dedup set -o out"),
        &["set", "2 files beside 1 other are records", "--format jsonl reads their records"],
    );
    assert!(!bench.path("out").exists());
    let report = bench.json("dedup set -o out --format jsonl");
    assert_eq!(
        (&report["documents"], &report["kept"], &report["removed"]),
        (&3.into(), &1.into(), &2.into())
    );
    assert_eq!(bench.read("out/kept.jsonl"), ONE);
}

#[test]
fn folder_mixing_record_files_and_other_files_is_refused() {
    let bench = Bench::new();
    bench.write("hub/README.md", "a card");
    bench.write("hub/data/train-00000.jsonl", [ONE, TWO].concat());
    bench.write("hub/data/train-00001.jsonl", ONE.replace('1', "3"));
    bench.write("spark/_SUCCESS", "");
    bench.write("spark/part-00000", [ONE, TWO].concat());
    bench.write("spark/part-00001", ONE.replace('1', "3"));
    assert_eq!(documents(&bench, "spark"), 3, "a name that begins with _ is hidden beside records");
    bench.write("other/SUCCESS", "");
    bench.write("other/part-00000", [ONE, TWO].concat());
    bench.write("other/part-00001", ONE.replace('1', "3"));
    for (folder, files, read) in
        [("hub", "2 files beside 1 other are records", 3), ("other", "2 files beside 1 other", 3)]
    {
        let message = bench.refused(&format!("dedup {folder} -o no"));
        says(
            &message,
            &[
                folder,
                files,
                "--format jsonl reads their records, and leaves out the others",
                "--format text",
            ],
        );
        assert_eq!(documents(&bench, &format!("{folder} --format jsonl")), read, "{folder}");
    }
    says(&bench.ok("dedup hub --format jsonl -o out --force"), &["1 entry of folders left out"]);
    bench.write("mixed/a.csv", "id,text\n1,x\n");
    bench.write("mixed/b.jsonl", ONE);
    bench.write("mixed/LICENSE", "words");
    says(
        &bench.refused("dedup mixed -o no"),
        &["2 files beside 1 other are records, 1 file of jsonl, 1 file of csv"],
    );
    // Creates a source tree that contains JSON files.
    bench.write("sources/main.py", "print(1)");
    bench.write("sources/package.json", "{}");
    assert_eq!(documents(&bench, "sources"), 2);
    bench.write("several/a.csv", "id,text\n1,x\n");
    bench.write("several/b.jsonl.gz", gzip(ONE.as_bytes()));
    for verb in
        ["dedup several -o no", "build no several", "build no several --as sketches", "query none several"]
    {
        if verb.starts_with("query") {
            bench.write("one.jsonl", ONE);
            bench.ok("build none one.jsonl -q");
        }
        says(
            &bench.refused(verb),
            &["several: its files are records of several formats, 1 file of jsonl, 1 file of csv", "--glob"],
        );
    }
    assert_eq!(documents(&bench, "several --glob *.csv"), 1);
}

/// Returns a WARC record with a text or a page.
fn archived(kind: &str, key: &str, content: &str) -> String {
    let content_type = if kind == "conversion" { "text/plain" } else { "text/html" };
    let length = content.len();
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {key}\r\nContent-Type: {content_type}\r\n\
         Content-Length: {length}\r\n\r\n{content}\r\n\r\n"
    )
}

#[test]
fn folder_of_one_record_format_is_read_as_records_without_an_option() {
    let bench = Bench::new();
    let texts = ["one two three four five six seven", "the quick brown fox jumps over a lazy dog"];
    let lines = |second: &str| [ONE.replace("\"id\":1", "\"id\":9"), TWO.replace('2', second)].concat();
    let (a, b) = (lines("3"), ONE.to_owned());
    let packed = |text: &str| zstd::encode_all(text.as_bytes(), 3).unwrap();
    bench.write("jsonl/a.jsonl", &a);
    bench.write("jsonl/deep/er/b.jsonl", &b);
    bench.write("packed/a.jsonl.gz", gzip(a.as_bytes()));
    bench.write("packed/b.json.zst", packed(&b));
    bench.write("objects/a.json", &a);
    bench.write("objects/b.json", &b);
    bench.write("parts/part-00000", &a);
    bench.write("parts/part-00001", &b);
    bench.write("csv/a.csv", format!("id,text\n9,{}\n3,{}\n", texts[0], texts[1]));
    bench.write("csv/b.csv.gz", gzip(format!("id,text\n1,{}\n", texts[0]).as_bytes()));
    bench.write("tsv/a.tsv", format!("id\ttext\n9\t{}\n3\t{}\n", texts[0], texts[1]));
    bench.write("tsv/b.tsv", format!("id\ttext\n1\t{}\n", texts[0]));
    fs::create_dir(bench.path("parquet")).unwrap();
    let rows = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
        rows.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect()
    };
    write_parquet(&bench, "parquet/a.parquet", &rows(&[("9", texts[0]), ("3", texts[1])]));
    write_parquet(&bench, "parquet/b.parquet", &rows(&[("1", texts[0])]));
    for (folder, kind) in [("wet", "conversion"), ("warc", "resource")] {
        let of = |key: &str, text: &str| archived(kind, key, text);
        bench.write(&format!("{folder}/a.{folder}"), of("9", texts[0]) + &of("3", texts[1]));
        bench.write(&format!("{folder}/b.{folder}.gz"), gzip(of("1", texts[0]).as_bytes()));
    }
    bench.write("one/only.jsonl", [a.as_str(), b.as_str()].concat());
    for folder in ["jsonl", "packed", "objects", "parts", "csv", "tsv", "parquet", "wet", "warc", "one"] {
        let report = bench.json(&format!("dedup {folder} -o of-{folder}"));
        assert_eq!((&report["documents"], &report["removed"]), (&3.into(), &1.into()), "{folder}: {report}");
        let clusters = bench.read(&format!("of-{folder}/clusters.tsv"));
        assert!(clusters.lines().skip(1).any(|line| line.starts_with("3\t")), "{folder}: {clusters}");
        assert_eq!(bench.json(&format!("why of-{folder} 1"))["agrees"], true, "{folder}");
        bench.ok(&format!("build {folder}.twx {folder} -q"));
        assert_eq!(bench.ok(&format!("get {folder}.twx")), "1\n3\n9\n", "{folder}");
        // The other verbs that read documents.
        let found = bench.ok(&format!("query {folder}.twx {folder} -q --near 0.8"));
        assert_eq!(found.lines().count(), 5, "{folder}: {found}");
        assert_eq!(bench.ok(&format!("build - {folder} -q --as table")).lines().count(), 4, "{folder}");
        let said = bench.json(&format!("passages {folder} -o spans-{folder} --min-words 4"));
        assert_eq!(said["documents"], 3, "{folder}");
        let said = bench.json(&format!("stream {folder}-stream.twx {folder}"));
        assert_eq!(said["documents"], 3, "{folder}: {said}");
        assert_eq!(bench.json(&format!("idf {folder} -o {folder}.idf"))["documents"], 3, "{folder}");
    }
    says(
        &bench.ok("dedup parts -o again"),
        &["2 files read as records by the content, the first: parts/part-00000 as jsonl"],
    );
    // Kept lines are those of the files named one by one.
    bench.ok("dedup jsonl/a.jsonl jsonl/deep/er/b.jsonl -o named -q");
    assert_eq!(bench.read("of-jsonl/kept.jsonl"), bench.read("named/kept.jsonl"));
    assert_eq!(documents(&bench, "jsonl --format text"), 2);
}

#[cfg(unix)]
#[test]
fn links_are_followed_and_link_loops_end() {
    use std::os::unix::fs::symlink;
    let bench = Bench::new();
    // Creates the layout of a data set cache: file names are links to blobs with meaningless names.
    bench.write("cache/blobs/0a1b2c", ONE);
    bench.write("cache/blobs/3d4e5f", TWO);
    bench.write("cache/snapshots/main/README.md", "a card");
    for (name, blob) in [("a.jsonl", "0a1b2c"), ("b.jsonl", "3d4e5f")] {
        symlink(format!("../../blobs/{blob}"), bench.path(&format!("cache/snapshots/main/{name}"))).unwrap();
    }
    assert_eq!(documents(&bench, "cache/snapshots/main --format jsonl"), 2);
    assert_eq!(documents(&bench, "cache --format jsonl"), 2);
    symlink("..", bench.path("cache/snapshots/loop")).unwrap();
    symlink("nowhere", bench.path("cache/snapshots/dangling.jsonl")).unwrap();
    let report = bench.json("dedup cache --format jsonl -o out --force");
    assert_eq!(report["documents"], 2, "{report}");
    assert!(report["ignored"].as_u64().unwrap() >= 2, "{report}");
}

#[test]
fn unsupported_encodings_and_damaged_compression_are_refused() {
    let bench = Bench::new();
    for (name, start, parts) in [
        ("x.jsonl.xz", &b"\xfd7zXZ\0\0\x04"[..], ["truncated: the xz stream", "8 bytes were read"]),
        ("x.jsonl.bz2", b"BZh91AY&SY", ["the bzip2 stream", "10 bytes were read"]),
        ("x.lz4", b"\x04\x22\x4d\x18\x64", ["truncated: the lz4 stream", "5 bytes were read"]),
        ("x.jsonl.gz", b"", ["x.jsonl.gz: empty", "compressed"]),
        ("wide.jsonl", b"\xff\xfe{\0", ["wide.jsonl:1: UTF-16", "iconv -f UTF-16 -t UTF-8"]),
        ("wide.csv", b"\xff\xfei\0d\0", ["wide.csv: UTF-16", "iconv -f UTF-16 -t UTF-8"]),
    ] {
        bench.write(name, start);
        says(&bench.refused(&format!("dedup {name} -o no")), &parts);
    }
    let mut tar = vec![b'a'; 512];
    tar[100] = 0;
    tar[257..262].copy_from_slice(b"ustar");
    bench.write("x.tar.gz", gzip(&tar));
    says(&bench.refused("dedup x.tar.gz -o no"), &["x.tar.gz: tar, which twindex does not read: unpack it"]);
    says(
        &bench.refused("dedup wide.jsonl -o no --encoding utf-16le"),
        &["wide.jsonl: UTF-16, in which records"],
    );
    for (value, word) in [("NaN", "NaN"), ("-Infinity", "-Infinity"), ("Infinity", "Infinity")] {
        bench.write("score.jsonl", format!("{{\"id\":1,\"score\": {value}, \"text\":\"x\"}}\n"));
        let message = bench.refused("dedup score.jsonl -o no");
        says(
            &message,
            &["score.jsonl:1: invalid JSON at column", &format!(": {word}, which is no JSON"), "null"],
        );
    }
    fs::write(bench.path("ok.jsonl"), "{\"id\":1,\"text\":\"NaN\",}\n").unwrap();
    assert!(!bench.refused("dedup ok.jsonl -o no").contains("which is no JSON"));
}
