//! Values of settings and their text forms.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The number of values that a setting accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// On or off: `true` or `false`.
    Flag,
    /// One value.
    One,
    /// One value, or several in a meaningful order.
    OneOrMore,
    /// Any number of values.
    Many,
}

/// A word that a setting accepts, with its meaning; the meaning may be empty.
pub type Choice = (&'static str, &'static str);

/// A value of a setting.
pub trait Value: Sized {
    /// The number of values that the setting accepts.
    const KIND: Kind = Kind::One;
    /// The accepted words; empty if the values are not words from a list.
    const CHOICES: &'static [Choice] = &[];

    /// Parses a text form.
    ///
    /// # Errors
    ///
    /// The text is not in the form of this type. The message has the expected form.
    fn parse(text: &OsStr) -> Result<Self, String>;

    /// Sets the value from its text form. If the value is a list, appends to the list.
    ///
    /// # Errors
    ///
    /// The errors of [`parse`](Self::parse).
    fn read(&mut self, text: &OsStr) -> Result<(), String> {
        *self = Self::parse(text)?;
        Ok(())
    }

    /// Returns the text forms: none if the value is not set, and one for each value of a list.
    fn write(&self) -> Vec<String>;

    /// Returns the value if it is a number, for range checks.
    fn number(&self) -> Option<u64> {
        None
    }
}

pub(crate) fn utf8(text: &OsStr) -> Result<&str, String> {
    text.to_str().ok_or_else(|| format!("expected UTF-8, found {}", text.display()))
}

/// Implements [`Value`] for types whose text form is parsed by `FromStr` and written by `Display`.
macro_rules! plain {
    ($($type:ty: $expected:literal),+) => {$(
        impl Value for $type {
            fn parse(text: &OsStr) -> Result<Self, String> {
                let text = utf8(text)?;
                text.parse().map_err(|_| format!("expected {}, found {text:?}", $expected))
            }

            fn write(&self) -> Vec<String> {
                vec![self.to_string()]
            }

            fn number(&self) -> Option<u64> {
                Some((*self).into())
            }
        }
    )+};
}

plain! {
    u16: "a number from 0 to 65535",
    u32: "a number from 0 to 4294967295",
    u64: "a number from 0 to 18446744073709551615"
}

impl Value for bool {
    const KIND: Kind = Kind::Flag;

    fn parse(text: &OsStr) -> Result<Self, String> {
        match utf8(text)? {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(format!("expected true or false, found {other:?}")),
        }
    }

    fn write(&self) -> Vec<String> {
        self.then(|| "true".to_owned()).into_iter().collect()
    }
}

impl Value for String {
    fn parse(text: &OsStr) -> Result<Self, String> {
        match utf8(text)? {
            "" => Err("expected a name, found nothing".to_owned()),
            text => Ok(text.to_owned()),
        }
    }

    fn write(&self) -> Vec<String> {
        vec![self.clone()]
    }
}

/// The text form of a path that is not UTF-8 is the prefix `ESCAPED` and the path, escaped like keys in tables.
impl Value for PathBuf {
    fn parse(text: &OsStr) -> Result<Self, String> {
        unescaped(text).map(PathBuf::from)
    }

    fn write(&self) -> Vec<String> {
        match self.to_str() {
            _ if self.as_os_str().is_empty() => Vec::new(),
            Some(text) if !text.starts_with(ESCAPED) => vec![text.to_owned()],
            _ => {
                let escaped = crate::work::tsv::escape(self.as_os_str().as_encoded_bytes());
                vec![format!("{ESCAPED}{}", String::from_utf8_lossy(&escaped))]
            }
        }
    }
}

/// The prefix of the text form of a path that is not UTF-8.
const ESCAPED: &str = "\\\\escaped:";

fn unescaped(text: &OsStr) -> Result<OsString, String> {
    let Some(escaped) = text.to_str().and_then(|text| text.strip_prefix(ESCAPED)) else {
        return Ok(text.to_owned());
    };
    let bytes =
        crate::work::tsv::unescape(escaped.as_bytes()).map_err(|error| format!("{error:#}"))?.into_owned();
    #[cfg(unix)]
    return Ok(std::os::unix::ffi::OsStringExt::from_vec(bytes));
    #[cfg(not(unix))]
    return Ok(OsString::from(String::from_utf8_lossy(&bytes).into_owned()));
}

impl<T: Value> Value for Option<T> {
    const KIND: Kind = T::KIND;
    const CHOICES: &'static [Choice] = T::CHOICES;

    fn parse(text: &OsStr) -> Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn write(&self) -> Vec<String> {
        self.as_ref().map_or_else(Vec::new, Value::write)
    }

    fn number(&self) -> Option<u64> {
        self.as_ref().and_then(Value::number)
    }
}

impl<T: Value> Value for Vec<T> {
    const KIND: Kind = Kind::Many;
    const CHOICES: &'static [Choice] = T::CHOICES;

    fn parse(text: &OsStr) -> Result<Self, String> {
        T::parse(text).map(|value| vec![value])
    }

    fn read(&mut self, text: &OsStr) -> Result<(), String> {
        self.push(T::parse(text)?);
        Ok(())
    }

    fn write(&self) -> Vec<String> {
        self.iter().flat_map(Value::write).collect()
    }
}

/// Implements [`Value`] for an enum from a table of its values, their names and their meanings.
macro_rules! choices {
    ($type:ty { $($value:path => $name:literal $(: $help:literal)?),+ $(,)? }) => {
        impl $crate::settings::Value for $type {
            const CHOICES: &'static [$crate::settings::Choice] = &[$(($name, concat!($($help)?))),+];

            fn parse(text: &std::ffi::OsStr) -> Result<Self, String> {
                match text.to_str() {
                    $(Some($name) => Ok($value),)+
                    _ => {
                        let names: Vec<&str> = Self::CHOICES.iter().map(|(name, _)| *name).collect();
                        Err(format!("expected one of {}, found {:?}", names.join(", "), text.display().to_string()))
                    }
                }
            }

            fn write(&self) -> Vec<String> {
                #[allow(unreachable_patterns, reason = "some enums have a value that means not given")]
                match self {
                    $($value => vec![$name.to_owned()],)+
                    _ => Vec::new(),
                }
            }
        }
    };
}

pub(crate) use choices;
