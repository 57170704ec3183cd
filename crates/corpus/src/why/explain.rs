//! Explains why a document was kept or removed: finds its table line, reads the texts again, and recomputes the score.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use twindex::sketch::{IdfTable, jaccard};
use twindex::sys::MemoryBudget;
use twindex::{Index, Params, Sketcher};

use crate::error::InvalidOptions;
use crate::input::fields::deciding::{DecidingValues, UrlPart};
use crate::input::fields::keep::Keep;
use crate::input::fields::number::FieldNumber;
use crate::input::options::{InputFormat, InputOptions};
use crate::passages::boilerplate::count::{self, BOILERPLATE};
use crate::results::layout::{
    DECIDED, INDEX, PROOF, RUN, Row, find_rows, for_each_row, kept_files, unescaped,
};
use crate::results::run_file::RunFile;
use crate::rule::against::for_each_removed_key;
use crate::rule::left_out::sketcher_of_results;
use crate::rule::repeated::{EarlierKeys, RepeatedKeys, without_numbers};
use crate::sketching::idf;
use crate::stored::corpus::SIZE;
use crate::stored::order::KeepValues;
use crate::why::basis::{Equal, SetAndSketch, WhyColumns, agrees};
use crate::why::explanation::{
    DocumentStatus, Explanation, FieldOfBoth, Reason, RunDescription, Sets, TableLine,
};
use crate::why::texts::{DocumentContent, DocumentRead, KeysToFind, add_keys, alias, find, roots};
use crate::work::observer::Observer;
use crate::work::tsv;
use crate::work::word_diff::{self, Extent, WordDiff};

/// A query about one document of a results folder. [`new`](Self::new) sets the defaults.
///
/// ```
/// # fn main() -> twindex_corpus::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let (pages, out) = (dir.path().join("pages.jsonl"), dir.path().join("deduped"));
/// # let text = "the quick brown fox jumps over the lazy dog and sleeps in the sun until the evening";
/// # let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
/// # std::fs::write(&pages, [line("a", text), line("b", &format!("{text} comes"))].concat())?;
/// use twindex_corpus::{Dedup, DocumentStatus, Why};
///
/// Dedup::new([pages], &out).run()?;
/// let explanation = Why::new(&out, "b").explain(&())?;
/// assert_eq!(explanation.fate, DocumentStatus::Removed);
/// assert_eq!(explanation.kept.as_deref(), Some("a"));
/// assert_eq!(explanation.differences.map(|differences| differences.only_in_key), Some(1));
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Why {
    /// The results folder.
    pub out: PathBuf,
    /// The key of the document.
    pub key: Vec<u8>,
    /// The inputs from which the document's text is read; if empty, the inputs in `OUT/run.json`.
    pub inputs: Vec<PathBuf>,
    /// Options for reading the inputs; `None` to use the options in `OUT/run.json`.
    pub input: Option<InputOptions>,
    /// Number of words to show before and after a difference.
    pub context: usize,
    /// Maximum number of differences to show; `None` for all.
    pub hunks: Option<usize>,
    /// For a kept document, the maximum number of its removed duplicates whose keys are shown.
    pub members: usize,
}

impl Why {
    /// Creates a query for the document with this key in the results folder `out`.
    pub fn new(out: impl Into<PathBuf>, key: impl Into<Vec<u8>>) -> Self {
        Self {
            out: out.into(),
            key: key.into(),
            inputs: Vec::new(),
            input: None,
            context: 5,
            hunks: Some(10),
            members: 10,
        }
    }

