//! Documents of a file and the same texts in memory: what is near, and what stays, is the same.

use std::collections::HashMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use twindex_corpus::{Dedup, DedupTexts, Keep};

/// Texts of drawn words: copies, near copies and others.
fn texts() -> Vec<String> {
    let mut random = 7_u64;
    let mut draw = move |below: usize| {
        random = random.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (random >> 33) as usize % below
    };
    let mut texts: Vec<String> = vec![String::new(), "...".to_owned()];
    for _ in 0..400 {
        let kind = draw(4);
        if kind < 2 || texts.len() < 10 {
            let words: Vec<String> = (0..40 + draw(60)).map(|_| format!("w{}", draw(3000))).collect();
            texts.push(words.join(" "));
        } else {
            let mut copy = texts[2 + draw(texts.len() - 2)].clone();
            if kind == 3 {
                let _ = write!(copy, " x{} y{}", draw(100), draw(100));
            }
            texts.push(copy);
        }
    }
    texts
}

/// Lines of a table behind its head, cut into columns.
fn rows(path: &Path) -> Vec<Vec<String>> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().skip(1).map(|line| line.split('\t').map(str::to_owned).collect()).collect()
}

#[test]
fn files_and_memory_are_decided_alike() {
    let texts = texts();
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.jsonl");
    let line = |(at, text): (usize, &String)| format!("{{\"id\":\"{at:06}\",\"text\":\"{text}\"}}\n");
    fs::write(&file, texts.iter().enumerate().map(line).collect::<String>()).unwrap();
    for (threshold, keep) in [(0.8, Keep::First), (0.6, Keep::Longest), (1.0, Keep::SmallestKey)] {
        let out = dir.path().join("out");
        let mut dedup = Dedup::new([&file], &out);
        (dedup.threshold, dedup.keep, dedup.force) = (Some(threshold), keep, true);
        let report = dedup.run().unwrap();
        let job = DedupTexts { threshold, keep, ..DedupTexts::default() };
        let bytes: Vec<&[u8]> = texts.iter().map(String::as_bytes).collect();
        let found = job.run(&bytes).unwrap();

        let stays = (0..).zip(&found.kept_of).filter(|&(at, &kept)| at == kept).count();
        assert!(stays < texts.len() && stays > texts.len() / 4, "{stays} of {} stay", texts.len());
        assert_eq!(report.kept, stays as u64);
        let clusters: HashMap<String, (String, String)> = rows(&out.join("clusters.tsv"))
            .into_iter()
            .map(|row| (row[0].clone(), (row[2].clone(), row[3].clone())))
            .collect();
        for (at, (kept, score)) in found.kept_of.iter().zip(&found.scores).enumerate() {
            let of_memory = (format!("{kept:06}"), format!("{score:.6}"));
            assert_eq!(clusters[&format!("{at:06}")], of_memory, "text {at}, threshold {threshold}");
        }
        let pairs: Vec<[String; 3]> = found
            .pairs
            .iter()
            .map(|(a, b, near)| [format!("{a:06}"), format!("{b:06}"), format!("{near:.6}")])
            .collect();
        let of_file: Vec<Vec<String>> = rows(&out.join("pairs.tsv"));
        assert_eq!(of_file.iter().map(|row| &row[..3]).collect::<Vec<_>>(), pairs);
    }
}
