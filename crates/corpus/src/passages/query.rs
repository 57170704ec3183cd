//! Finds the documents of a passage index that share passages with texts.

use std::path::PathBuf;

use serde::Serialize;

use crate::input::batch::Record;
use crate::input::content::Content;
use crate::input::counts::Counts;
use crate::input::documents::Documents;
use crate::input::options::InputOptions;
use crate::input::parser::Parser;
use crate::passages::find::finder::FinderScratch;
use crate::passages::find::hashed::Hashed;
use crate::passages::index::find::{Limits, Match};
use crate::passages::index::folder::PassageIndex;
use crate::passages::options::CutSettings;
use crate::passages::texts::Hashing;
use crate::sketching::chunks::{Job, for_each_chunk};
use crate::work::observer::Observer;

/// A query of a passage index.
#[derive(Clone, Debug)]
pub struct PassageQuery {
    /// The path of the index.
    pub index: PathBuf,
    /// The texts to look up: files and folders of documents, or `-` for standard input.
    pub inputs: Vec<PathBuf>,
    /// Options for reading the inputs.
    pub input: InputOptions,
    /// Maximum number of documents in an answer. Documents that share the most words come first.
    pub limit: usize,
    /// Maximum number of positions that are looked up for a fingerprint, to bound the time of a query. Default:
    /// unlimited. With a limit, answers may lack documents; they report the number of [capped](PassageAnswer::capped)
    /// fingerprints.
    pub max_places: Option<usize>,
}

/// The passages that a text shares with the documents of an index.
#[derive(Clone, Debug, Serialize)]
pub struct PassageAnswer {
    /// The key of the text.
    #[serde(skip)]
    pub key: Vec<u8>,
    /// The text.
    #[serde(skip)]
    pub text: String,
    /// Number of words in the text.
    pub words: u32,
    /// Number of words in the text that are inside a shared passage.
    pub words_found: u32,
    /// The documents that share a passage, up to the limit of the query.
    pub documents: Vec<SharedDocument>,
    /// Number of documents that share a passage, including those above the limit of the query.
    pub documents_found: u64,
    /// Number of fingerprints whose positions were not all looked up.
    pub capped: u32,
}

/// The passages that a text shares with a document.
#[derive(Clone, Debug, Serialize)]
pub struct SharedDocument {
    /// The key of the document.
    #[serde(skip)]
    pub key: Vec<u8>,
    /// Number of words in the text that are inside a passage that the document shares.
    pub words: u32,
    /// The shared passages, as byte ranges in both texts.
    #[serde(skip)]
    pub matches: Vec<Match>,
}

impl PassageQuery {
    /// Creates a query with the default limit of 100 documents per answer.
    pub fn new<P: Into<PathBuf>>(index: impl Into<PathBuf>, inputs: impl IntoIterator<Item = P>) -> Self {
        let (index, inputs) = (index.into(), inputs.into_iter().map(Into::into).collect());
        Self { index, inputs, input: InputOptions::default(), limit: 100, max_places: None }
    }

    /// Passes the answer for each text to `each`, in input order. Returns the counts of the input.
    ///
    /// # Errors
    ///
    /// Fails if the index does not exist or is damaged, if inputs cannot be read, or if `each` fails.
    pub fn run(
        &self,
        observer: &dyn Observer,
        each: impl FnMut(PassageAnswer) -> anyhow::Result<()>,
    ) -> anyhow::Result<Counts> {
        let index = PassageIndex::open(&self.index)?;
        let how = CutSettings::of_index(&index)?;
        let mut documents = Documents::open_part(&self.inputs, &self.input)?;
        let progress = observer.begin("asking", documents.total_bytes());
        let mut each = each;
        let job = Job {
            state: || (Hashing::new(&how), Hashed::default(), FinderScratch::new(how.shape, how.hasher)),
            begin: Vec::new,
            work: |state: &mut (Hashing<'_>, Hashed, FinderScratch),
                   made: &mut Vec<PassageAnswer>,
                   _: &Parser,
                   record: Record<'_>| {
                let (hashing, hashed, work) = state;
                let text = match record.content {
                    Content::Text(text) | Content::Opaque { text, .. } => text,
                    Content::Features(_) | Content::Fingerprint(_) => "",
                };
                if u32::try_from(text.len()).is_err() {
                    return Err(record.bad(&"a text of 4 GiB or more"));
                }
                hashing.hash(text, hashed);
                made.push(self.answer(&index, (record.key, text), hashed, work)?);
                Ok(())
            },
        };
        for_each_chunk(&mut documents, &*progress, &job, |made| made.into_iter().try_for_each(&mut each))?;
        Ok(documents.counts().clone())
    }

    fn answer(
        &self,
        index: &PassageIndex,
        (key, text): (&[u8], &str),
        hashed: &Hashed,
        work: &mut FinderScratch,
    ) -> anyhow::Result<PassageAnswer> {
        let places = self.max_places.unwrap_or(usize::MAX);
        let answer = index.find(hashed, work, Limits { documents: self.limit, places })?;
        let shared = answer.documents.into_iter().map(|one| {
            let key = index.key(one.document)?.to_vec();
            Ok(SharedDocument { key, words: one.words, matches: one.runs })
        });
        Ok(PassageAnswer {
            key: key.to_vec(),
            text: text.to_owned(),
            words: answer.words,
            words_found: answer.words_found,
            documents: shared.collect::<twindex::Result<_>>()?,
            documents_found: answer.documents_found,
            capped: answer.capped,
        })
    }
}
