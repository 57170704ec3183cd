//! `dedup`: deduplicates texts in memory, by the rule of the library.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Field, Schema};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use pyo3_arrow::PyTable;
use twindex::params::KeyKind;
use twindex_corpus::settings::Door;
use twindex_corpus::{DedupTexts, FieldNumber, Keep, KeepOrder, SharedProgress, TextAttributes, TextsResult};

use crate::columns::{Column, in_containers};
use crate::error::{Failure, Result};
use crate::fields::LazyTable;
use crate::idf::IdfTable;
use crate::numbers::field_numbers;
use crate::rows::takes_features;
use crate::settings::CallSettings;
use crate::values::Values;
use crate::watch::watched;

/// The result of `dedup`: columns with one value for each text, in the order of the texts. `len()` is the number of
/// texts. Arrow libraries accept a result as a table with the columns mask, group, representative and score.
#[pyclass(frozen, module = "twindex")]
pub(crate) struct Dedup {
    /// The positions of the texts that are kept.
    #[pyo3(get)]
    kept: Py<Values>,
    /// Whether each text is kept, as an Arrow column.
    flags: Py<Values>,
    /// The same as a list; made when it is first read.
    mask: PyOnceLock<Py<PyAny>>,
    /// The group number of each text. Groups are numbered in the order of their first texts. None if the text was
    /// dropped as a null.
    #[pyo3(get)]
    groups: Py<Values>,
    /// For each text, the position of the text that is kept for it; its own position if it is kept. None if the text was
    /// removed for one of `against`, or was dropped as a null.
    #[pyo3(get)]
    representatives: Py<Values>,
    /// The resemblance of each text to the text that is kept for it. None if the text was dropped as a null.
    #[pyo3(get)]
    scores: Py<Values>,
    /// For each text, the position in `against` of the text for which it was removed; None if there is none.
    #[pyo3(get)]
    history: Py<Values>,
    /// Each removed text, the text of `texts` for which it was removed, and their resemblance.
    #[pyo3(get)]
    pairs: Py<Values>,
    /// With near="containment:J", the texts of `against` that a later, kept text contains: the position in `against`, the
    /// position of the containing text, and the share of the text of `against` that is contained.
    #[pyo3(get)]
    contained: Py<Values>,
    /// With without_boilerplate, the number of spans that were ignored; None without it.
    #[pyo3(get)]
    boilerplate_spans: Option<u64>,
    drawn: Vec<DrawnPair>,
}

/// A removed text and the text that is kept for it: the position of the removed text, the name of the other, their
/// resemblance, and both texts.
type DrawnPair = (u32, String, f64, String, String);

/// Number of pairs that [`Dedup::show`] draws.
const DRAWN: usize = 12;

/// Maximum number of bytes of a drawn text.
const DRAWN_BYTES: usize = 8_192;

/// The names of the columns in the Arrow table.
const TABLE: [&str; 4] = ["mask", "group", "representative", "score"];

#[pymethods]
impl Dedup {
    fn __len__(&self) -> usize {
        self.flags.get().array().len()
    }

