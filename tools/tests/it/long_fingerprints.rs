//! Fingerprints of 64 to 512 bits, in every notation and file format: the pairs of `pairs` and the kept rows of `dedup`
//! must equal brute force at any radius.

use std::fmt::Write;
use std::fs::File;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, FixedSizeBinaryArray, RecordBatch, StringArray};
use parquet::arrow::ArrowWriter;
use twindex::{Code, Params, Sketcher};

use crate::support::{Bench, Document, Random, jsonl, raw, says};

const WIDTHS: [usize; 6] = [1, 2, 3, 4, 6, 8];
const COUNT: usize = 300;

/// Returns codes of `width` words: random ones, near copies, equal ones, and some with nearly constant bits.
fn codes(width: usize) -> Vec<Vec<u64>> {
    let mut random = Random(width as u64);
    let mut all: Vec<Vec<u64>> = Vec::new();
    for at in 0..COUNT {
        let mut code: Vec<u64> = match random.below(4) {
            0 if at > 0 => all[random.below(at)].clone(),
            1 => vec![7; width],
            2 => (0..width).map(|_| random.next() & random.next() & random.next()).collect(),
            _ => (0..width).map(|_| random.next()).collect(),
        };
        for _ in 0..random.below(4) * random.below(12) {
            let bit = random.below(64 * width);
            code[bit / 64] ^= 1 << (bit % 64);
        }
        all.push(code);
    }
    all
}

