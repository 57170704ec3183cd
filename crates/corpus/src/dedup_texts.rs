//! Deduplicates texts in memory by the rules of [`Dedup`](crate::settings::job::Dedup). Writes no files except scratch
//! files.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;
use twindex::Error;
use twindex::params::{Shingling, Tokens};
use twindex::sketch::{Cutter, IdfTable, Nearness, Sketch, Units};
use twindex::sys::MemoryBudget;
use twindex_join::SharedProgress;
use xxhash_rust::xxh3::xxh3_128;

use crate::error::InvalidOptions;
use crate::input::fields::deciding::{DecidingFields, DecidingNumber, DecidingValues};
use crate::input::fields::features::Features;
use crate::input::fields::number::FieldNumber;
use crate::passages::boilerplate::count::{self, BOILERPLATE_WORDS, SpanWords};
use crate::passages::boilerplate::list::Boilerplate;
use crate::rule::clusters::{Clusters, for_each_removed};
use crate::rule::decide::Contained;
use crate::rule::near::{JoinLimits, KeepRules, NearGroups};
use crate::rule::priority::{OrderedBy, Priority};
use crate::rule::score::Score;
use crate::settings::declared::AnySettings;
use crate::settings::job::check_rule_of_texts;
use crate::settings::near::Near;
use crate::settings::resources::Resources;
use crate::settings::rule::{BoilerplateSpans, Keep, KeepOrder, Rule};
use crate::sketching::sets::{SetMaker, SetWork};
use crate::stored::groups::{Grouped, NewDocument, NewSet, put_inside};
use crate::stored::keys::{ByKey, DocumentKeys};
use crate::stored::order::KeepValues;

/// Number of texts that one thread shingles at a time.
const CHUNK: usize = 256;
/// Number of texts that are shingled together, before their sets are stored.
const TOGETHER: usize = 64 * CHUNK;

/// The distinct shingle hashes of a text in ascending order, and the number of its tokens.
type Shingled = (Vec<u64>, u64);

/// A deduplication job on texts in memory. Decides as [`Dedup`](crate::settings::job::Dedup) with its defaults, but has
/// no keys, files or index.
///
/// ```
/// use twindex_corpus::DedupTexts;
///
/// let texts = ["a rose is a rose is a rose", "something else", "a rose is a rose is a rose"];
/// let found = DedupTexts::default().run(&texts.map(str::as_bytes))?;
/// assert_eq!(found.kept_of, [0, 1, 0]);
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct DedupTexts {
    /// The rule that decides which texts are near and which text is kept.
    ///
    /// Rules that compare keys or URLs use [`TextAttributes::keys`]; without keys, the first text has the smallest key,
    /// and the other rules are errors. Rules that compare fields use [`TextAttributes::numbers`] and ignore the field
    /// name. [`Keep::Canonical`] and [`Near::Within`] are errors. For [`Rule::without_boilerplate`], a new list is built from all texts, including those of a history; an
    /// existing list is an error.
    pub rule: Rule,
    /// The table for [`Weights::Idf`](crate::settings::rule::Weights::Idf). It must have been built with the same
    /// [`shingling`](Self::shingling).
    pub idf: Option<Arc<IdfTable>>,
    /// The rules for splitting texts into shingles. Default: five words. With
    /// [`Tokens::Features`](twindex::params::Tokens::Features), pass in place of each text the
    /// [canonical](crate::input::fields::features::Features::canonical) bytes of
    /// [`Features`](crate::input::fields::features::Features).
    pub shingling: Shingling,
    /// The memory budget for everything except the texts and the results. The job uses the threads of the current rayon
    /// thread pool.
    pub resources: Resources,
}

impl Default for DedupTexts {
    fn default() -> Self {
        Self {
            rule: Rule::default(),
            idf: None,
            shingling: Shingling::words(5, 0),
            resources: Resources::default(),
        }
    }
}

