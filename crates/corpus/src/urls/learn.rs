//! Learns rules from URLs, each with the group of near-duplicates that its page belongs to.

use std::collections::{BTreeMap, HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_128;

use crate::urls::alias::{Alias, unit};
use crate::urls::candidates::{IgnoredPlaces, candidates};
use crate::urls::page::{SitePages, UrlPlace};
use crate::urls::parts::Parts;
use crate::urls::rule::{Pattern, PatternPiece, PatternSegment, PatternValue, Required, Rule, RuleBody};
use crate::urls::rules::Rules;
use crate::urls::tree::{NormalForms, Tree};
use crate::urls::value::Summary;

/// Maximum number of rules per site that each produce only one normal form.
const SINGLES_MAX: usize = 64;

/// The minimum evidence for a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Minimum number of normal forms that support an alias, or a template for several pages. A normal form supports a
    /// rule if the rule maps several URLs of near pages to this form. The default is 3, the minimum 2.
    pub min_forms: usize,
    /// Minimum number of URLs that support a rule for one page only. The default is 3, the minimum 2.
    pub min_urls: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { min_forms: 3, min_urls: 3 }
    }
}

/// Collects pages and learns rules from them.
#[derive(Clone, Debug, Default)]
pub struct Learner {
    options: Options,
    /// The URL and group of each page, by [unit](Self::unit).
    units: BTreeMap<String, Vec<(String, u64)>>,
}

impl Learner {
    /// Creates a learner without pages.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let (min_forms, min_urls) = (options.min_forms.max(2), options.min_urls.max(2));
        Self { options: Options { min_forms, min_urls }, units: BTreeMap::new() }
    }

    /// Adds a page, given as its URL and its group. Pages of the same group are near each other; a page that is near no
    /// other page must have a group of its own. Returns false and ignores the page if `url` is not a URL with a host.
    ///
    /// Add all pages, including unique ones: a rule is learned only if it never maps two added pages of different
    /// groups to one normal form.
    pub fn add(&mut self, url: &str, group: u64) -> bool {
        let Some(parts) = Parts::parse(url) else { return false };
        self.units.entry(unit(&parts)).or_default().push((parts.to_string(), group));
        true
    }

    /// Returns the unit of a URL: its host without `www.`, and its port. The rules of a unit depend only on its own
    /// pages, so units may be processed one after the other. `None` if `url` is not a URL with a host.
    #[must_use]
    pub fn unit(url: &str) -> Option<String> {
        Parts::parse(url).map(|parts| unit(&parts))
    }

    /// Returns the rules that were learned. They depend on the added pages but not on the order in which pages were added.
    ///
    /// Takes time linear in the bytes of the URLs, times a limited number of candidates for each host, and about 20 bytes of
    /// memory for each part of a URL.
    #[must_use]
    pub fn finish(self) -> Rules {
        let mut rules = Vec::new();
        for (unit, mut pages) in self.units {
            pages.sort_unstable();
            pages.dedup();
            rules.extend(of_unit(&unit, &pages, self.options));
        }
        Rules::of(rules)
    }
}

/// Learns the rules of one [unit](Learner::unit).
fn of_unit(unit: &str, pages: &[(String, u64)], options: Options) -> Vec<Rule> {
    let mut rules = aliases(unit, pages, options);
    let known = Rules::of(rules.clone());
    let mut sites: BTreeMap<String, Vec<(String, u64)>> = BTreeMap::new();
    for (url, group) in pages {
        let url = known.normalise(url);
        let end = url.find("://").map_or(0, |at| at + 3);
        let end = url[end..].find('/').map_or(url.len(), |at| end + at);
        sites.entry(url[..end].to_owned()).or_default().push((url, *group));
    }
    for (site, mut pages) in sites {
        pages.sort_unstable();
        rules.extend(of_site(&site, &pages, options));
    }
    verified(rules, pages)
}

