//! JSON Lines, which have one object per line: parses the key and the text of a line.

use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use twindex_kernel::Unescaped;

use crate::input::content::Content;
use crate::input::fields::features::{self, Features};
use crate::input::fields::fingerprint::{Code, FingerprintForm};
use crate::input::fields::names::{Selection, push_key, push_text};
use crate::input::fields::record::{FieldSelections, Fields, Ids, name_conflict};
use crate::input::jsonl::nested::{self, invalid_json, select_error};
use crate::input::jsonl::scan::{self, Scanned, ScannedValue};
use crate::input::place::{LOSSY_ADVICE, not_utf8};
use crate::input::text::charset::{self, Charset};
use crate::input::text::lossy::{self, InvalidUtf8};

/// Maximum number of field names in the message about a missing field, and maximum number of characters of each name.
const NAMES_SHOWN: usize = 8;
const NAME_CHARACTERS_SHOWN: usize = 40;

/// Working memory of [`parse`], reused for all lines.
#[derive(Debug, Default)]
pub(crate) struct LineBuffers {
    line: String,
    values: Values,
    /// The bytes that are compared instead of the text, if the text was decoded with loss.
    identity: Vec<u8>,
}

/// The unescaped values of a line.
#[derive(Debug, Default)]
struct Values {
    key: Unescaped,
    text: Unescaped,
    features: Features,
}

/// The values that were read from a line.
#[derive(Debug)]
pub(crate) struct ParsedObject<'p> {
    /// The key; `None` if it is created from the line number.
    pub(crate) key: Option<&'p [u8]>,
    pub(crate) content: Content<'p>,
    /// Whether the text has replaced bytes or lone surrogates.
    pub(crate) is_lossy: bool,
    /// Whether the encoding of the line was detected from its bytes.
    pub(crate) is_detected: bool,
    /// Bit `i` is set if the line lacks text field `i`. The line has at least one of the text fields.
    pub(crate) absent: u64,
}

/// Parses the key and the text, or the features, of a line. Returns an error with the reason if it is not a document.
pub(crate) fn parse<'p>(
    line: &'p [u8],
    fields: &Fields,
    invalid: InvalidUtf8,
    charset: Option<Charset>,
    buffers: &'p mut LineBuffers,
) -> Result<ParsedObject<'p>, LineError> {
    let takes_lossy = matches!(invalid, InvalidUtf8::Replace | InvalidUtf8::Skip);
    let Ok(line) = simdutf8::basic::from_utf8(line) else {
        let decoded = charset::line(line, charset);
        if !decoded.is_lossy {
            buffers.line = decoded.text.into_owned();
            let parsed = parse_utf8(&buffers.line, fields, &mut buffers.values)?;
            return Ok(ParsedObject { is_detected: decoded.is_detected, ..parsed });
        }
        if takes_lossy {
            return parse_lossy(&lossy::mark_json(line), fields, invalid, buffers);
        }
        if let Some(wide) = charset::marked_wide(line) {
            return Err(LineError::Reason(not_utf8(wide)));
        }
        let offset = std::str::from_utf8(line).err().map_or(0, |error| error.valid_up_to());
        return Err(LineError::Reason(format!(
            "not UTF-8: byte 0x{:02x} at offset {offset} of the line ({LOSSY_ADVICE})",
            line[offset]
        )));
    };
    // Options that accept invalid bytes also accept lone surrogates.
    if takes_lossy && lossy::has_half(line) {
        let marked = lossy::mark_json(line.as_bytes());
        if lossy::is_lossy(&marked) {
            return parse_lossy(&marked, fields, invalid, buffers);
        }
    }
    parse_utf8(line, fields, &mut buffers.values)
}

/// Returns an error if the object has a field with a reserved name, which output adds.
pub(crate) fn check_reserved(line: &[u8], reserved: &[String]) -> Result<(), String> {
    let occurs = |name: &&String| memchr::memmem::find(line, format!("\"{name}\"").as_bytes()).is_some();
    if !reserved.iter().any(|name| occurs(&name)) {
        return Ok(());
    }
    // Reserved names are ASCII, so the replacement of invalid UTF-8 does not affect them.
    let shown = String::from_utf8_lossy(line);
    let Ok(fields) = serde_json::from_str::<HashMap<String, &RawValue>>(&shown) else { return Ok(()) };
    reserved.iter().find(|name| fields.contains_key(*name)).map_or(Ok(()), |name| Err(name_conflict(name)))
}