/// Attributes of texts in memory. Each list has one entry for each text, in the order of the texts.
///
/// The first texts may be a history: texts that an earlier run kept. A history text is always kept and precedes all new
/// texts, whatever [`Rule::keep`] is.
///
/// ```
/// use twindex_corpus::{TextAttributes, DedupTexts, FieldNumber, Keep};
///
/// let texts = ["a rose is a rose is a rose"; 4].map(str::as_bytes);
/// let numbers = [7, 9, 9, 8].map(|number| FieldNumber::integer(number).expect("of few bits"));
/// let inside = [&b"en"[..], b"en", b"en", b"de"];
/// let mut job = DedupTexts::default();
/// job.rule.keep = Keep::Max("score".into()).into();
/// let beside = TextAttributes { numbers: &[&numbers], inside: Some(&inside), ..TextAttributes::default() };
/// assert_eq!(job.run_with_attributes(&texts, beside)?.kept_of, [1, 1, 1, 3]);
/// # Ok::<(), anyhow::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct TextAttributes<'b> {
    /// Number of texts at the start that are a history. A new text that equals history texts is assigned to the first
    /// of these, even if other texts are near it, too.
    pub history: usize,
    /// For each rule that [compares a field](Keep::field), in their order: the numbers, one for each text after the
    /// history. [`Keep::place`] is the number of a value for [`Keep::Rank`].
    pub numbers: &'b [&'b [FieldNumber]],
    /// The keys, or the URLs for rules that compare them, one for each text after the history.
    pub keys: Option<&'b [&'b [u8]]>,
    /// A nonempty value for each text, for example its language. Only texts with equal values are compared.
    pub inside: Option<&'b [&'b [u8]]>,
}

impl<'b> TextAttributes<'b> {
    /// Returns an error if a list of attributes has a wrong number of entries, or if the options do not use the list.
    pub(crate) fn check(self, keep: &KeepOrder, texts: usize) -> Result<(), InvalidOptions> {
        let Some(new) = texts.checked_sub(self.history) else {
            let history = self.history;
            return Err(InvalidOptions::new(format!("history: expected at most {texts}, found {history}")));
        };
        let counts =
            [("keys", new, self.keys.map(<[_]>::len)), ("inside", texts, self.inside.map(<[_]>::len))];
        let counts =
            counts.into_iter().chain(self.numbers.iter().map(|list| ("numbers", new, Some(list.len()))));
        for (name, texts, count) in counts {
            if let Some(count) = count.filter(|&count| count != texts) {
                return Err(InvalidOptions::new(format!(
                    "{name}: expected {texts}, one a text, found {count}"
                )));
            }
        }
        if keep.has(&Keep::KeyHash) && self.keys.is_none() {
            return Err(InvalidOptions::new("keep: texts have no keys to be hashed"));
        }
        if keep.has(&Keep::Canonical) {
            return Err(InvalidOptions::new("keep: canonical compares HTML pages, and texts have no markup"));
        }
        if let Some(rule) = keep.rules().iter().find(|rule| rule.is_of_url()).filter(|_| self.keys.is_none())
        {
            return Err(InvalidOptions::new(format!("keep: {rule} needs URLs, and texts have no keys")));
        }
        let (fields, found) = (keep.rules().iter().filter_map(Keep::field).count(), self.numbers.len());
        if fields != found {
            return Err(InvalidOptions::new(format!(
                "keep: expected {fields} lists of numbers, one for each rule with a field, found {found}"
            )));
        }
        let empty = self.inside.and_then(|inside| inside.iter().position(|value| value.is_empty()));
        if let Some(at) = empty {
            return Err(InvalidOptions::new(format!(
                "inside: the value at {at} is empty: give each text a value, as those without one would share it"
            )));
        }
        Ok(())
    }

    /// Returns the keys of all texts, and the texts sorted by key; `None` without keys. Texts of the history get empty
    /// keys.
    pub(crate) fn sorted_keys(self, budget: &MemoryBudget, memory: usize) -> twindex::Result<Option<ByKey>> {
        let Some(given) = self.keys else { return Ok(None) };
        let mut keys = DocumentKeys::new(budget);
        (0..self.history).try_for_each(|_| keys.push(b""))?;
        given.iter().try_for_each(|key| keys.push(key))?;
        ByKey::of(&keys, 0..keys.len() as u32, budget, memory).map(Some)
    }

    /// Returns the numbers by which the texts after the history are ordered. `tokens` returns the number of tokens of a
    /// text.
    pub(crate) fn values(
        self,
        keep: &KeepOrder,
        budget: &MemoryBudget,
        tokens: impl Fn(u32) -> u64,
        texts: usize,
    ) -> anyhow::Result<KeepValues> {
        let fields = DecidingFields { keep: keep.rules().to_vec(), ..DecidingFields::default() };
        let mut values = KeepValues::new(keep, budget);
        for at in 0..texts - self.history {
            let key = self.keys.map_or(&b""[..], |keys| keys[at]);
            let mut lists = self.numbers.iter();
            let number = |name: Option<&str>| {
                let number = name.and_then(|_| lists.next()).map(|list| list[at]).unwrap_or_default();
                DecidingNumber { number, is_time: false }
            };
            let numbers = fields.names().map(number).collect();
            let mut read = DecidingValues { numbers, ..DecidingValues::default() };
            fields.take_url(key, None, &mut read).map_err(|why| InvalidOptions::new(why.to_string()))?;
            values.push(tokens((self.history + at) as u32), key, &read.numbers)?;
        }
        Ok(values)
    }

