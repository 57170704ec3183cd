//! `twindex dedup`: finds and removes near-duplicate documents. [`twindex_corpus::Dedup`] does the work; this file has
//! the options and prints the summary.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use twindex::params::{BOTTOM_MAX, Preset, WeightUnit};
use twindex_corpus::{Annotations, Dedup as Job, Report};
use twindex_join::SampledBy;

use crate::feature_args::FeatureArgs;
use crate::keep_args::{KeepArgs, parse_keep};
use crate::options::{CompressArgs, FingerprintArgs, IdsArgs, InputArgs, Output, Repeated, ResourceArgs};
use crate::param_args::{
    Sets, parse_minima, parse_preset, parse_signature_bits, parse_threshold, parse_weight_unit,
};
use crate::progress::Watching;
use crate::report::{self, count, counted};
use crate::text_args::TextArgs;

/// Options of `dedup`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex dedup pages.jsonl -o deduped\n  \
    twindex dedup a.jsonl.gz b.jsonl.zst --threshold 0.9 --keep longest -o deduped\n  \
    twindex dedup folder/of/texts -o deduped\n  \
    twindex dedup today.jsonl --against yesterday -o today\n  \
    twindex dedup large.jsonl -o deduped --resume   # the same again after a kill\n  \
    twindex dedup images.parquet --fingerprint-field phash --within 4 -o deduped\n  \
    zcat pages.jsonl.gz | twindex dedup - -o deduped\n\n\
    OUT/report.html   what was found, as one page without other files (not with --index none or --method exact)\n\
    OUT/pairs.tsv     document, kept, resemblance, intersection, union: each document that goes, with the one that is\n\
                      kept for it; with --pairs all every near pair, in columns a, b, a < b bytewise; sorted\n\
    OUT/clusters.tsv  key, cluster, kept, score: a line for every document; score is its resemblance to the kept one\n\
    OUT/kept.jsonl    the documents to keep, in the order of the input and in its form: kept.csv, .tsv, .parquet, .wet,\n\
                      .warc of such inputs, one for each header or set of columns; with --compress, kept.jsonl.zst\n\
    OUT/annotated.*   with --annotate: all documents, in the same forms, with what was decided about each\n\
    OUT/against.tsv   key, other, resemblance, ...: with --against, the documents that were dropped for it\n    \
    OUT/contained.tsv key, in, containment, ...: with --against and --near containment, the earlier documents that stand\n    \
                      in a later one that stays\n    \
    OUT/hosts.tsv     where keys, or the fields of --url-field, are URLs: pages of each host, and those near another page,
                      one of the host, one of another; OUT/mirrors.tsv has each two hosts with near pages, and shares
    OUT/boilerplate   with --without-boilerplate: the list of spans that did not count, for --against OUT, `stream`, `query`\n\
    OUT/revisits.warc with --write-revisits: what of a web archive was the same as a kept page\n    \
    OUT/run.json      the inputs and options, by which `twindex why OUT KEY` reads the documents again\n    \
    OUT/index         the index of the kept ones, for `query`, `stats`, `verify` (not with --index none or --method exact)\n\n\
    A run that is killed leaves its folder, `.twindex-dedup-XXXX` beside OUT, which may be deleted; with --resume it leaves\n\
    `.OUT.twindex-resume`, by which the same command continues.")]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of the command line")]
