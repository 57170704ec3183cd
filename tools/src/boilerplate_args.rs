//! The `--boilerplate` option of verbs that read texts for an index: a list of text spans to ignore.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use twindex::{Index, Params, Sketcher};
use twindex_corpus::{Boilerplate, boilerplate};

/// The `--boilerplate` option.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BoilerplateArgs {
    /// List of text spans to ignore, `OUT/boilerplate` of `dedup --without-boilerplate` [default: the index's list, in
    /// its folder or beside it]
    #[arg(long, value_name = "FILE")]
    boilerplate: Option<PathBuf>,
}

impl BoilerplateArgs {
    /// Reads the list, and records its digest in the parameters of a new index. Returns `None` if the option was not
    /// given.
    pub(crate) fn apply(&self, params: &mut Params) -> anyhow::Result<Option<Arc<Boilerplate>>> {
        let Some(path) = &self.boilerplate else { return Ok(None) };
        let list = boilerplate::open(path)?;
        params.shingling.boilerplate = Some(boilerplate::digest(&list));
        params.check()?;
        Ok(Some(list))
    }

    /// Copies the list into the folder of a new index, where later commands look for it.
    pub(crate) fn keep(list: Option<&Boilerplate>, index: &Path) -> anyhow::Result<()> {
        list.map_or(Ok(()), |list| boilerplate::copy(list, index))
    }

    /// Returns the name of the option if it was given.
    pub(crate) fn option(&self) -> Option<String> {
        self.boilerplate.is_some().then(|| "--boilerplate".to_owned())
    }

    /// Returns the sketcher of an index, which ignores the listed spans.
    pub(crate) fn sketcher(&self, index: &Index) -> anyhow::Result<Sketcher> {
        boilerplate::sketcher(index, self.boilerplate.as_deref())
    }
}
