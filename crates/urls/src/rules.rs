//! Rules together: all that match a URL are applied to it at once.

use std::collections::HashMap;

use crate::alias::unit;
use crate::parts::{Parameter, Parts};
use crate::rule::{Marks, Rule, RuleBody};

/// Rules of any number of hosts.
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
    /// The numbers of the rules, by unit for aliases, and by site for templates.
    by_site: HashMap<String, Vec<usize>>,
}

impl Rules {
    /// Collects these rules.
    pub(crate) fn of(rules: Vec<Rule>) -> Self {
        let mut by_site: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, rule) in rules.iter().enumerate() {
            by_site.entry(rule.site.clone()).or_default().push(number);
        }
        Self { rules, by_site }
    }

    /// The rules, host by host; of a host aliases first, then templates, those of most forms first.
    #[must_use]
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Adds other rules after these.
    pub fn extend(&mut self, others: Self) {
        for rule in others.rules {
            self.by_site.entry(rule.site.clone()).or_default().push(self.rules.len());
            self.rules.push(rule);
        }
    }

    /// The normal form of a URL: with its host in lower case, without the scheme's own port, user names and the
    /// fragment; spelled as the aliases of its host say; with a `*` in the place of each part of the path that a
    /// template leaves out, and without the parameters that one leaves out. It is a name of the page, and may be no
    /// address that answers. What is no URL comes back as it is. The normal form of a normal form is itself.
    ///
    /// Takes time in the length of the URL and the number of rules of its host.
    #[must_use]
    pub fn normalise(&self, url: &str) -> String {
        self.normalise_by(url, |_| {})
    }

    /// As [`normalise`](Self::normalise); calls `each` with the numbers of the rules that changed something.
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

/// The URL without what is marked.
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
