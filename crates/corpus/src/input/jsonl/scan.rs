//! Parses common JSON lines fast: objects with a key that is a string or an integer, and a text that is a string.
//!
//! A line is scanned at several bytes per nanosecond. Vector search finds runs without escapes; a run is copied at
//! once, or borrowed if the whole text is one run. For any other line (a control character, an escape in a field name,
//! a repeated field, deep nesting, invalid JSON), [`scan`] returns `None`, and the complete JSON parser reads the line.
//! So [`scan`] must accept only lines that the parser accepts, and return the same values. Tests compare the two.

use memchr::memchr2;
use twindex_kernel::{Unescaped, simple_escape, vectorized};

use crate::input::fields::record::Fields;

/// Maximum nesting depth of objects and arrays: one bit of a word stores each level. The parser handles deeper lines.
const DEPTH_MAX: u32 = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Scanned {
    /// The key; `None` if the line has no key field.
    pub(crate) key: Option<ScannedValue>,
    pub(crate) text: ScannedValue,
}

/// The value of a field: a range of the line, or unescaped text in the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ScannedValue {
    Borrowed { start: usize, end: usize },
    Unescaped,
}

impl ScannedValue {
    pub(crate) fn of<'s>(self, line: &'s str, buffer: &'s Unescaped) -> &'s str {
        match self {
            Self::Borrowed { start, end } => &line[start..end],
            Self::Unescaped => buffer.as_str(),
        }
    }
}

/// Finds the key and the text of a line; `None` if the line is not common. Writes unescaped values to the buffers.
pub(crate) fn scan(
    line: &str,
    fields: &Fields,
    key_buffer: &mut Unescaped,
    text_buffer: &mut Unescaped,
) -> Option<Scanned> {
    if has_controls(line.as_bytes()) {
        return None;
    }
    let mut scan = Scan { line, bytes: line.as_bytes(), at: 0 };
    let (mut key, mut text) = (None, None);
    scan.blanks();
    scan.token(b'{')?;
    scan.blanks();
    // An object without fields has neither key nor text, so the loop need not handle it.
    loop {
        let name = scan.name()?;
        scan.blanks();
        scan.token(b':')?;
        scan.blanks();
        if name == fields.id {
            let taken = match scan.peek()? {
                b'"' => scan.string(key_buffer)?,
                _ => scan.integer()?,
            };
            if key.replace(taken).is_some() {
                return None;
            }
        } else if name == fields.text {
            if text.replace(scan.string(text_buffer)?).is_some() {
                return None;
            }
        } else {
            scan.pass_value()?;
        }
        scan.blanks();
        match scan.next()? {
            b',' => scan.blanks(),
            b'}' => break,
            _ => return None,
        }
    }
    scan.blanks();
    if scan.at != line.len() {
        return None;
    }
    Some(Scanned { key, text: text? })
}

/// Returns whether the bytes contain a control character. One call checks all strings of the line. The loop has no
/// early exit, so that the compiler can vectorize it.
fn has_controls(bytes: &[u8]) -> bool {
    vectorized(
        #[inline(always)]
        || {
            let (blocks, rest) = bytes.as_chunks::<64>();
            let mut min = [u8::MAX; 64];
            for block in blocks {
                for (min, &byte) in min.iter_mut().zip(block) {
                    *min = (*min).min(byte);
                }
            }
            min.iter().chain(rest).any(|&byte| byte < b' ')
        },
    )
}

/// Number of 8-byte words that are searched inline for a quote or backslash before vector search is called.
const NEAR_WORDS: usize = 10;
/// A word with the value 1 in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// Returns a word whose lowest set bit is the highest bit of the lowest zero byte. Bits above it may be set, too.
#[inline(always)]
fn zero_bytes(word: u64) -> u64 {
    word.wrapping_sub(ONES) & !word & (ONES << 7)
}

/// A position in a line. It is always at a character boundary, because single steps skip only ASCII characters.
struct Scan<'s> {
    line: &'s str,
    bytes: &'s [u8],
    at: usize,
}

impl<'s> Scan<'s> {
    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn token(&mut self, token: u8) -> Option<()> {
        (self.next()? == token).then_some(())
    }

    /// Skips spaces. Other white space of JSON consists of control characters, which common lines do not have.
    fn blanks(&mut self) {
        while self.peek() == Some(b' ') {
            self.at += 1;
        }
    }

