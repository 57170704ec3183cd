//! The list of spans that do not count, of commands that read texts for an index.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use twindex::{Index, Params, Sketcher};
use twindex_corpus::{Boilerplate, boilerplate};

/// The option.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct BoilerplateArgs {
    /// A list of spans that do not count, `OUT/boilerplate` of `dedup --without-boilerplate` [default: that of the index, in
    /// its folder or beside it]
    #[arg(long, value_name = "FILE")]
    boilerplate: Option<PathBuf>,
}

impl BoilerplateArgs {
    /// Makes the parameters of a new index leave the spans of the list out; returns the list.
    pub(crate) fn apply(&self, params: &mut Params) -> anyhow::Result<Option<Arc<Boilerplate>>> {
        let Some(path) = &self.boilerplate else { return Ok(None) };
        let list = boilerplate::open(path)?;
        params.shingling.boilerplate = Some(boilerplate::digest(&list));
        params.check()?;
        Ok(Some(list))
    }

    /// Puts a copy of the list into the folder of a new index, where it is found.
    pub(crate) fn keep(list: Option<&Boilerplate>, index: &Path) -> anyhow::Result<()> {
        list.map_or(Ok(()), |list| boilerplate::copy(list, index))
    }

    /// The option, if it was given.
    pub(crate) fn option(&self) -> Option<&'static str> {
        self.boilerplate.is_some().then_some("boilerplate")
    }

    /// The sketcher of an index.
    pub(crate) fn sketcher(&self, index: &Index) -> anyhow::Result<Sketcher> {
        boilerplate::sketcher(index, self.boilerplate.as_deref())
    }
}
