//! Documents that are sets or vectors of features instead of texts. The features are in a field of a JSON line.
//!
//! ```text
//! ["add", "load", 7]                  a set; an integer is named by its digits, so 7 and "7" are one feature
//! [["add", 2], ["load", 0.5]]         a vector: pairs of a feature and its weight
//! {"add": 2, "load": 0.5}             the same vector; a repeated name is an error
//! ```
//!
//! The number in the line is parsed to the nearest 64-bit float, multiplied by 2^16, and rounded to an integer, halves
//! away from zero. The result is the weight; it must fit in 64 bits. For the meaning of features and weights, see
//! [`Sketcher::sketch_features`](twindex::Sketcher::sketch_features).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use twindex::sketch::Scratch;
use twindex::{Sketch, Sketcher};

/// The weight 1 in units of 2^-16.
const ONE: f64 = 65_536.0;
/// 2^63, the smallest number that does not fit in a signed 64-bit integer.
const WEIGHT_END: f64 = 9_223_372_036_854_775_808.0;
/// Maximum number of characters of a feature's name that a message shows.
const SHOWN: usize = 40;

/// The features of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Features {
    /// The names of all features, concatenated, and the end offset of each name.
    names: Vec<u8>,
    ends: Vec<usize>,
    /// The weight of each feature, in units of 2^-16; empty for a set.
    weights: Vec<i64>,
}

impl Features {
    /// Returns whether the features are a vector. A document without features is a set.
    #[must_use]
    pub fn is_weighted(&self) -> bool {
        !self.weights.is_empty()
    }

    /// Returns the names in the order of the JSON line.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.names[start..end])
    }

    /// Returns the weights of a vector in units of 2^-16; empty for a set.
    #[must_use]
    pub fn weights(&self) -> &[i64] {
        &self.weights
    }

    /// Returns the total length of the names in bytes. It takes the place of the length of a text.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.names.len()
    }

    /// Returns a canonical encoding of the set or vector: equal sets or vectors have equal bytes.
    #[must_use]
    pub fn canonical(&self) -> Vec<u8> {
        let mut items: Vec<(&[u8], i64)> = if self.is_weighted() {
            self.names().zip(self.weights.iter().copied()).collect()
        } else {
            self.names().map(|name| (name, 1)).collect()
        };
        items.sort_unstable();
        let mut bytes = vec![u8::from(self.is_weighted())];
        for (name, weight) in items {
            bytes.extend((name.len() as u64).to_le_bytes());
            bytes.extend(name);
            bytes.extend(weight.to_le_bytes());
        }
        bytes
    }

    /// Parses [canonical](Self::canonical) bytes; `None` if they are not canonical.
    #[must_use]
    pub fn from_canonical(bytes: &[u8]) -> Option<Self> {
        let (&is_weighted, mut bytes) = bytes.split_first()?;
        let mut features = Self::default();
        while !bytes.is_empty() {
            let (length, rest) = bytes.split_first_chunk()?;
            let (name, rest) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
            let (weight, rest) = rest.split_first_chunk()?;
            features.push(name, (is_weighted > 0).then(|| i64::from_le_bytes(*weight)));
            bytes = rest;
        }
        (features.is_weighted() == (is_weighted > 0) && is_weighted <= 1).then_some(features)
    }

    /// Parses features from JSON: an array of names, an array of pairs of a name and its weight, or an object of
    /// weights.
    ///
    /// # Errors
    ///
    /// The JSON is not a set or vector of features; the message has the reason.
    pub fn from_json(json: &str) -> Result<Self, String> {
        of_value(serde_json::from_str(json).map_err(|error| format!("is no JSON: {error}"))?)
    }

    /// Replaces the content of `sketch` with the sketch of these features. `set` and `vector` are working memory.
    ///
    /// # Errors
    ///
    /// The sketcher is for texts, or a weight is out of its range.
    pub fn sketch_into(
        &self,
        sketcher: &Sketcher,
        (set, vector): (&mut Vec<u64>, &mut Vec<(u64, i64)>),
        scratch: &mut Scratch,
        sketch: &mut Sketch,
    ) -> twindex::Result<()> {
        let names = self.names().map(|name| sketcher.feature(name));
        if self.is_weighted() {
            vector.clear();
            vector.extend(names.zip(self.weights().iter().copied()));
            return Ok(sketcher.sketch_weighted(vector, scratch, sketch)?);
        }
        set.clear();
        set.extend(names);
        Ok(sketcher.sketch_features(set, scratch, sketch)?)
    }

    fn push(&mut self, name: &[u8], weight: Option<i64>) {
        self.names.extend_from_slice(name);
        self.ends.push(self.names.len());
        self.weights.extend(weight);
    }

    /// Returns a name that occurs twice, if there is one.
    fn repeated(&self) -> Option<&[u8]> {
        let mut names: Vec<&[u8]> = self.names().collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }
}