    /// Returns the position of the next quote or backslash.
    ///
    /// In prose, a quote or backslash occurs every few dozen bytes, so the first words are searched inline.
    #[inline(always)]
    fn special(&self) -> Option<usize> {
        let rest = self.bytes.get(self.at..)?;
        let (words, _) = rest.as_chunks::<8>();
        let words = &words[..words.len().min(NEAR_WORDS)];
        for (place, word) in words.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            let found =
                zero_bytes(word ^ (ONES * u64::from(b'"'))) | zero_bytes(word ^ (ONES * u64::from(b'\\')));
            if found != 0 {
                return Some(self.at + place * 8 + found.trailing_zeros() as usize / 8);
            }
        }
        let near = words.len() * 8;
        Some(self.at + near + memchr2(b'"', b'\\', &rest[near..])?)
    }

    /// Reads a field name; `None` if it contains escapes.
    fn name(&mut self) -> Option<&'s str> {
        self.token(b'"')?;
        let start = self.at;
        let end = self.special()?;
        self.at = end;
        self.token(b'"')?;
        Some(&self.line[start..end])
    }

    /// Reads the string value of a field, and unescapes it.
    fn string(&mut self, buffer: &mut Unescaped) -> Option<ScannedValue> {
        self.token(b'"')?;
        let start = self.at;
        let end = self.special()?;
        if self.bytes[end] == b'"' {
            self.at = end + 1;
            return Some(ScannedValue::Borrowed { start, end });
        }
        buffer.clear();
        loop {
            let end = buffer.append(self.line, self.at)?;
            self.at = end + 1;
            if self.bytes[end] == b'"' {
                return Some(ScannedValue::Unescaped);
            }
            // Decodes a run of escapes. In ASCII-only JSON, texts in most non-Latin scripts consist of such runs.
            loop {
                buffer.push(self.escape()?);
                if self.peek() != Some(b'\\') {
                    break;
                }
                self.at += 1;
            }
        }
    }

    /// Decodes an escape, starting after its backslash.
    fn escape(&mut self) -> Option<char> {
        let letter = self.next()?;
        if letter != b'u' {
            return simple_escape(letter);
        }
        let first = self.four_digits()?;
        // A lone surrogate is not a character; the parser then reports it.
        if !(0xD800..0xDC00).contains(&first) {
            return char::from_u32(first);
        }
        self.token(b'\\')?;
        self.token(b'u')?;
        let second = self.four_digits()?;
        if !(0xDC00..0xE000).contains(&second) {
            return None;
        }
        char::from_u32(0x1_0000 + ((first - 0xD800) << 10 | (second - 0xDC00)))
    }

    fn four_digits(&mut self) -> Option<u32> {
        let digits = self.bytes.get(self.at..self.at + 4)?;
        self.at += 4;
        digits.iter().try_fold(0, |value, &digit| Some(value << 4 | char::from(digit).to_digit(16)?))
    }

    /// Reads an integer in canonical form that has few enough digits for 64 bits.
    fn integer(&mut self) -> Option<ScannedValue> {
        let start = self.at;
        let negative = self.peek()? == b'-';
        self.at += usize::from(negative);
        let digits = self.digits();
        if digits == 0 || digits > 18 {
            return None;
        }
        if self.bytes[self.at - digits] == b'0' && (digits > 1 || negative) {
            return None; // the parser reads -0 as a float
        }
        if matches!(self.peek(), Some(b'.' | b'e' | b'E')) {
            return None;
        }
        Some(ScannedValue::Borrowed { start, end: self.at })
    }

    /// Skips digits and returns their number.
    fn digits(&mut self) -> usize {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    /// Skips the value of an unused field.
    fn pass_value(&mut self) -> Option<()> {
        // A stack of levels, one bit each: 1 for an object, 0 for an array. The lowest bit is the innermost level.
        let (mut inside, mut depth) = (0_u64, 0_u32);
        loop {
            match self.peek()? {
                opening @ (b'{' | b'[') => {
                    if depth == DEPTH_MAX {
                        return None;
                    }
                    self.at += 1;
                    self.blanks();
                    let object = opening == b'{';
                    let closing = if object { b'}' } else { b']' };
                    if self.peek()? == closing {
                        self.at += 1;
                    } else {
                        inside = inside << 1 | u64::from(object);
                        depth += 1;
                        if object {
                            self.pass_name()?;
                        }
                        continue;
                    }
                }
                b'"' => self.pass_string()?,
                b't' => self.pass_word("true")?,
                b'f' => self.pass_word("false")?,
                b'n' => self.pass_word("null")?,
                _ => self.pass_number()?,
            }
            // After a value, the enclosing array or object continues or ends. If it ends, it is a value in turn.
            loop {
                if depth == 0 {
                    return Some(());
                }
                self.blanks();
                let object = inside & 1 == 1;
                match self.next()? {
                    b',' => {
                        self.blanks();
                        if object {
                            self.pass_name()?;
                        }
                        break;
                    }
                    b'}' if object => {}
                    b']' if !object => {}
                    _ => return None,
                }
                inside >>= 1;
                depth -= 1;
            }
        }
    }

    /// Skips the name of an unused field, and the colon after it.
    fn pass_name(&mut self) -> Option<()> {
        if self.peek()? != b'"' {
            return None;
        }
        self.pass_string()?;
        self.blanks();
        self.token(b':')?;
        self.blanks();
        Some(())
    }

    fn pass_string(&mut self) -> Option<()> {
        self.token(b'"')?;
        loop {
            let end = self.special()?;
            self.at = end + 1;
            if self.bytes[end] == b'"' {
                return Some(());
            }
            self.escape()?;
        }
    }

    fn pass_word(&mut self, word: &str) -> Option<()> {
        let there = self.bytes.get(self.at..)?.starts_with(word.as_bytes());
        self.at += word.len();
        there.then_some(())
    }

    fn pass_number(&mut self) -> Option<()> {
        self.at += usize::from(self.peek()? == b'-');
        let zero = self.peek()? == b'0';
        match self.digits() {
            0 => return None,
            1 => {}
            _ if zero => return None,
            _ => {}
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return None;
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.peek(), Some(b'+' | b'-')));
            if self.digits() == 0 {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::input::jsonl::parse::parse_slowly;

    fn fields() -> Fields {
        Fields { id: "id".to_owned(), text: "text".to_owned(), features: false, ..Default::default() }
    }

    /// Returns the result of [`scan`], after checking that the parser returns the same result.
    #[track_caller]
    fn agree(line: &str) -> Option<(String, String)> {
        let (mut key, mut text) = ("left".to_owned().into(), "over".to_owned().into());
        let found = scan(line, &fields(), &mut key, &mut text);
        let fast = found.and_then(|Scanned { key: k, text: t }| {
            Some((k?.of(line, &key).to_owned(), t.of(line, &text).to_owned()))
        });
        if let Some((key, text)) = &fast {
            // Both functions may return keys that are empty or too long, which their callers reject.
            match parse_slowly(line, &fields()) {
                Ok(slow) => assert_eq!((slow.key.as_ref(), &slow.text), (Some(key), text), "{line}"),
                Err(reason) => assert!(key.is_empty() || key.len() > 65_535, "{line}: {reason:?}"),
            }
        }
        fast
    }

    #[test]
    fn common_lines_take_the_fast_path() {
        for (line, key, text) in [
            (r#"{"id":"k","text":"t"}"#, "k", "t"),
            (r#"  { "text" : "a\nb\t\"\\\/\b\f\r" , "id" : 17 }  "#, "17", "a\nb\t\"\\/\u{8}\u{c}\r"),
            (r#"{"id":-9,"text":"\u00fc\uD83D\ude00\u0000"}"#, "-9", "\u{fc}\u{1f600}\0"),
            (r#"{"id":"\u0041b","text":"ü"}"#, "Ab", "ü"),
            (r#"{"a":[{"id":[1.5e+3,-0,{}],"b":{"c":[]}},"\"",true],"id":"k","b":null,"text":""}"#, "k", ""),
            (r#"{"id":123456789012345678,"text":"x","z":false}"#, "123456789012345678", "x"),
        ] {
            assert_eq!(agree(line), Some((key.to_owned(), text.to_owned())), "{line}");
        }
    }

    #[test]
    fn unusual_or_invalid_lines_are_left_to_the_parser() {
        for line in [
            "",
            "{",
            "{}",
            "[]",
            "null",
            r#"{"id":1}"#,
            r#"{"id":1,"text":"t"} x"#,
            r#"{"id":1,"text":"t",}"#,
            r#"{"id":1,"text":"t","id":1}"#,
            r#"{"id":1,"text":"t","text":"t"}"#,
            r#"{"id":1,"text":"t""#,
            r#"{"i\u0064":1,"text":"t"}"#,
            r#"{"id":1.0,"text":"t"}"#,
            r#"{"id":01,"text":"t"}"#,
            r#"{"id":-0,"text":"t"}"#,
            r#"{"id":1e3,"text":"t"}"#,
            r#"{"id":,"text":"t"}"#,
            r#"{"id":1234567890123456789,"text":"t"}"#,
            r#"{"id":null,"text":"t"}"#,
            r#"{"id":1,"text":2}"#,
            r#"{"id":1,"text":"\ud800"}"#,
            r#"{"id":1,"text":"\ud800\u0041"}"#,
            r#"{"id":1,"text":"\udc00"}"#,
            r#"{"id":1,"text":"\x"}"#,
            r#"{"id":1,"text":"\u12"}"#,
            r#"{"id":1,"text":"\u+123"}"#,
            "{\"id\":1,\"text\":\"a\tb\"}",
            "{\"id\":1,\t\"text\":\"b\"}",
            r#"{"id":1,"text":"t","a":[1,]}"#,
            r#"{"id":1,"text":"t","a":{"b"}}"#,
            r#"{"id":1,"text":"t","a":{b:1}}"#,
            r#"{"id":1,"text":"t","a":[}"#,
            r#"{"id":1,"text":"t","a":[1}}"#,
            r#"{"id":1,"text":"t","a":{"b":1]}"#,
            r#"{"id":1,"text":"t","a":tru}"#,
            r#"{"id":1,"text":"t","a":1.}"#,
            r#"{"id":1,"text":"t","a":.5}"#,
            r#"{"id":1,"text":"t","a":1e}"#,
            r#"{"id":1,"text":"t","a":-}"#,
            r#"{"id":1,"text":"t","a":+1}"#,
            r#"{"id":1,"text":"t","a":007}"#,
            r#"{"id":1 "text":"t"}"#,
            r#"{"id" 1,"text":"t"}"#,
            r#"{"id":1,,"text":"t"}"#,
        ] {
            assert_eq!(agree(line), None, "{line}");
        }
        let nested =
            |depth: usize| format!(r#"{{"a":{}{},"id":1,"text":"t"}}"#, "[".repeat(depth), "]".repeat(depth));
        assert!(agree(&nested(64)).is_some());
        assert_eq!(agree(&nested(66)), None);
        assert!(parse_slowly(&nested(66), &fields()).is_ok());
    }

    /// Generates valid and nearly valid JSON from JSON fragments.
    fn pieces() -> impl Strategy<Value = String> {
        let piece = prop_oneof![
            4 => prop::sample::select(vec![
                "{", "}", "[", "]", ",", ":", "\"", "\\", " ", "\"id\"", "\"text\"", "\"id\":", "\"text\":",
                "\"a\":", "true", "false", "null", "0", "-", "1", "12", ".5", "e3", "\\n", "\\u00e4",
                "\\ud83d\\ude00", "\\ud800", "\\q", "\t", "ü", "\u{1f600}", "\"k\"", "\"a\\nb\"", "{}", "[]",
            ]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
        ];
        prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Into::into),
                prop::collection::vec((any::<String>(), inner), 0..5)
                    .prop_map(|fields| serde_json::Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4096, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn fast_path_agrees_with_the_parser_on_random_json_fragments(line in pieces()) {
            agree(&line);
            agree(&format!("{{\"id\":1,\"text\":\"t\",\"a\":{line}}}"));
            agree(&format!("{{\"id\":1,\"text\":\"{line}\"}}"));
            agree(&format!("{{\"id\":{line},\"text\":\"t\"}}"));
        }

        #[test]
        fn objects_are_read_and_damaged_objects_are_not_misread(
            key in any::<String>(),
            text in any::<String>(),
            before in value(),
            after in value(),
            at in any::<prop::sample::Index>(),
            other in any::<char>(),
        ) {
            let line = format!(
                "{{\"a\":{before},\"id\":{},\"b\":{after},\"text\":{}}}",
                serde_json::to_string(&key).unwrap(),
                serde_json::to_string(&text).unwrap(),
            );
            // serde_json escapes every control character except U+007F.
            prop_assert_eq!(agree(&line), Some((key, text)));
            let mut characters: Vec<char> = line.chars().collect();
            let at = at.index(characters.len());
            characters[at] = other;
            agree(&characters.iter().collect::<String>());
            for with in ['"', '\\', '{', '}', ',', '0'] {
                characters[at] = with;
                agree(&characters.iter().collect::<String>());
            }
            agree(&characters[..at].iter().collect::<String>());
        }
    }
}
