//! Tests that the lines equal those computed with the suffix array of an established library, for more text than the slow
//! reference can handle. `scripts/experiment passages_check` does the same with the command-line tool and 100 MB.

use std::collections::HashMap;

use twindex_corpus::passages::{Exact, Shape};
use twindex_sketch::cut::PlacedUnits;

use super::definition::{Case, found, plain};
use super::suffixes::{Run, Texts};

/// A random number generator: splitmix64.
struct Random(u64);

impl Random {
    fn below(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % below as u64) as usize
    }
}

/// Returns documents that are combined from pieces of earlier documents, pieces of the same document, and new words.
fn documents(count: usize) -> Vec<String> {
    let mut random = Random(5);
    let mut documents: Vec<Vec<String>> = Vec::new();
    for _ in 0..count {
        let mut words: Vec<String> = Vec::new();
        for _ in 0..=random.below(4) {
            let length = 1 + random.below(60);
            let piece: Vec<String> = match documents.get(random.below(documents.len() + 1)) {
                Some(other) if !other.is_empty() && random.below(3) > 0 => {
                    let start = random.below(other.len());
                    other[start..other.len().min(start + length)].to_vec()
                }
                _ if random.below(4) == 0 => words[random.below(words.len() + 1)..].to_vec(),
                _ => (0..length).map(|_| format!("w{}", random.below(400))).collect(),
            };
            words.extend(piece);
        }
        documents.push(words);
    }
    documents.into_iter().map(|words| words.join(" ")).collect()
}

#[test]
fn lines_of_many_texts_equal_lines_of_a_suffix_array_library() {
    let texts = documents(2_000);
    let (cutter, mut numbers) = (plain(), HashMap::<Vec<u8>, u32>::new());
    let (mut suffixes, mut places) = (Texts::default(), Vec::new());
    for text in &texts {
        let mut own = Vec::new();
        cutter.for_each_placed(text, &mut PlacedUnits::default(), |place, word| {
            let new = numbers.len() as u32 + 1;
            suffixes.push(*numbers.entry(word.to_vec()).or_insert(new));
            own.push(place.start as u32);
        });
        suffixes.end();
        places.push(own);
    }
    for (t, within) in [(3, false), (12, true), (40, false)] {
        let case = Case { shape: Shape::words(t), exact: Exact::Tokens, within, memory: 1 << 16 };
        let lines = found(&cutter, &texts, &case);
        assert!(lines.len() > 200, "{t}: {}", lines.len());
        let of_line = |line: &twindex_corpus::passages::Line| -> Run {
            let position = places[line.document as usize].binary_search(&line.start).unwrap() as u32;
            let count = line.words + 1 - t as u32;
            (line.document, position, line.first_document, line.first_position, count)
        };
        let runs: Vec<Run> = lines.iter().map(of_line).collect();
        assert_eq!(runs, suffixes.runs(t, within), "{t}");
    }
}
