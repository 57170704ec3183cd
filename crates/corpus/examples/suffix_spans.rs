//! Computes the same spans as `twindex passages` with a suffix array, for comparison. Reads JSON lines with `id` and
//! `text`, and prints a table in the format of `spans.tsv`.
//!
//! ```sh
//! cargo run --release -p twindex-corpus --example suffix_spans -- documents.jsonl 50 > spans.tsv
//! ```
//!
//! Holds all words in memory, about 40 bytes each.

#[path = "../tests/it/passages/suffixes.rs"]
mod suffixes;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use suffixes::Texts;
use twindex_sketch::Cutter;
use twindex_sketch::cut::PlacedUnits;
use twindex_sketch::params::Shingling;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, t] = arguments.as_slice() else { return Err("expected DOCUMENTS.jsonl MIN_WORDS".into()) };
    let t: usize = t.parse()?;
    let cutter = Cutter::new(&Shingling::words(5, 0))?;
    let (mut placed, mut numbers) = (PlacedUnits::default(), HashMap::<Vec<u8>, u32>::new());
    let (mut texts, mut keys, mut places) = (Texts::default(), Vec::new(), Vec::new());
    let mut starts = Vec::new();
    for line in BufReader::new(File::open(path)?).lines() {
        let document: serde_json::Value = serde_json::from_str(&line?)?;
        let text = document["text"].as_str().ok_or("a document without a text")?;
        keys.push(document["id"].as_str().ok_or("a document without an id")?.to_owned());
        starts.push(places.len());
        cutter.for_each_placed(text, &mut placed, |place, word| {
            let new = numbers.len() as u32 + 1;
            let number = match numbers.get(word) {
                Some(&number) => number,
                None => *numbers.entry(word.to_vec()).or_insert(new),
            };
            texts.push(number);
            places.push((place.start as u32, place.end as u32));
        });
        texts.end();
    }
    let mut out = BufWriter::new(io::stdout().lock());
    writeln!(out, "key\tstart\tend\tfirst_key\tfirst_start\twords")?;
    for (document, position, first, first_position, count) in texts.runs(t, false) {
        let at = starts[document as usize] + position as usize;
        let words = count as usize + t - 1;
        let (start, end) = (places[at].0, places[at + words - 1].1);
        let (first_start, _) = places[starts[first as usize] + first_position as usize];
        let (key, first_key) = (&keys[document as usize], &keys[first as usize]);
        writeln!(out, "{key}\t{start}\t{end}\t{first_key}\t{first_start}\t{words}")?;
    }
    Ok(out.flush()?)
}
