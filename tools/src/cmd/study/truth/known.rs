//! Reads tables of pairs.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context, bail};
use twindex::Resemblance;

use twindex_corpus::input::{Place, TableLines};
use twindex_corpus::tsv;

use crate::pair_file::PairFiles;

/// Assigns numbers to keys. Tables that are compared with each other must use the same assignment.
#[derive(Default)]
pub(super) struct KeyNumbers(HashMap<Box<[u8]>, u32>);

impl KeyNumbers {
    pub(super) fn number(&mut self, key: &[u8]) -> u32 {
        if let Some(&number) = self.0.get(key) {
            return number;
        }
        let number = self.0.len() as u32; // 2^32 keys would not fit in memory
        self.0.insert(key.into(), number);
        number
    }
}

/// The kind of score in a table of pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScoreScale {
    Resemblance,
    Distance,
    /// No score: the table lists only pairs.
    None,
}

impl ScoreScale {
    /// Parses a score of this kind.
    fn parse(self, text: &str) -> Result<PairMeasure, String> {
        if self == Self::Distance {
            let distance = parse_number(text)?;
            return match u32::try_from(distance).ok().filter(|distance| *distance <= 64) {
                Some(distance) => Ok(PairMeasure::Distance(distance)),
                None => Err(format!("expected a distance of 0 to 64, found {distance}")),
            };
        }
        match text {
            "-" => Ok(PairMeasure::Pair),
            text => match text.parse() {
                Ok(value) if (0.0..=1.0).contains(&value) => Ok(PairMeasure::Resemblance(value)),
                _ => Err(format!("expected a resemblance of 0 to 1 or -, found `{text}`")),
            },
        }
    }
}

fn parse_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("expected a number, found `{text}`"))
}

/// The score of one pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PairMeasure {
    Resemblance(f64),
    Distance(u32),
    /// No score: the pair is counted for every threshold.
    Pair,
}

impl PairMeasure {
    pub(super) fn resembles(self, threshold: f64) -> bool {
        match self {
            Self::Resemblance(resemblance) => resemblance >= threshold,
            Self::Distance(_) => false,
            Self::Pair => true,
        }
    }

    pub(super) fn is_within(self, k: u32) -> bool {
        match self {
            Self::Distance(distance) => distance <= k,
            Self::Resemblance(_) => false,
            Self::Pair => true,
        }
    }
}

/// Distinct pairs of keys, with their scores.
#[derive(Debug)]
pub(super) struct KnownPairs {
    pub(super) scale: ScoreScale,
    /// The pairs in ascending order. The first number of a pair is the smaller one.
    pairs: Vec<(u32, u32, PairMeasure)>,
}

/// The columns of a table that are read.
struct KnownColumns {
    scale: ScoreScale,
    /// The column of the resemblance or the distance, if there is one.
    value: Option<usize>,
    /// The columns of the sizes of intersection and union, if there are any.
    fraction: Option<(usize, usize)>,
    count: usize,
}

impl KnownColumns {
    fn of(header: &str) -> Result<Self, String> {
        let names: Vec<&str> = header.trim_start_matches('#').split('\t').collect();
        let column = |name: &str| names.iter().position(|other| *other == name);
        if matches!(names[..], ["document", "kept", ..]) {
            return Err(
                "has each document that goes with the one that is kept for it, not all pairs: `pairs` lists these"
                    .to_owned(),
            );
        }
        if !matches!(names[..], ["a", "b", ..] | ["id_a", "id_b", ..]) {
            return Err(format!(
                "expected a header that begins with a, b or #id_a, id_b, set apart by tabs; found `{}`",
                header.chars().take(60).collect::<String>().escape_debug()
            ));
        }
        let fraction = column("intersection").zip(column("union"));
        let (resemblance, distance) =
            (column("resemblance").or_else(|| column("jaccard")), column("distance"));
        let scale = match (fraction.is_some() || resemblance.is_some(), distance.is_some()) {
            (true, false) => ScoreScale::Resemblance,
            (false, true) => ScoreScale::Distance,
            (false, false) => ScoreScale::None,
            (true, true) => return Err("has resemblances and distances; which is meant?".into()),
        };
        Ok(Self { scale, value: resemblance.or(distance), fraction, count: names.len() })
    }

