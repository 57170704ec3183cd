//! A set of rules. All rules that match a URL are applied together.

use std::collections::HashMap;
use std::fmt;

use crate::urls::alias::{Alias, unit};
use crate::urls::parts::{Parameter, Parts};
use crate::urls::rule::{Marks, Pattern, Rule, RuleBody};
use crate::urls::value::Shape;

/// Rules for any number of hosts.
///
/// ```
/// use twindex_corpus::urls::Rules;
///
/// let table = "host\ttemplate\tparts\texample\tpages\tforms\tnear_forms\tduplicate_rate\tconfidence\n\
///              shop.example\thttps://shop.example/S-*/{...}\tsession id: 12 base-62\t\
///              https://shop.example/S-fXyiE5bZS43a/cart\t90\t30\t25\t0.666667\t0.866792\n";
/// let rules = Rules::read(table.as_bytes())?;
/// assert_eq!(rules.normalise("https://shop.example/S-LcNLKgc7bMgq/cart"), "https://shop.example/S-*/cart");
/// # Ok::<(), twindex_corpus::urls::BadRules>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// The indices of the rules by [`Rule::site()`]: host without `www.` of an alias, scheme and host of a template.
    by_site: HashMap<String, Vec<usize>>,
}

impl Rules {
    /// Creates a set of these rules.
    pub(crate) fn of(rules: Vec<Rule>) -> Self {
        let mut by_site: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, rule) in rules.iter().enumerate() {
            by_site.entry(rule.site.clone()).or_default().push(number);
        }
        Self { rules, by_site }
    }

    /// Returns the rules, grouped by host. For each host, aliases precede templates, which are sorted by their number
    /// of merged forms, descending.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Appends the rules of another set.
    pub fn extend(&mut self, others: Self) {
        for rule in others.rules {
            self.by_site.entry(rule.site.clone()).or_default().push(self.rules.len());
            self.rules.push(rule);
        }
    }

    /// Returns the normal form of a URL. The host is in lower case; the default port, user names and the fragment are
    /// removed. If the host has an alias rule, one spelling replaces the other. Each part of the path that a template
    /// ignores is replaced by a `*`, and each parameter that a template ignores is removed. The normal form identifies
    /// the page but may not be a valid address. Text that is not a URL is returned unchanged. Idempotent.
    ///
    /// Takes time proportional to the length of the URL and the number of rules of its host.
    #[must_use]
    pub fn normalise(&self, url: &str) -> String {
        self.normalise_by(url, |_| {})
    }

    /// Returns the [normal form](Self::normalise), and calls `each` with the index of each rule that changed the URL.
    pub(crate) fn normalise_by(&self, url: &str, mut each: impl FnMut(usize)) -> String {
        let Some(mut parts) = Parts::parse(url) else { return url.to_owned() };
        for &number in self.by_site.get(&unit(&parts)).into_iter().flatten() {
            if let RuleBody::Alias(alias) = self.rules[number].body {
                let before = (parts.scheme.len(), parts.host.len(), parts.path.len());
                alias.apply(&mut parts);
                if before != (parts.scheme.len(), parts.host.len(), parts.path.len()) {
                    each(number);
                }
            }
        }
        let site = format!("{}://{}", parts.scheme, parts.authority());
        let Some(numbers) = self.by_site.get(&site) else { return parts.to_string() };
        let parameters: Vec<Parameter<'_>> = parts.parameters().collect();
        let mut marks = Marks::default();
        for &number in numbers {
            if let RuleBody::Pattern(pattern) = &self.rules[number].body
                && let Some(found) = pattern.matches(&parts, &parameters)
            {
                each(number);
                marks.runs.extend(found.runs);
                marks.parameters.extend(found.parameters);
            }
        }
        written(&site, &parts, &parameters, marks)
    }
}

/// Formats a URL with `*` in place of its ignored runs and without its ignored parameters.
fn written(site: &str, parts: &Parts<'_>, parameters: &[Parameter<'_>], mut marks: Marks) -> String {
    if marks == Marks::default() {
        return parts.to_string();
    }
    marks.runs.sort_unstable();
    marks.runs.dedup();
    let mut out = site.to_owned();
    let mut at = 0;
    for (start, end) in marks.runs {
        out.push_str(&parts.path[at..start]);
        out.push('*');
        at = end;
    }
    out.push_str(&parts.path[at..]);
    let mut next = '?';
    for (place, parameter) in parameters.iter().enumerate() {
        if marks.parameters.contains(&place) {
            continue;
        }
        if parameter.in_path {
            out.push(';');
        } else {
            out.push(next);
            next = '&';
        }
        out.push_str(parameter.name);
        if let Some(value) = parameter.value {
            out.push('=');
            out.push_str(value);
        }
    }
    out
}

/// The columns of a table of rules.
pub const COLUMNS: &str =
    "host\ttemplate\tparts\texample\tpages\tforms\tnear_forms\tduplicate_rate\tconfidence";

/// The error returned for an invalid table of rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BadRules {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The fault: what was expected in the line, and what was found.
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
    /// Fails if the first line is not [`COLUMNS`], or if a line has the wrong number of columns, an invalid template,
    /// shapes that do not match its template, or an invalid number. The error has the line number and the reason.
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
