//! Runs a `passages` job: its passes over the inputs, and the update of the index.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::error::InvalidOptions;
use crate::input::documents::Documents;
use crate::passages::classes::Classes;
use crate::passages::examples::Examples;
use crate::passages::find::filter::Recurring;
use crate::passages::index::build::{Builder, BuiltPart};
use crate::passages::index::folder::PassageIndex;
use crate::passages::options::{self, Passages};
use crate::passages::out::{self, PassageOutput, PassageReport};
use crate::passages::read::PassageCorpus;
use crate::passages::spans;
use crate::passages::written::{Files, write_documents};
use crate::results::layout::kept_files;
use crate::results::page::report::check;
use crate::work::observer::Observer;
use crate::work::watch::{self, Stages, Stopwatch};

impl Passages {
    /// Runs the job in the current rayon thread pool and writes the results to `out`. If writing the results fails,
    /// none are left. If writing the HTML page or updating the index fails afterwards, the results remain.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::error::InvalidOptions) and I/O errors. Fails, too, if inputs cannot be read or change
    /// between two passes.
    pub fn run(&self) -> anyhow::Result<PassageReport> {
        self.run_watched(&())
    }

    /// Runs the job as [`run`](Self::run) does, and reports progress and notes to `observer`.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run).
    pub fn run_watched(&self, observer: &dyn Observer) -> anyhow::Result<PassageReport> {
        let place = PassageOutput::resolve(&self.out)?;
        let reads = self.reads();
        place.check(&reads, self.force)?;
        if let Some(html) = &self.html {
            check(html, &reads)?;
        }
        let how = self.how()?;
        let history = self.history(&how)?;
        let documents = self.open()?;
        let folder = place.folder(observer)?;
        let half_done = observer.half_done(folder.path());
        let mut examples = Examples::new(self.html.is_some());
        let (mut report, added) =
            self.work((&how, history.as_ref()), documents, &mut examples, (folder.path(), observer))?;
        drop(half_done);
        crate::work::lost::check()?;
        place.put(folder, self.force)?;
        if let Some(html) = &self.html {
            let done = || format!("the results are in {}, without the page", self.out.display());
            examples.write(html, &report).with_context(done)?;
        }
        // The index is changed last, so that a failed run can be repeated with the same index.
        if let (Some(index), Some(added)) = (&self.index, added) {
            PassageIndex::append(index, added, &how.cutting).with_context(|| {
                format!("the results are in {}, but the index lacks these documents", self.out.display())
            })?;
            self.merge_parts(index, &mut report, observer);
        }
        Ok(report)
    }

    /// Returns the files and folders that the run reads.
    fn reads(&self) -> Vec<PathBuf> {
        let others = self.against.iter().chain(&self.index).cloned().chain(self.text.file());
        self.inputs.iter().cloned().chain(others).collect()
    }

    /// Merges parts of the index to keep their number small. If merging fails, the run still succeeds: the documents
    /// are already in the index, and the next run merges the parts.
    fn merge_parts(&self, index: &Path, report: &mut PassageReport, observer: &dyn Observer) {
        let merged = PassageIndex::merge(index, self.memory / 2);
        let parts = merged.and_then(|merged| Ok((PassageIndex::open(index)?.parts(), merged)));
        match parts {
            Ok((parts, merged)) => {
                report.index_parts = Some(parts as u64);
                report.merged_parts = merged.map(|merged| merged.parts as u64);
            }
            Err(error) => observer.missing(&format!(
                "{}: has these documents, but its parts could not be merged: {error}; `twindex passages compact` merges \
                 them",
                index.display()
            )),
        }
    }

    /// Opens the index of `--against`. Returns an error if the settings of this index, or of the index of `--index`,
    /// differ from the settings of the job.
    fn history(&self, how: &options::CutSettings) -> anyhow::Result<Option<PassageIndex>> {
        if let Some(path) = &self.index
            && let Some(index) = PassageIndex::open_if_there(path)?
        {
            how.check(&index, path)?;
        }
        let Some(path) = &self.against else { return Ok(None) };
        refuse_results(path)?;
        let index = PassageIndex::open(path)?;
        how.check(&index, path)?;
        Ok(Some(index))
    }