    fn measure(&self, fields: &[&str]) -> Result<PairMeasure, String> {
        let number = |column: usize| parse_number(fields[column]);
        if let Some((intersection, union)) = self.fraction {
            let (intersection, union) = (number(intersection)?, number(union)?);
            if intersection > union {
                return Err(format!("an intersection of {intersection} in a union of {union}"));
            }
            // If the union is 0, both documents lack shingles. They are equal, so their resemblance is 1.
            let exact = Resemblance::Exact { intersection: intersection as usize, union: union as usize };
            return Ok(PairMeasure::Resemblance(if union == 0 { 1.0 } else { exact.value() }));
        }
        let Some(column) = self.value else { return Ok(PairMeasure::Pair) };
        self.scale.parse(fields[column])
    }
}

impl KnownPairs {
    pub(super) fn new(scale: ScoreScale) -> Self {
        Self { scale, pairs: Vec::new() }
    }

    /// Reads a file that `pairs` wrote with `--out` or `--into`.
    fn read_pair_file(path: &Path, keys: &mut KeyNumbers) -> anyhow::Result<Self> {
        let mut files = PairFiles::open(&[path.to_owned()])?;
        let is_by_distance = files.kind().is_some_and(|kind| kind.starts_with("within "));
        let scale = if is_by_distance { ScoreScale::Distance } else { ScoreScale::Resemblance };
        let (text, mut known) = (files.keys(), Self::new(scale));
        files.for_each(|pair| {
            let mut number = |key: &[u8]| -> anyhow::Result<u32> {
                let mut written = Vec::new();
                text.write(&mut written, key)?;
                Ok(keys.number(&written))
            };
            let (a, b) = (number(pair.a)?, number(pair.b)?);
            let score = str::from_utf8(pair.score.unwrap_or_default())?;
            known.push(a, b, scale.parse(score).map_err(anyhow::Error::msg)?);
            Ok(())
        })?;
        known.finish();
        Ok(known)
    }

    /// Reads a table, or a file of pairs.
    ///
    /// # Errors
    ///
    /// The table cannot be read, or a line does not match the header; the error names the line.
    pub(super) fn read(path: &Path, keys: &mut KeyNumbers) -> anyhow::Result<Self> {
        if PairFiles::is_one(path) {
            return Self::read_pair_file(path, keys);
        }
        let mut lines = TableLines::open(path)?;
        let name = lines.name();
        let text = |line: &[u8], number| {
            String::from_utf8(line.to_vec())
                .with_context(|| format!("{}: not UTF-8", Place::line(name.clone(), number)))
        };
        let Some((number, header)) = lines.next_line()? else {
            bail!("{}: empty; expected a header", path.display());
        };
        let columns = KnownColumns::of(&text(header, number)?)
            .map_err(|why| anyhow::anyhow!("{}: {why}", Place::line(name.clone(), number)))?;
        let mut known = Self::new(columns.scale);
        while let Some((number, line)) = lines.next_line()? {
            let line = text(line, number)?;
            let fields: Vec<&str> = line.split('\t').collect();
            let measured = if fields.len() == columns.count {
                columns.measure(&fields)
            } else {
                Err(format!("expected {} columns as in the header, found {}", columns.count, fields.len()))
            };
            let place = || Place::line(name.clone(), number);
            let measured = measured.map_err(|why| anyhow::anyhow!("{}: {why}", place()))?;
            for key in &fields[..2] {
                tsv::unescape(key.as_bytes()).with_context(|| place().to_string())?;
            }
            // Every key has exactly one escaped form, so escaped keys are compared without unescaping.
            known.push(keys.number(fields[0].as_bytes()), keys.number(fields[1].as_bytes()), measured);
        }
        known.finish();
        Ok(known)
    }

    pub(super) fn push(&mut self, a: u32, b: u32, measured: PairMeasure) {
        self.pairs.push((a.min(b), a.max(b), measured));
    }

    /// Sorts the pairs. Keeps only the first entry of a repeated pair.
    pub(super) fn finish(&mut self) {
        self.pairs.sort_by_key(|&(a, b, _)| (a, b));
        self.pairs.dedup_by_key(|&mut (a, b, _)| (a, b));
    }

