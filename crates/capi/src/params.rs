//! The parameters of an index.

use std::ffi::{CString, c_char};
use std::mem::MaybeUninit;
use std::sync::{Arc, Mutex};

use twindex::IdfTable;
use twindex::params::{
    Family, MinhashWeights, Near, ParamsBuilder, Preset, Shingling, SimhashWeights, WeightUnit,
};

use crate::border::{self, Result, Slot, given, lock};
use crate::error::{Code, Error};
use crate::idf::{Idf, table};
use crate::settings::ParamSettings;
use crate::sketch::Sketcher;

/// Parameters of an index: what it stores, and how texts are converted to sketches. Create them, set options, then
/// create an index. Must be freed with `twindex_params_free`.
#[derive(Debug)]
pub struct Params {
    /// A builder, or complete parameters.
    choices: Mutex<Choices>,
    /// The table of document frequencies that the parameters refer to, if any.
    table: Mutex<Option<Arc<IdfTable>>>,
    /// Complete parameters in text form; empty for a builder.
    text: CString,
}

#[derive(Debug, Clone)]
enum Choices {
    Open(Box<(ParamsBuilder, ParamSettings)>),
    Complete(Box<twindex::Params>),
}

fn built((builder, settings): &(ParamsBuilder, ParamSettings)) -> Result<twindex::Params> {
    Ok(settings.apply(builder.clone()).map_err(Error::invalid)?.build()?)
}

impl Params {
    fn new(choices: Choices, table: Option<Arc<IdfTable>>, text: String) -> Self {
        let text = CString::new(text).unwrap_or_default();
        Self { choices: Mutex::new(choices), table: Mutex::new(table), text }
    }

    pub(crate) fn complete(params: twindex::Params, table: Option<Arc<IdfTable>>) -> Self {
        let text = params.encode();
        Self::new(Choices::Complete(Box::new(params)), table, text)
    }

    /// Returns the complete parameters, and the table that they refer to.
    pub(crate) fn build_with_table(&self) -> Result<(twindex::Params, Option<Arc<IdfTable>>)> {
        Ok((self.build()?, lock(&self.table)?.clone()))
    }

    /// Returns the rules by which texts are split into shingles. They do not depend on what the index stores.
    pub(crate) fn shingling(&self) -> Result<Shingling> {
        match &*lock(&self.choices)? {
            Choices::Open(open) => open.1.shingling().map_err(Error::invalid),
            Choices::Complete(params) => Ok(params.shingling.clone()),
        }
    }

    /// Applies a change that weights shingles by `table`, and stores the table. Returns an error if the parameters
    /// already refer to another table.
    fn weight(
        &self,
        table: Arc<IdfTable>,
        change: impl FnOnce(ParamsBuilder, &mut ParamSettings, &IdfTable) -> Result<ParamsBuilder>,
    ) -> Result<()> {
        let mut known = lock(&self.table)?;
        if let Some(known) = known.as_ref().filter(|known| known.digest() != table.digest()) {
            return Err(Error::invalid(format!(
                "these parameters have the idf table {:032x}, and this is {:032x}: an index has one table",
                known.digest(),
                table.digest()
            )));
        }
        self.change(|builder, settings| {
            settings.of_table = Some(table.shingling().clone());
            change(builder, settings, &table)
        })?;
        *known = Some(table);
        Ok(())
    }

    pub(crate) fn build(&self) -> Result<twindex::Params> {
        match &*lock(&self.choices)? {
            Choices::Open(open) => built(open),
            Choices::Complete(params) => Ok((**params).clone()),
        }
    }

    fn change(
        &self,
        change: impl FnOnce(ParamsBuilder, &mut ParamSettings) -> Result<ParamsBuilder>,
    ) -> Result<()> {
        match &mut *lock(&self.choices)? {
            Choices::Open(open) => open.0 = change(open.0.clone(), &mut open.1)?,
            Choices::Complete(_) => {
                return Err(Error::invalid(
                    "these parameters are complete: begin with twindex_params_new to choose",
                ));
            }
        }
        Ok(())
    }
}

fn set(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
    change: impl FnOnce(ParamsBuilder, &mut ParamSettings) -> Result<ParamsBuilder>,
) -> Code {
    border::call(error, || given(params, "params")?.change(change))
}

/// Creates parameters with default options: keys are bytes, shingles have 5 words, and nothing is stored yet. Options
/// are checked when they are used. Returns null if memory cannot be allocated.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_new() -> *mut Params {
    border::ask(std::ptr::null_mut(), || {
        let choices = Choices::Open(Box::new((twindex::Params::builder(), ParamSettings::default())));
        Box::into_raw(Box::new(Params::new(choices, None, String::new())))
    })
}

/// Parses parameters from text in the format that `twindex_params_text` returns. This allows options that have no
/// function here. If the parameters refer to a table of document frequencies, pass it to `twindex_params_idf`. The
/// caller must free them.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_params_parse(
    text: *const c_char,
    params: Option<&mut MaybeUninit<*mut Params>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(params, "params")?;
        // SAFETY: the caller passes a string, or null.
        let text = unsafe { border::utf8(text, "text") }?;
        slot.give(Params::complete(twindex::Params::decode(text)?, None));
        Ok(())
    })
}

