//! Chooses a design and the codecs of its tables by their predicted size and query time.

use super::cost::{self, Cost};
use crate::design::{
    BLOCKS_MAX, CodecChoice, Codecs, Complete, Design, DesignChoice, DesignName, Scheme, WITHIN_MAX,
};
use crate::format::DOCUMENTS_MAX;

/// Maximum number of distinct fingerprints of a segment that uses [`SIMPLE`]. In such a segment, queries scan all or
/// nearly all fingerprints.
pub const SIMPLE_ROWS: u64 = 4096;
/// The scheme of segments with at most [`SIMPLE_ROWS`] distinct fingerprints.
pub const SIMPLE: Scheme =
    Scheme { design: DesignName::Blocks(4), codecs: Codecs { first: Complete::Planes, partial: Some(2) } };
/// Maximum number of tables of a `choose-M-J` design that [`candidates`] returns.
pub const TABLES_CHOSEN_MAX: u32 = 20;
/// For `fast`: the maximum query time divided by the minimum query time, in twentieths (21/20 is 5 % more).
const FAST_TWENTIETHS: f64 = 21.0;
/// For `auto`: the maximum query time divided by the minimum query time, in twentieths (23/20 is 15 % more).
const AUTO_TWENTIETHS: f64 = 23.0;
/// For `small`: the maximum query time divided by the minimum query time, in twentieths (120/20 is 6 times as long).
const SMALL_TWENTIETHS: f64 = 120.0;

/// A candidate scheme with its predicted size and query time.
#[derive(Clone, Debug)]
pub struct SchemeChoice {
    /// The design and the codecs of the tables.
    pub scheme: Scheme,
    /// The predicted costs of the tables.
    pub cost: Cost,
}

/// Returns the schemes from which `auto`, `small` and `fast` choose for the radius `within`, in a fixed order, with
/// their costs in a segment of `rows` distinct fingerprints.
///
/// The designs are `blocks-M` up to `M = within + 1`, `choose-M-J` with at most [`TABLES_CHOSEN_MAX`] tables and a
/// largest radius of `within`, and `nested-4-4`. The codec of complete tables is planes or compact. Either all tables
/// are complete, or only the first. A given `design` is the only design; the same holds for `codecs`.
#[must_use]
pub fn candidates(
    design: Option<DesignName>,
    codecs: Option<Codecs>,
    within: u8,
    rows: u64,
) -> Vec<SchemeChoice> {
    let within = u32::from(within.min(WITHIN_MAX));
    let names = design.map_or_else(|| names(within), |name| vec![name]);
    let all = [Complete::Planes, Complete::Compact]
        .into_iter()
        .flat_map(|first| [Some(2), Some(3), Some(4), None].map(|partial| Codecs { first, partial }));
    let open = codecs.is_none();
    let codecs: Vec<Codecs> = codecs.map_or_else(|| all.collect(), |codecs| vec![codecs]);
    let rows = rows.min(DOCUMENTS_MAX);
    let mut choices = Vec::new();
    for name in names {
        let Ok(design) = Design::new(name) else { continue };
        for &codecs in &codecs {
            // A design with one table has no partial tables, so a codec for partial tables makes no difference.
            if name.tables() == 1 && codecs.partial.is_some() && open {
                continue;
            }
            let scheme = Scheme { design: name, codecs };
            if let Ok(cost) = cost::of_design(&design, scheme, within.min(name.within_max()), rows) {
                choices.push(SchemeChoice { scheme, cost });
            }
        }
    }
    choices
}

fn names(within: u32) -> Vec<DesignName> {
    let mut names: Vec<DesignName> = (1..=within as u8 + 1).map(DesignName::Blocks).collect();
    for blocks in 3..=BLOCKS_MAX {
        let Some(leading) = u32::from(blocks).checked_sub(within).filter(|&leading| leading >= 2) else {
            continue;
        };
        let name = DesignName::Choose { blocks, leading: leading as u8 };
        if within > 0 && name.tables() <= TABLES_CHOSEN_MAX {
            names.push(name);
        }
    }
    let nested = DesignName::Nested { outer: 4, inner: 4 };
    if (2..=nested.within_max()).contains(&within) {
        names.push(nested);
    }
    names
}

/// Returns the smallest of the schemes whose query time is at most `twentieths / 20` times `min`. Among equally small
/// ones, takes the fastest, then the first.
fn thrifty(choices: &[SchemeChoice], min: f64, twentieths: f64) -> Option<&SchemeChoice> {
    let fit = choices.iter().filter(|choice| choice.cost.nanos() * 20.0 <= min * twentieths);
    fit.min_by(|a, b| a.cost.bytes.cmp(&b.cost.bytes).then(a.cost.nanos().total_cmp(&b.cost.nanos())))
}

fn min<'a>(choices: impl Iterator<Item = &'a SchemeChoice>) -> f64 {
    choices
        .map(|choice| choice.cost.nanos())
        .fold(f64::INFINITY, |min, nanos| if nanos < min { nanos } else { min })
}