pub(crate) struct DedupArgs {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    fingerprint: FingerprintArgs,
    #[command(flatten)]
    ids: IdsArgs,
    /// What to do with a repeated key. Numbered keys are unique across all results, including those of --against OUT.
    /// `number` and `first` hold some 10 to 40 bytes for each document; `last` reads the inputs twice
    #[arg(long, value_enum, value_name = "HOW", default_value = "number")]
    repeated_keys: Repeated,
    /// Folder to create for the results
    #[arg(long, short, value_name = "OUT")]
    out: PathBuf,
    /// Replace OUT if an earlier run made it; without --resume, also remove the journal of an interrupted run
    #[arg(long)]
    force: bool,
    /// Keep a journal in the folder `.OUT.twindex-resume`, so that the same command can continue after a crash, and
    /// continue the run whose journal is there: documents are not sketched again, and finished stages are not repeated.
    /// The results are identical, byte for byte. Changed options or inputs are refused. Not with standard input
    #[arg(long)]
    resume: bool,
    /// Smallest resemblance of near-duplicates, 0.05 to 1 [default: 0.8]
    #[arg(long, value_name = "J", value_parser = parse_threshold)]
    threshold: Option<f64>,
    /// How the similarity of two documents is measured
    #[arg(long, value_enum, value_name = "WHAT", default_value = "resemblance")]
    near: NearMeasureArg,
    /// How near-duplicates are defined: by resemblance (MinHash candidates, verified exactly), by shingles that sketches
    /// share, by the distance of simhashes, or as equal texts only [default: minhash; simhash with --fingerprint-field]
    #[arg(long, value_enum)]
    method: Option<MethodArg>,
    /// Hamming radius for --method simhash, 0 to 10 [default: 3]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(0..=10))]
    within: Option<u8>,
    /// Remove documents that are near one that an earlier run kept, before comparing the remaining documents with each
    /// other. OUT is the result folder of that run, an index, or a file of kept documents. The sets of the index are queried, which costs about as
    /// much as processing the new documents. If the index cannot be used for exact counts (no sets, a lower --threshold
    /// than its own, other shingles, containment, --inside, --max-work), the texts in the folder, or those of --texts,
    /// are read instead. With --verify signature and --method simhash, the index must have been made with the same
    /// options. May be repeated
    #[arg(long, value_name = "OUT")]
    against: Vec<PathBuf>,
    /// The texts of the documents in the index named by --against, for exact counts
    #[arg(long, value_name = "INPUT")]
    texts: Vec<PathBuf>,
    /// Which documents OUT/index contains. `none` saves the time and the disk space of the index
    #[arg(long, value_enum, value_name = "WHICH", default_value = "kept")]
    index: IndexOfArg,
    /// Sketch of --method shingles: the hashes divisible by M, on average one in M; Broder's paper uses 25
    #[arg(long, value_name = "M", value_parser = clap::value_parser!(u32).range(1..), conflicts_with = "bottom")]
    modulus: Option<u32>,
    /// Sketch of --method shingles: the T smallest hashes of a document, 1 to 4096 [default: 128]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..=i64::from(BOTTOM_MAX)))]
    bottom: Option<u16>,
    /// Use the bands of a named scheme, as in `twindex build`, instead of bands that find 99.5 % of the pairs at the
    /// threshold
    #[arg(long, value_name = "NAME", value_parser = parse_preset)]
    preset: Option<Preset>,
    /// Number of minima from which the bands for the threshold are built, 120 to 1024. More minima improve estimates
    /// [default: 120; 512 with --verify signature]
    #[arg(long, value_name = "N", value_parser = parse_minima(), conflicts_with = "preset")]
    minima: Option<u16>,
    /// How candidates are found; bands miss some pairs near the threshold [default: auto, or bands if the verification
    /// is not exact]
    #[arg(long, value_enum, value_name = "HOW")]
    join: Option<Join>,
    #[command(flatten)]
    features: FeatureArgs,
    /// How candidates are verified [default: exact, or signature with --method shingles]
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<VerifyArg>,
    /// Number of bits of each minimum that the index keeps: 1, 2, 4, 8, 16 or 32, or 0 for none [default: 8]
    #[arg(long, value_name = "BITS", value_parser = parse_signature_bits)]
    signature_bits: Option<u8>,
    /// Whether the index keeps the shingle hashes of each document, about 11 bytes each, which `stream` and `query` need
    /// for exact counts [default: kept]
    #[arg(long, value_enum, value_name = "WHETHER")]
    sets: Option<Sets>,
    #[command(flatten)]
    text: TextArgs,
    /// Ignore text spans that more than N documents share, such as menus, footers and licences, when texts are compared.
    /// The list of spans is written to OUT/boilerplate. With --against OUT, the list of OUT is used, and N, if given,
    /// must be that of the list. The inputs are read three times. N should be larger than any group of copies
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    without_boilerplate: Option<u32>,
    /// Length of a span for --without-boilerplate in words, 1 to 65535 [default: 10]
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u32).range(1..=65_535))]
    boilerplate_words: Option<u32>,
    /// Ignore the spans in this list, OUT/boilerplate of an earlier run, instead of making a new list
    #[arg(long, value_name = "FILE")]
    boilerplate: Option<PathBuf>,
    /// Weight of a shingle in the resemblance: `distinct`, every shingle weighs the same; `tf`, the number of
    /// occurrences, or with --features-field the weight in the vector; `idf`, the `tf` weight multiplied by the inverse
    /// document frequency from --idf. Resemblance is the sum of the smaller weights divided by the sum of the larger
    /// weights
    #[arg(long, value_enum, value_name = "WEIGHTS", default_value = "distinct")]
    weights: WeightsArg,
    /// Unit to which fractional weights (--weights idf, and weights of vectors) are rounded, 1/256 to 2. Rounding
    /// changes a resemblance by at most U / the mean weight. A shingle needs memory and time in proportion to its number
    /// of units [default: 1]
    #[arg(long, value_name = "U", value_parser = parse_weight_unit)]
    weight_unit: Option<WeightUnit>,
    /// Weight the shingles of --method simhash, or of --weights idf, by this table from `twindex idf`; texts are
    /// tokenized as for the table
    #[arg(long, value_name = "FILE")]
    idf: Option<PathBuf>,
    /// Which of several near documents to keep: the `first` in the input; the `longest` by number of tokens (the first
    /// if several are equally long); the one with the `smallest-key`; the one whose key has the smallest hash,
    /// `key-hash`, which does not depend on the order of the input; or the one with the largest or smallest number in a
    /// field or column, `max:FIELD` or `min:FIELD` (the one with the smallest key if the numbers are equal)
    #[arg(long, value_name = "WHICH", value_parser = parse_keep, default_value = "first")]
    keep: KeepArgs,
    /// Compare only documents that have the same value in this field or column, for example a source or a language.
    /// Equal texts with different values are all kept. A document without the field is a bad record. `host` and `domain`
    /// are those of the document's URL; `field:NAME` is a field with any name
    #[arg(long, value_name = "FIELD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    inside: Option<String>,
    /// Field or column that holds the URL of each document, from which hosts are taken [default: the key, if it is a
    /// URL]
    #[arg(long, value_name = "FIELD", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    url_field: Option<String>,
    /// Which documents to remove
    #[arg(long, value_enum, value_name = "HOW", default_value = "leaders")]
    clusters: ClusteringArg,
    /// Which pairs to list in pairs.tsv. The number of all pairs can be quadratic in the number of documents;
    /// --max-bucket limits it
    #[arg(long, value_enum, value_name = "WHICH", default_value = "covering")]
    pairs: ListedPairsArg,
    /// Stop with an error after N comparisons of documents with kept ones. Sets that share their rarest shingles without
    /// being near are all compared with each other [default: no limit]
    #[arg(long, value_name = "N")]
    max_work: Option<u64>,
    /// With --clusters components, split components of more than N documents into clusters in which one document is near
    /// all others [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    max_cluster: Option<u32>,
    /// With --pairs all and --clusters components: limits the pairs of buckets, of texts that share a shingle, and of
    /// groups of identical documents. If they have more than N members, each member is paired only with the first one
    /// and the previous one. If that would not limit the work, N is reduced, and the summary reports it. Without this
    /// option, components that would need more work are refused [default: 10000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    max_bucket: Option<u32>,
    /// Also write all documents in their own format with the decision: `cluster_id`, `cluster_size`, kept, score and
    /// `near_key`, the key of the document that is kept in its place, as JSON fields, columns, or header lines of a
    /// record
    #[arg(long)]
    annotate: bool,
    /// Add the number of documents in its cluster, as `cluster_size`, to each document that is kept
    #[arg(long)]
    cluster_size: bool,
    /// Prefix for the names of the fields that --annotate and --cluster-size add
    #[arg(long, value_name = "PREFIX", default_value = "", hide_default_value = true)]
    annotation_prefix: String,
    /// Also write OUT/revisits.warc: a revisit record of WARC/1.1 with the profile identical-payload-digest for each
    /// removed page of a WARC file whose payload is identical, byte for byte, to that of the kept page. Near pages get
    /// no revisit record; --annotate lists the pages that they are near to
    #[arg(long)]
    write_revisits: bool,
    #[command(flatten)]
    compress: CompressArgs,
    #[command(flatten)]
    resources: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum MethodArg {
    Minhash,
    /// Joins the sketches: pairs documents for each shingle that their sketches share, and counts these shingles
    Shingles,
    Simhash,
    Exact,
}

