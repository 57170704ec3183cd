//! The verbs of the command line, one module for each.

mod build;
mod clusters;
mod compact;
mod completions;
mod dedup;
mod delete;
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

/// The verb to run, with its options.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Find near-duplicate documents; write pairs, clusters, the documents to keep, and the index
    Dedup(dedup::DedupArgs),
    /// Explain why a document was removed or kept: the kept document, the counts, and the words that differ
    Why(why::WhyArgs),
    /// Find passages that also occur in earlier documents; list them, and write the documents without them
    Passages(passages::PassagesArgs),
    /// Compute sketches of documents and write them to a file
    Sketch(sketch::SketchArgs),
    /// Create an index, or add documents to one
    Build(build::BuildArgs),
    /// Look up each document of a continuous stream and add it, in order
    Stream(stream::StreamArgs),
    /// Find the documents near each input document
    Query(query::QueryArgs),
    /// Count the documents that contain each shingle, so that simhashes can give rare shingles more weight
    Idf(idf::IdfArgs),
    /// List all near pairs in an index
    Pairs(pairs::PairsArgs),
    /// Reduce pairs to a spanning forest, on each worker and for the results of all workers
    Forest(forest::ForestArgs),
    /// Group pairs, or the documents of an index, into clusters, and choose the document to keep in each
    Clusters(clusters::ClustersArgs),
    /// Score near pairs band by band, and compare each score with the exact resemblance
    Study(study::StudyArgs),
    /// Learn which parts of URLs do not change the page, and remove these parts from other URLs
    Urls(urls::UrlsArgs),
    /// Compute the precision and recall of found pairs, given the known pairs
    Eval(eval::EvalArgs),
    /// Estimate the cost of an index: bytes, probes and times of possible table designs
    Plan(plan::PlanArgs),
    /// Merge the segments of an index into one, without replaced and deleted documents
    Compact(compact::CompactArgs),
    /// Join indexes with the same parameters into a new one
    Merge(merge::MergeArgs),
    /// Make a copy of an index that shares the files of the original
    Snapshot(snapshot::SnapshotArgs),
    /// Remove documents from an index
    Delete(delete::DeleteArgs),
    /// Remove files that an index does not need
    Gc(gc::GcArgs),
    /// List the leader and the size of each document's group in an index
    Groups(groups::GroupsArgs),
    /// List the keys of an index
    Keys(keys::KeysArgs),
    /// Print the data of documents in an index
    Get(get::GetArgs),
    /// Print statistics of an index
    Stats(stats::StatsArgs),
    /// Write an HTML page about an index: pairs by band, clusters, buckets, bytes
    Report(report::ReportArgs),
    /// Copy the undamaged documents of a damaged index to a new one
    Salvage(salvage::SalvageArgs),
    /// Check every byte of an index for damage
    Verify(verify::VerifyArgs),
    /// Print a script that completes commands and options in a shell
    Completions(completions::CompletionsArgs),
    /// Write the manual, one page for each verb
    Man(man::ManArgs),
}

impl Verb {
    /// Runs the verb and returns the exit code.
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
            Self::Completions(completions) => completions.run(),
            Self::Man(man) => man.run(),
        }
    }
}
