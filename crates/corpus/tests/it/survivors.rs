//! Tests that lists of rules keep the documents of their definition: a worse and longer copy, a copy at another place
//! than the source, and a copy that lost information are planted, and random rules choose among them.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use twindex_corpus::{Dedup, Keep, KeepOrder, Near, Why};
use xxhash_rust::xxh3::xxh3_64;

use crate::corpora::{Random, cases, shingles, words};

/// A page, as the generator made it.
#[derive(Clone, Debug)]
struct Page {
    url: String,
    is_https: bool,
    source: &'static str,
    /// The score, in units of one half.
    halves: i64,
    /// The day, hour and minute in January 2026, in UTC.
    fetched: (usize, usize, usize),
    /// Whether the canonical link names the page itself; `None` without a link.
    is_canonical: Option<bool>,
    text: String,
}

const SOURCES: [&str; 4] = ["wiki", "news", "forum", "mirror"];

impl Page {
    fn drawn(random: &mut Random, at: usize, text: String) -> Self {
        let (is_https, path) = (random.below(2) == 0, "x".repeat(random.below(3)));
        let scheme = if is_https { "https" } else { "http" };
        Self {
            url: format!("{scheme}://a{at}.example/{path}"),
            is_https,
            source: SOURCES[random.below(4)],
            halves: [-2, -1, 0, 1][random.below(4)],
            fetched: (1 + random.below(2), random.below(3), random.below(2)),
            is_canonical: [None, Some(true), Some(false)][random.below(3)],
            text,
        }
    }

    fn line(&self, random: &mut Random) -> String {
        let (day, hour, minute) = self.fetched;
        let fetched = match random.below(3) {
            0 => format!("2026-01-{day:02}T{hour:02}:{minute:02}:00Z"),
            1 => format!("2026-01-{day:02} {:02}:{minute:02}:00+02:00", hour + 2),
            _ => format!("2026-01-{day:02}T{hour:02}:{minute:02}"),
        };
        let link = match self.is_canonical {
            None => String::new(),
            Some(true) if random.below(2) == 0 => "<link rel=canonical href=''>".replace("''", &self.url),
            Some(true) => {
                format!("<link rel='canonical' href='/{}'>", &self.url[self.url.rfind('/').unwrap() + 1..])
            }
            Some(false) => "<link rel=canonical href='https://elsewhere.example/'>".to_owned(),
        };
        let score = self.halves as f64 / 2.0;
        format!(
            "{{\"id\":\"{}\",\"source\":\"{}\",\"score\":{score},\"fetched\":\"{fetched}\",\"text\":\"<title></title>{link}<body>{}\"}}\n",
            self.url, self.source, self.text
        )
    }
}

/// Returns an original page and its copies, and unrelated pages, in random order.
fn pages(random: &mut Random) -> Vec<Page> {
    let mut pages: Vec<Page> = Vec::new();
    for family in 0..=random.below(3) {
        let original: Vec<String> = (0..8 + random.below(12)).map(|at| format!("f{family}w{at}")).collect();
        for _ in 0..=random.below(5) {
            let mut text = original.clone();
            match random.below(4) {
                0 => text.extend((0..=random.below(5)).map(|_| format!("ad{}", random.below(9)))),
                1 => text.truncate(original.len() - random.below(original.len() / 2)),
                2 => text[random.below(original.len())] = format!("other{}", random.below(3)),
                _ => {}
            }
            let mut page = Page::drawn(random, pages.len(), text.join(" "));
            if let Some(last) = pages.last().filter(|_| random.below(2) == 0) {
                // Pages that few rules distinguish.
                let Page { source, halves, fetched, is_canonical, .. } = last.clone();
                page = Page { source, halves, fetched, is_canonical, ..page };
            }
            pages.push(page);
        }
    }
    for at in (1..pages.len()).rev() {
        pages.swap(at, random.below(at + 1));
    }
    pages
}

