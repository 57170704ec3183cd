//! The options and input files of a run. The journal stores them to check that a resumed run has the same options and
//! input files.

use std::fs::{self, File};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, bail};
use twindex::Params;
use xxhash_rust::xxh3::{Xxh3Default, xxh3_64, xxh3_128};

use crate::input::documents::Documents;
use crate::journal::cache::damaged;
use crate::journal::files::{INPUTS, MANIFEST, name_file, refuse, unnamed_file};
use crate::settings::declared::{AnySettings, spelled};
use crate::settings::job::Dedup;
use crate::work::tsv;

/// The first line of a journal's manifest file.
const MAGIC: &str = "twindex resume 1";
/// Length in bytes of the last line of a manifest file, which has the hash of the preceding lines.
const LAST: usize = "hash 0123456789abcdef\n".len();
/// Upper bound for the size of a manifest in bytes.
const MANIFEST_MOST: u64 = 16 << 20;

/// The name and value of each option that affects the results.
pub(crate) type JobOptions = Vec<(String, String)>;

/// Settings that a resumed run may change, because they do not affect the results. With a larger `skip_bad`, a run that
/// stopped at a bad record can continue.
const MAY_DIFFER: [&str; 6] = ["out", "force", "resume", "memory", "threads", "skip_bad"];

/// Returns the settings that a resumed run must share with the stopped run. Inputs are compared elsewhere.
fn deciding_options(job: &Dedup, params: &Params) -> JobOptions {
    let version = ("the version of twindex".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
    let settings = job.settings().into_iter().flat_map(AnySettings::texts);
    let settings = settings.filter(|(name, ..)| !MAY_DIFFER.contains(name) && *name != "inputs");
    let settings = settings.map(|(name, _, texts)| {
        let value = if texts.is_empty() { "not given".to_owned() } else { texts.join(", ") };
        (spelled(name), value)
    });
    // The parameters also contain digests of the IDF table and of the boilerplate list.
    let fields = params
        .fields()
        .into_iter()
        .map(|(name, value)| (format!("the parameter {name} of the index"), value.clone()));
    std::iter::once(version).chain(settings).chain(fields).collect()
}

/// The options and inputs of a run. A resumed run must have the same options and inputs as the stopped run.
pub(crate) struct JobDescription<'a> {
    options: JobOptions,
    documents: &'a Documents,
    /// Files that are read in addition to the input documents.
    others: Vec<PathBuf>,
}

impl<'a> JobDescription<'a> {
    /// Describes the run of a job. Other files that are folders are replaced by all files that they contain.
    pub(crate) fn of(job: &Dedup, params: &Params, documents: &'a Documents) -> anyhow::Result<Self> {
        documents.for_each_file(|_| Ok(()))?;
        let mut files = Vec::new();
        for other in &job.other_files() {
            // The lock file of an index is skipped, because it is not part of the index's content.
            let entries = walkdir::WalkDir::new(other).sort_by_file_name().into_iter();
            for entry in entries.filter_entry(|entry| entry.file_name() != "LOCK") {
                let entry = entry.with_context(|| format!("{}: cannot be listed", other.display()))?;
                if !entry.file_type().is_dir() {
                    files.push(entry.into_path());
                }
            }
        }
        Ok(Self { options: deciding_options(job, params), documents, others: files })
    }

    /// Calls `each` with each input file and its line in the list of inputs.
    fn for_each_input(&self, mut each: impl FnMut(&Path, &[u8]) -> anyhow::Result<()>) -> anyhow::Result<()> {
        let mut line = Vec::new();
        let mut one = |path: &Path| {
            let metadata = path.metadata().with_context(|| format!("{}: cannot read", path.display()))?;
            let changed = metadata.modified().unwrap_or(UNIX_EPOCH);
            line.clear();
            write!(line, "{}\t{}\t", metadata.len(), nanos(changed))?;
            line.extend_from_slice(&tsv::escape(path.as_os_str().as_encoded_bytes()));
            each(path, &line)
        };
        self.documents.for_each_file(&mut one)?;
        self.others.iter().try_for_each(|path| one(path))
    }

    pub(crate) fn write_inputs(&self, folder: &Path) -> anyhow::Result<()> {
        let file = unnamed_file(folder, INPUTS)?;
        let cannot = || format!("{}: cannot write", folder.join(INPUTS).display());
        let (mut out, mut hash) = (BufWriter::new(file), Xxh3Default::new());
        self.for_each_input(|_, line| {
            hash.update(line);
            hash.update(b"\n");
            out.write_all(line).and_then(|()| out.write_all(b"\n")).with_context(cannot)
        })?;
        let file = writeln!(out, "hash {:016x}", hash.digest())
            .and_then(|()| out.into_inner().map_err(io::IntoInnerError::into_error))
            .with_context(cannot)?;
        name_file(folder, &file, INPUTS)
    }

    /// Draws a random id for the run, writes the id and the options to the manifest, and returns the id.
    pub(crate) fn write_manifest(&self, folder: &Path) -> anyhow::Result<u128> {
        let run = drawn();
        let mut text = format!("{MAGIC}\nrun\t{run:032x}\n").into_bytes();
        for (name, value) in &self.options {
            text.extend_from_slice(name.as_bytes());
            text.push(b'\t');
            text.extend_from_slice(&tsv::escape(value.as_bytes()));
            text.push(b'\n');
        }
        let hash = xxh3_64(&text);
        text.extend_from_slice(format!("hash {hash:016x}\n").as_bytes());
        let mut file = unnamed_file(folder, MANIFEST)?;
        file.write_all(&text)
            .with_context(|| format!("{}: cannot write", folder.join(MANIFEST).display()))?;
        name_file(folder, &file, MANIFEST)?;
        Ok(run)
    }

