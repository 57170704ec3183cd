//! The page about the pairs or the groups that a verb found: some pairs side by side, and the largest groups.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use twindex::{KeyBuf, Resemblance};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::input::batch::Record;
use crate::input::content::Content;
use crate::input::documents::Documents;
use crate::input::options::InputOptions;
use crate::input::parser::Parser;
use crate::results::layout::RUN;
use crate::results::page::chart::escaped;
use crate::results::page::commands::why;
use crate::results::page::compared::floor;
use crate::results::page::differing::{
    COMPARED_MAX, Named, shortened, texts_side_by_side, unread_side_by_side,
};
use crate::results::page::html::{begin, end, table};
use crate::results::page::report::write_whole;
use crate::results::page::run::{NAME, ShownPair, beginning, distance_in_words, headings, push_pairs};
use crate::results::survey::Band;
use crate::settings::near::Near;
use crate::sketching::chunks::{Job, for_each_chunk};
use crate::stored::drawn::{DRAWN, draw};
use crate::work::numbers::count;
use crate::work::observer::Observer;

/// Maximum number of groups that are shown.
const GROUPS: usize = 10;

/// How near the documents of a pair are.
#[derive(Clone, Copy, Debug)]
pub enum PairScore {
    /// Number of bits in which the fingerprints differ.
    Distance(u32),
    /// The resemblance, counted or estimated.
    Resemblance(Resemblance),
}

impl PairScore {
    fn band(self, near: Near) -> Band {
        match self {
            Self::Distance(distance) => Band::of_distance(distance, near.within().unwrap_or(0).into()),
            Self::Resemblance(resemblance) => {
                Band::of_share(resemblance.value(), near.threshold().unwrap_or(1.0))
            }
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::Distance(distance) => distance_in_words(distance),
            Self::Resemblance(resemblance) => {
                let value = format!("resemblance {:.3}", resemblance.value());
                match resemblance {
                    Resemblance::Exact { intersection, union } => {
                        format!("{value}: {intersection} of {union} shingles are in both")
                    }
                    Resemblance::Estimate { standard_error, .. } => {
                        format!("{value}, an estimate with a standard error of {standard_error:.3}")
                    }
                }
            }
        }
    }
}

/// A drawn pair.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FoundPair {
    /// A hash of both keys. The pairs with the smallest hashes are drawn.
    hash: u64,
    keys: [KeyBuf; 2],
    score: String,
}

/// Pairs drawn by the hashes of their keys, so that they depend neither on the order in which pairs are found nor on
/// chance. Of the pairs with the same first document, only one is drawn.
#[derive(Clone, Debug, Default)]
pub struct PairSample {
    /// The pairs of each band of scores. Pairs of groups are all in the first one.
    bands: [Vec<FoundPair>; 3],
}

impl PairSample {
    /// Draws from the pairs of the band of this score.
    pub fn add(&mut self, near: Near, keys: [&KeyBuf; 2], score: PairScore) {
        let band = match score.band(near) {
            Band::Edge => 0,
            Band::Middle => 1,
            Band::Same => 2,
        };
        draw_pair(&mut self.bands[band], DRAWN, keys, || score.in_words());
    }

    /// Draws from the pairs of a member of a group and the document that the group is near. `score` is a column of the
    /// table of clusters; `None` if the table has no scores.
    pub fn add_member(&mut self, keys: [&KeyBuf; 2], score: Option<&str>) {
        let in_words = || match score {
            None => "the member is near its leader".to_owned(),
            Some("-") => "no pair: near only by way of others".to_owned(),
            Some(score) => match score.parse() {
                Ok(distance) => distance_in_words(distance),
                Err(_) => format!("resemblance {score}"),
            },
        };
        draw_pair(&mut self.bands[0], 3 * DRAWN, keys, in_words);
    }

    /// Adds the sample of other pairs.
    pub fn merge(&mut self, other: Self) {
        for (mine, theirs) in self.bands.iter_mut().zip(other.bands) {
            for pair in theirs {
                draw(mine, DRAWN, pair, have_same_first);
            }
        }
    }
}

fn have_same_first(a: &FoundPair, b: &FoundPair) -> bool {
    a.keys[0] == b.keys[0]
}

