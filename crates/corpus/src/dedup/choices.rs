//! Checks the options of `dedup` for contradictions and derives the parameters of a run from them.

use std::collections::HashMap;
use std::fmt::Display;
use std::fs;
use std::ops::RangeInclusive;

use anyhow::anyhow;
use twindex::Params;
use twindex::params::{
    BANDS_MAX, BOTTOM_MAX, FEATURE_BITS_MAX, Near, SIGNATURE_BITS, SimhashWeights, WeightUnit,
};
use twindex::planner::banding::{Banding, MINIMA, MINIMA_TO_ESTIMATE, RECALL};
use twindex::sketch::IdfTable;
use twindex_join::SampledBy;

use super::annotated::Annotations;
use super::near::{Join, Verify};
use super::priority::Keep;
use super::rules::{Clustering, NearMeasure};
use super::weights::Weights;
use super::{BOTTOM, Dedup, IndexOf, ListedPairs, MEMORY_MIN, Method, THRESHOLD_MIN};
use crate::contents;
use crate::error::InvalidOptions;
use crate::input::{AnnotatedFields, AnnotationOptions, DecidingFields, Documents, InputOptions, inside_of};
use crate::observer::Observer;
use crate::sharing;

/// Records of up to this number of bytes are accepted with any memory budget.
const RECORD_BYTES: usize = 8 << 20;

/// Returns an error if a number is NaN or out of its range.
pub(super) fn check_range<T: Copy + PartialOrd + Display>(
    name: &str,
    number: T,
    range: RangeInclusive<T>,
) -> Result<(), InvalidOptions> {
    if range.contains(&number) {
        return Ok(());
    }
    let (lower, upper) = range.into_inner();
    Err(InvalidOptions::new(format!("{name}: expected {lower} to {upper}, found {number}")))
}

/// Checks the options that deduplication of files and of texts in memory share.
pub(super) fn check_common(
    threshold: f64,
    max_bucket: Option<u32>,
    memory: usize,
) -> Result<(), InvalidOptions> {
    check_range("threshold", threshold, THRESHOLD_MIN..=1.0)?;
    check_range("max_bucket", max_bucket.unwrap_or(2), 2..=u32::MAX)?;
    check_range("memory", memory, MEMORY_MIN..=usize::MAX)
}

/// Returns an error if the cluster size is out of its range, or if the clustering rule does not use it.
pub(super) fn check_clusters(clusters: Clustering, max_cluster: Option<u32>) -> Result<(), InvalidOptions> {
    check_range("max_cluster", max_cluster.unwrap_or(u32::MAX), 2..=u32::MAX)?;
    if max_cluster.is_some() && clusters != Clustering::Components {
        return Err(InvalidOptions::new(
            "--max-cluster goes with --clusters components: others have no chains to be cut",
        ));
    }
    Ok(())
}

/// Returns an error if large clusters are to be split and the kept document is determined by a number of each document.
pub(super) fn check_cut(keep: Keep, max_cluster: Option<u32>) -> Result<(), InvalidOptions> {
    if max_cluster.is_some() && keep.by_number() {
        return Err(InvalidOptions::new(
            "--max-cluster does not go with --keep max or min: components are cut in the order of the input",
        ));
    }
    Ok(())
}

/// Returns an error if an option is set that containment does not support.
pub(super) fn check_containment(
    near: NearMeasure,
    clusters: Clustering,
    pairs: ListedPairs,
) -> Result<(), InvalidOptions> {
    if near == NearMeasure::Containment && (clusters != Clustering::Leaders || pairs != ListedPairs::Covering)
    {
        return Err(InvalidOptions::new(
            "--near containment goes with --clusters leaders and --pairs covering: a pair does not say which of two \
             documents is contained in the other",
        ));
    }
    Ok(())
}

