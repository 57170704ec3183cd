//! Reads and writes `OUT/run.json`, the settings of a run. `why` uses them to read the documents again, and `dedup
//! --job` repeats a run with them.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use twindex::Params;

use crate::results::layout;
use crate::results::written::Written;
use crate::settings::declared::{AnySettings, read_json, to_json};
use crate::settings::job::Dedup;
use crate::settings::value::Value;
use crate::work::file::write_file;

/// The settings of a run, the parameters of its sketches, and the list of the files that it wrote.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct RunFile {
    /// The version of twindex that wrote the results folder.
    twindex: String,
    /// The folder that relative paths in the settings start from, in text form.
    directory: String,
    /// The settings that the user gave or that have a default.
    settings: Map<String, Json>,
    /// The parameters of the sketches and of `OUT/index`, each as `name=value`, in the order of [`Params::fields`].
    params: Vec<String>,
    /// Whether HTML pages were read. `kept.jsonl` then has their markup, not the compared text.
    #[serde(default)]
    pub(crate) pages: bool,
    /// What the run wrote to the results folder; `None` in files of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) written: Option<Written>,
    #[serde(skip)]
    job: Dedup,
}

/// A path in the settings of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunInput {
    /// The path as specified by the user. It is the key of a text file that was named as an input.
    pub(crate) given: PathBuf,
    /// The absolute path; `None` for standard input and pipes, which cannot be read again.
    pub(crate) path: Option<PathBuf>,
}

impl RunFile {
    /// Describes the run of this job. `params` are the parameters of its sketches.
    pub(crate) fn of(job: &Dedup, params: &Params, pages: bool) -> anyhow::Result<Self> {
        let directory = std::env::current_dir().context("the current folder cannot be found")?;
        let mut settings = to_json(job.settings().into_iter().flat_map(AnySettings::texts));
        // The default of `near` depends on the kind of input, so its value is always stored.
        settings.insert("near".to_owned(), job.near().to_string().into());
        // Memory and threads do not affect the results, so run.json omits them.
        settings.remove("memory");
        settings.remove("threads");
        Ok(Self {
            twindex: env!("CARGO_PKG_VERSION").to_owned(),
            directory: directory.write().concat(),
            settings,
            params: params.fields().iter().map(|(name, value)| format!("{name}={value}")).collect(),
            pages,
            written: None,
            job: job.clone(),
        })
    }

    /// Writes the file to a results folder.
    pub(crate) fn write(&self, folder: &Path) -> anyhow::Result<()> {
        let json = serde_json::to_string_pretty(self)?;
        write_file(&folder.join(layout::RUN), |out| writeln!(out, "{json}"))
    }

    /// Reads the file in a results folder; `None` if the version that wrote the folder wrote no such file.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or is not in the format of [`write`](Self::write). The message names the file.
    pub(crate) fn read(folder: &Path) -> anyhow::Result<Option<Self>> {
        let path = folder.join(layout::RUN);
        let json = match std::fs::read(&path) {
            Ok(json) => json,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("{}: cannot be read", path.display())),
        };
        Self::parse(&json).with_context(|| format!("{}: not as `dedup` writes it", path.display())).map(Some)
    }

    fn parse(json: &[u8]) -> anyhow::Result<Self> {
        let mut run: Self = serde_json::from_slice(json)?;
        read_json(&mut run.job.settings_mut(), &run.settings)?;
        run.params()?;
        run.directory()?;
        Ok(run)
    }

    pub(crate) fn job(&self) -> &Dedup {
        &self.job
    }

    /// Returns the folder that relative paths in the settings start from.
    pub(crate) fn directory(&self) -> anyhow::Result<PathBuf> {
        PathBuf::parse(self.directory.as_ref()).map_err(anyhow::Error::msg)
    }

    /// Returns `paths`, which come from the settings, each with its absolute path.
    pub(crate) fn inputs<'p>(
        &self,
        paths: impl IntoIterator<Item = &'p PathBuf>,
    ) -> anyhow::Result<Vec<RunInput>> {
        let directory = self.directory()?;
        let input = |given: &PathBuf| {
            let path = directory.join(given);
            let is_kept = path
                .metadata()
                .map_or(given.as_os_str() != "-", |metadata| metadata.is_file() || metadata.is_dir());
            RunInput { given: given.clone(), path: is_kept.then_some(path) }
        };
        Ok(paths.into_iter().map(input).collect())
    }

    /// Returns the field whose value two documents had to share to be compared.
    pub(crate) fn inside(&self) -> Option<&str> {
        self.job.scope.inside.as_deref()
    }

    /// Returns the parameters of the sketches.
    pub(crate) fn params(&self) -> anyhow::Result<Params> {
        let mut text = self.params.join("\n");
        text.push('\n');
        Ok(Params::decode(&text)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Keep, Near};

    #[test]
    fn run_file_round_trips_and_other_content_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut job = Dedup::new(["a.jsonl", "-"], "out");
        job.rule.near = Some(Near::Containment(0.9));
        job.rule.keep = Keep::Max("meta.score".into()).into();
        job.reading.dialect.has_header = false;
        job.reading.glob = vec!["*.a".into(), "!*.b".into()];
        let params = job.params(None).unwrap();
        RunFile::of(&job, &params, false).unwrap().write(dir.path()).unwrap();
        let run = RunFile::read(dir.path()).unwrap().unwrap();
        assert_eq!(run.job(), &job);
        let inputs = run.inputs(&job.reading.inputs).unwrap();
        assert!(inputs[0].path.is_some() && inputs[1].path.is_none());
        assert_eq!(Dedup::of_file(&dir.path().join(layout::RUN)).unwrap(), job);

        let path = dir.path().join(layout::RUN);
        let json = std::fs::read_to_string(&path).unwrap();
        for (from, to, why) in [
            ("\"keep\"", "\"kep\"", "there is no setting \"kep\"; did you mean \"keep\"?"),
            ("containment:0.9", "containment:9", "--near: expected 0.05 to 1"),
            ("{", "[", "not as `dedup` writes it"),
        ] {
            std::fs::write(&path, json.replacen(from, to, 1)).unwrap();
            let error = format!("{:#}", RunFile::read(dir.path()).unwrap_err());
            assert!(error.contains("run.json: not as `dedup` writes it") && error.contains(why), "{error}");
        }
        let file = dir.path().join("job.json");
        std::fs::write(&file, job.to_json()).unwrap();
        assert_eq!(Dedup::of_file(&file).unwrap(), job);
        std::fs::write(&file, json.replacen("\"directory\": \"", "\"directory\": \"/else", 1)).unwrap();
        let error = format!("{:#}", Dedup::of_file(&file).unwrap_err());
        assert!(error.contains("its run was begun in the folder /else"), "{error}");
    }
}