    /// Returns the `inside` value of a text; empty if there are no values.
    fn inside(self, at: usize) -> &'b [u8] {
        self.inside.map_or(&[], |inside| inside[at])
    }
}

/// The results of a [`DedupTexts`] job. Texts are identified by their indices in the input, from 0.
#[derive(Clone, Debug)]
pub struct TextsResult {
    /// For each text, the index of the text that is kept in its place. A kept text has its own index.
    pub kept_of: Vec<u32>,
    /// For each text, its resemblance to the text that is kept in its place. With [`Near::Containment`], the share of
    /// the text that this kept text contains.
    pub scores: Vec<f64>,
    /// For each removed text: its index, the index of the text that is kept in its place, and their score as in
    /// `scores`. Sorted.
    pub pairs: Vec<(u32, u32, f64)>,
    /// With [`Near::Containment`]: the texts of the history that a later kept text contains. Each entry consists of the
    /// contained text, the kept text and the contained share.
    pub contained: Vec<(u32, u32, f64)>,
    /// Number of ignored spans; `None` unless [`Rule::without_boilerplate`] is set.
    pub spans_left_out: Option<u64>,
}

impl DedupTexts {
    /// Checks the settings of a rule before the texts and their shingling are known. `has_table` says whether a table
    /// for [`Weights::Idf`](crate::settings::rule::Weights::Idf) is set, `is_features` whether documents are features.
    ///
    /// # Errors
    ///
    /// Fails if settings contradict each other.
    pub fn check_rule(rule: &Rule, has_table: bool, is_features: bool) -> Result<(), InvalidOptions> {
        check_rule_of_texts(rule, has_table, is_features)
    }

    /// Finds near texts and decides which are kept, in the current rayon thread pool. A text that is not UTF-8 is near
    /// only to equal texts.
    ///
    /// # Errors
    ///
    /// [`InvalidOptions`](crate::error::InvalidOptions) and I/O errors of scratch files. Also fails if this build does
    /// not support the shingling, or if there are 2^32 or more texts.
    pub fn run(&self, texts: &[&[u8]]) -> anyhow::Result<TextsResult> {
        self.run_with_attributes(texts, TextAttributes::default())
    }

    /// Runs the job as [`run`](Self::run) does, for texts with attributes.
    ///
    /// # Errors
    ///
    /// The errors of [`run`](Self::run).
    pub fn run_with_attributes(
        &self,
        texts: &[&[u8]],
        beside: TextAttributes<'_>,
    ) -> anyhow::Result<TextsResult> {
        self.run_watched(texts, beside, &SharedProgress::default())
    }