/// Draws a pair. Most pairs cost only a hash.
fn draw_pair(drawn: &mut Vec<FoundPair>, most: usize, keys: [&KeyBuf; 2], score: impl FnOnce() -> String) {
    let hash = keys.iter().fold(0, |seed, key| match key {
        KeyBuf::U64(key) => xxh3_64_with_seed(&key.to_le_bytes(), seed),
        KeyBuf::Bytes(key) => xxh3_64_with_seed(key, seed),
    });
    if drawn.len() < most || drawn.iter().any(|other| hash <= other.hash) {
        let pair = FoundPair { hash, keys: keys.map(KeyBuf::clone), score: score() };
        draw(drawn, most, pair, have_same_first);
    }
}

/// The largest groups, each with the key of its leader. Of groups of the same size, those with the smallest keys.
#[derive(Clone, Debug, Default)]
pub struct LargestGroups(BTreeSet<(Reverse<u64>, KeyBuf)>);

impl LargestGroups {
    /// Adds a group. Groups of one document are not shown.
    pub fn add(&mut self, leader: &KeyBuf, size: u64) {
        let is_shown = self.0.len() < GROUPS
            || self.0.last().is_some_and(|last| (last.0, &last.1) > (Reverse(size), leader));
        if size > 1 && is_shown {
            self.0.insert((Reverse(size), leader.clone()));
            if self.0.len() > GROUPS {
                self.0.pop_last();
            }
        }
    }
}

/// The start of a text, at most a little more than the bytes that are compared.
type Texts = HashMap<Vec<u8>, String>;

/// A page about pairs or groups.
#[derive(Debug)]
pub struct FoundPage {
    /// What was found, in a sentence.
    pub title: String,
    /// The command, without options that change no result.
    pub command: String,
    /// The rule by which pairs were found; `None` for groups.
    pub near: Option<Near>,
    /// The roles of the documents of a pair.
    pub roles: [&'static str; 2],
    /// The pairs.
    pub pairs: PairSample,
    /// The groups; none for pairs.
    pub groups: LargestGroups,
    /// The index or file that was searched. If it is in a folder that `dedup` made, each pair has its `why` command.
    pub searched: PathBuf,
}

impl FoundPage {
    /// Reads the texts that the page shows from `inputs`, and writes the page to `path`. The second inputs have the texts
    /// of the second documents of pairs; if there are none, the first inputs have all texts. If several documents have
    /// the same key, the last one is shown, as in an index. Without inputs, the page has keys and scores only.
    ///
    /// # Errors
    ///
    /// An input cannot be read, or the page cannot be written.
    pub fn write(
        &self,
        path: &Path,
        inputs: [&[PathBuf]; 2],
        options: &InputOptions,
        observer: &dyn Observer,
    ) -> anyhow::Result<()> {
        let mut texts = Vec::new();
        for (number, inputs) in inputs.into_iter().enumerate().filter(|(_, inputs)| !inputs.is_empty()) {
            texts.push(self.read(number, inputs, options, observer)?);
        }
        write_whole(path, &self.html(&texts))
    }

    /// Reads the texts of the documents that are shown.
    fn read(
        &self,
        side: usize,
        inputs: &[PathBuf],
        options: &InputOptions,
        observer: &dyn Observer,
    ) -> anyhow::Result<Texts> {
        let of_pairs = self.pairs.bands.iter().flatten().flat_map(|pair| &pair.keys[side..]);
        let of_groups = self.groups.0.iter().map(|(_, leader)| leader);
        let wanted: BTreeSet<&[u8]> = of_pairs.chain(of_groups).filter_map(KeyBuf::as_bytes).collect();
        let mut texts = Texts::new();
        if wanted.is_empty() {
            return Ok(texts);
        }
        let mut documents = Documents::open_part(inputs, options)?;
        let progress = observer.begin("reading texts", documents.total_bytes());
        let job = Job {
            state: || (),
            begin: Vec::new,
            work: |(): &mut (), made: &mut Vec<(Vec<u8>, String)>, _: &Parser, record: Record<'_>| {
                if wanted.contains(record.key) {
                    let text = match record.content {
                        // Shows that the text goes on after the bytes that are compared.
                        Content::Text(text) | Content::Opaque { text, .. } => {
                            text[..floor(text, COMPARED_MAX + 4)].to_owned()
                        }
                        other => other.shown(),
                    };
                    made.push((record.key.to_vec(), text));
                }
                Ok(())
            },
        };
        for_each_chunk(&mut documents, &*progress, &job, |made| {
            texts.extend(made);
            Ok(())
        })?;
        Ok(texts)
    }