/// How shingles are weighted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WeightsArg {
    Distinct,
    Tf,
    Idf,
}

/// Which documents the index contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IndexOfArg {
    /// The documents that are kept
    Kept,
    /// All documents that were read
    All,
    /// No index and no report.html are written; the other results are the same. --against OUT then reads the texts of
    /// OUT. Options that would only change the index are refused
    None,
}

/// How the similarity of two documents is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum NearMeasureArg {
    /// The size of the intersection divided by the size of the union
    Resemblance,
    /// The size of the intersection divided by the size of the smaller document, which is removed if enough of it is in
    /// the larger one. Larger documents are preferred to smaller ones; --keep decides between documents of the same size
    Containment,
}

/// Which documents are removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ClusteringArg {
    /// Each document that is near an earlier kept document; no other documents
    Leaders,
    /// All documents of a connected component except one, including documents that are only linked to it by a chain of
    /// pairs and are near no kept document
    Components,
}

/// Which pairs are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ListedPairsArg {
    /// Each removed document with the document that is kept in its place
    Covering,
    /// All pairs of near documents
    All,
}

/// How candidates are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Join {
    /// By comparing the sketches of all texts, or by prefixes if that is less work; finds all pairs
    Auto,
    /// By the rarest shingles of each text; finds all pairs
    Prefix,
    /// By the bands of minima stored in the index; misses some pairs
    Bands,
}

