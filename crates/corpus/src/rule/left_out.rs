//! Opens or builds the list of boilerplate spans that comparisons ignore, and counts the ignored words.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use serde::Serialize;
use twindex::Params;
use twindex::sketch::{IdfTable, LeftOut, Sketcher};

use crate::error::InvalidOptions;
use crate::input::documents::Documents;
use crate::passages::boilerplate::count::{self, BOILERPLATE, SpanCriteria, digest};
use crate::passages::boilerplate::list::Boilerplate;
use crate::results::folder::{MadeFolders, OutputFolder};
use crate::rule::against::results_of;
use crate::settings::job::Dedup;
use crate::settings::near::Near;
use crate::settings::rule::BoilerplateSpans;
use crate::sketching::documents::Sketched;
use crate::work::numbers::count;
use crate::work::observer::Observer;
use crate::work::own_folder::OwnFolder;
use crate::work::watch::{Stages, Stopwatch};

/// Statistics of the spans that comparisons ignored as boilerplate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LeftOutReport {
    /// A span is ignored if it occurs in more than this number of documents.
    pub more_than: u32,
    /// Length of a span in words.
    pub words: u32,
    /// Number of spans in the list. A longer shared text is listed as several overlapping spans.
    pub spans: u64,
    /// Number of words inside ignored spans, in the documents read.
    pub words_left_out: u64,
    /// Number of documents with ignored words.
    pub documents: u64,
    /// Number of documents whose words are all ignored.
    pub documents_without_words: u64,
}

impl LeftOutReport {
    /// Adds the counts of a document.
    pub(crate) fn add(&mut self, one: &Sketched) {
        let LeftOut { words, is_all } = one.left_out;
        self.words_left_out += words;
        self.documents += u64::from(words > 0);
        self.documents_without_words += u64::from(is_all);
    }
}

/// The boilerplate list of a run.
pub(crate) struct Spans {
    pub(crate) list: Arc<Boilerplate>,
    /// The time spent on building the list; `None` once it was recorded.
    watch: Option<Stopwatch>,
    /// The scratch folder of the list, and the guards that remove it. Fields of a tuple drop in order, so the folder is
    /// removed before the parent folders that this run created.
    _scratch: Option<(Box<dyn Any>, OwnFolder, MadeFolders)>,
}

impl Spans {
    /// Returns the list of ignored spans: the given list, the list of the history, or a new one built from the input
    /// documents.
    pub(crate) fn open(
        job: &Dedup,
        documents: &Documents,
        params: &Params,
        out: &OutputFolder<'_>,
        observer: &dyn Observer,
    ) -> anyhow::Result<Option<Self>> {
        let asked = job.rule.without_boilerplate.as_ref();
        let known = match asked {
            Some(BoilerplateSpans::List(path)) => Some(count::open(path)?),
            _ => spans_of_history(job)?,
        };
        if let Some(list) = known {
            let (more_than, words) = match asked {
                Some(BoilerplateSpans::SharedBy { more_than, words }) => (Some(*more_than), *words),
                _ => (None, None),
            };
            count::check(&list, words, more_than)?;
            if more_than.is_none() {
                observer.note(&format!(
                    "{} spans that more than {} documents share do not count, by the list {}",
                    count(list.len() as u64),
                    count(list.counted().more_than.into()),
                    list.path().display()
                ));
            }
            return Ok(Some(Self::of(list)));
        }
        let Some((more_than, words)) = asked.and_then(BoilerplateSpans::shared) else { return Ok(None) };
        let watch = Stopwatch::start();
        let made = out.make_parents()?;
        made.sync()?;
        let folder = OwnFolder::make(out.parent())?;
        let half_done = observer.half_done(folder.path());
        let asked = SpanCriteria {
            words,
            more_than,
            repeated_keys: job.scope.repeated_keys,
            memory: job.resources.memory,
        };
        let list = count::count(documents, &params.shingling, asked, folder.path(), observer);
        let list = list.map_err(|error| job.with_memory_advice(error))?;
        Ok(Some(Self { list, watch: Some(watch), _scratch: Some((half_done, folder, made)) }))
    }

