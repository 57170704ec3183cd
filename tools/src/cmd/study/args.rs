//! The options of `study`.

use std::path::{Path, PathBuf};

use clap::{ArgGroup, Args};
use twindex_corpus::settings::{Near, Rule};

use super::method::StudyMethod;
use crate::differs::NearOfStudy;
use crate::options::{InputArgs, Output, ResourceArgs, Usage, parse_resemblance};
use crate::settings_args::Options;
use crate::stage::StageArgs;

/// Options of `study`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  \
    twindex study wet/ --method simhash\n  \
    twindex study crawl.wet.gz --method minhash -o scored.tsv\n  \
    twindex study pages.twx --truth known.tsv --near 0.9 --svg figure.svg\n  \
    twindex study deduped --urls -o rules.tsv\n  \
    twindex study --apply rules.tsv < urls.txt > normal.txt\n\n\
    --method simhash: fingerprints of 64 bits in 4 blocks of 16; the score of a pair is 64 less the bits that differ, 56 or \
    more. --method minhash: 20 minima in 4 bands of 5; the score is the number of equal minima, 10 or more. For each block \
    or band: the pairs that share it, by score, their portion and their number. Pairs of the highest score share all \
    bands, so that their number is the same in each. Then of each score: how many pairs share a band at all, how many of \
    them have an exact resemblance of the threshold or more (near), their share (precision), and the share of all such \
    pairs of the collection that have this score or a higher one (recall). With -o the pairs are written, with score, and \
    1 where they are near.\n\n\
    --truth: INPUT has the found pairs: a table of pairs, a file that `pairs` wrote with --out, the folder that `dedup` \
    made, or an index with fingerprints, which is searched for all pairs. Tables have a header and tab-separated columns: \
    two keys; and resemblance or jaccard, or intersection and union, or distance. They may be compressed. A pair is the \
    same whichever key comes first. Prints a line for each threshold, or each radius: precision, recall, F1, pairs found, \
    pairs found that are known, pairs known. For resemblances, pairs found at a threshold are compared with those known \
    at it, unless --near says otherwise. Memory: 32 bytes a pair, and the keys.\n\n\
    --urls: the keys of the documents are URLs; with `dedup --url-field` they are those of the field. A line for each \
    rule: host, template, parts (the values of each *), example, pages (URLs that it matches), forms (their normal forms), \
    near_forms (those of several URLs, all near), duplicate_rate (the share of pages with another page as their leader) \
    and confidence (the lower end of the 95 % interval of the share of near forms). In a template * is a part that does \
    not change the page, {} any run of letters and digits, {_} any segment, {...} any further ones. A rule is given only \
    if no two pages that are not near get the same normal form by the rules. The normal form of a URL has * in the place \
    of a part of the path, and no parameters that a rule leaves out: it is a name of the page, and may be no address that \
    answers.",
    group(ArgGroup::new("what").args(["method", "truth", "urls", "apply"]).required(true))
)]
pub(crate) struct StudyArgs {
    #[command(flatten)]
    pub(super) input: InputArgs,
    /// Score the near pairs of the documents band by band by this method, and compare with exact resemblance
    #[arg(long, value_enum)]
    pub(super) method: Option<StudyMethod>,
    /// Number of tokens in a shingle, for --method [default: 3]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u8).range(1..=16))]
    pub(super) words: Option<u8>,
    #[command(flatten)]
    pub(super) truth: TruthArgs,
    #[command(flatten)]
    pub(super) urls: UrlArgs,
    #[command(flatten)]
    pub(super) rule: Options<Rule, NearOfStudy>,
    #[command(flatten)]
    pub(super) stage: StageArgs,
    #[command(flatten)]
    pub(super) work: ResourceArgs,
    #[command(flatten)]
    pub(super) output: Output,
}

impl StudyArgs {
    pub(super) fn one_input(&self) -> Result<&Path, Usage> {
        match &self.input.inputs[..] {
            [input] => Ok(input),
            _ => Err(Usage::new("--truth and --urls go with one INPUT")),
        }
    }

    pub(super) fn near(&self) -> Option<Near> {
        self.rule.near
    }
}

/// Options of a comparison with known pairs.
#[derive(Args)]
pub(super) struct TruthArgs {
    /// Compute the precision and recall of the found pairs in INPUT, given this table of the known pairs
    #[arg(long, value_name = "TABLE")]
    pub(super) truth: Option<PathBuf>,
    /// Thresholds of the rows, if found pairs have resemblances [default: 0.5 to 0.95 by 0.05]
    #[arg(long, value_name = "J,J,..", value_delimiter = ',', value_parser = parse_resemblance, requires = "truth")]
    pub(super) thresholds: Vec<f64>,
    /// Largest radius of the rows, if found pairs have distances, 0 to 10 [default: 10]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(0..=10), requires = "truth")]
    pub(super) within: Option<u32>,
    /// Also draw the rows as a figure in this file, which must not exist
    #[arg(long, value_name = "FILE", requires = "truth")]
    pub(super) svg: Option<PathBuf>,
}

/// Options for URLs.
#[derive(Args)]
pub(super) struct UrlArgs {
    /// Learn which parts of URLs do not change the page, and write rules that remove them
    ///
    /// INPUT is the folder that `dedup` made, an index whose keys are URLs, or a table of `groups --as clusters
    /// --min-size 1`.
    #[arg(long)]
    pub(super) urls: bool,
    /// Print the normal form of each URL on standard input according to these rules, one line for each input line; lines
    /// that are not URLs are printed unchanged
    #[arg(long, value_name = "RULES")]
    pub(super) apply: Option<PathBuf>,
    /// Minimum number of normal forms, each of several near URLs, that support a rule with {} or an alias; 2 or more
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..), requires = "urls")]
    pub(super) min_forms: u16,
    /// Minimum number of URLs of one page that support a rule for this page alone; 2 or more
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(2..), requires = "urls")]
    pub(super) min_urls: u16,
}