/// The reason why a line is not a document.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum LineError {
    Reason(String),
    /// The line lacks a required field.
    Missing(String),
    /// The text could not be decoded without loss, and the options skip such documents.
    Skipped,
}

impl From<String> for LineError {
    fn from(reason: String) -> Self {
        Self::Reason(reason)
    }
}

/// Parses a line that is valid UTF-8.
fn parse_utf8<'p>(
    line: &'p str,
    fields: &Fields,
    values: &'p mut Values,
) -> Result<ParsedObject<'p>, LineError> {
    let Values { key, text, features } = values;
    if let Some((own, content, absent)) = parse_given(line, fields, features)? {
        let key = own.map(|own| {
            *key = own.into();
            key.as_str().as_bytes()
        });
        return Ok(ParsedObject { key, content, is_lossy: false, is_detected: false, absent });
    }
    let usual = if fields.named.is_none() { scan::scan(line, fields, key, text) } else { None };
    let usual = usual
        // guard: keys of usual lines of JSON are checked
        // without it: crate::input::place::check_key(found.of(line, key).as_bytes()).is_ok() -> true
        .filter(|found| match found.key {
            Some(found) => crate::input::place::check_key(found.of(line, key).as_bytes()).is_ok(),
            None => fields.ids != Ids::Field,
        });
    let mut absent = 0;
    let found = if let Some(usual) = usual {
        usual
    } else {
        let slow = parse_slowly(line, fields)?;
        absent = slow.absent;
        let has_key = slow.key.is_some();
        (*key, *text) = (slow.key.unwrap_or_default().into(), slow.text.into());
        Scanned { key: has_key.then_some(ScannedValue::Unescaped), text: ScannedValue::Unescaped }
    };
    let (key, text) = (found.key.map(|found| found.of(line, key)), found.text.of(line, text));
    let key = key.filter(|_| fields.ids != Ids::Line).map(str::as_bytes);
    Ok(ParsedObject { key, content: Content::Text(text), is_lossy: false, is_detected: false, absent })
}

/// Parses a line in which [`lossy::mark_json`] marked undecodable bytes. Returns an error if the key contains marks.
fn parse_lossy<'p>(
    marked: &str,
    fields: &Fields,
    invalid: InvalidUtf8,
    buffers: &'p mut LineBuffers,
) -> Result<ParsedObject<'p>, LineError> {
    let LineBuffers { values: Values { key, text, features }, identity, .. } = buffers;
    let (own, given, found, absent) = if let Some((own, content, absent)) =
        parse_given(marked, fields, features)?
    {
        if let Content::Features(features) = content
            && features.names().any(|name| std::str::from_utf8(name).is_ok_and(lossy::is_lossy))
        {
            let reason =
                format!("field {:?}: not UTF-8; bytes of texts are replaced, not of features", fields.text);
            return Err(LineError::Reason(reason));
        }
        (own, Some(content), String::new(), absent)
    } else {
        let slow = parse_slowly(marked, fields)?;
        (slow.key, None, slow.text, slow.absent)
    };
    let own = match own {
        None => None,
        // guard: no byte of a key of JSON is replaced
        Some(own) if lossy::is_lossy(&own) => {
            let reason = format!(
                "field {:?}: not UTF-8; bytes of texts are replaced, those of keys are not",
                fields.id
            );
            return Err(LineError::Reason(reason));
        }
        Some(own) => {
            *key = lossy::shown(&own).unwrap_or(own).into();
            Some(key.as_str().as_bytes())
        }
    };
    let parsed =
        |content, is_lossy| Ok(ParsedObject { key: own, content, is_lossy, is_detected: false, absent });
    if let Some(content) = given {
        return parsed(content, false);
    }
    let is_lossy = lossy::is_lossy(&found);
    if is_lossy && invalid == InvalidUtf8::Skip {
        return Err(LineError::Skipped);
    }
    *identity = [&[lossy::LOSSY], found.as_bytes()].concat();
    *text = lossy::shown(&found).unwrap_or(found).into();
    let text = text.as_str();
    parsed(if is_lossy { Content::Opaque { text, identity } } else { Content::Text(text) }, is_lossy)
}

/// The result of [`parse_slowly`].
#[derive(Debug)]
pub(crate) struct SlowParse {
    pub(crate) key: Option<String>,
    pub(crate) text: String,
    /// See [`ParsedObject::absent`].
    absent: u64,
}

