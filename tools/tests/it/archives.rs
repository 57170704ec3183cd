//! Web archives as crawlers leave them: cut off in the middle, with captures that are the same as earlier ones, and answers
//! that say little of themselves; and folders of which not all files are wanted.

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
fn a_compressed_archive_that_breaks_off_is_read_up_to_there_and_counted() {
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
    // All in one stream of zstd.
    let packed =
        zstd::encode_all(texts.iter().map(|text| page("u", text)).collect::<String>().as_bytes(), 3).unwrap();
    bench.write("cut.warc.zst", &packed[..packed.len() * 2 / 3]);
    let report = bench.json("dedup cut.warc.zst -o cut");
    assert!(report["documents"].as_u64().unwrap() < 40 && report["cut_archives"] == 1);
    // Damage is no break, and rows have no sign of where they end.
    let mut damaged = whole.clone();
    damaged[members[0].len() + 20] ^= 0x55;
    bench.write("damaged.warc.gz", &damaged);
    says(&bench.refused("dedup damaged.warc.gz -o damaged"), &["damaged.warc.gz: cannot undo gzip"]);
    let lines = gzip(b"{\"id\":1,\"text\":\"a\"}\n".repeat(50).as_slice());
    bench.write("cut.jsonl.gz", &lines[..lines.len() - 6]);
    says(&bench.refused("dedup cut.jsonl.gz -o lines"), &["cut.jsonl.gz: truncated"]);
}

#[test]
fn revisits_are_counted_apart_and_answers_without_a_type_are_read() {
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
        &bench.ok("dedup in.warc -o told"),
        &["2 revisit records passed over", "2 archive records passed over"],
    );
}

#[test]
fn files_of_folders_are_chosen_by_patterns_and_why_reads_the_same_ones() {
    let bench = Bench::new();
    let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
    bench.write("data/README.md", "about the data");
    bench.write("data/en/a.jsonl", line("a", "one two three four five six"));
    bench.write("data/en/b.jsonl", line("b", "one two three four five six"));
    bench.write("data/de/c.jsonl", line("c", "eins zwei drei vier"));
    bench.write("data/en/old.jsonl", "no JSON\n");
    let count =
        |options: &str, out: &str| bench.json(&format!("dedup data -o {out} {options}"))["documents"].clone();
    assert_eq!(count("--format jsonl --exclude old.*", "all"), 3);
    assert_eq!(count("--format jsonl --include en/* --exclude */old.jsonl", "en"), 2);
    says(&bench.ok("why en b"), &["a"]);
    // With the records left out, what stays is texts.
    assert_eq!(count("--exclude *.jsonl", "texts"), 1);
    says(
        &bench.refused("dedup data -o none --format jsonl --include *.json"),
        &["no file named", "--include"],
    );
    let output = bench.command("dedup data -o none --include [").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    says(&String::from_utf8(output.stderr).unwrap(), &["--include: "]);
}
