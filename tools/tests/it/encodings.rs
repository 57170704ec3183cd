//! Texts in encodings other than UTF-8, or with an undeclared encoding. Different texts must never be treated as copies,
//! losses in decoding must be counted and reported, and pages must be decoded by the same rules in archives and on disk.

use crate::support::{Bench, rows, says};

const CLUSTERS: &str = "key\tcluster\tkept\tscore";

/// Two texts in windows-1251 with the same number of bytes and no common word.
const CYRILLIC: [&[u8]; 2] = [
    b"\xcf\xe5\xf0\xe2\xfb\xe9 \xf2\xe5\xea\xf1\xf2 \xee \xef\xee\xe3\xee\xe4\xe5 \xe8 \xec\xee\xf0\xe5 \xe7\xe4\xe5\xf1\xfc",
    b"\xc2\xf2\xee\xf0\xee\xe9 \xf0\xe0\xf1\xf1\xea \xe0 \xea\xee\xf8\xea\xe0\xf5 \xf3 \xf1\xee\xf1\xe5\xe4 \xf2\xe0\xec\xee\xf1",
];

fn keys(bench: &Bench, out: &str) -> Vec<[String; 2]> {
    let row = |row: String| {
        let fields: Vec<&str> = row.split('\t').collect();
        [fields[0].to_owned(), fields[2].to_owned()]
    };
    rows(&bench.read(&format!("{out}/clusters.tsv")), CLUSTERS).into_iter().map(row).collect()
}

/// Returns the number of kept documents.
fn kept(bench: &Bench, command: &str) -> u64 {
    bench.json(&format!("{command} -o out --force"))["kept"].as_u64().unwrap()
}

fn answer(uri: &str, head: &str, content: &[u8]) -> Vec<u8> {
    let answer = [b"HTTP/1.1 200 OK\r\n", head.as_bytes(), b"\r\n", content].concat();
    let head = format!(
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: {uri}\r\n\
         Content-Type: application/http; msgtype=response\r\nContent-Length: {}\r\n\r\n",
        answer.len()
    );
    [head.as_bytes(), &answer, b"\r\n\r\n"].concat()
}

fn html(uri: &str, of_type: &str, content: &[u8]) -> Vec<u8> {
    answer(uri, &format!("Content-Type: {of_type}\r\n"), content)
}

#[test]
fn texts_in_utf32_with_a_mark_are_decoded_and_records_in_it_are_refused() {
    let bench = Bench::new();
    let text = "the first line of a text with \u{1f600} and \u{e9}";
    let wide = |text: &str, of: fn(u32) -> [u8; 4]| -> Vec<u8> {
        std::iter::once('\u{feff}').chain(text.chars()).flat_map(|character| of(character as u32)).collect()
    };
    bench.write("in/a.txt", text);
    bench.write("in/b.txt", wide(text, u32::to_le_bytes));
    bench.write("in/c.txt", wide(text, u32::to_be_bytes));
    assert_eq!(kept(&bench, "dedup in"), 1);
    for (file, bytes) in [("cut", &wide(text, u32::to_le_bytes)[..30]), ("wrong", b"\0\0\xfe\xff\0\0\xd8\0")]
    {
        bench.write(file, bytes);
        says(
            &bench.refused(&format!("dedup {file} -o no --format text")),
            &["not in the encoding that is said"],
        );
    }
    for (name, line) in [("r.jsonl", "{\"id\":1,\"text\":\"a\"}\n"), ("r.csv", "id,text\n1,a\n")] {
        for of in [u32::to_le_bytes, u32::to_be_bytes] {
            bench.write(name, wide(line, of));
            says(&bench.refused(&format!("dedup {name} -o no")), &["UTF-32, in which records are not read"]);
        }
    }
}