    /// Runs the job as [`run_with_attributes`](Self::run_with_attributes) does. Another thread can read `watched` for
    /// progress and use it to cancel the run. The stages are `shingling`, which counts texts, and `comparing`, which
    /// counts distinct texts.
    ///
    /// # Errors
    ///
    /// The errors of [`run_with_attributes`](Self::run_with_attributes) and of [`SharedProgress::check`].
    pub fn run_watched(
        &self,
        texts: &[&[u8]],
        beside: TextAttributes<'_>,
        watched: &SharedProgress,
    ) -> anyhow::Result<TextsResult> {
        self.rule.check()?;
        self.resources.check()?;
        let near = self.rule.near.unwrap_or_default();
        Self::check_rule(&self.rule, self.idf.is_some(), self.shingling.tokens == Tokens::Features)?;
        let measure = match near {
            Near::Resemblance(threshold) => Some(Nearness::Resemblance(threshold)),
            Near::Containment(threshold) => Some(Nearness::Containment(threshold)),
            Near::Equal => None,
            Near::Within(_) => {
                let why = "--near within:K compares fingerprints; texts in memory are compared by what they have in common";
                return Err(InvalidOptions::new(why).into());
            }
        };
        beside.check(&self.rule.keep, texts.len())?;
        let normalised = (near == Near::Equal).then(|| self.normalised(texts)).transpose()?.flatten();
        let normalised = normalised.as_ref().map(|texts| texts.iter().map(Vec::as_slice).collect::<Vec<_>>());
        let texts = normalised.as_deref().unwrap_or(texts);
        let (weights, unit) = (self.rule.weights, self.rule.weight_unit);
        let sets = SetMaker::new(&self.shingling, weights, self.idf.clone(), unit)?;
        if u32::try_from(texts.len()).is_err() {
            return Err(
                Error::Limit { what: "texts", limit: u32::MAX.into(), found: texts.len() as u64 }.into()
            );
        }
        let history = beside.history as u32;
        let scratch = tempfile::tempdir()
            .map_err(|error| Error::io("create a scratch folder in", &std::env::temp_dir(), error))?;
        let list = self.spans(texts, (scratch.path(), watched))?;
        let sets = sets.without(list.clone());
        let (grouped, history_groups) = self.group(texts, beside, &sets, (scratch.path(), watched))?;
        let limits = JoinLimits {
            folder: scratch.path(),
            journal: None,
            memory: self.resources.memory / 2,
            watched: Some(watched),
        };
        let keys = beside.sorted_keys(&grouped.budget, limits.memory / 2)?;
        let values =
            beside.values(&self.rule.keep, &grouped.budget, |at| grouped.group(at).tokens, texts.len())?;
        let by = OrderedBy {
            keep: &values.sorted(&grouped.budget, limits.memory / 2)?,
            near,
            by_key: keys.as_ref(),
            history,
            history_keys: None,
        };
        let priority = Priority::of(&grouped, by, limits.memory / 2)?;
        let rules = KeepRules {
            order: priority.order.as_deref(),
            firsts: &priority.firsts[..],
            fixed: history_groups,
            near,
            most_comparisons: self.rule.max_work,
        };
        let mut found = match measure {
            Some(measure) => NearGroups::by_sets(&grouped, measure, &rules, &limits)?,
            None => NearGroups::none(&grouped)?,
        };
        let clusters = Clusters::of(&grouped, &mut found, &rules, history)?;
        let value = |score: Score| score.resemblance().map_or(0.0, |resemblance| resemblance.value());
        let score_of = |group: u32| value(clusters.score(&grouped, group));
        let mut pairs = Vec::new();
        // The argument 0 includes texts that are removed as duplicates of history texts. History texts themselves are
        // skipped.
        for_each_removed(&grouped, &clusters, 0, &mut |a, b, score| {
            if a >= history {
                pairs.push((a, b, value(found.kind.unpack(score))));
            }
            Ok(())
        })?;
        pairs.sort_unstable_by_key(|&(a, b, _)| (a, b));
        let contained = if matches!(near, Near::Containment(_)) && history > 0 {
            let contained = Contained::of(&grouped, &clusters, &rules, &limits)?.found;
            let of = |document: u32| {
                let group = grouped.group_of[document as usize];
                let place = contained.binary_search_by_key(&group, |found| found.0).ok()?;
                let (_, inside, score) = contained[place];
                Some((document, inside, value(score)))
            };
            (0..history).filter_map(of).collect()
        } else {
            Vec::new()
        };
        Ok(TextsResult {
            spans_left_out: list.map(|list| list.len() as u64),
            contained,
            kept_of: grouped.group_of.iter().map(|&group| clusters.kept_of_group[group as usize]).collect(),
            scores: grouped.group_of.iter().map(|&group| score_of(group)).collect(),
            pairs,
        })
    }

    /// Returns the texts after the requested normalization and folding; `None` if neither is requested. A text that is
    /// not UTF-8, or that would become empty, is returned unchanged.
    fn normalised(&self, texts: &[&[u8]]) -> anyhow::Result<Option<Vec<Vec<u8>>>> {
        if !self.shingling.normalises() {
            return Ok(None);
        }
        let cutter = Cutter::new(&self.shingling)?;
        let normalised = |units: &mut Units, text: &&[u8]| match std::str::from_utf8(text) {
            Ok(text) => match cutter.normalised(text, units) {
                "" => text.as_bytes().to_vec(),
                other => other.as_bytes().to_vec(),
            },
            Err(_) => text.to_vec(),
        };
        Ok(Some(texts.par_iter().map_init(Units::default, normalised).collect()))
    }