    fn html(&self, texts: &[Texts]) -> String {
        let mut page = begin(&self.title);
        let rule = self.near.map(|near| match (near, near.threshold()) {
            (Near::Within(within), _) => {
                format!("Documents are near if their fingerprints differ in at most {within} bits.")
            }
            (_, threshold) => {
                format!("Documents are near if their resemblance is {} or more.", threshold.unwrap_or(1.0))
            }
        });
        let without = "An index and a file of pairs have no texts. With --texts INPUT, the page shows them.";
        for sentence in rule.iter().map(String::as_str).chain(texts.is_empty().then_some(without)) {
            let _ = writeln!(page, "<p>{sentence}</p>");
        }
        let _ = writeln!(
            page,
            "<pre>{}</pre>\n<p class=\"soft\">twindex {}</p>",
            escaped(&shortened(&self.command, 1000)),
            env!("CARGO_PKG_VERSION")
        );
        self.push_pairs(&mut page, texts);
        self.push_groups(&mut page, texts);
        end(page)
    }

    fn push_pairs(&self, page: &mut String, texts: &[Texts]) {
        if self.pairs.bands.iter().all(Vec::is_empty) {
            return;
        }
        let [first, second] = self.roles;
        page.push_str("<h2 id=\"pairs\">Judge for yourself</h2>\n<p>Pairs drawn at random.");
        if !texts.is_empty() {
            let _ = write!(
                page,
                " Words of only one of the two are marked: <del>{first}</del> and <ins>{second}</ins>."
            );
        }
        page.push_str("</p>\n");
        let headings = self.near.map_or([""; 3], |near| headings(near, "Resemblance 1"));
        let bands = headings.into_iter().zip(&self.pairs.bands).map(|(heading, pairs)| {
            let mut pairs: Vec<&FoundPair> = pairs.iter().collect();
            pairs.sort_unstable_by(|a, b| a.keys.cmp(&b.keys));
            (heading, pairs.into_iter().map(|pair| self.shown(pair, texts)).collect())
        });
        push_pairs(page, &bands.collect::<Vec<_>>());
    }

    fn shown(&self, pair: &FoundPair, texts: &[Texts]) -> ShownPair {
        let keys = pair.keys.each_ref().map(ToString::to_string);
        let [first, second] = [0, 1].map(|side| {
            let texts = texts.get(side).or(texts.first())?;
            texts.get(pair.keys[side].as_bytes()?).map(String::as_str)
        });
        let of = [0, 1].map(|side| Named { role: self.roles[side], key: &keys[side] });
        let out = self.searched.parent().filter(|folder| folder.join(RUN).is_file());
        ShownPair {
            score: pair.score.clone(),
            sides: match (first, second) {
                (Some(first), Some(second)) => texts_side_by_side(of, first, second),
                _ if texts.is_empty() => unread_side_by_side(&of, "no texts were named", [None; 2]),
                known => unread_side_by_side(&of, "it is not in the inputs of --texts", known.into()),
            },
            why: out.and_then(|out| why(out, pair.keys[1].as_bytes()?)),
        }
    }

    fn push_groups(&self, page: &mut String, texts: &[Texts]) {
        let rows = self.groups.0.iter().map(|(size, leader)| {
            let text = leader.as_bytes().and_then(|key| texts.first()?.get(key));
            let start = text.map_or_else(String::new, |text| escaped(&beginning(text)) + "<br>");
            format!(
                "<tr><td class=\"left\" dir=\"auto\">{start}<small>{}</small></td><td>{}</td></tr>",
                escaped(&shortened(&leader.to_string(), NAME)),
                count(size.0)
            )
        });
        let rows: Vec<String> = rows.collect();
        if !rows.is_empty() {
            page.push_str("<h2 id=\"groups\">Largest groups</h2>\n");
            table(page, "Groups by their size", &["beginning and key", "documents"], &rows);
        }
    }
}
