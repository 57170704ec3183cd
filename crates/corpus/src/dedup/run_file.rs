//! `OUT/run.json`: the inputs and options of a run. `why` uses it to read the documents again.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use twindex::Params;

use super::file::write_file;
use super::near::Verify;
use super::priority::Keep;
use super::rules::Clustering;
use super::weights::Weights;
use super::written::Written;
use super::{Dedup, Method, layout};
use crate::input::{
    Charset, DecidingFields, Dialect, FingerprintForm, Ids, InputFormat, InputOptions, InvalidUtf8, Kind,
    Quote, inside_of,
};
use crate::repeated::RepeatedKeys;
use crate::tsv;

/// The inputs of a run, and the options that determine which documents are near.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct RunFile {
    /// The version of twindex that wrote the results folder.
    twindex: String,
    pub(super) inputs: Vec<RunInput>,
    input: InputFields,
    method: String,
    verify: Option<String>,
    pub(super) threshold: Option<f64>,
    pub(super) within: Option<u8>,
    clusters: String,
    /// The rule that determines which document is kept; `None` in files of earlier versions.
    #[serde(default)]
    keep: Option<String>,
    /// The field of the number that decides which document is kept.
    #[serde(default)]
    keep_field: Option<String>,
    /// The field whose value two documents must share to be compared.
    #[serde(default)]
    inside: Option<String>,
    /// The weights of shingles; `None` if all weights are equal.
    #[serde(default)]
    weights: Option<String>,
    /// The field that has the URL of a document.
    #[serde(default)]
    url_field: Option<String>,
    /// The table of document frequencies of `--idf`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) idf: Option<RunInput>,
    /// The parameters of the sketches and of `OUT/index`, each as `name=value`, in the order of [`Params::fields`].
    params: Vec<String>,
    pub(super) against: Vec<RunInput>,
    pub(super) texts: Vec<RunInput>,
    /// Whether HTML pages were read. `kept.jsonl` then has their markup, not the compared text.
    #[serde(default)]
    pub(super) pages: bool,
    /// What the run wrote to the results folder; `None` in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) written: Option<Written>,
}

/// The path of an input. Both fields are escaped like keys in tables, so that paths in any encoding can be stored.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct RunInput {
    /// The path as specified by the user. It is the key of a text file that was named as an input.
    given: String,
    /// The absolute path; `None` for standard input and pipes, which cannot be read again.
    path: Option<String>,
}

/// The options for reading the inputs.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct InputFields {
    text_field: String,
    id_field: String,
    features: bool,
    /// The format of fingerprints; `None` if texts or features are read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    format: String,
    invalid_utf8: String,
    skip_bad: u64,
    record_bytes_max: usize,
    #[serde(default = "InputFields::ids_before")]
    ids: String,
    #[serde(default = "InputFields::repeated_keys_before")]
    repeated_keys: String,
    #[serde(default)]
    encoding: Option<String>,
    #[serde(default)]
    delimiter: Option<char>,
    /// The quote character; empty if there is none.
    #[serde(default)]
    quote: Option<String>,
    #[serde(default)]
    escape: Option<char>,
    #[serde(default)]
    no_header: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    include: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    exclude: Vec<String>,
}

impl InputFields {
    fn dialect(&self) -> Dialect {
        let byte = |character: char| u8::try_from(character).ok();
        Dialect {
            delimiter: self.delimiter.and_then(byte),
            quote: match self.quote.as_deref() {
                None => Quote::Usual,
                Some(quote) => quote.chars().next().and_then(byte).map_or(Quote::None, Quote::Byte),
            },
            escape: self.escape.and_then(byte),
            has_header: !self.no_header,
        }
    }

    /// Returns the name of the `--ids` choice of runs by versions without this option.
    fn ids_before() -> String {
        name_of(&IDS, Ids::Field)
    }

    /// Returns the name of the `--repeated-keys` choice of runs by versions without this option.
    fn repeated_keys_before() -> String {
        name_of(&REPEATED, RepeatedKeys::Error)
    }
}

