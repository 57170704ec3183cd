//! Settings of an index and of a writer, by name and as text.
//!
//! Settings that the command also has, have its names, with `_` for `-`, and its text forms. They are declared in
//! `crates/corpus/src/settings`, which this crate does not link: it reads Parquet, Arrow and archives. So
//! `tools/tests/it/c_settings.rs` includes this file, and compares its names and values with those declarations.

use std::path::PathBuf;
use std::time::Duration;

use twindex::params::{
    Family, Folding, MinhashWeights, Near, NormalForm, ParamsBuilder, Preset, ShingleHash, Shingling,
    SimhashWeights, Stemming, StopWords, Tokens, Widths,
};
use twindex::sketch::{CODE_WIDTHS, Cutter, Units};
use twindex::{Banding, Durability, WriterOptions};

/// A setting: its name, and the form of its value.
pub(crate) type Setting = (&'static str, &'static str);

/// The settings of a new index.
pub(crate) const PARAMS: &[Setting] = &[
    ("tokens", "the kind of tokens, such as words"),
    ("words", "1 to 16, or several numbers joined by +"),
    ("normal_form", "none or nfkc"),
    ("fold", "none, marks, invisible or marks+invisible"),
    ("stop_words", "none or @FILE"),
    ("stemming", "none or a language"),
    ("shingle_hash", "fast, rabin or rabin-karp"),
    ("seed", "a number"),
    ("near", "J, resemblance:J, within:K, or J,within:K"),
    ("simhash_bits", "64, 128, 192, 256, 384 or 512"),
    ("weights", "distinct or tf"),
    ("bands", "a number"),
    ("rows", "a number"),
    ("preset", "a name, such as broder-84"),
    ("signature_bits", "0, 1, 2, 4, 8, 16 or 32"),
    ("feature_bits", "1 to 32"),
    ("family", "a name, such as one-permutation-filled"),
    ("simhash_weights", "occurrences or distinct"),
    ("design", "auto or the name of a design"),
    ("codec", "auto or the name of a codec"),
    ("simhash", "0 to 10, the distance for which tables are made"),
    ("bottom", "a number of hashes"),
    ("modulus", "a number"),
    ("sets", "kept, containment or none"),
    ("marks", "kept or none"),
    ("values", "kept or none"),
    ("priorities", "kept or none"),
    ("expire_after", "a number, in the unit of stamps"),
    ("keys", "bytes or u64"),
];

/// The settings of a writer, named as the functions of `WriterOptions`.
pub(crate) const WRITER: &[Setting] = &[
    ("memory", "a size, such as 512M"),
    ("threads", "a number"),
    ("memtable", "ROWS,SIZE, such as 100000,64M"),
    ("stalls", "MILLISECONDS,MEMTABLES"),
    ("one_segment", "true or false"),
    ("logged", "true or false"),
    ("durability", "none, batch or sync"),
    ("drop_duplicates", "true or false"),
    ("near", "J, resemblance:J, within:K, or J,within:K"),
    ("unverified", "true or false"),
    ("estimated", "true or false"),
    ("max_jump", "a number, in the unit of stamps"),
    ("background_merges", "true or false"),
    ("merge_rate", "none, or a size for each second"),
];

type Result<T> = std::result::Result<T, String>;

/// Returns the error for a name that is not in the table.
fn unknown(name: &str, table: &[Setting]) -> String {
    let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
    format!("there is no setting {name:?}: there are {}", names.join(", "))
}

/// Returns the error for a value that is not in the form that the table says.
fn refused(name: &str, value: &str, table: &[Setting]) -> String {
    let form = table.iter().find(|(known, _)| *known == name).map_or("", |(_, form)| form);
    format!("{name}: expected {form}, found {value:?}")
}

fn flag(value: &str, on: &str, off: &str) -> Option<bool> {
    if value == on {
        Some(true)
    } else if value == off {
        Some(false)
    } else {
        None
    }
}

