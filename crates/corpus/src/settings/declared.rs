//! The declaration of settings, and the operations that all settings have in common.

use std::ffi::OsStr;

use serde_json::{Map, Value as Json};

use crate::error::InvalidOptions;
use crate::settings::value::{Choice, Kind, Value};

/// A setting: a field of the struct `S`.
pub struct Setting<S> {
    /// The name of the field.
    pub name: &'static str,
    /// A second name, if there is one.
    pub alias: Option<&'static str>,
    /// The letter of the command's short option, if there is one.
    pub short: Option<char>,
    /// The form of its value for help, such as `FIELD`; empty for a flag.
    pub form: &'static str,
    /// The lines of its documentation. The first paragraph is one sentence that is complete in itself.
    pub help: &'static [&'static str],
    /// Whether the short help omits the setting. True for settings that few runs need.
    pub is_rare: bool,
    /// The number of values that the setting accepts.
    pub kind: Kind,
    /// The words that the setting accepts, with their meanings; empty if its values are not words from a list.
    pub choices: &'static [Choice],
    pub(crate) read: fn(&mut S, &OsStr) -> Result<(), String>,
    pub(crate) write: fn(&S) -> Vec<String>,
    pub(crate) reset: fn(&mut S),
}

/// A struct of settings.
pub trait Settings: Default + Clone + PartialEq + 'static {
    /// The heading of the settings in help.
    const HEADING: &'static str;
    /// The settings, the most used first.
    const TABLE: &'static [Setting<Self>];
}

impl<S> Setting<S> {
    /// Sets the value by parsing its text form. If the setting is a list, appends the parsed value.
    ///
    /// # Errors
    ///
    /// The text is not in the form of the setting, or out of its range. The message does not name the setting.
    pub fn read(&self, settings: &mut S, text: &OsStr) -> Result<(), String> {
        (self.read)(settings, text)
    }

    /// Returns the text forms of the value: none if it is not set, and one for each value of a list.
    pub fn write(&self, settings: &S) -> Vec<String> {
        (self.write)(settings)
    }

    /// Resets the setting to its default value.
    pub fn reset(&self, settings: &mut S) {
        (self.reset)(settings);
    }

    /// Returns the first sentence of the help, without a full stop.
    #[must_use]
    pub fn short_help(&self) -> String {
        let first: Vec<&str> =
            self.help.iter().map(|line| line.trim()).take_while(|line| !line.is_empty()).collect();
        first.join(" ").trim_end_matches('.').replace('`', "")
    }

    /// Returns the whole help, one line for each paragraph.
    #[must_use]
    pub fn long_help(&self) -> String {
        let mut paragraphs = vec![String::new()];
        for line in self.help.iter().map(|line| line.trim()) {
            match paragraphs.last_mut() {
                Some(last) if !line.is_empty() => {
                    if !last.is_empty() {
                        last.push(' ');
                    }
                    last.push_str(line);
                }
                _ => paragraphs.push(String::new()),
            }
        }
        paragraphs.join("\n").trim_end_matches('.').to_owned()
    }
}

impl<S: Settings> Setting<S> {
    /// Returns the text form of the default value; `None` if the setting has none, or if it is a flag.
    #[must_use]
    pub fn default(&self) -> Option<String> {
        let values = self.write(&S::default());
        matches!(self.kind, Kind::One | Kind::OneOrMore).then(|| values.into_iter().next()).flatten()
    }
}

