//! Defines the options for the values, stamps and priorities of documents, and applies them to a new index.

use std::path::Path;

use anyhow::ensure;
use clap::Args;
use twindex::{Document, Params, WriterOptions};
use twindex_corpus::Keep;
use twindex_corpus::input::{AttachedFields, DecidingFields};
use twindex_corpus::sketching::Sketched;

use crate::options::Usage;
use crate::refusals;

/// Options of verbs that add documents.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AttachedArgs {
    /// Field of a JSONL object, column of a table, or header field of an archive record that holds the document's value,
    /// at most 64 KiB. It may be a path, meta.url or /meta/url. Strings are kept unchanged, other types as JSON; a
    /// document without the field has the empty value. A new index keeps values if this is given
    #[arg(long, value_name = "NAME")]
    value_field: Option<String>,
    /// Field, column, or header field of a record (WARC-Date) that holds the document's stamp: an integer from 0 on,
    /// usually seconds since 1970, or a date or time such as 2026-01-31 or 2026-01-31T12:00:00Z, which is converted to
    /// seconds. It may be a path. A WARC-Date must be a date or a time. For an index in which documents expire
    #[arg(long, value_name = "NAME")]
    stamp_field: Option<String>,
    /// The document's priority, which decides the leader of a group (see `groups`): max:FIELD, min:FIELD, earliest:FIELD,
    /// rank:FIELD=A,B,..., https or shortest-url, as in `dedup --keep`, whose other rules compare more than one number. A
    /// time is stored as seconds since 1970. FIELD may be a path. Every document needs a priority. A new index keeps priorities if this is given
    #[arg(long, value_name = "WHICH", value_parser = parse_priority)]
    priority_field: Option<Keep>,
    /// In a new index, documents expire when their stamp is this much older than the newest stamp: a number, or, if
    /// stamps are seconds, a number followed by s, m, h, d or w
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    expire_after: Option<u64>,
    /// How far a stamp may be ahead of all earlier stamps. A stamp further ahead is a bad record, because one wrong
    /// stamp would make all other documents expire [default: the age at which documents expire]
    #[arg(long, value_name = "AGE", value_parser = parse_age)]
    max_jump: Option<u64>,
}

impl AttachedArgs {
    /// Returns the name of the first option that was given.
    pub(crate) fn first_given(&self) -> Option<String> {
        refusals::first(&[
            ("--value-field", self.value_field.is_some()),
            ("--stamp-field", self.stamp_field.is_some()),
            ("--priority-field", self.priority_field.is_some()),
            ("--expire-after", self.expire_after.is_some()),
            ("--max-jump", self.max_jump.is_some()),
        ])
    }

    pub(crate) fn fields(&self) -> AttachedFields {
        AttachedFields {
            value: self.value_field.clone(),
            stamp: self.stamp_field.clone(),
            deciding: DecidingFields {
                keep: self.priority_field.iter().cloned().collect(),
                is_priority: true,
                ..DecidingFields::default()
            },
        }
    }

