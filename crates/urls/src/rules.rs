//! A set of rules. All rules that match a URL are applied to it at once.

use std::collections::HashMap;

use crate::alias::unit;
use crate::parts::{Parameter, Parts};
use crate::rule::{Marks, Rule, RuleBody};

/// Rules for any number of hosts.
///
/// ```
/// use twindex_urls::Rules;
///
/// let table = "host\ttemplate\tparts\texample\tpages\tforms\tnear_forms\tduplicate_rate\tconfidence\n\
///              shop.example\thttps://shop.example/S-*/{...}\tsession id: 12 base-62\t\
///              https://shop.example/S-fXyiE5bZS43a/cart\t90\t30\t25\t0.666667\t0.866792\n";
/// let rules = Rules::read(table.as_bytes())?;
/// assert_eq!(rules.normalise("https://shop.example/S-LcNLKgc7bMgq/cart"), "https://shop.example/S-*/cart");
/// # Ok::<(), twindex_urls::BadRules>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    /// The indices of the rules: of aliases by unit, and of templates by site.
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

    /// Returns the rules, grouped by host. For each host, aliases come first, and then templates in descending order of
    /// their number of merged forms.
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
    /// removed. Aliases of the host are replaced by one spelling. Each part of the path that a template ignores is replaced
    /// by a `*`, and each parameter that a template ignores is removed. The normal form identifies the page but may not be a
    /// valid address. Text that is not a URL is returned unchanged. Idempotent: a normal form is its own normal form.
    ///
    /// Takes time proportional to the length of the URL and the number of rules of its host.
    #[must_use]
    pub fn normalise(&self, url: &str) -> String {
        self.normalise_by(url, |_| {})
    }

    /// Like [`normalise`](Self::normalise), but also calls `each` with the index of each rule that changed the URL.
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
