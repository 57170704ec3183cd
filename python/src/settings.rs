//! Parses keyword arguments that are settings of the library.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use twindex::params::{Shingling, Tokens};
use twindex_corpus::settings::{self, AnySettings, Choice, Difference, Door, Setting, Settings};
use twindex_corpus::{DedupTexts, Resources, Rule, TextOptions};

use crate::error::{Failure, Result};
use crate::rows::takes_features;

/// The value of `tokens` for documents that are sets or vectors of features instead of texts.
const FEATURES: &str = "features";

/// The settings of a call.
#[derive(Default)]
pub(crate) struct CallSettings {
    pub(crate) rule: Rule,
    pub(crate) text: TextOptions,
    pub(crate) resources: Resources,
    /// Whether documents are features, as set by `tokens="features"` or by `take_features`.
    features: bool,
}

/// Returns whether an entry point takes the settings of the rule, of splitting texts, and of resources.
fn takes(door: Door) -> (bool, bool, bool) {
    match door {
        Door::PythonDedup | Door::SparkDedup => (true, true, true),
        Door::PythonPassages => (false, true, true),
        Door::PythonIdf | Door::SparkPassages => (false, true, false),
    }
}

/// Returns the other keywords of an entry point, which the error for an unknown name may suggest.
fn keywords(door: Door) -> &'static [&'static str] {
    match door {
        Door::PythonDedup => &[
            "text_field",
            "id_field",
            "keep",
            "against",
            "against_text_field",
            "inside",
            "against_inside",
            "nulls",
            "idf",
            "progress",
        ],
        Door::PythonPassages => {
            &["min_words", "within", "exact", "keep", "text_field", "id_field", "progress"]
        }
        Door::PythonIdf => &["text_field", "min_df", "max_entries", "progress"],
        Door::SparkDedup => &["key", "text", "keep", "inside", "driver_edges", "idf", "features"],
        Door::SparkPassages => &["min_words", "key", "text", "keep", "within", "exact"],
    }
}

impl CallSettings {
    /// Parses the keyword arguments of a call.
    pub(crate) fn of(door: Door, given: Option<&Bound<'_, PyDict>>) -> Result<Self> {
        let mut settings = Self::default();
        for (name, value) in given.into_iter().flatten() {
            settings.set(door, &name.extract::<String>()?, &value)?;
        }
        Ok(settings)
    }

    /// Sets one setting. The value None selects its default.
    pub(crate) fn set(&mut self, door: Door, name: &str, value: &Bound<'_, PyAny>) -> Result<()> {
        let texts = texts_of(name, value)?;
        let takes_features = matches!(door, Door::PythonDedup | Door::PythonIdf);
        if name == "tokens" && takes_features && texts.iter().any(|text| text == FEATURES) {
            self.features = true;
            return Ok(());
        }
        for text in &texts {
            door.check(name, text)?;
        }
        let (rule, text, resources) = takes(door);
        let mut all: Vec<&mut dyn AnySettings> = Vec::new();
        if rule {
            all.push(&mut self.rule);
        }
        if text {
            all.push(&mut self.text);
        }
        if resources {
            all.push(&mut self.resources);
        }
        let known = all.iter().flat_map(|settings| settings.texts()).map(|(name, ..)| name);
        let known: Vec<&str> = known.chain(keywords(door).iter().copied()).collect();
        let os: Vec<&std::ffi::OsStr> = texts.iter().map(std::ffi::OsStr::new).collect();
        let found = all.iter_mut().find_map(|settings| settings.set(name, &os));
        Ok(found.unwrap_or_else(|| Err(settings::unknown(name, known.into_iter())))?)
    }

    pub(crate) fn take_features(&mut self) {
        self.features = true;
    }

