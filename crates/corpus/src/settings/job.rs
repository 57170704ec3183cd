//! The settings of `dedup`: checks them for contradictions and derives the parameters of a run from them.

use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;
use serde_json::{Map, Value as Json};
use twindex::Params;
use twindex::params::{Near as NearInIndex, ParamsBuilder, SimhashWeights, WeightUnit};
use twindex::planner::banding::{Banding, MINIMA};
use twindex::sketch::IdfTable;

use crate::error::InvalidOptions;
use crate::input::fields::deciding::{DecidingFields, inside_of};
use crate::input::kept::annotate::{AnnotatedFields, AnnotationOptions};
use crate::input::options::InputOptions;
use crate::rule::repeated::RepeatedKeys;
use crate::settings::declared::{AnySettings, read_json, to_json};
use crate::settings::near::{Near, THRESHOLD, WITHIN_MAX_OF_INDEX};
use crate::settings::reading::{Fingerprints, Reading};
use crate::settings::resources::Resources;
use crate::settings::results::{Also, IndexOf, Results};
use crate::settings::rule::{BoilerplateSpans, Keep, Rule, Weights};
use crate::settings::scope::Scope;
use crate::settings::text::TextOptions;
use crate::settings::value::Value;
use crate::sketching::sets::{self, IDF_WITHOUT_TABLE, UNIT_OF_WHOLE_WEIGHTS};
use crate::sketching::{contents, sharing};
use crate::work::observer::Observer;

/// A deduplication job, described by its settings. [`new`](Self::new) sets the defaults.
///
/// ```
/// # fn main() -> twindex_corpus::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// # let (pages, out) = (dir.path().join("pages.jsonl"), dir.path().join("deduped"));
/// # let text = "the quick brown fox jumps over the lazy dog and sleeps in the sun until the evening";
/// # let line = |id: &str, text: &str| format!("{{\"id\":\"{id}\",\"text\":\"{text}\"}}\n");
/// # std::fs::write(&pages, [line("a", text), line("b", text), line("c", "another text")].concat())?;
/// use twindex_corpus::{Dedup, Near};
///
/// let mut dedup = Dedup::new([pages], &out);
/// dedup.rule.near = Some(Near::Resemblance(0.9));
/// let report = dedup.run()?;
/// assert_eq!((report.kept, report.removed), (2, 1));
/// let kept = std::fs::read_to_string(out.join("kept.jsonl"))?;
/// assert_eq!(kept.lines().count(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dedup {
    /// The inputs, and how they are read.
    pub reading: Reading,
    /// Fingerprints that are read instead of texts.
    pub fingerprints: Fingerprints,
    /// How texts are split into shingles.
    pub text: TextOptions,
    /// The rule by which documents are near, and the choice of the near document that is kept.
    pub rule: Rule,
    /// The documents that are compared with each other.
    pub scope: Scope,
    /// The files that are written.
    pub results: Results,
    /// The memory and the threads that the job may use.
    pub resources: Resources,
}

impl Dedup {
    /// Creates a job with the defaults: documents with a resemblance of at least 0.8 are near, and the first document
    /// of each cluster is kept.
    pub fn new<P: Into<PathBuf>>(inputs: impl IntoIterator<Item = P>, out: impl Into<PathBuf>) -> Self {
        let inputs = inputs.into_iter().map(Into::into).collect();
        Self {
            reading: Reading { inputs, ..Reading::default() },
            results: Results { out: out.into(), ..Results::default() },
            ..Self::default()
        }
    }

    /// Returns all settings, in the order of help.
    #[must_use]
    pub fn settings(&self) -> [&dyn AnySettings; 7] {
        let Self { reading, fingerprints, text, rule, scope, results, resources } = self;
        [results, reading, rule, scope, text, fingerprints, resources]
    }

    /// Returns all settings for changes, in the order of help.
    pub fn settings_mut(&mut self) -> [&mut dyn AnySettings; 7] {
        let Self { reading, fingerprints, text, rule, scope, results, resources } = self;
        [results, reading, rule, scope, text, fingerprints, resources]
    }
}

/// Records of up to this number of bytes are accepted with any memory budget.
const RECORD_BYTES: usize = 8 << 20;