#[test]
fn texts_differing_only_in_invalid_bytes_are_not_copies() {
    let bench = Bench::new();
    let [one, two] = CYRILLIC;
    let all = [one, two, one];
    let csv = |text: &[u8], id: usize| [format!("{id},").as_bytes(), text, b"\n"].concat();
    let line =
        |text: &[u8], id: usize| [format!("{{\"id\":{id},\"text\":\"").as_bytes(), text, b"\"}\n"].concat();
    let each = |of: &dyn Fn(&[u8], usize) -> Vec<u8>| -> Vec<u8> {
        all.iter().zip(1..).flat_map(|(text, id)| of(text, id)).collect()
    };
    bench.write("t.csv", [b"id,text\n".to_vec(), each(&csv)].concat());
    bench.write("t.jsonl", each(&line));
    for (id, text) in (1..).zip(all) {
        bench.write(&format!("folder/{id}"), text);
    }
    for (input, out) in [("t.csv", "kept.csv"), ("t.jsonl", "kept.jsonl"), ("folder", "kept.jsonl")] {
        if input != "folder" {
            let message = bench.refused(&format!("dedup {input} -o no"));
            says(&message, &["not UTF-8", "--encoding LABEL", "compares it by its bytes alone"]);
        }
        let said = bench.ok(&format!("dedup {input} -o {input}-out --invalid-utf8 replace"));
        says(&said, &["3 documents not UTF-8", "compared by all bytes alone, the first: "]);
        let own = |id: &str, kept: &str| [id.to_owned(), kept.to_owned()];
        assert_eq!(
            keys(&bench, &format!("{input}-out")),
            [own("1", "1"), own("2", "2"), own("3", "1")],
            "{input}"
        );
        // The kept documents are identical byte for byte, and the next run recognizes them.
        if input == "folder" {
            says(&bench.read("folder-out/kept.jsonl"), &["\\udccf\\udce5"]);
        } else {
            let written = std::fs::read(bench.path(&format!("{input}-out/{out}"))).unwrap();
            let whole = std::fs::read(bench.path(input)).unwrap();
            assert_eq!(written, whole[..written.len()], "{input}");
        }
        assert_eq!(
            kept(&bench, &format!("dedup {input} --against {input}-out --invalid-utf8 replace")),
            0,
            "{input}"
        );
        // With the right encoding, they are ordinary texts.
        assert_eq!(kept(&bench, &format!("dedup {input} --encoding windows-1251")), 2, "{input}");
        let report = bench.json(&format!("dedup {input} --encoding auto -o out --force"));
        assert_eq!((&report["kept"], &report["detected_encodings"]), (&2.into(), &3.into()), "{input}");
        says(report["encoding_detector"].as_str().unwrap(), &["chardetng"]);
        let report = bench.json(&format!("dedup {input} --invalid-utf8 skip -o out --force"));
        let skipped =
            report["skipped_lossy"].as_u64().unwrap_or(0) + report["skipped_not_utf8"].as_u64().unwrap();
        assert_eq!((&report["documents"], skipped), (&0.into(), 3), "{input}");
    }
    assert_eq!(
        kept(&bench, "dedup t.csv t.jsonl folder --invalid-utf8 replace"),
        2,
        "copies of each other in all forms"
    );
}

#[test]
fn lossily_decoded_text_is_a_duplicate_only_of_exact_copies() {
    let bench = Bench::new();
    let words = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen";
    let line = |id: &str, bad: &[u8]| {
        [format!("{{\"id\":\"{id}\",\"text\":\"{words} ").as_bytes(), bad, b"\"}\n"].concat()
    };
    // The texts are near each other by their words, and equal after replacement by U+FFFD.
    let lines = [
        line("a", b"\xb0\xa1"),
        line("b", b"\xb0\xa2"),
        line("c", b"\xb0\xa1"),
        line("d", "\u{fffd}\u{fffd}".as_bytes()),
    ];
    bench.write("in.jsonl", lines.concat());
    bench.ok("dedup in.jsonl -o out --invalid-utf8 replace -q");
    let own = |key: &str, kept: &str| [key.to_owned(), kept.to_owned()];
    assert_eq!(keys(&bench, "out"), [own("a", "a"), own("b", "b"), own("c", "a"), own("d", "d")]);
    says(&bench.ok("why out c"), &["identical, byte for byte"]);
    // Queries and indexes use the texts with U+FFFD, because they remove no documents.
    bench.ok("build i.twx in.jsonl --invalid-utf8 replace -q");
    assert_eq!(bench.ok("query i.twx in.jsonl --invalid-utf8 replace --first -q").lines().count(), 4);
    // An unpaired surrogate in JSON is treated like an invalid byte.
    bench.write("half.jsonl", "{\"id\":1,\"text\":\"a\\ud800\"}\n{\"id\":2,\"text\":\"a\\ud801\"}\n{\"id\":3,\"text\":\"a\\ud800\"}\n");
    says(&bench.refused("dedup half.jsonl -o no"), &["an escape of half a surrogate pair"]);
    assert_eq!(kept(&bench, "dedup half.jsonl --invalid-utf8 replace"), 2);
    assert_eq!(bench.read("out/kept.jsonl").lines().next().unwrap(), "{\"id\":1,\"text\":\"a\\ud800\"}");
}

