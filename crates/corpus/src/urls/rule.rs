//! A rule: an alias of a host, or a template of URLs in which some parts are ignored.

use std::fmt::Write;

use crate::urls::alias::Alias;
use crate::urls::parts::{Parameter, Parts, runs};
use crate::urls::value::Shape;

/// A piece of the pattern of a path segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternPiece {
    /// Literal characters between runs.
    Between(String),
    /// A literal run.
    Is(String),
    /// Any run.
    Run,
    /// A run that is ignored.
    Ignored(Shape),
}

/// The pattern of a path segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternSegment {
    /// Matches any segment.
    Any,
    /// Matches a segment that consists of these pieces.
    Of(Vec<PatternPiece>),
}

/// The pattern of a parameter's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternValue {
    /// The parameter has no `=`.
    None,
    Is(String),
    Any,
    /// The value has this shape, and the parameter is ignored.
    Ignored(Shape),
}

/// A parameter of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Required {
    pub(crate) in_path: bool,
    pub(crate) name: String,
    pub(crate) value: PatternValue,
}

/// A template of the paths and queries of a site.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pattern {
    /// The patterns of the first segments of the path.
    pub(crate) segments: Vec<PatternSegment>,
    /// Whether more segments may follow.
    pub(crate) open: bool,
    /// The parameters of the template. A matching URL has all parameters that are not ignored. If no segment has an
    /// ignored part, it also has at least one of the ignored parameters.
    pub(crate) parameters: Vec<Required>,
    /// Whether a matching URL may have further parameters.
    pub(crate) others: bool,
}

/// The parts of a URL that a rule ignores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Marks {
    /// The ignored runs, as byte ranges of the path.
    pub(crate) runs: Vec<(usize, usize)>,
    /// The ignored parameters, as indices into the list of all parameters.
    pub(crate) parameters: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RuleBody {
    Alias(Alias),
    Pattern(Pattern),
}

/// A rule of one host, and the evidence for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// For a template, `scheme://host:port`. For an alias, the host without `www.`, and the port.
    pub(crate) site: String,
    pub(crate) body: RuleBody,
    /// A URL that the rule matches.
    pub example: String,
    /// Number of URLs that the rule matches. Several URLs of one page are counted separately.
    pub pages: u64,
    /// Number of different normal forms of these URLs.
    pub forms: u64,
    /// Number of these normal forms that several URLs share. The pages of these URLs are always near each other.
    pub near_forms: u64,
}

/// The 97.5 % quantile of the standard normal distribution, for a two-sided 95 % interval.
const Z: f64 = 1.96;

impl Rule {
    /// Returns the host that the rule applies to, followed by the port if it is not the default port of the scheme.
    #[must_use]
    pub fn host(&self) -> &str {
        self.site.split_once("://").map_or(&self.site, |(_, host)| host)
    }

    /// Returns the alias if the rule is an alias of a host, or `None` if it is a template.
    #[must_use]
    pub fn alias(&self) -> Option<Alias> {
        match self.body {
            RuleBody::Alias(alias) => Some(alias),
            RuleBody::Pattern(_) => None,
        }
    }

    /// Returns the share of the matched URLs that are duplicates. Of several URLs with the same normal form, all but
    /// one are duplicates.
    #[must_use]
    pub fn duplicate_rate(&self) -> f64 {
        if self.pages == 0 { 0.0 } else { (self.pages - self.forms) as f64 / self.pages as f64 }
    }

    /// Returns the lower bound of the 95 % Wilson score interval for the probability that URLs that the rule merges
    /// belong to near pages. It is `n / (n + 1.96^2)`, where `n` is [`near_forms`](Self::near_forms).
    #[must_use]
    pub fn confidence(&self) -> f64 {
        let n = self.near_forms as f64;
        n / Z.mul_add(Z, n)
    }

    /// Returns the template as text: `*` is an ignored part, `{}` any run of letters and digits, `{_}` any segment, and
    /// `{...}` any number of further segments or parameters. A literal `*`, brace or backslash is preceded by a backslash.
    /// In an alias, the optional part is in parentheses.
    #[must_use]
    pub fn template(&self) -> String {
        match &self.body {
            RuleBody::Alias(alias) => alias.template(&self.site),
            RuleBody::Pattern(pattern) => format!("{}{}", self.site, pattern.text()),
        }
    }