    /// Whether each text is kept: a list, which pandas, polars, pyarrow and numpy take as a mask. ~mask is true for removed
    /// texts.
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let made = self.mask.get_or_try_init(py, || {
            in_containers(py, "Mask", (self.flags.get().tolist(py)?,)).map(Bound::unbind)
        });
        made.map(|mask| mask.bind(py).clone())
    }

    /// Returns `data` without its removed rows, as a container of the same kind: data must have the rows of `texts`. Of an
    /// Arrow scanner, reader or file, returns a table.
    fn filter<'py>(&self, data: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        in_containers(data.py(), "filtered", (data, self.mask(data.py())?))
    }

    /// Returns up to 12 removed texts beside the texts that are kept for them, from the least to the most similar. A
    /// notebook draws them with the words that differ marked; elsewhere they are printed as lines.
    fn show<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = py.import("twindex._pairs")?;
        let pair = module.getattr("Pair")?;
        let pairs: Vec<_> =
            self.drawn.iter().map(|drawn| pair.call1(drawn.clone())).collect::<PyResult<_>>()?;
        module.call_method1("Pairs", (pairs,))
    }

    fn __repr__(&self) -> String {
        let kept = self.kept.get().array().len();
        format!("<twindex.Dedup {} texts, {kept} kept>", self.__len__())
    }

    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let columns = [&self.flags, &self.groups, &self.representatives, &self.scores];
        let arrays: Vec<_> = columns.iter().map(|column| Arc::clone(column.get().array())).collect();
        let fields = TABLE
            .iter()
            .zip(&arrays)
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), *name != "mask"));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)
            .map_err(|error| Failure::invalid(error.to_string()))?;
        let table = PyTable::try_new(vec![batch], schema)?.into_pyobject(py)?;
        table.call_method1("__arrow_c_stream__", (requested_schema,))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let columns = [
            &self.kept,
            &self.flags,
            &self.groups,
            &self.representatives,
            &self.scores,
            &self.history,
            &self.pairs,
            &self.contained,
        ];
        let columns = PyTuple::new(py, columns.map(|column| column.bind(py).clone()))?;
        let state = (columns, self.boilerplate_spans, self.drawn.clone()).into_pyobject(py)?;
        Ok((py.get_type::<Self>().getattr("_of")?, state))
    }

    /// Restores a pickled result from the arguments of `__reduce__`.
    #[staticmethod]
    fn _of(columns: [Py<Values>; 8], boilerplate_spans: Option<u64>, drawn: Vec<DrawnPair>) -> Self {
        let [kept, flags, groups, representatives, scores, history, pairs, contained] = columns;
        Self {
            kept,
            flags,
            mask: PyOnceLock::new(),
            groups,
            representatives,
            scores,
            history,
            pairs,
            contained,
            boilerplate_spans,
            drawn,
        }
    }
}

/// What is done with null texts.
#[derive(Clone, Copy, PartialEq)]
enum Nulls {
    Raise,
    Keep,
    Drop,
}

/// Returns the value of an argument that must be one of the names in `choices`.
pub(crate) fn choice<T: Copy>(name: &str, given: &str, choices: &[(&str, T)]) -> Result<T> {
    choices.iter().find(|(choice, _)| *choice == given).map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<_> = choices.iter().map(|(choice, _)| *choice).collect();
        Failure::invalid(format!("{name}: expected {}, found {given}", names.join(" or ")))
    })
}

