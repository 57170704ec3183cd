//! Provides the steps of the deduplication rule to jobs that distribute rows themselves, as on Spark: shingle sets, the
//! prefixes that find near sets, and exact counts. A set is a bytes value: its hashes in ascending order,
//! little-endian.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, Int64Builder, LargeBinaryBuilder, UInt64Builder};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3_arrow::PyRecordBatch;
use twindex::params::{Shingling, WeightUnit};
use twindex::sketch::Nearness;
use twindex_corpus::settings::{Door, Value, in_words_of};
use twindex_corpus::{Boilerplate, Features, Near, SetMaker, SetWork, Weights};

use crate::columns::{Column, batch};
use crate::dedup::choice;
use crate::error::{Failure, Result};
use crate::idf::IdfTable;
use crate::rows::takes_features;
use crate::settings::CallSettings;

/// Checks the settings of the rule on Spark, and returns them for its steps: near, threshold, shingling, weights,
/// weight_unit, and the two numbers of without_boilerplate or None.
#[pyfunction]
#[pyo3(signature = (settings, idf=None, features=false))]
pub(crate) fn spark_rule<'py>(
    py: Python<'py>,
    settings: &Bound<'py, PyDict>,
    idf: Option<&Bound<'py, IdfTable>>,
    features: bool,
) -> Result<Bound<'py, PyDict>> {
    let mut call = CallSettings::of(Door::SparkDedup, Some(settings))?;
    if features {
        call.take_features();
    }
    let shingling = call.shingling(idf.map(|idf| &*idf.get().inner))?;
    if takes_features(&shingling) != features {
        let (of_table, given) = if features { ("texts", "features") } else { ("features", "texts") };
        return Err(Failure::invalid(format!("idf: the table is of {of_table}, and these are {given}")));
    }
    let (near, threshold) = match call.rule.near.unwrap_or_default() {
        Near::Containment(threshold) => ("containment", threshold),
        near => ("resemblance", near.threshold().unwrap_or_default()),
    };
    let spans = call.rule.without_boilerplate.as_ref().and_then(twindex_corpus::BoilerplateSpans::shared);
    if features && spans.is_some() {
        let why = "without_boilerplate: leaves spans out of texts, and features are none: leave it out";
        return Err(Failure::invalid(why));
    }
    let weights = call.rule.weights.write().concat();
    let rule = PyDict::new(py);
    rule.set_item("near", near)?;
    rule.set_item("threshold", threshold)?;
    rule.set_item("shingling", shingling.encode())?;
    rule.set_item("weights", weights)?;
    rule.set_item("weight_unit", call.rule.weight_unit.map(WeightUnit::value))?;
    rule.set_item("without_boilerplate", spans)?;
    Ok(rule)
}

/// Returns an error if a function of Spark, `dedup` or `passages`, does not take this value of `key`.
#[pyfunction]
pub(crate) fn spark_key(function: &str, key: &str) -> Result<()> {
    let doors = [("dedup", Door::SparkDedup), ("passages", Door::SparkPassages)];
    choice("function", function, &doors)?.check("id_field", key).map_err(|why| {
        let why = in_words_of(&why.to_string(), |name| name.replace("id_field", "key"));
        Failure::invalid(why)
    })
}

/// Returns the shingle set and the number of tokens of each text, as `set` and `tokens`. `boilerplate` lists spans to
/// ignore. With a shingling of features, texts are the canonical bytes of features.
#[pyfunction]
#[pyo3(signature = (texts, shingling, weights, idf=None, weight_unit=None, boilerplate=None))]
pub(crate) fn shingle_sets(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    shingling: &str,
    weights: &str,
    idf: Option<&Bound<'_, IdfTable>>,
    weight_unit: Option<f64>,
    boilerplate: Option<&[u8]>,
) -> Result<PyRecordBatch> {
    let weights = <Weights as Value>::parse(weights.as_ref()).map_err(Failure::invalid)?;
    let table = idf.map(|idf| Arc::clone(&idf.get().inner));
    let shingling = Shingling::decode(shingling)?;
    let unit = weight_unit.map(WeightUnit::of).transpose()?;
    let list = boilerplate.map(|bytes| Boilerplate::from_bytes(bytes.to_vec())).transpose()?;
    let maker = SetMaker::new(&shingling, weights, table, unit)?.without(list.map(Arc::new));
    let texts = Column::of("texts", texts)?;
    py.detach(|| {
        let (mut work, mut bytes) = (SetWork::default(), Vec::new());
        let (mut sets, mut tokens) = (LargeBinaryBuilder::new(), Int64Builder::new());
        for row in 0..texts.len() {
            let set = maker.set(texts.text(row)?, &mut work);
            let set = set.map_err(|error| Failure::Record(row, error))?;
            bytes.clear();
            bytes.extend(set.iter().flat_map(|hash| hash.to_le_bytes()));
            sets.append_value(&bytes);
            tokens.append_value(i64::try_from(work.tokens()).unwrap_or(i64::MAX));
        }
        batch(vec![("set", Arc::new(sets.finish())), ("tokens", Arc::new(tokens.finish()))])
    })
}