const METHODS: [(&str, Method); 4] = [
    ("minhash", Method::Minhash),
    ("shingles", Method::Shingles),
    ("simhash", Method::Simhash),
    ("exact", Method::Exact),
];
const VERIFY: [(&str, Verify); 3] =
    [("exact", Verify::Exact), ("signature", Verify::Signature), ("none", Verify::None)];
const CLUSTERS: [(&str, Clustering); 2] =
    [("leaders", Clustering::Leaders), ("components", Clustering::Components)];
const KEEPS: [(&str, Keep); 6] = [
    ("first", Keep::First),
    ("longest", Keep::Longest),
    ("smallest-key", Keep::SmallestKey),
    ("key-hash", Keep::KeyHash),
    ("max", Keep::Max),
    ("min", Keep::Min),
];
const WEIGHTS: [(&str, Weights); 3] =
    [("distinct", Weights::Distinct), ("tf", Weights::Frequencies), ("idf", Weights::Idf)];
const INVALID: [(&str, InvalidUtf8); 4] = [
    ("usual", InvalidUtf8::Usual),
    ("error", InvalidUtf8::Error),
    ("replace", InvalidUtf8::Replace),
    ("skip", InvalidUtf8::Skip),
];
const FORMATS: [(&str, InputFormat); 9] = [
    ("auto", InputFormat::Auto),
    ("text", InputFormat::Text),
    ("jsonl", InputFormat::Records(Kind::Jsonl)),
    ("csv", InputFormat::Records(Kind::Csv)),
    ("tsv", InputFormat::Records(Kind::Tsv)),
    ("wet", InputFormat::Records(Kind::Wet)),
    ("warc", InputFormat::Records(Kind::Warc)),
    ("parquet", InputFormat::Records(Kind::Parquet)),
    ("arc", InputFormat::Records(Kind::Arc)),
];

const IDS: [(&str, Ids); 3] = [("field", Ids::Field), ("auto", Ids::FieldOrLine), ("line", Ids::Line)];
const REPEATED: [(&str, RepeatedKeys); 4] = [
    ("number", RepeatedKeys::Number),
    ("first", RepeatedKeys::First),
    ("last", RepeatedKeys::Last),
    ("error", RepeatedKeys::Error),
];

fn encoding_of(name: &str) -> anyhow::Result<Charset> {
    Charset::named(name).with_context(|| format!("the field \"encoding\" has the unknown value {name:?}"))
}

fn form_of(name: &str) -> anyhow::Result<FingerprintForm> {
    let form = FingerprintForm::named(name);
    form.with_context(|| format!("the field \"fingerprint\" has the unknown value {name:?}"))
}

