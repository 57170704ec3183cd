//! Defines the options for the content of an index, for verbs that create an index or sketches.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use twindex::Params;
use twindex::design::{CodecChoice, DesignChoice, WITHIN_MAX};
use twindex::params::{
    BANDS_MAX, BOTTOM_MAX, FEATURE_BITS_MAX, Family, MINIMA_MAX, MinhashWeights, Near, ParamsBuilder, Preset,
    SIGNATURE_BITS, SIMHASH_BITS, SimhashWeights, WeightUnit,
};
use twindex::planner::banding::{Banding, MINIMA};
use twindex::sketch::IdfTable;
use twindex_corpus::contents;
use twindex_corpus::idf;
use twindex_corpus::settings::{Near as GivenValue, Rule, Scope, Weights};
use twindex_corpus::sharing::bits_kept;
use twindex_corpus::text::{ExistingParams, check_option};

use crate::differs::{IdfTables, InBuild};
use crate::options::{TextArgs, Usage};
use crate::settings_args::{Options, Pick};

/// Options for the content of a new index. For an existing index, given options must agree with its parameters. `P` picks
/// the options of the rule.
#[derive(Args, Clone, Debug)]
pub(crate) struct ParamArgs<P: Pick = InBuild> {
    /// Methods for which the index keeps data [default: both; simhash alone for raw fingerprints and with --simhash-bits]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "METHODS")]
    method: Vec<Method>,
    #[command(flatten)]
    rule: Options<Rule, P>,
    /// Design of the permutation tables: auto, small, fast, or a design by name: blocks-M, choose-M-J, nested-A-B,
    /// expansion; or a design that misses some documents: prefix-P, reversed-P, random-T-P-SEED. `twindex plan` compares
    /// them [default: auto]
    #[arg(long, value_name = "NAME", value_parser = parse_design)]
    design: Option<DesignChoice>,
    /// How tables are encoded: auto, planes, compact, manku or plain. With +2, +3 or +4 appended, all entries but the
    /// first have this number of bytes instead of complete fingerprints [default: auto]
    #[arg(long, value_name = "CODEC", value_parser = parse_codec)]
    codec: Option<CodecChoice>,
    #[command(flatten)]
    text: TextArgs,
    /// Number of MinHash bands [default: 20]
    #[arg(long, value_name = "B", value_parser = clap::value_parser!(u16).range(1..=i64::from(BANDS_MAX)))]
    bands: Option<u16>,
    /// Number of minima in a band [default: 6]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u16).range(1..=i64::from(MINIMA_MAX)))]
    rows: Option<u16>,
    /// Bands and rows of a named scheme: broder-84, broder-200, small-8, lsh-20x6 and others
    #[arg(long, value_name = "NAME", value_parser = parse_preset, conflicts_with_all = ["bands", "rows"])]
    preset: Option<Preset>,
    /// Number of bits of each minimum to keep for estimates of resemblance: 0, 1, 2, 4, 8, 16 or 32 [default: 8]
    #[arg(long, value_name = "BITS", value_parser = parse_signature_bits)]
    signature_bits: Option<u8>,
    /// Number of bits of each feature to keep, 1 to 32, and to compare unless a query requests fewer. 8 gives Broder's
    /// features of one byte; several of them must agree (--sharing) [default: 32; 8 with --preset small-8]
    #[arg(long, value_name = "BITS", value_parser = clap::value_parser!(u8).range(1..=i64::from(FEATURE_BITS_MAX)))]
    feature_bits: Option<u8>,
    /// Family of hash functions whose minima are taken [default: one-permutation-filled]
    #[arg(long, value_name = "FAMILY", value_parser = family_parser())]
    family: Option<Family>,
    /// Weight of a shingle in the simhash: its number of occurrences, or 1 [default: occurrences]
    #[arg(long, value_enum, value_name = "WEIGHTS", conflicts_with = "idf")]
    simhash_weights: Option<OccurrenceWeights>,
    /// Keep the T smallest hashes of each document, to estimate how much of it another document contains, 0 to 4096
    /// [default: 0]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(..=i64::from(BOTTOM_MAX)))]
    bottom: Option<u16>,
    /// Keep the hashes of each document that are divisible by M, on average one in M, to estimate containment for
    /// documents of any length; 0 keeps none [default: 0]
    #[arg(long, value_name = "M")]
    modulus: Option<u32>,
    /// Whether to keep the distinct shingle hashes of each document, about 11 bytes each, from which resemblance is
    /// counted exactly, and marks for duplicates; with `containment` also lists of all hashes, 4.5 bytes for each, which
    /// `query --near containment:J` looks up [default: kept, if documents are near by resemblance]
    #[arg(long, value_enum, value_name = "WHETHER")]
    sets: Option<Sets>,
    #[command(flatten)]
    tables: Options<Scope, IdfTables>,
}