/// Returns the canonical bytes of features, which are given as JSON texts.
#[pyfunction]
pub(crate) fn canonical_features(py: Python<'_>, texts: &Bound<'_, PyAny>) -> Result<PyRecordBatch> {
    let texts = Column::of("texts", texts)?;
    py.detach(|| {
        let mut canonical = LargeBinaryBuilder::new();
        for row in 0..texts.len() {
            let json = std::str::from_utf8(texts.text(row)?).unwrap_or_default();
            let features = Features::from_json(json);
            canonical.append_value(
                features.map_err(|why| texts.refused(row, &format!("a value that {why}")))?.canonical(),
            );
        }
        batch(vec![("features", Arc::new(canonical.finish()))])
    })
}

/// Returns the shingles of each set that are needed to find all near sets, one row for each: `row`, the position of the
/// set, and `shingle`. With `of_kept`, returns the shingles by which a kept set must be found; for containment, these
/// are all its shingles. The hashes in `common`, which are in ascending order of frequency, are used last, so that few
/// sets share a shingle.
#[pyfunction]
pub(crate) fn set_prefixes(
    py: Python<'_>,
    sets: &Bound<'_, PyAny>,
    near: &str,
    threshold: f64,
    of_kept: bool,
    common: &[u8],
) -> Result<PyRecordBatch> {
    let sets = Column::of("sets", sets)?;
    let near = nearness(near, threshold)?;
    let length = |size: usize| if of_kept { near.indexed(size) } else { near.prefix(size) }.min(size);
    let ranks: HashMap<u64, u32> = hashes(common).zip(1..).collect();
    py.detach(|| {
        let (mut rows, mut shingles) = (Int32Builder::new(), UInt64Builder::new());
        let mut order: Vec<(u32, u64)> = Vec::new();
        for row in 0..sets.len() {
            let set = hashes(sets.text(row)?);
            order.clear();
            order.extend(set.map(|hash| (ranks.get(&hash).copied().unwrap_or(0), hash)));
            order.sort_unstable();
            for &(_, shingle) in &order[..length(order.len())] {
                rows.append_value(i32::try_from(row).map_err(|_| Failure::invalid("sets: more than 2^31"))?);
                shingles.append_value(shingle);
            }
        }
        batch(vec![("row", Arc::new(rows.finish())), ("shingle", Arc::new(shingles.finish()))])
    })
}

/// Returns the sizes of the intersection and the union of the two sets in each row, as `both` and `either`; null if the
/// first set is not near the second. For containment, `either` is the size of the first set.
#[pyfunction]
pub(crate) fn count_shared(
    py: Python<'_>,
    sets: &Bound<'_, PyAny>,
    others: &Bound<'_, PyAny>,
    near: &str,
    threshold: f64,
) -> Result<PyRecordBatch> {
    let (sets, others) = (Column::of("sets", sets)?, Column::of("others", others)?);
    sets.check_len(&others)?;
    let near = nearness(near, threshold)?;
    py.detach(|| {
        let (mut both, mut either) = (UInt64Builder::new(), UInt64Builder::new());
        for row in 0..sets.len() {
            let set: Vec<u64> = hashes(sets.text(row)?).collect();
            let other: Vec<u64> = hashes(others.text(row)?).collect();
            let shared = near.shared(&set, &other);
            let union = shared.map(|shared| match near {
                Nearness::Containment(_) => set.len() as u64,
                Nearness::Resemblance(_) => (set.len() + other.len() - shared) as u64,
            });
            both.append_option(shared.map(|shared| shared as u64));
            either.append_option(union);
        }
        batch(vec![("both", Arc::new(both.finish())), ("either", Arc::new(either.finish()))])
    })
}

fn nearness(near: &str, threshold: f64) -> Result<Nearness> {
    let least = twindex_corpus::THRESHOLD_MIN;
    if !(least..=1.0).contains(&threshold) {
        return Err(Failure::invalid(format!("threshold: expected {least} to 1, found {threshold}")));
    }
    choice(
        "near",
        near,
        &[
            ("resemblance", Nearness::Resemblance(threshold)),
            ("containment", Nearness::Containment(threshold)),
        ],
    )
}

/// Returns the hashes that are encoded in `bytes`.
fn hashes(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes)
}
