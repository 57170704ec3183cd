//! `twindex build`: creates an index, or adds documents to an existing one, or writes sketches for a later `build`.

mod sketches;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::params::KeyKind;
use twindex::sys::RealVfs;
use twindex::{Document, Error, Index, Key, Writer};
use twindex_corpus::RepeatedKeys;
use twindex_corpus::contents;
use twindex_corpus::input::{Counts, Documents, InputOptions};
use twindex_corpus::page::Space;
use twindex_corpus::settings::Scope;
use twindex_corpus::sketching::{SketchOptions, for_each_sketched, refused};
use twindex_corpus::text::ExistingParams;

use crate::attached_args::AttachedArgs;
use crate::boilerplate_args::BoilerplateArgs;
use crate::differs::RepeatedInIndex;
use crate::interrupt::RemovedOnSignal;
use crate::options::{FingerprintArgs, InputArgs, Output, ResourceArgs, Usage, parse_value};
use crate::param_args::{DocumentKind, ParamArgs};
use crate::progress::Progress;
use crate::raw_column::RawColumn;
use crate::refusals::{self, Refusal};
use crate::report::{self, Costs, Stopwatch, count, counted};
use crate::resume::{CommittedInputs, InputId};
use crate::settings_args::Options;
use crate::shard::ShardArgs;
use crate::sketch_file::{SketchFile, SketchFiles};

/// Default of `--commit-bytes`.
const COMMIT_BYTES: usize = 32 << 20;

