//! Tests web archives as crawlers write them: truncated files, revisit records and responses with few headers. Also
//! tests patterns that select the files of folders.

use crate::support::{Bench, gzip, says};

fn record(kind: &str, uri: &str, content: &str) -> String {
    format!(
        "WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {uri}\r\nContent-Type: application/http; msgtype=response\r\n\
         Content-Length: {}\r\n\r\n{content}\r\n\r\n",
        content.len()
    )
}

fn page(uri: &str, text: &str) -> String {
    record("response", uri, &format!("HTTP/1.1 200 OK\r\n\r\n<!doctype html><p>{text}</p>"))
}

#[test]
fn truncated_compressed_archive_is_read_to_its_end_and_counted() {
    let bench = Bench::new();
    let texts: Vec<String> =
        (0..40).map(|at| (0..30).map(|word| format!("w{at}x{word}")).collect::<Vec<_>>().join(" ")).collect();
    let members: Vec<Vec<u8>> = texts
        .iter()
        .enumerate()
        .map(|(at, text)| gzip(page(&format!("http://s/{at}"), text).as_bytes()))
        .collect();
    let last = members[39].len();
    let whole = members.concat();
    for (name, cut) in [("one", last / 2), ("head", last - 5), ("two", last + members[38].len() / 2)] {
        bench.write(&format!("{name}.warc.gz"), &whole[..whole.len() - cut]);
        let report = bench.json(&format!("dedup {name}.warc.gz -o {name}"));
        let wanted = if name == "two" { 38 } else { 39 };
        assert_eq!((&report["documents"], &report["cut_archives"]), (&wanted.into(), &1.into()), "{name}");
        assert!(
            report["first_cut"]
                .as_str()
                .unwrap()
                .starts_with(&format!("{name}.warc.gz, after {wanted} records"))
        );
    }
    says(&bench.ok("dedup one.warc.gz -o again"), &["1 archive breaks off", "truncated: the gzip stream"]);
    // Compresses all records as one zstd stream.
    let packed =
        zstd::encode_all(texts.iter().map(|text| page("u", text)).collect::<String>().as_bytes(), 3).unwrap();
    bench.write("cut.warc.zst", &packed[..packed.len() * 2 / 3]);
    let report = bench.json("dedup cut.warc.zst -o cut");
    assert!(report["documents"].as_u64().unwrap() < 40 && report["cut_archives"] == 1);
    // Damage is not treated as truncation. A truncated file of rows is refused, because rows do not show where they end.
    let mut damaged = whole.clone();
    damaged[members[0].len() + 20] ^= 0x55;
    bench.write("damaged.warc.gz", &damaged);
    says(&bench.refused("dedup damaged.warc.gz -o damaged"), &["damaged.warc.gz: cannot undo gzip"]);
    let lines = gzip(b"{\"id\":1,\"text\":\"a\"}\n".repeat(50).as_slice());
    bench.write("cut.jsonl.gz", &lines[..lines.len() - 6]);
    says(&bench.refused("dedup cut.jsonl.gz -o lines"), &["cut.jsonl.gz: truncated"]);
}

#[test]
fn revisits_are_counted_and_responses_without_content_type_are_read() {
    let bench = Bench::new();
    let image = record("response", "http://s/i", "HTTP/1.1 200 OK\r\n\r\n\u{1}\u{0}binary");
    let style = record("response", "http://s/c", "HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\np { }");
    let again = record("revisit", "http://s/a", "HTTP/1.1 304 Not Modified\r\n\r\n");
    bench
        .write("in.warc", page("http://s/a", "some words that are seen") + &again + &image + &again + &style);
    let report = bench.json("dedup in.warc -o out");
    assert_eq!(
        (&report["documents"], &report["revisits"], &report["no_documents"]),
        (&1.into(), &2.into(), &2.into())
    );
    says(
        &bench.ok("dedup in.warc -o counted"),
        &["2 revisit records passed over", "2 archive records passed over"],
    );
}

