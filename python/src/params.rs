//! The Python class of index parameters.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use twindex::params::{
    CodeParams, Family, MinhashWeights, Near, SIMHASH_BITS, SimhashWeights, Threshold, WeightUnit,
};

use crate::args;
use crate::cut::shingling;
use crate::error::{Failure, Result};
use crate::idf::IdfTable;

/// What an index keeps, and how texts are sketched. Fixed when the index is created.
///
/// words: number of tokens in a shingle, 1 to 16; by default 5 words, 9 characters or 1 sentence.
/// tokens: what shingles are runs of: "words", "unicode-words", "word-characters", "characters", "sentences",
///     "words-symbols" or "raw". With "features", documents are not texts but sets or vectors of features, as in dedup.
/// normal_form: "none" or "nfkc".
/// fold: characters that are ignored, "marks", "invisible" or "invisible+marks".
/// simhash: the Hamming radius that the index is optimized for; None for no fingerprints.
/// simhash_bits: number of bits of a simhash: 64, 128, 192, 256, 384 or 512. With more than 64, the index keeps neither
///     tables nor minima; give near_within. Queries compare all simhashes.
/// minhash: the numbers of bands and rows; None for no minima.
/// feature_bits: number of bits kept of each feature; 8 for features of one byte.
/// threshold: smallest resemblance of near documents, by default 0.8 with minhash.
/// near_within: largest distance of documents that are near whatever their resemblance. By default, the distance is
///     not considered; with minhash=None it is the radius of simhash.
/// codes: documents are not texts but fingerprints of this number of bits: 64, 128, 192, 256, 384 or 512, such as
///     hashes of images. They are given as bytes, the highest bits first, and near within `near_within` bits. Queries
///     compare all of them, so they find all, and any `within` is allowed.
/// sets: keep the shingle hashes of each document, so that resemblance is counted exactly and no near document is
///     missed. Without sets, resemblance is estimated. With suffixes="kept", the index also lists all hashes, which
///     `near` looks up for containment, instead of reading all sets.
/// marks: let `admit` mark the duplicates that it adds, and compare later documents only with unmarked ones.
///     A mark counts only while a live unmarked document is near.
/// priorities: let documents have priorities, by which `groups` chooses leaders.
/// weights: the weight of a shingle in a simhash: "occurrences", "distinct", or "idf", the number of occurrences
///     multiplied by the inverse document frequency.
/// minhash_weights: the weight of a shingle in minima and sets: "distinct", the same for each; "frequencies", the number
///     of occurrences; or "idf", that number multiplied by the inverse document frequency.
/// idf: the IdfTable of these weights, whose texts must have been tokenized in the same way.
/// weight_unit: round minhash_weights to multiples of this unit, 1/256 to 2, so that sets can count them. Required for
///     "idf", unless family="darts".
/// family: the family of hash functions for minima, by default "one-permutation-filled".
///
/// Any other name in `fields` can be given as an option, with _ for -.
#[pyclass(frozen, eq, hash, module = "twindex", from_py_object)]
#[derive(Clone, Debug)]
pub(crate) struct Params {
    pub(crate) inner: twindex::Params,
    /// The IDF table that the parameters refer to, if it is known.
    pub(crate) idf: Option<Arc<twindex::IdfTable>>,
}

impl PartialEq for Params {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Eq for Params {}

impl Hash for Params {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

impl Params {
    /// Creates parameters without a table.
    pub(crate) fn of(inner: twindex::Params) -> Self {
        Self { inner, idf: None }
    }