/// Returns the aliases that, alone or in pairs, have enough evidence and merge only pages that are near each other.
fn aliases(unit: &str, pages: &[(String, u64)], options: Options) -> Vec<Rule> {
    let mut found: Vec<Rule> = Vec::new();
    let all = Alias::ALL;
    let twos = (0..all.len()).flat_map(|a| (a + 1..all.len()).map(move |b| vec![all[a], all[b]]));
    for tried in all.iter().map(|&one| vec![one]).chain(twos) {
        if tried.iter().any(|&one| found.iter().any(|rule| rule.alias() == Some(one))) {
            continue;
        }
        let rule = |alias: Alias| Rule {
            site: unit.to_owned(),
            body: RuleBody::Alias(alias),
            example: String::new(),
            pages: 0,
            forms: 0,
            near_forms: 0,
        };
        let mut with = found.clone();
        with.extend(tried.iter().map(|&alias| rule(alias)));
        let (before, after) = (Rules::of(found.clone()), Rules::of(with));
        let seen = RuleEffect::of(pages, &before, &after);
        if seen.against == 0 && seen.near >= options.min_forms {
            found.extend(tried.into_iter().map(rule));
        }
    }
    found.sort_by_key(Rule::alias);
    found
}

/// Numbers of normal forms that rules merge correctly and wrongly.
struct RuleEffect {
    /// Number of normal forms to which several URLs of near pages are mapped.
    near: usize,
    /// Number of normal forms to which several URLs are mapped although their pages are not all near each other.
    against: usize,
}

impl RuleEffect {
    /// Counts the normal forms under the rules `after` that merge several normal forms under the rules `before`.
    fn of(pages: &[(String, u64)], before: &Rules, after: &Rules) -> Self {
        // For each normal form of `after`: its group, a normal form of `before` that it merges, whether it merges
        // several normal forms of `before`, and whether its pages belong to several groups.
        let mut forms: HashMap<u128, (u64, u128, bool, bool)> = HashMap::new();
        for (url, group) in pages {
            let first = xxh3_128(before.normalise(url).as_bytes());
            let form = xxh3_128(after.normalise(url).as_bytes());
            let seen = forms.entry(form).or_insert((*group, first, false, false));
            seen.2 |= seen.1 != first;
            seen.3 |= seen.0 != *group;
        }
        let several = |against: bool| forms.values().filter(|one| one.2 && one.3 == against).count();
        Self { near: several(false), against: several(true) }
    }
}

/// Learns the templates of one site.
fn of_site(site: &str, urls: &[(String, u64)], options: Options) -> Vec<Rule> {
    let mut pages = SitePages::default();
    for (url, group) in urls {
        pages.add(url, *group);
    }
    let candidates = candidates(&pages);
    if candidates.is_empty() {
        return Vec::new();
    }
    let mut by_place: Vec<Vec<u32>> = vec![Vec::new(); pages.places.len()];
    let mut by_hash = HashMap::new();
    for page in 0..pages.len() as u32 {
        pages.parts(page).iter().for_each(|part| by_place[part.place as usize].push(page));
        by_hash.entry(pages.hashes[page as usize]).or_insert(page);
    }
    let (mut rules, mut singles) = (Vec::new(), 0);
    // A union-find: for each page, a lower page that the rules found so far merge with it, or the page itself.
    let mut one_with: Vec<u32> = (0..pages.len() as u32).collect();
    for candidate in candidates {
        let forms = NormalForms::of(&pages, &candidate, &by_place, &by_hash);
        let ignored: HashSet<u32> = candidate.iter().map(|&(place, _)| place).collect();
        let tree = Tree { pages: &pages, forms: &forms.forms, ignored, min: options.min_forms };
        let mut sets = Vec::new();
        tree.divide((0..forms.forms.len() as u32).collect(), 0, &mut sets);
        let mut members: Vec<Vec<u32>> = vec![Vec::new(); forms.forms.len()];
        forms.pages.iter().for_each(|&(page, form)| members[form as usize].push(page));
        for set in sets {
            for some in supported(&set, &forms, options) {
                let mut is_new = |form: &u32| {
                    let roots = members[*form as usize].iter().map(|&page| root(&mut one_with, page));
                    roots.collect::<HashSet<u32>>().len() > 1
                };
                let is_bare =
                    |form: &u32| forms.forms[*form as usize].urls as usize > members[*form as usize].len();
                let is_new = some.iter().filter(|form| is_new(form) || is_bare(form)).count();
                if is_new == 0 || some.len() == 1 && singles == SINGLES_MAX {
                    continue;
                }
                singles += usize::from(some.len() == 1);
                rules.push(rule_of(site, &pages, &candidate, &some, &members));
                for form in some {
                    let first = root(&mut one_with, members[form as usize][0]);
                    for &page in &members[form as usize] {
                        let other = root(&mut one_with, page);
                        one_with[first.max(other) as usize] = first.min(other);
                    }
                }
            }
        }
    }
    rules
}

