//! Opens the inputs of a run, and reads all documents into the corpus.

use crate::input::documents::Documents;
use crate::input::options::InputKinds;
use crate::results::layout::kept_files;
use crate::settings::job::Dedup;
use crate::settings::results::Also;

impl Dedup {
    /// Opens the input documents without reading them. Options for reading also apply to the texts of the history.
    pub(crate) fn open_inputs(&self) -> anyhow::Result<Documents> {
        let options = self.input_options()?;
        let documents = Documents::open_part(&self.reading.inputs, &options)?;
        let kinds = documents.kinds();
        kinds.check_revisits(self.results.adds(Also::Revisits))?;
        kinds.check_compression(self.results.compress.is_some(), false)?;
        let history = if self.scope.texts.is_empty() {
            // A folder that has no results is reported when the history is opened.
            let kept =
                self.scope.against.iter().filter_map(|folder| kept_files(folder).ok().flatten()).flatten();
            InputKinds::of_names(kept)
        } else {
            Documents::kinds_of(&self.scope.texts, &options)?
        };
        kinds.and(history).check(&options)?;
        Ok(documents)
    }
}
