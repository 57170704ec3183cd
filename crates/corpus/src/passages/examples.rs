//! Collects examples of long repeated passages for the HTML page, each with the passage that it repeats.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use crate::passages::find::hashed::Hashed;
use crate::passages::find::lines::Line;
use crate::passages::options::CutSettings;
use crate::passages::out::PassageReport;
use crate::passages::texts::Hashing;
use crate::results::page::compared::{ComparedPair, Excerpt, PassagePage, TextSide};
use crate::work::numbers::{bytes, count};

/// Maximum number of examples on the page.
const SHOWN: usize = 25;

/// The longest repeated passages. Of the repeats of one source passage, only the longest is an example.
#[derive(Default)]
pub(crate) struct Examples {
    /// The examples, the longest first; `None` if no page is requested.
    best: Option<BTreeMap<ExampleRank, Example>>,
    by_source: HashMap<(u32, u32), ExampleRank>,
    /// For each document that an example shows, the ranks of the examples. Filled by `end_offers`.
    wanted: HashMap<u32, Vec<ExampleRank>>,
}

/// The rank of an example: most words first, then in the order of spans.tsv.
type ExampleRank = (Reverse<u32>, u32, u32);

struct Example {
    line: Line,
    key: String,
    first_key: String,
    first_start: u32,
    /// The document that contains the source; `None` for a document of an index, because an index has no texts.
    first: Option<u32>,
    left: Option<Excerpt>,
    /// An excerpt of the source's text, and the end of the passage in that text.
    right: Option<(Excerpt, u32)>,
    /// The text of the repeated passage. The page shows it in place of a source whose text is not available.
    passage: String,
}

impl Examples {
    /// Creates an empty collection. If `is_wanted` is false, it ignores all offers.
    pub(crate) fn new(is_wanted: bool) -> Self {
        Self { best: is_wanted.then(BTreeMap::new), ..Self::default() }
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.best.is_some()
    }

    /// Adds a repeated passage if it is among the longest. `document` is the number of the document that repeats it.
    pub(crate) fn offer(
        &mut self,
        line: &Line,
        document: u32,
        key: &[u8],
        (first, first_key, first_start): (Option<u32>, &[u8], u32),
    ) {
        let Some(best) = &mut self.best else { return };
        let rank = (Reverse(line.words), document, line.start);
        let source = (line.first_document, line.first_position);
        if let Some(known) = self.by_source.get(&source) {
            if *known <= rank {
                return;
            }
            best.remove(known);
        } else if best.len() == SHOWN {
            if best.last_key_value().is_some_and(|(last, _)| *last <= rank) {
                return;
            }
            if let Some((_, last)) = best.pop_last() {
                self.by_source.remove(&(last.line.first_document, last.line.first_position));
            }
        }
        self.by_source.insert(source, rank);
        let shown = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        let (key, first_key) = (shown(key), shown(first_key));
        let example = Example {
            line: *line,
            key,
            first_key,
            first_start,
            first,
            left: None,
            right: None,
            passage: String::new(),
        };
        best.insert(rank, example);
    }

    /// Determines whose texts the examples show. Must be called after the last call of [`offer`](Self::offer).
    pub(crate) fn end_offers(&mut self) {
        for (rank, example) in self.best.iter().flatten() {
            for document in [Some(rank.1), example.first].into_iter().flatten() {
                self.wanted.entry(document).or_default().push(*rank);
            }
        }
    }

    /// Cuts the excerpts for the examples from the text of a document.
    pub(crate) fn see(&mut self, document: u32, text: &str, how: &CutSettings) {
        let (Some(best), Some(ranks)) = (&mut self.best, self.wanted.get(&document)) else { return };
        let mut hashed = None;
        for rank in ranks {
            let Some(example) = best.get_mut(rank) else { continue };
            if rank.1 == document {
                let place = example.line.start as usize..example.line.end as usize;
                text.get(place.clone()).unwrap_or_default().clone_into(&mut example.passage);
                example.left = Excerpt::of(text, std::slice::from_ref(&place));
            }
            if example.first == Some(document) {
                let hashed = hashed.get_or_insert_with(|| {
                    let mut hashed = Hashed::default();
                    Hashing::new(how).hash(text, &mut hashed);
                    hashed
                });
                if let Some(place) = place_of_source(hashed, &example.line) {
                    let range = place.start as usize..place.end as usize;
                    let excerpt = Excerpt::of(text, std::slice::from_ref(&range));
                    example.right = excerpt.map(|excerpt| (excerpt, place.end));
                }
            }
        }
    }

    /// Writes the HTML page to `path`.
    pub(crate) fn write(self, path: &Path, report: &PassageReport) -> anyhow::Result<()> {
        let share = report.repeated_bytes as f64 * 100.0 / report.input.text_bytes.max(1) as f64;
        let mut page = PassagePage {
            title: "Repeated passages".to_owned(),
            figures: vec![
                ("Documents", count(report.input.documents)),
                ("Text", bytes(report.input.text_bytes)),
                ("Spans", count(report.spans)),
                ("Documents with spans", count(report.repeated_documents)),
                ("Repeated", bytes(report.repeated_bytes)),
                ("of all text", format!("{share:.1} %")),
            ],
            note: "The longest spans, one of each source, each beside the passage that it repeats. Documents of an index \
                   have no texts: of these the words of the passage are shown."
                .to_owned(),
            pairs: Vec::new(),
        };
        for example in self.best.into_iter().flatten().map(|(_, example)| example) {
            let Line { start, end, words, .. } = example.line;
            let length = end - start;
            let (right, name, there_end) = if let Some((excerpt, end)) = example.right {
                (excerpt, "First occurrence", end)
            } else {
                let there = example.first_start as usize;
                let places = (0..example.passage.len(), there..there + example.passage.len());
                let excerpt = Excerpt::of_other(&example.passage, std::slice::from_ref(&places));
                (excerpt, "First occurrence, in an index", example.first_start.saturating_add(length))
            };
            page.pairs.push(ComparedPair {
                left: TextSide {
                    name: "Document",
                    key: example.key,
                    excerpt: example.left.unwrap_or_default(),
                },
                right: TextSide { name, key: example.first_key, excerpt: right },
                passages: vec![[start, end, example.first_start, there_end, words]],
            });
        }
        page.write(path)
    }
}

/// Returns the byte range of the source passage of `line`. `hashed` has the units of the text that contains the source.
fn place_of_source(hashed: &Hashed, line: &Line) -> Option<Range<u32>> {
    let first = line.first_position as usize;
    let mut words = 0_u32;
    for unit in first..hashed.len() {
        words = words.saturating_add(hashed.words(unit, 1));
        if words >= line.words {
            return Some(hashed.place(first, unit + 1 - first));
        }
    }
    None
}
