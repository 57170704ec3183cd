//! `twindex build --as sketches`: writes sketches of documents to files, for later stages, or to a table.

use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde::Serialize;
use twindex::format::fields::{self, Fields};
use twindex::format::header::MAGIC;
use twindex::format::sketches::{Encoded, Encoder, Row};
use twindex::sketch::pack;
use twindex::{Params, Sketcher};
use twindex_corpus::input::{Counts, Documents, InputOptions, Parser, Record};
use twindex_corpus::sketching::{Job, SketchOptions, Sketching, for_each_chunk, for_each_sketched};
use twindex_corpus::tsv;
use twindex_corpus::{RepeatedKeys, output_path};

use super::{BuildArgs, BuildKind};
use crate::json_lines::JsonColumns;
use crate::options::Usage;
use crate::param_args::DocumentKind;
use crate::progress::Progress;
use crate::report::{self, Costs, Stopwatch, counted};
use crate::resume::InputId;
use crate::sketch_file::is_sketch_file;
use crate::stage::{ResultKind, StageFile, check_out};

/// Number of rows that are held in memory at a time if repeated keys are detected.
const ROWS_TOGETHER: usize = 1024;
/// The column names of a table of sketches, separated by tabs.
const TSV_COLUMNS: &str = "key\tfingerprint\tfeatures";
const CANNOT_WRITE: &str = "cannot write the results";
const SKETCHES: ResultKind = ResultKind { noun: "a file of sketches", suffix: "sketches", magic: &MAGIC };
const TABLE: ResultKind =
    ResultKind { noun: "a table of sketches", suffix: "tsv", magic: b"key\tfingerprint\tfeatures\n" };
/// The suffix of the records of finished inputs in a folder of sketches.
const DONE: &str = "done";

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct SketchReport {
    /// The files of sketches in the order of the inputs. Absent without `--as folder`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<PathBuf>,
    /// Number of inputs skipped because an earlier run had finished them.
    resumed: u64,
    #[serde(flatten)]
    counts: Counts,
    /// Number of documents that have no words, or no features.
    empty: u64,
    bytes_on_disk: u64,
    /// Megabytes of text (10^6 bytes) per CPU second.
    mb_per_cpu_second: f64,
    #[serde(flatten)]
    costs: Costs,
}