/// How candidates are verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum VerifyArg {
    /// By exact counts of shingles
    Exact,
    /// By the signatures in the index, or the sketches of --method shingles; an estimate
    Signature,
    /// Not at all: documents that share a band are near
    None,
}

impl DedupArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.resources.apply()?;
        self.fingerprint.check(&self.input)?;
        let job = self.job();
        let report = job.run_watched(&Watching { quiet: self.output.quiet })?;
        report::print(&self.output, &report, || summary(&job, &report))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the job with these options.
    fn job(&self) -> Job {
        Job {
            inputs: self.input.inputs.clone(),
            input: self.fingerprint.apply(self.ids.apply(self.input.options())),
            repeated_keys: self.repeated_keys.into(),
            out: self.out.clone(),
            force: self.force,
            resume: self.resume,
            method: match self.method {
                None if self.fingerprint.are_read() => twindex_corpus::Method::Simhash,
                None | Some(MethodArg::Minhash) => twindex_corpus::Method::Minhash,
                Some(MethodArg::Shingles) => twindex_corpus::Method::Shingles,
                Some(MethodArg::Simhash) => twindex_corpus::Method::Simhash,
                Some(MethodArg::Exact) => twindex_corpus::Method::Exact,
            },
            near: match self.near {
                NearMeasureArg::Resemblance => twindex_corpus::NearMeasure::Resemblance,
                NearMeasureArg::Containment => twindex_corpus::NearMeasure::Containment,
            },
            threshold: self.threshold,
            within: self.within,
            against: self.against.clone(),
            texts: self.texts.clone(),
            index: match self.index {
                IndexOfArg::Kept => twindex_corpus::IndexOf::Kept,
                IndexOfArg::All => twindex_corpus::IndexOf::All,
                IndexOfArg::None => twindex_corpus::IndexOf::None,
            },
            modulus: self.modulus,
            bottom: self.bottom,
            preset: self.preset,
            minima: self.minima,
            join: self.join.map(|join| match join {
                Join::Auto => twindex_corpus::Join::Auto,
                Join::Prefix => twindex_corpus::Join::Prefix,
                Join::Bands => twindex_corpus::Join::Bands,
            }),
            sharing: self.features.options(),
            verify: self.verify.map(|verify| match verify {
                VerifyArg::Exact => twindex_corpus::Verify::Exact,
                VerifyArg::Signature => twindex_corpus::Verify::Signature,
                VerifyArg::None => twindex_corpus::Verify::None,
            }),
            signature_bits: self.signature_bits,
            sets: self.sets.map(|sets| sets == Sets::Kept),
            text: self.text.options(),
            without_boilerplate: self.without_boilerplate,
            boilerplate_words: self.boilerplate_words,
            boilerplate: self.boilerplate.clone(),
            weights: match self.weights {
                WeightsArg::Distinct => twindex_corpus::Weights::Distinct,
                WeightsArg::Tf => twindex_corpus::Weights::Frequencies,
                WeightsArg::Idf => twindex_corpus::Weights::Idf,
            },
            weight_unit: self.weight_unit,
            idf: self.idf.clone(),
            keep: self.keep.keep,
            keep_field: self.keep.field.clone(),
            inside: self.inside.clone(),
            url_field: self.url_field.clone(),
            clusters: match self.clusters {
                ClusteringArg::Leaders => twindex_corpus::Clustering::Leaders,
                ClusteringArg::Components => twindex_corpus::Clustering::Components,
            },
            pairs: match self.pairs {
                ListedPairsArg::Covering => twindex_corpus::ListedPairs::Covering,
                ListedPairsArg::All => twindex_corpus::ListedPairs::All,
            },
            max_work: self.max_work,
            max_cluster: self.max_cluster,
            max_bucket: self.max_bucket,
            annotations: Annotations {
                all: self.annotate,
                cluster_size: self.cluster_size,
                prefix: self.annotation_prefix.clone(),
            },
            write_revisits: self.write_revisits,
            compression: self.compress.compression(),
            memory: self.resources.memory,
        }
    }
}