impl Dedup {
    /// Returns an error if a number is out of its range. Needed for library users: the command-line parser checks
    /// ranges itself.
    fn check_ranges(&self) -> Result<(), InvalidOptions> {
        check_common(self.threshold(), self.max_bucket, self.memory)?;
        check_range("within", self.within.unwrap_or(0), 0..=10)?;
        check_range("modulus", self.modulus.unwrap_or(1), 1..=u32::MAX)?;
        check_range("bottom", self.bottom.unwrap_or(1), 1..=BOTTOM_MAX)?;
        check_range("minima", self.minima.unwrap_or(MINIMA), MINIMA..=BANDS_MAX)?;
        check_range("sharing.features", self.sharing.features.unwrap_or(1), 1..=BANDS_MAX)?;
        check_range("sharing.bits", self.sharing.bits.unwrap_or(1), 1..=FEATURE_BITS_MAX.into())?;
        let bits = self.signature_bits.unwrap_or(0);
        if !SIGNATURE_BITS.contains(&bits) {
            let why = format!("signature_bits: expected one of {SIGNATURE_BITS:?}, found {bits}");
            return Err(InvalidOptions::new(why));
        }
        for (one, other, both) in [
            ("modulus", "bottom", self.modulus.is_some() && self.bottom.is_some()),
            ("preset", "minima", self.preset.is_some() && self.minima.is_some()),
        ] {
            if both {
                return Err(InvalidOptions::new(format!("--{one} and --{other} exclude each other")));
            }
        }
        Ok(())
    }

    /// Returns an error if options contradict each other.
    pub fn check(&self) -> anyhow::Result<()> {
        self.check_ranges()?;
        self.check_annotation()?;
        if self.inputs.is_empty() {
            return Err(InvalidOptions::new(
                "nothing to deduplicate: name INPUT files or folders, or - for standard input",
            )
            .into());
        }
        if self.within.is_some() && self.method != Method::Simhash {
            return Err(InvalidOptions::new("--within goes with --method simhash").into());
        }
        self.check_weights()?;
        if self.threshold.is_some() && !self.resembles() {
            return Err(InvalidOptions::new("--threshold goes with --method minhash or shingles").into());
        }
        if self.preset.is_some() && !self.resembles() {
            return Err(InvalidOptions::new("--preset goes with --method minhash or shingles").into());
        }
        if self.minima.is_some() && !self.resembles() {
            return Err(InvalidOptions::new("--minima goes with --method minhash or shingles").into());
        }
        let sketches = [("--modulus", self.modulus.is_some()), ("--bottom", self.bottom.is_some())];
        if let Some((option, _)) =
            sketches.into_iter().find(|&(_, given)| given && self.method != Method::Shingles)
        {
            return Err(InvalidOptions::new(format!("{option} goes with --method shingles")).into());
        }
        self.check_fingerprints()?;
        self.check_history_keys()?;
        self.check_left_out()?;
        self.check_join()?;
        self.check_index()?;
        check_clusters(self.clusters, self.max_cluster)?;
        check_cut(self.keep, self.max_cluster)?;
        check_containment(self.near, self.clusters, self.pairs)?;
        self.check_fields()?;
        if self.near == NearMeasure::Containment && !self.compares_with_kept() {
            return Err(InvalidOptions::new(
                "--near containment goes with --method minhash and --verify exact, and not with --join bands: it is \
                 counted",
            )
            .into());
        }
        if self.max_work.is_some() && !(self.resembles() && self.clusters == Clustering::Leaders) {
            return Err(InvalidOptions::new(
                "--max-work goes with --method minhash or shingles, and --clusters leaders: others do not count comparisons",
            )
            .into());
        }
        if !self.texts.is_empty() && (self.against.is_empty() || !self.counts()) {
            return Err(InvalidOptions::new(
                "--texts goes with --against where resemblance is counted: --verify exact, or --method exact",
            )
            .into());
        }
        if self.method == Method::Exact
            && let Some(option) = self.text.cutting()
        {
            return Err(InvalidOptions::new(format!(
                "--{option} says how text is cut into shingles, and --method exact compares whole texts; --normal-form \
                 and --fold go with it"
            ))
            .into());
        }
        self.text.check_features(self.input.features)?;
        self.text.check_fingerprints(self.input.fingerprint.is_some())
    }