/// The kind of documents in a new index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DocumentKind {
    Texts,
    Features,
    /// Fingerprints with strings as keys.
    Fingerprints,
    /// Fingerprints of this many bits with strings as keys, which no tables find.
    Codes(u16),
    /// Raw fingerprints with numbers as keys.
    RawFingerprints,
}

impl DocumentKind {
    /// Returns the kind of documents that are sketched: features, or texts.
    pub(crate) fn documents(features: bool) -> Self {
        if features { Self::Features } else { Self::Texts }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Method {
    Simhash,
    Minhash,
}

/// Whether an index keeps sets of shingle hashes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sets {
    Kept,
    Containment,
    None,
}

impl Sets {
    fn in_words(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Containment => "kept with lists for containment",
            Self::None => "not kept",
        }
    }
}

/// How shingles are weighted in the simhash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OccurrenceWeights {
    Occurrences,
    Distinct,
}

impl OccurrenceWeights {
    fn name(self) -> &'static str {
        match self {
            Self::Occurrences => "occurrences",
            Self::Distinct => "distinct",
        }
    }
}

/// Returns the weights in minima, samples and sets as an index parameter. `table` is the table of `--idf`.
fn minhash_weights(weights: Weights, table: Option<&IdfTable>) -> anyhow::Result<MinhashWeights> {
    Ok(match weights {
        Weights::Distinct => MinhashWeights::Distinct,
        Weights::Frequencies => MinhashWeights::Frequencies,
        Weights::Idf => {
            let table = table.ok_or_else(|| Usage::new("--weights idf needs a table: --idf FILE"))?;
            MinhashWeights::Idf { table: table.digest() }
        }
    })
}

/// Returns whether the weights of an index are of this kind. Any IDF table is accepted.
fn is_of(weights: Weights, kept: MinhashWeights) -> bool {
    match weights {
        Weights::Distinct => kept == MinhashWeights::Distinct,
        Weights::Frequencies => kept == MinhashWeights::Frequencies,
        Weights::Idf => matches!(kept, MinhashWeights::Idf { .. }),
    }
}

/// The values of `--near`.
#[derive(Clone, Copy, Debug, Default)]
struct GivenNear {
    /// The resemblance, or the share of `containment:J`. Bands are made for this value.
    threshold: Option<f64>,
    within: Option<u16>,
    containment: Option<f64>,
}

impl GivenNear {
    /// Returns the option with the resemblance or share, in the user's spelling.
    fn share(self) -> Option<String> {
        match (self.containment, self.threshold) {
            (Some(share), _) => Some(format!("--near containment:{share}")),
            (None, threshold) => threshold.map(|threshold| format!("--near {threshold}")),
        }
    }
}

fn family_parser() -> impl TypedValueParser<Value = Family> {
    PossibleValuesParser::new(Family::ALL.iter().map(|family| family.name()))
        .map(|name| Family::named(&name).expect("a name from the list"))
}

/// Returns the parameters of a new index of fingerprints of any width.
fn codes(builder: ParamsBuilder, bits: u16, within: Option<u16>) -> anyhow::Result<Params> {
    let Some(within) = within else {
        let why = format!("fingerprints of {bits} bits: give --near within:K, the distance of near ones");
        return Err(Usage::new(why).into());
    };
    builder.codes(bits, within).build().map_err(|error| Usage::new(error.to_string()).into())
}

