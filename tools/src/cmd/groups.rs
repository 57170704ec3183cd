//! `twindex groups`: prints the leader of each document's group, and the group's size.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context;
use clap::Args;
use serde::Serialize;
use twindex::{GROUP_QUESTIONS, GroupRule, Index, Key, KeyBuf, Resources, Snapshot};
use twindex_corpus::tsv;
use twindex_join::living_groups;

use crate::key_args;
use crate::options::ResourceArgs;

/// Options of `groups`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex groups pages.twx --min-size 2\n  \
    twindex groups pages.twx --of https://example.org/a\n\n\
    Prints a header line, and a line for each document, by key: key, leader, size of the group. A document is a leader \
    if no leader before it is near it; every other document belongs to the first leader near it. The order is that of \
    priorities, where the index keeps them, and then of a hash of the key: so groups depend on what is in the index and \
    on nothing else, and are those of `dedup --keep key-hash`. Near is what the index says. Where it keeps no sets, \
    resemblance is an estimate, and a note on standard error says so.")]
pub(crate) struct GroupsArgs {
    /// Directory of the index
    index: PathBuf,
    /// Print only the group of the document with this key; KEY is written as in the output, with \\ for a backslash
    #[arg(long, value_name = "KEY")]
    of: Option<String>,
    /// Print only groups of at least N documents
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..))]
    min_size: u32,
    /// Print one JSON object per line instead of a table
    #[arg(long)]
    json: bool,
    /// Print no notes
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    work: ResourceArgs,
}

/// A line of `--json`.
#[derive(Serialize)]
struct GroupLine<'a> {
    key: &'a str,
    leader: &'a str,
    size: u64,
}

/// Writes one line for each document of a group.
struct GroupLines<W: Write> {
    out: W,
    json: bool,
}

fn shown(key: Key<'_>) -> String {
    match key {
        Key::U64(key) => key.to_string(),
        Key::Bytes(key) => String::from_utf8_lossy(&tsv::escape(key)).into_owned(),
    }
}

impl<W: Write> GroupLines<W> {
    fn head(&mut self) -> io::Result<()> {
        if self.json { Ok(()) } else { writeln!(self.out, "key\tleader\tsize") }
    }

    fn add(&mut self, key: Key<'_>, leader: Key<'_>, size: u64) -> io::Result<()> {
        let (key, leader) = (shown(key), shown(leader));
        if self.json {
            serde_json::to_writer(&mut self.out, &GroupLine { key: &key, leader: &leader, size })?;
            return writeln!(self.out);
        }
        writeln!(self.out, "{key}\t{leader}\t{size}")
    }
}

impl GroupsArgs {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.work.apply_threads()?;
        let index = Index::open(&self.index)?;
        let snapshot = index.snapshot();
        if snapshot.group_rule()? == GroupRule::Estimated && !self.quiet {
            eprintln!(
                "twindex: {}: keeps no sets: which documents resemble each other is an estimate from signatures",
                self.index.display()
            );
        }
        let mut lines = GroupLines { out: BufWriter::new(io::stdout().lock()), json: self.json };
        let Some(key) = &self.of else {
            self.all(&snapshot, &mut lines)?;
            lines.out.flush().context("cannot write to standard output")?;
            return Ok(ExitCode::SUCCESS);
        };
        let key = key_args::parse(key.as_bytes(), true, &self.index, snapshot.params())?;
        let Some((leader, members)) = self.group(&snapshot, &key)? else {
            eprintln!("twindex: {}: no document `{}`", self.index.display(), shown(key.as_key()));
            return Ok(ExitCode::FAILURE);
        };
        let size = members.len() as u64;
        let mut print = || {
            lines.head()?;
            if size >= self.min_size.into() {
                members.iter().try_for_each(|member| lines.add(member.as_key(), leader.as_key(), size))?;
            }
            lines.out.flush()
        };
        print().context("cannot write to standard output")?;
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the leader and the members of a document's group; `None` if the key is not in the index. Runs queries for
    /// the members, or lists all groups if there would be too many queries.
    fn group(&self, snapshot: &Snapshot, key: &KeyBuf) -> anyhow::Result<Option<(KeyBuf, Vec<KeyBuf>)>> {
        let Some(found) = snapshot.group(key, GROUP_QUESTIONS)? else { return Ok(None) };
        if let Some(group) = found.decided() {
            return Ok(Some((group.leader, group.members)));
        }
        let all = living_groups(snapshot, &self.resources())?;
        let Some((leader, _)) = all.leader(key)? else { return Ok(None) };
        let mut members = Vec::new();
        all.for_each(1, |member, of, _| {
            if of == leader.as_key() {
                members.push(member.to_buf());
            }
            Ok(())
        })?;
        Ok(Some((leader, members)))
    }

    fn resources(&self) -> Resources<'_> {
        let threads = rayon::current_num_threads();
        Resources { memory: self.work.memory, threads, ..Resources::in_dir(&self.index) }
    }

    fn all(&self, snapshot: &Snapshot, lines: &mut GroupLines<impl Write>) -> anyhow::Result<()> {
        let groups = living_groups(snapshot, &self.resources())?;
        lines.head().context("cannot write to standard output")?;
        let mut failed = None;
        let listed = groups.for_each(self.min_size, |key, leader, size| {
            lines.add(key, leader, size.into()).map_err(|error| {
                failed = Some(error);
                // The reader has closed the pipe. This error ends the listing.
                twindex::Error::Invalid("standard output is closed".into())
            })
        });
        failed.map_or(Ok(()), Err).context("cannot write to standard output")?;
        Ok(listed?)
    }
}
