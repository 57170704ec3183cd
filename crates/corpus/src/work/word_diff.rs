//! Computes the words that differ between two texts.
//!
//! The result has the fewest deletions and insertions, by the greedy algorithm of Myers, *An O(ND) difference algorithm
//! and its variations* (1986). Existing crates limit the running time, so their results depend on the machine. This
//! implementation limits the number of steps, which makes results reproducible.

use std::collections::HashMap;
use std::ops::Range;

use serde::Serialize;

/// Maximum number of deletions and insertions of one search. The trace of a search takes at most 8 MiB of memory.
const DIFFERENCES_MAX: usize = 2000;
/// Maximum number of steps for [`Extent::steps`], which take one or two seconds.
pub(crate) const STEPS_MAX: u64 = 1 << 30;

/// The differences between the kept document and the queried document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WordDiff {
    /// Number of words that occur only in the kept document.
    pub only_in_kept: usize,
    /// Number of words that occur only in the queried document.
    pub only_in_key: usize,
    /// Whether the number of differing words is known to be minimal. False if a search reached its limit; the rest of
    /// the texts may then be reported as different although it has common words.
    pub is_least: bool,
    /// The differences in order, each with the words around it. If their number is limited, only the first.
    pub hunks: Vec<Hunk>,
    /// Total number of hunks, including the hunks that are not in `hunks`.
    pub hunks_in_all: usize,
}

/// Adjacent differences and the words around them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Hunk {
    /// The number of the first word in the kept document, from 1.
    pub word_of_kept: usize,
    /// The number of the first word in the queried document, from 1.
    pub word_of_key: usize,
    /// The runs of words in the hunk, in order.
    pub runs: Vec<Run>,
}

/// Consecutive words that are in both texts, or only in one of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Run {
    /// The documents that contain the words.
    pub stands: WordOrigin,
    /// The words, separated by single spaces where the text has white space. If the run is long, only its first words.
    pub text: String,
    /// Number of words of the run that `text` omits.
    pub omitted: usize,
}

/// The documents that contain a run of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum WordOrigin {
    /// The words are in both documents.
    InBoth,
    /// The words are only in the kept document.
    InKept,
    /// The words are only in the queried document.
    InKey,
}

/// Limits for the size of the result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Number of words to include before and after a difference.
    pub(crate) context: usize,
    /// Maximum number of hunks.
    pub(crate) hunks: usize,
    /// Maximum number of words in a run.
    pub(crate) run: usize,
    /// Maximum number of steps of all searches together. After these steps, the rest of the texts is reported as
    /// different.
    pub(crate) steps: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word<'t> {
    text: &'t str,
    /// Whether white space precedes the word.
    is_apart: bool,
}

/// Splits a text into words at white space. In scripts that are written without spaces, each character is a word.
pub(crate) fn words(text: &str) -> Vec<Word<'_>> {
    let (mut words, mut start, mut is_apart) = (Vec::new(), None, false);
    for (at, character) in text.char_indices() {
        let is_alone = is_written_without_spaces(character);
        if (character.is_whitespace() || is_alone)
            && let Some(start) = start.take()
        {
            words.push(Word { text: &text[start..at], is_apart });
            is_apart = false;
        }
        if character.is_whitespace() {
            is_apart = true;
        } else if is_alone {
            words.push(Word { text: &text[at..at + character.len_utf8()], is_apart });
            is_apart = false;
        } else if start.is_none() {
            start = Some(at);
        }
    }
    words.extend(start.map(|start| Word { text: &text[start..], is_apart }));
    words
}

pub(crate) fn listed(items: &[String]) -> Vec<Word<'_>> {
    items.iter().map(|text| Word { text, is_apart: true }).collect()
}

/// Returns whether a character belongs to a script that is written without spaces: Thai, Lao, Burmese, Khmer, kana, or
/// ideographs.
fn is_written_without_spaces(character: char) -> bool {
    matches!(u32::from(character),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xF900..=0xFAFF | 0x2_0000..=0x3_FFFF)
}