impl<P: Pick> ParamArgs<P> {
    /// Reads the table of `--idf`, and checks that it matches the kind of documents and the text options.
    pub(crate) fn table(&self, features: bool) -> anyhow::Result<Option<IdfTable>> {
        self.tables.idf.as_deref().map(|path| idf::open_for(path, &self.text, features)).transpose()
    }

    /// Reads the table of `--idf` for existing sketches. `sketches` is the first file of sketches, for messages.
    ///
    /// # Errors
    ///
    /// The sketches were made with another table, `--idf` is missing although they were made with a table, or `--idf`
    /// was given although they were made without one.
    pub(crate) fn table_of(&self, sketches: &Path, params: &Params) -> anyhow::Result<Option<IdfTable>> {
        let needed = params.sketch().idf_table()?.is_some();
        let Some(path) = &self.tables.idf else {
            ensure!(!needed, "{}: made with an idf table; name it with --idf FILE", sketches.display());
            return Ok(None);
        };
        ensure!(
            needed,
            "{}: made without an idf table, and --idf {} was given; leave it out",
            sketches.display(),
            path.display()
        );
        let table = idf::open(path)?;
        table.check(&params.sketch()).with_context(|| {
            format!("{}: not the idf table that {} was made with", path.display(), sketches.display())
        })?;
        Ok(Some(table))
    }

    /// Returns the files that the options name: the table of `--idf` and the list of stop words.
    pub(crate) fn files(&self) -> Vec<PathBuf> {
        self.tables.idf.iter().cloned().chain(self.text.file()).collect()
    }

    /// Returns whether `--idf` was given.
    pub(crate) fn names_table(&self) -> bool {
        self.tables.idf.is_some()
    }

    /// Returns an error if documents are features but options for tokenizing texts were given.
    pub(crate) fn check_features(&self, features: bool) -> anyhow::Result<()> {
        self.text.settings.check_features(features)
    }

    /// Returns an error if documents are fingerprints but options for tokenizing or weighting texts were given.
    pub(crate) fn check_fingerprints(&self, fingerprints: bool) -> anyhow::Result<()> {
        let bits = self.rule.simhash_bits;
        let within = self.given_near()?.within.filter(|_| !fingerprints);
        if !bits.are_long() {
            check_within(within)?;
        }
        let weighting = [
            ("--simhash-bits", bits.are_long()),
            ("--idf", self.tables.idf.is_some()),
            ("--simhash-weights", self.simhash_weights.is_some()),
            ("--weights", self.weights().is_some()),
        ];
        if let Some((option, _)) = weighting.iter().find(|(_, given)| fingerprints && *given) {
            let why = format!(
                "{option} is for shingles of texts, and --fingerprint-field reads no texts: leave it out"
            );
            return Err(Usage::new(why).into());
        }
        self.text.settings.check_fingerprints(fingerprints)
    }

    /// Returns the kind of documents that are fingerprints of this many bits; `None` if there are none.
    pub(crate) fn kind_of_fingerprints(&self, bits: Option<usize>) -> Result<DocumentKind, Usage> {
        let is_far = self.given_near()?.within.is_some_and(|within| within > WITHIN_MAX.into());
        Ok(match bits {
            Some(bits) if bits > 64 || is_far => DocumentKind::Codes(bits as u16),
            _ => DocumentKind::Fingerprints,
        })
    }