impl Scheme {
    /// Chooses the scheme of a segment of `rows` distinct fingerprints by the size and query time that [`super::cost`]
    /// predicts. The result depends only on the arguments.
    ///
    /// - `fast`: the smallest scheme among all schemes that are at most 5 % slower than the fastest one.
    /// - `auto`: the smallest scheme among the block designs that are at most 15 % slower than the fastest block
    ///   design. Other designs are not considered, because they answer only radii up to `within`.
    /// - `small`: the smallest scheme among the block designs that take at most 6 times as long as the fastest one.
    ///
    /// A named design and named codecs are used as given. If only the design is named, the codecs are chosen as for
    /// `auto`; if only the codecs are named, the design is chosen as above. Parts that are not named are taken from
    /// [`SIMPLE`] if there are at most [`SIMPLE_ROWS`] fingerprints, or if a scan of all fingerprints is less work than
    /// the probes of any of these designs. A segment has at most [`DOCUMENTS_MAX`] rows; larger `rows` are treated as
    /// [`DOCUMENTS_MAX`].
    #[must_use]
    pub fn choose(design: DesignChoice, codec: CodecChoice, within: u8, rows: u64) -> Self {
        let named = match design {
            DesignChoice::Named(name) => Some(name),
            _ => None,
        };
        let codecs = match codec {
            CodecChoice::Named(codecs) => Some(codecs),
            CodecChoice::Auto => None,
        };
        let simple = Self { design: named.unwrap_or(SIMPLE.design), codecs: codecs.unwrap_or(SIMPLE.codecs) };
        if rows <= SIMPLE_ROWS || (named.is_some() && codecs.is_some()) {
            return simple;
        }
        let mut choices = candidates(named, codecs, within, rows);
        choices.retain(|choice| !choice.cost.scan);
        if named.is_none() && design != DesignChoice::Fast {
            choices.retain(|choice| matches!(choice.scheme.design, DesignName::Blocks(_)));
        }
        let twentieths = match design {
            DesignChoice::Fast => FAST_TWENTIETHS,
            DesignChoice::Small => SMALL_TWENTIETHS,
            DesignChoice::Auto | DesignChoice::Named(_) => AUTO_TWENTIETHS,
        };
        let chosen = thrifty(&choices, min(choices.iter()), twentieths);
        chosen.map_or(simple, |choice| choice.scheme)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: [DesignChoice; 3] = [DesignChoice::Auto, DesignChoice::Small, DesignChoice::Fast];

    fn chosen(design: DesignChoice, within: u8, rows: u64) -> SchemeChoice {
        let scheme = Scheme::choose(design, CodecChoice::Auto, within, rows);
        SchemeChoice { scheme, cost: cost::cost(scheme, within.into(), rows).unwrap() }
    }

    fn bytes_each(choice: &SchemeChoice, rows: u64) -> f64 {
        choice.cost.bytes as f64 / rows as f64
    }

    #[test]
    fn chosen_schemes_satisfy_size_and_time_rules() {
        for within in 0..=WITHIN_MAX {
            for rows in [4097, 30_000, 1_000_000, 10_000_000, 50_000_000, 300_000_000, DOCUMENTS_MAX] {
                let [auto, small, fast] = WORDS.map(|word| chosen(word, within, rows));
                for (a, b) in [(&small, &auto), (&auto, &fast)] {
                    // `fast` may take 5 % more than the minimum query time to save bytes.
                    assert!(
                        b.cost.nanos() <= a.cost.nanos() * 1.05,
                        "within {within} of {rows}: {a:?} {b:?}"
                    );
                }
                assert!(small.cost.bytes <= auto.cost.bytes, "within {within} of {rows}");
                for choice in [auto, small] {
                    assert_eq!(choice.scheme.design.within_max(), u32::from(WITHIN_MAX), "{}", choice.scheme);
                }
            }
        }
    }

    #[test]
    fn ten_million_fingerprints_take_the_documented_bytes() {
        let (auto, small) =
            (chosen(DesignChoice::Auto, 3, 10_000_000), chosen(DesignChoice::Small, 3, 10_000_000));
        assert!(bytes_each(&auto, 10_000_000) <= 15.2, "{}", auto.scheme);
        assert!(bytes_each(&small, 10_000_000) <= 10.8, "{}", small.scheme);
    }

    #[test]
    fn named_designs_and_codecs_are_used() {
        let (design, codecs): (DesignName, Codecs) =
            ("random-8-12-7".parse().unwrap(), "plain+4".parse().unwrap());
        for rows in [10, 1_000_000] {
            let (named, given) = (DesignChoice::Named(design), CodecChoice::Named(codecs));
            assert_eq!(Scheme::choose(named, given, 3, rows), Scheme { design, codecs });
            assert_eq!(Scheme::choose(named, CodecChoice::Auto, 3, rows).design, design);
            for word in WORDS {
                assert_eq!(Scheme::choose(word, given, 3, rows).codecs, codecs);
            }
            // A named design is used even if the radius is above its maximum; queries then return an error that names
            // the design.
            let ten = DesignChoice::Named("choose-5-2".parse().unwrap());
            assert_eq!(Scheme::choose(ten, CodecChoice::Auto, 9, rows).design.to_string(), "choose-5-2");
        }
    }

    #[test]
    fn few_fingerprints_use_the_simple_scheme() {
        for word in WORDS {
            for within in 0..=WITHIN_MAX {
                for rows in [0, 1, SIMPLE_ROWS] {
                    assert_eq!(Scheme::choose(word, CodecChoice::Auto, within, rows), SIMPLE);
                }
            }
        }
    }

    #[test]
    fn rows_above_the_segment_limit_are_treated_as_the_limit() {
        let max = Scheme::choose(DesignChoice::Auto, CodecChoice::Auto, 3, DOCUMENTS_MAX);
        assert_eq!(Scheme::choose(DesignChoice::Auto, CodecChoice::Auto, 3, u64::MAX), max);
    }
}
