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
use crate::sketch::Sketcher;

/// Parameters of an index: what it keeps and how text becomes numbers. Set choices, then create an index. Free them with
/// `twindex_params_free`.
#[derive(Debug)]
pub struct Params {
    /// The builder, or complete parameters.
    choices: Mutex<Choices>,
    /// The table of document frequencies that the parameters name.
    table: Mutex<Option<Arc<IdfTable>>>,
    /// The text form of complete parameters; empty for a builder.
    text: CString,
}

#[derive(Debug, Clone)]
enum Choices {
    Open(Box<ParamsBuilder>),
    Complete(Box<twindex::Params>),
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

    /// Returns the complete parameters, and the table that they name.
    pub(crate) fn build_with_table(&self) -> Result<(twindex::Params, Option<Arc<IdfTable>>)> {
        Ok((self.build()?, lock(&self.table)?.clone()))
    }

    /// Returns the shingling, which does not depend on what is kept.
    pub(crate) fn shingling(&self) -> Result<Shingling> {
        match &*lock(&self.choices)? {
            // The kept data does not change the shingling, and may not be set yet, so any is chosen.
            Choices::Open(builder) => Ok((**builder).clone().simhash(3).build()?.shingling),
            Choices::Complete(params) => Ok(params.shingling.clone()),
        }
    }

    /// Makes a change that weights shingles by a table, and stores the table; refuses a second table.
    fn weight(
        &self,
        table: Arc<IdfTable>,
        change: impl FnOnce(ParamsBuilder, &IdfTable) -> Result<ParamsBuilder>,
    ) -> Result<()> {
        let mut known = lock(&self.table)?;
        if let Some(known) = known.as_ref().filter(|known| known.digest() != table.digest()) {
            return Err(Error::invalid(format!(
                "these parameters have the idf table {:032x}, and this is {:032x}: an index has one table",
                known.digest(),
                table.digest()
            )));
        }
        self.change(|builder| change(builder, &table))?;
        *known = Some(table);
        Ok(())
    }

    pub(crate) fn build(&self) -> Result<twindex::Params> {
        match &*lock(&self.choices)? {
            Choices::Open(builder) => Ok((**builder).clone().build()?),
            Choices::Complete(params) => Ok((**params).clone()),
        }
    }

    fn change(&self, change: impl FnOnce(ParamsBuilder) -> Result<ParamsBuilder>) -> Result<()> {
        match &mut *lock(&self.choices)? {
            Choices::Open(builder) => **builder = change((**builder).clone())?,
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
    change: impl FnOnce(ParamsBuilder) -> Result<ParamsBuilder>,
) -> Code {
    border::call(error, || given(params, "params")?.change(change))
}

/// New parameters: keys are bytes, shingles have 5 words, and nothing is kept yet. Ranges are checked when they are used.
/// Null if there is no memory.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_new() -> *mut Params {
    border::ask(std::ptr::null_mut(), || {
        let choices = Choices::Open(Box::new(twindex::Params::builder()));
        Box::into_raw(Box::new(Params::new(choices, None, String::new())))
    })
}

/// Reads parameters from the text that `twindex_params_text` returns: the way to choices that have no function here.
/// Parameters that name a table of document frequencies need it: `twindex_params_idf`.
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
        let text = unsafe { border::text(text, "text") }?;
        let text = text.to_str().map_err(|_| Error::invalid("text is not UTF-8"))?;
        slot.give(Params::complete(twindex::Params::decode(text)?, None));
        Ok(())
    })
}

/// The canonical text of complete parameters (of `twindex_index_params` or `twindex_params_parse`), a line a choice. It
/// lives as long as the handle. An empty string for parameters that are not complete.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_text(params: Option<&Params>) -> *const c_char {
    params.map_or(c"", |params| &params.text).as_ptr()
}

/// Keys are 64-bit numbers instead of bytes.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_u64_keys(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.u64_keys()))
}

/// Shingles have this many words, 1 to 16.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_words(
    params: Option<&Params>,
    width: u8,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.words(width)))
}

/// The seed of all hash functions; 0 at first.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_seed(
    params: Option<&Params>,
    seed: u64,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.seed(seed)))
}

/// Keeps 64-bit fingerprints, with tables for this Hamming radius.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_simhash(
    params: Option<&Params>,
    within: u8,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.simhash(within)))
}

/// Keeps MinHash bands: `bands` of `rows` minima each.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_minhash(
    params: Option<&Params>,
    bands: u16,
    rows: u16,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.minhash(bands, rows)))
}