/// The names, kinds and values of settings. Values are texts: none if a setting is not set, one for each value of a
/// list.
pub type Texts = Vec<(&'static str, Kind, Vec<String>)>;

/// A struct of settings of any type, whose values are accessed by name and as text.
pub trait AnySettings {
    /// Returns the names, kinds and text forms of all settings, in the order of the table.
    fn texts(&self) -> Texts;
    /// Returns the settings whose values are not the defaults, in the form of [`texts`](Self::texts).
    fn changed(&self) -> Texts;
    /// Sets the setting `name` to these values. Returns `None` if there is no setting with this name.
    ///
    /// # Errors
    ///
    /// The errors of [`Setting::read`]; the message names the setting.
    fn set(&mut self, name: &str, texts: &[&OsStr]) -> Option<Result<(), InvalidOptions>>;
    /// Returns an error if a value is out of its range. Values parsed from texts are in range, so only programs that
    /// set fields directly can cause this error.
    ///
    /// # Errors
    ///
    /// The message names the setting.
    fn check(&self) -> Result<(), InvalidOptions>;
}

impl<S: Settings> AnySettings for S {
    fn texts(&self) -> Texts {
        S::TABLE.iter().map(|setting| (setting.name, setting.kind, setting.write(self))).collect()
    }

    fn changed(&self) -> Texts {
        let usual = S::default();
        let changed = S::TABLE.iter().filter(|setting| setting.write(self) != setting.write(&usual));
        changed.map(|setting| (setting.name, setting.kind, setting.write(self))).collect()
    }

    fn set(&mut self, name: &str, texts: &[&OsStr]) -> Option<Result<(), InvalidOptions>> {
        let setting = S::TABLE.iter().find(|setting| setting.name == name || setting.alias == Some(name))?;
        let mut changed = self.clone();
        setting.reset(&mut changed);
        for text in texts {
            if let Err(why) = setting.read(&mut changed, text) {
                return Some(Err(InvalidOptions::new(format!("{}: {why}", spelled(name)))));
            }
        }
        *self = changed;
        Some(Ok(()))
    }

    fn check(&self) -> Result<(), InvalidOptions> {
        for setting in S::TABLE {
            let mut again = S::default();
            setting.reset(&mut again);
            for text in setting.write(self) {
                let read = setting.read(&mut again, OsStr::new(&text));
                read.map_err(|why| InvalidOptions::new(format!("{}: {why}", spelled(setting.name))))?;
            }
        }
        Ok(())
    }
}

/// Settings of a single run, which are not stored with the settings of a job.
const OF_A_RUN: [&str; 2] = ["force", "resume"];

/// Returns settings as JSON: `true`, a string or an array of strings. Omits unset settings and those of a single run.
#[must_use]
pub fn to_json(texts: impl Iterator<Item = (&'static str, Kind, Vec<String>)>) -> Map<String, Json> {
    let all = texts.filter(|(name, _, texts)| !OF_A_RUN.contains(name) && !texts.is_empty());
    let value = |kind, mut texts: Vec<String>| match kind {
        Kind::Flag => Json::Bool(true),
        Kind::One | Kind::OneOrMore if texts.len() < 2 => texts.pop().map_or(Json::Null, Json::String),
        Kind::One | Kind::OneOrMore | Kind::Many => texts.into(),
    };
    all.map(|(name, kind, texts)| (name.to_owned(), value(kind, texts))).collect()
}

/// Sets settings from JSON that [`to_json`] returned. Also accepts numbers, and null for the default value.
///
/// # Errors
///
/// A name is unknown, or a value is invalid.
pub fn read_json(
    settings: &mut [&mut dyn AnySettings],
    json: &Map<String, Json>,
) -> Result<(), InvalidOptions> {
    let text = |name: &str, value: &Json| match value {
        Json::String(text) => Ok(text.clone()),
        Json::Bool(_) | Json::Number(_) => Ok(value.to_string()),
        _ => {
            Err(InvalidOptions::new(format!("{}: expected a text or a number, found {value}", spelled(name))))
        }
    };
    for (name, value) in json {
        let texts = match value {
            Json::Null => Vec::new(),
            Json::Array(values) => values.iter().map(|value| text(name, value)).collect::<Result<_, _>>()?,
            value => vec![text(name, value)?],
        };
        set(settings, name, &texts)?;
    }
    Ok(())
}

/// Sets the setting `name` to the values with these text forms.
///
/// # Errors
///
/// The name is unknown, or a value is invalid.
pub fn set(
    settings: &mut [&mut dyn AnySettings],
    name: &str,
    texts: &[impl AsRef<OsStr>],
) -> Result<(), InvalidOptions> {
    let texts: Vec<&OsStr> = texts.iter().map(AsRef::as_ref).collect();
    let found = settings.iter_mut().find_map(|settings| settings.set(name, &texts));
    found.unwrap_or_else(|| {
        let names = settings.iter().flat_map(|settings| settings.texts());
        Err(unknown(name, names.map(|(name, ..)| name)))
    })
}

/// Returns the name of a setting as the command spells it.
#[must_use]
pub fn spelled(name: &str) -> String {
    format!("--{}", name.replace('_', "-"))
}

/// Returns an error for an unknown name of a setting. The message suggests the most similar known name.
#[must_use]
pub fn unknown<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> InvalidOptions {
    let nearest = known.map(|known| (edits(name, known), known)).min();
    match nearest {
        Some((edits, known)) if edits <= 1 + known.len() / 3 => {
            InvalidOptions::new(format!("there is no setting {name:?}; did you mean {known:?}?"))
        }
        _ => InvalidOptions::new(format!("there is no setting {name:?}")),
    }
}

/// Returns the edit distance of two short names (Levenshtein).
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let next = (corner + usize::from(from != *to)).min(row[j] + 1).min(row[j + 1] + 1);
            corner = std::mem::replace(&mut row[j + 1], next);
        }
    }
    row[b.len()]
}