impl BuildArgs {
    pub(super) fn sketch(&self) -> anyhow::Result<ExitCode> {
        let watch = Stopwatch::start();
        let is_table = self.kind == BuildKind::Table;
        let out = Some(self.index.as_path()).filter(|out| out.as_os_str() != "-");
        if self.input.inputs.is_empty() {
            return Err(Usage::new(
                "nothing to sketch: name INPUT files or folders, or - for standard input",
            )
            .into());
        }
        let features = self.input.reads_features();
        let table = self.params.table(features)?;
        let params = self.params.params(DocumentKind::documents(features), table.as_ref())?;
        if params.codes.is_some() && !is_table {
            let why = "--simhash-bits: a file of sketches holds 64 bits; leave out --as, or take --as table";
            return Err(Usage::new(why).into());
        }
        let sketcher = match table {
            None => Sketcher::new(&params)?,
            Some(table) => Sketcher::with_idf(&params, Arc::new(table))?,
        };
        let wanted = self.repeated.wanted(self.work.memory / 4);
        match out {
            Some(dir) if self.kind == BuildKind::Folder => {
                ensure!(
                    dir.is_dir() || dir.symlink_metadata().is_err(),
                    "{}: is not a folder",
                    dir.display()
                );
                output_path::check_file(&dir.join(DONE), &self.input.inputs)?;
                return self.sketch_into(dir, &sketcher, &params, watch);
            }
            Some(out) => {
                output_path::check_file(out, self.input.inputs.iter().chain(&self.params.files()))?;
                check_out(out, if is_table { TABLE } else { SKETCHES }, self.force)?;
                let is_other = !is_table && out.exists() && !is_sketch_file(out);
                ensure!(!is_other, "{}: is not {}; choose another name", out.display(), SKETCHES.noun);
            }
            None if is_table => {}
            None => return Err(Usage::new("only --as table goes to standard output").into()),
        }
        let mut documents = Documents::open(&self.input.inputs, &self.input.options()?)?;
        let quiet = self.output.quiet || out.is_none();
        let progress = Progress::bytes(documents.total_bytes(), "sketching", quiet);
        let mut sink = match out {
            Some(out) => StageFile::named(out, self.force)?,
            None if self.output.json => {
                StageFile::json(JsonColumns::of(TSV_COLUMNS, false), Some(TSV_COLUMNS))
            }
            None => StageFile::stdout("")?,
        };
        let empty = if is_table {
            write_table(&mut documents, &sketcher, &wanted, &progress, &mut sink)?
        } else {
            write_sketches(&mut documents, &sketcher, &params, &wanted, &progress, &mut sink)?
        };
        progress.finish();
        let bytes_on_disk = sink.finish()?.bytes;

        let counts = documents.counts().clone();
        let remarks = counts.remarks();
        let report = SketchReport::new(counts, empty, bytes_on_disk, watch);
        match out {
            _ if self.output.json => report::print_json(&report)?,
            _ if self.output.quiet => {}
            Some(out) => {
                let mut lines = vec![format!(
                    "{}: {}, {} of text, {} on disk, {:.1} s",
                    out.display(),
                    counted(report.counts.documents, "document"),
                    report::bytes(report.counts.text_bytes),
                    report::bytes(report.bytes_on_disk),
                    report.costs.seconds
                )];
                lines.extend(remarks.iter().map(|remark| format!("  note: {remark}")));
                report::print_lines(&lines)?;
            }
            // Notes go to standard error at the end, so that they do not interrupt the table on standard output.
            None => remarks.iter().for_each(|remark| report::note(remark)),
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Writes a file of sketches for each input that is not finished yet.
    fn sketch_into(
        &self,
        dir: &Path,
        sketcher: &Sketcher,
        params: &Params,
        watch: Stopwatch,
    ) -> anyhow::Result<ExitCode> {
        let about = format!("{:?} {:032x}", self.input.options()?, params.digest());
        let ids = self.input.inputs.iter().map(|path| InputId::of(path, &about));
        let ids = ids.collect::<anyhow::Result<Vec<_>>>()?;
        Documents::check_options(&self.input.inputs, &self.input.options()?)?;
        let (mut counts, mut empty, mut bytes_on_disk, mut resumed) = (Counts::default(), 0, 0, 0);
        let mut files = Vec::new();
        for (path, id) in self.input.inputs.iter().zip(ids) {
            let record = dir.join(format!("{:032x}.{DONE}", id.0));
            if let Some(done) = done(dir, &record) {
                resumed += 1;
                files.push(done);
                continue;
            }
            let mut options = InputOptions { is_part: true, ..self.input.options()? };
            options.skip_bad = options.skip_bad.saturating_sub(counts.skipped_bad);
            let mut documents = Documents::open_part(std::slice::from_ref(path), &options)?;
            let progress = Progress::bytes(documents.total_bytes(), "sketching", self.output.quiet);
            let mut sink = StageFile::by_content(dir, SKETCHES)?;
            empty += write_sketches(
                &mut documents,
                sketcher,
                params,
                &SketchOptions::default(),
                &progress,
                &mut sink,
            )?;
            progress.finish();
            let written = sink.finish()?;
            let file = written.path.unwrap_or_default();
            // Writes this record after the result, so a record never names a missing file.
            let mut sink = StageFile::named(&record, true)?;
            let name = file.file_name().unwrap_or_default();
            let line = format!("{}\t{}\t{}\n", name.display(), written.bytes, path.display());
            sink.write_all(line.as_bytes()).context(CANNOT_WRITE)?;
            sink.finish()?;
            bytes_on_disk += written.bytes;
            counts.add(documents.counts());
            files.push(file);
        }
        if resumed == 0 {
            counts.check(&self.input.options()?)?;
        }
        let remarks = if resumed == 0 { counts.remarks() } else { counts.remarks_of_part() };
        let report =
            SketchReport { files, resumed, ..SketchReport::new(counts, empty, bytes_on_disk, watch) };
        if self.output.json {
            report::print_json(&report)?;
        } else {
            let names: Vec<String> = report.files.iter().map(|file| file.display().to_string()).collect();
            report::print_lines(&names)?;
            if !self.output.quiet {
                for remark in remarks {
                    report::note(&remark);
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

impl SketchReport {
    fn new(counts: Counts, empty: u64, bytes_on_disk: u64, watch: Stopwatch) -> Self {
        let costs = Costs::since(watch);
        Self {
            files: Vec::new(),
            resumed: 0,
            empty,
            bytes_on_disk,
            mb_per_cpu_second: counts.text_bytes as f64 / 1e6 / costs.cpu_seconds.max(1e-9),
            costs,
            counts,
        }
    }
}

/// Returns the file of sketches that a record names; `None` if the file is missing or does not have the recorded
/// length.
fn done(dir: &Path, record: &Path) -> Option<PathBuf> {
    let mut line = String::new();
    BufReader::new(io::Read::take(std::fs::File::open(record).ok()?, 1 << 20)).read_line(&mut line).ok()?;
    let mut fields = line.split('\t');
    let (name, bytes) = (Path::new(fields.next()?), fields.next()?.parse::<u64>().ok()?);
    let file = dir.join(name.file_name()?);
    (file.metadata().ok()?.len() == bytes).then_some(file)
}

/// Buffers that are reused for each chunk.
struct State<'s> {
    sketching: Sketching<'s>,
    sketch: twindex::Sketch,
    parts: SketchRow,
}

/// The encoded parts of a sketch, for one row of a file.
#[derive(Default)]
struct SketchRow {
    packed: Vec<u8>,
    set: Vec<u8>,
}

impl SketchRow {
    /// Adds the row of a document.
    fn push(
        &mut self,
        params: &Params,
        key: &[u8],
        sketch: &twindex::Sketch,
        rows: &mut Encoded,
    ) -> twindex::Result<()> {
        let Self { packed, set } = self;
        packed.clear();
        pack(sketch.signature(), params.minhash.map_or(0, |minhash| minhash.signature_bits), packed);
        let row = Row {
            fingerprint: sketch.fingerprint().map_or(0, |fingerprint| fingerprint.0),
            features: sketch.features(),
            signature: packed,
            bottom: sketch.bottom(),
            modular: sketch.modular(),
        };
        set.clear();
        if params.sets {
            fields::encode(params, false, sketch.set(), None, set);
        }
        let row = (!sketch.is_empty()).then_some(row);
        rows.push_with(key.into(), row, Fields::of(set))
    }
}

impl<'s> State<'s> {
    fn new(sketcher: &'s Sketcher) -> Self {
        Self {
            sketching: Sketching::new(sketcher),
            sketch: twindex::Sketch::default(),
            parts: SketchRow::default(),
        }
    }
}

/// Returns whether a weighted shingle may become several elements of a set. Sketches may then be large.
fn has_units(sketcher: &Sketcher) -> bool {
    sketcher.params().minhash.is_some_and(|minhash| minhash.unit.is_some())
}

/// Writes a file of sketches. Returns the number of empty sketches.
fn write_sketches(
    documents: &mut Documents,
    sketcher: &Sketcher,
    params: &Params,
    wanted: &SketchOptions,
    progress: &Progress,
    sink: &mut StageFile,
) -> anyhow::Result<u64> {
    let (mut out, mut empty) = (Vec::new(), 0);
    let mut encoder = Encoder::new(params, &mut out);
    if wanted.repeated_keys != RepeatedKeys::Any || has_units(sketcher) {
        // Repeated keys are resolved in input order. So this thread encodes the documents, in small groups.
        let (mut parts, mut rows, mut held) = (SketchRow::default(), Encoded::new(params), 0);
        let together = if has_units(sketcher) { 1 } else { ROWS_TOGETHER };
        for_each_sketched(documents, sketcher, wanted, progress, |one| {
            empty += u64::from(one.sketch.is_empty());
            let pushed = parts.push(params, &one.key, &one.sketch, &mut rows);
            pushed.with_context(|| format!("{}: cannot keep the sketch", one.place))?;
            held += 1;
            if held == together {
                encoder.append(&rows, &mut out);
                sink.write_all(&out).context(CANNOT_WRITE)?;
                out.clear();
                (rows, held) = (Encoded::new(params), 0);
            }
            Ok(())
        })?;
        encoder.append(&rows, &mut out);
        encoder.finish(&mut out);
        sink.write_all(&out).context(CANNOT_WRITE)?;
        return Ok(empty);
    }
    let job = Job {
        state: || State::new(sketcher),
        begin: || (Encoded::new(params), 0_u64),
        work: |state: &mut State<'_>, made: &mut (Encoded, u64), _: &Parser, record: Record<'_>| {
            let State { sketching, sketch, parts } = state;
            let sketched = sketching.sketch(record.content, sketch);
            sketched.with_context(|| format!("{}: cannot sketch the document", record.place()))?;
            made.1 += u64::from(sketch.is_empty());
            let pushed = parts.push(params, record.key, sketch, &mut made.0);
            pushed.with_context(|| format!("{}: cannot keep the sketch", record.place()))
        },
    };
    for_each_chunk(documents, progress, &job, |(records, more)| {
        empty += more;
        encoder.append(&records, &mut out);
        sink.write_all(&out).context(CANNOT_WRITE)?;
        out.clear();
        Ok(())
    })?;
    encoder.finish(&mut out);
    sink.write_all(&out).context(CANNOT_WRITE)?;
    Ok(empty)
}

/// Writes a table of sketches. Returns the number of empty sketches.
fn write_table(
    documents: &mut Documents,
    sketcher: &Sketcher,
    wanted: &SketchOptions,
    progress: &Progress,
    sink: &mut StageFile,
) -> anyhow::Result<u64> {
    let mut empty = 0;
    sink.write_all(TABLE.magic).context(CANNOT_WRITE)?;
    if wanted.repeated_keys != RepeatedKeys::Any || has_units(sketcher) {
        let mut line = Vec::new();
        for_each_sketched(documents, sketcher, wanted, progress, |one| {
            empty += u64::from(one.sketch.is_empty());
            line.clear();
            write_row(&mut line, &one.key, &one.sketch)?;
            sink.write_all(&line).context(CANNOT_WRITE)
        })?;
        return Ok(empty);
    }
    let job = Job {
        state: || State::new(sketcher),
        begin: || (Vec::new(), 0_u64),
        work: |state: &mut State<'_>, made: &mut (Vec<u8>, u64), _: &Parser, record: Record<'_>| {
            let sketched = state.sketching.sketch(record.content, &mut state.sketch);
            sketched.with_context(|| format!("{}: cannot sketch the document", record.place()))?;
            made.1 += u64::from(state.sketch.is_empty());
            Ok(write_row(&mut made.0, record.key, &state.sketch)?)
        },
    };
    for_each_chunk(documents, progress, &job, |(lines, more)| {
        empty += more;
        sink.write_all(&lines).context(CANNOT_WRITE)
    })?;
    Ok(empty)
}

fn write_row(lines: &mut Vec<u8>, key: &[u8], sketch: &twindex::Sketch) -> io::Result<()> {
    tsv::write_field(lines, key)?;
    match sketch.code() {
        Some(code) => write!(lines, "\t{code}\t")?,
        None => lines.write_all(b"\t-\t")?,
    }
    if sketch.features().is_empty() {
        lines.push(b'-');
    }
    for (place, feature) in sketch.features().iter().enumerate() {
        let comma = if place > 0 { "," } else { "" };
        write!(lines, "{comma}{feature:016x}")?;
    }
    lines.push(b'\n');
    Ok(())
}