/// Returns the canonical text of the parameters, one option per line. Returns an empty string unless the parameters
/// come from `twindex_index_params` or `twindex_params_parse`. The string is valid until the parameters are freed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_text(params: Option<&Params>) -> *const c_char {
    params.map_or(c"", |params| &params.text).as_ptr()
}

/// Sets a setting by name, such as "near" to "0.8" or "tokens" to "characters". Settings that the command `twindex
/// build` has have its names, with `_` for `-`, and its values. An unknown name returns an error that lists all names,
/// and a wrong value an error with the expected form. `near` alone is enough for an index: it also determines the
/// bands, or the tables.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_params_set(
    params: Option<&Params>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, settings| {
        // SAFETY: the caller passes strings, or null.
        let (name, value) = unsafe { (border::utf8(name, "name")?, border::utf8(value, "value")?) };
        settings.set(builder, name, value).map_err(Error::invalid)
    })
}

/// Returns the fraction of documents with this resemblance that share at least `sharing` of `bands` bands of `rows`
/// minima with a query; 0 for arguments out of range.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_banding_recall(bands: u16, rows: u16, resemblance: f64, sharing: u16) -> f64 {
    border::ask(0.0, || {
        if bands == 0 || rows == 0 || !(0.0..=1.0).contains(&resemblance) {
            return 0.0;
        }
        twindex::Banding { bands, rows }.recall_sharing(resemblance, sharing.max(1))
    })
}

/// Sets `bands` and `rows` to the bands that `twindex_params_set` makes for `near` with this threshold, 0.05 to 1. If
/// `minima` is not 0, their product is at most this number.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_banding_for_threshold(
    threshold: f64,
    minima: u16,
    bands: Option<&mut MaybeUninit<u16>>,
    rows: Option<&mut MaybeUninit<u16>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let (bands, rows) = (Slot::new(bands, 0, "bands")?, Slot::new(rows, 0, "rows")?);
        if !(0.05..=1.0).contains(&threshold) {
            return Err(Error::invalid(format!("threshold is {threshold}, expected 0.05 to 1")));
        }
        let chosen = match minima {
            0 => twindex::Banding::for_threshold(threshold),
            minima => twindex::Banding::of_minima(minima, threshold),
        };
        bands.put(chosen.bands);
        rows.put(chosen.rows);
        Ok(())
    })
}

/// Uses 64-bit numbers as keys, instead of bytes.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_u64_keys(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.u64_keys()))
}

/// Sets the number of words per shingle, 1 to 16.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_words(
    params: Option<&Params>,
    width: u8,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, settings| {
        settings.set_words(width);
        Ok(builder)
    })
}

/// Sets the seed of all hash functions. The default is 0.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_seed(
    params: Option<&Params>,
    seed: u64,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, settings| {
        settings.seed = seed;
        Ok(builder)
    })
}

/// Makes the index store 64-bit simhash fingerprints, with tables that find fingerprints within the Hamming distance
/// `within`.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_simhash(
    params: Option<&Params>,
    within: u8,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, settings| {
        settings.has_simhash = true;
        Ok(builder.simhash(within))
    })
}

/// Makes the index store fingerprints of `bits` bits, 64, 128, 192, 256, 384 or 512, that the caller computes, instead
/// of sketches. Documents whose fingerprints differ in at most `near` bits are near.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_codes(
    params: Option<&Params>,
    bits: u16,
    near: u16,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.codes(bits, near)))
}

/// Makes the index store MinHash features in `bands` bands of `rows` minima each.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_minhash(
    params: Option<&Params>,
    bands: u16,
    rows: u16,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, settings| {
        settings.has_minhash = true;
        Ok(builder.minhash(bands, rows))
    })
}

/// Makes the index store MinHash features with the bands and rows of a preset, such as "lsh-20x6" or "broder-84".
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_params_preset(
    params: Option<&Params>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, settings| {
        // SAFETY: the caller passes a string, or null.
        let name = unsafe { border::text(name, "name") }?.to_string_lossy();
        let preset = Preset::named(&name).ok_or_else(|| {
            let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name).collect();
            Error::invalid(format!("no preset `{name}`, expected one of: {}", names.join(", ")))
        })?;
        settings.has_minhash = true;
        Ok(builder.preset(preset))
    })
}

/// Sets the number of bits of each minimum that the index stores, for estimates of resemblance. With 0, no signatures
/// are stored.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_signature_bits(
    params: Option<&Params>,
    bits: u8,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.signature_bits(bits)))
}

/// Makes the index store the `t` smallest sampled shingle hashes of each document, from which containment is estimated.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_bottom(
    params: Option<&Params>,
    t: u16,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.bottom(t)))
}

/// Makes the index store the sampled shingle hashes of each document that are divisible by `modulus`, from which
/// containment is estimated.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_modulus(
    params: Option<&Params>,
    modulus: u32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.modulus(modulus)))
}

