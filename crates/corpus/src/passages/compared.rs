//! Writes an HTML page with answers of queries: each text next to a stored document with which it shares passages.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::input::batch::Record;
use crate::input::content::Content;
use crate::input::documents::Documents;
use crate::input::options::InputOptions;
use crate::input::parser::Parser;
use crate::passages::index::find::Match;
use crate::passages::query::PassageAnswer;
use crate::results::page::compared::{ComparedPair, Excerpt, PassagePage, TextSide};
use crate::results::page::report::check;
use crate::sketching::chunks::{Job, for_each_chunk};
use crate::work::numbers::count;
use crate::work::observer::Observer;

/// Maximum number of pairs of a text and a document on the page.
const SHOWN: usize = 50;
/// Maximum number of passages shown for a pair.
const PASSAGES: usize = 1_000;

/// An HTML page of the text–document pairs that share the most words in the answers of a
/// [`PassageQuery`](crate::passages::query::PassageQuery). It shows each text next to the document. At most 50 pairs
/// are held in memory, whatever the number of answers.
///
/// ```
/// # fn main() -> twindex_corpus::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let path = |name: &str| dir.path().join(name);
/// # let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
/// # std::fs::write(path("pages.jsonl"), line("a", "x all rights are reserved y"))?;
/// # std::fs::write(path("asked.jsonl"), line("q", "are All Rights Are Reserved?"))?;
/// # let mut passages = twindex_corpus::Passages::new([path("pages.jsonl")], path("out"));
/// # (passages.min_words, passages.index) = (Some(4), Some(path("pages.psg")));
/// # passages.run()?;
/// use twindex_corpus::{PassageQuery, SharedPage};
///
/// let mut page = SharedPage::default();
/// let query = PassageQuery::new(path("pages.psg"), [path("asked.jsonl")]);
/// query.run(&(), |answer| Ok(page.add(&answer)))?;
/// assert_eq!(page.read_documents(&[path("pages.jsonl")], &Default::default(), &())?, 1); // their texts
/// page.write(&path("page.html"))?;
/// let html = std::fs::read_to_string(path("page.html"))?;
/// assert!(html.contains("are <mark><sup>1</sup>All Rights Are Reserved</mark>?"));
/// assert!(html.contains("x <mark><sup>1</sup>all rights are reserved</mark> y"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Default)]
pub struct SharedPage {
    pairs: BTreeMap<ExampleRank, SharedPassage>,
    texts: u64,
    found: u64,
    documents: u64,
}

/// The rank of a pair: most words first, then in the order of answers.
type ExampleRank = (Reverse<u32>, u64, usize);

#[derive(Debug)]
struct SharedPassage {
    text: String,
    document: Vec<u8>,
    matches: Vec<Match>,
    left: Excerpt,
    right: Excerpt,
    has_text: bool,
}

fn range(start: u32, end: u32) -> Range<usize> {
    start as usize..end as usize
}

impl SharedPage {
    /// Checks that a page can be written to `path` before any work is done. `reads` are all files and folders that the
    /// run reads; the page may not replace one of them. It may replace only a page that this program wrote.
    ///
    /// # Errors
    ///
    /// `path` cannot be used; the message says why.
    pub fn check(path: &Path, reads: &[PathBuf]) -> anyhow::Result<()> {
        check(path, reads)
    }