    /// Returns the shape of each `*` in the template, in order.
    #[must_use]
    pub fn shapes(&self) -> Vec<Shape> {
        match &self.body {
            RuleBody::Alias(_) => Vec::new(),
            RuleBody::Pattern(pattern) => pattern.shapes().copied().collect(),
        }
    }

    /// Returns the scheme and host of a template, or the host of an alias.
    #[must_use]
    pub fn site(&self) -> &str {
        &self.site
    }
}

fn escaped(text: &str, out: &mut String) {
    for c in text.chars() {
        if "*{}\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
}

fn unescaped(text: &str) -> String {
    let (mut out, mut is_after) = (String::new(), false);
    for c in text.chars() {
        if c == '\\' && !is_after {
            is_after = true;
        } else {
            out.push(c);
            is_after = false;
        }
    }
    out
}

/// Returns the pieces of a segment, each with a flag that is true for a run and false for the characters between runs.
fn pieces(segment: &str) -> impl Iterator<Item = (bool, &str)> {
    let (mut at, mut all) = (0, runs(segment).peekable());
    std::iter::from_fn(move || {
        let start = all.peek().map_or(segment.len(), |run| run.as_ptr() as usize - segment.as_ptr() as usize);
        if start > at {
            let between = &segment[at..start];
            at = start;
            return Some((false, between));
        }
        let run = all.next()?;
        at += run.len();
        Some((true, run))
    })
}

impl PatternSegment {
    /// Returns true if `segment`, which begins at byte `start` of the path, matches. Adds its ignored runs to `marks`.
    fn matches(&self, segment: &str, start: usize, marks: &mut Marks) -> bool {
        let Self::Of(wanted) = self else { return true };
        let (mut found, mut at) = (pieces(segment), start);
        for piece in wanted {
            let Some((is_run, text)) = found.next() else { return false };
            let fits = match piece {
                PatternPiece::Between(between) => !is_run && between == text,
                PatternPiece::Is(run) => is_run && run == text,
                PatternPiece::Run => is_run,
                PatternPiece::Ignored(shape) => is_run && shape.has(text),
            };
            if !fits {
                return false;
            }
            if matches!(piece, PatternPiece::Ignored(_)) {
                marks.runs.push((at, at + text.len()));
            }
            at += text.len();
        }
        found.next().is_none()
    }

    fn text(&self, out: &mut String) {
        let Self::Of(pieces) = self else { return out.push_str("{_}") };
        for piece in pieces {
            match piece {
                PatternPiece::Between(text) | PatternPiece::Is(text) => escaped(text, out),
                PatternPiece::Run => out.push_str("{}"),
                PatternPiece::Ignored(_) => out.push('*'),
            }
        }
    }

    /// Parses the output of [`text`](Self::text).
    fn parse(text: &str, shapes: &mut impl Iterator<Item = Shape>) -> Option<Self> {
        if text == "{_}" {
            return Some(Self::Any);
        }
        let (mut found, mut literal, mut rest) = (Vec::new(), String::new(), text);
        let flush = |literal: &mut String, found: &mut Vec<PatternPiece>| {
            let of = |(is_run, text): (bool, &str)| {
                if is_run {
                    PatternPiece::Is(text.to_owned())
                } else {
                    PatternPiece::Between(text.to_owned())
                }
            };
            found.extend(pieces(literal).map(of));
            literal.clear();
        };
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                '\\' => {
                    let next = rest.chars().next()?;
                    rest = &rest[next.len_utf8()..];
                    literal.push(next);
                }
                '*' => {
                    flush(&mut literal, &mut found);
                    found.push(PatternPiece::Ignored(shapes.next()?));
                }
                '{' => {
                    rest = rest.strip_prefix('}')?;
                    flush(&mut literal, &mut found);
                    found.push(PatternPiece::Run);
                }
                '}' => return None,
                c => literal.push(c),
            }
        }
        flush(&mut literal, &mut found);
        Some(Self::Of(found))
    }
}