    /// Returns an error if weights are set but unused, or if they need an IDF table and none is given.
    fn check_weights(&self) -> Result<(), InvalidOptions> {
        if self.idf.is_some() && self.method != Method::Simhash && self.weights != Weights::Idf {
            return Err(InvalidOptions::new("--idf goes with --method simhash, or with --weights idf"));
        }
        if self.weights != Weights::Distinct && !self.is_weighted() {
            return Err(InvalidOptions::new(
                "--weights goes with --method minhash and --verify exact, and not with --join bands: it is counted",
            ));
        }
        if self.weights == Weights::Idf && self.idf.is_none() {
            return Err(InvalidOptions::new(
                "--weights idf needs a table: --idf FILE, which `twindex idf` makes",
            ));
        }
        if self.weight_unit.is_some() && self.unit().is_none() {
            return Err(InvalidOptions::new(
                "--weight-unit goes with --weights idf, and with --weights tf and --features-field: other weights are whole",
            ));
        }
        Ok(())
    }

    /// Returns the unit to which fractional weights are rounded; `None` if all weights are integers.
    fn unit(&self) -> Option<WeightUnit> {
        let has_fractions = match self.weights {
            Weights::Distinct => false,
            Weights::Frequencies => self.input.features,
            Weights::Idf => true,
        };
        has_fractions.then(|| self.weight_unit.unwrap_or(WeightUnit::ONE))
    }

    /// Reports the unit to which weights are rounded, and the bound of the rounding error.
    pub(super) fn note_weights(&self, observer: &dyn Observer) {
        if let Some(unit) = self.unit() {
            observer.note(&format!(
                "--weights: rounded to whole units of {unit}, and counted exactly then; a resemblance differs from that of \
                 unrounded weights by at most {unit} / the mean weight of the shingles of both documents. A smaller \
                 --weight-unit is more exact; each unit costs as much as a shingle"
            ));
        }
    }

    /// Returns an error if documents are fingerprints and an option needs their texts.
    fn check_fingerprints(&self) -> Result<(), InvalidOptions> {
        if self.input.fingerprint.is_none() {
            return Ok(());
        }
        let method = match self.method {
            Method::Minhash => Some("--method minhash"),
            Method::Shingles => Some("--method shingles"),
            Method::Exact => Some("--method exact"),
            Method::Simhash => None,
        };
        let longest = (self.keep == Keep::Longest).then_some("--keep longest");
        let idf = self.idf.is_some().then_some("--idf");
        match method.or(longest).or(idf) {
            Some(option) => Err(InvalidOptions::new(format!(
                "{option} needs texts, and --fingerprint-field brings fingerprints without them: they are compared by their \
                 Hamming distance, --method simhash --within K"
            ))),
            None => Ok(()),
        }
    }

    /// Returns an error if an option names a field that no other option uses.
    fn check_fields(&self) -> Result<(), InvalidOptions> {
        self.keep.check_field(self.keep_field.as_deref())?;
        if self.inside.is_some() && !self.against.is_empty() && !self.counts() {
            return Err(InvalidOptions::new(
                "--inside goes with --against where the texts of the history are read: an index has no field; leave out \
                 --method simhash or --verify signature",
            ));
        }
        Ok(())
    }

    /// Returns the options for reading the inputs: with the fields that decide which documents are kept, and with a
    /// record size limit that fits the memory budget.
    pub(super) fn input_options(&self) -> InputOptions {
        let mut options = InputOptions { record_bytes_max: self.record_bytes_max(), ..self.input.clone() };
        let (inside, inside_url) = inside_of(self.inside.as_deref());
        let (number, url) = (self.keep_field.clone(), self.url_field.clone());
        options.attached.deciding =
            DecidingFields { number, inside, url, inside_url, ..DecidingFields::default() };
        options.reserved =
            self.annotated().or_else(|| self.sized()).map_or_else(Vec::new, |noted| noted.names());
        options
    }

    /// Returns the fields to add to all documents; `None` if annotated documents are not requested.
    pub(super) fn annotated(&self) -> Option<AnnotationOptions> {
        self.annotations.all.then(|| AnnotationOptions {
            prefix: self.annotations.prefix.clone(),
            notes: AnnotatedFields::Decided,
        })
    }

