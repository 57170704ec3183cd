//! Finds the values of field paths in a JSON object, one level of nesting at a time.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::input::fields::names::{FieldPath, Selection};

/// The values of the fields that a [`Selection`] names; `None` for a missing field.
pub(crate) type Selected<'l> = Vec<Option<&'l RawValue>>;

/// Returns the values of the fields of both selections in the JSON object `line`.
///
/// # Errors
///
/// The line is not an object, or contains a selected name twice.
pub(crate) fn select<'l>(
    line: &'l str,
    selections: [&Selection; 2],
) -> serde_json::Result<[Selected<'l>; 2]> {
    let is_wanted = |name: &str| {
        selections
            .iter()
            .any(|selection| name == selection.whole || selection.parts.iter().any(|part| begins(part, name)))
    };
    let members = members(line, &is_wanted)?;
    let [first, second] = selections;
    Ok([find(&members, first)?, find(&members, second)?])
}

/// Returns the values of single fields in the JSON object `line`; `None` for a missing field.
///
/// # Errors
///
/// The errors of [`select`].
pub(crate) fn select_single<'l>(
    line: &'l str,
    fields: &[Option<FieldPath>],
) -> serde_json::Result<Vec<Option<&'l RawValue>>> {
    let is_wanted = |name: &str| fields.iter().flatten().any(|field| begins(field, name));
    let members = members(line, &is_wanted)?;
    let value =
        |field: &Option<FieldPath>| field.as_ref().map_or(Ok(None), |field| find_part(&members, field));
    fields.iter().map(value).collect()
}

/// Returns whether a member with this name is the field itself, or the outermost object on the field's path.
fn begins(field: &FieldPath, name: &str) -> bool {
    name == field.name || field.path.first().is_some_and(|first| name == first)
}

/// The selected members of a JSON object.
type ObjectMembers<'l> = Vec<(String, &'l RawValue)>;

fn get<'l>(members: &ObjectMembers<'l>, name: &str) -> Option<&'l RawValue> {
    members.iter().find(|(own, _)| own == name).map(|(_, value)| *value)
}

fn find<'l>(members: &ObjectMembers<'l>, selection: &Selection) -> serde_json::Result<Selected<'l>> {
    if let Some(whole) = get(members, &selection.whole) {
        return Ok(vec![Some(whole)]);
    }
    selection.parts.iter().map(|part| find_part(members, part)).collect()
}

fn find_part<'l>(members: &ObjectMembers<'l>, part: &FieldPath) -> serde_json::Result<Option<&'l RawValue>> {
    if let Some(value) = get(members, &part.name) {
        return Ok(Some(value));
    }
    let Some((first, below)) = part.path.split_first() else { return Ok(None) };
    let Some(mut value) = get(members, first) else { return Ok(None) };
    for name in below {
        let inside = match value.get().as_bytes().first() {
            Some(b'{') => get(&self::members(value.get(), &|own| own == name)?, name),
            Some(b'[') => element(value.get(), name)?,
            _ => None,
        };
        let Some(inside) = inside else { return Ok(None) };
        value = inside;
    }
    Ok(Some(value))
}

/// Returns the members of an object for whose names `is_wanted` returns true.
fn members<'l>(json: &'l str, is_wanted: &dyn Fn(&str) -> bool) -> serde_json::Result<ObjectMembers<'l>> {
    let mut parser = serde_json::Deserializer::from_str(json);
    let members = Object(is_wanted).deserialize(&mut parser)?;
    parser.end()?;
    Ok(members)
}

/// Returns the element of an array at the index `number`; `None` if `number` is not a valid index.
fn element<'l>(json: &'l str, number: &str) -> serde_json::Result<Option<&'l RawValue>> {
    let Ok(number) = number.parse() else { return Ok(None) };
    Element(number).deserialize(&mut serde_json::Deserializer::from_str(json))
}

struct Object<'w>(&'w dyn Fn(&str) -> bool);

impl<'de> DeserializeSeed<'de> for Object<'_> {
    type Value = ObjectMembers<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_> {
    type Value = ObjectMembers<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members: ObjectMembers<'de> = Vec::new();
        while let Some(name) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            if !self.0(&name) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if members.iter().any(|(own, _)| *own == *name) {
                return Err(A::Error::custom(format!("the field {name:?} is repeated in the object")));
            }
            members.push((name.into_owned(), map.next_value()?));
        }
        Ok(members)
    }
}

struct Element(usize);

impl<'de> DeserializeSeed<'de> for Element {
    type Value = Option<&'de RawValue>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Element {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        let mut at = 0;
        while let Some(value) = array.next_element::<&RawValue>()? {
            if at == self.0 {
                found = Some(value);
            }
            at += 1;
        }
        Ok(found)
    }
}

