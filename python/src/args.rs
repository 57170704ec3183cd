//! Parses integer arguments. The error for a value out of range names the argument.

use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::prelude::*;

use crate::error::Failure;

fn ranged<T: TryFrom<i128>>(
    value: &Bound<'_, PyAny>,
    name: &str,
    (least, most): (i128, i128),
) -> PyResult<T> {
    let refused = || {
        let shown: String = value.to_string().chars().take(40).collect();
        Failure::invalid(format!("{name}: expected {least} to {most}, found {shown}")).into()
    };
    match value.extract::<i128>() {
        Ok(number) if (least..=most).contains(&number) => T::try_from(number).map_err(|_| refused()),
        Ok(_) => Err(refused()),
        Err(error) if error.is_instance_of::<PyOverflowError>(value.py()) => Err(refused()),
        Err(_) => {
            let found = value.get_type().name()?;
            let why = format!("{name}: expected an integer, found {found} {value}");
            Err(PyTypeError::new_err(why.chars().take(100).collect::<String>()))
        }
    }
}

/// Defines, for each argument, a function that extracts it from a Python object, and one that also accepts `None`.
macro_rules! arguments {
    ($($name:ident: $type:ty = $least:expr, $most:expr;)*) => {
        $(
            #[allow(clippy::cast_lossless, reason = "one macro for all types; usize has no From")]
            pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<$type> {
                ranged(value, stringify!($name), ($least as i128, $most as i128))
            }
        )*

        pub(crate) mod optional {
            use super::*;

            $(
                #[allow(dead_code, reason = "not each of them may be missing somewhere")]
                pub(crate) fn $name(value: &Bound<'_, PyAny>) -> PyResult<Option<$type>> {
                    if value.is_none() { Ok(None) } else { super::$name(value).map(Some) }
                }
            )*
        }
    };
}

arguments! {
    words: u8 = 1, twindex::params::SHINGLE_WIDTH_MAX;
    seed: u64 = 0, u64::MAX;
    simhash: u8 = 0, u8::MAX;
    bands: u16 = 1, u16::MAX;
    rows: u16 = 1, u16::MAX;
    signature_bits: u8 = 0, u8::MAX;
    feature_bits: u8 = 1, u8::MAX;
    bottom: u16 = 0, u16::MAX;
    modulus: u32 = 0, u32::MAX;
    codes: u16 = 1, u16::MAX;
    simhash_bits: u16 = 1, u16::MAX;
    near_within: u16 = 0, u16::MAX;
    within: u16 = 0, 512;
    limit: usize = 0, usize::MAX;
    left: usize = 0, usize::MAX;
    right: usize = 0, usize::MAX;
    segment: usize = 0, usize::MAX;
    memory: usize = 0, usize::MAX;
    min_words: usize = 1, u16::MAX;
    min_df: u32 = 0, u32::MAX;
    max_entries: usize = 0, usize::MAX;
    min_size: u32 = 0, u32::MAX;
    priority: u64 = 0, u64::MAX;
    questions: u64 = 0, u64::MAX;
    shards: u32 = 1, i32::MAX;
    threads: usize = 0, u16::MAX;
    without_boilerplate: u32 = 1, u32::MAX;
    boilerplate_words: u32 = 1, u16::MAX;
}

/// Extracts the numbers of bands and rows, or `None`.
pub(crate) fn minhash(value: &Bound<'_, PyAny>) -> PyResult<Option<(u16, u16)>> {
    if value.is_none() {
        return Ok(None);
    }
    let (of_bands, of_rows) = value.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>()?;
    Ok(Some((bands(&of_bands)?, rows(&of_rows)?)))
}

/// Checks that `value` is from 0 to 1. `name` is the name of the argument, for errors.
pub(crate) fn share(name: &str, value: Option<f64>) -> PyResult<Option<f64>> {
    match value {
        Some(share) if !(0.0..=1.0).contains(&share) => {
            Err(Failure::invalid(format!("{name}: expected 0 to 1, found {share}")).into())
        }
        share => Ok(share),
    }
}