/// Draws a list of rules, as the command spells them.
fn rules(random: &mut Random) -> Vec<String> {
    let mut all = vec![
        "max:score",
        "min:score",
        "earliest:fetched",
        "min:fetched",
        "max:fetched",
        "rank:source=news,wiki,forum",
        "rank:source=mirror",
        "https",
        "shortest-url",
        "canonical",
        "longest",
    ];
    let mut drawn = Vec::new();
    for _ in 0..random.below(5) {
        drawn.push(all.swap_remove(random.below(all.len())).to_owned());
    }
    let last = ["first", "smallest-key", "key-hash"];
    if drawn.is_empty() || random.below(2) == 0 {
        drawn.push(last[random.below(3)].to_owned());
    }
    drawn
}

/// Compares two pages by one rule, by its definition.
fn compared(rule: &str, pages: &[Page], a: usize, b: usize) -> Ordering {
    let (one, other) = (&pages[a], &pages[b]);
    let rank =
        |page: &Page, listed: &[&str]| listed.iter().position(|&source| source == page.source).unwrap_or(9);
    match rule {
        "first" => a.cmp(&b),
        "smallest-key" => one.url.cmp(&other.url),
        "key-hash" => xxh3_64(one.url.as_bytes()).cmp(&xxh3_64(other.url.as_bytes())),
        "longest" => words(&other.text).len().cmp(&words(&one.text).len()),
        "max:score" => other.halves.cmp(&one.halves),
        "min:score" => one.halves.cmp(&other.halves),
        "earliest:fetched" | "min:fetched" => one.fetched.cmp(&other.fetched),
        "max:fetched" => other.fetched.cmp(&one.fetched),
        "rank:source=news,wiki,forum" => {
            rank(one, &["news", "wiki", "forum"]).cmp(&rank(other, &["news", "wiki", "forum"]))
        }
        "rank:source=mirror" => rank(one, &["mirror"]).cmp(&rank(other, &["mirror"])),
        "https" => other.is_https.cmp(&one.is_https),
        "shortest-url" => one.url.len().cmp(&other.url.len()),
        "canonical" => {
            let place = |page: &Page| {
                [Some(true), None, Some(false)].iter().position(|link| *link == page.is_canonical)
            };
            place(one).cmp(&place(other))
        }
        other => panic!("{other}"),
    }
}

/// The kept pages, and for each removed page the page that is kept in its place, and the rule that decided.
type Decision = (Vec<String>, BTreeMap<String, (String, String)>);

/// Decides by the definition: pages in the order of the rules, each removed if an earlier kept page is near it.
fn by_definition(pages: &[Page], rules: &[String], near: Near) -> Decision {
    let sets: Vec<_> = pages.iter().map(|page| shingles(&page.text, 2)).collect();
    let is_by_size = matches!(near, Near::Containment(_));
    let last = rules.last().map(String::as_str);
    let tie = if matches!(last, Some("first" | "longest")) { "first" } else { "smallest-key" };
    let by_size = |a: usize, b: usize| Reverse(sets[a].len()).cmp(&Reverse(sets[b].len()));
    let all = rules.iter().map(String::as_str).chain([tie]);
    let decided = |a: usize, b: usize| match by_size(a, b) {
        order if is_by_size && order.is_ne() => ("size", order),
        _ => {
            let mut found = all.clone().map(|rule| (rule, compared(rule, pages, a, b)));
            found.find(|(_, order)| order.is_ne()).unwrap_or((tie, Ordering::Equal))
        }
    };
    let mut order: Vec<usize> = (0..pages.len()).collect();
    order.sort_by(|&a, &b| decided(a, b).1);
    let is_near = |page: usize, kept: usize| {
        let both = sets[page].intersection(&sets[kept]).count() as f64;
        match near {
            Near::Containment(share) => both / sets[page].len() as f64 >= share - 1e-9,
            Near::Resemblance(share) => both / sets[page].union(&sets[kept]).count() as f64 >= share - 1e-9,
            _ => panic!("{near}"),
        }
    };
    let (mut stays, mut goes): (Vec<usize>, _) = (Vec::new(), BTreeMap::new());
    for page in order {
        match stays.iter().find(|&&kept| is_near(page, kept)) {
            None => stays.push(page),
            Some(&kept) => {
                let rule = decided(kept, page).0.to_owned();
                goes.insert(pages[page].url.clone(), (pages[kept].url.clone(), rule));
            }
        }
    }
    let mut kept: Vec<String> = stays.iter().map(|&page| pages[page].url.clone()).collect();
    kept.sort_unstable();
    (kept, goes)
}

