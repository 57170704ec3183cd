//! The verbs of the command line, one module for each.

mod build;
mod completions;
mod dedup;
mod delete;
mod get;
mod groups;
pub(crate) mod idf;
mod man;
mod merge;
mod pairs;
mod passages;
mod plan;
mod query;
mod stats;
mod stream;
mod study;
mod verify;
mod why;

use std::fmt::Write;
use std::process::ExitCode;

use clap::Subcommand;

/// The verb to run, with its options.
#[derive(Subcommand)]
#[expect(clippy::large_enum_variant, reason = "there is one value in a process")]
pub(crate) enum Verb {
    #[command(flatten)]
    Corpus(CorpusVerb),
    #[command(flatten)]
    Index(IndexVerb),
    #[command(flatten)]
    Study(StudyVerb),
    /// Print a script that completes commands and options in a shell
    #[command(hide = true)]
    Completions(completions::CompletionsArgs),
    /// Write the manual, one page for each verb
    #[command(hide = true)]
    Man(man::ManArgs),
}

/// Verbs that read and write documents.
#[derive(Subcommand)]
pub(crate) enum CorpusVerb {
    /// Remove near-duplicates; write pairs, clusters, and an index
    Dedup(dedup::DedupArgs),
    /// Explain why a document was removed or kept
    Why(why::WhyArgs),
    /// Find passages that also occur in earlier documents, and remove them
    Passages(passages::PassagesArgs),
}

/// Verbs about an index.
#[derive(Subcommand)]
pub(crate) enum IndexVerb {
    /// Create an index, add documents to one, or write sketches for it
    Build(build::BuildArgs),
    /// Look up each document of a continuous stream and add it, in order
    Stream(stream::StreamArgs),
    /// Find the documents near each input document
    Query(query::QueryArgs),
    /// Print documents of an index, or list its keys
    Get(get::GetArgs),
    /// Remove documents from an index
    Delete(delete::DeleteArgs),
    /// Merge the segments of an index, join indexes, or copy one
    Merge(merge::MergeArgs),
    /// Check every byte of an index, or save what is undamaged
    Verify(verify::VerifyArgs),
    /// Print statistics of an index, or write a page about it
    Stats(stats::StatsArgs),
    /// List all near pairs in an index
    Pairs(pairs::PairsArgs),
    /// Group the documents of an index or of pairs, and choose one to keep
    Groups(groups::GroupsArgs),
}

/// Verbs that measure, for the choice of options.
#[derive(Subcommand)]
pub(crate) enum StudyVerb {
    /// Count the documents that contain each shingle, to weight rare ones
    Idf(idf::IdfArgs),
    /// Estimate bytes, probes and times of possible tables of an index
    Plan(plan::PlanArgs),
    /// Measure precision and recall of scores or pairs; learn URL rules
    Study(study::StudyArgs),
}

/// Returns the help of the command, which lists the verbs in groups.
pub(crate) fn help_template() -> String {
    let mut help = "{about-with-newline}\n{usage-heading} twindex <VERB> [OPTIONS]\n\n".to_owned();
    let group = clap::Command::new;
    for verbs in [
        CorpusVerb::augment_subcommands(group("A corpus")),
        IndexVerb::augment_subcommands(group("An index")),
        StudyVerb::augment_subcommands(group("Study")),
    ] {
        let _ = writeln!(help, "{}:", verbs.get_name());
        for verb in verbs.get_subcommands() {
            let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
            let _ = writeln!(help, "  {:<8}  {about}", verb.get_name());
        }
    }
    help + "Every verb has --help; -v logs progress, -vv more. Version: twindex --version\n"
}

impl Verb {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Corpus(CorpusVerb::Dedup(dedup)) => dedup.run(),
            Self::Corpus(CorpusVerb::Why(why)) => why.run(),
            Self::Corpus(CorpusVerb::Passages(passages)) => passages.run(),
            Self::Index(IndexVerb::Build(build)) => build.run(),
            Self::Index(IndexVerb::Stream(stream)) => stream.run(),
            Self::Index(IndexVerb::Query(query)) => query.run(),
            Self::Index(IndexVerb::Get(get)) => get.run(),
            Self::Index(IndexVerb::Delete(delete)) => delete.run(),
            Self::Index(IndexVerb::Merge(merge)) => merge.run(),
            Self::Index(IndexVerb::Verify(verify)) => verify.run(),
            Self::Index(IndexVerb::Stats(stats)) => stats.run(),
            Self::Index(IndexVerb::Pairs(pairs)) => pairs.run(),
            Self::Index(IndexVerb::Groups(groups)) => groups.run(),
            Self::Study(StudyVerb::Idf(idf)) => idf.run(),
            Self::Study(StudyVerb::Plan(plan)) => plan.run(),
            Self::Study(StudyVerb::Study(study)) => study.run(),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
        }
    }
}