    /// Returns the fields to add to kept documents; `None` if none are requested.
    pub(super) fn sized(&self) -> Option<AnnotationOptions> {
        self.annotations.cluster_size.then(|| AnnotationOptions {
            prefix: self.annotations.prefix.clone(),
            notes: AnnotatedFields::Size,
        })
    }

    /// Returns an error if the options for added fields contradict the other options.
    fn check_annotation(&self) -> Result<(), InvalidOptions> {
        let Annotations { all, cluster_size, prefix } = &self.annotations;
        if !prefix.is_empty() && !all && !cluster_size {
            return Err(InvalidOptions::new("--annotation-prefix goes with --annotate or --cluster-size"));
        }
        AnnotationOptions::check_prefix(prefix)
    }

    /// Returns the size limit of a record in bytes: the limit of the options, but at most half of the memory budget or
    /// [`RECORD_BYTES`], whichever is larger.
    fn record_bytes_max(&self) -> usize {
        self.input.record_bytes_max.min((self.memory / 2).max(RECORD_BYTES))
    }

    /// If the memory budget lowered the size limit of records and a record exceeded it, adds to the error the option
    /// that raises the limit.
    pub(super) fn with_memory_advice(&self, error: anyhow::Error) -> anyhow::Error {
        let upper = self.record_bytes_max();
        let is_for_memory = upper < self.input.record_bytes_max
            && format!("{error:#}").contains(&format!("of more than {upper} bytes"));
        if is_for_memory {
            error.context("a record takes about eight times its length: give --memory as much, or more")
        } else {
            error
        }
    }

    /// Opens the input documents without reading them. If only equal texts are duplicates, texts are compared after the
    /// requested normalization and folding.
    pub(super) fn open(&self, params: &Params) -> anyhow::Result<Documents> {
        self.check_named_once()?;
        let mut documents = Documents::open(&self.inputs, &self.input_options())?;
        if self.method == Method::Exact {
            documents.compare_normalised(&params.shingling)?;
        } else if let Some(dropped) = params.shingling.tokens.dropped() {
            let tokens = params.shingling.tokens;
            documents
                .set_dropped_remark(format!("with --tokens {tokens} no difference is made by {dropped}"));
        }
        Ok(documents)
    }

    /// Returns an error if an input is named twice, since each of its documents would be a duplicate of itself.
    fn check_named_once(&self) -> anyhow::Result<()> {
        let mut seen = HashMap::new();
        for path in &self.inputs {
            // A path that cannot be resolved is reported when it is opened.
            let Ok(resolved) = fs::canonicalize(path) else { continue };
            if let Some(first) = seen.insert(resolved, path) {
                let again = if first == path { String::new() } else { format!(" (as {})", first.display()) };
                let shown = path.display();
                return Err(anyhow!("{shown}: the input is named twice{again}, name it once"));
            }
        }
        Ok(())
    }

