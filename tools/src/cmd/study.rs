//! `twindex study`: compares scores and found pairs with exact resemblance, and learns which URLs are of one page.

mod bands;
mod truth;
mod urls;

use std::path::Path;
use std::process::ExitCode;

use clap::{ArgGroup, Args};
use twindex_corpus::settings::{Near, Rule};

use self::bands::StudyMethod;
use self::truth::TruthArgs;
use self::urls::UrlArgs;
use crate::differs::NearOfStudy;
use crate::options::{InputArgs, Output, ResourceArgs, Usage};
use crate::refusals::{self, Refusal};
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
    input: InputArgs,
    /// Score the near pairs of the documents band by band by this method, and compare with exact resemblance
    #[arg(long, value_enum)]
    method: Option<StudyMethod>,
    /// Number of tokens in a shingle, for --method [default: 3]
    #[arg(long, value_name = "W", value_parser = clap::value_parser!(u8).range(1..=16))]
    words: Option<u8>,
    #[command(flatten)]
    truth: TruthArgs,
    #[command(flatten)]
    urls: UrlArgs,
    #[command(flatten)]
    rule: Options<Rule, NearOfStudy>,
    #[command(flatten)]
    stage: StageArgs,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
}

/// Options that have no effect on some studies.
const REFUSALS: &[Refusal<StudyArgs>] = &[
    Refusal {
        when: |study| study.method.is_none(),
        given: |study| {
            let words = refusals::first(&[("--words", study.words.is_some())]);
            words.or_else(|| study.input.first_given())
        },
        why: "goes with --method",
    },
    Refusal {
        when: |study| study.urls.apply.is_some(),
        given: |study| {
            let given = [("--out or --into", study.stage.is_file()), ("--near", study.rule.near.is_some())];
            refusals::first(&given)
        },
        why: "goes without --apply, which prints URLs on standard output",
    },
    Refusal {
        when: |study| study.truth.truth.is_some(),
        given: |study| refusals::first(&[("--out or --into", study.stage.is_file())]),
        why: "goes without --truth, whose figures are printed",
    },
    Refusal {
        when: |study| !study.urls.urls,
        given: |study| refusals::first(&[("--near within:K", study.rule.within().is_some())]),
        why: "goes with --urls: documents are compared by resemblance",
    },
];

impl StudyArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        refusals::check(REFUSALS, &self)?;
        match (self.method, &self.truth.truth, &self.urls.apply) {
            (Some(method), ..) => self.bands(method),
            (_, Some(truth), _) => self.found(truth, self.one_input()?),
            (_, _, Some(rules)) if self.input.inputs.is_empty() => self.apply_rules(rules),
            (_, _, Some(_)) => {
                Err(Usage::new("--apply reads URLs from standard input; name no INPUT").into())
            }
            _ => self.learn_rules(self.one_input()?),
        }
    }

    fn one_input(&self) -> Result<&Path, Usage> {
        match &self.input.inputs[..] {
            [input] => Ok(input),
            _ => Err(Usage::new("--truth and --urls go with one INPUT")),
        }
    }

    fn near(&self) -> Option<Near> {
        self.rule.near
    }
}