/// Returns the page with the lowest number among the pages that are merged with `page`.
fn root(one_with: &mut [u32], mut page: u32) -> u32 {
    while one_with[page as usize] != page {
        one_with[page as usize] = one_with[one_with[page as usize] as usize];
        page = one_with[page as usize];
    }
    page
}

/// Returns `set` if it has enough forms for one rule. Otherwise returns a separate set for each of its forms that has
/// enough URLs.
fn supported(set: &[u32], forms: &NormalForms, options: Options) -> Vec<Vec<u32>> {
    if set.len() >= options.min_forms {
        return vec![set.to_vec()];
    }
    let enough = |form: &&u32| forms.forms[**form as usize].urls as usize >= options.min_urls;
    set.iter().filter(enough).map(|&form| vec![form]).collect()
}

/// Returns the rule with the narrowest template that matches the URLs of all pages with these normal forms.
fn rule_of(
    site: &str,
    pages: &SitePages<'_>,
    candidate: &IgnoredPlaces,
    forms: &[u32],
    members: &[Vec<u32>],
) -> Rule {
    let mut shapes: HashMap<u32, Summary> = HashMap::new();
    for &page in forms.iter().flat_map(|&form| &members[form as usize]) {
        for &(place, _) in candidate {
            if let Some(value) = pages.find(page, place) {
                shapes.entry(place).or_insert_with(Summary::new).add(value);
            }
        }
    }
    let firsts: Vec<u32> = forms.iter().map(|&form| members[form as usize][0]).collect();
    let depths = || firsts.iter().map(|&page| pages.depths[page as usize]);
    let (lower, upper) = (depths().min().unwrap_or(0), depths().max().unwrap_or(0));
    let mut pattern =
        Pattern { segments: Vec::new(), open: lower != upper, parameters: Vec::new(), others: false };
    for segment in 0..lower {
        pattern.segments.push(segment_of(pages, &firsts, segment, &shapes));
    }
    parameters_of(pages, &firsts, &shapes, &mut pattern);
    let example = pages.urls[firsts[0] as usize].to_owned();
    let site = site.to_owned();
    Rule { site, body: RuleBody::Pattern(pattern), example, pages: 0, forms: 0, near_forms: 0 }
}

/// Returns the narrowest pattern that matches path segment number `segment` in the URLs of the pages `firsts`.
fn segment_of(
    pages: &SitePages<'_>,
    firsts: &[u32],
    segment: usize,
    shapes: &HashMap<u32, Summary>,
) -> PatternSegment {
    let is_here = |place: u32| match &pages.places[place as usize] {
        UrlPlace::Run { segment: at, .. } | UrlPlace::NoRun { segment: at, .. } => *at == segment,
        UrlPlace::Parameter { .. } => false,
    };
    // The parts of a page are sorted by position, so pages with the same positions have equal lists.
    let places = |page: u32| -> Vec<u32> {
        pages.parts(page).iter().map(|part| part.place).filter(|&place| is_here(place)).collect()
    };
    let mut wanted = places(firsts[0]);
    if firsts.iter().any(|&page| places(page) != wanted) {
        return PatternSegment::Any;
    }
    wanted.sort_by_key(|&place| match &pages.places[place as usize] {
        UrlPlace::Run { run, .. } => *run,
        _ => 0,
    });
    let Some(frame) = wanted.first().and_then(|&place| match &pages.places[place as usize] {
        UrlPlace::Run { frame, .. } | UrlPlace::NoRun { frame, .. } => Some(frame),
        UrlPlace::Parameter { .. } => None,
    }) else {
        return PatternSegment::Any;
    };
    let (mut pieces, mut runs) = (Vec::new(), wanted.iter());
    for (number, between) in frame.split('\0').enumerate() {
        if number > 0
            && let Some(&place) = runs.next()
        {
            let first = pages.find(firsts[0], place).unwrap_or_default();
            pieces.push(match shapes.get(&place) {
                Some(summary) => PatternPiece::Ignored(summary.shape(None)),
                None if firsts.iter().all(|&page| pages.find(page, place) == Some(first)) => {
                    PatternPiece::Is(first.to_owned())
                }
                None => PatternPiece::Run,
            });
        }
        if !between.is_empty() {
            pieces.push(PatternPiece::Between(between.to_owned()));
        }
    }
    PatternSegment::Of(pieces)
}