    /// Returns the parameters of a new index.
    pub(crate) fn params(&self, brought: DocumentKind, table: Option<&IdfTable>) -> anyhow::Result<Params> {
        let raw = !matches!(brought, DocumentKind::Texts | DocumentKind::Features);
        // Fingerprints that are read from records use the parameters of features, so that texts are never compared with
        // them.
        let features = !matches!(brought, DocumentKind::Texts | DocumentKind::RawFingerprints);
        let (bands, rows) = self.banding()?;
        let simhash_bits = self.rule.simhash_bits;
        let wanted = |method| {
            if self.method.is_empty() {
                !(raw || simhash_bits.are_long()) || method == Method::Simhash
            } else {
                self.method.contains(&method)
            }
        };
        let near = self.given_near()?;
        self.check_simhash_bits((raw, wanted(Method::Simhash)), near)?;
        if near.within.is_some() && !wanted(Method::Simhash) {
            return Err(Usage::new("--near within:K goes with --method simhash").into());
        }
        if (self.design.is_some() || self.codec.is_some()) && !wanted(Method::Simhash) {
            return Err(Usage::new("--design and --codec go with --method simhash").into());
        }
        if self.simhash_weights.is_some() && !wanted(Method::Simhash) {
            return Err(Usage::new("--simhash-weights goes with --method simhash").into());
        }
        if (self.bands.is_some()
            || self.rows.is_some()
            || self.signature_bits.is_some()
            || self.feature_bits.is_some()
            || self.family.is_some()
            || self.weights().is_some()
            || self.rule.weight_unit.is_some())
            && !wanted(Method::Minhash)
        {
            return Err(Usage::new(
                "--bands, --rows, --signature-bits, --feature-bits, --family, --weights and --weight-unit go with --method \
                 minhash",
            )
            .into());
        }
        if raw && (self.bottom.unwrap_or(0) > 0 || self.modulus.unwrap_or(0) > 0) {
            return Err(Usage::new("--bottom and --modulus need documents, not raw fingerprints").into());
        }
        if let Some((option, _)) = self.named_banding()?.filter(|_| !wanted(Method::Minhash)) {
            return Err(Usage::new(format!("{option} goes with --method minhash")).into());
        }
        let mut builder = Params::builder().shingling(contents::shingling(&self.text, features, table)?);
        builder = builder.bottom(self.bottom.unwrap_or(0)).modulus(self.modulus.unwrap_or(0));
        if brought == DocumentKind::RawFingerprints {
            builder = builder.u64_keys();
        }
        if table.is_some() && !wanted(Method::Simhash) && self.weights() != Some(Weights::Idf) {
            return Err(Usage::new("--idf goes with --method simhash, or with --weights idf").into());
        }
        if let DocumentKind::Codes(bits) = brought {
            return codes(builder, bits, near.within);
        }
        if wanted(Method::Simhash) {
            builder = self.with_simhash(builder, near.within, table);
        }
        if wanted(Method::Minhash) {
            builder = builder.minhash(bands.unwrap_or(20), rows.unwrap_or(6));
            builder = builder.signature_bits(self.signature_bits.unwrap_or(8));
            builder = builder.feature_bits(self.feature_bits.unwrap_or_else(|| bits_kept(self.preset)));
            builder = builder.family(self.family.unwrap_or(Family::OnePermutationFilled));
            builder = builder.minhash_weights(minhash_weights(self.rule.weights, table)?);
            builder = match self.rule.weight_unit {
                Some(unit) => builder.weight_unit(unit),
                None => builder,
            };
        }
        let near = self.given_near()?;
        let is_by_distance = near.within.is_some() && near.threshold.is_none();
        match self.sets {
            Some(Sets::None) => {}
            None if raw || !wanted(Method::Minhash) || is_by_distance || self.weighs_fractions(features) => {}
            Some(_) if is_by_distance => {
                return Err(Usage::new(
                    "--sets goes with a resemblance in --near: sets count it, and within:K compares fingerprints",
                )
                .into());
            }
            Some(_) if raw || !wanted(Method::Minhash) => {
                return Err(Usage::new("--sets goes with documents and --method minhash").into());
            }
            _ => builder = builder.sets().marks(),
        }
        if self.sets == Some(Sets::Containment) {
            builder = builder.suffixes();
        }
        // Each single value is already valid. The builder detects values that contradict each other.
        let build = |builder: ParamsBuilder| builder.build().map_err(|error| Usage::new(error.to_string()));
        let params = build(builder.clone())?;
        Ok(match self.near()? {
            Some(near) => build(builder.near(near))?,
            None => params,
        })
    }

    /// Returns an error for simhashes of more than 64 bits without simhash or a distance, or of no texts.
    fn check_simhash_bits(&self, (raw, wanted): (bool, bool), near: GivenNear) -> Result<(), Usage> {
        let why = match self.rule.simhash_bits.are_long() {
            true if raw => {
                "--simhash-bits is for the simhashes of texts, and fingerprints are taken as they are: leave it out"
            }
            true if !wanted || near.within.is_none() => {
                "--simhash-bits goes with --method simhash and --near within:K, the distance of near documents"
            }
            _ => return Ok(()),
        };
        Err(Usage::new(why))
    }