    /// Adds the pairs of an answer's text and its documents to the page. The page keeps the 50 pairs that share the
    /// most words.
    pub fn add(&mut self, answer: &PassageAnswer) {
        self.texts += 1;
        self.found += u64::from(!answer.documents.is_empty());
        self.documents += answer.documents_found;
        for (place, document) in answer.documents.iter().enumerate() {
            let rank = (Reverse(document.words), self.texts, place);
            if self.pairs.len() == SHOWN {
                if self.pairs.last_key_value().is_some_and(|(last, _)| *last < rank) {
                    break; // the following pairs share no more words
                }
                self.pairs.pop_last();
            }
            let matches = document.matches[..document.matches.len().min(PASSAGES)].to_vec();
            let left: Vec<Range<usize>> = matches.iter().map(|one| range(one.start, one.end)).collect();
            let both: Vec<_> = matches
                .iter()
                .map(|one| (range(one.start, one.end), range(one.document_start, one.document_end)))
                .collect();
            let shown = SharedPassage {
                text: String::from_utf8_lossy(&answer.key).into_owned(),
                document: document.key.clone(),
                left: Excerpt::of(&answer.text, &left).unwrap_or_default(),
                right: Excerpt::of_other(&answer.text, &both),
                matches,
                has_text: false,
            };
            self.pairs.insert(rank, shown);
        }
    }

    /// Reads the texts of the stored documents from `inputs`, since the index does not contain them. Returns the number
    /// of pairs whose document now has a text. If several documents have the same key, the first is used. A document is
    /// skipped if its text does not have the passages at their positions.
    ///
    /// # Errors
    ///
    /// Inputs cannot be read.
    pub fn read_documents(
        &mut self,
        inputs: &[PathBuf],
        input: &InputOptions,
        observer: &dyn Observer,
    ) -> anyhow::Result<usize> {
        let mut wanted: HashMap<Vec<u8>, Vec<ExampleRank>> = HashMap::new();
        for (rank, shown) in &self.pairs {
            wanted.entry(shown.document.clone()).or_default().push(*rank);
        }
        let mut documents = Documents::open_part(inputs, input)?;
        let progress = observer.begin("documents", documents.total_bytes());
        let job = Job {
            state: || (),
            begin: Vec::new,
            work: |(): &mut (), made: &mut Vec<(Vec<u8>, String)>, _: &Parser, record: Record<'_>| {
                if let (Content::Text(text), true) = (&record.content, wanted.contains_key(record.key)) {
                    made.push((record.key.to_vec(), (*text).to_owned()));
                }
                Ok(())
            },
        };
        let pairs = &mut self.pairs;
        for_each_chunk(&mut documents, &*progress, &job, |made| {
            for (key, text) in made {
                for rank in wanted.get(&key).into_iter().flatten() {
                    let Some(shown) = pairs.get_mut(rank).filter(|shown| !shown.has_text) else { continue };
                    let there = shown.matches.iter();
                    let there: Vec<_> =
                        there.map(|one| range(one.document_start, one.document_end)).collect();
                    if let Some(excerpt) = Excerpt::of(&text, &there) {
                        (shown.right, shown.has_text) = (excerpt, true);
                    }
                }
            }
            Ok(())
        })?;
        Ok(self.pairs.values().filter(|shown| shown.has_text).count())
    }

    /// Writes the page to a temporary file, and then renames it to `path`.
    ///
    /// # Errors
    ///
    /// The page cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let pairs = self.pairs.values().map(|shown| ComparedPair {
            left: TextSide { name: "Text", key: shown.text.clone(), excerpt: shown.left.clone() },
            right: TextSide {
                name: if shown.has_text { "Document" } else { "Document, its passages alone" },
                key: String::from_utf8_lossy(&shown.document).into_owned(),
                excerpt: shown.right.clone(),
            },
            passages: shown
                .matches
                .iter()
                .map(|one| [one.start, one.end, one.document_start, one.document_end, one.words])
                .collect(),
        });
        let page = PassagePage {
            title: "Shared passages".to_owned(),
            figures: vec![
                ("Texts", count(self.texts)),
                ("Texts with passages", count(self.found)),
                ("Pairs of text and document", count(self.documents)),
                ("Pairs shown", count(self.pairs.len() as u64)),
            ],
            note: "The pairs with the most shared words. An index has no texts: of a document whose text was not given the \
                   words of its passages are shown, as the text on the left has them."
                .to_owned(),
            pairs: pairs.collect(),
        };
        page.write(path)
    }
}