    /// Checks that the stopped run had the same options and inputs. Returns the id of the stopped run.
    ///
    /// # Errors
    ///
    /// An option or an input file differs from the stopped run.
    pub(crate) fn check(&self, folder: &Path) -> anyhow::Result<u128> {
        let path = folder.join(MANIFEST);
        let (run, options) = read_manifest(&path)?;
        let now = self.options.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let was = |name: &str| options.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str());
        for (name, value) in now.clone() {
            let before = was(name).unwrap_or("not there");
            if before != value {
                return Err(differs(name, before, value));
            }
        }
        if let Some((name, value)) = options.iter().find(|(one, _)| now.clone().all(|(name, _)| name != one))
        {
            return Err(differs(name, value, "not there"));
        }
        self.check_inputs(&folder.join(INPUTS))?;
        Ok(run)
    }

    /// Returns an error if an input file differs from the list at `path`.
    fn check_inputs(&self, path: &Path) -> anyhow::Result<()> {
        let shown = path.display();
        if !path.exists() {
            return Err(refuse(&format!("{shown}: is missing")));
        }
        let Some(mut lines) = open_list(path).with_context(|| format!("{shown}: cannot read"))? else {
            bail!("{}", damaged(&shown.to_string()));
        };
        let mut before = Vec::new();
        let mut next = || -> anyhow::Result<Option<Vec<u8>>> {
            before.clear();
            let count =
                lines.read_until(b'\n', &mut before).with_context(|| format!("{shown}: cannot read"))?;
            Ok((count > 0).then(|| before.strip_suffix(b"\n").unwrap_or(&before).to_vec()))
        };
        self.for_each_input(|path, line| {
            let shown = path.display();
            let Some(before) = next()? else {
                return Err(refuse(&format!("{shown}: was not among the inputs of the stopped run")));
            };
            if before == line {
                return Ok(());
            }
            let (was, is) = (InputEntry::of(&before), InputEntry::of(line));
            Err(refuse(&if was.path == is.path {
                format!(
                    "{shown}: changed since the stopped run began: it had {} bytes, changed at {} ns, and has {}, {}",
                    was.bytes, was.changed, is.bytes, is.changed
                )
            } else {
                format!("the inputs are not those of the stopped run: expected {}, found {shown}", was.path)
            }))
        })?;
        match next()? {
            None => Ok(()),
            Some(before) => Err(refuse(&format!(
                "{}: was among the inputs of the stopped run, and is not any more",
                InputEntry::of(&before).path
            ))),
        }
    }
}

/// A line of the list of input files.
struct InputEntry<'l> {
    bytes: &'l str,
    changed: &'l str,
    path: &'l str,
}

impl<'l> InputEntry<'l> {
    fn of(line: &'l [u8]) -> Self {
        let mut fields = std::str::from_utf8(line).unwrap_or("?").splitn(3, '\t');
        let mut next = || fields.next().unwrap_or("?");
        Self { bytes: next(), changed: next(), path: next() }
    }
}

fn differs(name: &str, before: &str, now: &str) -> anyhow::Error {
    refuse(&format!("{name} was {before} in the stopped run, and is {now}"))
}

fn nanos(time: SystemTime) -> u128 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos())
}

/// Returns a random number for the id of a run.
fn drawn() -> u128 {
    let mut all = nanos(SystemTime::now()).to_le_bytes().to_vec();
    all.extend(std::process::id().to_le_bytes());
    all.extend(RandomState::new().hash_one(0).to_le_bytes());
    xxh3_128(&all)
}

/// Reads the id of the run and its options from the manifest.
fn read_manifest(path: &Path) -> anyhow::Result<(u128, Vec<(String, String)>)> {
    let shown = path.display();
    let cannot = || format!("{shown}: cannot read");
    let is_short = path.metadata().with_context(cannot)?.len() <= MANIFEST_MOST;
    let text = if is_short { fs::read(path).with_context(cannot)? } else { Vec::new() };
    let parsed = || {
        let (text, last) = text.split_at(text.len().checked_sub(LAST)?);
        if last != format!("hash {:016x}\n", xxh3_64(text)).as_bytes() {
            return None;
        }
        let mut lines = std::str::from_utf8(text).ok()?.lines();
        if lines.next()? != MAGIC {
            return None;
        }
        let run = u128::from_str_radix(lines.next()?.strip_prefix("run\t")?, 16).ok()?;
        let option = |line: &str| {
            let (name, value) = line.split_once('\t')?;
            let value = tsv::unescape(value.as_bytes()).ok()?;
            Some((name.to_owned(), String::from_utf8_lossy(&value).into_owned()))
        };
        Some((run, lines.map(option).collect::<Option<_>>()?))
    };
    match parsed() {
        Some(parsed) => Ok(parsed),
        None => bail!("{}", damaged(&shown.to_string())),
    }
}

/// Returns the lines of a list of input files; `None` if its hash does not match.
fn open_list(path: &Path) -> io::Result<Option<impl BufRead>> {
    let file = File::open(path)?;
    let Some(length) = file.metadata()?.len().checked_sub(LAST as u64) else { return Ok(None) };
    let (mut lines, mut hash) = (BufReader::new(file).take(length), Xxh3Default::new());
    loop {
        let some = lines.fill_buf()?;
        let count = some.len();
        if count == 0 {
            break;
        }
        hash.update(some);
        lines.consume(count);
    }
    let mut last = Vec::new();
    lines.into_inner().read_to_end(&mut last)?;
    if last != format!("hash {:016x}\n", hash.digest()).as_bytes() {
        return Ok(None);
    }
    Ok(Some(BufReader::new(File::open(path)?).take(length)))
}