    /// Adds the simhash. `within` was checked.
    fn with_simhash(
        &self,
        builder: ParamsBuilder,
        within: Option<u16>,
        table: Option<&IdfTable>,
    ) -> ParamsBuilder {
        let weights = match (table, self.simhash_weights) {
            (Some(table), _) => table.weights(),
            (None, Some(OccurrenceWeights::Distinct)) => SimhashWeights::Distinct,
            (None, _) => SimhashWeights::Occurrences,
        };
        let bits = self.rule.simhash_bits;
        let builder = if bits.are_long() {
            builder.simhash_weighted(0, weights).simhash_bits(bits.bits())
        } else {
            builder.simhash_weighted(within.unwrap_or(3) as u8, weights)
        };
        match (self.design, self.codec) {
            (None, None) if bits.are_long() => builder,
            (design, codec) => builder.tables(design.unwrap_or_default(), codec.unwrap_or_default()),
        }
    }

    /// Returns whether weights may be fractions, which sets cannot store.
    fn weighs_fractions(&self, features: bool) -> bool {
        match self.rule.weights {
            _ if self.rule.weight_unit.is_some() => false,
            Weights::Idf => true,
            Weights::Frequencies => features && self.family == Some(Family::Darts),
            Weights::Distinct => false,
        }
    }

    /// Returns the weights of shingles in the resemblance, if the user gave them.
    fn weights(&self) -> Option<Weights> {
        self.rule.is_given("weights").then_some(self.rule.weights)
    }

    /// Returns the values of `--near`: at most one resemblance or containment, and one distance.
    fn given_near(&self) -> Result<GivenNear, Usage> {
        let mut given = GivenNear::default();
        for near in self.rule.values("near") {
            let is_twice = match near {
                GivenValue::Within(within) => given.within.replace(within).is_some(),
                GivenValue::Containment(share) => {
                    given.containment = Some(share);
                    given.threshold.replace(share).is_some()
                }
                GivenValue::Resemblance(threshold) => given.threshold.replace(threshold).is_some(),
                GivenValue::Equal => false, // the parser refuses these values
            };
            if is_twice {
                return Err(Usage::new("--near: give one resemblance, one distance, or one of each"));
            }
        }
        if given.containment.is_some() && given.within.is_some() {
            return Err(Usage::new(
                "--near containment:J goes alone: containment is counted, without distances",
            ));
        }
        let by_number = [("--bands", self.bands.is_some()), ("--rows", self.rows.is_some())];
        let mut bands = by_number.into_iter().chain([("--preset", self.preset.is_some())]);
        match (given.share(), bands.find(|(_, given)| *given)) {
            (Some(near), Some((option, _))) => {
                Err(Usage::new(format!("{near} and {option} both say which bands are made; leave one out")))
            }
            _ => Ok(given),
        }
    }

    /// Returns the share of `--near containment:J`.
    pub(crate) fn containment(&self) -> Result<Option<f64>, Usage> {
        Ok(self.given_near()?.containment)
    }

    /// Returns bands and rows. Each is `None` if no option gives or implies it.
    fn banding(&self) -> Result<(Option<u16>, Option<u16>), Usage> {
        Ok(match self.named_banding()? {
            Some((_, Banding { bands, rows })) => (Some(bands), Some(rows)),
            None => (self.bands, self.rows),
        })
    }

    /// Returns bands and rows if `--near J` or `--preset` implies them, and the text of that option.
    fn named_banding(&self) -> Result<Option<(String, Banding)>, Usage> {
        let near = self.given_near()?;
        if let (Some(threshold), Some(option)) = (near.threshold, near.share()) {
            return Ok(Some((option, Banding::for_threshold(threshold))));
        }
        Ok(self.preset.map(|Preset { name, scheme, .. }| {
            (format!("--preset {name}"), Banding { bands: scheme.groups, rows: scheme.group_size })
        }))
    }