#[test]
fn patterns_select_files_for_dedup_and_why() {
    let bench = Bench::new();
    let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
    bench.write("data/README.md", "about the data");
    bench.write("data/en/a.jsonl", line("a", "one two three four five six"));
    bench.write("data/en/b.jsonl", line("b", "one two three four five six"));
    bench.write("data/de/c.jsonl", line("c", "eins zwei drei vier"));
    bench.write("data/en/old.jsonl", "no JSON\n");
    let count =
        |options: &str, out: &str| bench.json(&format!("dedup data -o {out} {options}"))["documents"].clone();
    assert_eq!(count("--format jsonl --glob !old.*", "all"), 3);
    assert_eq!(count("--format jsonl --glob en/* --glob !*/old.jsonl", "en"), 2);
    says(&bench.ok("why en b"), &["a"]);
    // Without the files of records, the rest is read as texts.
    assert_eq!(count("--glob !*.jsonl", "texts"), 1);
    says(&bench.refused("dedup data -o none --format jsonl --glob *.json"), &["no file named", "--glob"]);
    let output = bench.command("dedup data -o none --glob [").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(&String::from_utf8(output.stderr).unwrap(), &["--glob: "]);
}

/// Returns a response record with this HTTP header and payload.
fn capture(uri: &str, date: &str, id: u32, server: &str, payload: &str) -> String {
    let content = format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nServer: {server}\r\n\r\n{payload}");
    format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{id:012}>\r\n\
         WARC-Date: {date}\r\nWARC-Target-URI: {uri}\r\nContent-Type: application/http; msgtype=response\r\n\
         Content-Length: {}\r\n\r\n{content}\r\n\r\n",
        content.len()
    )
}

#[test]
fn truncated_plain_archive_is_read_to_its_end_and_counted() {
    let bench = Bench::new();
    let archive = page("http://s/1", "one two three") + &page("http://s/2", "four five six");
    bench.write("cut.warc", &archive[..archive.len() - 9]);
    let report = bench.json("dedup cut.warc -o out");
    assert_eq!((&report["documents"], &report["cut_archives"]), (&1.into(), &1.into()));
    let first = report["first_cut"].as_str().unwrap();
    says(first, &["cut.warc, after 1 records: the file ends after ", "of http://s/2"]);
    says(&bench.ok("dedup cut.warc -o counted"), &["1 archive breaks off"]);
    // A record with a wrong length in the middle of the file is a bad record, not a truncation.
    bench.write("wrong.warc", archive.replacen("Content-Length: ", "Content-Length: 9", 1));
    says(&bench.refused("dedup wrong.warc -o wrong"), &["wrong.warc, record 1: its Content-Length is 9"]);
}