pub(crate) fn diff<'t>(kept: &[Word<'t>], key: &[Word<'t>], extent: Extent) -> WordDiff {
    let mut numbers: HashMap<&str, u32> = HashMap::new();
    let mut number = |word: &Word<'t>| {
        let next = numbers.len() as u32;
        *numbers.entry(word.text).or_insert(next)
    };
    let of_kept: Vec<u32> = kept.iter().map(&mut number).collect();
    let of_key: Vec<u32> = key.iter().map(&mut number).collect();
    let (changes, is_least) = changes(&of_kept, &of_key, extent.steps);

    let mut groups: Vec<Range<usize>> = Vec::new();
    for (number, change) in changes.iter().enumerate() {
        let is_near = |before: usize| change.kept.start - changes[before].kept.end <= 2 * extent.context;
        match groups.last_mut() {
            Some(group) if is_near(group.end - 1) => group.end = number + 1,
            _ => groups.push(number..number + 1),
        }
    }
    let hunk = |group: &Range<usize>| hunk(kept, key, &changes[group.clone()], extent);
    WordDiff {
        only_in_kept: changes.iter().map(|change| change.kept.len()).sum(),
        only_in_key: changes.iter().map(|change| change.key.len()).sum(),
        is_least,
        hunks: groups.iter().take(extent.hunks).map(hunk).collect(),
        hunks_in_all: groups.len(),
    }
}

/// A difference: a range of words in the kept text, and the range in the queried text that replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Replacement {
    kept: Range<usize>,
    key: Range<usize>,
}

fn hunk(kept: &[Word<'_>], key: &[Word<'_>], changes: &[Replacement], extent: Extent) -> Hunk {
    let (first, last) = (&changes[0], &changes[changes.len() - 1]);
    let before = extent.context.min(first.kept.start).min(first.key.start);
    let end = (last.kept.end + extent.context).min(kept.len());
    let mut runs = Vec::new();
    let mut push = |stands, words: &[Word<'_>]| {
        if !words.is_empty() {
            let max = if stands == WordOrigin::InBoth { words.len() } else { extent.run };
            runs.push(Run {
                stands,
                text: joined(&words[..words.len().min(max)]),
                omitted: words.len().saturating_sub(max),
            });
        }
    };
    let mut at = first.kept.start - before;
    for change in changes {
        push(WordOrigin::InBoth, &kept[at..change.kept.start]);
        push(WordOrigin::InKept, &kept[change.kept.clone()]);
        push(WordOrigin::InKey, &key[change.key.clone()]);
        at = change.kept.end;
    }
    push(WordOrigin::InBoth, &kept[at..end]);
    Hunk { word_of_kept: first.kept.start - before + 1, word_of_key: first.key.start - before + 1, runs }
}

pub(crate) fn joined(words: &[Word<'_>]) -> String {
    let mut text = String::new();
    for word in words {
        if word.is_apart && !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word.text);
    }
    text
}

/// Returns the differences between `a` and `b` in order, and whether their number is minimal.
fn changes(a: &[u32], b: &[u32], steps_max: u64) -> (Vec<Replacement>, bool) {
    let start = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a_rest, b_rest) = (&a[start..], &b[start..]);
    let end = a_rest.iter().rev().zip(b_rest.iter().rev()).take_while(|(a, b)| a == b).count();
    let (a_rest, b_rest) = (&a_rest[..a_rest.len() - end], &b_rest[..b_rest.len() - end]);
    if a_rest.is_empty() && b_rest.is_empty() {
        return (Vec::new(), true);
    }
    let (is_deleted, is_inserted, is_least) = edits(a_rest, b_rest, steps_max);
    let mut changes = Vec::new();
    let (mut x, mut y) = (0, 0);
    while x < a_rest.len() || y < b_rest.len() {
        let (from_x, from_y) = (x, y);
        x += is_deleted[x..].iter().take_while(|&&is_deleted| is_deleted).count();
        y += is_inserted[y..].iter().take_while(|&&is_inserted| is_inserted).count();
        if (x, y) == (from_x, from_y) {
            (x, y) = (x + 1, y + 1);
        } else {
            changes.push(Replacement { kept: start + from_x..start + x, key: start + from_y..start + y });
        }
    }
    (changes, is_least)
}

