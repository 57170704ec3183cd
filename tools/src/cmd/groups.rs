//! `twindex groups`: groups near documents, by leaders or by connected components, and reduces pairs to a spanning forest.

mod clusters;
mod forest;
mod leaders;
mod ranks;
mod split;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, ValueEnum};
use twindex_corpus::page::{FoundPage, LargestGroups, PairSample};
use twindex_corpus::settings::{Near, Reading, Rule};
use twindex_corpus::{Keep, KeepOrder};

use crate::differs::{NearAndKeep, ReadingTexts};
use crate::options::{Output, ResourceArgs, VerifyChoice};
use crate::page_args::{PageArgs, command};
use crate::progress::Watching;
use crate::refusals::{self, Refusal};
use crate::settings_args::Options;
use crate::stage::StageArgs;

/// Options of `groups`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex groups pages.twx --min-size 2\n  \
    twindex groups pages.twx --of https://example.org/a\n  \
    twindex groups pages.twx --as clusters --near 0.8 --keep longest --texts pages.jsonl -o clusters.tsv\n  \
    twindex groups pairs/*.pairs --as forest --into forests\n  \
    twindex groups forests --scores pairs -o clusters.tsv\n  \
    twindex groups pages.twx --html groups.html --texts pages.jsonl > groups.tsv\n\n\
    leaders: a line for each document of an index, by key: key, leader, size of the group. A document is a leader if no \
    leader before it is near it; every other document belongs to the first leader near it. The order is that of \
    priorities, where the index keeps them, and then of a hash of the key: so groups depend on what is in the index and \
    on nothing else, and are those of `dedup --keep key-hash`. Near is what the index says. Where it keeps no sets, \
    resemblance is an estimate, and a note on standard error says so.\n\n\
    clusters: a line for each document of each connected component: key, cluster (numbered from 1 in the order of their \
    smallest keys), the key of the document that is kept, and the distance or resemblance of the pair of both: = for \
    the document itself, - where they are no pair. Documents that are near only by way of others are chained; many of \
    them in a cluster say that the radius is too wide or the threshold too low.\n\n\
    forest: of each connected component of files of pairs, a line for the smallest key with each other key: fewer lines \
    than there are documents, and the same ones however pairs were spread over files. So workers make a forest of their \
    pairs each, and the forest of those forests is that of all pairs. Files of different parameters are refused, naming \
    the parameter; a file that was cut off, too. Keys that are more than --memory go to unnamed files in the folder for \
    temporary files, TMPDIR.")]
pub(crate) struct GroupsArgs {
    /// An index, files of pairs or forests or tables of pairs of keys, or folders of files named *.pairs and *.forest
    #[arg(value_name = "INPUT", required = true)]
    inputs: Vec<PathBuf>,
    /// What is made of them [default: leaders of an index, clusters of pairs]
    #[arg(long = "as", value_enum, value_name = "WHAT")]
    kind: Option<GroupKind>,
    /// Print only the group of the document with this key; KEY is written as in the output, with \\ for a backslash
    #[arg(long, value_name = "KEY")]
    of: Option<String>,
    /// List only groups of at least N documents [default: 1; 2 for clusters]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    min_size: Option<u32>,
    #[command(flatten)]
    rule: Options<Rule, NearAndKeep>,
    /// How to verify the resemblance of documents in an index, as in `pairs`
    #[arg(long, value_enum, value_name = "HOW")]
    verify: Option<VerifyChoice>,
    /// Files of pairs, or folders of such files, that hold the scores if INPUT has only forests
    #[arg(long, value_name = "FILE", num_args = 1..)]
    scores: Vec<PathBuf>,
    /// The documents in the same order as they were given to `build`: for --keep, or for the page of --html. If a key is
    /// repeated, the last document is used, as in an index
    #[arg(long, value_name = "INPUT", num_args = 1..)]
    texts: Vec<PathBuf>,
    #[command(flatten)]
    reading: Options<Reading, ReadingTexts>,
    /// Split components of more than N documents. Their documents are taken in the order of keys: one that is in no
    /// cluster yet begins one, with up to N - 1 free documents that it forms pairs with. So one document of each of these
    /// clusters is near all others. Needs the pairs: forests alone do not have them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..))]
    max_cluster: Option<u32>,
    #[command(flatten)]
    page: PageArgs,
    #[command(flatten)]
    stage: StageArgs,
    #[command(flatten)]
    work: ResourceArgs,
    #[command(flatten)]
    output: Output,
    /// Whether another verb runs this one as a step. That verb has already started the threads.
    #[arg(skip)]
    is_a_step: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum GroupKind {
    /// The groups of an index, each of the documents near one leader
    Leaders,
    /// Connected components
    Clusters,
    /// A spanning forest of the pairs
    Forest,
}

/// Rules that reject options with kinds of groups on which they have no effect.
const REFUSALS: &[Refusal<GroupsArgs>] = &[
    Refusal {
        when: |groups| groups.kind() != GroupKind::Leaders,
        given: |groups| refusals::first(&[("--of", groups.of.is_some())]),
        why: "goes with --as leaders, of an index",
    },
    Refusal {
        when: |groups| groups.kind() == GroupKind::Forest,
        given: |groups| {
            refusals::first(&[
                ("--min-size", groups.min_size.is_some()),
                ("--html", groups.page.html.is_some()),
            ])
        },
        why: "goes with --as leaders and --as clusters",
    },
    Refusal {
        when: |groups| groups.kind() != GroupKind::Clusters,
        given: |groups| {
            let given = refusals::first(&[
                ("--verify", groups.verify.is_some()),
                ("--scores", !groups.scores.is_empty()),
                ("--max-cluster", groups.max_cluster.is_some()),
            ]);
            groups.rule.first_given().or(given)
        },
        why: "goes with --as clusters",
    },
    Refusal {
        when: |groups| groups.kind() != GroupKind::Clusters && groups.page.html.is_none(),
        given: |groups| {
            let given = refusals::first(&[("--texts", !groups.texts.is_empty())]);
            given.or_else(|| groups.reading.first_given())
        },
        why: "goes with --as clusters or --html",
    },
    Refusal {
        when: |groups| groups.texts.is_empty(),
        given: |groups| groups.reading.first_given(),
        why: "goes with --texts INPUT",
    },
];

impl GroupsArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        refusals::check(REFUSALS, &self)?;
        match self.kind() {
            GroupKind::Leaders => self.leaders(),
            GroupKind::Clusters => self.clusters(),
            GroupKind::Forest => self.forest(),
        }
    }

    /// Returns the index among the inputs, if there is one.
    fn index(&self) -> Option<&Path> {
        self.inputs.iter().find(|input| input.join("CURRENT").is_file()).map(PathBuf::as_path)
    }

    fn kind(&self) -> GroupKind {
        let of_inputs = || if self.index().is_some() { GroupKind::Leaders } else { GroupKind::Clusters };
        self.kind.unwrap_or_else(of_inputs)
    }

    /// Writes the page, if it was asked for.
    fn write_page(
        &self,
        title: String,
        roles: [&'static str; 2],
        (groups, pairs): (LargestGroups, PairSample),
    ) -> anyhow::Result<()> {
        let Some(html) = &self.page.html else { return Ok(()) };
        let searched = self.inputs[0].clone();
        let page = FoundPage { title, command: command(), near: None, roles, pairs, groups, searched };
        let watching = Watching { quiet: self.output.quiet };
        page.write(html, [&self.texts, &[]], &self.reading.options()?, &watching)
    }

    /// Returns the rules that select the kept document of a cluster.
    fn keep(&self) -> KeepOrder {
        if self.rule.is_given("keep") { self.rule.keep.clone() } else { Keep::SmallestKey.into() }
    }
}

/// Parser for the command line of this verb, which other verbs run as a step.
#[derive(Parser)]
struct GroupsLine {
    #[command(flatten)]
    groups: GroupsArgs,
}

/// Writes the table of clusters of all documents of an index to `out`.
pub(super) fn clusters_of(
    index: &Path,
    out: &Path,
    near: Option<Near>,
    verify: Option<VerifyChoice>,
    work: &ResourceArgs,
    output: &Output,
) -> anyhow::Result<()> {
    let mut line = vec!["groups".into(), index.as_os_str().to_owned()];
    line.extend(["--as=clusters", "--min-size=1"].map(Into::into));
    line.extend(["--out".into(), out.as_os_str().to_owned()]);
    line.extend(near.map(|near| format!("--near={near}").into()));
    line.extend(verify.map(|verify| format!("--verify={}", verify.name()).into()));
    let mut groups = GroupsLine::try_parse_from(line)?.groups;
    (groups.work, groups.output, groups.is_a_step) = (work.clone(), output.clone(), true);
    groups.run().map(drop)
}
