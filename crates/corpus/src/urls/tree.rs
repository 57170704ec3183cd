//! Finds the URLs to which a candidate rule applies. Divides the pages of a site into sets such that the candidate
//! merges only near pages within a set.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::urls::candidates::Ignored;
use crate::urls::page::{SitePages, hash_of};

/// Maximum depth of the tree of divisions.
const DEPTH_MAX: usize = 4;
/// Maximum number of values at a position if a separate rule is learned for each value.
const VALUES_MAX: usize = 64;

/// A normal form: represents all URLs that become equal when the ignored parts are removed.
pub(crate) struct NormalForm {
    /// The first page with this form.
    pub(crate) page: u32,
    group: u64,
    /// Number of URLs with this form.
    pub(crate) urls: u32,
    /// Whether the pages of these URLs belong to several groups.
    mixed: bool,
}

impl NormalForm {
    /// Returns true if the form merges several URLs and their pages are all near each other.
    pub(crate) fn is_near(&self) -> bool {
        self.urls > 1 && !self.mixed
    }

    /// Returns true if the form merges several URLs and their pages are not all near each other: counter-evidence.
    pub(crate) fn is_against(&self) -> bool {
        self.urls > 1 && self.mixed
    }
}

/// The normal forms of the pages whose URLs have parts that a candidate ignores.
pub(crate) struct NormalForms {
    pub(crate) forms: Vec<NormalForm>,
    /// The pages that have at least one of the ignored parts, each with the index of its form.
    pub(crate) pages: Vec<(u32, u32)>,
}

impl NormalForms {
    /// Computes the normal forms of a candidate. `by_place` lists, for each position, the pages with a part at this
    /// position; `by_hash` maps the hash of a URL to its page.
    pub(crate) fn of(
        pages: &SitePages<'_>,
        candidate: &[Ignored],
        by_place: &[Vec<u32>],
        by_hash: &HashMap<u128, u32>,
    ) -> Self {
        let of_path = candidate.iter().filter(|(place, _)| pages.places[*place as usize].is_of_path());
        let rarest = of_path.min_by_key(|(place, _)| by_place[*place as usize].len());
        let mut found = Self { forms: Vec::new(), pages: Vec::new() };
        let mut numbers: HashMap<u128, u32> = HashMap::new();
        let lists: Vec<u32> = match rarest {
            Some(&(place, _)) => vec![place],
            None => candidate.iter().map(|&(place, _)| place).collect(),
        };
        for (number, &list) in lists.iter().enumerate() {
            for &page in &by_place[list as usize] {
                // A page that is in several lists is counted in the first of them.
                if lists[..number].iter().any(|&place| pages.find(page, place).is_some()) {
                    continue;
                }
                if let Some(rest) = rest(pages, page, candidate) {
                    found.add(pages, page, rest, &mut numbers);
                }
            }
        }
        if rarest.is_none() {
            // A page whose URL has none of the ignored parameters, but is otherwise equal, has the same form.
            let mut all: Vec<(u128, u32)> = numbers.into_iter().collect();
            all.sort_unstable_by_key(|&(_, form)| form);
            for (rest, form) in all {
                if let Some(&page) = by_hash.get(&rest) {
                    found.forms[form as usize].add(pages, page);
                }
            }
        }
        found
    }

    fn add(&mut self, pages: &SitePages<'_>, page: u32, rest: u128, numbers: &mut HashMap<u128, u32>) {
        let form = *numbers.entry(rest).or_insert(self.forms.len() as u32);
        self.pages.push((page, form));
        match self.forms.get_mut(form as usize) {
            Some(known) => known.add(pages, page),
            None => self.forms.push(NormalForm {
                page,
                group: pages.groups[page as usize],
                urls: 1,
                mixed: pages.mixed[page as usize],
            }),
        }
    }
}

impl NormalForm {
    fn add(&mut self, pages: &SitePages<'_>, page: u32) {
        self.urls += 1;
        self.mixed |= self.group != pages.groups[page as usize] || pages.mixed[page as usize];
    }
}

/// Returns the hash of a page's URL without the parts of a candidate. Returns `None` if the URL lacks an ignored part
/// of the path, has none of the ignored parameters, or has an ignored value of the wrong length.
fn rest(pages: &SitePages<'_>, page: u32, candidate: &[Ignored]) -> Option<u128> {
    let (mut rest, mut has) = (pages.hashes[page as usize], false);
    for &(place, length) in candidate {
        match pages.find(page, place) {
            Some(value) if length.is_none_or(|length| length == value.len()) => {
                rest = rest.wrapping_sub(hash_of(place, value));
                has = true;
            }
            Some(_) => return None,
            None if pages.places[place as usize].is_of_path() => return None,
            None => {}
        }
    }
    has.then_some(rest)
}

/// The property by which forms are divided: the depth of the path, or the value at a position.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Division {
    Depth,
    Place(u32),
}