    pub(crate) fn sketcher(&self) -> Result<twindex::Sketcher> {
        if let Some(CodeParams { bits, .. }) = self.inner.given_codes() {
            return Err(Failure::invalid(format!(
                "this index keeps fingerprints of {bits} bits, and no sketches"
            )));
        }
        Ok(match &self.idf {
            Some(table) => twindex::Sketcher::with_idf(&self.inner, Arc::clone(table))?,
            None => twindex::Sketcher::new(&self.inner)?,
        })
    }
}

#[pymethods]
impl Params {
    #[new]
    #[pyo3(signature = (*, words=None, simhash=Some(SIMHASH), minhash=Some(MINHASH), seed=0, keys="bytes",
        weights="occurrences", signature_bits=8, feature_bits=32, bottom=0, modulus=0,
        threshold=None, near_within=None, codes=None, simhash_bits=SIMHASH_BITS, sets=false, marks=false, priorities=false, minhash_weights="distinct",
        weight_unit=None, family=None, idf=None, **fields))]
    #[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
    fn new(
        #[pyo3(from_py_with = args::optional::words)] words: Option<u8>,
        #[pyo3(from_py_with = args::optional::simhash)] simhash: Option<u8>,
        #[pyo3(from_py_with = args::minhash)] minhash: Option<(u16, u16)>,
        #[pyo3(from_py_with = args::seed)] seed: u64,
        keys: &str,
        weights: &str,
        #[pyo3(from_py_with = args::signature_bits)] signature_bits: u8,
        #[pyo3(from_py_with = args::feature_bits)] feature_bits: u8,
        #[pyo3(from_py_with = args::bottom)] bottom: u16,
        #[pyo3(from_py_with = args::modulus)] modulus: u32,
        threshold: Option<f64>,
        #[pyo3(from_py_with = args::optional::near_within)] near_within: Option<u16>,
        #[pyo3(from_py_with = args::optional::codes)] codes: Option<u16>,
        #[pyo3(from_py_with = args::simhash_bits)] simhash_bits: u16,
        sets: bool,
        marks: bool,
        priorities: bool,
        minhash_weights: &str,
        weight_unit: Option<f64>,
        family: Option<&str>,
        idf: Option<&Bound<'_, IdfTable>>,
        fields: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        // Options in `CUT` have no version and get the version of this build. All other options replace `lines` below.
        let mut given = Vec::new();
        for (name, value) in fields.into_iter().flatten() {
            given.push((name.extract::<String>()?.replace('_', "-"), value.str()?.extract::<String>()?));
        }
        let (kept, given): (Vec<_>, Vec<_>) = given
            .into_iter()
            .partition(|(name, value)| ["values", "suffixes"].contains(&name.as_str()) && value == "kept");
        let (cut, given): (Vec<_>, Vec<_>) =
            given.into_iter().partition(|(name, value)| CUT.contains(&name.as_str()) && !value.contains('/'));
        let table = idf.map(|idf| Arc::clone(&idf.get().inner));
        let shingling = match &table {
            Some(table) if words.is_none() && seed == 0 && cut.is_empty() => table.shingling().clone(),
            _ => shingling(words, seed, &cut)?,
        };
        let mut builder = twindex::Params::builder().shingling(shingling).bottom(bottom).modulus(modulus);
        builder = match keys {
            "bytes" => builder,
            "u64" => builder.u64_keys(),
            other => {
                return Err(Failure::invalid(format!("keys: expected bytes or u64, found {other}")).into());
            }
        };
        let weights = match weights {
            "occurrences" => SimhashWeights::Occurrences,
            "distinct" => SimhashWeights::Distinct,
            "idf" => SimhashWeights::Idf { table: needed("weights", table.as_ref())? },
            other => {
                let why = format!("weights: expected occurrences, distinct or idf, found {other}");
                return Err(Failure::invalid(why).into());
            }
        };
        let minhash_weights = minhash_weights_of(minhash_weights, table.as_ref())?;
        let near_for = |name: &str| {
            let why = format!("{name}: give near_within, the distance of near documents");
            near_within.ok_or_else(|| Failure::invalid(why))
        };
        if let Some(bits) = codes {
            builder = builder.codes(bits, near_for("codes")?);
        }
        let is_long = simhash_bits != SIMHASH_BITS;
        if is_long {
            builder = builder.simhash_bits(simhash_bits);
            near_for("simhash_bits")?;
        }
        // The defaults are not kept besides codes; other values are refused below.
        if let Some(within) = simhash.filter(|&within| codes.is_none() || within != SIMHASH) {
            builder = builder.simhash_weighted(within, weights);
        }
        if let Some((bands, rows)) = minhash.filter(|&bands| codes.is_none() && !is_long || bands != MINHASH)
        {
            builder = builder.minhash(bands, rows).signature_bits(signature_bits).feature_bits(feature_bits);
        }
        builder = match minhash_weights {
            Some(weights) => builder.minhash_weights(weights),
            None => builder,
        };
        if let Some(unit) = weight_unit {
            builder = builder.weight_unit(WeightUnit::of(unit).map_err(Failure::from)?);
        }
        if let Some(name) = family {
            let all = || Family::ALL.iter().map(|family| family.name()).collect::<Vec<_>>().join(", ");
            builder = builder.family(Family::named(name).ok_or_else(|| {
                Failure::invalid(format!("family: expected one of {}, found {name}", all()))
            })?);
        }
        for (name, _) in kept {
            builder = if name == "values" { builder.values() } else { builder.suffixes() };
        }
        builder = if marks { builder.marks() } else { builder };
        builder = if priorities { builder.priorities() } else { builder };
        builder = if sets { builder.sets() } else { builder };
        let mut inner = builder.clone().build().map_err(Failure::from)?;
        let near = match threshold {
            Some(_) => Near::resembling(args::share("threshold", threshold)?.unwrap_or_default())
                .map_err(Failure::from)?,
            None => inner.near(),
        };
        let near = near_within.map_or(near, |within| near.or_within(within));
        if threshold.is_some() || near_within.is_some() {
            inner = builder.near(near).build().map_err(Failure::from)?;
        }
        if let Some(table) = &table {
            table.check(&inner.sketch()).map_err(|error| Failure::from(twindex::Error::from(error)))?;
        }
        if given.is_empty() {
            return Ok(Self { inner, idf: table });
        }
        // The other names must be names of lines in the encoded parameters.
        let mut lines = inner.fields();
        for (name, value) in given {
            let Some(line) = lines.iter_mut().find(|(known, _)| *known == name) else {
                let name = name.replace('-', "_");
                let known = known(&inner).join(", ");
                return Err(PyTypeError::new_err(format!("no parameter {name}; there are {known}")));
            };
            line.1 = value;
        }
        let text = lines.iter().fold(String::new(), |text, (name, value)| text + name + "=" + value + "\n");
        Ok(Self { inner: twindex::Params::decode(&text).map_err(Failure::from)?, idf: table })
    }

    /// Parses parameters. idf: the IDF table that they refer to, if they refer to one.
    #[classmethod]
    #[pyo3(signature = (text, idf=None))]
    fn parse(_class: &Bound<'_, PyType>, text: &str, idf: Option<&Bound<'_, IdfTable>>) -> Result<Self> {
        let inner = twindex::Params::decode(text)?;
        let idf = idf.map(|idf| Arc::clone(&idf.get().inner));
        if let Some(table) = &idf {
            table.check(&inner.sketch())?;
        }
        Ok(Self { inner, idf })
    }

    /// The IDF table that was given; None if there is none.
    #[getter]
    fn idf(&self) -> Option<IdfTable> {
        self.idf.as_ref().map(|table| IdfTable { inner: Arc::clone(table) })
    }

    /// The parameters as lines, as stored in files. Equal parameters have equal lines.
    #[getter]
    fn text(&self) -> String {
        self.inner.encode()
    }

    /// The lines by name.
    #[getter]
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, value) in self.inner.fields() {
            all.set_item(name, value)?;
        }
        Ok(all)
    }

    /// The type of the keys.
    #[getter]
    fn keys(&self) -> String {
        self.inner.key.to_string()
    }

    /// The smallest resemblance and the largest distance of near documents. None if resemblance or distance is not used.
    #[getter]
    fn near(&self) -> (Option<f64>, Option<u16>) {
        let near = self.inner.near();
        (near.threshold.map(Threshold::value), near.within)
    }

    /// Raises ParamsMismatchError, which names the field, unless both parameters are equal.
    fn check(&self, given: &Self) -> Result<()> {
        let (mine, theirs) = (self.inner.fields(), given.inner.fields());
        let value = |fields: &[(&'static str, String)], name| {
            fields.iter().find(|field| field.0 == name).map_or("absent".to_string(), |field| field.1.clone())
        };
        for (name, _) in mine.iter().chain(&theirs) {
            let (index, given) = (value(&mine, *name), value(&theirs, *name));
            if index != given {
                let field = (*name).to_string();
                return Err(twindex::Error::ParamsMismatch { field, index, given }.into());
            }
        }
        Ok(())
    }

    pub(crate) fn __repr__(&self) -> String {
        let fields: Vec<_> =
            self.inner.fields().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("<twindex.Params {}>", fields.join(" "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        Ok((py.get_type::<Self>().getattr("parse")?, (self.text(), self.idf()).into_pyobject(py)?))
    }
}

/// The default radius of simhash, and numbers of bands and rows.
const SIMHASH: u8 = 3;
const MINHASH: (u16, u16) = (20, 6);
/// The parameters that may be given without a version.
const CUT: [&str; 3] = ["tokens", "normal-form", "fold"];
/// The parameters that are arguments in the signature.
const NAMED: [&str; 21] = [
    "words",
    "simhash",
    "minhash",
    "seed",
    "keys",
    "weights",
    "signature_bits",
    "feature_bits",
    "bottom",
    "modulus",
    "threshold",
    "near_within",
    "codes",
    "simhash_bits",
    "sets",
    "marks",
    "priorities",
    "minhash_weights",
    "weight_unit",
    "family",
    "idf",
];

fn minhash_weights_of(
    name: &str,
    table: Option<&Arc<twindex::IdfTable>>,
) -> PyResult<Option<MinhashWeights>> {
    Ok(match name {
        "distinct" => None,
        "frequencies" => Some(MinhashWeights::Frequencies),
        "idf" => Some(MinhashWeights::Idf { table: needed("minhash_weights", table)? }),
        other => {
            let why = format!("minhash_weights: expected distinct, frequencies or idf, found {other}");
            return Err(Failure::invalid(why).into());
        }
    })
}

/// Returns the digest of the table that the weights need, or an error if it is missing.
fn needed(name: &str, table: Option<&Arc<twindex::IdfTable>>) -> Result<u128> {
    let table =
        table.ok_or_else(|| Failure::invalid(format!("{name}: \"idf\" needs the table: idf=IdfTable...")))?;
    Ok(table.digest())
}

/// Returns the names of all parameters.
fn known(params: &twindex::Params) -> Vec<String> {
    let mut known: Vec<String> = NAMED.map(str::to_owned).to_vec();
    known.push("fold".to_owned());
    for (name, _) in params.fields() {
        let name = name.replace('-', "_");
        if !known.contains(&name) {
            known.push(name);
        }
    }
    known
}