/// A combination of settings that is refused: the condition that detects it, and the error message.
type Refusal = (fn(&Dedup) -> bool, &'static str);

/// A refused combination of settings of a rule. The condition receives the rule and the value or default of its `near`.
type RuleRefusal = (fn(&Rule, Near) -> bool, &'static str);

/// The refused combinations of settings of a rule, for files and for texts in memory.
const REFUSED_RULES: &[RuleRefusal] = &[
    (
        |rule, near| rule.simhash_bits.are_long() && near.within().is_none(),
        "--simhash-bits goes with --near within:K, which compares simhashes",
    ),
    (
        |rule, near| {
            rule.simhash_bits.are_long()
                && near.within().is_some_and(|within| within > rule.simhash_bits.bits())
        },
        "--near within:K: simhashes differ in at most --simhash-bits bits",
    ),
    (
        |rule, near| rule.weights != Weights::Distinct && near.threshold().is_none(),
        "--weights goes with a resemblance or containment in --near: they are counted",
    ),
    (
        |rule, near| rule.without_boilerplate.is_some() && near == Near::Equal,
        "--without-boilerplate says which words do not count for resemblance, and --near equal compares whole texts",
    ),
    (
        |rule, near| rule.max_work.is_some() && near.threshold().is_none(),
        "--max-work goes with a resemblance or containment in --near: others do not count comparisons",
    ),
];

/// The combinations that are refused when files are deduplicated.
const REFUSED: &[Refusal] = &[
    (
        |job| job.reading.inputs.is_empty(),
        "nothing to deduplicate: name INPUT files or folders, or - for standard input",
    ),
    (|job| job.results.out.as_os_str().is_empty(), "no folder for the results: name one with --out"),
    (
        |job| job.brings_fingerprints() && job.near().within().is_none(),
        "--fingerprint-field brings fingerprints without texts, and they are compared by distance: give --near within:K",
    ),
    (
        |job| {
            !job.brings_fingerprints()
                && !job.rule.simhash_bits.are_long()
                && job.near().within().is_some_and(|within| within > WITHIN_MAX_OF_INDEX)
        },
        "--near within:K with a K above 10 goes with --simhash-bits or --fingerprint-field",
    ),
    (
        |job| job.brings_fingerprints() && job.rule.simhash_bits.are_long(),
        "--simhash-bits is for the simhashes of texts, and --fingerprint-field brings fingerprints as they are",
    ),
    (
        |job| job.brings_fingerprints() && job.rule.keep.has(&Keep::Longest),
        "--keep longest needs texts, and --fingerprint-field brings fingerprints without them",
    ),
    (
        |job| job.brings_fingerprints() && job.scope.idf.is_some(),
        "--idf needs texts, and --fingerprint-field brings fingerprints without them",
    ),
    (
        |job| job.rule.without_boilerplate.is_some() && (job.brings_fingerprints() || job.brings_features()),
        "--without-boilerplate leaves spans out of texts, and there are none: leave it out",
    ),
    (
        |job| job.scope.idf.is_some() && job.near().within().is_none() && job.rule.weights != Weights::Idf,
        "--idf goes with --weights idf, or with --near within:K",
    ),
    (|job| job.rule.weights == Weights::Idf && job.scope.idf.is_none(), IDF_WITHOUT_TABLE),
    (|job| job.rule.weight_unit.is_some() && job.unit().is_none(), UNIT_OF_WHOLE_WEIGHTS),
    (
        |job| !job.scope.texts.is_empty() && job.scope.against.is_empty(),
        "--texts goes with --against: it names the texts of that index",
    ),
    (
        |job| job.scope.repeated_keys == RepeatedKeys::Last && !job.scope.against.is_empty(),
        "--repeated-keys last does not go with --against: documents of a history are not replaced; give number, first or \
         error",
    ),
    (
        |job| job.near() == Near::Equal && job.results.index != IndexOf::None,
        "--index goes with another --near than equal: an index finds near documents",
    ),
    (
        |job| job.results.annotation_prefix.is_some() && job.annotated().is_none() && job.sized().is_none(),
        "--annotation-prefix goes with --also annotated or --also sizes",
    ),
];

/// Returns an error if the rule for texts in memory combines settings that contradict each other. Makes its checks in
/// the order of [`Dedup::check`]. `has_table` is whether an IDF table is given, and `is_features` whether documents are
/// features instead of texts.
pub(crate) fn check_rule_of_texts(
    rule: &Rule,
    has_table: bool,
    is_features: bool,
) -> Result<(), InvalidOptions> {
    if rule.weights == Weights::Idf && !has_table {
        return Err(InvalidOptions::new(IDF_WITHOUT_TABLE));
    }
    if rule.weight_unit.is_some() && !has_fractions(rule.weights, is_features) {
        return Err(InvalidOptions::new(UNIT_OF_WHOLE_WEIGHTS));
    }
    check_rule(rule, rule.near.unwrap_or_default())
}

/// Returns whether weights may be fractions.
fn has_fractions(weights: Weights, is_features: bool) -> bool {
    match weights {
        Weights::Distinct => false,
        Weights::Frequencies => is_features,
        Weights::Idf => true,
    }
}

/// Returns an error if the rule combines settings that contradict each other. `near` is `rule.near` or its default.
pub(crate) fn check_rule(rule: &Rule, near: Near) -> Result<(), InvalidOptions> {
    refuse(REFUSED_RULES, |is_refused| is_refused(rule, near))
}

fn refuse<F>(refused: &[(F, &'static str)], applies: impl Fn(&F) -> bool) -> Result<(), InvalidOptions> {
    match refused.iter().find(|(condition, _)| applies(condition)) {
        Some((_, why)) => Err(InvalidOptions::new(*why)),
        None => Ok(()),
    }
}

impl Dedup {
    /// Returns an error if a setting is out of its range, or if settings contradict each other.
    pub fn check(&self) -> anyhow::Result<()> {
        self.settings().iter().try_for_each(|settings| settings.check())?;
        self.reading.options(&self.fingerprints)?;
        refuse(REFUSED, |is_refused| is_refused(self))?;
        check_rule(&self.rule, self.near())?;
        AnnotationOptions::check_prefix(self.annotation_prefix())?;
        self.text.check_near(self.near())?;
        self.text.check_features(self.brings_features())?;
        self.text.check_fingerprints(self.brings_fingerprints())
    }

    /// Returns whether documents are fingerprints instead of texts.
    #[must_use]
    pub fn brings_fingerprints(&self) -> bool {
        self.fingerprints.fingerprint_field.is_some()
    }

    /// Returns whether documents are features instead of texts.
    #[must_use]
    pub fn brings_features(&self) -> bool {
        self.reading.features_field.is_some()
    }

    /// Returns the rule by which documents are near. Default: a resemblance of 0.8; for fingerprints, at most 3 bits.
    #[must_use]
    pub fn near(&self) -> Near {
        let usual = if self.brings_fingerprints() { Near::Within(3) } else { Near::default() };
        self.rule.near.unwrap_or(usual)
    }

    /// Returns the threshold of resemblance or containment; 0.8 if neither is measured.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.near().threshold().unwrap_or(THRESHOLD)
    }

    /// Returns the unit to which fractional weights are rounded; `None` if all weights are integers.
    fn unit(&self) -> Option<WeightUnit> {
        let has_fractions = has_fractions(self.rule.weights, self.brings_features());
        has_fractions.then(|| self.rule.weight_unit.unwrap_or(WeightUnit::ONE))
    }

    /// Reports the unit to which weights are rounded, and the bound of the rounding error.
    pub(crate) fn note_weights(&self, observer: &dyn Observer) {
        if let Some(unit) = self.unit() {
            observer.note(&format!(
                "--weights: rounded to whole units of {unit}, and counted exactly then; a resemblance differs from that of \
                 unrounded weights by at most {unit} / the mean weight of the shingles of both documents. A smaller \
                 --weight-unit is more exact; each unit costs as much as a shingle"
            ));
        }
    }

    /// With [`Near::Equal`], reports to `observer` that texts are normalized before comparison, if options demand it.
    pub(crate) fn note_equality(&self, params: &Params, observer: &dyn Observer) {
        if self.near() == Near::Equal && params.shingling.normalises() {
            observer.note(
                "identical texts are those that are equal after --normal-form and --fold, not byte for byte",
            );
        }
    }

    /// Returns the options for reading the inputs. They include the fields that affect which documents are kept, and a
    /// record size limit that fits the memory budget.
    pub(crate) fn input_options(&self) -> Result<InputOptions, InvalidOptions> {
        let mut options = self.reading.options(&self.fingerprints)?;
        options.record_bytes_max = self.record_bytes_max();
        options.attached.deciding = self.deciding();
        options.reserved =
            self.annotated().or_else(|| self.sized()).map_or_else(Vec::new, |noted| noted.names());
        Ok(options)
    }

    /// Returns the fields that affect which documents are kept.
    pub(crate) fn deciding(&self) -> DecidingFields {
        let (inside, inside_url) = inside_of(self.scope.inside.as_deref());
        let keep = self.rule.keep.rules().to_vec();
        let url = self.scope.url_field.clone();
        DecidingFields { keep, inside, url, inside_url, ..DecidingFields::default() }
    }

    fn annotation_prefix(&self) -> &str {
        self.results.annotation_prefix.as_deref().unwrap_or_default()
    }

    /// Returns the options for the fields added to all documents; `None` if annotated documents are not requested.
    pub(crate) fn annotated(&self) -> Option<AnnotationOptions> {
        let prefix = self.annotation_prefix().to_owned();
        self.results
            .adds(Also::Annotated)
            .then_some(AnnotationOptions { prefix, notes: AnnotatedFields::Decided })
    }

    /// Returns the options for the fields added to kept documents; `None` if no such fields are requested.
    pub(crate) fn sized(&self) -> Option<AnnotationOptions> {
        let prefix = self.annotation_prefix().to_owned();
        self.results.adds(Also::Sizes).then_some(AnnotationOptions { prefix, notes: AnnotatedFields::Size })
    }

    /// Returns the size limit of a record in bytes: half of the memory budget or [`RECORD_BYTES`], whichever is larger,
    /// but at most the default limit.
    fn record_bytes_max(&self) -> usize {
        InputOptions::default().record_bytes_max.min((self.resources.memory / 2).max(RECORD_BYTES))
    }

    /// Adds advice to the error for a record above the size limit: the option that raises the limit. Does so only if
    /// the memory budget determined the limit.
    pub(crate) fn with_memory_advice(&self, error: anyhow::Error) -> anyhow::Error {
        let upper = self.record_bytes_max();
        let is_for_memory = upper < InputOptions::default().record_bytes_max
            && format!("{error:#}").contains(&format!("of more than {upper} bytes"));
        if is_for_memory {
            error.context("a record takes about eight times its length: give --memory as much, or more")
        } else {
            error
        }
    }

    /// Returns whether the run writes an index to the results folder.
    #[must_use]
    pub fn writes_index(&self) -> bool {
        self.results.index != IndexOf::None
    }

    /// Returns whether near documents are found with an index of all documents, unless fingerprints are compared as codes.
    pub(crate) fn searches_index(&self) -> bool {
        !self.rule.simhash_bits.are_long()
            && self.near().within().is_some_and(|within| within <= WITHIN_MAX_OF_INDEX)
    }

    /// Returns whether documents are fingerprints of any width, which no index holds.
    pub(crate) fn brings_codes_alone(&self) -> bool {
        self.brings_fingerprints() && !self.writes_index() && self.scope.against.is_empty()
    }

    /// Returns the parameters of an index of fingerprints of `bits` bits; `None` if the index of [`params`](Self::params)
    /// holds them, or if no index is written or searched.
    pub(crate) fn params_of_codes(&self, bits: usize) -> anyhow::Result<Option<Params>> {
        let Some(within) = self.near().within().filter(|_| !self.brings_codes_alone()) else {
            return Ok(None);
        };
        if !self.brings_fingerprints() || (bits <= 64 && within <= WITHIN_MAX_OF_INDEX) {
            return Ok(None);
        }
        let builder = Params::builder().shingling(contents::shingling(&self.text, true, None)?);
        let builder = builder.codes(bits as u16, within);
        let builder = if self.results.index == IndexOf::All { builder.marks() } else { builder };
        Ok(Some(self.with_values(builder).build()?))
    }

    /// Returns the parameters of the sketches, and of the index in the results folder, `OUT/index`.
    pub fn params(&self, table: Option<&IdfTable>) -> anyhow::Result<Params> {
        let is_brought = self.brings_features() || self.brings_fingerprints();
        let shingling = contents::shingling(&self.text, is_brought, table)?;
        let builder = Params::builder().shingling(shingling);
        if let Near::Within(within) = self.near() {
            let weights = table.map_or(SimhashWeights::Occurrences, IdfTable::weights);
            // A larger radius is for codes, which are not sketched.
            let of_tables = within.min(WITHIN_MAX_OF_INDEX) as u8;
            let mut builder = builder.simhash_weighted(of_tables, weights);
            if self.rule.simhash_bits.are_long() {
                let bits = self.rule.simhash_bits.bits();
                builder = builder.simhash_bits(bits).near(NearInIndex::within(within));
            }
            if self.results.index == IndexOf::All {
                builder = builder.marks();
            }
            return Ok(self.with_values(builder).build()?);
        }
        let Banding { bands, rows } = Banding::of_minima(MINIMA, self.threshold());
        let mut builder = builder.minhash(bands, rows).feature_bits(sharing::bits_kept(None));
        // Queries of the index use the same measure and threshold as this run.
        if !matches!(self.near(), Near::Containment(_)) {
            builder = builder.near(NearInIndex::resembling(self.threshold())?);
        }
        builder = builder.minhash_weights(sets::of_index(self.rule.weights, table));
        if let Some(unit) = self.unit() {
            builder = builder.weight_unit(unit);
        }
        if self.holds_sets() {
            builder = self.with_values(builder.sets().marks());
        }
        Ok(builder.build()?)
    }

    /// Stores the values of the `--inside` field, so that later runs can also compare only documents with the same value.
    fn with_values(&self, builder: ParamsBuilder) -> ParamsBuilder {
        if self.scope.inside.is_some() { builder.values() } else { builder }
    }

    /// Returns whether the method compares sets of shingles.
    pub(crate) fn holds_sets(&self) -> bool {
        self.near().threshold().is_some()
    }

    /// Returns the files and folders that a run reads in addition to the inputs.
    pub(crate) fn other_files(&self) -> Vec<PathBuf> {
        let spans = match &self.rule.without_boilerplate {
            Some(BoilerplateSpans::List(path)) => Some(path),
            _ => None,
        };
        self.scope
            .against
            .iter()
            .chain(&self.scope.texts)
            .chain(&self.scope.idf)
            .chain(spans)
            .cloned()
            .chain(self.text.file())
            .collect()
    }

    /// Reads settings from the file `run.json` of an earlier run, or from another file of the same format. Only the
    /// member `settings` is required.
    ///
    /// # Errors
    ///
    /// The file cannot be read, or has an unknown setting; the message suggests the most similar name. A relative path
    /// is an error if the file records that the run was started in another folder.
    pub fn of_file(path: &Path) -> anyhow::Result<Self> {
        #[derive(Deserialize)]
        struct JobFile {
            directory: Option<String>,
            settings: Map<String, Json>,
        }
        let read = || -> anyhow::Result<Self> {
            let json = std::fs::read(path).context("cannot be read")?;
            let file: JobFile = serde_json::from_slice(&json)?;
            let mut job = Self::default();
            read_json(&mut job.settings_mut(), &file.settings)?;
            if let Some(directory) = file.directory {
                let directory = PathBuf::parse(directory.as_ref()).map_err(anyhow::Error::msg)?;
                let paths = job.reading.inputs.iter().chain(&job.scope.against).chain(&job.scope.texts);
                let mut paths = paths.chain(&job.scope.idf).chain(std::iter::once(&job.results.out));
                let relative = paths.find(|path| path.is_relative() && path.as_os_str() != "-");
                if let Some(relative) =
                    relative.filter(|_| std::env::current_dir().ok() != Some(directory.clone()))
                {
                    anyhow::bail!(
                        "its run was begun in the folder {}, and {} is relative to it: go there to run it again",
                        directory.display(),
                        relative.display()
                    );
                }
            }
            Ok(job)
        };
        read().with_context(|| format!("--job {}", path.display()))
    }

    /// Returns the settings that are not the default as JSON, which [`of_file`](Self::of_file) reads.
    #[must_use]
    pub fn to_json(&self) -> String {
        let file = serde_json::json!({ "settings": to_json(self.settings().into_iter().flat_map(AnySettings::changed)) });
        serde_json::to_string_pretty(&file).unwrap_or_default()
    }
}
