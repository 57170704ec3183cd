//! The page about a run of `dedup`: what was removed, pairs of texts by which to judge it, and where the copies come
//! from. It needs no index.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::results::page::chart::escaped;
use crate::results::page::differing::shortened;
use crate::results::page::html::{begin, end, hosts, sizes_of_clusters, table};
use crate::results::page::scores::ScoreCounts;
use crate::results::sources::Sources;
use crate::results::survey::RemovedKinds;
use crate::settings::near::Near;
use crate::urls::hosts::Hosts;
use crate::work::numbers::{bytes_of, count, counted};

/// Maximum number of characters shown of a key or of the name of a source.
pub(crate) const NAME: usize = 120;
/// Maximum number of characters shown of the start of a text.
const START: usize = 200;
/// Maximum number of values that are listed of a setting.
const VALUES: usize = 10;

/// The numbers and texts that the page shows.
pub(crate) struct RunPage {
    /// The command, without options that change no result.
    pub(crate) command: String,
    /// The settings that are not the default, each with its values.
    pub(crate) settings: Vec<(&'static str, Vec<String>)>,
    /// When a document is removed, in sentences.
    pub(crate) rule: String,
    /// The differences that documents with the same tokens may have, in words.
    pub(crate) ignored: &'static str,
    /// A sentence about the characters that tokens ignore.
    pub(crate) dropped_by_tokens: Option<String>,
    /// `documents` or `fingerprints`.
    pub(crate) noun: &'static str,
    pub(crate) documents: u64,
    /// Number of bad records that were skipped.
    pub(crate) skipped_bad: u64,
    pub(crate) kept: u64,
    /// Number of kept documents for which no document was removed.
    pub(crate) unique: u64,
    pub(crate) text_bytes: u64,
    pub(crate) removed_text_bytes: u64,
    /// Number of documents that were removed because of a document of a history; `None` without a history.
    pub(crate) dropped: Option<u64>,
    pub(crate) kinds: RemovedKinds,
    /// Number of documents in `kinds.near` with a score of 0.9 or more.
    pub(crate) nearest: u64,
    /// The threshold, if it is a share of shingles.
    pub(crate) threshold: Option<f64>,
    pub(crate) scores: ScoreCounts,
    /// Pairs of texts: a heading, and pairs drawn at random.
    pub(crate) pairs: Vec<(&'static str, Vec<ShownPair>)>,
    /// Pairs of kept documents whose score is a little below the threshold; `None` if they were not searched.
    pub(crate) missed: Option<ShownMissed>,
    /// The commands that list all such pairs; `None` if there are none.
    pub(crate) commands_below: Option<[String; 2]>,
    /// The largest clusters.
    pub(crate) groups: Vec<ShownGroup>,
    /// The largest clusters of short texts.
    pub(crate) short_groups: Vec<ShownGroup>,
    /// Number of clusters of each size.
    pub(crate) sizes: BTreeMap<u64, u64>,
    pub(crate) sources: Option<Sources>,
    /// Statistics of duplicates by host; `None` if documents have no URLs.
    pub(crate) hosts: Option<Hosts>,
}

/// A removed document beside the document that is kept for it.
pub(crate) struct ShownPair {
    /// The score in words.
    pub(crate) score: String,
    /// The two texts, as HTML.
    pub(crate) sides: String,
    /// The command that explains the decision.
    pub(crate) why: Option<String>,
}

/// Pairs of kept documents that are a little less near than the threshold demands.
pub(crate) struct ShownMissed {
    /// The range of their resemblances, in words.
    pub(crate) range: String,
    /// Number of kept documents that were searched.
    pub(crate) sample: u64,
    /// Number of pairs found.
    pub(crate) found: u64,
    /// Some of these pairs.
    pub(crate) pairs: Vec<ShownPair>,
}

/// A cluster, as it is shown.
pub(crate) struct ShownGroup {
    pub(crate) documents: u64,
    pub(crate) text_bytes: u64,
    /// The key of the kept document.
    pub(crate) key: String,
    /// The start of the text of the kept document.
    pub(crate) start: String,
}

/// A part of the bar: its name, the number of documents, and the class of its colour.
type Part = (String, u64, &'static str);

impl RunPage {
    /// Returns the page as HTML.
    pub(crate) fn html(&self) -> String {
        let removed = self.documents - self.kept;
        let share = removed as f64 * 100.0 / self.documents.max(1) as f64;
        let sentence =
            format!("{} of {} {} removed ({share:.1} %)", count(removed), count(self.documents), self.noun);
        let mut page = begin(&sentence);
        let texts = if self.text_bytes > 0 {
            format!(" {} of text were removed.", bytes_of(self.removed_text_bytes, self.text_bytes))
        } else {
            String::new()
        };
        let skipped = match self.skipped_bad {
            0 => String::new(),
            skipped => format!(" Skipped: {}.", counted(skipped, "bad record")),
        };
        add(
            &mut page,
            format_args!("<p>{} are kept.{texts}{skipped} {}</p>", count(self.kept), escaped(&self.rule)),
        );
        add(
            &mut page,
            format_args!(
                "<pre>{}</pre>\n<p class=\"soft\">twindex {}</p>",
                escaped(&shortened(&self.command, 1000)),
                env!("CARGO_PKG_VERSION")
            ),
        );
        self.bar(&mut page);
        self.judge(&mut page);
        self.missed(&mut page);
        self.largest(&mut page);
        if let Some(sources) = &self.sources {
            from(&mut page, sources);
        }
        page.push_str(&self.scores.html());
        self.details(&mut page);
        end(page)
    }

    /// Returns the kinds of documents, which are disjoint and add up to all documents.
    fn parts(&self) -> Vec<Part> {
        let RemovedKinds { identical, same_words, near, .. } = self.kinds;
        let part = |name: &str, number, class| (name.to_owned(), number, class);
        let mut parts =
            vec![part("unique", self.unique, "k0"), part("kept, with copies", self.kept - self.unique, "k1")];
        parts.extend(self.dropped.map(|dropped| part("near a document of an earlier run", dropped, "k2")));
        parts.push(part("identical to the kept one", identical, "k3"));
        match self.threshold {
            Some(threshold) => {
                parts.push((format!("differ only in {}", self.ignored), same_words, "k4"));
                let nine = threshold.max(0.9);
                let score = self.scores.name();
                parts.push((format!("{score} {nine} to 1"), self.nearest, "k5"));
                if threshold < 0.9 {
                    parts.push((format!("{score} {threshold} to 0.9"), near - self.nearest, "k6"));
                }
            }
            None => parts.push(part("near the kept one", near, "k5")),
        }
        parts.retain(|(_, number, class)| *number > 0 || ["k0", "k1", "k3"].contains(class));
        parts
    }

    /// Adds the bar of the kinds of documents, with a legend.
    fn bar(&self, page: &mut String) {
        page.push_str("<h2 id=\"found\">What was found</h2>\n<div class=\"bar\" aria-hidden=\"true\">");
        let parts = self.parts();
        for (_, number, class) in parts.iter().filter(|(_, number, _)| *number > 0) {
            let _ = write!(page, "<div class=\"{class}\" style=\"flex:{number} 0 3px\"></div>");
        }
        page.push_str("</div>\n<ul class=\"parts\">\n");
        for (name, number, class) in &parts {
            add(
                page,
                format_args!(
                    "<li><i class=\"key {class}\"></i> {} <b>{}</b></li>",
                    escaped(name),
                    count(*number)
                ),
            );
        }
        page.push_str("</ul>\n");
        let RemovedKinds { same_words, same_words_read, same_words_in_code, .. } = self.kinds;
        if let (Some(dropped), 1..) = (&self.dropped_by_tokens, same_words) {
            let of = match same_words_read {
                read if read == same_words => format!("these {}", count(same_words)),
                read => format!("{} of these", count(read)),
            };
            let in_code = count(same_words_in_code);
            add(
                page,
                format_args!(
                    "<p class=\"soft\">{dropped} Of {of} documents, {in_code} differ in a line of code.</p>"
                ),
            );
        }
    }

    /// Adds the pairs by which the reader can judge the removal.
    fn judge(&self, page: &mut String) {
        let pairs: usize = self.pairs.iter().map(|(_, pairs)| pairs.len()).sum();
        if pairs == 0 {
            return;
        }
        page.push_str(
            "<h2 id=\"judge\">Judge for yourself</h2>\n<p>Removed documents beside the documents that are kept for them, drawn \
             at random. Words of only one of the two are marked: <del>kept</del> and <ins>removed</ins>. The command below a \
             pair explains its decision.</p>\n",
        );
        push_pairs(page, &self.pairs);
    }

    fn missed(&self, page: &mut String) {
        let Some(commands) = &self.commands_below else { return };
        page.push_str("<h2 id=\"missed\">Just missed</h2>\n");
        if let Some(ShownMissed { range, sample, found, pairs }) = &self.missed {
            let (sample, found) = (count(*sample), count(*found));
            add(
                page,
                format_args!(
                    "<p>{found} pairs with a resemblance of {range} were found among {sample} kept documents. A lower threshold \
                     removes one of the two. About a quarter of such pairs is not found in this way.</p>"
                ),
            );
            for pair in pairs {
                pair.push(page);
            }
        }
        add(
            page,
            format_args!(
                "<p>These commands list all kept documents that are a little less near to each other than the threshold \
                 demands:</p>\n<pre>{}</pre>",
                commands.iter().map(|command| escaped(command)).collect::<Vec<_>>().join("\n")
            ),
        );
    }

    /// Adds the largest clusters.
    fn largest(&self, page: &mut String) {
        for (id, heading, groups) in [
            ("groups", "Largest clusters", &self.groups),
            ("short", "Largest clusters of texts of fewer than ten words", &self.short_groups),
        ] {
            let rows = groups.iter().map(|group| {
                format!(
                    "<tr><td class=\"left\" dir=\"auto\">{}<br><small>{}</small></td><td>{}</td><td>{}</td></tr>",
                    escaped(&group.start),
                    escaped(&shortened(&group.key, NAME)),
                    count(group.documents),
                    count(group.text_bytes)
                )
            });
            let rows: Vec<String> = rows.collect();
            if !rows.is_empty() {
                add(page, format_args!("<h2 id=\"{id}\">{heading}</h2>"));
                table(
                    page,
                    "A cluster is a kept document and the documents that were removed because they are near it",
                    &["beginning and key of the kept document", "documents", "bytes of the kept one"],
                    &rows,
                );
            }
        }
    }

    /// Adds what few readers want, folded.
    fn details(&self, page: &mut String) {
        page.push_str("<details id=\"details\"><summary>Details</summary>\n");
        page.push_str(&sizes_of_clusters(&self.sizes));
        if let Some(found) = &self.hosts {
            hosts(page, found);
        }
        let rows: Vec<String> = self
            .settings
            .iter()
            .map(|(name, values)| {
                let mut shown: Vec<String> =
                    values.iter().take(VALUES).map(|value| escaped(&shortened(value, NAME))).collect();
                if values.len() > VALUES {
                    shown.push(format!("and {} more", count((values.len() - VALUES) as u64)));
                }
                let shown = if shown.is_empty() { "yes".to_owned() } else { shown.join("<br>") };
                format!("<tr><th scope=\"row\">{name}</th><td class=\"left\">{shown}</td></tr>")
            })
            .collect();
        page.push_str("<h2 id=\"settings\">Settings</h2>\n");
        table(page, "Settings other than the defaults", &["name", "value"], &rows);
        page.push_str("</details>\n");
    }
}

/// Adds pairs below their headings.
pub(crate) fn push_pairs(page: &mut String, pairs: &[(&str, Vec<ShownPair>)]) {
    for (heading, pairs) in pairs.iter().filter(|(_, pairs)| !pairs.is_empty()) {
        if !heading.is_empty() {
            add(page, format_args!("<h3 class=\"band\">{heading}</h3>"));
        }
        for pair in pairs {
            pair.push(page);
        }
    }
}

/// Returns the headings of the bands of scores, the farthest first.
pub(crate) fn headings(near: Near, same: &'static str) -> [&'static str; 3] {
    match near {
        Near::Within(_) => ["As many bits as may differ", "Fewer bits", "The same fingerprint"],
        _ => ["Just above the threshold", "In the middle", same],
    }
}

pub(crate) fn distance_in_words(distance: u32) -> String {
    if distance == 1 { "1 bit differs".to_owned() } else { format!("{distance} bits differ") }
}

/// Returns the start of a text in one line.
pub(crate) fn beginning(text: &str) -> String {
    shortened(&text.split_whitespace().take(START).collect::<Vec<_>>().join(" "), START)
}

impl ShownPair {
    fn push(&self, page: &mut String) {
        let Self { score, sides, why } = self;
        let why = why.as_deref().map_or_else(String::new, |why| format!("<pre>{}</pre>", escaped(why)));
        add(
            page,
            format_args!("<section class=\"card\"><p><b>{}</b></p>\n{sides}{why}</section>", escaped(score)),
        );
    }
}

/// Adds the tables of sources.
fn from(page: &mut String, found: &Sources) {
    let of = escaped(&shortened(&found.of, NAME));
    add(page, format_args!("<h2 id=\"sources\">Sources</h2>"));
    let cell = |text: &str| format!("<td class=\"left\">{}</td>", escaped(&shortened(text, 2 * NAME)));
    let rows = found.most.iter().map(|source| {
        let share = source.removed as f64 * 100.0 / source.documents.max(1) as f64;
        let (documents, removed) = (count(source.documents), count(source.removed));
        format!("<tr>{}<td>{documents}</td><td>{removed}</td><td>{share:.1} %</td></tr>", cell(&source.name))
    });
    let rows: Vec<String> = rows.collect();
    table(page, "Documents by source", &[&of, "documents", "removed", "share"], &rows);
    if found.others > 0 {
        add(page, format_args!("<p class=\"soft\">and {} more.</p>", count(found.others as u64)));
    }
    let rows = found.pairs.iter().map(|(removed, kept, documents)| {
        format!("<tr>{}<td>{}</td></tr>", cell(&format!("{removed} → {kept}")), count(*documents))
    });
    let rows: Vec<String> = rows.collect();
    table(
        page,
        "Removed documents by their source and that of the kept one",
        &["removed → kept", "documents"],
        &rows,
    );
}

fn add(page: &mut String, line: std::fmt::Arguments<'_>) {
    let _ = writeln!(page, "{line}"); // writing to a String cannot fail
}