/// Returns the message for an error of [`select`] or [`select_single`].
pub(crate) fn select_error(line: &str, error: &serde_json::Error) -> String {
    let message = error.to_string();
    if message.contains("is repeated in the object") {
        return message.split(" at line ").next().unwrap_or_default().to_owned();
    }
    invalid_json(line, error)
}

/// Returns the message for invalid JSON without the parser's line number, which is always 1.
pub(crate) fn invalid_json(line: &str, error: &serde_json::Error) -> String {
    if line.starts_with('\0') {
        return "zero bytes, as where a file was not written to its end: copy it again".to_owned();
    }
    let message = error.to_string();
    let (message, _) = message.rsplit_once(" at line ").unwrap_or((&message, ""));
    let half = match message {
        // The parser's messages for a lone surrogate do not show the escape.
        "lone leading surrogate in hex escape" | "unexpected end of hex escape" => {
            last_surrogate(&line.as_bytes()[..line.len().min(error.column())])
                .map(|escape| format!("an escape of half a surrogate pair, {escape}"))
        }
        _ => None,
    };
    let number = no_number(line, error.column()).map(|word| {
        format!("{word}, which is no JSON; write null instead, in Python json.dumps(allow_nan=False)")
    });
    let message = half.as_deref().or(number.as_deref()).unwrap_or(message);
    let spread = error.is_eof() || line.trim_start().starts_with('[');
    let advice = match () {
        () if line.starts_with('\u{feff}') => {
            "; a byte order mark begins the line, as where files were joined: remove it"
        }
        () if spread => "; each line must hold one whole object, as `jq -c .` writes it",
        () => "",
    };
    format!("invalid JSON at column {}: {message}{advice}", error.column())
}

/// Returns `NaN`, `Infinity` or `-Infinity` if the word is near the column of an error. Some programs write these
/// words, which are not valid JSON.
fn no_number(line: &str, column: usize) -> Option<&'static str> {
    let around = line.get(column.saturating_sub(3)..)?;
    ["NaN", "-Infinity", "Infinity"]
        .into_iter()
        .find(|word| around.get(..(word.len() + 3).min(around.len())).is_some_and(|near| near.contains(word)))
}

/// Returns the last escape of a surrogate in the line.
fn last_surrogate(line: &[u8]) -> Option<&str> {
    let is_one = |escape: &&[u8]| {
        matches!(escape, [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F', rest @ ..]
            if rest.iter().all(u8::is_ascii_hexdigit))
    };
    std::str::from_utf8(line.windows(6).rfind(is_one)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str, names: &str) -> Result<Vec<Option<String>>, String> {
        let selection = Selection::of(names);
        let none = Selection::of("none");
        let [found, _] = select(line, [&selection, &none]).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|value| value.map(|value| value.get().to_owned())).collect())
    }

    #[test]
    fn values_are_found_by_paths_pointers_and_lists_of_names() {
        let line = r#"{"meta":{"url":"u","tags":["a",{"b":[1, 2]}]},"id":1.50,"n":null}"#;
        for (names, wanted) in [
            ("id", vec![Some("1.50")]),
            ("meta.url", vec![Some("\"u\"")]),
            ("/meta/url", vec![Some("\"u\"")]),
            ("meta.tags.1.b", vec![Some("[1, 2]")]),
            ("/meta/tags/1/b/0", vec![Some("1")]),
            ("id,meta.url,n", vec![Some("1.50"), Some("\"u\""), Some("null")]),
            ("meta.none", vec![None]),
            ("id.url", vec![None]),
            ("meta.tags.x", vec![None]),
            ("meta.tags.9,none", vec![None, None]),
        ] {
            let wanted: Vec<_> = wanted.into_iter().map(|value| value.map(str::to_owned)).collect();
            assert_eq!(found(line, names).unwrap(), wanted, "{names}");
        }
    }

    #[test]
    fn field_with_the_exact_name_takes_precedence_over_a_path() {
        let line =
            r#"{"meta":{"url":"inside"},"meta.url":"plain","a,b":"both","a":1,"b":2,"\u002fa":"slash"}"#;
        for (names, wanted) in [("meta.url", "\"plain\""), ("a,b", "\"both\""), ("/a", "\"slash\"")] {
            assert_eq!(found(line, names).unwrap(), [Some(wanted.to_owned())], "{names}");
        }
    }

    #[test]
    fn repeated_field_and_value_that_is_not_an_object_are_errors() {
        assert!(found(r#"{"m":{"a":1,"a":2}}"#, "m.a").unwrap_err().contains("is repeated"));
        assert!(found(r#"{"m":1,"m":2}"#, "m.a").unwrap_err().contains("is repeated"));
        assert!(found(r#"{"x":1,"x":2,"m":{"a":3}}"#, "m.a").is_ok(), "nobody asked for that");
        assert!(found("[1]", "m.a").is_err());
        assert!(found(r#"{"m":{"a":1}"#, "m.a").is_err());
    }
}
