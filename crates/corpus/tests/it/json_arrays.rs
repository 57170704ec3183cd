//! Tests `.json` files that hold one array of records, or objects of several lines.

use std::fs;
use std::path::Path;

use serde_json::Value;
use twindex_corpus::input::{Batch, Buffers, Documents};
use twindex_corpus::{Dedup, InputOptions, Report};

fn dedup(input: &Path, out: &Path, skip_bad: u64) -> Result<Report, String> {
    let mut job = Dedup::new([input], out);
    job.reading.skip_bad = skip_bad;
    job.run().map_err(|error| format!("{error:#}"))
}

#[test]
fn objects_of_an_array_are_documents_and_are_kept_as_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.json"), folder.path().join("out"));
    let text = |number: usize| format!("one {number} two three \"four\", five {} [six]\n\u{e9}", number % 7);
    let records: Vec<Value> = (0..50)
        .map(|number| serde_json::json!({"id": number, "text": text(number / 2), "more": {"a": [1, {}]}}))
        .collect();
    let array = Value::Array(records.clone());
    let [compact, pretty] =
        [serde_json::to_string(&array), serde_json::to_string_pretty(&array)].map(Result::unwrap);
    let mut kept = Vec::new();
    for (name, content) in [("compact", compact), ("pretty", format!("\u{feff}\n{pretty}\n"))] {
        let (input, out) = (folder.path().join(format!("{name}.json")), folder.path().join(name));
        fs::write(&input, content).unwrap();
        let report = dedup(&input, &out, 0).unwrap();
        assert_eq!((report.input.documents, report.kept_files), (50, vec!["kept.jsonl".to_owned()]));
        let lines = fs::read_to_string(out.join("kept.jsonl")).unwrap();
        kept.push(lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>());
    }
    let first: Vec<Value> = records.into_iter().step_by(2).collect();
    assert_eq!(kept, [first.clone(), first]);

    // Records without an id have the number of the record in their keys, and messages name this number.
    fs::write(&input, "[{\"text\": \"a b c d e f\"},\n {\"text\": 1}, {\"text\": \"a b c d e f\"}]").unwrap();
    let error = dedup(&input, &out, 0).unwrap_err();
    assert!(error.contains("in.json, record 2: "), "{error}");
    dedup(&input, &out, 1).unwrap();
    let clusters = fs::read_to_string(out.join("clusters.tsv")).unwrap();
    assert!(clusters.contains("in.json:1\t") && clusters.contains("in.json:3\t"), "{clusters}");

    fs::write(&input, "[\"a text\"]").unwrap();
    let error = dedup(&input, &folder.path().join("strings"), 0).unwrap_err();
    assert!(
        error.contains("record 1: a string, where an object is expected: write each record as {"),
        "{error}"
    );
    // In a file of JSON lines, an array is a bad record.
    let lines = folder.path().join("in.jsonl");
    fs::write(&lines, "[{\"text\": \"a b c d e f\"}]\n").unwrap();
    assert!(dedup(&lines, &folder.path().join("lines"), 0).is_err());
}

#[test]
fn million_records_on_one_line_are_read_in_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("in.json");
    let records: Vec<String> =
        (0..1_000_000).map(|number| format!("{{\"id\":{number},\"text\":\"\"}}")).collect();
    fs::write(&input, format!("[{}]", records.join(","))).unwrap();
    let options = InputOptions { record_bytes_max: 100, ..InputOptions::default() };
    let mut documents = Documents::open(&[input], &options).unwrap();
    let (mut batch, mut buffers, mut keys) = (Batch::default(), Buffers::default(), 0_u64);
    loop {
        documents.next_batch(&mut batch, 1 << 20);
        if batch.is_over() {
            break;
        }
        assert!(batch.bytes() < 2 << 20, "{}", batch.bytes());
        let seen = batch.whole().read(documents.parser(), &mut buffers, |record| {
            assert_eq!(record.key, keys.to_string().as_bytes());
            keys += 1;
            Ok(())
        });
        documents.account(seen.unwrap()).unwrap();
        assert!(batch.take_failure().is_none());
    }
    assert_eq!((keys, documents.counts().documents), (1_000_000, 1_000_000));
}

#[test]
fn objects_of_several_lines_are_documents_and_are_kept_as_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in.json"), folder.path().join("out"));
    let records: Vec<Value> = (0..40)
        .map(|number| serde_json::json!({"id": number, "text": format!("one {} {{two}} \"three\" four five six\n", number / 2), "more": [{"a": {}}]}))
        .collect();
    let printed: Vec<String> =
        records.iter().map(|record| serde_json::to_string_pretty(record).unwrap()).collect();
    let kept: Vec<Value> = records.iter().step_by(2).cloned().collect();
    for (count, content) in [
        (1, printed[0].clone()),
        (40, format!("\u{feff}{}\n", printed.join("\n"))),
        (40, printed.concat()),
        (40, printed.join("\r\n\r\n").replace('\n', "\r\n")),
        (
            40,
            format!(
                "{}\n{}",
                printed[0],
                records[1..].iter().map(Value::to_string).collect::<Vec<_>>().join("\n")
            ),
        ),
    ] {
        fs::write(&input, content).unwrap();
        let mut job = Dedup::new([&input], &out);
        job.results.force = true;
        let report = job.run().unwrap();
        assert_eq!(report.input.documents, count);
        let lines = fs::read_to_string(out.join("kept.jsonl")).unwrap();
        let found: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(found, kept[..found.len()]);
        assert_eq!(found.len() as u64, count.div_ceil(2));
    }

    // Messages name the number of the object. A line that breaks off before the next one is damaged.
    for (content, skip_bad, said) in [
        (
            "{\n\"text\": 1}\n{\n\"text\": \"a b c d e f\"}",
            0,
            "in.json, record 1: field \"text\" is a number",
        ),
        (
            "{\n\"text\": \"a\"},\n{\n\"text\": \"a b c d e f\"}",
            0,
            "in.json, record 2: nothing, where an object is expected",
        ),
        (
            "{\n\"text\": \"a\"}\n{\n\"text\": \"a b c",
            1,
            "in.json: truncated: its object 2 does not end; copy the file again",
        ),
        ("{\"id\": 1,\n{\"id\": 2, \"text\": \"a\"}\n", 0, "in.json:1: invalid JSON"),
        ("{\"id\": 1, \"text\": \"a\nb\"}\n", 0, "in.json:1: invalid JSON"),
    ] {
        fs::write(&input, content).unwrap();
        let error = dedup(&input, &folder.path().join("bad"), skip_bad).unwrap_err();
        assert!(error.contains(said), "{error}");
    }
}