    fn of(list: Arc<Boilerplate>) -> Self {
        Self { list, watch: None, _scratch: None }
    }

    pub(crate) fn sketcher(
        &self,
        params: &Params,
        table: Option<&Arc<IdfTable>>,
    ) -> twindex::Result<Sketcher> {
        count::sketcher_with(params, table.cloned(), Arc::clone(&self.list))
    }

    /// Returns the statistics before the first document: all counts of words and documents are 0.
    pub(crate) fn report(&self) -> LeftOutReport {
        let made = self.list.counted();
        LeftOutReport {
            more_than: made.more_than,
            words: made.words,
            spans: self.list.len() as u64,
            words_left_out: 0,
            documents: 0,
            documents_without_words: 0,
        }
    }

    /// Returns the stopwatch that measures the building of the list, if this run built the list.
    pub(crate) fn started(&self) -> Option<Stopwatch> {
        self.watch
    }

    /// Adds the time spent on building the list to `stages`; does nothing when called again.
    pub(crate) fn note(&mut self, stages: &mut Stages) {
        if let Some(watch) = self.watch.take() {
            stages.add("boilerplate", watch);
        }
    }

    /// Copies the list to the results folder. Replaces a copy that an earlier, stopped run left.
    pub(crate) fn put(&self, folder: &Path) -> anyhow::Result<()> {
        match std::fs::remove_file(folder.join(BOILERPLATE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        count::copy(&self.list, folder)
    }
}

/// Returns the boilerplate list of the history; `None` if its runs ignored no boilerplate.
fn spans_of_history(job: &Dedup) -> anyhow::Result<Option<Arc<Boilerplate>>> {
    if job.near() == Near::Equal {
        return Ok(None);
    }
    let mut found: Option<Arc<Boilerplate>> = None;
    for (number, path) in job.scope.against.iter().enumerate() {
        let is_index = path.join("CURRENT").is_file();
        let of_this = match results_of(path) {
            Some(results) if !is_index => count::of_results(&results),
            _ => made_without(path),
        };
        let list = of_this.as_deref().map(count::open).transpose()?;
        if number > 0 && found.as_deref().map(digest) != list.as_deref().map(digest) {
            return Err(InvalidOptions::new(format!(
                "--against {}: its list of spans that do not count is not that of {}; they cannot be counted together",
                path.display(),
                job.scope.against[0].display()
            ))
            .into());
        }
        found = list;
    }
    if found.is_none()
        && let (Some(spans), Some(path)) = (&job.rule.without_boilerplate, job.scope.against.first())
    {
        path.metadata().with_context(|| format!("--against {}: cannot be opened", path.display()))?;
        return Err(InvalidOptions::new(format!(
            "--without-boilerplate {spans}: {} has no list of spans, so that all of its words count; leave it out, \
             or name the list with which it was made: --without-boilerplate @FILE",
            path.display()
        ))
        .into());
    }
    Ok(found)
}

/// Returns the path of the boilerplate list of an index; `None` if the index was built without a list.
fn made_without(index: &Path) -> Option<std::path::PathBuf> {
    let params = twindex::Index::open(index).ok()?.params();
    params.shingling.boilerplate.and_then(|_| count::of_index(index))
}

/// Creates the sketcher with which the results in `out` were computed. `params` are their parameters, `table` the IDF
/// table, if any. Reads the boilerplate list from `out`.
pub(crate) fn sketcher_of_results(
    out: &Path,
    params: &Params,
    table: Option<Arc<IdfTable>>,
) -> anyhow::Result<Sketcher> {
    let Some(path) = count::of_results(out) else {
        anyhow::bail!(
            "{}: has no file {BOILERPLATE}, the list of spans that did not count; nothing can be counted again",
            out.display()
        );
    };
    Ok(count::sketcher_with(params, table, count::open(&path)?)?)
}
