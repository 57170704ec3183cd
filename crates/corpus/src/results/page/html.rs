//! The HTML page about an index: one file without scripts, readable on a phone, in light and dark mode.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::results::page::chart::{Chart, Scale, escaped};
use crate::results::page::figures::{
    BINS, BandFigures, ClusterFigures, CollisionFigures, Figures, SCORE_MIN,
};
use crate::urls::hosts::Hosts;
use crate::work::numbers::{bytes, count};

/// The first bytes of every page of this program. [`check`](super::report::check) lets a page replace only files that
/// begin with them.
pub(crate) const HEAD: &str = "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
    <meta name=\"generator\" content=\"twindex\">\n";

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1b1b;--soft:#5c5c5c;--paper:#fff;--line:#d5d5d5;--a:#0072b2;--b:#d55e00;--c:#7a7a7a;--k0:#d9dee4;--k1:#8fb3d9;--k2:#b7a3c9;--k3:#a4480f;--k4:#d5701a;--k5:#e8a45f;--k6:#f3cda0}
@media(prefers-color-scheme:dark){:root{--ink:#eaeaea;--soft:#a8a8a8;--paper:#161616;--line:#3a3a3a;--a:#56b4e9;--b:#e69f00;--c:#9a9a9a;--k0:#3c434b;--k1:#3f6c9c;--k2:#6d5a80;--k3:#ffb070;--k4:#e08a3c;--k5:#b0652a;--k6:#7d4a22}}
*{box-sizing:border-box}
body{margin:0 auto;max-width:60rem;padding:1rem;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,sans-serif}
h1{font-size:1.6rem;margin:.5rem 0}h2{font-size:1.2rem;margin:2rem 0 .5rem;border-bottom:1px solid var(--line)}
p{margin:.5rem 0}.soft,figcaption{color:var(--soft);font-size:.9rem}
dl{display:grid;grid-template-columns:repeat(auto-fit,minmax(9rem,1fr));gap:.75rem;margin:1rem 0}
dt{color:var(--soft);font-size:.85rem}dd{margin:0;white-space:nowrap;font-size:1.25rem;font-variant-numeric:tabular-nums}
.wide{overflow-x:auto}.wide:focus-visible{outline:2px solid var(--a)}table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}
caption{text-align:left;color:var(--soft);padding:.25rem 0}
th,td{padding:.2rem .6rem;border-bottom:1px solid var(--line);text-align:right}
th:first-child,td:first-child,.left{text-align:left}td{white-space:nowrap}td.left{white-space:normal;overflow-wrap:anywhere;min-width:10rem}
figure{margin:1rem 0}svg{width:100%;height:auto;max-width:44rem;display:block;font:12px system-ui,sans-serif}
svg text{fill:var(--ink)}.grid{stroke:var(--line)}.axis{stroke:var(--ink);fill:none}
.line{fill:none;stroke-width:2}rect.a,circle.a{fill:var(--a)}rect.b,circle.b{fill:var(--b)}rect.c{fill:var(--c)}
.line.a{stroke:var(--a)}.line.b{stroke:var(--b)}.line.c{stroke:var(--c);stroke-dasharray:4 4}
.key{display:inline-block;width:.9em;height:.9em;vertical-align:-.1em}.key.a{background:var(--a)}.key.b{background:var(--b)}.key.c{background:var(--c)}
.legend span{margin-right:1.2em}
.k0{background:var(--k0)}.k1{background:var(--k1)}.k2{background:var(--k2)}.k3{background:var(--k3)}.k4{background:var(--k4)}.k5{background:var(--k5)}.k6{background:var(--k6)}
.bar{display:flex;height:2.2rem;border-radius:4px;overflow:hidden}
.parts{list-style:none;margin:.6rem 0;padding:0;display:flex;flex-wrap:wrap;gap:.2rem 1.4rem;font-variant-numeric:tabular-nums}
.card{border:1px solid var(--line);border-radius:6px;margin:.7rem 0;padding:.3rem .8rem .6rem}.band{font-size:1rem;margin:1.2rem 0 .3rem}
.sides{display:grid;grid-template-columns:1fr 1fr;gap:1rem}.sides>div{min-width:0}
.sides h3{font-size:.9rem;margin:.25rem 0;overflow-wrap:anywhere}.card h3{color:var(--soft);font-weight:normal}
.text{white-space:pre-wrap;overflow-wrap:anywhere;unicode-bidi:isolate;border:1px solid var(--line);padding:.5rem;margin:0;font:.9rem/1.45 system-ui,sans-serif}
.text i,.gap{color:var(--soft);font-size:.8rem}mark,del{background:color-mix(in srgb,var(--b) 30%,transparent);color:inherit;text-decoration:none}
ins{background:color-mix(in srgb,var(--a) 30%,transparent);color:inherit;text-decoration:none}
sup{color:var(--soft);font-size:.7rem;user-select:none}small{color:var(--soft)}
pre{overflow-x:auto;margin:.5rem 0;padding:.4rem .6rem;background:color-mix(in srgb,var(--ink) 6%,transparent);border-radius:4px;font-size:.8rem}
summary{cursor:pointer;font-size:1.2rem;margin:2rem 0 .5rem}
@media(max-width:44rem){.sides{grid-template-columns:1fr}}
@media(max-width:36rem){svg{font-size:17px}}
";

/// Returns the start of a page with this title and heading.
pub(crate) fn begin(title: &str) -> String {
    let title = escaped(title);
    format!(
        "{HEAD}\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n"
    )
}

/// Returns the whole page.
pub(crate) fn end(page: String) -> String {
    page + "</main>\n</body>\n</html>\n"
}

/// Returns the report as an HTML page.
#[must_use]
pub fn html(figures: &Figures) -> String {
    let mut page = begin(&format!("Near-duplicates in {}", figures.name));
    summary(&mut page, &entries(figures));
    if let Some(found) = &figures.clusters {
        clusters(&mut page, found);
    }
    if let Some(groups) = &figures.groups {
        page.push_str(&groups.html());
    }
    if let Some(found) = &figures.hosts {
        hosts(&mut page, found);
    }
    if let Some(bands) = &figures.bands {
        resemblance(&mut page, bands);
    }
    if let Some(blocks) = &figures.blocks {
        fingerprints(&mut page, blocks);
    }
    let skew = [
        figures.bands.as_ref().map(|bands| ("bands", &bands.collisions)),
        figures.blocks.as_ref().map(|blocks| ("blocks of fingerprints", blocks)),
    ];
    buckets(&mut page, &skew.into_iter().flatten().collect::<Vec<_>>());
    space(&mut page, figures);
    end(page)
}

fn add(page: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{line}"); // writing to a String cannot fail
}

/// Returns the names and values of the numbers at the top of the page.
fn entries(figures: &Figures) -> Vec<(&'static str, String)> {
    let mut entries = vec![("Documents", count(figures.documents))];
    if let Some(found) = &figures.clusters {
        entries.push(("Clusters", count(found.clusters)));
        let share = found.redundant as f64 / figures.documents.max(1) as f64;
        entries.push(("Could go", count(found.redundant)));
        entries.push(("of all", format!("{:.1} %", 100.0 * share)));
    }
    if figures.distinct_fingerprints > 0 {
        entries.push(("Distinct fingerprints", count(figures.distinct_fingerprints)));
    }
    entries.push(("On disk", bytes(figures.bytes_on_disk)));
    if let Some(each) = figures.bytes_on_disk.checked_div(figures.documents) {
        entries.push(("A document", format!("{} bytes", count(each))));
    }
    entries.push(("Segments", count(figures.segments as u64)));
    entries.push(("Generation", count(figures.generation)));
    entries
}

/// Adds names and values of numbers.
pub(crate) fn summary(page: &mut String, entries: &[(&str, String)]) {
    page.push_str("<dl>\n");
    for (name, value) in entries {
        add(page, format_args!("<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(value)));
    }
    page.push_str("</dl>\n");
}

/// Returns the chart of the sizes of clusters; empty if no cluster has two documents.
pub(crate) fn sizes_of_clusters(sizes: &BTreeMap<u64, u64>) -> String {
    let Some(&largest) = sizes.keys().next_back().filter(|&&largest| largest > 1) else {
        return String::new();
    };
    let upper = sizes.values().copied().max().unwrap_or(1);
    let mut chart = Chart::new(Scale::log_to(largest as f64), Scale::log_to(upper as f64));
    chart.dots("a", sizes.iter().map(|(&size, &clusters)| (size as f64, clusters as f64)));
    chart.figure(
        "documents of a cluster",
        "clusters",
        "Clusters by their number of documents, on logarithmic scales; a cluster of one is a unique document.",
    )
}

/// Adds the sizes of clusters, and the largest ones.
fn clusters(page: &mut String, found: &ClusterFigures) {
    add(page, format_args!("<h2 id=\"clusters\">Clusters</h2>"));
    add(
        page,
        format_args!(
            "<p>Documents with {}, and whatever hangs together through such. {} clusters have two documents or more.</p>",
            found.near,
            count(found.clusters)
        ),
    );
    if found.clusters > 0 {
        page.push_str(&sizes_of_clusters(&found.sizes));
        page.push_str(
            "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"The largest clusters\"><table><caption>The largest clusters</caption>\n<tr><th scope=\"col\">documents</th>\
             <th scope=\"col\" class=\"left\">some of their keys</th></tr>\n",
        );
        for (size, keys) in &found.largest {
            let keys: Vec<String> = keys.iter().map(|key| escaped(key)).collect();
            let keys = keys.join("<br>");
            add(page, format_args!("<tr><td>{}</td><td class=\"left\">{keys}</td></tr>", count(*size)));
        }
        page.push_str("</table></div>\n");
    }
}

fn resemblance(page: &mut String, bands: &BandFigures) {
    add(page, format_args!("<h2 id=\"bands\">Pairs that share a band</h2>"));
    add(
        page,
        format_args!(
            "<p>{} bands of {} minima. {} pairs of documents are alike in all {} minima, in every band, as it must \
             be.</p>",
            bands.bands,
            bands.rows,
            count(bands.collisions.identical_pairs),
            bands.minima
        ),
    );
    let spans: Vec<(u64, u64)> = (0..BINS)
        .map(|bin| {
            let of_bin = || bands.collisions.pairs.iter().map(|counts| counts[bin]);
            (of_bin().min().unwrap_or(0), of_bin().max().unwrap_or(0))
        })
        .collect();
    let upper = spans.iter().map(|span| span.1).max().unwrap_or(1);
    let mut chart = Chart::new(Scale::Linear(0.0, 1.0), Scale::log_to(upper as f64));
    let bar =
        |bin: usize, pairs: u64| (bin as f64 / BINS as f64, (bin + 1) as f64 / BINS as f64, pairs as f64);
    let filled = || spans.iter().enumerate().filter(|(_, span)| span.1 > 0);
    chart.bars("c", filled().map(|(bin, span)| bar(bin, span.1)));
    chart.bars("a", filled().filter(|(_, span)| span.0 > 0).map(|(bin, span)| bar(bin, span.0)));
    chart.legend("a", "in the band that has fewest");
    chart.legend("c", "in the band that has most");
    page.push_str(&chart.figure(
        "resemblance, estimated",
        "pairs",
        "Pairs of documents in the same bucket of a band, by how near they are.",
    ));

    let mut chart = Chart::new(Scale::Linear(0.0, 1.0), Scale::Linear(0.0, 1.0));
    let hundredths = (0..=100).map(|percent| f64::from(percent) / 100.0);
    chart.line("a", hundredths.map(|at| (at, bands.scheme.fungible(at))));
    chart.line("c", [(bands.threshold, 0.0), (bands.threshold, 1.0)]);
    chart.dots("b", bands.curve.iter().filter_map(|&(at, _, measured, _)| Some((at, measured?))));
    chart.legend("a", "predicted");
    chart.legend("b", "measured");
    chart.legend("c", "threshold of clusters");
    page.push_str(&chart.figure(
        "resemblance",
        "share that collides",
        "The share of pairs that share a band: predicted from bands and minima, and measured by how many bands the pairs \
         share that share one.",
    ));
    band_table(page, "Pairs by band and estimated resemblance", "band", &bands.collisions, |bin| {
        format!("{:.2}", bin as f64 / BINS as f64)
    });
}

fn fingerprints(page: &mut String, blocks: &CollisionFigures) {
    add(page, format_args!("<h2 id=\"blocks\">Pairs that share 16 bits of their fingerprints</h2>"));
    add(
        page,
        format_args!(
            "<p>A score is 64 less the Hamming distance. {} pairs of documents have equal fingerprints, in every block, \
             as it must be.</p>",
            count(blocks.identical_pairs)
        ),
    );
    let upper = blocks.pairs.iter().flatten().copied().max().unwrap_or(1);
    let scores = blocks.pairs.first().map_or(0, Vec::len);
    let mut chart = Chart::new(Scale::Linear(SCORE_MIN as f64 - 0.5, 64.5), Scale::log_to(upper as f64));
    for (block, counts) in blocks.pairs.iter().enumerate() {
        let width = 0.8 / blocks.pairs.len() as f64;
        let class = if block % 2 == 0 { "a" } else { "b" };
        chart.bars(
            class,
            counts.iter().enumerate().filter(|(_, pairs)| **pairs > 0).map(|(score, &pairs)| {
                let left = (SCORE_MIN + score) as f64 - 0.4 + width * block as f64;
                (left, left + width, pairs as f64)
            }),
        );
    }
    debug_assert_eq!(scores, 64 - SCORE_MIN + 1);
    page.push_str(&chart.figure(
        "score",
        "pairs",
        "Pairs of documents that share a block, by score; the four bars of a score are the four blocks.",
    ));
    band_table(page, "Pairs by block and score", "block", blocks, |score| (SCORE_MIN + score).to_string());
}

/// Adds a table with a row for each band, and a column for each score with at least one pair.
fn band_table(
    page: &mut String,
    caption: &str,
    unit: &str,
    collisions: &CollisionFigures,
    name: impl Fn(usize) -> String,
) {
    let columns = collisions.pairs.first().map_or(0, Vec::len);
    let columns: Vec<usize> =
        (0..columns).filter(|&column| collisions.pairs.iter().any(|counts| counts[column] > 0)).collect();
    add(
        page,
        format_args!(
            "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table><caption>{caption}</caption>"
        ),
    );
    add(page, format_args!("<tr><th scope=\"col\">{unit}</th>"));
    for &column in &columns {
        add(page, format_args!("<th scope=\"col\">{}</th>", name(column)));
    }
    page.push_str("</tr>\n");
    for (band, counts) in collisions.pairs.iter().enumerate() {
        let all: u64 = counts.iter().sum();
        add(page, format_args!("<tr><th scope=\"row\">{band}</th>"));
        for &column in &columns {
            let share = if all == 0 { 0.0 } else { 100.0 * counts[column] as f64 / all as f64 };
            add(page, format_args!("<td title=\"{share:.2} %\">{}</td>", count(counts[column])));
        }
        page.push_str("</tr>\n");
    }
    page.push_str("</table></div>\n");
    if collisions.capped_buckets > 0 {
        add(
            page,
            format_args!(
                "<p class=\"soft\">In {} buckets, the largest of {} members, only neighbours were compared.</p>",
                count(collisions.capped_buckets),
                count(collisions.largest_bucket)
            ),
        );
    }
}

fn buckets(page: &mut String, all: &[(&'static str, &CollisionFigures)]) {
    if all.is_empty() {
        return;
    }
    page.push_str("<h2 id=\"buckets\">How full buckets are</h2>\n");
    let widest = all.iter().map(|(_, collisions)| collisions.buckets.len()).max().unwrap_or(1);
    let upper = all.iter().flat_map(|(_, collisions)| &collisions.buckets).copied().max().unwrap_or(1);
    let reach = 2_f64.powf(widest as f64);
    let mut chart = Chart::new(Scale::log_to(reach), Scale::log_to(upper as f64));
    for ((name, collisions), class) in all.iter().zip(["a", "b"]) {
        let points = collisions.buckets.iter().enumerate().filter(|(_, buckets)| **buckets > 0);
        let points = points.map(|(place, &buckets)| (2_f64.powf(place as f64), buckets as f64));
        chart.line(class, points.clone());
        chart.dots(class, points);
        chart.legend(class, name);
    }
    page.push_str(&chart.figure(
        "members, equal ones counted once",
        "buckets",
        "Buckets by their members, both in powers of ten; a point shows the buckets of n up to 2n members.",
    ));
    for (name, collisions) in all {
        let largest = count(collisions.largest_bucket);
        add(page, format_args!("<p>The largest bucket of {name} has {largest} different members.</p>"));
    }
}

fn space(page: &mut String, figures: &Figures) {
    page.push_str(
        "<h2 id=\"space\">Where the bytes go</h2>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Bytes by section\"><table><caption>Bytes by section</caption>\n\
         <tr><th scope=\"col\">section</th><th scope=\"col\">bytes</th><th scope=\"col\">share</th>\
         <th scope=\"col\">a document</th></tr>\n",
    );
    let mut sections: Vec<_> = figures.bytes.iter().filter(|(_, bytes)| **bytes > 0).collect();
    sections.sort_by_key(|&(name, bytes)| (std::cmp::Reverse(*bytes), *name));
    for (name, &size) in sections {
        let share = 100.0 * size as f64 / figures.bytes_on_disk.max(1) as f64;
        let each = size as f64 / figures.documents.max(1) as f64;
        add(
            page,
            format_args!(
                "<tr><th scope=\"row\">{name}</th><td>{}</td><td>{share:.1} %</td><td>{each:.1}</td></tr>",
                count(size)
            ),
        );
    }
    page.push_str(
        "</table></div>\n<h2 id=\"params\">Parameters</h2>\n<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Parameters\"><table><caption>What was chosen when the \
         index was made</caption>\n<tr><th scope=\"col\">name</th><th scope=\"col\" class=\"left\">value</th></tr>\n",
    );
    for (name, value) in &figures.params {
        let value = if value.is_empty() { "none".to_owned() } else { escaped(value) };
        add(page, format_args!("<tr><th scope=\"row\">{name}</th><td class=\"left\">{value}</td></tr>"));
    }
    page.push_str("</table></div>\n");
}

/// Adds the numbers of duplicates within and across hosts, the hosts with the most near pages, and mirrored hosts.
pub(crate) fn hosts(page: &mut String, found: &Hosts) {
    let share = |part: u64, of: u64| 100.0 * part as f64 / of.max(1) as f64;
    let _ = writeln!(
        page,
        "<h2 id=\"hosts\">Where duplicates come from</h2>\n<p>{} pages with a URL, of {} hosts and {} registrable \
         domains. {} pages ({:.1} %) are represented by another page of their cluster:</p>",
        count(found.pages),
        count(found.hosts),
        count(found.domains),
        count(found.duplicates),
        share(found.duplicates, found.pages)
    );
    let rows = [
        ("of the same host", found.duplicates_within_hosts),
        ("of another host of the same domain", found.duplicates_within_domains),
        ("of another domain", found.duplicates_across_domains),
    ];
    let rows = rows.map(|(what, number)| {
        format!(
            "<tr><td>{what}</td><td>{}</td><td>{:.1} %</td></tr>",
            count(number),
            share(number, found.duplicates)
        )
    });
    table(
        page,
        "Duplicates within and across hosts",
        &["the page that represents it is", "pages", "share"],
        &rows,
    );
    let rows: Vec<String> = found
        .aliases
        .iter()
        .filter(|(_, number)| *number > 0)
        .map(|(alias, number)| format!("<tr><td>{alias}</td><td>{}</td></tr>", count(*number)))
        .collect();
    table(page, "Near pages that were found in both spellings of an alias", &["alias", "pages"], &rows);
    let rows: Vec<String> = found
        .most_near
        .iter()
        .map(|host| {
            let numbers = [host.pages, host.near, host.near_inside, host.near_outside];
            let numbers = numbers.map(|number| format!("<td>{}</td>", count(number))).concat();
            let rate = share(host.near, host.pages);
            format!("<tr><td class=\"left\">{}</td>{numbers}<td>{rate:.1} %</td></tr>", escaped(&host.host))
        })
        .collect();
    let columns = ["host", "pages", "near another", "of this host", "of another host", "rate"];
    table(page, "The hosts with most near pages", &columns, &rows);
    let rows: Vec<String> = found.most_mirrored.iter().map(|one| {
        let (of_host, of_other) = one.shares();
        format!(
            "<tr><td class=\"left\">{}</td><td class=\"left\">{}</td><td>{} of {}</td><td>{:.1} %</td><td>{} of {}</td><td>{:.1} %</td></tr>",
            escaped(&one.host),
            escaped(&one.other),
            count(one.near),
            count(one.pages),
            100.0 * of_host,
            count(one.near_of_other),
            count(one.pages_of_other),
            100.0 * of_other
        )
    }).collect();
    let columns = ["host", "other", "near one of the other", "share", "of the other", "share"];
    table(page, "Hosts that mirror each other most, by the smaller share", &columns, &rows);
}

/// Adds a table. The rows, the caption and the names of the columns are HTML.
pub(crate) fn table(page: &mut String, caption: &str, columns: &[&str], rows: &[String]) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(
        page,
        "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table><caption>{caption}</caption>\n<tr>"
    );
    for column in columns {
        let _ = write!(page, "<th scope=\"col\">{column}</th>");
    }
    let _ = writeln!(page, "</tr>\n{}\n</table></div>", rows.join("\n"));
}