/// Decides which texts to keep, by the rule of the command `twindex dedup`.
///
/// A text is removed if and only if it is near an earlier kept text, by default with a resemblance of at least 0.8, which is
/// counted exactly. So no two kept texts are near each other, and every removed text is near a kept one.
///
/// texts: a list or another iterable of str or bytes; a column of pandas, polars, pyarrow or numpy; or a table: of pandas,
///     polars (also a LazyFrame), pyarrow (also a dataset, a scanner or a ParquetFile), DuckDB or Hugging Face (of a
///     DatasetDict, its only split), a list of record batches, or dicts. Texts are compared as they are, HTML with its
///     tags. With tokens="features" each text is a set or vector of features: a list of names, a dict of weights, or a
///     list of pairs of a name and its weight. Names are str or int; 7 is the same as "7". An empty one is near no other.
/// near: the setting `near` below; `threshold` is its second name.
/// text_field: the column with the texts, if a table has several columns of text: a name, a path into structs or dicts,
///     "page.text" or "/page/text", or a list of these, "title,page.text", whose values are joined by line feeds. A column
///     with exactly this name takes precedence. A row with some of the texts of a list is taken with those.
/// id_field: the column or columns with the keys of a table, named in the same way, for keep="key-hash" and "smallest-key".
///     Of texts with equal numbers, that with the smallest key is considered first.
/// keep: the order in which texts are considered, so that earlier texts are kept: a rule, or a list of rules, where the
///     first rule that distinguishes two texts decides. "first", the input order; "longest", by number of words;
///     ("max", numbers), ("min", numbers) or ("earliest", times), the largest or smallest first; "max:COLUMN",
///     "min:COLUMN" or "earliest:COLUMN", the same with a column of the table `texts`; "rank:COLUMN=A,B", the values in
///     this order; ("key-hash", keys) or ("smallest-key", keys), by the hash of the key or by the key: ints as numbers,
///     and keys of id_field by their digits, as the command; "https" or "shortest-url", by the URLs in id_field. Without
///     keys, texts with equal numbers are considered in input order.
/// against: texts that were kept earlier. They come before all of `texts` and are always kept. A text equal to one of
///     them is removed for the equal text first.
/// against_text_field: the column with the texts of `against`; by default `text_field`, if `against` is a table.
/// inside: a value for each text, such as its source, or the name of a column with the values. Only texts with the same
///     value are compared, so one text of each value is kept.
/// against_inside: with `against` and `inside`, the value of each text of `against`, or a column of it; by default that of
///     `inside`.
/// nulls: what to do with texts that are None: "raise" an error, "keep" them, near no other text, or "drop" them.
/// idf: the IdfTable of weights="idf". Texts are tokenized as those of the table.
/// progress: True for a progress bar, or a function that is called with the stage, the amount of work done, and the
///     total. Ctrl-C, and an exception from the function, end the call.
///
/// All other keywords are settings of the command, with the same values, such as words="1+2", memory="512M", or
/// without_boilerplate="50:8" for spans of 8 words that more than 50 texts share. Numbers are taken, too, and None is the
/// default. A wrong name or value raises InvalidError, which names it.
///
#[doc = include_str!("dedup_settings.txt")]
///
/// `dedup` lists no other pairs and forms no connected components: `Index.pairs` lists all near pairs of an index, and
/// `Forest` connects pairs.
#[pyfunction]
#[pyo3(signature = (texts, near=None, *, text_field=None, id_field=None, keep=None, against=None,
    against_text_field=None, inside=None, against_inside=None, nulls="raise", idf=None, progress=None, **settings))]
