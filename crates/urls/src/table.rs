//! Writes and reads rules as a table with tab-separated columns.

use std::fmt;

use crate::alias::Alias;
use crate::rule::{Pattern, Rule, RuleBody};
use crate::rules::Rules;
use crate::value::Shape;

/// The columns of a table of rules.
pub const COLUMNS: &str =
    "host\ttemplate\tparts\texample\tpages\tforms\tnear_forms\tduplicate_rate\tconfidence";

/// The error returned for an invalid table of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BadRules {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// What was expected in the line, and what was found.
    pub why: String,
}

/// Formats a rule as a line of a table with the [`COLUMNS`], without a newline.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match &self.body {
            RuleBody::Alias(alias) => alias.name().to_owned(),
            RuleBody::Pattern(_) => self.shapes().iter().map(Shape::to_string).collect::<Vec<_>>().join("; "),
        };
        write!(f, "{}\t{}\t{parts}\t{}\t", self.host(), self.template(), self.example)?;
        write!(f, "{}\t{}\t{}\t", self.pages, self.forms, self.near_forms)?;
        write!(f, "{:.6}\t{:.6}", self.duplicate_rate(), self.confidence())
    }
}

impl fmt::Display for Rules {
    /// Formats the table, beginning with a line of column names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{COLUMNS}")?;
        self.rules().iter().try_for_each(|rule| writeln!(f, "{rule}"))
    }
}

impl Rules {
    /// Parses a table of rules.
    ///
    /// # Errors
    ///
    /// The number of the line and the reason, if the first line is not [`COLUMNS`], or if a line has the wrong number of
    /// columns, an invalid template, parts that do not match its template, or an invalid number.
    pub fn read(table: &[u8]) -> Result<Self, BadRules> {
        let mut rules = Vec::new();
        let mut lines = table.split(|&byte| byte == b'\n').enumerate();
        let bad = |line: usize, why: String| BadRules { line: line + 1, why };
        let head = lines.next().map(|(_, line)| line).unwrap_or_default();
        if head != COLUMNS.as_bytes() {
            let columns = COLUMNS.replace('\t', ", ");
            let found = String::from_utf8_lossy(&head[..head.len().min(80)]).into_owned();
            return Err(bad(0, format!("expected the columns {columns}, found {found:?}")));
        }
        for (number, line) in lines {
            if line.is_empty() {
                continue;
            }
            let text =
                std::str::from_utf8(line).map_err(|error| bad(number, format!("not UTF-8: {error}")))?;
            rules.push(read_rule(text).map_err(|why| bad(number, why))?);
        }
        Ok(Self::of(rules))
    }
}

fn read_rule(line: &str) -> Result<Rule, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    let &[host, template, parts, example, pages, forms, near_forms, _, _] = &columns[..] else {
        return Err(format!("expected 9 columns, found {}", columns.len()));
    };
    let number = |name: &str, text: &str| {
        text.parse::<u64>().map_err(|_| format!("{name}: expected a number, found {text:?}"))
    };
    let (site, body) = match Alias::ALL.into_iter().find(|alias| alias.name() == parts) {
        Some(alias) => (host.to_owned(), RuleBody::Alias(alias)),
        None => read_template(template, parts)?,
    };
    let (pages, forms, near_forms) =
        (number("pages", pages)?, number("forms", forms)?, number("near_forms", near_forms)?);
    if near_forms > forms || forms > pages {
        return Err(format!(
            "expected near_forms <= forms <= pages, found {near_forms}, {forms} and {pages}"
        ));
    }
    Ok(Rule { site, body, example: example.to_owned(), pages, forms, near_forms })
}

fn read_template(template: &str, parts: &str) -> Result<(String, RuleBody), String> {
    let bad = || format!("expected a template as `twindex study --urls` writes it, found {template:?}");
    let mut shapes = Vec::new();
    for part in parts.split("; ") {
        shapes.push(Shape::parse(part).ok_or_else(|| {
            format!("parts: expected for example \"session id: 12 base-62\" or an alias, found {part:?}")
        })?);
    }
    let start = template.find("://").ok_or_else(bad)? + 3;
    let end = template[start..].find('/').map(|at| start + at).ok_or_else(bad)?;
    let (site, path) = template.split_at(end);
    let wanted = shapes.len();
    let mut shapes = shapes.into_iter();
    let pattern = Pattern::parse(path, &mut shapes);
    let left = shapes.len();
    match pattern {
        Some(pattern) if left == 0 => Ok((site.to_owned(), RuleBody::Pattern(pattern))),
        Some(_) => Err(format!("{wanted} parts, but the template {template:?} has {} `*`", wanted - left)),
        None => Err(bad()),
    }
}
