//! Generates URLs that contain session ids, counters, dates and tracking parameters, and tests that these are recognized.
//! Parts that only look like them must be kept: a rule that merges different pages loses pages, which is worse than a
//! missing rule.

use std::collections::HashMap;
use std::time::Instant;

use twindex_corpus::urls::{Learner, Options, Rules};

/// A generator of pseudorandom numbers, the same in every run.
struct RandomNumbers(u64);

impl RandomNumbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn text(&mut self, length: usize, alphabet: &[u8]) -> String {
        (0..length).map(|_| char::from(alphabet[self.below(alphabet.len() as u64) as usize])).collect()
    }
}

const BASE62: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const HEX: &[u8] = b"0123456789abcdef";
const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz";

/// Number of templates of a host. The last two look like the first two, but their varying part identifies the page.
const TEMPLATES: usize = 20;
const LOOK_ALIKE: [usize; 2] = [18, 19];

/// Returns a URL of a page of a template, a different URL in each call.
fn url(host: &str, template: usize, page: &str, draw: &mut RandomNumbers) -> String {
    let session = draw.text(12, BASE62);
    let hex = draw.text(32, HEX);
    let count = draw.below(90_000);
    let word = draw.text(5, LETTERS);
    let digits: String = page.bytes().map(|byte| char::from(b'0' + byte % 10)).collect();
    let day = format!("20{:02}-{:02}-{:02}", draw.below(25), 1 + draw.below(12), 1 + draw.below(28));
    let time = 1_600_000_000 + draw.below(100_000_000);
    let path = match template {
        0 => format!(
            "/S-{session}/{}/{page}",
            ["shop", "cart", "news"][digits.len() % 2 + usize::from(digits.starts_with('7'))]
        ),
        1 => format!("/view{}?id={digits}&sid={hex}", &digits[..1]),
        2 => format!("/article/{page}.html?utm_source={word}&utm_medium=m{}&utm_campaign={count}", count % 3),
        3 if count.is_multiple_of(3) => format!("/news/{page}"),
        3 => format!("/news/{page}?gclid={session}"),
        4 => format!("/c{count}/hits/{page}.html"),
        5 if count.is_multiple_of(2) => format!("/app/{page}.do"),
        5 => format!("/app/{page}.do;jsessionid={hex}"),
        6 => format!("/print/{day}/{page}"),
        7 => format!("/cal?event={digits}&t={time}"),
        8 => format!("/list?page={}&q={page}&PHPSESSID={hex}", digits.len()),
        9 => format!("/forum/t-{digits}/{page}-{count}.html"),
        10 => format!("/p/{page}?ref={word}"),
        11 => format!("/help/{page}?lang={}", ["en", "de", "fr", "pt-BR"][count as usize % 4]),
        12 => format!("/{session}/guest/{page}/index"),
        13 => format!("/doc_{page}_{hex}.pdf"),
        14 => format!("/x?a={page}&b=1&token={session}&ts={time}"),
        15 => format!("/m/{page}?fbclid={session}&sid={hex}"),
        16 => format!("/go/{count}/{count}/{page}"),
        17 => format!("/img/{page}.png?v={count}"),
        // The random text identifies the page, so it must not be ignored.
        18 => format!("/S-{page}/{}/{}", ["docs", "law"][count as usize % 2], word.len()),
        _ => format!("/raw{}?id={}&sid={page}", count % 2, count % 5),
    };
    format!("https://{host}{path}")
}

/// Returns the name of a page, which is as long as the session id that it replaces.
fn name(template: usize, draw: &mut RandomNumbers) -> String {
    match template {
        18 => draw.text(12, BASE62),
        19 => draw.text(32, HEX),
        _ => draw.text(8, LETTERS) + &draw.text(2, b"0123456789"),
    }
}

/// The URL and the group of a page.
type Page = (String, u64);

/// Generates the pages of several hosts, with up to five URLs for each page.
fn crawl(hosts: usize, pages: usize, seed: u64) -> Vec<Page> {
    let (mut draw, mut all, mut group) = (RandomNumbers(seed), Vec::new(), 0);
    while all.len() < pages {
        let host = format!("host{}.example", draw.below(hosts as u64));
        let template = draw.below(TEMPLATES as u64) as usize;
        let page = name(template, &mut draw);
        group += 1;
        let urls = if LOOK_ALIKE.contains(&template) { 1 } else { 1 + draw.below(5) };
        for _ in 0..urls {
            all.push((url(&host, template, &page, &mut draw), group));
        }
    }
    all.truncate(pages);
    all
}

