//! Passages of texts in memory.

use rayon::prelude::*;
use twindex::Error;
use twindex_join::Watched;
use twindex_passages::{Exact, Gram, Grams, Hashed, Line, Recurring, Work};

use super::options::{How, Passages};
use super::texts::Hashing;
use crate::text::TextOptions;

/// Texts that are worked on together.
const TOGETHER: usize = 4096;

/// What texts in memory share with those before them: the definition of [`Passages`], without files.
///
/// ```
/// use twindex_corpus::PassagesOfTexts;
///
/// let texts = ["x all rights are reserved y", "All rights are reserved!"];
/// let lines = PassagesOfTexts { min_words: 4, ..PassagesOfTexts::default() }.run(&texts)?;
/// assert_eq!((lines[0].document, lines[0].start, lines[0].end), (1, 0, 23));
/// assert_eq!((lines[0].first_document, lines[0].first_start, lines[0].words), (0, 2, 4));
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PassagesOfTexts {
    /// The fewest words of a passage, 1 to 65,535; 50 by default.
    pub min_words: usize,
    /// What makes passages equal: their tokens by default.
    pub exact: Exact,
    /// Whether a passage may repeat one of its own text.
    pub within: bool,
    /// How texts are cut into words.
    pub text: TextOptions,
    /// Bytes for work that can go to disk instead.
    pub memory: usize,
}

impl Default for PassagesOfTexts {
    fn default() -> Self {
        let memory = crate::dedup::MEMORY;
        Self { min_words: 50, exact: Exact::Tokens, within: false, text: TextOptions::default(), memory }
    }
}

impl PassagesOfTexts {
    /// The passages, in the order of the texts, on the threads of the pool of rayon that it is called in. Documents of a
    /// line are places in `texts`, and other places are bytes of a text.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::InvalidOptions); a text of 4 GiB or more; the system's, of scratch files in its folder of
    /// temporary files.
    pub fn run(&self, texts: &[&str]) -> anyhow::Result<Vec<Line>> {
        self.run_watched(texts, &Watched::default())
    }

    /// As [`run`](Self::run), while another thread sees how far it has come, and may end it. Its stages are `counting` and
    /// `finding`, of texts.
    ///
    /// # Errors
    ///
    /// As there; what [`Watched::check`] says.
    pub fn run_watched(&self, texts: &[&str], watched: &Watched) -> anyhow::Result<Vec<Line>> {
        let mut options = Passages::new(Vec::<std::path::PathBuf>::new(), "");
        options.min_words = Some(self.min_words);
        options.exact = self.exact;
        options.text = self.text.clone();
        let how = options.how()?;
        if let Some(long) = texts.iter().map(|text| text.len()).find(|&bytes| u32::try_from(bytes).is_err()) {
            return Err(
                Error::Limit { what: "bytes of a text", limit: u32::MAX.into(), found: long as u64 }.into()
            );
        }
        if u32::try_from(texts.len()).is_err() {
            let found = texts.len() as u64;
            return Err(Error::Limit { what: "texts", limit: u32::MAX.into(), found }.into());
        }
        let scratch = tempfile::tempdir()
            .map_err(|error| Error::io("create a scratch folder in", &std::env::temp_dir(), error))?;
        let bytes = texts.iter().map(|text| text.len() as u64).sum();
        options.memory = self.memory;
        let recurring = Recurring::new(options.filter_bytes(Some(bytes)))?;
        let state = || State::new(&how);
        watched.begin("counting", texts.len() as u64);
        texts.par_iter().try_for_each_init(state, |state, text| {
            watched.advance(1)?;
            state.hashing.hash(text, &mut state.hashed);
            state.work.count(&state.hashed, &recurring, self.within);
            Ok::<_, Error>(())
        })?;
        watched.begin("finding", texts.len() as u64);
        let mut grams = Grams::of_words(scratch.path(), self.memory / 4, how.shape.width());
        for (number, some) in texts.chunks(TOGETHER).enumerate() {
            let found: Vec<Vec<Gram>> = some
                .par_iter()
                .map_init(state, |state, text| {
                    let mut found = Vec::new();
                    watched.advance(1)?;
                    state.hashing.hash(text, &mut state.hashed);
                    state.work.for_each_recurring(&state.hashed, &recurring, |gram| found.push(gram));
                    Ok(found)
                })
                .collect::<Result<_, Error>>()?;
            for (document, found) in (number * TOGETHER..).zip(found) {
                found.iter().try_for_each(|gram| grams.push(document as u32, gram))?;
            }
        }
        let mut lines = Vec::new();
        grams.finish(self.within)?.for_each_line(|line| {
            lines.push(line);
            watched.check()
        })?;
        Ok(lines)
    }
}

/// Working memory of a thread.
struct State<'h> {
    hashing: Hashing<'h>,
    hashed: Hashed,
    work: Work,
}

impl<'h> State<'h> {
    fn new(how: &'h How) -> Self {
        let work = Work::new(how.shape, how.hasher);
        Self { hashing: Hashing::new(how), hashed: Hashed::default(), work }
    }
}