/// Formats the summary as lines of text.
fn summary(job: &Job, report: &Report) -> Vec<String> {
    let input = &report.input;
    let share = report.removed as f64 * 100.0 / input.documents.max(1) as f64;
    let mut lines = input_lines(job, report);
    lines.extend(report.boilerplate.as_ref().map(without_spans));
    if let Some(dropped) = report.dropped {
        let against: Vec<String> =
            report.histories.iter().map(|history| history.path.display().to_string()).collect();
        lines.push(format!(
            "  dropped    {:>11}  documents near one of {}, before the others were compared",
            count(dropped),
            against.join(", ")
        ));
    }
    if let Some(contained) = report.contained {
        lines.push(format!(
            "  contained  {:>11}  earlier documents that stand in a later one that stays (contained.tsv)",
            count(contained)
        ));
    }
    let is_covering = job.pairs == twindex_corpus::ListedPairs::Covering
        && job.clusters == twindex_corpus::Clustering::Leaders;
    let pairs = if is_covering { "documents near a kept one" } else { "pairs" };
    lines.push(match job.method {
        twindex_corpus::Method::Minhash if job.verify() == twindex_corpus::Verify::None => format!(
            "  near       {:>11}  {pairs}: they share one of {} bands, not verified, copies included",
            count(report.pairs),
            job.banding().bands
        ),
        twindex_corpus::Method::Minhash | twindex_corpus::Method::Shingles => format!(
            "  near       {:>11}  {pairs}: a {} of {} or more, {}, copies included",
            count(report.pairs),
            if job.near == twindex_corpus::NearMeasure::Containment { "containment" } else { "resemblance" },
            job.threshold(),
            if job.verify() == twindex_corpus::Verify::Exact { "counted exactly" } else { "by an estimate" }
        ),
        twindex_corpus::Method::Simhash => format!(
            "  near       {:>11}  {pairs}: fingerprints that differ in {} bits or fewer",
            count(report.pairs),
            job.within.unwrap_or(3)
        ),
        twindex_corpus::Method::Exact => {
            let what = if is_covering { "documents with the text of a kept one" } else { "pairs of such" };
            format!("  pairs      {:>11}  {what}", count(report.pairs))
        }
    });
    if let Some(counted) = report.counted {
        lines.push(format!(
            "  compared   {:>11}  pairs of texts, each with the kept ones before it; {} of them counted",
            count(report.candidates),
            count(counted)
        ));
    }
    if let (Some(values), Some(field)) = (report.inside_values, &job.inside) {
        let values_are = if values == 1 { "value" } else { "values" };
        lines.push(format!(
            "  inside     {:>11}  {values_are} of {field}: documents were compared inside each",
            count(values)
        ));
    }
    lines.push(format!(
        "  clusters   {:>11}  of two documents or more; the largest has {}",
        count(report.clusters),
        count(report.largest_cluster)
    ));
    lines.extend(report.revisits_written.map(|revisits| {
        format!(
            "  revisits   {:>11}  records for payloads that are those of a kept page (revisits.warc); {} more that go have none",
            count(revisits.records),
            count(revisits.left_out)
        )
    }));
    lines.extend(report.hosts.as_ref().map(of_hosts));
    lines.push(format!(
        "  removed    {:>11}  documents, {share:.1} %; {} kept",
        count(report.removed),
        count(report.kept)
    ));
    let sizes = sizes(report);
    if !sizes.is_empty() {
        lines.push(format!("  sizes                   {} documents", sizes.join(", ")));
    }
    let remarks = remarks(job, report);
    lines.extend(remarks.iter().map(|remark| format!("  note: {remark}")));
    let index = if job.writes_index() { ", index, report.html" } else { "" };
    let against = match (job.against.is_empty(), report.contained) {
        (true, _) => "",
        (false, None) => ", against.tsv",
        (false, Some(_)) => ", against.tsv, contained.tsv",
    };
    let kept: Vec<&str> =
        report.kept_files.iter().chain(&report.annotated_files).map(String::as_str).collect();
    let kept = kept.join(", ");
    lines.push(format!("{}: pairs.tsv, clusters.tsv, {kept}{against}{index}", job.out.display()));
    lines
}