fn distance(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

/// Keys whose order is not that of the rows.
fn key(at: usize) -> String {
    format!("{:03}.png", at * 7 % COUNT)
}

fn hex(code: &[u64]) -> String {
    code.iter().map(|word| format!("{word:016x}")).collect::<Vec<_>>().concat()
}

fn bits(code: &[u64]) -> String {
    code.iter().map(|word| format!("{word:064b}")).collect::<Vec<_>>().concat()
}

fn bytes(code: &[u64]) -> Vec<u8> {
    code.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Writes each three bytes as four characters, as RFC 4648 says.
fn base64(code: &[u64]) -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes(code).chunks(3) {
        let word = (0..3).fold(0, |word, at| word << 8 | usize::from(three.get(at).copied().unwrap_or(0)));
        for (at, shift) in [18, 12, 6, 0].into_iter().enumerate() {
            text.push(if at > three.len() { '=' } else { ALPHABET[word >> shift & 63].into() });
        }
    }
    text
}

fn table(codes: &[Vec<u64>], between: char, write: impl Fn(&[u64]) -> String) -> String {
    let rows = codes.iter().enumerate().map(|(at, code)| format!("{}{between}{}\n", key(at), write(code)));
    format!("id{between}pdq\n{}", rows.collect::<Vec<_>>().concat())
}

fn parquet(bench: &Bench, name: &str, codes: ArrayRef) {
    let keys: StringArray = (0..codes.len()).map(|at| Some(key(at))).collect();
    let batch = RecordBatch::try_from_iter([("id", Arc::new(keys) as ArrayRef), ("pdq", codes)]).unwrap();
    let file = File::create(bench.path(name)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

/// Returns the lines of `pairs` by brute force.
fn pairs(codes: &[Vec<u64>], within: u32) -> Vec<String> {
    let mut pairs = Vec::new();
    for (i, a) in codes.iter().enumerate() {
        for (j, b) in codes[..i].iter().enumerate() {
            let (one, two, distance) = (key(i), key(j), distance(a, b));
            if distance <= within {
                pairs.push(format!("{}\t{}\t{distance}", one.clone().min(two.clone()), one.max(two)));
            }
        }
    }
    pairs.sort_unstable();
    pairs
}

/// Returns the keys of the rows that stay: those that are near no earlier row that stays.
fn kept(codes: &[Vec<u64>], within: u32) -> Vec<String> {
    let mut stays: Vec<usize> = Vec::new();
    for (at, code) in codes.iter().enumerate() {
        if stays.iter().all(|&other| distance(&codes[other], code) > within) {
            stays.push(at);
        }
    }
    stays.into_iter().map(key).collect()
}

#[test]
fn pairs_and_kept_rows_of_every_width_and_radius_equal_brute_force() {
    for width in WIDTHS {
        let (bench, codes) = (Bench::new(), codes(width));
        bench.write("in.csv", table(&codes, ',', hex));
        let all = 64 * width as u32;
        for within in [0, 3, 10, 11, 15, 31, 52, all / 3, all / 2, all] {
            let expected = pairs(&codes, within);
            let say = format!("--fingerprint-field hex:pdq --near within:{within}");
            let found = bench.ok(&format!("pairs --fingerprints in.csv {say}"));
            assert!(found.lines().eq(&expected), "{width} words, within {within}");
            let count = bench.ok(&format!("pairs --fingerprints in.csv {say} --count"));
            assert_eq!(count, format!("{}\n", expected.len()));
            bench.ok(&format!("dedup in.csv {say} -o out --force -q"));
            let rows = bench.read("out/kept.csv");
            let keys = rows.lines().skip(1).map(|row| row.split(',').next().unwrap());
            assert!(keys.eq(&kept(&codes, within)), "{width} words, within {within}");
        }
        let (expected, once) = (pairs(&codes, 31), bench.contents("out"));
        let say = format!("--fingerprint-field hex:pdq --near within:{all}");
        bench.ok(&format!("dedup in.csv {say} -o one --threads 1 --memory 64K -q"));
        let again = bench.contents("one");
        for name in ["kept.csv", "pairs.tsv", "clusters.tsv"] {
            assert_eq!(once.get(std::path::Path::new(name)), again.get(std::path::Path::new(name)), "{name}");
        }
        bench.write("upper.tsv", table(&codes, '\t', |code| format!("0X{}", hex(code).to_uppercase())));
        bench.write("bits.csv", table(&codes, ',', bits));
        bench.write("base64.csv", table(&codes, ',', base64));
        let line = |(at, code): (usize, &Vec<u64>)| {
            format!("{{\"id\":\"{}\",\"pdq\":\"{}\"}}\n", key(at), hex(code))
        };
        bench.write("in.jsonl", codes.iter().enumerate().map(line).collect::<Vec<_>>().concat());
        parquet(
            &bench,
            "text.parquet",
            Arc::new(codes.iter().map(|code| Some(hex(code))).collect::<StringArray>()),
        );
        let of_bytes: BinaryArray = codes.iter().map(|code| Some(bytes(code))).collect();
        parquet(&bench, "bytes.parquet", Arc::new(of_bytes));
        let fixed = FixedSizeBinaryArray::try_from_iter(codes.iter().map(|code| bytes(code))).unwrap();
        parquet(&bench, "fixed.parquet", Arc::new(fixed));
        for (file, form) in [
            ("upper.tsv", ""),
            ("bits.csv", "bits:"),
            ("base64.csv", "base64:"),
            ("in.jsonl", "hex:"),
            ("text.parquet", "hex:"),
            ("bytes.parquet", "bytes:"),
            ("fixed.parquet", ""),
        ] {
            let say = format!("--fingerprint-field {form}pdq --near within:31");
            let found = bench.ok(&format!("pairs --fingerprints {file} {say}"));
            assert!(found.lines().eq(&expected), "{width} words, {file}");
            let report = bench.json(&format!("dedup {file} {say} -o {file}-out"));
            assert_eq!(report["kept"], kept(&codes, 31).len(), "{width} words, {file}");
        }
        // A pair of two files has the key of the first one first.
        let (left, right) = codes.split_at(100);
        bench.write("left.csv", table(left, ',', hex));
        bench.write("right.csv", table(right, ',', hex));
        let found = bench.ok(
            "pairs --fingerprints left.csv --with right.csv --fingerprint-field hex:pdq --near within:31",
        );
        let mut across = Vec::new();
        for (i, a) in left.iter().enumerate() {
            let near = right.iter().enumerate().map(|(j, b)| (j, distance(a, b))).filter(|near| near.1 <= 31);
            across.extend(near.map(|(j, distance)| format!("{}\t{}\t{distance}", key(i), key(j))));
        }
        across.sort_unstable();
        assert!(found.lines().eq(&across), "{width} words");
    }
}

#[test]
fn raw_fingerprints_are_paired_at_any_radius() {
    let (bench, codes) = (Bench::new(), codes(1));
    let values: Vec<u64> = codes.iter().map(|code| code[0]).collect();
    bench.write("all.u64", raw(&values));
    for within in [10, 11, 20, 64] {
        let mut expected = Vec::new();
        for (a, one) in values.iter().enumerate() {
            for (b, other) in values.iter().enumerate().skip(a + 1) {
                let distance = (one ^ other).count_ones();
                if distance <= within {
                    expected.push(format!("{a}\t{b}\t{distance}"));
                }
            }
        }
        let found = bench.ok(&format!("pairs --fingerprints all.u64 --near within:{within}"));
        assert!(found.lines().eq(&expected), "{within}");
        let count = bench.ok(&format!("pairs --fingerprints all.u64 --near within:{within} --count"));
        assert_eq!(count, format!("{}\n", expected.len()));
    }
}

#[test]
fn pairs_of_long_fingerprints_are_grouped_and_explained() {
    let bench = Bench::new();
    let rows =
        [("a", [0, 0, 0, 0]), ("b", [1, 0, 0, 7]), ("c", [1, 0, 0, u64::MAX]), ("d", [!0, !0, !0, !0])];
    let rows = rows.map(|(key, code)| format!("{key},{}\n", hex(&code))).concat();
    bench.write("in.csv", format!("id,pdq\n{rows}e,\nf,\n"));
    let say = "--fingerprint-field hex:pdq";
    bench.ok(&format!("pairs --fingerprints in.csv {say} --near within:61 -o all.pairs -q"));
    assert!(bench.read("all.pairs").starts_with("# twindex pairs\n# pairs=within 61 of 256 bits\n"));
    let groups = bench.ok("groups all.pairs -q");
    assert_eq!(groups, "key\tcluster\tkept\tscore\na\t1\ta\t=\nb\t1\ta\t4\nc\t1\ta\t-\n");
    let report = bench.json(&format!("dedup in.csv {say} --near within:4 -o out"));
    assert_eq!((&report["kept"], &report["contentless"]), (&5.into(), &2.into()));
    assert_eq!(bench.read("out/pairs.tsv"), "document\tkept\tdistance\nb\ta\t4\n");
    says(&bench.ok("why out b"), &["goes for a", "differ in 4 bits, at most 4", "as in the table"]);
    // The bytes by which a row without a fingerprint is compared are no fingerprint.
    bench.write("absent.csv", "id,pdq\na,fd6e6f20636f6e74656e743132333435\n12345,\n");
    assert_eq!(
        bench.json("dedup absent.csv --fingerprint-field hex:pdq --near within:0 -o absent")["kept"],
        2
    );
}

#[test]
fn fingerprints_of_other_widths_are_refused_and_named() {
    let bench = Bench::new();
    let (long, short) = (hex(&[9; 4]), hex(&[8; 2]));
    bench.write("in.csv", format!("id,pdq\na,{long}\nb,{short}\nc,{long}\n"));
    for line in ["dedup in.csv -o out", "pairs --fingerprints in.csv --near within:31"] {
        let refused = bench.refused(&format!("{line} --fingerprint-field pdq"));
        says(
            &refused,
            &["in.csv:3: expected a fingerprint of 256 bits like the first one, found 128 bits", &short],
        );
    }
    let report = bench.json("dedup in.csv --fingerprint-field pdq --skip-bad 1 -o out");
    assert_eq!((&report["documents"], &report["kept"]), (&2.into(), &1.into()));
    bench.write("long.csv", format!("id,pdq\na,{long}\n"));
    bench.write("short.csv", format!("id,pdq\nb,{short}\n"));
    bench.write("usual.csv", "id,pdq\nc,0123456789abcdef\n");
    for (other, bits) in [("short", 128), ("usual", 64)] {
        let line = format!(
            "pairs --fingerprints long.csv --with {other}.csv --fingerprint-field pdq --near within:3"
        );
        let expected = format!(
            "{other}.csv: expected fingerprints of 256 bits like those of long.csv, found {bits} bits"
        );
        says(&bench.refused(&line), &[&expected]);
    }
    // An index has fingerprints of one width.
    let an_index = "long.csv:2: a fingerprint of 256 bits: this index keeps 64 bits; `build` makes another";
    bench.ok("build i.twx usual.csv --fingerprint-field pdq -q");
    bench.ok("dedup usual.csv --fingerprint-field pdq -o before -q");
    for line in ["build i.twx long.csv", "query i.twx long.csv", "stream i.twx long.csv"] {
        says(&bench.refused(&format!("{line} --fingerprint-field pdq")), &[an_index]);
    }
    // The texts of a history are read if its index has fingerprints of another width.
    let line = "dedup long.csv --fingerprint-field pdq -o no";
    let other = "usual.csv:2: expected a fingerprint of 256 bits like all, found 64 bits";
    says(&bench.refused(&format!("{line} --against usual.csv")), &[other]);
    let other = "kept.csv:2: expected a fingerprint of 256 bits like all, found 64 bits";
    says(&bench.refused(&format!("{line} --against before")), &[other]);
    says(
        &bench.misused(&format!("{line} --against i.twx")),
        &["i.twx: no folder of results", "simhash is occurrences in the index and none here"],
    );
    bench.ok("dedup long.csv --fingerprint-field pdq -o wide --index kept -q");
    let line = "dedup usual.csv --fingerprint-field pdq -o no --against wide";
    says(&bench.refused(line), &["kept.csv:2: a fingerprint of 256 bits: this index keeps 64 bits"]);
    says(
        &bench.misused("pairs i.twx --near within:11"),
        &["an index finds 0 to 10; --fingerprints FILE takes any distance"],
    );
    for (form, value, found) in [
        (
            "",
            "0".repeat(128),
            "can be hexadecimal and bits: say which with --fingerprint-field hex:FIELD or bits:FIELD",
        ),
        ("hex:", "0".repeat(40), "expected up to 16 hexadecimal digits, or 32, 48, 64, 96 or 128"),
        ("bits:", "0".repeat(65), "expected 64, 128, 192, 256, 384 or 512 zeros and ones"),
        ("bytes:", "0".repeat(64), "expected 8, 16, 24, 32, 48 or 64 bytes, in a column of bytes"),
    ] {
        bench.write("bad.csv", format!("id,pdq\nx,{value}\n"));
        let line = format!("dedup bad.csv --fingerprint-field {form}pdq -o no");
        says(&bench.refused(&line), &["bad.csv:2: field \"pdq\": ", found]);
    }
    parquet(&bench, "bad.parquet", Arc::new(FixedSizeBinaryArray::try_from_iter([[1; 20]].iter()).unwrap()));
    let refused = bench.refused("dedup bad.parquet --fingerprint-field pdq -o no");
    says(
        &refused,
        &["bad.parquet, row 1: field \"pdq\": expected 8, 16, 24, 32, 48 or 64 bytes", "found 20 bytes"],
    );
}

#[test]
fn index_of_each_width_finds_the_hits_and_pairs_of_brute_force() {
    for width in WIDTHS {
        let (bench, all) = (Bench::new(), codes(width));
        bench.write("a.csv", table(&all, ',', hex));
        bench.write("q.csv", table(&all[..40], ',', hex));
        let within = 11 + 4 * width as u32;
        let line = format!("a.csv --fingerprint-field hex:pdq --near within:{within} -q");
        bench.ok(&format!("build i.twx {line}"));
        let near = |at: usize, wants: &dyn Fn(usize) -> bool| {
            let found = (0..COUNT)
                .filter(|&other| wants(other))
                .map(|other| (distance(&all[at], &all[other]), key(other)));
            let mut found: Vec<(u32, String)> = found.filter(|&(distance, _)| distance <= within).collect();
            found.sort_unstable();
            found
        };
        let hits: String = (0..40)
            .flat_map(|at| {
                near(at, &|_| true)
                    .into_iter()
                    .map(move |(distance, other)| format!("{}\t{other}\t{distance}\t-\n", key(at)))
            })
            .collect();
        assert_eq!(bench.ok("query i.twx q.csv --fingerprint-field hex:pdq -q"), hits, "{width}");
        let mut pairs: Vec<String> = (0..COUNT)
            .flat_map(|at| {
                near(at, &|other| key(at) < key(other))
                    .into_iter()
                    .map(move |(distance, other)| format!("{}\t{other}\t{distance}\n", key(at)))
            })
            .collect();
        pairs.sort_unstable();
        assert_eq!(bench.ok("pairs i.twx -q"), pairs.concat(), "{width}");
        bench.ok(&format!("stream s.twx {line}"));
        assert!(bench.ok("verify s.twx").contains("sound"));
        assert!(bench.ok("get i.twx 000.png").contains(&hex(&all[0])));
    }
}

/// Returns the rows of a table with a fingerprint, which may be empty, and the number of pixels.
fn images(rows: &[(String, Option<&[u64]>, usize)]) -> String {
    let row = |(key, code, pixels): &(String, Option<&[u64]>, usize)| {
        format!("{key},{pixels},{}\n", code.map_or_else(String::new, hex))
    };
    format!("id,pixels,pdq\n{}", rows.iter().map(row).collect::<String>())
}

#[test]
fn dedup_against_an_index_of_each_width_equals_kept_rows_and_brute_force() {
    for width in WIDTHS {
        let (bench, codes, mut random) = (Bench::new(), codes(width), Random(9));
        let mut rows: Vec<(String, Option<&[u64]>, usize)> = codes
            .iter()
            .enumerate()
            .map(|(at, code)| (key(at), (at % 40 != 7).then_some(&code[..]), random.below(9)))
            .collect();
        let mut new = rows.split_off(150);
        // Repeated keys, of rows with and without a fingerprint.
        new.push((rows[7].0.clone(), None, 3));
        new.push((rows[8].0.clone(), Some(&codes[8]), 3));
        bench.write("old.csv", images(&rows));
        bench.write("new.csv", images(&new));
        for (within, rule, order) in [(11 + 4 * width, "first", false), (52, "max:pixels", true)] {
            if order && width % 4 > 0 {
                continue; // each run of the command takes time
            }
            let within = within as u32;
            let say = format!("--fingerprint-field hex:pdq --near within:{within} --keep {rule}");
            let greedy = |rows: &[(String, Option<&[u64]>, usize)], before: &[&[u64]]| {
                let mut numbers: Vec<usize> = (0..rows.len()).collect();
                if order {
                    numbers.sort_by_key(|&at| (std::cmp::Reverse(rows[at].2), &rows[at].0));
                }
                let (mut stays, mut kept) = (Vec::new(), before.to_vec());
                for at in numbers {
                    let Some(code) = rows[at].1 else {
                        stays.push(at);
                        continue;
                    };
                    if kept.iter().all(|other| distance(other, code) > within) {
                        kept.push(code);
                        stays.push(at);
                    }
                }
                stays.sort_unstable();
                stays
            };
            let kept_old = greedy(&rows, &[]);
            let old: Vec<&[u64]> = kept_old.iter().filter_map(|&at| rows[at].1).collect();
            bench.ok(&format!("dedup old.csv {say} -o by-rows --force -q"));
            let first = |row: &str| row.split(',').next().unwrap().to_owned();
            let kept: Vec<String> = bench.read("by-rows/kept.csv").lines().skip(1).map(first).collect();
            assert!(kept.iter().eq(kept_old.iter().map(|&at| &rows[at].0)), "{width} {within}");
            // A row without a fingerprint is removed if its key was kept before.
            let expected: Vec<usize> = greedy(&new, &old).into_iter().filter(|&at| at != 150).collect();
            let mut results = Vec::new();
            for index in ["", "--index kept", "--index all"] {
                bench.ok(&format!("dedup old.csv {say} -o old --force -q {index}"));
                for name in ["kept.csv", "clusters.tsv", "pairs.tsv"] {
                    assert_eq!(bench.read(&format!("old/{name}")), bench.read(&format!("by-rows/{name}")));
                }
                if !index.is_empty() {
                    assert!(bench.ok("verify old/index").contains("sound"));
                    let documents = bench.json("stats old/index")["documents"].as_u64().unwrap() as usize;
                    let without = rows.iter().filter(|row| row.1.is_none()).count();
                    let all = if index.ends_with("all") { rows.len() - without } else { old.len() };
                    assert_eq!(documents, all, "{width} {within} {index}");
                }
                let report = bench.json(&format!("dedup new.csv {say} -o new --force --against old"));
                let used = if index.is_empty() { "texts" } else { "index" };
                assert_eq!(report["histories"][0]["kind"], used, "{report}");
                let kept = bench.read("new/kept.csv");
                let keys: Vec<String> = kept.lines().skip(1).map(first).collect();
                let keys: Vec<&str> = keys.iter().map(|key| key.trim_end_matches("#2")).collect();
                assert!(keys.iter().eq(expected.iter().map(|&at| &new[at].0)), "{width} {within} {index}");
                results.push(
                    ["kept.csv", "clusters.tsv", "pairs.tsv", "against.tsv"]
                        .map(|name| bench.read(&format!("new/{name}"))),
                );
                assert!(results[results.len() - 1] == results[0], "{width} {within} {index}");
            }
            bench.ok(&format!("dedup new.csv {say} -o plain --force --against old/index -q"));
            assert_eq!(bench.read("plain/kept.csv"), results[0][0]);
            bench.ok(&format!(
                "dedup new.csv {say} -o resumed --force --against old --index kept --resume --threads 1 --memory 8M -q"
            ));
            assert_eq!(bench.read("resumed/against.tsv"), results[0][3]);
            let removed = results[0][3].lines().nth(1).unwrap().split('\t').next().unwrap().to_owned();
            says(&bench.ok(&format!("why resumed {removed}")), &["differ in"]);
        }
    }
}

#[test]
fn the_near_document_with_the_smallest_key_is_named_among_many_and_inside_a_field() {
    let bench = Bench::new();
    let code = |ones: u32| [(1_u64 << ones) - 1, 5];
    // The smallest key is the farthest of 100 near documents.
    let row = |at: usize| {
        let (of, ones) = if at == 0 { ("a", 20) } else { ("b", 3) };
        format!("{},{of},{}\n", key(at), hex(&code(ones)))
    };
    let rows = (0..100).map(row).collect::<Vec<_>>().concat();
    bench.write("old.csv", format!("id,of,pdq\n{rows}"));
    bench.write("new.csv", format!("id,of,pdq\nx,a,{0}\ny,b,{0}\nz,c,{0}\n", hex(&code(0))));
    let say = "--fingerprint-field hex:pdq --near within:20";
    bench.ok(&format!("build all.twx old.csv {say} -q"));
    bench.ok(&format!("dedup new.csv {say} -o new --against all.twx -q"));
    let all = key(0);
    let expected = ["x", "y", "z"].map(|new| format!("{new}\t{all}\t20\n")).concat();
    assert_eq!(bench.read("new/against.tsv").split_once('\n').unwrap().1, expected);
    bench.ok(&format!("dedup old.csv {say} --inside of -o old --index kept -q"));
    bench.ok(&format!("dedup new.csv {say} --inside of -o inside --against old -q"));
    let expected = format!("x\t{all}\t20\ny\t{}\t3\n", key(1));
    assert_eq!(bench.read("inside/against.tsv").split_once('\n').unwrap().1, expected);
}

/// Returns texts. Many differ little from an earlier one, and some have no words.
fn texts(count: usize) -> Vec<Document> {
    let mut random = Random(5);
    let mut all: Vec<String> = Vec::new();
    for at in 0..count {
        let mut words: Vec<String> =
            (0..8 + random.below(50)).map(|_| format!("w{}", random.below(400))).collect();
        match random.below(9) {
            0 => words = vec!["-".repeat(1 + random.below(9))],
            1..=6 if at > 0 => {
                words = all[random.below(at)].split(' ').map(str::to_owned).collect();
                for _ in 0..random.below(4) {
                    let place = random.below(words.len());
                    words[place] = format!("w{}", random.below(400));
                }
            }
            _ => {}
        }
        all.push(words.join(" "));
    }
    (0..).zip(all).map(|(at, text): (usize, _)| (format!("{:03}", at * 7 % count), text)).collect()
}

#[test]
fn long_simhashes_of_texts_find_what_a_comparison_of_all_finds() {
    let documents = texts(180);
    for bits in [128, 384_u32] {
        let within = bits / 6;
        let bench = Bench::new();
        bench.write("in.jsonl", jsonl(&documents));
        bench.write("old.jsonl", jsonl(&documents[..100]));
        bench.write("new.jsonl", jsonl(&documents[100..]));
        let say = format!("--words 3 --simhash-bits {bits} --near within:{within}");
        let params = Params::builder().words(3).simhash(0).simhash_bits(bits as u16).build().unwrap();
        let sketcher = Sketcher::new(&params).unwrap();
        let codes: Vec<Option<Code>> =
            documents.iter().map(|(_, text)| sketcher.sketch(text).unwrap().code()).collect();
        let distance = |a: usize, b: usize| Some(codes[a]?.distance(&codes[b]?));
        let near = |at: usize, within: u32| {
            let found = (0..documents.len()).filter_map(|b| Some((distance(at, b)?, &*documents[b].0)));
            let mut found: Vec<(u32, &str)> = found.filter(|&(distance, _)| distance <= within).collect();
            found.sort_unstable();
            found
        };

        bench.ok(&format!("build i.twx in.jsonl {say} -q"));
        bench.ok(&format!("build named.twx in.jsonl {say} --method simhash -q"));
        let segment = |index: &str| std::fs::read(bench.path(index).join("000001.seg")).unwrap();
        assert!(segment("i.twx") == segment("named.twx"));
        assert_eq!(bench.json("stats i.twx")["documents"], documents.len());
        let (mut pairs, mut hits) = (Vec::new(), 0);
        for (radius, option) in [(within, String::new()), (bits, format!("--near within:{bits}"))] {
            let mut lines = String::new();
            for (at, (key, _)) in documents.iter().enumerate().skip(100) {
                for (distance, other) in near(at, radius) {
                    writeln!(lines, "{key}\t{other}\t{distance}\t-").unwrap();
                    hits += 1;
                }
            }
            assert_eq!(bench.ok(&format!("query i.twx new.jsonl {option} -q")), lines, "{bits}");
        }
        let json = bench.json("query i.twx new.jsonl --quiet -o hits.tsv");
        assert_eq!(json["queries"], 80, "{json}");
        for (at, (key, _)) in documents.iter().enumerate() {
            let near = near(at, within).into_iter().filter(|(_, other)| key.as_str() < *other);
            pairs.extend(near.map(|(distance, other)| format!("{key}\t{other}\t{distance}\n")));
        }
        pairs.sort_unstable();
        assert!(pairs.len() > 20 && hits > 100, "{} {hits}", pairs.len());
        assert_eq!(bench.ok("pairs i.twx -q"), pairs.concat(), "{bits}");
        let code = codes.iter().flatten().next().unwrap();
        bench.ok(&format!("build t.tsv in.jsonl --as table {say} -q"));
        assert!(bench.read("t.tsv").contains(&format!("\t{code}\t")));

        // A text without words goes only if an earlier one is equal.
        let mut stays: Vec<usize> = Vec::new();
        for at in 0..documents.len() {
            let is_near = |&other: &usize| match distance(at, other) {
                Some(distance) => distance <= within,
                None => documents[at].1 == documents[other].1,
            };
            if !stays.iter().any(is_near) {
                stays.push(at);
            }
        }
        let lines = |stays: &[usize]| stays.iter().map(|&at| jsonl(&documents[at..=at])).collect::<String>();
        let kept = lines(&stays);
        let runs = ["", "--threads 1 --memory 64K", "--index kept", "--index all", "--resume"];
        for run in runs {
            bench.ok(&format!("dedup in.jsonl {say} {run} -o out --force -q"));
            assert_eq!(bench.read("out/kept.jsonl"), kept, "{bits} {run}");
            if run.starts_with("--index") {
                assert!(bench.ok("verify out/index").contains("sound"));
                let expected = if run.ends_with("all") { documents.len() } else { stays.len() };
                assert_eq!(bench.json("stats out/index")["documents"], expected, "{run}");
            }
        }
        let rows = bench.read("out/pairs.tsv");
        let row = rows.lines().skip(1).find(|row| !row.ends_with("\t0")).unwrap();
        let fields: Vec<&str> = row.split('\t').collect();
        says(
            &bench.ok(&format!("why out {}", fields[0])),
            &[&format!("differ in {} bits, at most {within}", fields[2]), "as in the table"],
        );
        let later: Vec<usize> = stays.iter().copied().filter(|&at| at >= 100).collect();
        for run in ["", "--index kept"] {
            bench.ok(&format!("dedup old.jsonl {say} {run} -o old --force -q"));
            let report = bench.json(&format!("dedup new.jsonl {say} --against old -o new --force"));
            assert_eq!(report["histories"][0]["kind"], if run.is_empty() { "texts" } else { "index" });
            assert_eq!(bench.read("new/kept.jsonl"), lines(&later), "{bits} {run}");
        }
        let report = bench.json(&format!("stream s.twx in.jsonl {say} -q"));
        let wordless = codes.iter().filter(|code| code.is_none()).count();
        let new = stays.iter().filter(|&&at| codes[at].is_some()).count() + wordless;
        assert_eq!(report["new"], new, "{report}");
        // The parameters of the index are those of later runs.
        bench.ok("stream s.twx in.jsonl -q");
        bench.ok("build i.twx new.jsonl -q");
    }
}

/// Runs the command and returns its message. Expects no success.
fn unsuccessful(bench: &Bench, line: &str) -> String {
    let output = bench.command(line).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{line}: {message}");
    message
}

#[test]
fn long_simhashes_where_they_cannot_be_are_refused() {
    let bench = Bench::new();
    bench.write("in.jsonl", jsonl(&texts(9)));
    for line in ["build i.twx in.jsonl", "dedup in.jsonl -o out", "stream i.twx in.jsonl"] {
        for (options, why) in
            [("", "--near within:K"), ("--near 0.8", "--near within:K"), ("--near within:257", "within")]
        {
            let options = format!("--simhash-bits 256 {options}");
            says(&unsuccessful(&bench, &format!("{line} {options}")), &[why]);
        }
        let refused = bench.misused(&format!("{line} --simhash-bits 100 --near within:9"));
        says(&refused, &["expected one of 64, 128, 192, 256, 384, 512, found \"100\""]);
        let refused = bench.misused(&format!("{line} --near within:11"));
        says(&refused, &["--simhash-bits or --fingerprint-field"]);
        let both = format!("{line} --simhash-bits 128 --near within:9 --fingerprint-field text");
        says(&bench.misused(&both), &["--simhash-bits"]);
    }
    let long = "--simhash-bits 256 --near within:9";
    for (options, why) in [
        ("--method minhash,simhash", "minhash with a simhash of 256 bits"),
        ("--method minhash", "--method simhash"),
        ("--sets kept", "--sets"),
        ("--bottom 9", "bottom with a simhash of 256 bits"),
        ("--design small", "tables with a simhash of 256 bits"),
        ("--bands 4", "--bands"),
        ("--as sketches", "a file of sketches holds 64 bits"),
    ] {
        says(&bench.misused(&format!("build i.twx in.jsonl {long} {options}")), &[why]);
    }
    bench.ok(&format!("build i.twx in.jsonl {long} -q"));
    bench.ok("build usual.twx in.jsonl --method simhash -q");
    for (line, why) in [
        ("build i.twx in.jsonl --simhash-bits 128", "simhashes have 256 bits in this index"),
        ("build usual.twx in.jsonl --simhash-bits 128", "simhashes have 64 bits in this index"),
        ("build i.twx in.jsonl --simhash-weights distinct", "simhash-weights is occurrences in this index"),
        ("build i.twx in.jsonl --method minhash", "simhash is kept in this index"),
        ("query i.twx in.jsonl --near 0.8", "keeps no MinHash"),
        ("pairs i.twx --near 0.8", "MinHash"),
        ("pairs i.twx --with usual.twx", "usual.twx"),
    ] {
        says(&unsuccessful(&bench, line), &[why]);
    }
}