    /// Returns an error if options about the join contradict the other options.
    fn check_join(&self) -> anyhow::Result<()> {
        if self.join.is_some() && self.method != Method::Minhash {
            return Err(InvalidOptions::new("--join goes with --method minhash").into());
        }
        if self.sharing.are_given() && (self.method != Method::Minhash || self.join() != Join::Bands) {
            return Err(InvalidOptions::new("--sharing and --feature-bits go with --join bands").into());
        }
        if !self.resembles() {
            let given =
                [("--verify", self.verify.is_some()), ("--signature-bits", self.signature_bits.is_some())];
            if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(
                    InvalidOptions::new(format!("{option} goes with --method minhash or shingles")).into()
                );
            }
        }
        if self.method == Method::Shingles && self.verify() == Verify::None {
            return Err(InvalidOptions::new(
                "--verify none goes with --method minhash: what sketches have in common is counted in any case",
            )
            .into());
        }
        if let Some(join @ (Join::Auto | Join::Prefix)) = self.join
            && self.verify() != Verify::Exact
        {
            let name = if join == Join::Auto { "auto" } else { "prefix" };
            return Err(InvalidOptions::new(format!(
                "--join {name} goes with --verify exact: it reads the shingles, and with these resemblance is exact"
            ))
            .into());
        }
        if !self.against.is_empty() && self.counts() && self.join() == Join::Bands {
            return Err(InvalidOptions::new(
                "--join bands finds nothing near a history: leave it out with --against, or estimate with --verify \
                 signature",
            )
            .into());
        }
        if !self.against.is_empty() && !self.counts() && self.resembles() && self.signature_bits == Some(0) {
            // The index would store only bands, so it could not verify whether documents that share a band are near.
            return Err(InvalidOptions::new("--against needs --signature-bits of 1 or more").into());
        }
        if self.method == Method::Minhash
            && self.verify() == Verify::Signature
            && self.signature_bits == Some(0)
        {
            return Err(InvalidOptions::new("--verify signature needs --signature-bits of 1 or more").into());
        }
        Ok(())
    }

    /// Returns an error if no index is written, and an option is given that would only change the index.
    fn check_index(&self) -> Result<(), InvalidOptions> {
        if self.index != IndexOf::None {
            return Ok(());
        }
        let by_bands = self.method == Method::Minhash && self.join() == Join::Bands;
        let estimates = self.method == Method::Minhash && self.verify() == Verify::Signature;
        // The index of a history is queried by the bands of this run.
        let needs_bands = by_bands || !self.against.is_empty() && !self.counts();
        let unused = [
            ("--sets", self.sets.is_some()),
            ("--signature-bits", self.signature_bits.is_some() && !estimates),
            ("--preset", self.preset.is_some() && !needs_bands),
            ("--minima", self.minima.is_some() && !needs_bands),
        ];
        match unused.into_iter().find(|&(_, is_unused)| is_unused) {
            Some((option, _)) => Err(InvalidOptions::new(format!(
                "{option} does not go with --index none: in this run it would change only the index, and none is written; \
                 leave out one of the two"
            ))),
            None => Ok(()),
        }
    }

    /// Returns whether the run writes an index to the results folder, and the HTML report about it.
    #[must_use]
    pub fn writes_index(&self) -> bool {
        self.index != IndexOf::None && self.method != Method::Exact
    }

    /// Returns whether near documents are found with an index of all documents.
    pub(super) fn searches_index(&self) -> bool {
        match self.method {
            Method::Minhash => self.join() == Join::Bands,
            Method::Simhash => true,
            Method::Shingles | Method::Exact => false,
        }
    }

    /// Returns whether documents are compared by resemblance.
    #[must_use]
    pub fn resembles(&self) -> bool {
        matches!(self.method, Method::Minhash | Method::Shingles)
    }

    /// Returns whether each document is compared only with the documents kept before it, by exact resemblance.
    pub(super) fn compares_with_kept(&self) -> bool {
        self.method == Method::Minhash
            && self.verify() == Verify::Exact
            && self.join() != Join::Bands
            && self.clusters == Clustering::Leaders
    }

    /// Returns whether shingles may have weights: the join finds all pairs and verifies them by sets of elements.
    fn is_weighted(&self) -> bool {
        self.method == Method::Minhash && self.verify() == Verify::Exact && self.join() != Join::Bands
    }

    /// Returns the rule by which the elements of the sketches are sampled; `None` if the method does not compare sampled
    /// sketches.
    pub fn sampled_by(&self) -> Option<SampledBy> {
        let by = self.modulus.map_or(SampledBy::Bottom(self.bottom.unwrap_or(BOTTOM)), SampledBy::Modulus);
        (self.method == Method::Shingles).then_some(by)
    }

    /// Returns the method that verifies candidate pairs.
    #[must_use]
    pub fn verify(&self) -> Verify {
        let by_method = if self.method == Method::Shingles { Verify::Signature } else { Verify::Exact };
        self.verify.unwrap_or(by_method)
    }

    /// Returns the method that finds candidate pairs.
    #[must_use]
    pub fn join(&self) -> Join {
        self.join.unwrap_or(if self.verify() == Verify::Exact { Join::Auto } else { Join::Bands })
    }

    /// Returns the threshold: the smallest resemblance of near documents. Default 0.8.
    #[must_use]
    pub fn threshold(&self) -> f64 {
        self.threshold.unwrap_or(0.8)
    }

    /// Returns the number of minima in each document's signature, from which the bands are formed.
    #[must_use]
    pub fn minima(&self) -> u16 {
        let estimates = self.method == Method::Minhash && self.verify() == Verify::Signature;
        self.minima.unwrap_or(if estimates { MINIMA_TO_ESTIMATE } else { MINIMA })
    }

    /// Returns the banding that finds candidate pairs.
    #[must_use]
    pub fn banding(&self) -> Banding {
        self.preset.map_or_else(
            || Banding::of_minima(self.minima(), self.threshold()),
            |preset| Banding { bands: preset.scheme.groups, rows: preset.scheme.group_size },
        )
    }

    /// With [`Method::Exact`], reports if texts are compared for equality after normalization. If a preset is used whose
    /// expected recall is below the recall of the default bands, reports the expected recall.
    pub fn note_recall(&self, params: &Params, observer: &dyn Observer) -> anyhow::Result<()> {
        if self.method == Method::Exact && params.shingling.normalises() {
            observer.note(
                "identical texts are those that are equal after --normal-form and --fold, not byte for byte",
            );
        }
        let by_bands = self.method == Method::Minhash && self.join() == Join::Bands;
        let (Some(preset), Some(kept), true) = (self.preset, params.minhash, by_bands) else { return Ok(()) };
        // The number of documents is not known yet. For many documents with small features, more bands must agree.
        let agreement = self.sharing.agreement(kept, 0)?;
        let threshold = self.threshold();
        let recall = sharing::recall(kept, agreement, threshold);
        if recall < RECALL {
            let at_least = match agreement.features {
                1 => String::new(),
                features => format!(", by {features} or more that agree,"),
            };
            observer.note(&format!(
                "--preset {}: its {} bands of {} minima{at_least} find {:.1} % of the pairs at the threshold of \
                 {threshold}; without it, {:.1} %",
                preset.name,
                kept.bands,
                kept.rows,
                recall * 100.0,
                Banding::of_minima(self.minima(), threshold).recall(threshold) * 100.0
            ));
        }
        Ok(())
    }

    /// Returns the parameters of the sketches, and of the index in the results folder, `OUT/index`.
    pub fn params(&self, table: Option<&IdfTable>) -> anyhow::Result<Params> {
        let shingling = contents::shingling(&self.text, self.input.is_brought(), table)?;
        let builder = Params::builder().shingling(shingling);
        Ok(match self.method {
            Method::Minhash | Method::Shingles | Method::Exact => {
                let banding = self.banding();
                let builder = builder
                    .minhash(banding.bands, banding.rows)
                    .feature_bits(sharing::bits_kept(self.preset));
                // Queries of the index use the same measure and threshold as this run.
                let builder = match self.near {
                    NearMeasure::Resemblance => builder.near(Near::resembling(self.threshold())?),
                    NearMeasure::Containment => builder,
                };
                let builder = builder.minhash_weights(self.weights.of_index(table));
                let builder = match self.unit() {
                    Some(unit) => builder.weight_unit(unit),
                    None => builder,
                };
                let keeps_sets = self.sets.unwrap_or(true) && self.holds_sets();
                let builder = if keeps_sets { builder.sets().marks() } else { builder };
                // Later runs can then also compare only documents with the same value of the field.
                let keeps_values = keeps_sets && self.inside.is_some();
                let builder = if keeps_values { builder.values() } else { builder };
                let builder = match self.sampled_by() {
                    None => builder,
                    Some(SampledBy::Bottom(t)) => builder.bottom(t),
                    Some(SampledBy::Modulus(modulus)) => builder.modulus(modulus),
                };
                self.signature_bits
                    .into_iter()
                    .fold(builder, twindex::params::ParamsBuilder::signature_bits)
                    .build()?
            }
            Method::Simhash => {
                let weights = table.map_or(SimhashWeights::Occurrences, IdfTable::weights);
                builder.simhash_weighted(self.within.unwrap_or(3), weights).build()?
            }
        })
    }
}