impl Pattern {
    /// Returns the parts of the URL that the template ignores, or `None` if the template does not match the URL.
    pub(crate) fn matches(&self, parts: &Parts<'_>, parameters: &[Parameter<'_>]) -> Option<Marks> {
        let (mut marks, mut wanted) = (Marks::default(), self.segments.iter());
        for segment in parts.segments() {
            let start = segment.as_ptr() as usize - parts.path.as_ptr() as usize;
            match wanted.next() {
                Some(wanted) => {
                    if !wanted.matches(segment, start, &mut marks) {
                        return None;
                    }
                }
                None if self.open => break,
                None => return None,
            }
        }
        if wanted.next().is_some() {
            return None;
        }
        let mut kept = 0;
        for (place, parameter) in parameters.iter().enumerate() {
            let is_same = |one: &&Required| one.in_path == parameter.in_path && one.name == parameter.name;
            let is_before =
                |one: &&Parameter<'_>| one.in_path == parameter.in_path && one.name == parameter.name;
            let nth = parameters[..place].iter().filter(is_before).count();
            match self.parameters.iter().filter(is_same).nth(nth).map(|one| &one.value) {
                None if self.others => {}
                None => return None,
                Some(PatternValue::Ignored(shape)) => {
                    if !parameter.value.is_some_and(|value| shape.has(value)) {
                        return None;
                    }
                    marks.parameters.push(place);
                }
                Some(value) => {
                    let fits = match value {
                        PatternValue::None => parameter.value.is_none(),
                        PatternValue::Is(value) => parameter.value == Some(value),
                        _ => parameter.value.is_some(),
                    };
                    if !fits {
                        return None;
                    }
                    kept += 1;
                }
            }
        }
        let required =
            self.parameters.iter().filter(|one| !matches!(one.value, PatternValue::Ignored(_))).count();
        let does_something = !marks.runs.is_empty() || !marks.parameters.is_empty();
        (kept == required && does_something).then_some(marks)
    }

    /// Returns the shapes of the ignored parts, in the order of the template.
    fn shapes(&self) -> impl Iterator<Item = &Shape> {
        let of_segments = self.segments.iter().flat_map(|segment| match segment {
            PatternSegment::Any => &[][..],
            PatternSegment::Of(pieces) => pieces,
        });
        let of_segments = of_segments.filter_map(|piece| match piece {
            PatternPiece::Ignored(shape) => Some(shape),
            _ => None,
        });
        of_segments.chain(self.parameters.iter().filter_map(|one| match &one.value {
            PatternValue::Ignored(shape) => Some(shape),
            _ => None,
        }))
    }

    /// Returns the template as text, from the first `/` on.
    fn text(&self) -> String {
        let mut out = String::new();
        for segment in &self.segments {
            out.push('/');
            segment.text(&mut out);
        }
        if self.open {
            out.push_str("/{...}");
        }
        let write = |one: &Required, out: &mut String| {
            escaped(&one.name, out);
            match &one.value {
                PatternValue::None => {}
                PatternValue::Is(value) => {
                    out.push('=');
                    escaped(value, out);
                }
                PatternValue::Any => out.push_str("={}"),
                PatternValue::Ignored(_) => out.push_str("=*"),
            }
        };
        for one in self.parameters.iter().filter(|one| one.in_path) {
            out.push(';');
            write(one, &mut out);
        }
        let mut next = '?';
        for one in self.parameters.iter().filter(|one| !one.in_path) {
            out.push(next);
            write(one, &mut out);
            next = '&';
        }
        if self.others {
            let _ = write!(out, "{next}{{...}}");
        }
        out
    }

    /// Parses the output of [`text`](Self::text). `shapes` has the shapes of the ignored parts.
    pub(crate) fn parse(text: &str, shapes: &mut impl Iterator<Item = Shape>) -> Option<Self> {
        let (path, query) = text.split_once('?').map_or((text, None), |(path, query)| (path, Some(query)));
        let last = path.rfind('/')? + 1;
        let end = path[last..].find(';').map_or(path.len(), |at| last + at);
        let (path, params) = path.split_at(end);
        let mut found = Self::default();
        let path = match path.strip_suffix("/{...}") {
            Some(path) => {
                found.open = true;
                path
            }
            None => path,
        };
        if !path.is_empty() {
            for segment in path.strip_prefix('/')?.split('/') {
                found.segments.push(PatternSegment::parse(segment, shapes)?);
            }
        }
        let of_path = params.split(';').skip(1).map(|one| (true, one));
        let of_query = query.into_iter().flat_map(|query| query.split('&')).map(|one| (false, one));
        for (in_path, one) in of_path.chain(of_query) {
            if one == "{...}" && !in_path {
                found.others = true;
                continue;
            }
            let (name, value) = match one.split_once('=') {
                None => (one, PatternValue::None),
                Some((name, "{}")) => (name, PatternValue::Any),
                Some((name, "*")) => (name, PatternValue::Ignored(shapes.next()?)),
                Some((name, value)) => (name, PatternValue::Is(unescaped(value))),
            };
            found.parameters.push(Required { in_path, name: unescaped(name), value });
        }
        Some(found)
    }
}