/// Parses the key and the text of a line with a complete JSON parser.
pub(crate) fn parse_slowly(line: &str, fields: &Fields) -> Result<SlowParse, LineError> {
    if let Some(named) = &fields.named {
        return parse_named(line, named, fields);
    }
    let picked = pick(line, fields, Value)?;
    let key = key_of(line, picked.id, fields)?;
    let Some(text) = picked.content else { return Err(missing(line, &fields.text, "--text-field")) };
    Ok(SlowParse { key, text: text_of(text, &fields.text)?, absent: 0 })
}

/// Returns the text of a field. Null is an empty text.
fn text_of(text: Scalar, field: &str) -> Result<String, String> {
    match text {
        Scalar::String(text) => Ok(text),
        Scalar::Null => Ok(String::new()),
        Scalar::Integer(_) => Err(format!("field {field:?} is a number, not a string")),
        Scalar::Fraction => {
            Err(format!("field {field:?} is a number with a fraction or an exponent, not a string"))
        }
        Scalar::Other(found @ "an object") => Err(format!(
            "field {field:?} is {found}, not a string (--text-field '{field}.NAME' takes a member of it)"
        )),
        Scalar::Other(found) => Err(format!("field {field:?} is {found}, not a string")),
    }
}

/// Parses the key and the text of a line, where the key or the text is in a nested field or in several fields.
fn parse_named(line: &str, named: &FieldSelections, fields: &Fields) -> Result<SlowParse, LineError> {
    let [ids, values] = select(line, named)?;
    let key = select_key(line, &ids, named, fields)?;
    if values.iter().all(Option::is_none) {
        return Err(missing(line, &fields.text, "--text-field"));
    }
    let (mut text, mut absent) = (Vec::new(), 0);
    for (number, value) in values.iter().enumerate() {
        absent |= u64::from(value.is_none()) << number;
        // A missing field is treated like null, because some programs omit fields without a value.
        let part = value.map_or(Ok(Scalar::Null), |value| scalar(value.get()))?;
        push_text(&mut text, text_of(part, &fields.text)?.as_bytes(), number);
    }
    let text = String::from_utf8(text).map_err(|error| error.to_string())?;
    Ok(SlowParse { key, text, absent })
}

/// Returns the values of the key fields and of the text fields.
fn select<'l>(line: &'l str, named: &FieldSelections) -> Result<[nested::Selected<'l>; 2], String> {
    nested::select(line, [&named.id, &named.text]).map_err(|error| select_error(line, &error))
}

/// Returns the key of a line, where the key or the text is in a nested field or in several fields.
fn select_key(
    line: &str,
    values: &nested::Selected<'_>,
    named: &FieldSelections,
    fields: &Fields,
) -> Result<Option<String>, LineError> {
    if fields.ids == Ids::Line {
        return Ok(None);
    }
    let mut key = Vec::new();
    for (number, value) in values.iter().enumerate() {
        let Some(value) = value else {
            if fields.ids == Ids::FieldOrLine {
                return Ok(None);
            }
            let part = named.id.parts.get(number).map_or(&named.id.whole, |part| &part.name);
            return Err(missing(line, part, "--id-field"));
        };
        let part = match scalar(value.get())? {
            Scalar::Fraction => value.get().to_owned(),
            other => key_part(other, &fields.id)?,
        };
        if values.len() == 1 {
            key = part.into_bytes();
        } else {
            push_key(&mut key, part.as_bytes(), number);
        }
    }
    // guard: keys of other lines of JSON are checked
    crate::input::place::check_key(&key).map_err(|reason| format!("field {:?}: {reason}", fields.id))?;
    Ok(String::from_utf8(key).map(Some).map_err(|error| error.to_string())?)
}

/// Parses the JSON of a single value.
fn scalar(json: &str) -> Result<Scalar, String> {
    deserialize(json, Value).map_err(|error| invalid_json(json, &error))
}

/// Parses the key and the fingerprint or features of a line; `None` if documents are texts. A field that is missing, null
/// or empty is [`Content::ABSENT`]. The last value is [`ParsedObject::absent`].
fn parse_given<'f>(
    line: &str,
    fields: &Fields,
    features: &'f mut Features,
) -> Result<Option<(Option<String>, Content<'f>, u64)>, LineError> {
    if let Some(form) = fields.fingerprint {
        let (key, found, absent) = parse_fingerprint(line, fields, form)?;
        return Ok(Some((key, found.map_or(Content::ABSENT, Content::Fingerprint), absent)));
    }
    if !fields.features {
        return Ok(None);
    }
    let (key, found) = parse_features(line, fields)?;
    let absent = found.is_none().into();
    *features = found.unwrap_or_default();
    let is_empty = features.names().next().is_none();
    let content = if is_empty { Content::ABSENT } else { Content::Features(features) };
    Ok(Some((key, content, absent)))
}