#[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
pub(crate) fn dedup(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    near: Option<&Bound<'_, PyAny>>,
    text_field: Option<&str>,
    id_field: Option<&str>,
    keep: Option<&Bound<'_, PyAny>>,
    against: Option<&Bound<'_, PyAny>>,
    against_text_field: Option<&str>,
    inside: Option<&Bound<'_, PyAny>>,
    against_inside: Option<&Bound<'_, PyAny>>,
    nulls: &str,
    idf: Option<&Bound<'_, IdfTable>>,
    progress: Option<&Bound<'_, PyAny>>,
    settings: Option<&Bound<'_, PyDict>>,
) -> Result<Dedup> {
    let mut call = CallSettings::of(Door::PythonDedup, settings)?;
    if let Some(near) = near {
        if call.rule.near.is_some() {
            return Err(Failure::invalid("threshold: a second name of near; give one of the two"));
        }
        call.set(Door::PythonDedup, "near", near)?;
    }
    let table = LazyTable::new("texts", texts)?;
    let keys = id_field.map(|field| keys_of(Door::PythonDedup, &table, field)).transpose()?;
    let (keep, by) = keep_of(keep, &table, keys)?;
    let shingling = call.shingling(idf.map(|idf| &*idf.get().inner))?;
    call.rule.keep = keep;
    let is_features = takes_features(&shingling);
    let texts = table.texts(("text_field", text_field), is_features)?;
    let history = against.map(|against| LazyTable::new("against", against)).transpose()?;
    let against = match (&history, against_text_field) {
        (Some(history), None) => {
            // A list of texts has no fields.
            let field = if history.is_table()? { text_field } else { None };
            Some(history.texts(("text_field", field), is_features)?)
        }
        (Some(history), field) => Some(history.texts(("against_text_field", field), is_features)?),
        (None, Some(_)) => {
            return Err(Failure::invalid(
                "against_text_field: goes with against; leave it out, or give both",
            ));
        }
        (None, None) => None,
    };
    // Without `against_inside`, a column name in `inside` applies to the table `against`, too.
    let of_both = inside.filter(|inside| against_inside.is_none() && inside.is_instance_of::<PyString>());
    let inside = inside.map(|inside| table.values("inside", inside)).transpose()?;
    let against_inside = match (&history, against_inside.or(of_both)) {
        (Some(history), Some(values)) => Some(history.values("against_inside", values)?),
        (None, Some(_)) if of_both.is_some() => None,
        (None, Some(values)) => Some(Column::of("against_inside", values)?),
        (_, None) => None,
    };
    match (&against, &inside, &against_inside) {
        (Some(_), Some(_), None) => {
            return Err(Failure::invalid(
                "against_inside: expected a value for each text of against, because inside is given; found none",
            ));
        }
        (None, _, Some(_)) | (_, None, Some(_)) => {
            return Err(Failure::invalid(
                "against_inside: goes with against and inside; leave it out, or give both",
            ));
        }
        _ => {}
    }
    let idf = idf.map(|idf| Arc::clone(&idf.get().inner));
    let job = DedupTexts { rule: call.rule, idf, shingling, resources: call.resources };
    let nulls =
        choice("nulls", nulls, &[("raise", Nulls::Raise), ("keep", Nulls::Keep), ("drop", Nulls::Drop)])?;
    let given = DedupInput {
        texts: &texts,
        against: against.as_ref(),
        inside: inside.as_ref(),
        against_inside: against_inside.as_ref(),
        by: &by,
        nulls,
    };
    given.check()?;
    watched(py, progress, |watched| given.work(&job, watched))?.into_columns(py, &given)
}

/// The values that determine the order of the texts.
#[derive(Default)]
pub(crate) struct TextOrder {
    /// For each rule with a field, the numbers of the texts.
    pub(crate) numbers: Vec<Vec<FieldNumber>>,
    /// The keys by which texts are ordered, or that order texts with equal numbers.
    pub(crate) keys: Option<Column>,
    /// Whether integer keys are ordered as numbers. Keys of `id_field` are ordered by their digits, as by the command.
    by_value: bool,
}

impl TextOrder {
    /// Returns the keys of some rows as bytes in whose order texts are considered.
    pub(crate) fn keys(
        &self,
        rows: impl Iterator<Item = usize> + Clone,
    ) -> Result<Option<Vec<Cow<'_, [u8]>>>> {
        let Some(keys) = &self.keys else { return Ok(None) };
        let is_number = self.by_value && rows.clone().all(|row| keys.integer(row).is_some());
        let number = |row| keys.integer(row).filter(|_| is_number).map(|number| number ^ i128::MIN);
        rows.map(|row| match number(row) {
            Some(ordered) => Ok(ordered.to_be_bytes().to_vec().into()),
            None => key(keys, row),
        })
        .collect::<Result<_>>()
        .map(Some)
    }
}

/// Returns the keys in the column or columns that `id_field` names.
pub(crate) fn keys_of(door: Door, table: &LazyTable<'_>, field: &str) -> Result<Column> {
    door.check("id_field", field)?;
    table.get("id_field", field)?.keys("id_field", field)
}

/// What `keep` accepts.
const EXPECTED: &str = "keep: expected \"first\", \"longest\", (\"max\", numbers), (\"min\", numbers), (\"earliest\", times), \
                        \"max:COLUMN\", \"min:COLUMN\", \"earliest:COLUMN\", \"rank:COLUMN=A,B\", \"https\", \
                        \"shortest-url\", (\"key-hash\", keys) or (\"smallest-key\", keys), or a list of these";