    /// Returns the near relation in the options, which replaces the near relation of the index; `None` if no such option was
    /// given.
    pub(crate) fn near(&self) -> anyhow::Result<Option<Near>> {
        let given = self.given_near()?;
        Ok(match (given.threshold, given.within) {
            (None, None) => None,
            (None, Some(within)) => Some(Near::within(within)),
            (Some(threshold), within) => Some(named(threshold, within)?),
        })
    }

    /// Returns an error if options contradict the parameters of an existing index or file of sketches.
    pub(crate) fn check(&self, made: &ExistingParams<'_>) -> anyhow::Result<()> {
        self.check_kept(made)?;
        let ExistingParams { path, params, noun } = made;
        let near = params.near();
        let given = self.given_near()?;
        if let Some(threshold) = given.threshold {
            self.check_banding(made)?;
            ensure!(
                near.threshold == named(threshold, None)?.threshold,
                "{}: documents are near by {near} in this {noun}, --near {threshold} was given; leave it out, or make \
                 another {noun}",
                path.display()
            );
        }
        if let Some(within) = given.within {
            let kept = params.codes.map(|codes| codes.near);
            let kept = kept.or(params.simhash.map(|simhash| simhash.within.into()));
            ensure!(
                kept == Some(within),
                "{}: within is {} in this {noun}, --near within:{within} was given; leave it out, or make another {noun}",
                path.display(),
                kept.map_or_else(|| "none".to_owned(), |kept| kept.to_string())
            );
            ensure!(
                near.within == Some(within),
                "{}: documents are near by {near} in this {noun}, --near within:{within} was given; leave it out, or \
                 make another {noun}",
                path.display()
            );
        }
        Ok(())
    }

    /// Returns an error if `--near J` or `--preset` implies other bands than `params`.
    fn check_banding(
        &self,
        ExistingParams { path, params, noun }: &ExistingParams<'_>,
    ) -> anyhow::Result<()> {
        if let Some((option, asked)) = self.named_banding()? {
            let kept = params.minhash.map(|minhash| (minhash.bands, minhash.rows));
            ensure!(
                kept == Some((asked.bands, asked.rows)),
                "{}: bands x rows are {} in this {noun}, {option} has {} x {}; leave it out, or make another {noun}",
                path.display(),
                kept.map_or_else(|| "none".to_owned(), |(bands, rows)| format!("{bands} x {rows}")),
                asked.bands,
                asked.rows
            );
        }
        Ok(())
    }