/// Formats the counts of the inputs and of documents with equal texts.
fn input_lines(job: &Job, report: &Report) -> Vec<String> {
    let input = &report.input;
    let is_normalised = job.method == twindex_corpus::Method::Exact && job.text.normalises();
    let are_fingerprints = job.input.fingerprint.is_some();
    let equal = match (are_fingerprints, is_normalised) {
        (true, _) => "documents with the fingerprint of another",
        (false, true) => "copies of another document, equal after normalisation",
        (false, false) => "copies of another document, byte for byte",
    };
    let read = if are_fingerprints {
        counted(input.documents, "fingerprint")
    } else {
        format!("{}, {} of text", counted(input.documents, "document"), report::bytes(input.text_bytes))
    };
    vec![
        format!("{read}, in {:.1} s", report.seconds),
        format!("  identical  {:>11}  {equal}", count(report.identical)),
    ]
}

/// Formats the statistics of the ignored boilerplate spans.
fn without_spans(found: &twindex_corpus::LeftOutReport) -> String {
    format!(
        "  left out   {:>11}  words, in {}: {} of {} words that more than {} share; {} no other words",
        count(found.words_left_out),
        counted(found.documents, "document"),
        counted(found.spans, "span"),
        count(found.words.into()),
        counted(found.more_than.into(), "document"),
        match found.documents_without_words {
            0 => "none has".to_owned(),
            1 => "1 has".to_owned(),
            some => format!("{} have", count(some)),
        }
    )
}