/// Parses the features in the value of a field. Returns an error with the reason if the value is neither a set nor a
/// vector of features.
pub(crate) fn of_value(value: Value) -> Result<Features, String> {
    let mut features = Features::default();
    match value {
        Value::Array(items) => {
            for (place, item) in items.iter().enumerate() {
                let element = |found| format!("has {found} as element {place}, counted from 0");
                let (name, weight) = match item {
                    Value::Array(pair) => match &pair[..] {
                        [name, weight] => {
                            (name.name().map_err(element)?, Some(weight.weight().map_err(element)?))
                        }
                        _ => {
                            return Err(element(
                                "an array that is no pair of a feature and its weight".into(),
                            ));
                        }
                    },
                    name => (name.name().map_err(element)?, None),
                };
                if place > 0 && weight.is_some() != features.is_weighted() {
                    return Err(format!(
                        "has features with and without weights, see element {place}, counted from 0"
                    ));
                }
                features.push(name.as_bytes(), weight);
            }
        }
        Value::Object(fields) => {
            for (name, weight) in &fields {
                let weight = weight
                    .weight()
                    .map_err(|found| format!("has {found} as the weight of {}", shown(name)))?;
                features.push(name.as_bytes(), Some(weight));
            }
            if let Some(name) = features.repeated() {
                return Err(format!("has two weights of {}", shown(&String::from_utf8_lossy(name))));
            }
        }
        other => {
            return Err(format!("is {}, not an array of features or an object of weights", other.kind()));
        }
    }
    Ok(features)
}

/// Returns the start of a feature's name, in quotes, for a message.
fn shown(name: &str) -> String {
    let start: String = name.chars().take(SHOWN).collect();
    let dots = if start.len() < name.len() { "..." } else { "" };
    format!("{start:?}{dots}")
}

/// A JSON value of any type. An object includes repeated fields.
#[derive(Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i128),
    Float(f64),
    Boolean,
    Null,
    Array(Vec<Value>),
    Object(Vec<(String, Value)>),
}

impl Value {
    /// Returns the JSON type of the value for a message, with an article.
    fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "a string",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Boolean => "a boolean",
            Self::Null => "null",
            Self::Array(_) => "an array",
            Self::Object(_) => "an object",
        }
    }

    /// Returns the name of the feature that the value denotes: a string unchanged, or the digits of an integer.
    fn name(&self) -> Result<Cow<'_, str>, String> {
        match self {
            Self::String(name) => Ok(Cow::Borrowed(name)),
            Self::Integer(number) => Ok(Cow::Owned(number.to_string())),
            Self::Float(_) => Err("a number with a fraction, an exponent or too many digits".into()),
            other => Err(other.kind().into()),
        }
    }

    /// Returns the value as a weight in units of 2^-16.
    fn weight(&self) -> Result<i64, String> {
        let number = match self {
            Self::Integer(number) => *number as f64,
            Self::Float(number) => *number,
            other => return Err(other.kind().into()),
        };
        // Multiplication by a power of two is exact, and so is rounding to an integer.
        let scaled = (number * ONE).round();
        if (-WEIGHT_END..WEIGHT_END).contains(&scaled) {
            Ok(scaled as i64)
        } else {
            Err(format!("{number:e}, which is not between -2^47 and 2^47,"))
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(IgnoredValue)
    }
}

struct IgnoredValue;