    /// Builds the boilerplate list: the spans that occur in more than [`Rule::without_boilerplate`] texts.
    fn spans(
        &self,
        texts: &[&[u8]],
        (folder, watched): (&Path, &SharedProgress),
    ) -> anyhow::Result<Option<Arc<Boilerplate>>> {
        let (more_than, words) = match &self.rule.without_boilerplate {
            None => return Ok(None),
            Some(BoilerplateSpans::List(_)) => {
                let why =
                    "--without-boilerplate @FILE is for files; give the number of texts that share a span";
                return Err(InvalidOptions::new(why).into());
            }
            Some(BoilerplateSpans::SharedBy { more_than, words }) => {
                (*more_than, words.unwrap_or(BOILERPLATE_WORDS))
            }
        };
        if self.shingling.tokens == Tokens::Features {
            let why = "--without-boilerplate leaves spans out of texts, and features are none: leave it out";
            return Err(InvalidOptions::new(why).into());
        }
        let spans = SpanWords::new(&self.shingling, words)?;
        count::count_texts(texts, &spans, more_than, self.resources.memory, (folder, watched)).map(Some)
    }

    /// Groups equal texts, and shingles one text of each group. Returns the groups, and the number of groups with texts
    /// of the history.
    fn group(
        &self,
        texts: &[&[u8]],
        beside: TextAttributes<'_>,
        sets: &SetMaker,
        (folder, watched): (&Path, &SharedProgress),
    ) -> anyhow::Result<(Grouped, u32)> {
        watched.begin("shingling", texts.len() as u64);
        let budget = MemoryBudget::new(folder, self.resources.memory / 4);
        let mut grouped = Grouped::new(&budget, self.resources.memory / 4)?;
        let shingles = |text: &[u8], inside: &[u8], work: &mut SetWork| {
            let mut set = sets.set(text, work)?;
            if !inside.is_empty() {
                put_inside(&mut set, inside);
                set.sort_unstable();
            }
            Ok::<_, Error>((set, work.tokens()))
        };
        // With weights, a shingle becomes several elements. Sets are larger then, so fewer texts are shingled at a
        // time.
        let together = if sets.has_units() { CHUNK } else { TOGETHER };
        let (sketch, mut seen) = (Sketch::default(), HashSet::new()); // `seen`: the texts of the current chunk
        let (is_features, without_features) =
            (self.shingling.tokens == Tokens::Features, Features::default().canonical());
        let mut history_groups = 0;
        for (number, some) in texts.chunks(together).enumerate() {
            let inside = |at: usize| beside.inside(number * together + at);
            // A document without features equals no other one, so its place is hashed instead.
            let hash = |(at, text): (usize, &&[u8])| {
                if is_features && **text == without_features[..] {
                    return xxh3_128(&((number * together + at) as u64).to_le_bytes());
                }
                xxh3_128(text)
            };
            let hashes: Vec<u128> = some.par_iter().with_min_len(CHUNK).enumerate().map(hash).collect();
            seen.clear();
            let mut is_new = |(at, &hash): (usize, &u128)| {
                !grouped.may_have(hash, inside(at)) && seen.insert((hash, inside(at)))
            };
            let is_new: Vec<bool> = (0..).zip(&hashes).map(&mut is_new).collect();
            let made: twindex::Result<Vec<Option<Shingled>>> = (some, is_new)
                .into_par_iter()
                .with_min_len(CHUNK * together / TOGETHER)
                .enumerate()
                .map_init(SetWork::default, |work, (at, (text, is_new))| {
                    let shingled = |error| in_record((number * together + at, beside.history), error);
                    (is_new && !watched.is_stopped())
                        .then(|| shingles(text, inside(at), work).map_err(shingled))
                        .transpose()
                })
                .collect();
            watched.check()?; // after a cancellation, some sets are missing
            for (at, ((text, hash), set)) in some.iter().zip(hashes).zip(made?).enumerate() {
                let inside = inside(at);
                let is_equal = |other: u32| anyhow::Ok(texts[other as usize] == *text);
                // A text that has the hash of a different text was not shingled above, so it is shingled here.
                let late = || shingles(text, inside, &mut SetWork::default());
                let (set, tokens) = match &set {
                    Some((set, tokens)) => (NewSet::Held(set), *tokens),
                    None => (NewSet::Late(&late), 0),
                };
                let new =
                    NewDocument { hash, tokens, inside, copy_of: None, line: None, sketch: &sketch, set };
                grouped.add(new, is_equal)?;
                if grouped.len() == beside.history {
                    history_groups = grouped.groups.len() as u32;
                }
            }
            watched.reach(grouped.len() as u64)?;
        }
        Ok((grouped, history_groups))
    }
}

/// Adds the index of the text to an error. History texts and new texts are counted separately, both from 0.
fn in_record((at, history): (usize, usize), error: Error) -> Error {
    let place = at
        .checked_sub(history)
        .map_or_else(|| format!("record {at} of the history"), |at| format!("record {at}"));
    match error {
        Error::Invalid(why) => Error::Invalid(format!("{place}: {why}")),
        other => other,
    }
}