#[test]
fn arc_files_are_read_and_kept_as_arc_files() {
    let bench = Bench::new();
    let record = |url: &str, content: &str| {
        format!("{url} 192.0.2.1 20260131120000 text/html {}\n{content}\n", content.len())
    };
    let answer = |url: &str, text: &str| {
        record(url, &format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text}</p>"))
    };
    let first =
        record("filedesc://x.arc", "1 0 Maker\nURL IP-address Archive-date Content-type Archive-length\n\n");
    let text = "some words that are seen by all of them";
    let all = [
        first.clone(),
        answer("http://s/a", text),
        record("dns:s", "20260131120000\ns. 1 IN A 192.0.2.1"),
        answer("http://s/b", text),
        answer("http://s/c", "quite another text with its own words"),
    ];
    bench.write("x.arc", all.concat());
    bench.write("members.arc.gz", all.iter().flat_map(|member| gzip(member.as_bytes())).collect::<Vec<u8>>());
    bench.write("unnamed", all.concat());
    for name in ["x.arc", "members.arc.gz", "unnamed"] {
        let report = bench.json(&format!("dedup {name} -o out-{name}"));
        assert_eq!(
            (&report["documents"], &report["kept"], &report["no_documents"]),
            (&3.into(), &2.into(), &2.into()),
            "{name}"
        );
        let kept = bench.read(&format!("out-{name}/kept.arc"));
        assert!(
            kept.starts_with("filedesc://kept.arc ") && kept.ends_with(&(all[1].clone() + &all[4])),
            "{kept}"
        );
        // The kept file is a valid archive again.
        assert_eq!(bench.json(&format!("dedup out-{name}/kept.arc -o again-{name}"))["documents"], 2);
    }
    says(&bench.ok("why out-x.arc http://s/b"), &["goes for http://s/a", "x.arc, record 4"]);
    let of_record = bench.json("dedup x.arc --id-field Archive-date -o dates");
    assert_eq!((&of_record["documents"], &of_record["numbered_keys"]), (&3.into(), &2.into()));
    bench.ok("build i.twx x.arc --value-field IP-address -q");
    assert_eq!(bench.json_lines("get i.twx http://s/c")[0]["value"], "192.0.2.1");
    bench.write("cut.arc", &all.concat()[..all.concat().len() - 20]);
    let cut = bench.json("dedup cut.arc -o cut");
    assert_eq!((&cut["documents"], &cut["cut_archives"]), (&2.into(), &1.into()));
    bench.write("two.arc", all.concat().replacen("1 0 Maker", "2 0 Maker", 1));
    says(&bench.refused("dedup two.arc -o two"), &["two.arc, record 1: an ARC file of version \"2\""]);
    says(&bench.refused("dedup x.arc -o annotated --also annotated"), &["cannot hold another"]);
}

#[test]
fn revisit_records_are_written_only_for_equal_payloads() {
    let bench = Bench::new();
    let page = "<p>some words that are seen by all of them and more of these</p>";
    let date = |day: u32| format!("2026-01-{day:02}T12:00:00Z");
    bench.write(
        "in.warc",
        capture("http://s/a", &date(1), 1, "x", page)
            // Has the same payload with another HTTP header.
            + &capture("http://s/b", &date(2), 2, "y", page)
            // Has the same text in another payload.
            + &capture("http://s/c", &date(3), 3, "x", &page.replace("<p>", "<div>"))
            + &capture("http://s/d", &date(4), 4, "x", "<p>quite another text with words of its own</p>"),
    );
    let report = bench.json("dedup in.warc -o out --also revisits");
    assert_eq!((&report["kept"], &report["removed"]), (&2.into(), &2.into()));
    assert_eq!(report["revisits_written"], serde_json::json!({ "records": 1, "left_out": 1 }));
    let revisits = bench.read("out/revisits.warc");
    assert_eq!(revisits.matches("WARC/1.1\r\n").count(), 1);
    says(
        &revisits,
        &[
            "WARC-Type: revisit\r\n",
            "WARC-Profile: http://netpreserve.org/warc/1.1/revisit/identical-payload-digest\r\n",
            "WARC-Target-URI: http://s/b\r\nWARC-Date: 2026-01-02T12:00:00Z\r\n",
            "WARC-Refers-To: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n",
            "WARC-Refers-To-Target-URI: http://s/a\r\n",
            "WARC-Refers-To-Date: 2026-01-01T12:00:00Z\r\n",
            "WARC-Payload-Digest: sha1:",
            "Server: y\r\n\r\n",
        ],
    );
    assert!(!revisits.contains("server-not-modified") && !revisits.contains("http://s/c"));
    // The revisit file can be read as input, and the same input gives the same bytes.
    assert_eq!(bench.json("dedup in.warc out/revisits.warc -o with")["revisits"], serde_json::json!(1));
    bench.ok("dedup in.warc -o one --also revisits --threads 1 --memory 64K -q");
    assert_eq!(bench.read("one/revisits.warc"), revisits);
    says(
        &bench.ok("dedup in.warc -o one --also revisits --force"),
        &["  revisits             1  records", "1 more that go have none"],
    );
}