/// Parses the value of `keep`: a rule or a list of rules. A rule is a text form, or a name with numbers or keys. A named
/// column is in the table `texts`; `keys` are the keys in `id_field`.
pub(crate) fn keep_of(
    keep: Option<&Bound<'_, PyAny>>,
    texts: &LazyTable<'_>,
    keys: Option<Column>,
) -> Result<(KeepOrder, TextOrder)> {
    let mut by = TextOrder { keys, ..TextOrder::default() };
    let Some(keep) = keep else { return Ok((KeepOrder::default(), TextOrder::default())) };
    let mut rules = Vec::new();
    if let Ok(list) = keep.cast::<PyList>() {
        for rule in list.iter() {
            rules.push(rule_of(&rule, texts, &mut by)?);
        }
    } else {
        rules.push(rule_of(keep, texts, &mut by)?);
    }
    let order = KeepOrder::of(rules).map_err(|why| Failure::invalid(format!("keep: {why}")))?;
    if order.is_by_place() && !order.rules().iter().any(Keep::is_of_url) {
        by.keys = None;
    }
    Ok((order, by))
}

/// Parses one rule of `keep`, and adds its numbers or keys to `by`.
fn rule_of(rule: &Bound<'_, PyAny>, texts: &LazyTable<'_>, by: &mut TextOrder) -> Result<Keep> {
    if let Ok((name, beside)) = rule.extract::<(String, Bound<'_, PyAny>)>() {
        // The caller gives numbers, so the name in `Keep` is not that of a field.
        let of_numbers = match &*name {
            "max" => Keep::Max,
            "min" => Keep::Min,
            "earliest" => Keep::Earliest,
            "key-hash" | "smallest-key" => {
                by.keys = Some(Column::of("keep", &beside)?);
                by.by_value = name == "smallest-key";
                return Ok(if by.by_value { Keep::SmallestKey } else { Keep::KeyHash });
            }
            _ => return Err(Failure::invalid(format!("{EXPECTED}, found {name}"))),
        };
        by.numbers.push(field_numbers("keep", &beside)?);
        return Ok(of_numbers(format!("numbers {}", by.numbers.len())));
    }
    let text = rule.extract::<String>().map_err(|_| {
        let shown: String = rule.to_string().chars().take(40).collect();
        PyTypeError::new_err(format!("{EXPECTED}, found {shown}"))
    })?;
    if let "max" | "min" | "earliest" = &*text {
        let why = format!(
            "keep: {text} needs a number for each text: keep=(\"{text}\", numbers), or \"{text}:COLUMN\""
        );
        return Err(Failure::invalid(why));
    }
    let parsed: Keep = text.parse().map_err(|_| Failure::invalid(format!("{EXPECTED}, found {text}")))?;
    match (&parsed, parsed.field()) {
        (Keep::Rank(..), Some(column)) => {
            let values = texts.get("keep", column)?.values("keep", column)?;
            let place = |row| {
                let value = values.shown(row)?;
                let value =
                    value.ok_or_else(|| values.refused(row, &format!("expected a value of {column}")))?;
                Ok(parsed.place(&value))
            };
            by.numbers.push((0..values.len()).map(place).collect::<Result<_>>()?);
        }
        (_, Some(column)) => by.numbers.push(texts.get("keep", column)?.numbers("keep", column)?),
        (Keep::KeyHash | Keep::SmallestKey | Keep::Https | Keep::ShortestUrl, None) if by.keys.is_none() => {
            let why = match parsed {
                Keep::Https | Keep::ShortestUrl => {
                    format!("keep: {text} needs a URL for each text: id_field for a column of URLs")
                }
                _ => format!(
                    "keep: {text} needs a key for each text: keep=(\"{text}\", keys), or id_field for a column of keys"
                ),
            };
            return Err(Failure::invalid(why));
        }
        _ => {}
    }
    Ok(parsed)
}