/// Parses a number of bytes, with K, M or G for powers of 1024.
fn size(value: &str) -> Option<usize> {
    let digits = value.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: usize = match &value[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

/// Parses the rule by which documents are near.
fn near(value: &str) -> Result<Near> {
    let (mut threshold, mut within) = (None, None);
    for one in value.split(',') {
        let twice = match one.split_once(':') {
            Some(("within", bits)) => {
                bits.parse().ok().filter(|&bits| bits <= 512).map(|bits: u16| within.replace(bits).is_some())
            }
            None | Some(("resemblance", _)) => {
                let share = one.strip_prefix("resemblance:").unwrap_or(one).parse::<f64>();
                let share = share.ok().filter(|share| (0.05..=1.0).contains(share));
                share.map(|share| threshold.replace(share).is_some())
            }
            Some(_) => None,
        };
        if twice != Some(false) {
            return Err(refused("near", value, PARAMS));
        }
    }
    match (threshold, within) {
        (Some(threshold), within) => {
            let near = Near::resembling(threshold).map_err(|error| error.to_string())?;
            Ok(within.map_or(near, |within| near.or_within(within)))
        }
        (None, Some(within)) => Ok(Near::within(within)),
        (None, None) => Err(refused("near", value, PARAMS)),
    }
}

/// Sets a setting of a writer.
pub(crate) fn set_writer(options: WriterOptions, name: &str, value: &str) -> Result<WriterOptions> {
    let truth = || flag(value, "true", "false");
    let pair = || value.split_once(',');
    let set = match name {
        "memory" => size(value).map(|bytes| options.memory(bytes)),
        "threads" => value.parse().ok().map(|threads| options.threads(threads)),
        "memtable" => {
            pair().and_then(|(rows, bytes)| Some(options.memtable(rows.parse().ok()?, size(bytes)?)))
        }
        "stalls" => pair().and_then(|(pause, memtables)| {
            Some(options.stalls(Duration::from_millis(pause.parse().ok()?), memtables.parse().ok()?))
        }),
        "one_segment" => truth().map(|yes| options.one_segment(yes)),
        "logged" => truth().map(|yes| options.logged(yes)),
        "durability" => match value {
            "none" => Some(options.durability(Durability::None)),
            "batch" => Some(options.durability(Durability::Batch)),
            "sync" => Some(options.durability(Durability::Sync)),
            _ => None,
        },
        "drop_duplicates" => truth().map(|yes| options.drop_duplicates(yes)),
        "near" => Some(options.near(near(value)?)),
        "unverified" => truth().map(|yes| options.unverified(yes)),
        "estimated" => truth().map(|yes| options.estimated(yes)),
        "max_jump" => value.parse().ok().map(|jump| options.max_jump(jump)),
        "background_merges" => truth().map(|yes| options.background_merges(yes)),
        "merge_rate" if value == "none" => Some(options.merge_rate(None)),
        "merge_rate" => size(value).map(|rate| options.merge_rate(Some(rate as u64))),
        _ => return Err(unknown(name, WRITER)),
    };
    set.ok_or_else(|| refused(name, value, WRITER))
}

/// The settings of a new index that were set, besides those that a builder holds.
#[derive(Clone, Debug, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent settings")]
pub(crate) struct ParamSettings {
    /// How texts are split, by a table of document frequencies; the settings of texts then have no effect.
    pub(crate) of_table: Option<Shingling>,
    /// Whether minima, or fingerprints, were already requested from the builder.
    pub(crate) has_minhash: bool,
    pub(crate) has_simhash: bool,
    tokens: Option<Tokens>,
    words: Option<Words>,
    nfkc: bool,
    fold_marks: bool,
    fold_invisible: bool,
    stop_words: Option<PathBuf>,
    stemming: Option<Stemming>,
    hash: Option<ShingleHash>,
    pub(crate) seed: u64,
    near: Option<Near>,
    bands: Option<u16>,
    rows: Option<u16>,
    distinct_simhash: bool,
    /// More than 64, if simhashes have more.
    long_simhash: Option<u16>,
    design: Option<twindex::DesignChoice>,
    codec: Option<twindex::CodecChoice>,
    simhash: Option<u8>,
}

/// The numbers of tokens in a shingle. A number is checked when it is used.
#[derive(Clone, Copy, Debug)]
enum Words {
    Number(u8),
    Widths(Widths),
}

fn kept(value: &str) -> Option<bool> {
    flag(value, "kept", "none")
}

impl ParamSettings {
    pub(crate) fn set_words(&mut self, width: u8) {
        self.words = Some(Words::Number(width));
    }

    /// Sets a setting. Those that only a builder can hold are set in it.
    pub(crate) fn set(&mut self, builder: ParamsBuilder, name: &str, value: &str) -> Result<ParamsBuilder> {
        let wrong = || refused(name, value, PARAMS);
        let set = match name {
            "tokens" => {
                let known = Tokens::named(value).filter(|tokens| *tokens != Tokens::Features);
                known.map(|tokens| self.tokens = Some(tokens))
            }
            "words" => value.parse().ok().map(|widths| self.words = Some(Words::Widths(widths))),
            "normal_form" => flag(value, "nfkc", "none").map(|nfkc| self.nfkc = nfkc),
            "fold" => folded(value).map(|folded| (self.fold_marks, self.fold_invisible) = folded),
            "stop_words" if value == "none" => {
                self.stop_words = None;
                Some(())
            }
            "stop_words" => value.strip_prefix('@').map(|path| self.stop_words = Some(path.into())),
            "stemming" => Stemming::named(value).map(|stemming| self.stemming = Some(stemming)),
            "shingle_hash" => ShingleHash::named(value).map(|hash| self.hash = Some(hash)),
            "seed" => value.parse().ok().map(|seed| self.seed = seed),
            "near" => {
                self.near = Some(near(value)?);
                Some(())
            }
            "simhash_bits" => {
                let bits = CODE_WIDTHS.into_iter().find(|bits| bits.to_string() == value);
                bits.map(|bits| self.long_simhash = (bits > 64).then_some(bits as u16))
            }
            "bands" => value.parse().ok().map(|bands| self.bands = Some(bands)),
            "rows" => value.parse().ok().map(|rows| self.rows = Some(rows)),
            "simhash_weights" => {
                flag(value, "distinct", "occurrences").map(|distinct| self.distinct_simhash = distinct)
            }
            "design" => value.parse().ok().map(|design| self.design = Some(design)),
            "codec" => value.parse().ok().map(|codec| self.codec = Some(codec)),
            "simhash" => value.parse().ok().map(|within| self.simhash = Some(within)),
            _ => return self.build_on(builder, name, value),
        };
        set.map(|()| builder).ok_or_else(wrong)
    }

    /// Sets a setting in the builder.
    fn build_on(&mut self, builder: ParamsBuilder, name: &str, value: &str) -> Result<ParamsBuilder> {
        // A builder cannot withdraw what it stores. Nothing is stored by default, so `none` needs no call.
        let keep = |keep: fn(ParamsBuilder) -> ParamsBuilder, builder: ParamsBuilder| {
            kept(value).map(|kept| if kept { keep(builder) } else { builder })
        };
        let set = match name {
            "preset" => Preset::named(value).map(|preset| {
                self.has_minhash = true;
                builder.preset(preset)
            }),
            "weights" => match value {
                "distinct" => Some(builder.minhash_weights(MinhashWeights::Distinct)),
                "tf" => Some(builder.minhash_weights(MinhashWeights::Frequencies)),
                _ => None,
            },
            "signature_bits" => value.parse().ok().map(|bits| builder.signature_bits(bits)),
            "feature_bits" => value.parse().ok().map(|bits| builder.feature_bits(bits)),
            "family" => Family::named(value).map(|family| builder.family(family)),
            "bottom" => value.parse().ok().map(|t| builder.bottom(t)),
            "modulus" => value.parse().ok().map(|modulus| builder.modulus(modulus)),
            "sets" if value == "containment" => Some(builder.sets().suffixes()),
            "sets" => keep(ParamsBuilder::sets, builder),
            "marks" => keep(ParamsBuilder::marks, builder),
            "values" => keep(ParamsBuilder::values, builder),
            "priorities" => keep(ParamsBuilder::priorities, builder),
            "expire_after" => value.parse().ok().map(|age| builder.expire_after(age)),
            "keys" => flag(value, "u64", "bytes").map(|u64| if u64 { builder.u64_keys() } else { builder }),
            _ => return Err(unknown(name, PARAMS)),
        };
        set.ok_or_else(|| refused(name, value, PARAMS))
    }

    /// Applies all settings to a builder. As for the command, a resemblance of `near` sets the bands, unless bands,
    /// rows or a preset were given.
    pub(crate) fn apply(&self, mut builder: ParamsBuilder) -> Result<ParamsBuilder> {
        builder = builder.shingling(self.shingling()?);
        let near = self.near;
        if self.bands.is_some() || self.rows.is_some() {
            builder = builder.minhash(self.bands.unwrap_or(20), self.rows.unwrap_or(6));
        } else if let Some(threshold) = near.and_then(|near| near.threshold).filter(|_| !self.has_minhash) {
            let banding = Banding::for_threshold(threshold.value());
            builder = builder.minhash(banding.bands, banding.rows);
        }
        let of_near = near.and_then(|near| near.within).filter(|_| !self.has_simhash);
        let of_near = match (of_near, self.long_simhash) {
            (Some(_), Some(_)) => Some(0), // `near` itself is applied below
            (Some(within), None) if within > 10 => {
                return Err(format!("near: within:{within} goes with simhash_bits; tables find 0 to 10"));
            }
            (within, _) => within.map(|within| within as u8),
        };
        builder = match self.long_simhash {
            Some(bits) => builder.simhash_bits(bits),
            None => builder,
        };
        if let Some(within) = self.simhash.or(of_near) {
            let weights =
                if self.distinct_simhash { SimhashWeights::Distinct } else { SimhashWeights::Occurrences };
            builder = builder.simhash_weighted(within, weights);
        } else if self.distinct_simhash {
            return Err("simhash_weights goes with simhash, or with within:K in near, set by name".into());
        }
        if self.design.is_some() || self.codec.is_some() {
            builder = builder.tables(self.design.unwrap_or_default(), self.codec.unwrap_or_default());
        }
        Ok(near.map_or(builder.clone(), |near| builder.near(near)))
    }

    /// Returns how texts are split into shingles. Reads the file of stop words, if there is one.
    pub(crate) fn shingling(&self) -> Result<Shingling> {
        if let Some(shingling) = &self.of_table {
            return Ok(shingling.clone());
        }
        let here = "this library was built without the feature `languages`";
        let text = |error: twindex::sketch::Error| error.to_string();
        let tokens = self.tokens.unwrap_or(Tokens::Words);
        let mut shingling = Shingling::words(5, self.seed);
        if self.tokens.is_some() {
            shingling = shingling.with_tokens(tokens).map_err(|_| format!("tokens {tokens}: {here}"))?;
        }
        shingling.widths = match self.words {
            Some(Words::Number(width)) => Widths::one(width).map_err(text)?,
            Some(Words::Widths(widths)) => widths,
            None => Widths::one(usual_width(tokens)).map_err(text)?,
        };
        if self.nfkc {
            shingling.normal_form = NormalForm::nfkc().ok_or_else(|| format!("normal_form nfkc: {here}"))?;
        }
        shingling.folding.invisible = self.fold_invisible;
        if self.fold_marks {
            let marks = Folding::marks_here().ok_or_else(|| format!("fold marks: {here}"))?;
            shingling.folding.marks = Some(marks);
        }
        shingling.hash = self.hash.unwrap_or(shingling.hash);
        let stemming = self.stemming.unwrap_or(Stemming::None);
        if !tokens.have_words() && (stemming != Stemming::None || self.stop_words.is_some()) {
            return Err(format!("stemming and stop_words go with words, not with tokens {tokens}"));
        }
        if let Some(path) = &self.stop_words {
            shingling.stop_words = stop_words(path, &shingling)?;
        }
        shingling.stemming = stemming;
        Ok(shingling)
    }
}

fn folded(value: &str) -> Option<(bool, bool)> {
    let mut folded = (false, false);
    for one in value.split('+').filter(|_| value != "none") {
        match one {
            "marks" => folded.0 = true,
            "invisible" => folded.1 = true,
            _ => return None,
        }
    }
    Some(folded)
}

/// Returns the default number of tokens in a shingle, which is that of the command.
fn usual_width(tokens: Tokens) -> u8 {
    match tokens {
        Tokens::Characters | Tokens::WordCharacters | Tokens::Raw => 9,
        Tokens::Sentences => 1,
        _ => 5,
    }
}

/// Reads stop words from a file in UTF-8 with one word on each line, and normalizes them like tokens.
fn stop_words(path: &std::path::Path, shingling: &Shingling) -> Result<StopWords> {
    let text = |error: twindex::sketch::Error| error.to_string();
    let mut plain = shingling.clone();
    if plain.tokens == Tokens::Sentences {
        plain = plain.with_tokens(Tokens::Words).map_err(text)?; // stop words of sentences are single words
    }
    let cutter = Cutter::new(&plain).map_err(text)?;
    #[allow(clippy::disallowed_methods, reason = "the caller's own file, which is no part of an index")]
    let read =
        std::fs::read_to_string(path).map_err(|why| format!("{}: cannot read: {why}", path.display()))?;
    let (mut units, mut words) = (Units::default(), Vec::new());
    for (number, line) in (1..).zip(read.lines()) {
        cutter.cut(line, &mut units);
        let mut tokens = units.iter();
        match (tokens.next(), tokens.next()) {
            (Some(word), None) => words.push(String::from_utf8_lossy(word).into_owned()),
            _ => return Err(format!("{}: line {number}: {line:?} is not one token", path.display())),
        }
    }
    StopWords::new(words).map_err(|error| format!("{}: {error}", path.display()))
}