/// Returns which elements of `a` are deleted and which of `b` are inserted, and whether their number is minimal.
fn edits(a: &[u32], b: &[u32], steps_max: u64) -> (Vec<bool>, Vec<bool>, bool) {
    let (mut is_deleted, mut is_inserted) = (vec![false; a.len()], vec![false; b.len()]);
    let (mut x, mut y, mut steps) = (0, 0, 0);
    while x < a.len() || y < b.len() {
        let searched = (steps <= steps_max).then(|| search(&a[x..], &b[y..], &mut steps)).flatten();
        let Some((reached, end)) = searched else {
            is_deleted[x..].fill(true);
            is_inserted[y..].fill(true);
            return (is_deleted, is_inserted, false);
        };
        trace(&reached, end, &mut is_deleted[x..], &mut is_inserted[y..]);
        let is_whole = (x, y) == (0, 0) && end == (a.len(), b.len());
        (x, y) = (x + end.0, y + end.1);
        if is_whole {
            return (is_deleted, is_inserted, true);
        }
    }
    (is_deleted, is_inserted, false)
}

/// For each number of differences d, the furthest position in `a` reached on each of the diagonals -d, -d + 2, .. d.
type Frontier = Vec<Vec<u32>>;

/// Searches for the path with the fewest differences. If it has more than [`DIFFERENCES_MAX`] differences, finds the
/// path that advances furthest with this number. Also returns the end of the path: the ends of both texts, or the
/// positions at which to continue.
fn search(a: &[u32], b: &[u32], steps: &mut u64) -> Option<(Frontier, (usize, usize))> {
    let mut reached = Frontier::new();
    for d in 0..=DIFFERENCES_MAX {
        let mut row = Vec::with_capacity(d + 1);
        for place in 0..=d {
            let mut x = match reached.last() {
                None => 0,
                Some(before) if is_insertion(before, place) => before[place] as usize,
                Some(before) => before[place - 1] as usize + 1,
            };
            // The diagonal is x - y = 2 * place - d. A path beyond the end of a text is not continued.
            let mut y = x + d - 2 * place;
            let from = x;
            while x < a.len() && y < b.len() && a[x] == b[y] {
                (x, y) = (x + 1, y + 1);
            }
            *steps += (x - from) as u64 + 1;
            row.push(x as u32);
            if x >= a.len() && y >= b.len() {
                reached.push(row);
                return Some((reached, (a.len(), b.len())));
            }
        }
        reached.push(row);
    }
    let d = DIFFERENCES_MAX;
    let ends = reached[d].iter().enumerate().map(|(place, &x)| (x as usize, x as usize + d - 2 * place));
    let end = ends.filter(|&(x, y)| x <= a.len() && y <= b.len()).max_by_key(|&(x, y)| x + y)?;
    Some((reached, end))
}

/// Follows the path that `search` found backwards from `end`, and marks its deletions and insertions.
fn trace(reached: &Frontier, end: (usize, usize), is_deleted: &mut [bool], is_inserted: &mut [bool]) {
    let (mut x, mut y) = end;
    for d in (1..reached.len()).rev() {
        let place = (x + d - y) / 2;
        let before = &reached[d - 1];
        if is_insertion(before, place) {
            x = before[place] as usize;
            y = x + (d - 1) - 2 * place;
            is_inserted[y] = true;
        } else {
            x = before[place - 1] as usize;
            y = x + (d - 1) - 2 * (place - 1);
            is_deleted[x] = true;
        }
    }
}