fn learned(pages: &[Page]) -> Rules {
    let mut learner = Learner::new(Options::default());
    for (url, group) in pages {
        assert!(learner.add(url, *group), "{url}");
    }
    learner.finish()
}

/// Returns three counts of pairs of URLs: pairs with equal normal forms, pairs of one page with equal normal forms, and all
/// pairs of one page.
fn pairs(rules: &Rules, pages: &[Page]) -> (u64, u64, u64) {
    let (mut forms, mut groups, mut both) = (HashMap::new(), HashMap::new(), HashMap::new());
    let mut distinct = pages.to_vec();
    distinct.sort_unstable();
    distinct.dedup();
    for (url, group) in &distinct {
        let form = rules.normalise(url);
        *forms.entry(form.clone()).or_insert(0_u64) += 1;
        *groups.entry(*group).or_insert(0_u64) += 1;
        *both.entry((form, *group)).or_insert(0_u64) += 1;
    }
    let sum = |counts: &mut dyn Iterator<Item = u64>| counts.map(|n| n * (n - 1) / 2).sum();
    (sum(&mut forms.into_values()), sum(&mut both.into_values()), sum(&mut groups.into_values()))
}

#[test]
fn planted_parts_are_ignored_and_different_pages_are_not_merged() {
    let pages = crawl(20, 10_000, 7);
    let rules = learned(&pages);
    let seen = |what: &str, pages: &[Page]| {
        let (merged, right, near) = pairs(&rules, pages);
        let recall = right as f64 / near as f64;
        println!("{what}: {merged} pairs made one, {right} of them near, of {near}: recall {recall:.4}");
        (merged, right, near)
    };
    let (merged, right, near) = seen("learned from", &pages);
    assert!(near > 10_000);
    assert_eq!(merged, right, "pages that differ are made one");
    assert!(right as f64 >= 0.95 * near as f64, "{right} of {near}\n{rules}");
    // Other pages of the same templates, which were not used for learning: most of their duplicates are found.
    let (merged, right, near) = seen("new", &crawl(20, 10_000, 8));
    assert!(right as f64 >= 0.999 * merged as f64, "{right} of {merged}");
    assert!(right as f64 >= 0.85 * near as f64, "{right} of {near}");
}

#[test]
fn rules_are_independent_of_page_order_and_normalising_is_idempotent() {
    let mut pages = crawl(3, 2_000, 11);
    let rules = learned(&pages);
    pages.reverse();
    assert_eq!(learned(&pages).to_string(), rules.to_string());
    for (url, _) in &pages {
        let form = rules.normalise(url);
        assert_eq!(rules.normalise(&form), form, "{url}");
    }
}

#[test]
fn learning_time_is_linear_in_the_number_of_pages() {
    let time = |pages: usize| {
        let pages = crawl(20, pages, 3);
        let start = Instant::now();
        let rules = learned(&pages);
        assert!(rules.rules().len() > 20);
        start.elapsed().as_secs_f64()
    };
    let (small, large) = (time(10_000), time(80_000));
    println!("10,000 pages: {small:.3} s; 80,000: {large:.3} s");
    assert!(large < 20.0 * small, "8 times the pages took {} times as long", large / small);
}

#[test]
fn aliases_are_learned_only_for_hosts_with_near_pages() {
    let mut pages = Vec::new();
    for page in 0..10 {
        for host in ["http://www.one.example", "https://one.example", "http://one.example"] {
            pages.push((format!("{host}/p{page}"), page));
        }
        pages.push((format!("https://one.example/f{page}/"), 100 + page));
        pages.push((format!("https://one.example/f{page}/index.html"), 100 + page));
        // On this host, the URLs with and without `www.` are different pages.
        pages.push((format!("https://two.example/p{page}"), 200 + page));
        pages.push((format!("https://www.two.example/p{page}"), 300 + page));
    }
    let rules = learned(&pages);
    for (url, wanted) in [
        ("http://www.one.example/new", "https://one.example/new"),
        ("HTTPS://ONE.example:443/a/index.html#top", "https://one.example/a/"),
        ("https://one.example/a", "https://one.example/a"),
        ("https://www.two.example/p1", "https://www.two.example/p1"),
    ] {
        assert_eq!(rules.normalise(url), wanted, "{rules}");
    }
}