    /// Returns three counts: pairs of `found` at the threshold, known pairs among them, and all known pairs.
    pub(super) fn compare(
        &self,
        found: &Self,
        is_known: impl Fn(PairMeasure) -> bool,
        is_found: impl Fn(PairMeasure) -> bool,
    ) -> (u64, u64, u64) {
        let known = self.pairs.iter().filter(|&&(_, _, measured)| is_known(measured)).count() as u64;
        let (mut taken, mut right) = (0, 0);
        let mut rest = self.pairs.iter().peekable();
        for &(a, b, _) in found.pairs.iter().filter(|&&(_, _, measured)| is_found(measured)) {
            taken += 1;
            while rest.next_if(|&&(x, y, _)| (x, y) < (a, b)).is_some() {}
            right +=
                u64::from(rest.peek().is_some_and(|&&(x, y, known)| (x, y) == (a, b) && is_known(known)));
        }
        (taken, right, known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(table: &str) -> anyhow::Result<KnownPairs> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("t.tsv");
        std::fs::write(&path, table).unwrap();
        KnownPairs::read(&path, &mut KeyNumbers::default())
    }

    #[test]
    fn pair_tables_with_every_kind_of_score_are_read() {
        let known =
            read("#id_a\tid_b\tintersection\tunion\tjaccard\nx\ty\t8\t10\t0.8\ny\tz\t0\t0\t0\n").unwrap();
        assert_eq!(known.scale, ScoreScale::Resemblance);
        assert_eq!(
            known.pairs,
            [(0, 1, PairMeasure::Resemblance(0.8)), (1, 2, PairMeasure::Resemblance(1.0))]
        );
        let known = read("a\tb\tresemblance\ny\tx\t0.5\nx\ty\t0.9\nz\tx\t-\n").unwrap();
        assert_eq!(known.pairs, [(0, 1, PairMeasure::Resemblance(0.5)), (1, 2, PairMeasure::Pair)]);
        assert_eq!(read("a\tb\tdistance\nx\ty\t3\n").unwrap().pairs, [(0, 1, PairMeasure::Distance(3))]);
        assert_eq!(read("a\tb\n").unwrap().scale, ScoreScale::None);
    }

    #[test]
    fn pair_table_errors_name_the_line() {
        for (table, parts) in [
            ("", &["empty"][..]),
            ("x\ty\n", &[":1:", "expected a header"]),
            ("document\tkept\tdistance\n", &[":1:", "`pairs`"]),
            ("a\tb\tresemblance\tdistance\n", &[":1:", "which is meant"]),
            ("a\tb\tdistance\nx\ty\n", &[":2:", "expected 3 columns", "found 2"]),
            ("a\tb\tdistance\nx\ty\t65\n", &[":2:", "0 to 64, found 65"]),
            ("a\tb\tresemblance\nx\ty\t1.5\n", &[":2:", "0 to 1", "1.5"]),
            ("a\tb\tresemblance\nx\ty\tNaN\n", &[":2:", "0 to 1", "NaN"]),
            ("a\tb\tintersection\tunion\nx\ty\t2\t1\n", &[":2:", "2 in a union of 1"]),
            ("a\tb\nx\\q\ty\n", &[":2", "bad escape"]),
        ] {
            let message = format!("{:#}", read(table).unwrap_err());
            assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        }
    }

    #[test]
    fn pairs_are_compared_in_either_order_of_keys() {
        let mut truth = KnownPairs::new(ScoreScale::Resemblance);
        let mut found = KnownPairs::new(ScoreScale::Distance);
        for (a, b, resemblance) in [(5, 1, 0.9), (2, 3, 0.7), (3, 9, 0.95)] {
            truth.push(a, b, PairMeasure::Resemblance(resemblance));
        }
        for (a, b, distance) in [(1, 5, 3), (3, 2, 2), (0, 1, 0), (9, 3, 8)] {
            found.push(a, b, PairMeasure::Distance(distance));
        }
        truth.finish();
        found.finish();
        let at = |k, threshold| truth.compare(&found, |m| m.resembles(threshold), |m| m.is_within(k));
        assert_eq!(at(3, 0.8), (3, 1, 2));
        assert_eq!(at(10, 0.8), (4, 2, 2));
        assert_eq!(at(10, 0.5), (4, 3, 3));
        assert_eq!(at(0, 0.5), (1, 0, 3));
    }
}