#[test]
fn pages_with_a_wrong_charset_label_are_not_copies() {
    let bench = Bench::new();
    let [one, two] = CYRILLIC;
    let page = |text: &[u8]| [b"<html><body><p>", text, b"</body></html>"].concat();
    for (name, of_type, before) in [
        ("declared", "text/html; charset=utf-8", &b""[..]),
        ("script", "text/html", b"<script src=x charset=utf-8></script>"),
        ("comment", "text/html", b"<!-- <meta charset=utf-8> -->"),
        ("replacement", "text/html; charset=iso-2022-kr", b"<meta charset=hz-gb-2312>"),
        ("nothing", "text/html", b""),
    ] {
        let page = |text: &[u8]| page(&[before, text].concat());
        let archive =
            [html("a", of_type, &page(one)), html("b", of_type, &page(two)), html("c", of_type, &page(one))];
        bench.write("in.warc", archive.concat());
        assert_eq!(kept(&bench, "dedup in.warc"), 2, "{name}");
        bench.write("ref.jsonl", "{\"id\":\"ref\",\"text\":\"Первый текст о погоде и море здесь\"}\n");
        assert_eq!(kept(&bench, "dedup ref.jsonl in.warc --words 1"), 2, "{name}: read as what it is");
    }
    // In English text, the declared charset is used, and bytes lost in decoding are reported.
    let mixed = |bad: &[u8]| {
        let text = "plenty of plain words with ümlauts and äccents that are as the charset says ";
        html("u", "text/html; charset=utf-8", &page(&[text.as_bytes(), bad].concat()))
    };
    bench.write("mixed.warc", [mixed(b"\xb0\xa1"), mixed(b"\xb0\xa2")].concat());
    let report = bench.json("dedup mixed.warc -o out --force");
    assert_eq!((&report["kept"], &report["replaced_utf8"]), (&2.into(), &2.into()));
    says(report["first_replaced"].as_str().unwrap(), &["mixed.warc, record 1"]);
    says(&bench.refused("dedup mixed.warc -o no --invalid-utf8 error"), &["mixed.warc, record 1: not UTF-8"]);
    assert_eq!(bench.json("dedup mixed.warc -o out --force --invalid-utf8 skip")["skipped_lossy"], 2);
    // Makes English pages that declare an encoding that no browser supports.
    let plain = |text: &str| html("u", "text/html; charset=iso-2022-cn", page(text.as_bytes()).as_slice());
    bench.write("plain.warc", [plain("some words of one page"), plain("quite another one")].concat());
    assert_eq!(kept(&bench, "dedup plain.warc"), 2);
}

#[test]
fn pages_on_disk_and_in_archives_are_decoded_alike() {
    let bench = Bench::new();
    let text = "日本語の文章はここにあります。これは試験のための頁です。";
    let page = |charset: &str| {
        format!("<html><head><meta charset={charset}></head><body><p>{text}</p></body></html>")
    };
    let sjis = encoding_rs::SHIFT_JIS.encode(&page("shift_jis")).0.into_owned();
    let utf16: Vec<u8> =
        format!("\u{feff}{}", page("utf-8")).encode_utf16().flat_map(u16::to_le_bytes).collect();
    let late = [vec![b' '; 3000], sjis.clone()].concat();
    bench.write("folder/sjis.html", &sjis);
    bench.write("folder/utf16.html", &utf16);
    bench.write("folder/utf8.htm", page("utf-8"));
    bench.write("folder/late.xhtml", &late);
    let pages =
        [html("a", "text/html", &sjis), html("b", "text/html", &utf16), html("c", "text/html", &late)];
    bench.write("in.warc", pages.concat());
    bench.write("ref.jsonl", serde_json::json!({ "id": "ref", "text": text }).to_string() + "\n");
    let report = bench.json("dedup ref.jsonl folder in.warc -o out --words 1");
    let figures = ["documents", "kept", "skipped_binary", "skipped_not_utf8"]
        .map(|name| report[name].as_u64().unwrap());
    assert_eq!(figures, [8, 1, 0, 0], "{report}");
    assert_eq!(kept(&bench, "dedup folder/sjis.html ref.jsonl --words 1"), 1);
    // Plain text with a UTF-16 byte order mark is decoded as well.
    let utf16: Vec<u8> = format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_be_bytes).collect();
    bench.write("plain.txt", utf16);
    assert_eq!(kept(&bench, "dedup plain.txt ref.jsonl --words 1"), 1);
}

#[test]
fn pages_without_visible_text_are_compared_by_their_markup() {
    let bench = Bench::new();
    let page =
        |script: &str| format!("<html><body><div id=app></div><script>{script}</script></body></html>");
    let pages = [("a", "load(1)"), ("b", "load(2)"), ("c", "load(3)"), ("d", "load(1)")];
    let archive: Vec<Vec<u8>> =
        pages.iter().map(|(uri, script)| html(uri, "text/html", page(script).as_bytes())).collect();
    bench.write("in.warc", archive.concat());
    let said = bench.ok("dedup in.warc -o out");
    says(&said, &["4 pages without a text to be seen, compared by all of the markup alone"]);
    assert!(!said.contains("without words"), "{said}");
    let own = |key: &str, kept: &str| [key.to_owned(), kept.to_owned()];
    assert_eq!(keys(&bench, "out"), [own("a", "a"), own("b", "b"), own("c", "c"), own("d", "a")]);
    for (uri, script) in pages {
        bench.write(&format!("folder/{uri}.html"), page(script));
    }
    assert_eq!(kept(&bench, "dedup folder"), 3);
    bench.ok("dedup in.warc -o history -q");
    assert_eq!(kept(&bench, "dedup folder --against history"), 0, "the same markup");
}
