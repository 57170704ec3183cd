//! The two passes over texts as separate steps, for jobs in which a framework such as Spark moves the rows.

use twindex::Error;

use crate::passages::find::finder::{FinderScratch, Gram};
use crate::passages::find::hashed::Hashed;
use crate::passages::memory::PassagesOfTexts;
use crate::passages::options::CutSettings;
use crate::passages::texts::Hashing;

/// The steps of [`PassagesOfTexts`] for one text at a time. The caller combines the results of all texts. A *t-gram* is
/// a run of `min_words` words. Fingerprints that are [selected](Self::for_each_selected) at least twice are recurring.
/// The t-grams [with these fingerprints](Self::for_each_gram) include all t-grams that occur twice; t-grams with the
/// same hash are equal. The caller then applies the definition: the first occurrence of a t-gram is the source of the
/// others, and consecutive positions with consecutive sources form a passage.
///
/// ```
/// use std::collections::HashSet;
/// use twindex_corpus::{PassageSteps, PassagesOfTexts};
///
/// let mut steps = PassageSteps::new(&PassagesOfTexts { min_words: 4, ..PassagesOfTexts::default() })?;
/// let fingerprints = |text: &str, steps: &mut PassageSteps| -> anyhow::Result<HashSet<u64>> {
///     let mut all = HashSet::new();
///     steps.for_each_selected(text, |fingerprint| { all.insert(fingerprint); })?;
///     Ok(all)
/// };
/// let texts = ["x all rights are reserved y", "All rights are reserved!"];
/// let [a, b] = [fingerprints(texts[0], &mut steps)?, fingerprints(texts[1], &mut steps)?];
/// let recurring: HashSet<u64> = a.intersection(&b).copied().collect();
/// let mut grams = Vec::new();
/// for text in texts {
///     steps.for_each_gram(text, |fingerprint| recurring.contains(&fingerprint), |gram| grams.push(gram))?;
/// }
/// let equal = |a: &&twindex_corpus::PassageGram| grams.iter().filter(|b| a.hash == b.hash).count() == 2;
/// assert_eq!(grams.iter().filter(equal).map(|gram| gram.position).collect::<Vec<_>>(), [1, 0]);
/// # Ok::<(), anyhow::Error>(())
/// ```
pub struct PassageSteps {
    how: CutSettings,
    hashed: Hashed,
    work: FinderScratch,
}

impl PassageSteps {
    /// Creates the steps of a job. `within`, `keep` and `memory` of the job are not used.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::InvalidOptions).
    pub fn new(job: &PassagesOfTexts) -> anyhow::Result<Self> {
        let how = job.how()?;
        let work = FinderScratch::new(how.shape, how.hasher);
        Ok(Self { how, hashed: Hashed::default(), work })
    }

    fn hash(&mut self, text: &str) -> twindex::Result<()> {
        if u32::try_from(text.len()).is_err() {
            let found = text.len() as u64;
            return Err(Error::Limit { what: "bytes of a text", limit: u32::MAX.into(), found });
        }
        Hashing::new(&self.how).hash(text, &mut self.hashed);
        Ok(())
    }

    /// Passes the fingerprint of each selected position in a text to `each`. Returns the number of words in the text.
    ///
    /// # Errors
    ///
    /// A text of 4 GiB or more.
    pub fn for_each_selected(&mut self, text: &str, mut each: impl FnMut(u64)) -> twindex::Result<u32> {
        self.hash(text)?;
        self.work.for_each_selected(&self.hashed, |_, fingerprint| each(fingerprint));
        Ok(self.hashed.words_of_all())
    }

    /// Passes to `each` the t-grams of a text whose selected fingerprint `is_wanted` accepts. Returns the number of
    /// words in the text.
    ///
    /// # Errors
    ///
    /// A text of 4 GiB or more.
    pub fn for_each_gram(
        &mut self,
        text: &str,
        is_wanted: impl FnMut(u64) -> bool,
        each: impl FnMut(Gram),
    ) -> twindex::Result<u32> {
        self.hash(text)?;
        self.work.for_each_gram(&self.hashed, is_wanted, each);
        Ok(self.hashed.words_of_all())
    }
}