/// The name of a rule, its field, and the values that it ranks.
type RuleParts = (String, Option<String>, Vec<String>);

/// Parses rules of `keep`.
#[pyfunction]
pub(crate) fn keep_rules(rules: Vec<String>) -> Result<Vec<RuleParts>> {
    let parse = |text: String| text.parse().map_err(|why| Failure::invalid(format!("keep: {why}")));
    let rules = rules.into_iter().map(parse).collect::<Result<Vec<Keep>>>()?;
    let order = KeepOrder::of(rules).map_err(|why| Failure::invalid(format!("keep: {why}")))?;
    let split = |rule: &Keep| {
        let text = rule.to_string();
        let name = text.split_once(':').map_or(&*text, |(name, _)| name).to_owned();
        let values = if let Keep::Rank(_, values) = rule { values.clone() } else { Vec::new() };
        (name, rule.field().map(str::to_owned), values)
    };
    Ok(order.rules().iter().map(split).collect())
}

/// The arguments of a call.
struct DedupInput<'g> {
    texts: &'g Column,
    against: Option<&'g Column>,
    inside: Option<&'g Column>,
    /// The values of the texts in `against`. They are given if and only if `against` and `inside` are given.
    against_inside: Option<&'g Column>,
    by: &'g TextOrder,
    nulls: Nulls,
}

/// The results for the texts that are not null.
struct PresentTexts {
    found: TextsResult,
    /// For each compared text of `against`, its position in `against`. These texts come before the others.
    history: Vec<u32>,
    /// For each other compared text, its position in `texts`.
    places: Vec<u32>,
    /// Number of texts that were given.
    texts: usize,
    nulls: Nulls,
}

impl DedupInput<'_> {
    /// Returns an error if columns have different lengths.
    fn check(&self) -> Result<()> {
        let texts = self.texts.len();
        if u32::try_from(texts + self.against.map_or(0, Column::len)).is_err() {
            return Err(Failure::invalid(format!("texts: expected at most 2^32 - 1, found {texts}")));
        }
        let lists = [
            ("keep: keys", self.by.keys.as_ref().map(Column::len)),
            ("inside", self.inside.map(Column::len)),
        ];
        let numbers = self.by.numbers.iter().map(|numbers| ("keep: numbers", Some(numbers.len())));
        for (name, len) in numbers.chain(lists) {
            if let Some(len) = len.filter(|&len| len != texts) {
                return Err(Failure::invalid(format!("{name}: expected {texts}, one a text, found {len}")));
            }
        }
        if let (Some(against), Some(values)) = (self.against, self.against_inside) {
            let (expected, found) = (against.len(), values.len());
            if expected != found {
                return Err(Failure::invalid(format!(
                    "against_inside: expected {expected}, one a text of against, found {found}"
                )));
            }
        }
        Ok(())
    }

    fn work(&self, job: &DedupTexts, watched: &SharedProgress) -> Result<PresentTexts> {
        let is_features = takes_features(&job.shingling);
        let mut all: Vec<&[u8]> = Vec::with_capacity(self.texts.len());
        let mut history = Vec::new();
        if let Some(against) = self.against {
            for row in 0..against.len() {
                match (against.document(row, is_features)?, self.nulls) {
                    (Some(text), _) => {
                        all.push(text);
                        history.push(row as u32);
                    }
                    (None, Nulls::Raise) => _ = against.needed(row, is_features)?,
                    (None, _) => {}
                }
            }
        }
        let mut places = Vec::with_capacity(self.texts.len());
        for row in 0..self.texts.len() {
            match (self.texts.document(row, is_features)?, self.nulls) {
                (Some(text), _) => {
                    all.push(text);
                    places.push(row as u32);
                }
                (None, Nulls::Raise) => {
                    let why = "expected a text, found null; leave the record out, or say nulls=\"keep\" or \"drop\"";
                    return Err(self.texts.refused(row, why));
                }
                (None, _) => {}
            }
        }
        let of_places = || places.iter().map(|&row| row as usize);
        let of_history = || history.iter().map(|&row| row as usize);
        let against_inside = self.against.zip(self.against_inside);
        let against_inside = against_inside
            .map(|(against, values)| values_of(against, ("against_inside", values), of_history()))
            .transpose()?;
        let inside = self.inside.map(|values| values_of(self.texts, ("inside", values), of_places()));
        let inside = inside.transpose()?;
        let inside: Option<Vec<&[u8]>> = inside
            .as_ref()
            .map(|inside| against_inside.iter().flatten().chain(inside).map(|value| &**value).collect());
        let of_present = |numbers: &Vec<FieldNumber>| of_places().map(|row| numbers[row]).collect::<Vec<_>>();
        let numbers: Vec<Vec<FieldNumber>> = self.by.numbers.iter().map(of_present).collect();
        let numbers: Vec<&[FieldNumber]> = numbers.iter().map(Vec::as_slice).collect();
        let keys = self.by.keys(of_places())?;
        let keys: Option<Vec<&[u8]>> = keys.as_ref().map(|keys| keys.iter().map(|key| &**key).collect());
        let beside = TextAttributes {
            history: history.len(),
            numbers: &numbers,
            keys: keys.as_deref(),
            inside: inside.as_deref(),
        };
        let found = job.run_watched(&all, beside, watched)?;
        Ok(PresentTexts { found, history, places, texts: self.texts.len(), nulls: self.nulls })
    }
}