    /// Looks up the document and explains the decision.
    ///
    /// # Errors
    ///
    /// Fails if `dedup` did not write the folder or its tables do not list the document. Fails if a table or input
    /// cannot be read; the message has the file and line. Fails if the run read standard input and no inputs are given.
    pub fn explain(&self, observer: &dyn Observer) -> anyhow::Result<Explanation> {
        let is_there = |name: &str| self.out.join(name).is_file();
        if !PROOF.iter().all(|name| is_there(name)) {
            self.out.metadata().with_context(|| format!("{}: cannot be opened", self.out.display()))?;
            bail!("{}: not a folder of results of `twindex dedup`", self.out.display());
        }
        let known = self.known()?;
        let (clusters, against) = (self.out.join("clusters.tsv"), self.out.join("against.tsv"));
        let cluster = self.look_up_cluster(&clusters)?;
        if let Some(Cluster { row, others, removed }) = cluster {
            let kept = unescaped(&clusters, &row, 2)?;
            if kept == self.key {
                return Ok(self.stays(&clusters, &row, others, removed));
            }
            return self.goes(&known, &clusters, &row, &kept, observer);
        }
        if is_there("against.tsv") {
            let key = tsv::escape(&self.key);
            let (columns, rows) = find_rows(&against, 1, &|fields| fields[0] == &*key)?;
            if let Some(row) = rows.into_iter().next() {
                return self.dropped(&known, (&against, &columns[2..], &row), observer);
            }
        }
        let nor = if is_there("against.tsv") { ", nor in against.tsv" } else { "" };
        bail!(
            "{}: no document `{}`{nor}; a key is written as in the input, or, with --escaped, as in this table",
            clusters.display(),
            shown(&self.key).escape_debug()
        )
    }

    /// Returns the options in `run.json` or, without that file, the parameters of the index.
    fn known(&self) -> anyhow::Result<RunDescription> {
        let run = RunFile::read(&self.out)?;
        let index = self.out.join(INDEX);
        let params = match &run {
            Some(run) => run.params()?,
            None if index.is_dir() => Index::open(&index)?.snapshot().params().clone(),
            None => Params::builder().minhash(1, 1).build()?,
        };
        let mut input = match (&self.input, &run) {
            (Some(input), _) => input.clone(),
            (None, Some(run)) => run.job().input_options()?,
            (None, None) => InputOptions::default(),
        };
        if let Some(run) = &run {
            input.attached.deciding = run.job().deciding();
            // Kept documents may already have the fields that the run added, so the names of these fields are allowed.
            input.reserved.clear();
        }
        let repeated = run.as_ref().map_or(RepeatedKeys::Error, |run| run.job().scope.repeated_keys);
        Ok(RunDescription { run, params, input, repeated })
    }