    fn work(
        &self,
        (how, history): (&options::CutSettings, Option<&PassageIndex>),
        mut documents: Documents,
        examples: &mut Examples,
        (folder, observer): (&Path, &dyn Observer),
    ) -> anyhow::Result<(PassageReport, Option<BuiltPart>)> {
        let whole = Stopwatch::start();
        let mut stages = Stages::default();

        let watch = Stopwatch::start();
        let recurring = Recurring::new(self.filter_bytes(documents.total_bytes()))?;
        let mut corpus = PassageCorpus::new(folder, self.memory / 8, &self.keep, history);
        corpus.count(self, how, &mut documents, &recurring, observer)?;
        stages.add("count", watch);

        let watch = Stopwatch::start();
        let order = corpus.order(folder, self.memory / 4)?;
        let passed = (&recurring, order.as_ref());
        let (grams, added) = corpus.collect(self, how, &documents, passed, folder, observer)?;
        drop(recurring);
        let added = added.map(Builder::finish).transpose()?;
        stages.add("collect", watch);

        let watch = Stopwatch::start();
        let before = corpus.before();
        let document = |rank: u32| match (&order, rank.checked_sub(before)) {
            (Some(order), Some(own)) => before + order.document(own),
            _ => rank,
        };
        let repeats = grams.finish_by_rank(self.within, document)?;
        drop(order);
        let mut classes = Classes::new(folder, self.memory / 16, before);
        let spans = spans::write(&repeats, &mut corpus, examples, &mut classes, folder, self.only_against)?;
        drop(repeats);
        let classes = classes.write(&corpus, folder, self.memory / 8)?;
        stages.add("lines", watch);

        let mut files = Files::default();
        if self.cut || self.mark || examples.is_wanted() {
            let watch = Stopwatch::start();
            files = write_documents(&corpus, self, how, &documents, examples, (folder, observer))?;
            stages.add("write", watch);
        }
        let report = PassageReport {
            input: documents.counts().clone(),
            spans: spans.lines,
            spans_of_history: self.against.as_ref().map(|_| spans.of_history),
            spans_left: self.only_against.then_some(spans.others),
            classes: classes.classes,
            duplicated: classes.words,
            units: corpus.units(),
            repeated_documents: spans.documents,
            repeated_bytes: spans.bytes,
            repeated_whole: spans.whole,
            kept_files: files.kept,
            marked_files: files.marked,
            index_parts: None,
            merged_parts: None,
            seconds: whole.seconds(),
            cpu_seconds: whole.cpu_seconds(),
            stages,
            peak_rss_bytes: watch::peak_rss_bytes(),
        };
        how.write_settings(folder).context("passages.json: cannot write")?;
        Ok((report, added))
    }
}

/// Returns an error if `path` is a results folder instead of an index. Neither results of `dedup` nor results of
/// `passages` contain a passage index.
fn refuse_results(path: &Path) -> Result<(), InvalidOptions> {
    let shown = path.display();
    if path.join(out::SETTINGS).is_file() {
        return Err(InvalidOptions::new(format!(
            "--against {shown}: results of `twindex passages`, whose documents may be cut; sources are uncut texts: give \
             --index INDEX in the run that reads these documents, and --against INDEX afterwards"
        )));
    }
    if let Ok(Some(kept)) = kept_files(path) {
        let kept: Vec<String> = kept.iter().map(|kept| kept.display().to_string()).collect();
        return Err(InvalidOptions::new(format!(
            "--against {shown}: results of `twindex dedup`, which have no index of passages; make one of the kept documents \
             with `twindex passages {} -o OUT --index INDEX`, and give --against INDEX",
            kept.join(" ")
        )));
    }
    Ok(())
}