impl DedupInput<'_> {
    /// Draws removed texts evenly from their order by resemblance, with the texts that are kept for them.
    fn drawn(
        &self,
        kept_of: &[Option<u32>],
        of_history: &[Option<u32>],
        scores: &[Option<f64>],
    ) -> Result<Vec<DrawnPair>> {
        let is_removed = |&row: &u32| match (kept_of[row as usize], of_history[row as usize]) {
            (Some(kept), _) => kept != row,
            (None, old) => old.is_some(),
        };
        let score = |row: u32| scores[row as usize].unwrap_or_default();
        let mut removed: Vec<u32> = (0..scores.len() as u32).filter(is_removed).collect();
        removed.sort_by(|&a, &b| score(a).total_cmp(&score(b)).then(a.cmp(&b)));
        let count = removed.len().min(DRAWN);
        let pair = |number: usize| {
            let row = removed[number * (removed.len() - 1) / (count - 1).max(1)];
            let (name, other) = match (kept_of[row as usize], of_history[row as usize], self.against) {
                (None, Some(old), Some(against)) => (format!("against {old}"), excerpt(against, old)?),
                (kept, ..) => {
                    let kept = kept.unwrap_or(row);
                    (kept.to_string(), excerpt(self.texts, kept)?)
                }
            };
            Ok((row, name, score(row), excerpt(self.texts, row)?, other))
        };
        (0..count).map(pair).collect()
    }
}

/// Returns the beginning of a text; of features, a sentence.
fn excerpt(texts: &Column, row: u32) -> Result<String> {
    if texts.is_features(row as usize) {
        return Ok("features, which are not drawn".to_owned());
    }
    let text = String::from_utf8_lossy(texts.text(row as usize)?);
    let ends = 0..=DRAWN_BYTES.min(text.len());
    let end = ends.rev().find(|&at| text.is_char_boundary(at)).unwrap_or_default();
    Ok(if end < text.len() { format!("{} \u{2026}", &text[..end]) } else { text.into_owned() })
}