    /// Finds the line of the document in clusters.tsv, and the documents that were removed as its duplicates.
    fn look_up_cluster(&self, path: &Path) -> anyhow::Result<Option<Cluster>> {
        let key = tsv::escape(&self.key).into_owned();
        let (mut own, mut others, mut removed) = (None, Vec::new(), 0);
        for_each_row(path, Some("key\tcluster\tkept\tscore"), &mut |line, fields| {
            if fields[0] == key {
                own = Some(Row::of(line, fields));
            } else if fields[2] == key {
                removed += 1;
                if others.len() < self.members {
                    others.push(String::from_utf8_lossy(fields[0]).into_owned());
                }
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(own.map(|row| Cluster { row, others, removed }))
    }

    /// Returns the explanation of a kept document.
    fn stays(&self, clusters: &Path, row: &Row, others: Vec<String>, removed: u64) -> Explanation {
        let listed = TableLine::of(clusters, row, &["score".to_owned()], 3);
        let mut explanation = self.empty(DocumentStatus::Kept, &self.key, listed);
        (explanation.removed_for_it, explanation.others) = (Some(removed), others);
        explanation
    }

    /// Returns the explanation of a document that was removed as a duplicate of another document of the same run.
    fn goes(
        &self,
        known: &RunDescription,
        clusters: &Path,
        row: &Row,
        kept: &[u8],
        observer: &dyn Observer,
    ) -> anyhow::Result<Explanation> {
        let pairs = self.out.join("pairs.tsv");
        let (key, other) = (&*tsv::escape(&self.key), &*tsv::escape(kept));
        let is_pair = |fields: &[&[u8]]| {
            (fields[0] == key && fields[1] == other) || (fields[0] == other && fields[1] == key)
        };
        let (columns, pair) = find_rows(&pairs, 1, &is_pair)?;
        let columns = &columns[2..];
        let basis = WhyColumns::of(columns).with_context(|| format!("{}:1", pairs.display()))?;
        let listed = match pair.first() {
            Some(pair) => TableLine::of(&pairs, pair, columns, 2),
            None => TableLine::of(clusters, row, &["score".to_owned()], 3),
        };
        let mut explanation = self.empty(DocumentStatus::Removed, kept, listed);
        if pair.is_empty() {
            let (_, near) = find_rows(&pairs, self.members, &|fields| fields[0] == key || fields[1] == key)?;
            let partner = |row: &Row| {
                let partner = if row.fields[0] == key { &row.fields[1] } else { &row.fields[0] };
                String::from_utf8_lossy(partner).into_owned()
            };
            explanation.others = near.iter().map(partner).collect();
            explanation.notes.push(format!("{} has no line for the two documents", pairs.display()));
        }

        // Reads both documents in one pass over the inputs, and the kept document from the results, too. `compare`
        // chooses between the two texts of the kept document.
        let mut texts = self.read_inputs(known, &[&self.key, kept], observer)?;
        let of_inputs = texts.pop().flatten();
        let key = texts.pop().flatten();
        let of_results = match read_kept(known, (&self.out, &known.input), kept, observer) {
            // Fields derived from folder names of the inputs are missing in the results, so reading them may fail.
            Err(error) if of_inputs.is_some() && known.input.attached.any() => {
                explanation
                    .notes
                    .push(format!("the kept document was read from the inputs alone: {error:#}"));
                None
            }
            read => read?,
        };
        let candidates = [of_results, of_inputs].into_iter().flatten().collect();
        self.compare(known, &mut explanation, basis, key, candidates)?;
        Ok(explanation)
    }

    /// Returns the explanation of a document that was removed as a duplicate of a history document.
    fn dropped(
        &self,
        known: &RunDescription,
        (against, columns, row): (&Path, &[String], &Row),
        observer: &dyn Observer,
    ) -> anyhow::Result<Explanation> {
        let kept = unescaped(against, row, 1)?;
        let basis = WhyColumns::of(columns).with_context(|| format!("{}:1", against.display()))?;
        let mut explanation =
            self.empty(DocumentStatus::Dropped, &kept, TableLine::of(against, row, columns, 2));
        let key = self.read_inputs(known, &[&self.key], observer)?.pop().flatten();
        let mut candidates = Vec::new();
        for input in known.paths(|job| &job.scope.against)? {
            let folder = input.path.unwrap_or(input.given);
            if !folder.exists() {
                explanation.notes.push(format!("{}: is gone, which --against named", folder.display()));
                continue;
            }
            if folder.is_file() || kept_files(&folder)?.is_some() {
                candidates.extend(read_kept(known, (&folder, &of_history(&known.input)), &kept, observer)?);
            }
        }
        let texts = known.paths(|job| &job.scope.texts)?;
        let texts: Vec<PathBuf> = texts.into_iter().filter_map(|input| input.path).collect();
        // The inputs may contain a different document with this key, so they are read only if no other text was found.
        let rest = if texts.is_empty() && candidates.is_empty() { self.inputs.clone() } else { texts };
        if !rest.is_empty() && !rest.iter().any(|path| path == Path::new("-")) {
            let sought = [KeysToFind { keys: vec![kept.clone()] }];
            candidates.extend(
                find(
                    &rest,
                    &of_history(&known.input),
                    known.normalised(),
                    (known.repeated, None),
                    &sought,
                    observer,
                )?
                .pop()
                .flatten(),
            );
        }
        self.compare(known, &mut explanation, basis, key, candidates)?;
        Ok(explanation)
    }

    /// Creates an explanation that has only the table line.
    fn empty(&self, fate: DocumentStatus, kept: &[u8], listed: TableLine) -> Explanation {
        Explanation {
            key: shown(&self.key),
            fate,
            kept: Some(shown(kept)),
            reason: None,
            listed,
            recomputed: None,
            agrees: None,
            fields: Vec::new(),
            sets: None,
            place: None,
            place_of_kept: None,
            differences: None,
            removed_for_it: None,
            others: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the keys of the histories of the run; `None` if there are no histories. From texts and results folders,
    /// reads only keys that equal a sought key except for an added number.
    fn earlier_keys(known: &RunDescription, sought: &[KeysToFind]) -> anyhow::Result<Option<EarlierKeys>> {
        let histories = known.paths(|job| &job.scope.against)?;
        if histories.is_empty() {
            return Ok(None);
        }
        let (mut indexes, mut texts, mut results) = (Vec::new(), Vec::new(), Vec::new());
        for input in histories {
            let history = input.path.unwrap_or(input.given);
            let shown = history.display().to_string();
            if history.is_dir() && kept_files(&history)?.is_some() {
                results.push(history.clone());
            }
            let index = [history.join(INDEX), history.clone()]
                .into_iter()
                .find(|index| index.join("CURRENT").is_file());
            match index {
                Some(index) => indexes.push((shown, Index::open(&index)?.snapshot())),
                None if history.is_file() => texts.push((shown, vec![history])),
                None if history.is_dir() => texts.push((shown, kept_files(&history)?.unwrap_or_default())),
                None => {} // the history does not exist any more; `dropped` adds a note
            }
        }
        let names = texts.iter().map(|(name, _)| name.clone()).collect();
        let mut earlier = EarlierKeys::new(indexes, names);
        let options = InputOptions { format: InputFormat::Auto, ..of_history(&known.input) };
        for (history, (_, files)) in texts.iter().enumerate() {
            add_keys(&mut earlier, (history, files), &options, sought)?;
        }
        let roots = roots(sought);
        for folder in results {
            let history = earlier.add_history(folder.display().to_string());
            for_each_removed_key(&folder, &mut |key| {
                if roots.contains(&without_numbers(key)) {
                    earlier.add(key, history, &MemoryBudget::unlimited())?;
                }
                Ok(())
            })?;
        }
        Ok(Some(earlier))
    }

    /// Reads documents from the given inputs or, if there are none, from the inputs of the run.
    fn read_inputs(
        &self,
        known: &RunDescription,
        keys: &[&[u8]],
        observer: &dyn Observer,
    ) -> anyhow::Result<Vec<Option<DocumentRead>>> {
        let run = self.out.join(RUN);
        let mut sought: Vec<KeysToFind> =
            keys.iter().map(|key| KeysToFind { keys: vec![key.to_vec()] }).collect();
        if !self.inputs.is_empty() {
            let earlier = Self::earlier_keys(known, &sought)?;
            let repeated = (known.repeated, earlier.as_ref());
            return find(&self.inputs, &known.input, known.normalised(), repeated, &sought, observer);
        }
        if known.run.is_none() {
            return Err(InvalidOptions::new(format!(
                "{}: has no {RUN}, which names the inputs, as an earlier version made it; name INPUT",
                self.out.display()
            ))
            .into());
        }
        let mut paths = Vec::new();
        for input in known.paths(|job| &job.reading.inputs)? {
            let Some(path) = &input.path else {
                let is_stdin = input.given == Path::new("-");
                let name = if is_stdin {
                    "standard input".to_owned()
                } else {
                    format!("the pipe {}", input.given.display())
                };
                return Err(InvalidOptions::new(format!(
                    "{}: the documents came from {name}, which cannot be read again; name INPUT, a file that has them",
                    run.display()
                ))
                .into());
            };
            ensure!(
                path.exists(),
                "{}: is gone, and {} names it as an input; name INPUT if it is elsewhere",
                path.display(),
                run.display()
            );
            for one in &mut sought {
                let alias = alias(&input, path, &one.keys[0]);
                one.keys.extend(alias);
            }
            paths.push(path.clone());
        }
        let earlier = Self::earlier_keys(known, &sought)?;
        let repeated = (known.repeated, earlier.as_ref());
        find(&paths, &known.input, known.normalised(), repeated, &sought, observer)
    }

    /// Recomputes the scores. Of the candidate texts of the kept document, uses the first that reproduces the scores in
    /// the table, or else the first.
    fn compare(
        &self,
        known: &RunDescription,
        explanation: &mut Explanation,
        basis: WhyColumns,
        key: Option<DocumentRead>,
        candidates: Vec<DocumentRead>,
    ) -> anyhow::Result<()> {
        explanation.place = key.as_ref().map(|key| key.place.clone());
        if key.is_none() {
            explanation.notes.push(format!(
                "`{}` is not in the inputs any more, so that nothing was counted again",
                explanation.key
            ));
        }
        if candidates.is_empty() {
            explanation.notes.push(format!(
                "the text of `{}` was not found, so that nothing was counted again",
                explanation.kept.as_deref().unwrap_or_default()
            ));
        }
        let (Some(key), false) = (key, candidates.is_empty()) else {
            explanation.reason = basis.reason(explanation, known, Equal::No)?;
            return Ok(());
        };
        let sketcher = self.sketcher(known)?;
        let of_key = SetAndSketch::of(&sketcher, &key.content)?;
        let mut best: Option<Candidate> = None;
        for kept in candidates {
            let measured = SetAndSketch::of(&sketcher, &kept.content)?;
            let mut columns = basis.columns(&of_key, &measured)?;
            if explanation.listed.columns.iter().any(|(name, _)| name == DECIDED) {
                let rule = self.decided(known, basis, (&key, &of_key), (&kept, &measured))?;
                columns.extend(rule.map(|rule| (DECIDED.to_owned(), rule)));
            }
            let does_agree = agrees(&explanation.listed.columns, &columns);
            let is_better =
                best.as_ref().is_none_or(|best| best.agrees != Some(true) && does_agree == Some(true));
            if is_better {
                best = Some(Candidate { kept, measured, columns, agrees: does_agree });
            }
        }
        if let Some(best) = best {
            self.report(known, explanation, basis, (&key, &of_key), best)?;
        }
        Ok(())
    }

    /// Returns the name of the rule that decides between two documents; `None` if the run is unknown.
    fn decided(
        &self,
        known: &RunDescription,
        basis: WhyColumns,
        key: (&DocumentRead, &SetAndSketch),
        kept: (&DocumentRead, &SetAndSketch),
    ) -> anyhow::Result<Option<String>> {
        let Some(run) = &known.run else { return Ok(None) };
        if basis == WhyColumns::Contained && key.1.set.len() != kept.1.set.len() {
            return Ok(Some(SIZE.to_owned()));
        }
        let mut values = KeepValues::new(&run.job().rule.keep, &MemoryBudget::unlimited());
        // Any two different keys will do: if no rule before `key-hash` decides, it does.
        for (own, (read, measured)) in [(&self.key[..], key), (b"", kept)] {
            values.push(measured.tokens, own, &read.deciding.numbers)?;
        }
        Ok(Some(values.decided(0, 1).to_string()))
    }

    /// Adds the recomputed scores and the differing words to the explanation.
    fn report(
        &self,
        known: &RunDescription,
        explanation: &mut Explanation,
        basis: WhyColumns,
        (key, of_key): (&DocumentRead, &SetAndSketch),
        Candidate { kept, measured: of_kept, columns, agrees }: Candidate,
    ) -> anyhow::Result<()> {
        if let DocumentContent::Fingerprint(_) = key.content {
            // Fingerprints have no texts to compare.
            (explanation.recomputed, explanation.agrees) = (Some(columns), agrees);
            explanation.reason = basis.reason(explanation, known, Equal::No)?;
            if agrees == Some(false) {
                explanation.notes.push("the fingerprints are not those that the table was made of".into());
            }
            add_fields(known, explanation, key, &kept);
            explanation.place_of_kept = Some(kept.place);
            return Ok(());
        }
        let is_identical = kept.identity == key.identity;
        let (both, _) = jaccard(&of_key.set, &of_kept.set);
        explanation.sets = Some(Sets { key: of_key.set.len(), kept: of_kept.set.len(), both });
        (explanation.recomputed, explanation.agrees) = (Some(columns), agrees);
        let equal = match (is_identical && agrees != Some(false), kept.content.is_same(&key.content)) {
            (false, _) => Equal::No,
            (true, true) => Equal::ByteForByte,
            (true, false) => Equal::Normalised,
        };
        explanation.reason = basis.reason(explanation, known, equal)?;
        if agrees == Some(false) {
            explanation.notes.push(
                "the numbers of the table are not those of the texts as they are now: one of the two changed since, or \
                 they are read in another way"
                    .into(),
            );
        }
        let differences = self.differences(&kept.content, &key.content);
        let (of_this, of_other) = (of_key.left_out.words, of_kept.left_out.words);
        if of_this + of_other > 0 {
            explanation.notes.push(format!(
                "{of_this} words of the document and {of_other} of the kept one do not count: they stand in spans that many \
                 documents share ({BOILERPLATE})"
            ));
        }
        if !is_identical && of_key.set == of_kept.set {
            explanation.notes.push(format!(
                "the differences change no shingle (tokens {}, width {})",
                known.params.shingling.tokens, known.params.shingling.widths
            ));
        }
        if !kept.content.is_same(&key.content) && differences.hunks_in_all == 0 {
            explanation.notes.push("no word differs: the texts differ in white space only".into());
        }
        explanation.differences = Some(differences);
        add_fields(known, explanation, key, &kept);
        explanation.place_of_kept = Some(kept.place);
        Ok(())
    }

    fn differences(&self, kept: &DocumentContent, key: &DocumentContent) -> WordDiff {
        let extent = Extent {
            context: self.context,
            hunks: self.hunks.unwrap_or(usize::MAX),
            run: if self.hunks.is_some() { RUN_WORDS } else { usize::MAX },
            steps: word_diff::STEPS_MAX,
        };
        if let (DocumentContent::Text(kept), DocumentContent::Text(key)) = (kept, key) {
            return word_diff::diff(&word_diff::words(kept), &word_diff::words(key), extent);
        }
        let (kept, key) = (kept.features().unwrap_or_default(), key.features().unwrap_or_default());
        word_diff::diff(&word_diff::listed(&kept), &word_diff::listed(&key), extent)
    }

    /// Returns the sketcher of the run. An IDF table is read from the index or, if the run wrote no index, from the
    /// file that `--idf` named.
    fn sketcher(&self, known: &RunDescription) -> anyhow::Result<Sketcher> {
        let index = self.out.join(INDEX);
        let table = match known.params.sketch().idf_table()? {
            None => None,
            // The boilerplate list, if there is one, is next to the index.
            Some(_) if index.is_dir() => return count::sketcher(&Index::open(index)?, None),
            Some(_) => Some(self.table(known)?),
        };
        if known.params.shingling.boilerplate.is_some() {
            return sketcher_of_results(&self.out, &known.params, table);
        }
        Ok(match table {
            Some(table) => Sketcher::with_idf(&known.params, table)?,
            None => Sketcher::new(&known.params)?,
        })
    }

    /// Opens the IDF table that the run read.
    fn table(&self, known: &RunDescription) -> anyhow::Result<Arc<IdfTable>> {
        let run = self.out.join(RUN);
        let named = known.paths(|job| job.scope.idf.as_slice())?;
        let path = named.into_iter().find_map(|input| input.path);
        let path = path.with_context(|| {
            format!(
                "{}: names no file with the table of --idf, and the folder has no index with it",
                run.display()
            )
        })?;
        let table = idf::open(&path).with_context(|| {
            format!(
                "{}: names this table of --idf, which the folder has not, as it has no index",
                run.display()
            )
        })?;
        Ok(Arc::new(table))
    }
}

/// Maximum number of words shown of a run of differing words, unless all differences are requested.
const RUN_WORDS: usize = 60;

/// The row of a document in clusters.tsv. `others` are the first of the documents that were removed as its duplicates,
/// `removed` is their total number.
struct Cluster {
    row: Row,
    others: Vec<String>,
    removed: u64,
}

/// A possible text of the kept document, and the score columns computed from it.
struct Candidate {
    kept: DocumentRead,
    measured: SetAndSketch,
    columns: Vec<(String, String)>,
    agrees: Option<bool>,
}

fn read_kept(
    known: &RunDescription,
    (folder, input): (&Path, &InputOptions),
    key: &[u8],
    observer: &dyn Observer,
) -> anyhow::Result<Option<DocumentRead>> {
    let files =
        if folder.is_file() { vec![folder.to_owned()] } else { kept_files(folder)?.unwrap_or_default() };
    if files.is_empty() {
        return Ok(None);
    }
    // `--format` applies to the inputs only; the format of the results is derived from their file names.
    let options = InputOptions { format: InputFormat::Auto, ..input.clone() };
    let sought = [KeysToFind { keys: vec![key.to_vec()] }];
    Ok(find(&files, &options, known.normalised(), (known.repeated, None), &sought, observer)?.pop().flatten())
}

/// Adds the fields that affected the decision, and a note if their current values contradict the decision.
fn add_fields(
    known: &RunDescription,
    explanation: &mut Explanation,
    key: &DocumentRead,
    kept: &DocumentRead,
) {
    let (of_key, of_kept) = (&key.deciding, &kept.deciding);
    let fields = &known.input.attached.deciding;
    let is_history = explanation.fate == DocumentStatus::Dropped;
    for (at, rule) in fields.keep.iter().enumerate() {
        let Some(own) = of_key.numbers.get(at).filter(|_| rule.field().is_some() || rule.is_of_url()) else {
            continue;
        };
        let other = of_kept.numbers.get(at).filter(|_| !is_history);
        explanation.fields.push(FieldOfBoth {
            option: rule.option(),
            name: rule.field().map_or_else(|| rule.to_string(), str::to_owned),
            key: shown_number(rule, own.number),
            kept: other.map(|other| shown_number(rule, other.number)),
        });
        let is_before = other.is_none_or(|other| match rule {
            Keep::Max(_) => other.number >= own.number,
            _ => other.number <= own.number,
        });
        // With containment, the larger document is kept, whatever its number. Of several rules, another may decide.
        let is_contained = matches!(explanation.reason, Some(Reason::Contained { .. }));
        if fields.keep.len() == 1 && !is_contained && !is_before {
            explanation.agrees = Some(false);
            explanation.notes.push(format!(
                "the number in `{}` of the kept document does not come first",
                rule.field().unwrap_or(rule.option())
            ));
        }
    }
    let of_url = fields.inside_url.map(|part| match part {
        UrlPart::Host => "host".to_owned(),
        UrlPart::Domain => "domain".to_owned(),
    });
    if let Some(name) = of_url.as_ref().or(fields.inside.as_ref()) {
        let shown = |deciding: &DecidingValues| String::from_utf8_lossy(&deciding.inside).into_owned();
        let (key, kept) = (shown(of_key), Some(shown(of_kept)));
        explanation.fields.push(FieldOfBoth { option: "inside", name: name.clone(), key, kept });
        if of_key.inside != of_kept.inside {
            explanation.agrees = Some(false);
            explanation.notes.push(format!("the two documents have different values in `{name}`"));
        }
    }
}

/// Returns the value that a rule compares, as text.
fn shown_number(rule: &Keep, number: FieldNumber) -> String {
    let names: &[&str] = match rule {
        Keep::Rank(_, listed) => {
            let listed = listed.get(number.small() as usize);
            return listed.cloned().unwrap_or_else(|| "a value that is not listed".to_owned());
        }
        Keep::Https => &["https", "another scheme"],
        Keep::Canonical => &["its own URL", "no link", "another URL"],
        _ => return number.to_string(),
    };
    names.get(number.small() as usize).unwrap_or(&"").to_string()
}

/// Returns the options for reading documents of a history, which may lack the number field.
fn of_history(input: &InputOptions) -> InputOptions {
    let mut input = input.clone();
    input.attached.deciding.is_history = true;
    input
}

/// Returns the key, escaped as in the tables.
fn shown(key: &[u8]) -> String {
    String::from_utf8_lossy(&tsv::escape(key)).into_owned()
}