/// Returns whether the furthest path to diagonal `place` ends with an insertion rather than a deletion.
fn is_insertion(before: &[u32], place: usize) -> bool {
    place == 0 || (place < before.len() && before[place - 1] < before[place])
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Extent = Extent { context: 2, hunks: usize::MAX, run: usize::MAX, steps: STEPS_MAX };

    /// Returns the length of the longest common subsequence, computed by dynamic programming.
    fn common(a: &[u32], b: &[u32]) -> usize {
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for (i, x) in a.iter().enumerate() {
            for (j, y) in b.iter().enumerate() {
                table[i + 1][j + 1] =
                    if x == y { table[i][j] + 1 } else { table[i][j + 1].max(table[i + 1][j]) };
            }
        }
        table[a.len()][b.len()]
    }

    #[test]
    fn changes_are_minimal_and_turn_one_text_into_the_other() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
            (state >> 33) % below
        };
        for round in 0..3000 {
            let kinds = 1 + random(6);
            let text = |random: &mut dyn FnMut(u64) -> u64| -> Vec<u32> {
                (0..random(14)).map(|_| random(kinds) as u32).collect()
            };
            let (a, b) = (text(&mut random), text(&mut random));
            let (changes, is_least) = changes(&a, &b, STEPS_MAX);
            assert!(is_least);
            let (mut made, mut at) = (Vec::new(), 0);
            for change in &changes {
                made.extend_from_slice(&a[at..change.kept.start]);
                assert_eq!(made.len(), change.key.start, "{round}: {a:?} {b:?}");
                made.extend_from_slice(&b[change.key.clone()]);
                at = change.kept.end;
            }
            made.extend_from_slice(&a[at..]);
            assert_eq!(made, b, "{round}: {a:?}");
            let edits: usize = changes.iter().map(|change| change.kept.len() + change.key.len()).sum();
            assert_eq!(edits, a.len() + b.len() - 2 * common(&a, &b), "{a:?} {b:?}");
        }
    }

    #[test]
    fn white_space_separates_words_and_each_ideograph_is_a_word() {
        let texts = |text| words(text).iter().map(|word| word.text).collect::<Vec<_>>();
        assert_eq!(texts("  one, two\n\tthree"), ["one,", "two", "three"]);
        assert_eq!(texts("中文 abc字x"), ["中", "文", "abc", "字", "x"]);
        assert_eq!(texts(" \n"), [""; 0]);
        assert_eq!(joined(&words("中文 abc字x\n y")), "中文 abc字x y");
    }

    #[test]
    fn hunks_with_overlapping_context_are_joined() {
        let kept = "a b c d e f g h i j k l m n";
        let key = "a b c X e f g h i j k l m n o";
        let found = diff(&words(kept), &words(key), ALL);
        let run = |stands, text: &str| Run { stands, text: text.into(), omitted: 0 };
        let first = Hunk {
            word_of_kept: 2,
            word_of_key: 2,
            runs: vec![
                run(WordOrigin::InBoth, "b c"),
                run(WordOrigin::InKept, "d"),
                run(WordOrigin::InKey, "X"),
                run(WordOrigin::InBoth, "e f"),
            ],
        };
        let second = Hunk {
            word_of_kept: 13,
            word_of_key: 13,
            runs: vec![run(WordOrigin::InBoth, "m n"), run(WordOrigin::InKey, "o")],
        };
        assert_eq!((found.only_in_kept, found.only_in_key, found.hunks_in_all), (1, 2, 2));
        assert_eq!(found.hunks, [first, second]);
        assert_eq!(diff(&words(kept), &words(key), Extent { context: 6, ..ALL }).hunks.len(), 1);
        let short = diff(&words("a b c"), &words(""), Extent { run: 2, hunks: 1, ..ALL });
        assert_eq!(short.hunks[0].runs, [Run { stands: WordOrigin::InKept, text: "a b".into(), omitted: 1 }]);
        assert_eq!(diff(&words(kept), &words(kept), ALL).hunks_in_all, 0);
    }

    #[test]
    fn texts_with_too_many_differences_become_one_replacement() {
        let number = |start: u32| (start..start + 3000).map(|word| word.to_string());
        let text = |start| {
            let words: Vec<String> =
                ["begin".to_owned()].into_iter().chain(number(start)).chain(["end".to_owned()]).collect();
            words.join(" ")
        };
        let (kept, key) = (text(0), text(10_000));
        let found = diff(&words(&kept), &words(&key), Extent { run: 3, ..ALL });
        assert!(!found.is_least);
        assert_eq!((found.only_in_kept, found.only_in_key, found.hunks_in_all), (3000, 3000, 1));
        assert_eq!(found.hunks[0].runs[1].omitted, 2997);
    }

    #[test]
    fn scattered_changes_are_found_though_not_minimal() {
        let a: Vec<u32> = (0..200_000).map(|place| place * 7919 % 10_007).collect();
        let b: Vec<u32> =
            (0..).zip(&a).map(|(place, &a)| if place % 50 == 7 { 1_000_000 } else { a }).collect();
        let (found, is_least) = changes(&a, &b, STEPS_MAX);
        assert!(!is_least);
        assert_eq!(found.len(), 4000);
        assert!(found.iter().all(|change| change.kept.len() == 1 && change.kept == change.key));
    }
}