/// Formats the number of clusters for each range of cluster sizes.
fn sizes(report: &Report) -> Vec<String> {
    let sizes = report.cluster_sizes.iter().skip(1).filter(|&&(_, clusters)| clusters > 0);
    let shown = |&(most, clusters): &(u64, u64)| match most {
        2 => format!("{} of 2", count(clusters)),
        _ => format!("{} of {}-{}", count(clusters), count(most / 2 + 1), count(most)),
    };
    sizes.map(shown).collect()
}

/// Formats the number of duplicates for each host.
fn of_hosts(hosts: &twindex_corpus::Hosts) -> String {
    format!(
        "  hosts      {:>11}  of {} domains; {} duplicates of a page of the same host, {} of the same domain, {} of another",
        count(hosts.hosts),
        count(hosts.domains),
        count(hosts.duplicates_within_hosts),
        count(hosts.duplicates_within_domains),
        count(hosts.duplicates_across_domains)
    )
}

/// Returns warnings and hints for the user, to be printed after the summary.
fn remarks(job: &Job, report: &Report) -> Vec<String> {
    let mut remarks = Vec::new();
    if let (Some(lowest), Some((a, b))) = (report.lowest_resemblance, &report.lowest_pair)
        && job.clusters == twindex_corpus::Clustering::Components
        && lowest < job.threshold()
    {
        remarks.push(format!(
            "the least near documents found inside a cluster resemble each other by {lowest:.3}: {} and {}",
            a.escape_debug(),
            b.escape_debug()
        ));
    }
    if report.cut_components > 0 {
        remarks.push(format!(
            "{} of more than {} documents cut into clusters (--max-cluster)",
            counted(report.cut_components, "component"),
            job.max_cluster.unwrap_or(u32::MAX)
        ));
    }
    if report.chained > 0 {
        remarks.push(format!(
            "{} joined a cluster through others and {} less near to the kept one than asked for (see the score in \
             clusters.tsv)",
            counted(report.chained, "document"),
            if report.chained == 1 { "is" } else { "are" }
        ));
    }
    let max_bucket = job.max_bucket.unwrap_or(twindex_corpus::MAX_BUCKET);
    let capped = [(report.capped_buckets, "bucket", "texts"), (report.capped_shingles, "shingle", "texts")];
    for (number, what, members) in capped.into_iter().filter(|&(number, ..)| number > 0) {
        let lowered = if report.bucket_cap < u64::from(max_bucket) {
            format!(", lowered to {} to bound the work", count(report.bucket_cap))
        } else {
            String::new()
        };
        remarks.push(format!(
            "{} of more {members} than --max-bucket {}{lowered} (the largest: {}): these were paired as stars, with \
             the first and the one before, so that pairs.tsv has not all pairs",
            counted(number, what),
            count(max_bucket.into()),
            count(report.largest_bucket),
        ));
    }
    let named: Vec<String> = report
        .common_shingles
        .iter()
        .take(3)
        .map(|one| {
            let texts = count(one.texts);
            format!("{} in {texts} texts, the first of them {}", one.hash, one.first.escape_debug())
        })
        .collect();
    if !named.is_empty() {
        remarks.push(format!("the most common shingles, by their hashes: {}", named.join("; ")));
    }
    if let (Some(without @ 1..), Some(by)) = (report.without_elements, job.sampled_by()) {
        let what = match by {
            SampledBy::Modulus(modulus) => format!("a shingle hash that {modulus} divides"),
            SampledBy::Bottom(_) => "a shingle hash".to_owned(),
        };
        remarks.push(format!(
            "{} without {what}: near nothing but their copies (--bottom samples short documents, too)",
            counted(without, "document")
        ));
    }
    if report.starred_groups > 0 {
        remarks.push(format!(
            "{} of identical documents over --max-bucket {}: paired with their first member only",
            counted(report.starred_groups, "group"),
            count(max_bucket.into())
        ));
    }
    if job.method != twindex_corpus::Method::Exact {
        remarks.extend(report::empty_remark(report.empty));
    }
    remarks.extend(report.input.remarks());
    remarks
}