/// Options of `build`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex build pages.twx pages.jsonl\n  \
    twindex build pages.twx --method simhash --near within:3 more.jsonl.zst\n  \
    twindex build pages.sketches pages.jsonl --as sketches\n  \
    twindex build pages.twx pages.sketches\n  \
    twindex build - pages.jsonl --as table | head\n  \
    twindex build hashes.twx --fingerprints hashes.u64\n  \
    twindex build images.twx images.csv --fingerprint-field phash --near within:4\n  \
    twindex build shard-2.twx parts/*.sketches --shard 2/4 --resume\n\n\
    An index that is there is extended; a document whose key is there is replaced. Of a key that comes twice, \
    the last document counts. Files of sketches are known by their first bytes, and bring their parameters with them. Shards of the same parameters are joined by `merge`. With --resume, a run that was killed \
    goes on where it was, and one that was not has nothing to do; the index ends as the same segment either way. \
    From an input that has changed on all are read again; documents that it no longer has stay, until they are deleted.\n\n\
    A file of sketches holds a record for each document, in the order of the input, is the same for the same documents and \
    parameters however many threads made it, and appears whole or not at all. The names of the files of a folder are \
    printed in the order of the inputs. As a table: key, fingerprint and features in hexadecimal, - for a document without \
    words.")]
pub(crate) struct BuildArgs {
    /// Directory of the index, created if it does not exist; with --as, what is written
    index: PathBuf,
    /// What is written to INDEX
    #[arg(long = "as", value_enum, value_name = "WHAT", default_value = "index")]
    kind: BuildKind,
    /// Replace the file if it is a file of sketches, or with --as table a table of sketches
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    pub(super) input: InputArgs,
    #[command(flatten)]
    fingerprint: FingerprintArgs,
    /// Raw fingerprints instead of documents: little-endian 64-bit numbers; each key is the position in the file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["inputs", "idf", "fingerprint_field"])]
    fingerprints: Option<PathBuf>,
    /// Keys of --fingerprints: a FILE of little-endian 64-bit numbers [default: positions]
    #[arg(long, value_name = "FILE")]
    ids: Option<PathBuf>,
    #[command(flatten)]
    repeated: Options<Scope, RepeatedInIndex>,
    /// Commit after one or more input files (see --commit-bytes), and skip files that an earlier run with --resume has
    /// committed, unless their length or modification time changed. All segments are merged at the end
    #[arg(long, conflicts_with = "fingerprints")]
    resume: bool,
    /// Number of input bytes after which --resume commits, at the end of the current file [default: 32M]
    #[arg(long, value_name = "SIZE", value_parser = parse_value::<usize>)]
    commit_bytes: Option<usize>,
    #[command(flatten)]
    shard: ShardArgs,
    #[command(flatten)]
    attached: AttachedArgs,
    #[command(flatten)]
    boilerplate: BoilerplateArgs,
    #[command(flatten)]
    params: ParamArgs,
    #[command(flatten)]
    pub(super) work: ResourceArgs,
    #[command(flatten)]
    pub(super) output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BuildKind {
    /// An index
    Index,
    /// A file of sketches, which `build` reads in place of the documents
    Sketches,
    /// A folder with a file of sketches for each INPUT, named by its content
    ///
    /// Inputs that an earlier run has finished are skipped, unless their length or modification time has changed.
    Folder,
    /// A table of text, for - on standard output
    Table,
}

/// Rules that reject options in runs on which they have no effect.
const REFUSALS: &[Refusal<BuildArgs>] = &[
    Refusal {
        when: |build| build.fingerprints.is_none(),
        given: |build| refusals::first(&[("--ids", build.ids.is_some())]),
        why: "goes with --fingerprints, whose keys it has",
    },
    Refusal {
        when: |build| !build.resume,
        given: |build| refusals::first(&[("--commit-bytes", build.commit_bytes.is_some())]),
        why: "goes with --resume",
    },
    Refusal {
        when: |build| build.fingerprints.is_some(),
        given: |build| {
            let given = build.input.first_given().or_else(|| build.fingerprint.first_given());
            given.or_else(|| build.boilerplate.option())
        },
        why: "says how documents are read, and --fingerprints has none; leave it out",
    },
    Refusal {
        when: |build| build.kind != BuildKind::Index,
        given: |build| {
            let given = refusals::first(&[
                ("--fingerprints", build.fingerprints.is_some()),
                ("--resume", build.resume),
                ("--shard", build.shard.shard.is_some()),
            ]);
            let given = given.or_else(|| build.fingerprint.first_given());
            given.or_else(|| build.boilerplate.option()).or_else(|| build.attached.first_given())
        },
        why: "goes with an index; leave it out, or --as",
    },
    Refusal {
        when: |build| matches!(build.kind, BuildKind::Index | BuildKind::Folder),
        given: |build| refusals::first(&[("--force", build.force)]),
        why: "goes with --as sketches and --as table",
    },
    Refusal {
        when: |build| build.kind == BuildKind::Folder,
        given: |build| refusals::first(&[("--repeated-keys", build.repeated.are_given())]),
        why: "needs all keys in one file: use --as sketches",
    },
];

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct BuildReport {
    /// Counts of the inputs. Only `documents` is the number of documents in the index.
    #[serde(flatten)]
    counts: Counts,
    /// Number of documents or fingerprints read. If several have the same key, the index keeps the last one.
    added: u64,
    /// Number of documents replaced by a later one with the same key, in the index or in the inputs. If documents
    /// expire, this includes documents that had expired when they were read or expired later.
    replaced: u64,
    /// Number of documents that have no words, or no features.
    empty: u64,
    /// Number of inputs skipped because an earlier run had added them.
    resumed: u64,
    distinct_fingerprints: u64,
    bytes_on_disk: u64,
    bytes_per_fingerprint: f64,
    #[serde(flatten)]
    costs: Costs,
}

impl BuildArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        refusals::check(REFUSALS, &self)?;
        if self.kind != BuildKind::Index {
            return self.sketch();
        }
        let watch = Stopwatch::start();
        if self.input.inputs.is_empty() && self.fingerprints.is_none() {
            return Err(Usage::new("nothing to index: name INPUT files, or --fingerprints FILE").into());
        }
        self.params.check_features(self.input.reads_features())?;
        self.params.check_fingerprints(self.fingerprint.are_read())?;
        // Checks that all inputs are readable before it writes anything.
        let sketches = SketchFiles::among(&self.input.inputs)?;
        self.check_brought(sketches.is_some())?;
        self.attached.check_documents(self.fingerprints.is_none() && sketches.is_none())?;
        let inputs = self.resume.then(|| self.input_ids(sketches.is_some())).transpose()?;
        let mut documents = match self.fingerprints {
            None if self.resume => {
                if sketches.is_none() {
                    Documents::check_options(&self.input.inputs, &self.options()?)?;
                }
                None
            }
            None if sketches.is_none() => Some(Documents::open(&self.input.inputs, &self.options()?)?),
            _ => None,
        };
        let raw = self.fingerprints.as_deref().map(RawColumn::open).transpose()?;
        let ids = self.ids.as_deref().filter(|_| raw.is_some()).map(RawColumn::open).transpose()?;
        if let (Some(raw), Some(ids)) = (&raw, &ids) {
            ensure!(
                raw.rows == ids.rows,
                "{} has {} keys for the {} fingerprints of {}",
                ids.path.display(),
                ids.rows,
                raw.rows,
                raw.path.display()
            );
        }

        let (index, created) = self.open(sketches.as_ref(), documents.as_mut())?;
        let (mut writer, created) = match take_writer(&index, created) {
            Ok(taken) => taken,
            Err(error) => {
                // Another process that holds the lock already uses the index that this run created, so the index is
                // kept.
                if created && !matches!(error, Error::Locked { .. }) {
                    let _ = std::fs::remove_dir_all(&self.index);
                }
                return Err(error.into());
            }
        };
        // Also removes the new index if a signal ends the process before the index is complete.
        let half_done = (created && !self.resume).then(|| RemovedOnSignal::new(&self.index));
        // Half of the memory is for reading, half for writing. With `--resume`, batches are committed and merged as in a
        // live index; `compact` merges them into one segment at the end.
        let options = self.attached.writer_options().memory(self.work.memory / 2);
        writer.set_options(options.one_segment(!self.resume))?;
        let before = index.snapshot().documents();
        let mut added = BuildCounts::default();
        let filled = match (inputs, raw) {
            (Some(inputs), _) => self.resume(&mut writer, &index, &inputs, sketches.is_some(), &mut added),
            (None, Some(raw)) => self.add_raw(&mut writer, raw, ids, &mut added),
            (None, None) => {
                if let Some(documents) = &mut documents {
                    self.add_documents(&mut writer, &index, documents, &mut added)
                } else {
                    let mut paths = sketches.iter().flat_map(SketchFiles::paths);
                    paths.try_for_each(|path| self.add_sketches(&mut writer, path, &mut added).map(drop))
                }
            }
        };
        if let Err(error) = filled.and_then(|()| Ok(writer.commit()?)) {
            if created && !self.resume {
                // This run created the directory, so the run removes it. No other process uses the index, because the
                // writer still holds the lock.
                let _ = std::fs::remove_dir_all(&self.index);
            }
            return Err(error);
        }
        drop(half_done);
        drop(writer);

        let snapshot = index.snapshot();
        let space = Space::of(&snapshot, index.path());
        let BuildCounts { documents: added, counts, empty, resumed } = added;
        let all_were_documents = self.fingerprints.is_none() && sketches.is_none() && resumed == 0;
        let mut remarks = if all_were_documents { counts.remarks() } else { counts.remarks_of_part() };
        remarks.extend(report::empty_remark(empty, &counts));
        if resumed > 0 {
            remarks
                .push(format!("{} passed over, which an earlier run has added", counted(resumed, "input")));
        }
        let report = BuildReport {
            added,
            empty,
            resumed,
            replaced: (before + added).saturating_sub(snapshot.documents()),
            counts: Counts { documents: snapshot.documents(), ..counts },
            distinct_fingerprints: space.distinct,
            bytes_on_disk: space.on_disk,
            bytes_per_fingerprint: space.per_fingerprint(),
            costs: Costs::since(watch),
        };
        self.print_report(&report, &remarks, snapshot.params().expire_after.is_some())?;
        Ok(ExitCode::SUCCESS)
    }

    fn print_report(&self, report: &BuildReport, remarks: &[String], expire: bool) -> anyhow::Result<()> {
        report::print(&self.output, report, || {
            let replaced = match report.replaced {
                0 => String::new(),
                gone => format!("{} replaced{}, ", count(gone), if expire { " or expired" } else { "" }),
            };
            let mut lines = vec![format!(
                "{}: {}, {replaced}{} on disk, {:.1} s",
                self.index.display(),
                counted(report.counts.documents, "document"),
                report::bytes(report.bytes_on_disk),
                report.costs.seconds
            )];
            for remark in remarks {
                lines.push(format!("  note: {remark}"));
            }
            lines
        })?;
        Ok(())
    }

    /// Opens an existing index after checking that the inputs match its parameters, or creates a new one. Also returns
    /// whether the index is new.
    fn open(
        &self,
        sketches: Option<&SketchFiles>,
        documents: Option<&mut Documents>,
    ) -> anyhow::Result<(Index, bool)> {
        let features = self.input.reads_features();
        Ok(match Index::open(&self.index) {
            Ok(index) => {
                let params = index.params();
                self.params.check(&ExistingParams::index(&self.index, &params))?;
                let documents = sketches.is_none() && self.fingerprints.is_none();
                self.attached.check(&self.index, &params, documents)?;
                let table = match sketches {
                    Some(sketches) => {
                        sketches.check(&self.index, &params)?;
                        // If the sketches need an IDF table, the index already has it.
                        if self.params.names_table() { sketches.table(&self.params)? } else { None }
                    }
                    None => self.params.table(features)?,
                };
                if let Some(table) = table {
                    table.check(&params.sketch()).with_context(|| {
                        format!("{}: --idf is not the table of this index", self.index.display())
                    })?;
                }
                if self.fingerprint.are_read() {
                    contents::check_fingerprints(&self.index, &params)?;
                    ensure!(
                        params.key == KeyKind::Bytes,
                        "{}: its keys are numbers, and those of records are strings; make another index of these",
                        self.index.display()
                    );
                } else if sketches.is_none() && self.fingerprints.is_none() {
                    contents::check(&self.index, &params.shingling, features)?;
                }
                (index, false)
            }
            Err(Error::NotAnIndex { .. }) if !self.index.exists() => {
                let (mut params, table) = if let Some(sketches) = sketches {
                    sketches.check_options(&self.params)?;
                    (sketches.params().clone(), sketches.table(&self.params)?)
                } else {
                    let table = self.params.table(features)?;
                    let brought = if self.fingerprint.are_read() {
                        let bits = match documents {
                            Some(documents) => documents.fingerprint_bits(),
                            None => {
                                Documents::open_part(&self.input.inputs, &self.options()?)?.fingerprint_bits()
                            }
                        };
                        self.params.kind_of_fingerprints(bits)?
                    } else if self.fingerprints.is_some() {
                        DocumentKind::RawFingerprints
                    } else {
                        DocumentKind::documents(features)
                    };
                    (self.params.params(brought, table.as_ref())?, table)
                };
                self.attached.apply(&mut params)?;
                let list = self.boilerplate.apply(&mut params)?;
                let index = Index::create_from(Arc::new(RealVfs), &self.index, params, table.as_ref())?;
                BoilerplateArgs::keep(list.as_deref(), &self.index)?;
                (index, true)
            }
            Err(error) => return Err(error.into()),
        })
    }
}

/// Returns the writer, and whether this run created the index and no other process has committed to it. Another process
/// may have opened and changed the index before this one took the lock.
fn take_writer(index: &Index, created: bool) -> twindex::Result<(Writer, bool)> {
    let writer = index.writer()?;
    let created = created && index.snapshot().generation() == 1;
    Ok((writer, created))
}

/// Counts of the added documents.
#[derive(Default)]
struct BuildCounts {
    counts: Counts,
    /// Number of documents or fingerprints added.
    documents: u64,
    empty: u64,
    /// Number of inputs skipped because an earlier run had added them.
    resumed: u64,
}

impl BuildArgs {
    /// Returns an error if options for documents are given but no documents are read, or if options contradict each
    /// other.
    fn check_brought(&self, sketches: bool) -> anyhow::Result<()> {
        if self.repeated_keys() != RepeatedKeys::Last && (self.resume || self.fingerprints.is_some()) {
            let why = "--repeated-keys number, first and error need all keys in one run of documents: leave out --resume, \
                       and --fingerprints";
            return Err(Usage::new(why).into());
        }
        let repeated = (self.repeated_keys() != RepeatedKeys::Last).then(|| "--repeated-keys".to_owned());
        let option = self.input.first_given().or(repeated).or_else(|| self.fingerprint.first_given());
        let option = option.or_else(|| self.boilerplate.option());
        if let Some(option) = option.filter(|_| sketches) {
            return Err(Usage::new(format!(
                "{option} says how documents are read, and {} is a file of sketches; leave it out",
                self.input.inputs[0].display()
            ))
            .into());
        }
        Ok(())
    }

    fn repeated_keys(&self) -> RepeatedKeys {
        self.repeated.keys_or(RepeatedKeys::Last)
    }

    /// Returns the options for reading documents.
    fn options(&self) -> anyhow::Result<InputOptions> {
        Ok(InputOptions { attached: self.attached.fields(), ..self.input.options_with(&self.fingerprint)? })
    }

    /// Returns the identity of each input, by which a later run recognizes it.
    fn input_ids(&self, are_sketches: bool) -> anyhow::Result<Vec<InputId>> {
        let shard = self.shard.shard.map_or_else(String::new, |shard| shard.to_string());
        let options = format!("{shard} {:?}", self.options()?);
        let id = if are_sketches { InputId::of_sketches } else { InputId::of };
        self.input.inputs.iter().map(|path| id(path, &options)).collect()
    }

    /// Adds the inputs that no earlier run has added, and commits them together with the record of finished inputs.
    fn resume(
        &self,
        writer: &mut Writer,
        index: &Index,
        inputs: &[InputId],
        are_sketches: bool,
        added: &mut BuildCounts,
    ) -> anyhow::Result<()> {
        let mut done = CommittedInputs::of_payload(&self.index, index.snapshot().payload())?;
        let mut waiting = None;
        // All inputs after the first new or changed one are read again, because the last document with a key must win.
        let mut goes_on = false;
        for (path, &input) in self.input.inputs.iter().zip(inputs) {
            if !goes_on && done.has(input) {
                added.resumed += 1;
                continue;
            }
            goes_on = true;
            let bytes = if are_sketches {
                self.add_sketches(writer, path, added)?
            } else {
                let mut options = InputOptions { is_part: true, ..self.options()? };
                options.skip_bad = options.skip_bad.saturating_sub(added.counts.skipped_bad);
                let mut documents = Documents::open_part(std::slice::from_ref(path), &options)?;
                self.add_documents(writer, index, &mut documents, added)?;
                documents.bytes_read()
            };
            done.add(input)?;
            waiting = Some(waiting.unwrap_or(0) + bytes);
            if waiting >= Some(self.commit_bytes.unwrap_or(COMMIT_BYTES) as u64) {
                writer.commit_with(&done.payload())?;
                waiting = None;
            }
        }
        if added.resumed == 0 && !are_sketches {
            added.counts.check(&self.options()?)?;
        }
        if waiting.is_some() {
            writer.commit_with(&done.payload())?;
        }
        writer.compact()?;
        Ok(())
    }

    fn add_documents(
        &self,
        writer: &mut Writer,
        index: &Index,
        documents: &mut Documents,
        added: &mut BuildCounts,
    ) -> anyhow::Result<()> {
        let progress = Progress::bytes(documents.total_bytes(), "indexing", self.output.quiet);
        let repeated_keys = match self.repeated_keys() {
            RepeatedKeys::Last => RepeatedKeys::Any, // the index keeps the last document with each key anyway
            other => other,
        };
        let wide = index.params().codes.is_some();
        let wanted =
            SketchOptions { shard: self.shard.shard, repeated_keys, wide, ..SketchOptions::default() };
        let sketcher = self.boilerplate.sketcher(index)?;
        for_each_sketched(documents, &sketcher, &wanted, &progress, |one| {
            let put = writer.put(one.key.as_slice(), self.attached.document(one));
            put.map_err(|error| refused(&one.place, "cannot add the document", error))?;
            added.documents += 1;
            added.empty += u64::from(one.sketch.is_empty() && one.code.is_none());
            Ok(())
        })?;
        added.counts.add(documents.counts());
        Ok(())
    }

    /// Adds the sketches in a file. Returns the file's size in bytes.
    fn add_sketches(&self, writer: &mut Writer, path: &Path, added: &mut BuildCounts) -> anyhow::Result<u64> {
        let mut file = SketchFile::open(path)?;
        let progress = Progress::bytes(Some(file.length()), "indexing", self.output.quiet);
        let params = file.params().clone();
        while let Some(mut rows) = file.next_block()? {
            while let Some((key, row, set)) = rows.next()? {
                if self.shard.shard.is_some_and(|shard| !shard.has(key)) {
                    continue;
                }
                added.counts.documents += 1;
                added.documents += 1;
                added.empty += u64::from(row.is_none());
                let put = writer.put(key, Document::from_row(&params, row).with_encoded_set(set));
                put.with_context(|| {
                    let key = key.to_buf().to_string();
                    format!("{}: cannot add the document `{}`", path.display(), key.escape_debug())
                })?;
            }
            progress.set(file.bytes_read());
        }
        Ok(file.length())
    }

    fn add_raw(
        &self,
        writer: &mut Writer,
        fingerprints: RawColumn,
        ids: Option<RawColumn>,
        added: &mut BuildCounts,
    ) -> anyhow::Result<()> {
        let progress = Progress::bytes(Some(fingerprints.rows * 8), "indexing", self.output.quiet);
        let (mut fingerprints, mut ids, mut row) = (fingerprints, ids, 0);
        loop {
            let mut values = fingerprints.wave(TOGETHER)?;
            if values.is_empty() {
                return Ok(());
            }
            let rows = values.len() as u64;
            let mut keys = match &mut ids {
                None => (row..row + rows).collect(),
                Some(ids) => ids.wave(values.len())?,
            };
            if let Some(shard) = &self.shard.shard {
                let both = keys.iter().copied().zip(values);
                (keys, values) = both.filter(|&(key, _)| shard.has(Key::U64(key))).unzip();
            }
            added.documents += keys.len() as u64;
            writer.put_fingerprints(&keys, &values)?;
            row += rows;
            progress.set(row * 8);
        }
    }
}

/// Number of raw fingerprints that are read at a time.
const TOGETHER: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use twindex::Params;

    use super::*;

    #[test]
    fn index_changed_by_another_process_is_not_treated_as_new() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("i.twx");
        let index = Index::create(&path, Params::builder().simhash(3).build().unwrap()).unwrap();
        for (created, still) in [(true, true), (false, false)] {
            assert_eq!(take_writer(&index, created).unwrap().1, still);
        }
        let other = Index::open(&path).unwrap();
        let mut writer = other.writer().unwrap();
        writer
            .put("theirs", &other.sketcher().unwrap().sketch("one two three four five six").unwrap())
            .unwrap();
        writer.commit().unwrap();
        drop(writer);
        assert!(!take_writer(&index, true).unwrap().1);
    }
}