/// The numbers of near, counter-evidence and single-URL forms that have the same value of a property.
#[derive(Clone, Copy, Default)]
struct FormCounts {
    near: usize,
    against: usize,
    other: usize,
}

/// Divides forms into sets without counter-evidence, preferably of at least `min` near forms each. Returns only the
/// near forms of each set.
pub(crate) struct Tree<'t, 'u> {
    pub(crate) pages: &'t SitePages<'u>,
    pub(crate) forms: &'t [NormalForm],
    /// The ignored positions. Forms are not divided by the values at these positions.
    pub(crate) ignored: HashSet<u32>,
    /// The preferred minimum number of near forms in a set.
    pub(crate) min: usize,
}

impl Tree<'_, '_> {
    /// Divides `forms`, and adds the near forms of each set to `found`.
    pub(crate) fn divide(&self, forms: Vec<u32>, depth: usize, found: &mut Vec<Vec<u32>>) {
        let near: Vec<u32> = forms.iter().copied().filter(|&form| self.form(form).is_near()).collect();
        if near.is_empty() {
            return;
        }
        let is_pure = !forms.iter().any(|&form| self.form(form).is_against());
        let by = if depth == DEPTH_MAX { None } else { self.best(&forms, is_pure) };
        match by {
            Some(by) => {
                let mut parts: BTreeMap<Option<String>, Vec<u32>> = BTreeMap::new();
                for form in forms {
                    parts.entry(self.value(form, by)).or_default().push(form);
                }
                for part in parts.into_values() {
                    self.divide(part, depth + 1, found);
                }
            }
            None if is_pure => found.push(near),
            // Counter-evidence remains: each near form becomes a set, since a rule for one form merges no other pages.
            None => found.extend(near.into_iter().map(|form| vec![form])),
        }
    }

    fn form(&self, form: u32) -> &NormalForm {
        &self.forms[form as usize]
    }

    fn value(&self, form: u32, by: Division) -> Option<String> {
        let page = self.form(form).page;
        match by {
            Division::Depth => Some(self.pages.depths[page as usize].to_string()),
            Division::Place(place) => self.pages.find(page, place).map(str::to_owned),
        }
    }

    /// Returns the best division, or `None` if no division helps. If there is counter-evidence, the best division puts
    /// the most near forms into sets without counter-evidence of at least `min` near forms each. Otherwise, it
    /// restricts the rule to the values of near forms, if these are few and other values exist.
    fn best(&self, forms: &[u32], is_pure: bool) -> Option<Division> {
        let mut counts: HashMap<Division, HashMap<u64, FormCounts>> = HashMap::new();
        let (mut all, whole) = (FormCounts::default(), |counts: &mut FormCounts, form: &NormalForm| {
            counts.near += usize::from(form.is_near());
            counts.against += usize::from(form.is_against());
            counts.other += usize::from(form.urls == 1);
        });
        for &form in forms {
            let form = self.form(form);
            whole(&mut all, form);
            let mut count = |by: Division, value: &str| {
                let value = xxhash_rust::xxh3::xxh3_64(value.as_bytes());
                whole(counts.entry(by).or_default().entry(value).or_default(), form);
            };
            count(Division::Depth, &self.pages.depths[form.page as usize].to_string());
            for &part in self.pages.parts(form.page) {
                if !self.ignored.contains(&part.place) {
                    count(Division::Place(part.place), self.pages.value(form.page, part));
                }
            }
        }
        let scored = counts.into_iter().filter_map(|(by, mut values)| {
            let mut absent = all;
            for counts in values.values() {
                absent.near -= counts.near;
                absent.against -= counts.against;
                absent.other -= counts.other;
            }
            if absent.near + absent.against + absent.other > 0 {
                values.insert(0, absent);
            }
            let score = if is_pure { self.confines(&values) } else { self.purifies(&values) };
            score.map(|score| (score, std::cmp::Reverse(values.len()), std::cmp::Reverse(by)))
        });
        scored.max().map(|(_, _, std::cmp::Reverse(by))| by)
    }

    /// Returns how many near forms are in sets that have no counter-evidence and at least `min` near forms. Returns
    /// `None` if the number is 0 or if there is only one set.
    fn purifies(&self, values: &HashMap<u64, FormCounts>) -> Option<usize> {
        let pure = values.values().filter(|counts| counts.against == 0 && counts.near >= self.min);
        let near = pure.map(|counts| counts.near).sum();
        (values.len() > 1 && near > 0).then_some(near)
    }

    /// Returns the number of forms whose value no near form has. Returns `None` if this number is below `min`, if the
    /// near forms have too many values, or if fewer than `min` near forms have one of these values.
    fn confines(&self, values: &HashMap<u64, FormCounts>) -> Option<usize> {
        let near = values.values().filter(|counts| counts.near > 0);
        let is_few = near.clone().count() <= VALUES_MAX && near.clone().all(|counts| counts.near >= self.min);
        let others = values.values().filter(|counts| counts.near == 0).map(|counts| counts.other).sum();
        (is_few && others >= self.min).then_some(others)
    }
}