/// Returns the name of a value in a table of names; empty if it has none.
fn name_of<T: Copy + PartialEq>(table: &[(&'static str, T)], value: T) -> String {
    table.iter().find(|(_, one)| *one == value).map_or_else(String::new, |(name, _)| (*name).to_owned())
}

/// Returns the value with this name in a table of names.
fn value_of<T: Copy>(table: &[(&'static str, T)], field: &str, name: &str) -> anyhow::Result<T> {
    let found = table.iter().find(|(one, _)| *one == name).map(|&(_, value)| value);
    found.with_context(|| format!("the field {field:?} has the unknown value {name:?}"))
}

impl RunInput {
    fn of(path: &Path) -> Self {
        let escaped = |path: &Path| {
            String::from_utf8_lossy(&tsv::escape(path.as_os_str().as_encoded_bytes())).into_owned()
        };
        let is_kept = path.metadata().is_ok_and(|metadata| metadata.is_file() || metadata.is_dir());
        let absolute = is_kept.then(|| std::path::absolute(path).ok()).flatten();
        Self { given: escaped(path), path: absolute.as_deref().map(escaped) }
    }

    /// Returns the path as specified by the user.
    pub(super) fn given(&self) -> anyhow::Result<PathBuf> {
        unescaped(&self.given)
    }

    /// Returns the absolute path of the input; `None` if the input cannot be read again.
    pub(super) fn path(&self) -> anyhow::Result<Option<PathBuf>> {
        self.path.as_deref().map(unescaped).transpose()
    }
}

/// Decodes a path that was escaped.
fn unescaped(written: &str) -> anyhow::Result<PathBuf> {
    let bytes = tsv::unescape(written.as_bytes())?.into_owned();
    #[cfg(unix)]
    let path: std::ffi::OsString = std::os::unix::ffi::OsStringExt::from_vec(bytes);
    #[cfg(not(unix))]
    let path = std::ffi::OsString::from(String::from_utf8_lossy(&bytes).into_owned());
    Ok(PathBuf::from(path))
}

impl RunFile {
    /// Describes the run of this job. `params` are the parameters of its sketches.
    pub(super) fn of(job: &Dedup, params: &Params, pages: bool) -> Self {
        let inputs = |paths: &[PathBuf]| paths.iter().map(|path| RunInput::of(path)).collect();
        Self {
            twindex: env!("CARGO_PKG_VERSION").to_owned(),
            inputs: inputs(&job.inputs),
            input: InputFields {
                text_field: job.input.text_field.clone(),
                id_field: job.input.id_field.clone(),
                features: job.input.features,
                fingerprint: job.input.fingerprint.map(|form| form.name().to_owned()),
                format: name_of(&FORMATS, job.input.format),
                invalid_utf8: name_of(&INVALID, job.input.invalid_utf8),
                skip_bad: job.input.skip_bad,
                record_bytes_max: job.input.record_bytes_max,
                ids: name_of(&IDS, job.input.ids),
                repeated_keys: name_of(&REPEATED, job.repeated_keys),
                delimiter: job.input.dialect.delimiter.map(char::from),
                quote: match job.input.dialect.quote {
                    Quote::Usual => None,
                    Quote::None => Some(String::new()),
                    Quote::Byte(quote) => Some(char::from(quote).to_string()),
                },
                escape: job.input.dialect.escape.map(char::from),
                no_header: !job.input.dialect.has_header,
                include: job.input.include.clone(),
                exclude: job.input.exclude.clone(),
                encoding: job.input.encoding.map(|encoding| encoding.name().to_owned()),
            },
            method: name_of(&METHODS, job.method),
            verify: job.resembles().then(|| name_of(&VERIFY, job.verify())),
            threshold: job.resembles().then(|| job.threshold()),
            within: (job.method == Method::Simhash).then(|| job.within.unwrap_or(3)),
            clusters: name_of(&CLUSTERS, job.clusters),
            keep: Some(name_of(&KEEPS, job.keep)),
            keep_field: job.keep_field.clone(),
            inside: job.inside.clone(),
            weights: (job.weights != Weights::Distinct).then(|| name_of(&WEIGHTS, job.weights)),
            url_field: job.url_field.clone(),
            idf: job.idf.as_deref().map(RunInput::of),
            params: params.fields().iter().map(|(name, value)| format!("{name}={value}")).collect(),
            against: inputs(&job.against),
            texts: inputs(&job.texts),
            pages,
            written: None,
        }
    }

    /// Writes the file to a results folder.
    pub(super) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self)?;
        write_file(&folder.join(layout::RUN), |out| writeln!(out, "{json}"))
    }

    /// Reads the file in a results folder; `None` if the version that wrote the folder wrote no such file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not in the format of [`write`](Self::write). The message names the file.
    pub(super) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(layout::RUN);
        let json = match std::fs::read(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("{}: cannot be read", path.display())),
        };
        let run: Self = serde_json::from_slice(&json)
            .with_context(|| format!("{}: not as `dedup` writes it", path.display()))?;
        // Checks all values here, so that the error for an unknown value names the file.
        let known = || -> anyhow::Result<()> {
            run.method()?;
            run.clustering()?;
            run.keep()?;
            run.input_options()?;
            run.repeated_keys()?;
            run.params().map(drop)
        };
        known().with_context(|| format!("{}: not as `dedup` writes it", path.display()))?;
        Ok(Some(run))
    }

    /// Returns the field whose value two documents had to share to be compared.
    pub(super) fn inside(&self) -> Option<&str> {
        self.inside.as_deref()
    }

    pub(super) fn method(&self) -> anyhow::Result<Method> {
        value_of(&METHODS, "method", &self.method)
    }

    pub(super) fn clustering(&self) -> anyhow::Result<Clustering> {
        value_of(&CLUSTERS, "clusters", &self.clusters)
    }

    /// Returns the rule that determined which document is kept; `None` if the file does not have it.
    pub(super) fn keep(&self) -> anyhow::Result<Option<Keep>> {
        self.keep.as_deref().map(|keep| value_of(&KEEPS, "keep", keep)).transpose()
    }

    /// Returns the fields that affect which documents are kept.
    pub(super) fn deciding(&self) -> DecidingFields {
        let (inside, inside_url) = inside_of(self.inside.as_deref());
        let (number, url) = (self.keep_field.clone(), self.url_field.clone());
        DecidingFields { number, inside, url, inside_url, ..DecidingFields::default() }
    }

    /// Returns the options for reading the inputs.
    pub(super) fn input_options(&self) -> anyhow::Result<InputOptions> {
        let InputFields { text_field, id_field, features, format, invalid_utf8, skip_bad, .. } =
            self.input.clone();
        Ok(InputOptions {
            text_field,
            id_field,
            ids: value_of(&IDS, "ids", &self.input.ids)?,
            features,
            fingerprint: self.input.fingerprint.as_deref().map(form_of).transpose()?,
            format: value_of(&FORMATS, "format", &format)?,
            invalid_utf8: value_of(&INVALID, "invalid_utf8", &invalid_utf8)?,
            encoding: self.input.encoding.as_deref().map(encoding_of).transpose()?,
            dialect: self.input.dialect(),
            include: self.input.include.clone(),
            exclude: self.input.exclude.clone(),
            skip_bad,
            record_bytes_max: self.input.record_bytes_max,
            ..InputOptions::default()
        })
    }

    /// Returns the run's treatment of repeated keys.
    pub(super) fn repeated_keys(&self) -> anyhow::Result<RepeatedKeys> {
        value_of(&REPEATED, "repeated_keys", &self.input.repeated_keys)
    }

    /// Returns the parameters of the sketches.
    pub(super) fn params(&self) -> anyhow::Result<Params> {
        let mut text = self.params.join("\n");
        text.push('\n');
        Ok(Params::decode(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_file_read_back_has_the_options_and_the_paths_of_the_job() {
        let dir = tempfile::tempdir().unwrap();
        let odd = dir.path().join("a\tb.jsonl");
        std::fs::write(&odd, "").unwrap();
        assert!(RunFile::read(dir.path()).unwrap().is_none());
        for (format_name, format) in FORMATS {
            let mut job = Dedup::new([odd.clone(), PathBuf::from("-")], "out");
            job.input.format = format;
            job.input.skip_bad = 7;
            job.input.fingerprint = Some(FingerprintForm::Signed);
            (job.input.ids, job.repeated_keys) = (Ids::Line, RepeatedKeys::Last);
            job.threshold = Some(0.55);
            (job.keep, job.keep_field, job.inside) = (Keep::Max, Some("s".into()), Some("lang".into()));
            let params = job.params(None).unwrap();
            RunFile::of(&job, &params, false).write(dir.path()).unwrap();
            let run = RunFile::read(dir.path()).unwrap().unwrap();
            assert_eq!(run.input_options().unwrap().format, format, "{format_name}");
            assert_eq!(run.input_options().unwrap().skip_bad, 7);
            assert_eq!(run.input_options().unwrap().fingerprint, Some(FingerprintForm::Signed));
            assert_eq!(
                (run.keep().unwrap(), run.deciding()),
                (Some(Keep::Max), job.input_options().attached.deciding)
            );
            assert_eq!(run.input_options().unwrap().ids, Ids::Line);
            assert_eq!(run.repeated_keys().unwrap(), RepeatedKeys::Last);
            assert_eq!((run.threshold, run.within), (Some(0.55), None));
            assert_eq!(run.params().unwrap().encode(), params.encode());
            assert_eq!(run.inputs[0].path().unwrap(), Some(odd.clone()));
            assert_eq!(run.inputs[1].path().unwrap(), None);
            assert_eq!(run.inputs[1].given().unwrap(), Path::new("-"));
            std::fs::remove_file(dir.path().join(layout::RUN)).unwrap();
        }
        for (bad, why) in [("{", "run.json: not as"), ("{}", "missing field")] {
            std::fs::write(dir.path().join(layout::RUN), bad).unwrap();
            let error = format!("{:#}", RunFile::read(dir.path()).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}