/// Replaces each option in a message by `spell` of its setting: `--text-field` becomes `spell("text_field")`.
#[must_use]
pub fn in_words_of(message: &str, spell: impl Fn(&str) -> String) -> String {
    let mut rewritten = String::with_capacity(message.len());
    let mut rest = message;
    while let Some(start) = rest.find("--") {
        let (before, option) = rest.split_at(start);
        let name = &option[2..];
        let length = name.find(|c: char| !(c.is_ascii_lowercase() || c == '-')).unwrap_or(name.len());
        // Two hyphens inside another name, such as a file name, do not begin an option.
        let in_name = before.ends_with(|c: char| c.is_alphanumeric() || "-_./".contains(c));
        let is_option = name.starts_with(|c: char| c.is_ascii_lowercase()) && !in_name;
        rewritten.push_str(before);
        if is_option {
            rewritten.push_str(&spell(&name[..length].replace('-', "_")));
        } else {
            rewritten.push_str(&option[..2 + length]);
        }
        rest = &name[length..];
    }
    rewritten.push_str(rest);
    rewritten
}

/// Declares a struct of settings:
///
/// ```text
/// /// documentation of the struct
/// NAME, "HEADING" {
///     /// one sentence
///     ///
///     /// more
///     field: Type = default, "FORM";             // "" for a flag
///     field: Type = default, "FORM", short 'o', alias "name", rare true, in 1..=9;
/// }
/// ```
///
/// `in` gives the range of valid values of a number.
macro_rules! settings {
    (
        $(#[$about:meta])*
        $name:ident, $heading:literal {
            $(
                $(#[doc = $help:literal])+
                $field:ident: $type:ty = $default:expr, $form:literal
                $(, short $short:literal)? $(, alias $alias:literal)? $(, rare $rare:literal)? $(, in $range:expr)?;
            )+
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq)]
        #[allow(clippy::struct_excessive_bools, reason = "each is an option by itself")]
        pub struct $name {
            $($(#[doc = $help])+ pub $field: $type,)+
        }

        impl Default for $name {
            fn default() -> Self {
                Self { $($field: $default,)+ }
            }
        }

        impl $crate::settings::declared::Settings for $name {
            const HEADING: &'static str = $heading;
            const TABLE: &'static [$crate::settings::declared::Setting<Self>] = &[$(
                $crate::settings::declared::Setting {
                    name: stringify!($field),
                    alias: $crate::settings::declared::given!($($alias)?),
                    short: $crate::settings::declared::given!($($short)?),
                    form: $form,
                    is_rare: matches!($crate::settings::declared::given!($($rare)?), Some(true)),
                    help: &[$($help),+],
                    kind: <$type as $crate::settings::value::Value>::KIND,
                    choices: <$type as $crate::settings::value::Value>::CHOICES,
                    read: |settings, text| {
                        $crate::settings::value::Value::read(&mut settings.$field, text)
                            $(.and_then(|()| $crate::settings::declared::in_range(&settings.$field, $range)))?
                    },
                    write: |settings| $crate::settings::value::Value::write(&settings.$field),
                    reset: |settings| settings.$field = Self::default().$field,
                },
            )+];
        }
    };
}

/// Expands to `Some` with the optional part of a setting, or to `None` if the part is missing.
macro_rules! given {
    () => {
        None
    };
    ($given:expr) => {
        Some($given)
    };
}

/// Returns an error if the value is a number outside the range.
pub(crate) fn in_range(value: &impl Value, range: std::ops::RangeInclusive<u64>) -> Result<(), String> {
    match value.number() {
        Some(number) if !range.contains(&number) => {
            Err(format!("expected {} to {}, found {number}", range.start(), range.end()))
        }
        _ => Ok(()),
    }
}

pub(crate) use {given, settings};