/// Reads the decision from the results.
fn found(out: &Path, is_several: bool) -> Decision {
    let kept = fs::read_to_string(out.join("kept.jsonl")).unwrap();
    let mut kept: Vec<String> = kept.lines().map(|line| line.split('"').nth(3).unwrap().to_owned()).collect();
    kept.sort_unstable();
    let pairs = fs::read_to_string(out.join("pairs.tsv")).unwrap();
    let mut lines = pairs.lines();
    assert_eq!(lines.next().unwrap().ends_with("\tdecided"), is_several);
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        assert_eq!(fields.len(), 5 + usize::from(is_several));
        let rule = fields.get(5).map_or("", |rule| rule).to_owned();
        (fields[0].to_owned(), (fields[1].to_owned(), rule))
    };
    (kept, lines.map(row).collect())
}

#[test]
fn random_lists_of_rules_keep_the_documents_of_their_definition() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (dir.path().join("in.jsonl"), dir.path().join("out"));
    let mut removed = 0;
    for seed in 0..cases() / 4 {
        let mut random = Random(seed ^ 0x6b65_6570);
        let (pages, rules) = (pages(&mut random), rules(&mut random));
        fs::write(&input, pages.iter().map(|page| page.line(&mut random)).collect::<String>()).unwrap();
        let share = [0.5, 0.7, 0.9][random.below(3)];
        let near = [Near::Resemblance(share), Near::Containment(share)][random.below(2)];
        let mut job = Dedup::new([&input], &out);
        job.rule.near = Some(near);
        job.rule.keep = KeepOrder::of(rules.iter().map(|rule| rule.parse().unwrap())).unwrap();
        job.text.words = Some("2".parse().unwrap());
        twindex_corpus::settings::set(&mut job.settings_mut(), "text_form", &["html"]).unwrap();
        job.results.force = true;
        job.resources.memory = [1 << 20, 1 << 28][random.below(2)];
        job.run().unwrap();
        let (kept, mut goes) = by_definition(&pages, &rules, near);
        if rules.len() == 1 {
            for (_, rule) in goes.values_mut() {
                rule.clear();
            }
        }
        let message = format!("{seed} {near} {rules:?} {pages:#?}");
        assert_eq!(found(&out, rules.len() > 1), (kept, goes.clone()), "{message}");
        removed += goes.len();
        if let Some(key) = goes.keys().next().filter(|_| seed % 8 == 0) {
            let explanation = Why::new(&out, key.as_str()).explain(&()).unwrap();
            assert_eq!(explanation.agrees, Some(true), "{explanation:?} {message}");
        }
    }
    assert!(removed as u64 > cases() / 4, "{removed}");
}

#[test]
fn rules_are_parsed_and_lists_that_cannot_be_are_refused() {
    let parsed = |text: &str| text.parse::<Keep>();
    for text in
        ["max:a.b", "rank:a=b=c,d e", "earliest:WARC-Date", "https", "shortest-url", "canonical", "key-hash"]
    {
        assert_eq!(parsed(text).unwrap().to_string(), text);
    }
    for text in ["rank:a", "rank:=b", "rank:a=", "rank:a=b,,c", "rank:a=b,b", "earliest:", "https:x", ""] {
        assert!(parsed(text).unwrap_err().starts_with("expected "), "{text}");
    }
    let list = |rules: &[&str]| KeepOrder::of(rules.iter().map(|rule| parsed(rule).unwrap()));
    assert!(list(&["https", "first", "longest"]).unwrap_err().contains("longest after first"));
    assert!(list(&["https", "longest", "https"]).unwrap_err().contains("https twice"));
    let many: Vec<String> = (0..17).map(|at| format!("max:f{at}")).collect();
    assert!(list(&many.iter().map(String::as_str).collect::<Vec<_>>()).unwrap_err().contains("at most 16"));
    assert_eq!(KeepOrder::default(), Keep::First.into());
    assert_eq!(list(&["https", "longest"]).unwrap().to_string(), "https, longest");
}
