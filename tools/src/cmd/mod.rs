//! The verbs.

mod build;
mod clusters;
mod compact;
mod completions;
mod dedup;
mod delete;
mod dump;
mod eval;
mod forest;
mod gc;
mod get;
mod groups;
pub(crate) mod idf;
mod keys;
mod man;
mod merge;
mod pairs;
mod passages;
mod plan;
mod query;
mod report;
mod salvage;
mod sketch;
mod snapshot;
mod stats;
mod stream;
mod study;
mod urls;
mod verify;
mod why;

use std::process::ExitCode;

use clap::Subcommand;

/// What to do.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Find near-duplicate documents; write pairs, clusters, the documents to keep, and the index
    Dedup(dedup::DedupArgs),
    /// Explain why a document went, or stays: the kept one, the counts, and the words that differ
    Why(why::WhyArgs),
    /// Find passages that occur in earlier documents, too; list them, and write the documents without them
    Passages(passages::PassagesArgs),
    /// Make sketches of documents, and a file of them
    Sketch(sketch::SketchArgs),
    /// Make an index, or add to one
    Build(build::BuildArgs),
    /// Look up each document and add it, in order, for ever
    Stream(stream::StreamArgs),
    /// Find the documents near each input
    Query(query::QueryArgs),
    /// Count in how many documents each shingle is, for simhashes that weight rare ones more
    Idf(idf::IdfArgs),
    /// List all near pairs inside an index
    Pairs(pairs::PairsArgs),
    /// Reduce pairs to a spanning forest, on each worker and of what all of them made
    Forest(forest::ForestArgs),
    /// Make clusters of pairs, or of an index, and say which document of each to keep
    Clusters(clusters::ClustersArgs),
    /// Score near pairs band by band, and judge each score against exact resemblance
    Study(study::StudyArgs),
    /// Learn which parts of URLs do not change the page, and leave them out of others
    Urls(urls::UrlsArgs),
    /// Say how good the pairs that were found are, against pairs that are known
    Eval(eval::EvalArgs),
    /// Say what an index would cost: designs of tables with their bytes, probes and times
    Plan(plan::PlanArgs),
    /// Merge the segments of an index to one, without what was replaced or deleted
    Compact(compact::CompactArgs),
    /// Join indexes of the same parameters to a new one
    Merge(merge::MergeArgs),
    /// Make a copy of an index that shares its files
    Snapshot(snapshot::SnapshotArgs),
    /// Remove documents from an index
    Delete(delete::DeleteArgs),
    /// Remove files that an index does not need
    Gc(gc::GcArgs),
    /// List the group of each document of an index: the document that leads it, and its size
    Groups(groups::GroupsArgs),
    /// List the keys of an index
    Keys(keys::KeysArgs),
    /// Print what an index has of documents
    Get(get::GetArgs),
    /// Say what is in an index
    Stats(stats::StatsArgs),
    /// Write a page about what is in an index: pairs by band, clusters, buckets, bytes
    Report(report::ReportArgs),
    /// Save what can be saved of a damaged index, as a new one
    Salvage(salvage::SalvageArgs),
    /// Check that an index is sound, down to the last byte
    Verify(verify::VerifyArgs),
    /// Print the bytes of an index file with their meaning
    Dump(dump::DumpArgs),
    /// Print what a shell needs to complete commands and options
    Completions(completions::CompletionsArgs),
    /// Write the manual, a page for each verb
    Man(man::ManArgs),
}

impl Verb {
    /// Runs the verb to its exit code.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self {
            Self::Dedup(dedup) => dedup.run(),
            Self::Why(why) => why.run(),
            Self::Passages(passages) => passages.run(),
            Self::Sketch(sketch) => sketch.run(),
            Self::Build(build) => build.run(),
            Self::Stream(stream) => stream.run(),
            Self::Query(query) => query.run(),
            Self::Idf(idf) => idf.run(),
            Self::Pairs(pairs) => pairs.run(),
            Self::Forest(forest) => forest.run(),
            Self::Clusters(clusters) => clusters.run(),
            Self::Study(study) => study.run(),
            Self::Urls(urls) => urls.run(),
            Self::Eval(eval) => eval.run(),
            Self::Plan(plan) => plan.run(),
            Self::Compact(compact) => compact.run(),
            Self::Merge(merge) => merge.run(),
            Self::Snapshot(snapshot) => snapshot.run(),
            Self::Delete(delete) => delete.run(),
            Self::Gc(gc) => gc.run(),
            Self::Groups(groups) => groups.run(),
            Self::Keys(keys) => keys.run(),
            Self::Get(get) => get.run(),
            Self::Stats(stats) => stats.run(),
            Self::Report(report) => report.run(),
            Self::Salvage(salvage) => salvage.run(),
            Self::Verify(verify) => verify.run(),
            Self::Dump(dump) => dump.run(),
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
        }
    }
}