/// Makes the index store the distinct shingle hashes of each document. Resemblance is then exact, and queries find all
/// documents whose resemblance is at least the threshold of the index.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_sets(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.sets()))
}

/// Makes the index store 64-bit simhash fingerprints, with tables that find fingerprints within the Hamming distance
/// `within`. Each occurrence of a shingle is weighted by its inverse document frequency. Texts are split into shingles
/// as when the table was built, regardless of other options.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_simhash_idf(
    params: Option<&Params>,
    within: u8,
    idf: Option<&Idf>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        given(params, "params")?.weight(table(idf)?, |builder, settings, table| {
            settings.has_simhash = true;
            let weights = SimhashWeights::Idf { table: table.digest() };
            Ok(builder.simhash_weighted(within, weights))
        })
    })
}

/// Weights each shingle by its number of occurrences, in minima, samples and sets. By default, all shingles have the
/// same weight.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_minhash_frequencies(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.minhash_weights(MinhashWeights::Frequencies)))
}

/// Weights each shingle by its number of occurrences times its inverse document frequency in the table, in minima,
/// samples and sets. Weights are rounded to multiples of `unit`, which is 1/256 to 2. A resemblance changes by at most
/// `unit` divided by the mean weight, and the cost of a shingle is proportional to its number of units. If `unit` is 0,
/// weights are not rounded: minima are then computed with the family `darts`, and neither samples nor sets can be
/// stored. Texts are split into shingles as when the table was built, regardless of other options.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_minhash_idf(
    params: Option<&Params>,
    idf: Option<&Idf>,
    unit: f64,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let unit = if unit == 0.0 { None } else { Some(WeightUnit::of(unit).map_err(twindex::Error::from)?) };
        given(params, "params")?.weight(table(idf)?, |builder, _, table| {
            let weights = MinhashWeights::Idf { table: table.digest() };
            let builder = builder.minhash_weights(weights);
            Ok(match unit {
                Some(unit) => builder.weight_unit(unit),
                None => builder.family(Family::Darts),
            })
        })
    })
}

/// Sets the table of document frequencies that parameters from `twindex_params_parse` refer to.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_idf(
    params: Option<&Params>,
    idf: Option<&Idf>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let (params, table) = (given(params, "params")?, table(idf)?);
        table.check(&params.build()?.sketch()).map_err(twindex::Error::from)?;
        *lock(&params.table)? = Some(table);
        Ok(())
    })
}

/// Creates a sketcher with these parameters, without an index. The caller must free it.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_sketcher(
    params: Option<&Params>,
    sketcher: Option<&mut MaybeUninit<*mut Sketcher>>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        let slot = Slot::handle(sketcher, "sketcher")?;
        let (params, table) = given(params, "params")?.build_with_table()?;
        let made = match table {
            Some(table) => twindex::Sketcher::with_idf(&params, table),
            None => twindex::Sketcher::new(&params),
        };
        slot.give(Sketcher::new(made.map_err(twindex::Error::from)?));
        Ok(())
    })
}

/// Lets documents be marked as duplicates. `twindex_writer_admit` marks the duplicates that it adds, and compares
/// documents only with unmarked ones. A mark counts only while a live unmarked document is near.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_marks(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.marks()))
}

/// Lets each document have a value: up to 65,536 bytes of the caller's data, which the index stores.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_values(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.values()))
}

/// Lets each document have a priority. A group of near-duplicates is represented by its document with the smallest
/// priority.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_priorities(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.priorities()))
}

/// Lets each document have a stamp, and sets the age at which documents expire, at least 1: a document expires when the
/// highest stamp in the index exceeds its own stamp by `age` or more. Stamps may have any unit.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_expire_after(
    params: Option<&Params>,
    age: u64,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.expire_after(age)))
}

/// Specifies which documents are near: documents with a resemblance of at least `threshold`, at most 1, or with
/// fingerprints that differ in at most `within` bits, at most as many as they have. A threshold of 0 disables the first
/// condition, and a negative `within` the second; at least one condition is required. Without this call, documents are
/// near by a resemblance of at least 0.8 if MinHash features are stored, and otherwise within the distance given to
/// `twindex_params_simhash`.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_near(
    params: Option<&Params>,
    threshold: f64,
    within: i32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder, _| Ok(builder.near(near(threshold, within)?)))
}

/// Converts a resemblance threshold and a distance to the rule that decides which documents are near.
pub(crate) fn near(threshold: f64, within: i32) -> Result<Near> {
    let bits = match u16::try_from(within) {
        Ok(bits) if bits <= 512 => Some(bits),
        _ if within < 0 => None,
        _ => return Err(Error::invalid(format!("within is {within}, expected at most 512"))),
    };
    match (threshold == 0.0, bits) {
        (true, Some(bits)) => Ok(Near::within(bits)),
        (true, None) => Err(Error::invalid("near: name a resemblance or a distance")),
        (false, Some(bits)) => Ok(Near::resembling(threshold)?.or_within(bits)),
        (false, None) => Ok(Near::resembling(threshold)?),
    }
}

/// Frees parameters. `params` may be null. Indexes that were created with them remain valid.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_free(params: Option<Box<Params>>) {
    border::free(params);
}