    /// Returns the shingling of the settings, or of the table. If the settings and the table both have one, they must
    /// be equal.
    pub(crate) fn shingling(&self, table: Option<&twindex::IdfTable>) -> Result<Shingling> {
        let is_features = self.features || table.is_some_and(|table| takes_features(table.shingling()));
        DedupTexts::check_rule(&self.rule, table.is_some(), is_features)?;
        self.text.check_features(self.features)?;
        self.text.check_near(self.rule.near.unwrap_or_default())?;
        let own = || {
            if self.features {
                return Ok(Shingling::words(1, self.text.seed.unwrap_or(0)).with_tokens(Tokens::Features)?);
            }
            Ok::<_, Failure>(self.text.shingling()?)
        };
        let Some(table) = table else { return own() };
        if self.features || self.text != TextOptions::default() {
            table.check_shingling(&own()?)?;
        }
        Ok(table.shingling().clone())
    }
}

/// Returns the text forms of a value: an empty list for None, and one text for each value of a list.
fn texts_of(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if value.is_none() {
        return Ok(Vec::new());
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(vec![text.to_string()]);
    }
    if value.is_instance_of::<PyBool>() {
        return Ok(vec![value.is_truthy()?.to_string()]);
    }
    if value.is_instance_of::<PyInt>() || value.is_instance_of::<PyFloat>() {
        return Ok(vec![value.str()?.to_string()]);
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let texts = value.try_iter()?.map(|value| texts_of(name, &value?));
        return Ok(texts.collect::<PyResult<Vec<_>>>()?.concat());
    }
    // Converts numpy numbers, which do not have Python's number types.
    for convert in ["__index__", "__float__"] {
        if value.hasattr(convert)? {
            return Ok(vec![value.call_method0(convert)?.str()?.to_string()]);
        }
    }
    // Converts a path.
    if value.hasattr("__fspath__")? {
        return Ok(vec![value.call_method0("__fspath__")?.str()?.to_string()]);
    }
    let found = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("{name}: expected a text or a number, found {found}")))
}

/// Returns the settings of a function as `(name, choices, default, help)`, for its documentation: `choices` are the words
/// that a setting takes, or empty; an empty default is none.
#[pyfunction]
pub(crate) fn _settings(function: &str) -> Result<Vec<SettingRow>> {
    let door = match function {
        "dedup" => Door::PythonDedup,
        "passages" => Door::PythonPassages,
        "IdfTable.of" => Door::PythonIdf,
        "spark.dedup" => Door::SparkDedup,
        "spark.passages" => Door::SparkPassages,
        _ => return Err(Failure::invalid(format!("no settings of {function}"))),
    };
    let (rule, text, resources) = takes(door);
    let mut rows = Vec::new();
    if rule {
        add_rows::<Rule>(door, &mut rows);
    }
    if text {
        add_rows::<TextOptions>(door, &mut rows);
    }
    if resources {
        add_rows::<Resources>(door, &mut rows);
    }
    Ok(rows)
}

type SettingRow = (&'static str, Vec<&'static str>, String, String);

fn add_rows<S: Settings>(door: Door, rows: &mut Vec<SettingRow>) {
    for setting in S::TABLE {
        let differences: Vec<&Difference> = door.differences(setting.name).collect();
        // `keep` also accepts numbers and keys, so it has its own paragraph.
        if setting.name == "keep" || differences.iter().any(|one| one.form.is_empty()) {
            continue;
        }
        let mut help = setting.short_help();
        for one in differences {
            help = format!("{help}. Not {}: {}", one.form, one.why);
        }
        let choices = setting.choices.iter().map(|(name, _): &Choice| *name).collect();
        rows.push((setting.name, choices, default_of(setting), crate::error::in_python(&help)));
    }
}

/// Returns the default of a setting: its value, or the default that its help names.
fn default_of<S: Settings>(setting: &Setting<S>) -> String {
    setting.default().unwrap_or_else(|| {
        let help = setting.long_help();
        let named = help.split_once("[default: ").and_then(|(_, named)| named.split([']', ';']).next());
        named.unwrap_or_default().to_owned()
    })
}
