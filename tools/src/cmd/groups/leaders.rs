//! `twindex groups --as leaders`: prints the leader of each document's group, and the group's size.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde::Serialize;
use twindex::params::KeyKind;
use twindex::{GROUP_QUESTIONS, GroupRule, Index, Key, KeyBuf, Resources, Snapshot};
use twindex_corpus::input::Documents;
use twindex_corpus::page::{LargestGroups, PairSample};
use twindex_corpus::tsv;
use twindex_join::living_groups;

use super::GroupsArgs;
use crate::key_args;
use crate::options::Usage;
use crate::report::{self, counted};
use crate::stage::{ResultKind, StageFile};

const HEAD: &str = "key\tleader\tsize";
const GROUPS: ResultKind =
    ResultKind { noun: "a table of groups", suffix: "groups", magic: b"key\tleader\tsize\n" };

/// The statistics that `--json` prints.
#[derive(Default, Serialize)]
struct LeadersReport {
    /// The path of the table. Absent without --out and --into.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    /// Number of documents in the table.
    documents: u64,
    /// Number of groups in the table.
    groups: u64,
}

/// The table of groups.
struct Table {
    out: StageFile,
    report: LeadersReport,
    has_page: bool,
    page: (LargestGroups, PairSample),
}

impl Table {
    fn add(&mut self, key: Key<'_>, leader: Key<'_>, size: u64) -> io::Result<()> {
        self.report.documents += 1;
        self.report.groups += u64::from(key == leader);
        if self.has_page {
            let (groups, pairs) = &mut self.page;
            let leader = leader.to_buf();
            if key == leader.as_key() {
                groups.add(&leader, size);
            } else {
                pairs.add_member([&leader, &key.to_buf()], None);
            }
        }
        write_key(&mut self.out, key)?;
        self.out.write_all(b"\t")?;
        write_key(&mut self.out, leader)?;
        writeln!(self.out, "\t{size}")
    }
}

fn write_key(out: &mut impl Write, key: Key<'_>) -> io::Result<()> {
    match key {
        Key::U64(key) => write!(out, "{key}"),
        Key::Bytes(key) => tsv::write_field(out, key),
    }
}

impl GroupsArgs {
    pub(super) fn leaders(&self) -> anyhow::Result<ExitCode> {
        let [path] = &self.inputs[..] else {
            return Err(Usage::new("--as leaders goes with one index").into());
        };
        self.work.apply_threads()?;
        self.stage.check(GROUPS, self.texts.iter().chain([path]))?;
        self.page.check(self.texts.iter().chain([path]).map(PathBuf::as_path).chain(self.stage.named()))?;
        Documents::check_options(&self.texts, &self.reading.options()?)?;
        let snapshot = Index::open(path)?.snapshot();
        if snapshot.group_rule()? == GroupRule::Estimated && !self.output.quiet {
            report::note(&format!(
                "{}: keeps no sets: which documents resemble each other is an estimate from signatures",
                path.display()
            ));
        }
        let min_size = self.min_size.unwrap_or(1);
        let threads = rayon::current_num_threads();
        let resources = Resources { memory: self.work.memory, threads, ..Resources::in_dir(path) };
        let numbers = snapshot.params().key == KeyKind::U64;
        let begin = || -> anyhow::Result<Table> {
            let mut out = self.stage.create_table(GROUPS, HEAD, (true, numbers), &self.output)?;
            writeln!(out, "{HEAD}").context(CANNOT_WRITE)?;
            let (has_page, page) = (self.page.html.is_some(), Default::default());
            Ok(Table { out, report: LeadersReport::default(), has_page, page })
        };
        let mut table = if let Some(text) = &self.of {
            let key = key_args::parse(text.as_bytes(), true, path, snapshot.params())?;
            let Some((leader, members)) = group(&snapshot, &key, &resources)? else {
                bail!("{}: no document `{text}`", path.display());
            };
            let mut table = begin()?;
            let size = members.len() as u64;
            if size >= min_size.into() {
                let mut add = |member: &KeyBuf| table.add(member.as_key(), leader.as_key(), size);
                members.iter().try_for_each(&mut add).context(CANNOT_WRITE)?;
            }
            table
        } else {
            let groups = living_groups(&snapshot, &resources)?;
            let mut table = begin()?;
            let mut failed = None;
            let listed = groups.for_each(min_size, |key, leader, size| {
                table.add(key, leader, size.into()).map_err(|error| {
                    failed = Some(error);
                    // Ends the listing, because a write failed, for example because the reader closed the pipe.
                    twindex::Error::Invalid("standard output is closed".into())
                })
            });
            failed.map_or(Ok(()), Err).context(CANNOT_WRITE)?;
            listed?;
            table
        };
        let written = table.out.finish()?;
        let LeadersReport { documents, groups, .. } = table.report;
        let [documents, groups] = [counted(documents, "document"), counted(groups, "group")];
        let title = format!("{documents} in {groups} in {}", path.display());
        self.write_page(title, ["leader", "member"], table.page)?;
        if self.output.json {
            table.report.file = written.path;
            report::print_json(&table.report)?;
        } else {
            written.print_summary(&format!("{documents}, {groups}"), &self.output)?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

const CANNOT_WRITE: &str = "cannot write the results";

/// Returns the leader and the members of a document's group; `None` if the key is not in the index. Finds the members
/// by queries, or, if there would be too many queries, in the list of all groups.
fn group(
    snapshot: &Snapshot,
    key: &KeyBuf,
    resources: &Resources<'_>,
) -> anyhow::Result<Option<(KeyBuf, Vec<KeyBuf>)>> {
    let Some(found) = snapshot.group(key, GROUP_QUESTIONS)? else { return Ok(None) };
    if let Some(group) = found.decided() {
        return Ok(Some((group.leader, group.members)));
    }
    let all = living_groups(snapshot, resources)?;
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
