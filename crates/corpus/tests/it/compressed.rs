//! Tests the compression of written documents: the files `kept` and `annotated` of `dedup`, and `kept` and `marked` of
//! `passages`.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use twindex_corpus::{Also, Compression, Dedup, Passages};

/// Writes four inputs that alternate between two formats, so that each output file is opened twice. Documents have no keys,
/// so files of keys are written beside the documents.
fn inputs(folder: &Path) -> Vec<PathBuf> {
    let text = |number: u64| {
        let word = |at: u64| format!("word{}", (number * 7919 + at * at) % 5_003);
        (0..60).map(word).collect::<Vec<_>>().join(" ")
    };
    let mut paths = Vec::new();
    for (part, name) in (0_u64..).zip(["a.jsonl", "b.csv", "c.jsonl", "d.csv"]) {
        // The last document of each file is a copy of the very first document.
        let numbers = (100 * part..100 * part + 50).chain([0]);
        let lines: Vec<String> = if name == "a.jsonl" || name == "c.jsonl" {
            numbers.map(|number| format!("{{\"text\":\"{}\"}}\n", text(number))).collect()
        } else {
            ["text\n".to_owned()].into_iter().chain(numbers.map(|number| text(number) + "\n")).collect()
        };
        paths.push(folder.join(name));
        fs::write(folder.join(name), lines.concat()).unwrap();
    }
    paths
}

/// Returns the content of a file, decompressed if necessary.
fn content(path: &Path) -> Vec<u8> {
    let bytes = fs::read(path).unwrap();
    let mut plain = Vec::new();
    match path.extension().unwrap().to_str().unwrap() {
        "gz" => _ = flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut plain).unwrap(),
        "zst" => plain = zstd::decode_all(&bytes[..]).unwrap(),
        _ => plain = bytes,
    }
    plain
}

#[test]
fn compressed_results_have_the_same_content_and_are_read_by_against() {
    let folder = tempfile::tempdir().unwrap();
    let paths = inputs(folder.path());
    let run = |name: &str, compression| {
        let mut dedup = Dedup::new(&paths, folder.path().join(name));
        (dedup.results.also, dedup.results.compress) = (vec![Also::Annotated], compression);
        let report = dedup.run().unwrap();
        [report.kept_files, report.annotated_files].concat()
    };
    let plain = run("plain", None);
    assert_eq!(plain, ["kept.jsonl", "kept.csv", "annotated.jsonl", "annotated.csv"]);
    for (name, compression, suffix) in
        [("gzip", Compression::Gzip, ".gz"), ("zstd", Compression::Zstd, ".zst")]
    {
        let packed = run(name, Some(compression));
        for (plain, packed) in plain.iter().zip(&packed) {
            assert_eq!(*packed, format!("{plain}{suffix}"));
            let (plain, packed) =
                (folder.path().join("plain").join(plain), folder.path().join(name).join(packed));
            assert!(content(&packed) == content(&plain), "{}", packed.display());
            assert!(fs::metadata(&packed).unwrap().len() < fs::metadata(&plain).unwrap().len());
            let keys = |path: &Path| fs::read(format!("{}.keys", path.display())).ok();
            assert_eq!(keys(&packed), keys(&plain));
        }
        // All documents are near documents of the earlier run, whose texts are read from its compressed files.
        let mut next = Dedup::new(&paths, folder.path().join(format!("{name}-next")));
        next.scope.against = vec![folder.path().join(name)];
        next.rule.max_work = Some(1 << 40);
        let report = next.run().unwrap();
        assert_eq!((report.kept, report.input.documents), (0, 204));
        // The next run recognises the compressed files as results of `dedup`, and replaces them.
        let mut again = Dedup::new(&paths, folder.path().join(name));
        (again.results.force, again.results.compress) = (true, Some(compression));
        again.run().unwrap();
    }
}

#[test]
fn compression_does_not_change_the_documents_that_passages_writes() {
    let folder = tempfile::tempdir().unwrap();
    let paths = inputs(folder.path());
    let run = |name: &str, compression| {
        let mut passages = Passages::new(&paths, folder.path().join(name));
        (passages.cut, passages.mark, passages.compression) = (true, true, compression);
        let report = passages.run().unwrap();
        [report.kept_files, report.marked_files].concat()
    };
    let (plain, packed) = (run("plain", None), run("packed", Some(Compression::Zstd)));
    assert_eq!(plain.len(), 4);
    for (plain, packed) in plain.iter().zip(&packed) {
        assert_eq!(*packed, format!("{plain}.zst"));
        let (plain, packed) =
            (folder.path().join("plain").join(plain), folder.path().join("packed").join(packed));
        assert!(content(&packed) == content(&plain), "{}", packed.display());
    }
    let mut passages = Passages::new(&paths, folder.path().join("refused"));
    passages.compression = Some(Compression::Gzip);
    let message = passages.run().unwrap_err().to_string();
    assert!(message.contains("--compress goes with --cut or --mark"), "{message}");
}