    /// Returns the sketched document with its value, stamp and priority.
    pub(crate) fn document<'a>(&self, one: &'a Sketched) -> Document<'a> {
        let number = one.attached.deciding().numbers.first().map(|read| read.number.priority());
        let priority = self.priority_field.as_ref().zip(number).map(|(rule, number)| match rule {
            Keep::Max(_) => !number,
            _ => number,
        });
        let document = match one.code {
            Some(code) => one.attached.with(code),
            None => one.attached.with(&one.sketch),
        };
        document.with_priority(priority)
    }

    /// Returns an error if options name fields although the run reads no documents.
    pub(crate) fn check_documents(&self, documents: bool) -> anyhow::Result<()> {
        if documents || !self.fields().any() {
            return Ok(());
        }
        Err(Usage::new(
            "--value-field, --stamp-field and --priority-field are fields of documents; there are none here",
        )
        .into())
    }

    /// Sets the parameters of a new index for values, stamps and priorities.
    pub(crate) fn apply(&self, params: &mut Params) -> anyhow::Result<()> {
        params.values = self.value_field.is_some();
        params.priorities = self.priority_field.is_some();
        params.expire_after = self.expire_after;
        if self.stamp_field.is_some() != self.expire_after.is_some() {
            return Err(Usage::new("--stamp-field and --expire-after go together in a new index").into());
        }
        self.check_jump(params)
    }

    fn check_jump(&self, params: &Params) -> anyhow::Result<()> {
        if self.max_jump.is_some() && params.expire_after.is_none() {
            return Err(Usage::new("--max-jump is for an index in which documents expire").into());
        }
        Ok(())
    }

    /// Returns an error if the options contradict the parameters of an existing index.
    pub(crate) fn check(&self, path: &Path, params: &Params, documents: bool) -> anyhow::Result<()> {
        let path = path.display();
        if let Some(age) = self.expire_after {
            let kept = params.expire_after.map_or("none".to_owned(), |kept| kept.to_string());
            ensure!(
                params.expire_after == Some(age),
                "{path}: expire-after is {kept} in this index, --expire-after {age} was given; leave it out, or make \
                 another index"
            );
        }
        ensure!(
            self.value_field.is_none() || params.values,
            "{path}: no values are kept in this index; leave --value-field out, or make another index with it"
        );
        ensure!(
            self.priority_field.is_none() || params.priorities,
            "{path}: no priorities are kept in this index; leave --priority-field out, or make another index with it"
        );
        ensure!(
            self.stamp_field.is_none() || params.expire_after.is_some(),
            "{path}: nothing expires in this index; leave --stamp-field out, or make another index with --expire-after"
        );
        ensure!(
            !documents || params.expire_after.is_none() || self.stamp_field.is_some(),
            "{path}: documents of this index expire by their stamps; say with --stamp-field where those are"
        );
        self.check_jump(params)
    }

    pub(crate) fn writer_options(&self) -> WriterOptions {
        let options = WriterOptions::default().threads(rayon::current_num_threads());
        self.max_jump.map_or(options, |jump| options.max_jump(jump))
    }
}

/// Parses a rule that compares one number of each document, which is known when the document is added.
fn parse_priority(text: &str) -> Result<Keep, String> {
    const EXPECTED: &str =
        "expected max:FIELD, min:FIELD, earliest:FIELD, rank:FIELD=A,B,..., https or shortest-url";
    match text.parse() {
        Ok(
            rule @ (Keep::Max(_)
            | Keep::Min(_)
            | Keep::Earliest(_)
            | Keep::Rank(..)
            | Keep::Https
            | Keep::ShortestUrl),
        ) => Ok(rule),
        Ok(rule) => Err(format!(
            "{EXPECTED}: a priority is one number, stored when a document is added, and {rule} has none; `dedup` decides \
             by it"
        )),
        Err(_) => Err(EXPECTED.to_owned()),
    }
}

fn parse_age(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "s" => 1_u64,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        "w" => 7 * 24 * 3600,
        _ => return Err("expected a number, or one with s, m, h, d or w, for example 30d".into()),
    };
    let number: u64 = digits.parse().map_err(|_| "expected a number, for example 30d".to_string())?;
    match number.checked_mul(unit) {
        Some(0) => Err("at least 1".into()),
        Some(age) => Ok(age),
        None => Err("too large".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_parsed_with_their_units() {
        for (text, age) in
            [("1", 1), ("90s", 90), ("5m", 300), ("2h", 7200), ("30d", 2_592_000), ("1w", 604_800)]
        {
            assert_eq!(parse_age(text), Ok(age), "{text}");
        }
        for bad in ["", "0", "0d", "d", "1y", "-1", "1.5h", "99999999999999999w"] {
            assert!(parse_age(bad).is_err(), "{bad}");
        }
    }
}