/// Keeps MinHash bands by the name of a preset, such as "lsh-20x6" or "broder-84".
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn twindex_params_preset(
    params: Option<&Params>,
    name: *const c_char,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| {
        // SAFETY: the caller passes a string, or null.
        let name = unsafe { border::text(name, "name") }?.to_string_lossy();
        let preset = Preset::named(&name).ok_or_else(|| {
            let names: Vec<_> = Preset::ALL.iter().map(|preset| preset.name).collect();
            Error::invalid(format!("no preset `{name}`, expected one of: {}", names.join(", ")))
        })?;
        Ok(builder.preset(preset))
    })
}

/// Bits kept of each minimum, for estimates; 0 keeps no signatures.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_signature_bits(
    params: Option<&Params>,
    bits: u8,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.signature_bits(bits)))
}

/// Keeps the least `t` hashes of each document, for containment.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_bottom(
    params: Option<&Params>,
    t: u16,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.bottom(t)))
}

/// Keeps the hashes of each document that `modulus` divides, for containment.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_modulus(
    params: Option<&Params>,
    modulus: u32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.modulus(modulus)))
}

/// Keeps each document's distinct shingle hashes, so that resemblance is counted and no near document is missed.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_sets(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.sets()))
}

/// Keeps 64-bit fingerprints, with tables for this Hamming radius, in which each occurrence of a shingle votes by its inverse
/// document frequency. Texts are cut as those of the table, whatever was chosen before.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_simhash_idf(
    params: Option<&Params>,
    within: u8,
    idf: Option<&Idf>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    border::call(error, || {
        given(params, "params")?.weight(table(idf)?, |builder, table| {
            let weights = SimhashWeights::Idf { table: table.digest() };
            Ok(builder.shingling(table.shingling().clone()).simhash_weighted(within, weights))
        })
    })
}

/// Shingles weigh as often as they occur in minima, samples and sets, instead of all the same.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_minhash_frequencies(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.minhash_weights(MinhashWeights::Frequencies)))
}

/// Shingles weigh as often as they occur, times their inverse document frequency by this table, in minima, samples and sets,
/// instead of all the same. Weights are rounded to whole units, 1/256 to 2 each; a resemblance changes by at most `unit` / the
/// mean weight, and a shingle costs as much as its units. A `unit` of 0 rounds nothing: minima are then taken by darts, and
/// neither samples nor sets can be kept. Texts are cut as those of the table, whatever was chosen before.
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
        given(params, "params")?.weight(table(idf)?, |builder, table| {
            let weights = MinhashWeights::Idf { table: table.digest() };
            let builder = builder.shingling(table.shingling().clone()).minhash_weights(weights);
            Ok(match unit {
                Some(unit) => builder.weight_unit(unit),
                None => builder.family(Family::Darts),
            })
        })
    })
}

/// Gives parameters that were read by `twindex_params_parse` the table of document frequencies that they name.
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

/// A sketcher with these parameters, without an index. Free it.
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

/// Keeps a mark with each duplicate, so that documents are compared with unmarked ones only.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_marks(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.marks()))
}

/// Keeps a value of up to 65,536 bytes with each document.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_values(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.values()))
}

/// Keeps a priority with each document, for groups.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_priorities(
    params: Option<&Params>,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.priorities()))
}

/// Documents expire once the highest stamp exceeds theirs by `age` or more, in any unit.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_expire_after(
    params: Option<&Params>,
    age: u64,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.expire_after(age)))
}

/// Which documents are near: those with a resemblance of `threshold` or more, in (0, 1], or with fingerprints at most
/// `within` bits apart. A threshold of 0 or a negative `within` leaves that rule out; one of the two must be there.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_near(
    params: Option<&Params>,
    threshold: f64,
    within: i32,
    error: Option<&mut MaybeUninit<*mut Error>>,
) -> Code {
    set(params, error, |builder| Ok(builder.near(near(threshold, within)?)))
}

/// Returns the rule of nearness for a threshold of resemblance and a distance.
pub(crate) fn near(threshold: f64, within: i32) -> Result<Near> {
    let bits = match u8::try_from(within) {
        Ok(bits) => Some(bits),
        Err(_) if within < 0 => None,
        Err(_) => return Err(Error::invalid(format!("within is {within}, expected at most 64"))),
    };
    match (threshold == 0.0, bits) {
        (true, Some(bits)) => Ok(Near::within(bits)),
        (true, None) => Err(Error::invalid("near: name a resemblance or a distance")),
        (false, Some(bits)) => Ok(Near::resembling(threshold)?.or_within(bits)),
        (false, None) => Ok(Near::resembling(threshold)?),
    }
}

/// Frees parameters; null is allowed. Indexes that were made with them stay.
// SAFETY: only this crate defines symbols with the prefix `twindex_`.
#[unsafe(no_mangle)]
pub extern "C" fn twindex_params_free(params: Option<Box<Params>>) {
    border::free(params);
}
