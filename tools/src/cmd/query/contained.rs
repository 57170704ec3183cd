//! `query --near containment:J`: finds documents that contain a text, and documents that the text contains. Counts the
//! shared shingles with every set of the index.

use std::io::Write;
use std::process::ExitCode;

use anyhow::Context;
use twindex::params::KeyKind;
use twindex::{Index, Resemblance, Snapshot};
use twindex_corpus::contents;
use twindex_corpus::input::Documents;
use twindex_corpus::sketching::for_each_sketched;
use twindex_corpus::tsv;
use twindex_join::{ContainmentHit, ContainmentQueries, SharedProgress};

use super::{CANNOT_WRITE, QueryArgs, QueryTotals, key_number, write_key};
use crate::progress::Progress;
use crate::report::{self, Stopwatch, mix};
use crate::stage::StageFile;
use crate::verifying::VerifiedBy;

/// A batch of texts to be answered together.
struct Asking<'q> {
    query: &'q QueryArgs,
    snapshot: &'q Snapshot,
    queries: ContainmentQueries,
    keys: Vec<Vec<u8>>,
    totals: QueryTotals,
}

impl QueryArgs {
    /// Runs a containment query for each input text and prints the results.
    pub(super) fn answer_containment(
        &self,
        share: f64,
        index: &Index,
        snapshot: &Snapshot,
    ) -> anyhow::Result<ExitCode> {
        contents::check(self.index(), &snapshot.params().shingling, self.input.reads_features())?;
        let queries = ContainmentQueries::new(snapshot.params(), share, self.work.memory / 2)
            .with_context(|| format!("{}: --near containment:J", self.index().display()))?;
        let queries = if self.gather { queries.gather() } else { queries };
        let sketcher = self.boilerplate.sketcher(index)?;
        let mut documents = Documents::open(&self.input.inputs, &self.input.options()?)?;
        let has_numbers_as_keys = snapshot.params().key == KeyKind::U64;
        let mut out = self.hits(Some(VerifiedBy::Exact), true, has_numbers_as_keys)?;
        let watch = Stopwatch::start();
        let progress =
            Progress::bytes(documents.total_bytes(), "querying", self.output.quiet || self.prints());
        let mut asking =
            Asking { query: self, snapshot, queries, keys: Vec::new(), totals: QueryTotals::default() };
        let wanted = self.repeated.wanted(self.work.memory / 4);
        for_each_sketched(&mut documents, &sketcher, &wanted, &progress, |one| {
            if asking.queries.push(one.sketch.set())?.is_none() {
                asking.answer(&mut out)?;
                asking.queries.push(one.sketch.set())?;
            }
            asking.keys.push(one.key.clone());
            Ok(())
        })?;
        asking.answer(&mut out)?;
        if !self.output.quiet {
            documents.counts().remarks().iter().for_each(|remark| report::note(remark));
        }
        let (totals, spent) = (asking.totals, (watch.cpu_seconds(), watch.seconds()));
        let written = out.finish()?;
        self.report(&totals, spent, None, written)
    }
}

impl Asking<'_> {
    /// Answers the texts in the batch and clears it.
    fn answer(&mut self, out: &mut StageFile) -> anyhow::Result<()> {
        let Self { query, snapshot, queries, keys, totals } = self;
        let (limit, shard) = (query.limit.unwrap_or(usize::MAX), query.shard);
        let threads = rayon::current_num_threads();
        let mut keys_left = keys.iter();
        let watched = SharedProgress::default();
        queries.for_each_answer(
            snapshot,
            threads,
            limit,
            |key| shard.has(key),
            &watched,
            |answers| {
                let key = keys_left.next().expect("a key for each text");
                let number = totals.queries;
                totals.queries += 1;
                totals.limited += u64::from(answers.left_out > 0);
                for hit in &answers.hits {
                    totals.hits += 1;
                    totals.checksum = totals.checksum.wrapping_add(mix(number, key_number(&hit.key)));
                    totals.query_in_hit.add(Some(hit.query_in_hit()));
                    totals.hit_in_query.add(Some(hit.hit_in_query()));
                    if query.prints() {
                        write_hit(out, key, hit, query.gather).context(CANNOT_WRITE)?;
                    }
                }
                anyhow::Ok(())
            },
        )?;
        queries.clear();
        keys.clear();
        Ok(())
    }
}

/// Writes a line for a hit whose common elements were counted. The distance is unknown, so its column is `-`.
fn write_hit(
    out: &mut impl Write,
    query: &[u8],
    hit: &ContainmentHit,
    gathered: bool,
) -> std::io::Result<()> {
    tsv::write_field(out, query)?;
    out.write_all(b"\t")?;
    write_key(out, &hit.key)?;
    let resemblance = hit.resemblance();
    write!(out, "\t-\t{:.4}", resemblance.value())?;
    if let Resemblance::Exact { intersection, union } = resemblance {
        write!(out, "\t{intersection}\t{union}")?;
    }
    write!(out, "\t{:.4}\t{:.4}", hit.query_in_hit().value(), hit.hit_in_query().value())?;
    if gathered {
        write!(out, "\t{}\t{:.4}", hit.unique, hit.unique_in_query().value())?;
    }
    writeln!(out)
}