    /// Like [`check`](Self::check), but ignores the options for the near relation.
    pub(crate) fn check_kept(&self, made: &ExistingParams<'_>) -> anyhow::Result<()> {
        self.text.settings.check(made)?;
        if self.preset.is_some() {
            self.check_banding(made)?;
        }
        let ExistingParams { path, params, noun } = made;
        for (option, given) in [
            ("bands", self.bands.map(u64::from)),
            ("rows", self.rows.map(u64::from)),
            ("signature-bits", self.signature_bits.map(u64::from)),
            ("bottom", self.bottom.map(u64::from)),
            ("modulus", self.modulus.map(u64::from)),
        ] {
            check_option(made, option, option, given.map(|given| given.to_string()).as_deref())?;
        }
        let bits = params.minhash.map(|minhash| minhash.feature_bits);
        ensure!(
            self.feature_bits.is_none() || self.feature_bits == bits,
            "{}: {} bits are kept of each feature in this {noun}, --feature-bits {} was given; leave it out, or make \
             another {noun}",
            path.display(),
            bits.unwrap_or(0),
            self.feature_bits.unwrap_or(0)
        );
        let (kept, bits) = (params.sketch().simhash_bits, self.rule.simhash_bits.bits());
        ensure!(
            !self.rule.is_given("simhash_bits") || bits == kept,
            "{}: simhashes have {kept} bits in this {noun}, --simhash-bits {bits} was given; leave it out, or make another \
             {noun}",
            path.display()
        );
        let simhash = if kept > SIMHASH_BITS { "codes-simhash" } else { "simhash" };
        for (option, field, given) in [
            ("simhash-weights", simhash, self.simhash_weights.map(OccurrenceWeights::name)),
            ("family", "minhash", self.family.map(Family::name)),
        ] {
            check_option(made, option, field, given)?;
        }
        if let Some(weights) = self.weights() {
            ensure!(
                is_of(weights, params.sketch().minhash_weights()),
                "{}: shingles weigh otherwise in this {noun} than --weights says; leave it out, or make another \
                 {noun}",
                path.display()
            );
        }
        let unit = params.minhash.and_then(|minhash| minhash.unit);
        ensure!(
            self.rule.weight_unit.is_none() || self.rule.weight_unit == unit,
            "{}: weights are {} in this {noun}, --weight-unit {} was given; leave it out, or make another {noun}",
            path.display(),
            unit.map_or_else(|| "not rounded".to_owned(), |unit| format!("rounded to units of {unit}")),
            self.rule.weight_unit.unwrap_or(WeightUnit::ONE)
        );
        let made_with = match (params.sets, params.suffixes) {
            (false, _) => Sets::None,
            (true, false) => Sets::Kept,
            (true, true) => Sets::Containment,
        };
        if let Some(sets) = self.sets {
            ensure!(
                sets == made_with,
                "{}: sets are {} in this {noun}, and {} by --sets; leave it out, or make another {noun}",
                path.display(),
                made_with.in_words(),
                sets.in_words()
            );
        }
        for (option, field, given) in [
            ("design", "tables", self.design.map(|design| design.to_string())),
            ("codec", "codec", self.codec.map(|codec| codec.to_string())),
        ] {
            check_option(made, option, field, given.as_deref())?;
        }
        let says = |kept| if kept { "kept" } else { "not kept" };
        for (method, name, kept) in [
            (Method::Simhash, "simhash", params.sketch().simhash.is_some()),
            (Method::Minhash, "minhash", params.minhash.is_some()),
        ] {
            ensure!(
                self.method.is_empty() || self.method.contains(&method) == kept,
                "{}: {name} is {} in this {noun}, and {} by the --method given; leave it out, or make another {noun}",
                path.display(),
                says(kept),
                says(!kept)
            );
        }
        Ok(())
    }
}

/// Returns an error for a radius that only fingerprints without tables have.
pub(crate) fn check_within(within: Option<u16>) -> Result<(), Usage> {
    match within.filter(|&within| within > WITHIN_MAX.into()) {
        Some(within) => Err(Usage::new(format!(
            "--near within:{within}: within:0 to within:{WITHIN_MAX} are found by tables; larger ones go with --simhash-bits or \
             --fingerprint-field"
        ))),
        None => Ok(()),
    }
}

/// Returns the near relation for a resemblance, and for a distance if one is given.
fn named(threshold: f64, within: Option<u16>) -> anyhow::Result<Near> {
    let near = Near::resembling(threshold)?;
    Ok(within.map_or(near, |within| near.or_within(within)))
}

/// Returns the parser for the number of minima from which bands are built: at least the default of `dedup`.
pub(crate) fn parse_minima() -> impl clap::builder::TypedValueParser<Value = u16> {
    clap::value_parser!(u16).range(i64::from(MINIMA)..=i64::from(BANDS_MAX))
}

fn parse_design(name: &str) -> Result<DesignChoice, String> {
    name.parse().map_err(|error: twindex::Error| error.to_string())
}

fn parse_codec(name: &str) -> Result<CodecChoice, String> {
    name.parse().map_err(|error: twindex::Error| error.to_string())
}

pub(crate) fn parse_signature_bits(text: &str) -> Result<u8, String> {
    let bits = text.parse().ok().filter(|bits| SIGNATURE_BITS.contains(bits));
    bits.ok_or_else(|| format!("expected one of {}", SIGNATURE_BITS.map(|bits| bits.to_string()).join(", ")))
}

/// Parses the name of a preset.
pub(crate) fn parse_preset(name: &str) -> Result<Preset, String> {
    Preset::named(name)
        .ok_or_else(|| format!("expected one of {}", Preset::ALL.map(|preset| preset.name).join(", ")))
}