/// Parses the key and the features of a line; `None` without such a field.
fn parse_features(line: &str, fields: &Fields) -> Result<(Option<String>, Option<Features>), LineError> {
    let (key, value) = if let Some(named) = &fields.named {
        let [ids, values] = select(line, named)?;
        let value = match values[..] {
            [Some(value)] => Some(deserialize(value.get(), PhantomData::<features::Value>)),
            _ => None,
        };
        let value = value.transpose().map_err(|error| invalid_json(line, &error))?;
        (select_key(line, &ids, named, fields)?, value)
    } else {
        let picked = pick(line, fields, PhantomData::<features::Value>)?;
        (key_of(line, picked.id, fields)?, picked.content)
    };
    let features = value.map(|value| match value {
        features::Value::Null => Ok(Features::default()),
        value => features::of_value(value),
    });
    Ok((key, features.transpose().map_err(|why| format!("field {:?} {why}", fields.text))?))
}

/// Parses the key and the fingerprint of a line: `None` if its field is missing, null or empty. The last value is
/// [`ParsedObject::absent`].
fn parse_fingerprint(
    line: &str,
    fields: &Fields,
    form: FingerprintForm,
) -> Result<(Option<String>, Option<Code>, u64), LineError> {
    let (key, value) = if let Some(named) = &fields.named {
        let [ids, values] = select(line, named)?;
        let value = values.first().copied().flatten().map(|value| scalar(value.get())).transpose()?;
        (select_key(line, &ids, named, fields)?, value)
    } else {
        let picked = pick(line, fields, Value)?;
        (key_of(line, picked.id, fields)?, picked.content)
    };
    let field = &fields.text;
    let Some(value) = value else { return Ok((key, None, 1)) };
    let found = match value {
        Scalar::Null => return Ok((key, None, 0)),
        Scalar::String(written) if written.is_empty() => return Ok((key, None, 0)),
        Scalar::String(written) => form.parse(&written),
        Scalar::Integer(digits) => form.parse_number(&digits),
        Scalar::Fraction => {
            return Err(format!("field {field:?} is a number beyond 64 bits, or with a fraction").into());
        }
        Scalar::Other(found) => {
            return Err(format!("field {field:?} is {found}, not a string or a number").into());
        }
    };
    Ok((key, Some(found.map_err(|why| format!("field {field:?}: {why}"))?), 0))
}

/// Parses the key field and the content field of a line. `seed` parses the value of the content field.
fn pick<'de, S>(line: &'de str, fields: &Fields, seed: S) -> Result<PickedFields<S::Value>, String>
where
    S: DeserializeSeed<'de> + Clone,
{
    let picked =
        deserialize(line, Object { fields, content: seed }).map_err(|error| invalid_json(line, &error))?;
    match picked.repeated {
        Some(name) => Err(format!("the field {name:?} is repeated in the object")),
        None => Ok(picked),
    }
}

fn missing(line: &str, name: &str, option: &str) -> LineError {
    LineError::Missing(format!("no field {name:?}; {} (use {option} NAME)", fields_here(line)))
}

/// Returns the names of the fields of an object, for messages.
pub(crate) fn fields_here(line: &str) -> String {
    deserialize(line, FieldNameList).unwrap_or_default()
}

/// Returns the key of a line, given the value `id` of its key field. Returns `None` if the key must be created from the
/// line number. The digits of a number are copied from the line.
fn key_of(line: &str, id: Option<Scalar>, fields: &Fields) -> Result<Option<String>, LineError> {
    if fields.ids == Ids::Line {
        return Ok(None);
    }
    let key = match id {
        None if fields.ids == Ids::FieldOrLine => return Ok(None),
        None => return Err(missing(line, &fields.id, "--id-field")),
        Some(Scalar::Fraction) => {
            let named = FieldSelections { id: Selection::of(&fields.id), text: Selection::of(&fields.id) };
            let [values, _] = select(line, &named)?;
            values.first().copied().flatten().map_or_else(String::new, |value| value.get().to_owned())
        }
        Some(other) => key_part(other, &fields.id)?,
    };
    // guard: keys of other lines of JSON are checked
    crate::input::place::check_key(key.as_bytes())
        .map_err(|reason| format!("field {:?}: {reason}", fields.id))?;
    Ok(Some(key))
}