/// Returns the values of some rows. The error for an empty or missing value names the position of the text.
fn values_of<'a>(
    texts: &Column,
    (name, values): (&str, &'a Column),
    rows: impl Iterator<Item = usize>,
) -> Result<Vec<Cow<'a, [u8]>>> {
    rows.map(|row| match values.shown(row)? {
        Some(value) if !value.is_empty() => Ok(value),
        _ => {
            let why =
                "the value is empty or missing: give each text a value, as those without one would share it";
            Err(texts.refused(row, &format!("{name}: {why}")))
        }
    })
    .collect()
}

/// Returns the key of a text, which must not be null. A number becomes decimal digits, as in a file.
pub(crate) fn key(keys: &Column, row: usize) -> Result<Cow<'_, [u8]>> {
    let found = keys.shown(row)?;
    let found = found.ok_or_else(|| keys.refused(row, "expected a key, found none"))?;
    twindex::Key::Bytes(&found).check(KeyKind::Bytes).map_err(|error| Failure::Record(row, error))?;
    Ok(found)
}

impl PresentTexts {
    fn into_columns(self, py: Python<'_>, given: &DedupInput<'_>) -> Result<Dedup> {
        let Self { found, history, places, texts, nulls } = self;
        let first = history.len() as u32;
        // Converts the position of a compared text to a position in `against` or in `texts`.
        let place = |text: u32| match text.checked_sub(first) {
            None => Err(history[text as usize]),
            Some(text) => Ok(places[text as usize]),
        };
        let mut kept_of: Vec<Option<u32>> = vec![None; texts];
        let mut of_history: Vec<Option<u32>> = vec![None; texts];
        let mut scores: Vec<Option<f64>> = vec![None; texts];
        for (text, &row) in (first..).zip(&places) {
            let row = row as usize;
            match place(found.kept_of[text as usize]) {
                Ok(kept) => kept_of[row] = Some(kept),
                Err(old) => of_history[row] = Some(old),
            }
            scores[row] = Some(found.scores[text as usize]);
        }
        if nulls == Nulls::Keep {
            let mut given = vec![false; texts];
            for &row in &places {
                given[row as usize] = true;
            }
            for row in (0..texts).filter(|&row| !given[row]) {
                kept_of[row] = Some(row as u32);
                scores[row] = Some(1.0);
            }
        }
        let drawn = given.drawn(&kept_of, &of_history, &scores)?;
        let mask: Vec<bool> = (0..).zip(&kept_of).map(|(row, &kept)| kept == Some(row)).collect();
        let kept = (0..).zip(&mask).filter(|&(_, &stays)| stays).map(|(row, _)| row).collect();
        let mut numbers: HashMap<(Option<u32>, Option<u32>), u32> = HashMap::new();
        let groups = kept_of.iter().zip(&of_history).map(|(&kept, &old)| {
            let next = numbers.len() as u32;
            (kept.is_some() || old.is_some()).then(|| *numbers.entry((kept, old)).or_insert(next))
        });
        let groups = groups.collect();
        let of_texts =
            found.pairs.iter().filter_map(|&(a, b, score)| Some((place(a).ok()?, place(b).ok()?, score)));
        let pairs: Vec<(u32, u32, f64)> = of_texts.collect();
        let contained = found
            .contained
            .iter()
            .filter_map(|&(old, text, share)| Some((place(old).err()?, place(text).ok()?, share)));
        let contained: Vec<(u32, u32, f64)> = contained.collect();
        Ok(Dedup {
            kept: Py::new(py, Values::numbers(kept))?,
            flags: Py::new(py, Values::flags(mask))?,
            mask: PyOnceLock::new(),
            groups: Py::new(py, Values::some_numbers(groups))?,
            representatives: Py::new(py, Values::some_numbers(kept_of))?,
            scores: Py::new(py, Values::scores(scores))?,
            history: Py::new(py, Values::some_numbers(of_history))?,
            pairs: Py::new(py, Values::pairs(["text", "other", "score"], &pairs))?,
            contained: Py::new(py, Values::pairs(["against", "text", "share"], &contained))?,
            boilerplate_spans: found.spans_left_out,
            drawn,
        })
    }
}