/// Adds to `pattern` the parameters that all URLs of the pages `firsts` have in common, and the ignored parameters.
fn parameters_of(
    pages: &SitePages<'_>,
    firsts: &[u32],
    shapes: &HashMap<u32, Summary>,
    pattern: &mut Pattern,
) {
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    for &page in firsts {
        for part in pages.parts(page) {
            if !pages.places[part.place as usize].is_of_path() {
                *seen.entry(part.place).or_default() += 1;
            }
        }
    }
    seen.extend(shapes.keys().filter(|&&place| !pages.places[place as usize].is_of_path()).map(|&p| (p, 0)));
    let mut found = Vec::new();
    for (place, number) in seen {
        let UrlPlace::Parameter { in_path, name, nth, has_value } = &pages.places[place as usize] else {
            continue;
        };
        let value = match shapes.get(&place) {
            Some(summary) => PatternValue::Ignored(summary.shape(Some(name))),
            None if number < firsts.len() => {
                pattern.others = true;
                continue;
            }
            None if !has_value => PatternValue::None,
            None => {
                let first = pages.find(firsts[0], place).unwrap_or_default();
                let is_one = firsts.iter().all(|&page| pages.find(page, place) == Some(first));
                if is_one { PatternValue::Is(first.to_owned()) } else { PatternValue::Any }
            }
        };
        found.push((name, *nth, Required { in_path: *in_path, name: name.clone(), value }));
    }
    found.sort_by(|a, b| (!a.2.in_path, a.0, a.1).cmp(&(!b.2.in_path, b.0, b.1)));
    pattern.parameters = found.into_iter().map(|(_, _, required)| required).collect();
}

/// Removes rules until no rule merges pages that are not near each other. Of the rules that merge such pages, removes
/// first the rule with the fewest merged forms. Returns the remaining rules with their counts.
fn verified(mut rules: Vec<Rule>, pages: &[(String, u64)]) -> Vec<Rule> {
    loop {
        let known = Rules::of(rules);
        let (wrong, counted) = counted(&known, pages);
        rules = counted;
        let Some(weakest) = wrong.into_iter().min_by_key(|&rule| (rules[rule].near_forms, usize::MAX - rule))
        else {
            rules.retain(|rule| rule.near_forms > 0);
            let is_alias = |rule: &Rule| rule.alias().is_none();
            rules.sort_by(|a, b| {
                let by_forms = b.near_forms.cmp(&a.near_forms);
                (is_alias(a), &a.site).cmp(&(is_alias(b), &b.site)).then(by_forms)
            });
            return rules;
        };
        rules.remove(weakest);
    }
}

/// Returns the indices of the rules that merge pages that are not near each other, and all rules with their counts.
fn counted(known: &Rules, pages: &[(String, u64)]) -> (HashSet<usize>, Vec<Rule>) {
    struct FormSeen {
        group: u64,
        first: usize,
        several: bool,
    }
    let mut rules: Vec<Rule> = known.rules().to_vec();
    for rule in &mut rules {
        (rule.pages, rule.forms, rule.near_forms) = (0, 0, 0);
    }
    let mut forms: HashMap<String, FormSeen> = HashMap::new();
    let mut made: HashSet<(usize, u128)> = HashSet::new();
    let (mut wrong, mut used) = (HashSet::new(), Vec::new());
    for (number, (url, group)) in pages.iter().enumerate() {
        used.clear();
        let form = known.normalise_by(url, |rule| used.push(rule));
        let hash = xxh3_128(form.as_bytes());
        let seen = forms.entry(form).or_insert(FormSeen { group: *group, first: number, several: false });
        let first = &pages[seen.first].0;
        if first != url {
            seen.several = true;
            if seen.group != *group {
                wrong.extend(&used);
                known.normalise_by(first, |rule| {
                    wrong.insert(rule);
                });
            }
        }
        for &rule in &used {
            rules[rule].pages += 1;
            if rules[rule].example.is_empty() {
                rules[rule].example.clone_from(url);
            }
            made.insert((rule, hash));
        }
    }
    let is_several = |(form, seen): (&String, &FormSeen)| seen.several.then(|| xxh3_128(form.as_bytes()));
    let several: HashSet<u128> = forms.iter().filter_map(is_several).collect();
    for (rule, form) in made {
        rules[rule].forms += 1;
        rules[rule].near_forms += u64::from(several.contains(&form));
    }
    (wrong, rules)
}