fn key_part(value: Scalar, field: &str) -> Result<String, String> {
    let found = match value {
        Scalar::String(key) => return Ok(key),
        Scalar::Integer(digits) => return Ok(digits),
        Scalar::Fraction => "a number",
        Scalar::Null => "null",
        Scalar::Other(found) => found,
    };
    let advice = match found {
        "an object" => format!("--id-field '{field}.NAME' takes a member of it"),
        _ => "--id-field FILE:ROW takes the line instead".to_owned(),
    };
    Err(format!("field {field:?} is {found}, not a string or a number ({advice})"))
}

/// Parses `line` with `seed`. Returns an error if text follows the value.
fn deserialize<'de, S: DeserializeSeed<'de>>(line: &'de str, seed: S) -> serde_json::Result<S::Value> {
    let mut parser = serde_json::Deserializer::from_str(line);
    let value = seed.deserialize(&mut parser)?;
    parser.end()?;
    Ok(value)
}

/// The value of a field. Of a boolean, an array or an object, only the type is stored.
enum Scalar {
    String(String),
    /// An integer, in decimal digits.
    Integer(String),
    /// A number that is not a 64-bit integer.
    Fraction,
    Null,
    /// Another type: its name, with an article.
    Other(&'static str),
}

/// The key and content fields of an object.
struct PickedFields<C> {
    id: Option<Scalar>,
    /// The value of the content field.
    content: Option<C>,
    /// The name of the key or content field, if the object has it twice. Its value is then ambiguous.
    repeated: Option<String>,
}

/// Reads the key and content fields of an object, and skips all other fields.
struct Object<'f, S> {
    fields: &'f Fields,
    /// Parses the value of the content field.
    content: S,
}

impl<'de, S: DeserializeSeed<'de> + Clone> DeserializeSeed<'de> for Object<'_, S> {
    type Value = PickedFields<S::Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de, S: DeserializeSeed<'de> + Clone> Visitor<'de> for Object<'_, S> {
    type Value = PickedFields<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut picked = PickedFields { id: None, content: None, repeated: None };
        while let Some(name) = map.next_key_seed(Name { fields: self.fields })? {
            let (repeated, name) = match name {
                FieldRole::Id => (picked.id.replace(map.next_value_seed(Value)?).is_some(), &self.fields.id),
                FieldRole::Text => {
                    let content = map.next_value_seed(self.content.clone())?;
                    (picked.content.replace(content).is_some(), &self.fields.text)
                }
                FieldRole::Neither => {
                    map.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            if repeated {
                picked.repeated = Some(name.clone());
            }
        }
        Ok(picked)
    }
}

/// The role of a field in the object.
enum FieldRole {
    Id,
    Text,
    Neither,
}

/// Recognizes the name of a field without copying it.
struct Name<'f> {
    fields: &'f Fields,
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = FieldRole;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<FieldRole, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name<'_> {
    type Value = FieldRole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a field's name")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<FieldRole, E> {
        Ok(match name {
            _ if name == self.fields.id => FieldRole::Id,
            _ if name == self.fields.text => FieldRole::Text,
            _ => FieldRole::Neither,
        })
    }
}

/// Reads a value of any type. A value of the wrong type is read to its end before it is refused. So if the JSON after
/// it is invalid, that error is reported instead.
#[derive(Clone, Copy)]
struct Value;