impl<'de> Visitor<'de> for IgnoredValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Integer(value.into()))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Float(value))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Value, E> {
        Ok(Value::Boolean)
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = array.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(field) = object.next_entry()? {
            fields.push(field);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn features(json: &str) -> Result<Features, String> {
        of_value(serde_json::from_str(json).unwrap())
    }

    fn names(features: &Features) -> Vec<&str> {
        features.names().map(|name| std::str::from_utf8(name).unwrap()).collect()
    }

    #[test]
    fn integer_in_a_set_equals_the_string_of_its_digits() {
        let set = features(r#"["add", 7, "7", -3, 18446744073709551615, "", "ü"]"#).unwrap();
        assert_eq!(names(&set), ["add", "7", "7", "-3", "18446744073709551615", "", "ü"]);
        assert!(!set.is_weighted() && set.weights().is_empty());
        assert_eq!(features("[]").unwrap(), Features::default());
    }

    #[test]
    fn vectors_are_pairs_or_objects_with_fixed_point_weights() {
        let pairs = features(r#"[["a", 1], [7, -0.5], ["c", 0.25], ["a", 1e-9]]"#).unwrap();
        assert_eq!(names(&pairs), ["a", "7", "c", "a"]);
        assert_eq!(pairs.weights(), [65_536, -32_768, 16_384, 0]);
        let object = features(r#"{"a": 1, "7": -0.5, "c": 0.25}"#).unwrap();
        assert_eq!((names(&object), object.weights()), (vec!["a", "7", "c"], &[65_536, -32_768, 16_384][..]));
        assert_eq!(features("{}").unwrap(), Features::default());
    }

    #[test]
    fn weights_are_rounded_halves_away_from_zero_and_refused_out_of_range() {
        let weight = |json: &str| features(&format!(r#"[["a", {json}]]"#)).map(|vector| vector.weights()[0]);
        for (json, wanted) in [
            ("0.00000762939453125", 1), // 2^-17
            ("-0.00000762939453125", -1),
            ("0.0000076293945312", 0),
            ("2.2", 144_179), // 144179.2
            ("140737488355327", 9_223_372_036_854_710_272),
            ("-140737488355328", i64::MIN),
            ("-0.0", 0),
        ] {
            assert_eq!(weight(json), Ok(wanted), "{json}");
        }
        for json in ["140737488355328", "1e300", "-1e15", "18446744073709551615"] {
            let why = weight(json).unwrap_err();
            assert!(why.contains("not between -2^47 and 2^47") && why.contains("element 0"), "{why}");
        }
    }

    #[test]
    fn invalid_feature_is_refused_with_its_position() {
        for (json, wanted) in [
            ("null", "is null, not an array"),
            ("3", "is a number, not"),
            (r#""add""#, "is a string, not"),
            ("[1.5]", "has a number with a fraction, an exponent or too many digits as element 0"),
            ("[1, true]", "has a boolean as element 1"),
            (r#"["a", {}]"#, "has an object as element 1"),
            (r#"[["a"]]"#, "no pair of a feature and its weight as element 0"),
            (r#"[["a", 1, 2]]"#, "no pair"),
            (r#"[["a", "1"]]"#, "has a string as element 0"),
            (r#"[[["a"], 1]]"#, "has an array as element 0"),
            (r#"["a", ["b", 1]]"#, "with and without weights, see element 1"),
            (r#"[["b", 1], "a"]"#, "with and without weights, see element 1"),
            (r#"{"a": null}"#, "has null as the weight of \"a\""),
            (r#"{"a": 1, "b": 2, "a": 1}"#, "has two weights of \"a\""),
        ] {
            let why = features(json).unwrap_err();
            assert!(why.contains(wanted), "{json}: {why}");
        }
    }

    #[test]
    fn canonical_bytes_are_equal_only_for_equal_features() {
        let of = |json: &str| features(json).unwrap().canonical();
        assert_eq!(of(r#"["a", "b", 7]"#), of(r#"["7", "b", "a"]"#));
        assert_eq!(of(r#"{"a": 1, "b": 2}"#), of(r#"[["b", 2.0], ["a", 1]]"#));
        for json in [r#"["b", "a", "a", ""]"#, r#"{"a": 1.5, "ü": -2}"#, "[]", r#"[["a", 0]]"#] {
            let bytes = of(json);
            assert_eq!(
                Features::from_canonical(&bytes).map(|again| again.canonical()),
                Some(bytes.clone()),
                "{json}"
            );
            for length in 0..bytes.len() {
                let cut = Features::from_canonical(&bytes[..length]);
                assert!(cut.is_none_or(|cut| cut.canonical() == bytes[..length]), "{json} cut to {length}");
            }
            let wrong = [&[2], &bytes[1..]].concat();
            assert_eq!(Features::from_canonical(&wrong), None, "{json}");
        }
        let others =
            [r#"["a"]"#, r#"["a", "a"]"#, r#"["aa"]"#, r#"["a", ""]"#, r#"[["a", 1]]"#, r#"{"a": 2}"#, "[]"];
        for (i, a) in others.iter().enumerate() {
            assert!(others[..i].iter().all(|b| of(a) != of(b)), "{a}");
        }
    }
}