impl<'de> DeserializeSeed<'de> for Value {
    type Value = Scalar;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Scalar, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value {
    type Value = Scalar;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Scalar, E> {
        Ok(Scalar::String(value.to_owned()))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Scalar, E> {
        Ok(Scalar::Integer(value.to_string()))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Scalar, E> {
        Ok(Scalar::Integer(value.to_string()))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Scalar, E> {
        Ok(Scalar::Fraction)
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Scalar, E> {
        Ok(Scalar::Other("a boolean"))
    }

    fn visit_unit<E: Error>(self) -> Result<Scalar, E> {
        Ok(Scalar::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Scalar, A::Error> {
        while array.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("an array"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Scalar, A::Error> {
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Scalar::Other("an object"))
    }
}

/// Reads the field names of an object into a list, for the message about a missing field.
struct FieldNameList;

impl<'de> DeserializeSeed<'de> for FieldNameList {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for FieldNameList {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        let mut shown = Vec::new();
        let mut more = 0_u64;
        while let Some(name) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            if shown.len() < NAMES_SHOWN {
                let start: String = name.chars().take(NAME_CHARACTERS_SHOWN).collect();
                let dots = if start.len() < name.len() { "..." } else { "" };
                shown.push(format!("{start:?}{dots}"));
            } else {
                more += 1;
            }
            map.next_value::<IgnoredAny>()?;
        }
        Ok(match (shown.len(), more) {
            (0, _) => "the object has no fields".to_owned(),
            (_, 0) => format!("fields here: {}", shown.join(", ")),
            _ => format!("fields here: {}, and {more} more", shown.join(", ")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::fields::attached::AttachedFields;

    fn fields() -> Fields {
        Fields { id: "id".to_owned(), text: "text".to_owned(), features: false, ..Default::default() }
    }

    /// Parses a line with buffers that contain the values of another line. Returns owned values.
    fn parse(line: &[u8], fields: &Fields) -> Result<(Vec<u8>, String), String> {
        parse_with(line, fields, InvalidUtf8::Error)
    }

    fn parse_with(line: &[u8], fields: &Fields, invalid: InvalidUtf8) -> Result<(Vec<u8>, String), String> {
        let (key, text) = ("left".to_owned().into(), "over".to_owned().into());
        let values = Values { key, text, ..Values::default() };
        let mut buffers = LineBuffers { values, ..LineBuffers::default() };
        let parsed = super::parse(line, fields, invalid, None, &mut buffers).map_err(|bad| match bad {
            LineError::Reason(reason) | LineError::Missing(reason) => reason,
            LineError::Skipped => "skipped".to_owned(),
        })?;
        let (Content::Text(text) | Content::Opaque { text, .. }) = parsed.content else { panic!("no text") };
        Ok((parsed.key.unwrap().to_vec(), text.to_owned()))
    }

    fn message(line: &str) -> String {
        parse(line.as_bytes(), &fields()).unwrap_err()
    }

    #[test]
    fn string_and_integer_ids_become_keys() {
        for (line, key) in [
            (r#"{"id":"a b","text":"t"}"#, "a b"),
            (r#"{"id":18446744073709551615,"text":"t"}"#, "18446744073709551615"),
            (r#"{"id":-7,"text":"t"}"#, "-7"),
            (r#"{"id":0,"text":"t"}"#, "0"),
            (r#"{"id":"0","text":"t"}"#, "0"),
        ] {
            let (found, text) = parse(line.as_bytes(), &fields()).unwrap();
            assert_eq!((found.as_slice(), text.as_str()), (key.as_bytes(), "t"), "{line}");
        }
    }

    #[test]
    fn unused_fields_of_any_type_are_skipped() {
        let line = r#"{"a":[{"id":1}],"text":"x\n\u00fc","b":{"text":[]},"c":null,"\u0069d":"k","d":1e400}"#;
        // A number outside the range of floats is valid in an unused field.
        let (key, text) = parse(line.as_bytes(), &fields()).unwrap();
        assert_eq!((key.as_slice(), text.as_str()), (&b"k"[..], "x\n\u{fc}"));
    }

    #[test]
    fn missing_field_is_reported_with_the_fields_present_and_the_option_to_use() {
        assert_eq!(
            message(r#"{"doc_id":1,"text":"t"}"#),
            r#"no field "id"; fields here: "doc_id", "text" (use --id-field NAME)"#
        );
        assert_eq!(
            message(r#"{"id":1,"body":"t"}"#),
            r#"no field "text"; fields here: "id", "body" (use --text-field NAME)"#
        );
        assert_eq!(message("{}"), r#"no field "id"; the object has no fields (use --id-field NAME)"#);
        let ten = message(r#"{"1":0,"2":0,"3":0,"4":0,"5":0,"6":0,"7":0,"8":0,"9":0,"10":0}"#);
        assert!(ten.contains(r#""7", "8", and 2 more (use"#), "{ten}");
        let long = message(&format!(r#"{{"{}":0}}"#, "n".repeat(1000)));
        assert!(long.len() < 150 && long.contains(r#"nnn"..."#), "{long}");
    }

    #[test]
    fn field_of_another_type_is_refused_with_its_type() {
        for (value, said) in [("true", "a boolean"), ("[1,[2]]", "an array"), (r#"{"a":{}}"#, "an object")] {
            let id = message(&format!(r#"{{"id":{value},"text":"t"}}"#));
            assert!(id.starts_with(r#"field "id" is "#), "{id}");
            assert!(id.contains(said) && id.contains("not a string or a number"), "{id}");
            let text = message(&format!(r#"{{"id":1,"text":{value}}}"#));
            assert!(text.starts_with(r#"field "text" is "#), "{text}");
            assert!(text.contains(said) && text.contains(", not a string"), "{text}");
            assert_eq!(text.contains("(--text-field 'text.NAME' takes"), said == "an object", "{text}");
        }
        assert!(message(r#"{"id":null,"text":"t"}"#).starts_with(r#"field "id" is null"#));
        let fraction = message(r#"{"id":1,"text":1.5}"#);
        assert!(fraction.contains("a number with a fraction"), "{fraction}");
        assert_eq!(message(r#"{"id":1,"text":5}"#), r#"field "text" is a number, not a string"#);
    }

    #[test]
    fn number_is_a_key_as_written_and_null_is_an_empty_text() {
        for number in ["1.50", "1e3", "-0", "0.1E+2", "18446744073709551616", "12345678901234567890123"] {
            let line = format!(r#"{{"x":[1],"id":{number},"text":"t"}}"#);
            assert_eq!(parse(line.as_bytes(), &fields()).unwrap().0, number.as_bytes());
        }
        assert_eq!(parse(br#"{"id":1,"text":null}"#, &fields()).unwrap(), (b"1".to_vec(), String::new()));
    }

    #[test]
    fn keys_and_texts_are_read_from_nested_and_several_fields() {
        let line = br#"{"meta":{"url":"u","n":1.0},"title":"T","body":"B","none":null}"#;
        for (id, text, key, said) in [
            ("meta.url", "body", "u", "B"),
            (
                "/meta/n",
                "title,body",
                "1.0",
                "T
B",
            ),
            (
                "meta.url,meta.n",
                "none,title",
                "u,1.0",
                "
T",
            ),
            (
                "meta.url",
                "title,absent,body",
                "u",
                "T

B",
            ),
        ] {
            let fields = Fields::new(id, text, Ids::Field, false, &AttachedFields::default());
            let wanted = (key.as_bytes().to_vec(), said.to_owned());
            assert_eq!(parse(line, &fields).unwrap(), wanted, "{id} {text}");
        }
        for (id, text, said) in [
            ("meta.id", "title", "no field \"meta.id\"; fields here: \"meta\""),
            ("meta.url,row", "title", "no field \"row\""),
            ("meta.url", "a.b", "no field \"a.b\""),
            ("meta", "a.b", "field \"meta\" is an object"),
        ] {
            let fields = Fields::new(id, text, Ids::Field, false, &AttachedFields::default());
            let message = parse(line, &fields).unwrap_err();
            assert!(message.contains(said), "{message}");
        }
    }

    #[test]
    fn a_repeated_field_is_refused() {
        assert_eq!(message(r#"{"id":1,"text":"a","id":1}"#), r#"the field "id" is repeated in the object"#);
        assert_eq!(
            message(r#"{"id":1,"text":"a","te\u0078t":"b"}"#),
            r#"the field "text" is repeated in the object"#
        );
    }

    #[test]
    fn keys_have_1_to_65535_bytes() {
        assert_eq!(message(r#"{"id":"","text":"t"}"#), r#"field "id": the key is empty"#);
        let line = |bytes: usize| format!(r#"{{"id":"{}","text":"t"}}"#, "k".repeat(bytes));
        assert!(parse(line(65_535).as_bytes(), &fields()).is_ok());
        assert!(message(&line(65_536)).contains("the key has 65536 bytes, 65535 is the most"));
    }

    #[test]
    fn invalid_json_is_reported_with_the_column() {
        assert_eq!(message(r#"{"id":1,"text":"t",}"#), "invalid JSON at column 20: trailing comma");
        assert_eq!(message(r#"{"id":1 "text":"t"}"#), "invalid JSON at column 9: expected `,` or `}`");
        let after_object = message(r#"{"id":1,"text":"t"} x"#);
        assert_eq!(after_object, "invalid JSON at column 21: trailing characters");
        // Invalid JSON is reported before a field of the wrong type.
        assert!(message(r#"{"id":null,"text":"t"#).starts_with("invalid JSON"));
    }

    #[test]
    fn lone_surrogate_is_reported_with_its_escape() {
        for (text, escape) in [
            ("a\\ud800", "\\ud800"),
            ("\\uD83D x", "\\uD83D"),
            ("\\udc00b", "\\udc00"),
            ("\\ud800\\u0041", "\\ud800"),
        ] {
            let found = message(&format!("{{\"id\":1,\"text\":\"{text}\"}}"));
            assert!(found.ends_with(&format!(": an escape of half a surrogate pair, {escape}")), "{found}");
        }
    }

    #[test]
    fn json_over_several_lines_is_refused_with_advice() {
        assert!(message("{").ends_with("; each line must hold one whole object, as `jq -c .` writes it"));
        let array = message(r#"[{"id":1,"text":"t"}]"#);
        assert!(array.contains("expected a JSON object; each line must"), "{array}");
    }

    #[test]
    fn bytes_that_are_not_utf8_are_reported_with_their_offset() {
        let mut line = br#"{"id":1,"text":"ab"#.to_vec();
        line.push(0xff);
        line.extend(b"\"}");
        let reason = parse(&line, &fields()).unwrap_err();
        assert!(
            reason.starts_with("not UTF-8: byte 0xff at offset 18 of the line (--encoding LABEL"),
            "{reason}"
        );
    }

    #[test]
    fn invalid_utf8_is_replaced_on_request_and_counted() {
        let mut line = br#"{"id":"k","text":"a"#.to_vec();
        line.extend(b"\xe4\xb8\xffb\"}");
        let mut buffers = LineBuffers::default();
        let mut parse = |line: &[u8], invalid, charset| {
            let parsed = super::parse(line, &fields(), invalid, charset, &mut buffers)?;
            let (Content::Text(text) | Content::Opaque { text, .. }) = parsed.content else {
                panic!("no text")
            };
            Ok((text.to_owned(), parsed.content.identity().into_owned(), parsed.is_lossy))
        };
        let (text, identity, is_lossy) = parse(&line, InvalidUtf8::Replace, None).unwrap();
        assert_eq!((&*text, is_lossy), ("a\u{fffd}\u{fffd}b", true));
        let other = [&line[..19], b"\xe4\xb9\xffb\"}"].concat();
        let (same, other, _) = parse(&other, InvalidUtf8::Replace, None).unwrap();
        assert_eq!(same, text);
        assert_ne!(identity, other, "other bytes are another text");
        assert_eq!(parse(&line, InvalidUtf8::Skip, None), Err(LineError::Skipped));
        let sound = br#"{"id":"k","text":"a"}"#;
        let text = |text: &str| Ok((text.to_owned(), text.as_bytes().to_vec(), false));
        assert_eq!(parse(sound, InvalidUtf8::Replace, None), text("a"));
        // Invalid bytes in another field do not make the text lossy.
        let elsewhere = b"{\"id\":\"k\",\"x\":\"\xff\",\"text\":\"a\"}";
        assert_eq!(parse(elsewhere, InvalidUtf8::Replace, None), text("a"));
        let halves = br#"{"id":"k","text":"a\ud800\ud83d\ude00"}"#;
        assert_eq!(parse(halves, InvalidUtf8::Replace, None).unwrap().0, "a\u{fffd}\u{1f600}");
        let cyrillic = b"{\"id\":\"k\",\"text\":\"\xcf\xf0\"}";
        assert_eq!(parse(cyrillic, InvalidUtf8::Error, Charset::named("windows-1251")), text("Пр"));
        // No replacement character is a quote, so invalid bytes cannot end a string.
        line.truncate(22);
        assert!(parse(&line, InvalidUtf8::Replace, None).is_err());
    }

    #[test]
    fn features_are_read_from_their_field_and_errors_name_it() {
        let fields =
            Fields { id: "id".to_owned(), text: "ops".to_owned(), features: true, ..Default::default() };
        let mut buffers = LineBuffers::default();
        let mut of =
            |line: &str| match super::parse(line.as_bytes(), &fields, InvalidUtf8::Error, None, &mut buffers)
            {
                Ok(ParsedObject { key, content: Content::Features(features), .. }) => {
                    Ok((key.unwrap().to_vec(), features.canonical()))
                }
                Ok(other) => panic!("{other:?}"),
                Err(LineError::Reason(reason) | LineError::Missing(reason)) => Err(reason),
                Err(LineError::Skipped) => panic!("{line}"),
            };
        assert_eq!(of(r#"{"id":1,"ops":["a","b"]}"#), of(r#"{"x":[{}],"ops":["b","a"],"id":"1"}"#));
        for (line, wanted) in [
            (r#"{"id":1,"ops":"t"}"#, r#"field "ops" is a string, not an array"#),
            (r#"{"id":1,"ops":[null]}"#, r#"field "ops" has null as element 0"#),
            (r#"{"id":1,"ops":[],"ops":[]}"#, r#"the field "ops" is repeated in the object"#),
            (r#"{"id":1,"ops":[}"#, "invalid JSON at column 16"),
            (r#"{"id":[],"ops":[]}"#, r#"field "id" is an array"#),
            (r#"{"id":1,"ops":{"a":1e400}}"#, "invalid JSON at column 24: number out of range"),
        ] {
            let reason = of(line).unwrap_err();
            assert!(reason.starts_with(wanted), "{line}: {reason}");
        }
    }
}
