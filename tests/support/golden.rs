//! Parses the golden text files: their escapes and numbers.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part of it")]

/// Decodes the escapes of golden files: `\u{hex}`, and `\repeat{n}` before a text to repeat n times.
pub fn unescape(text: &str) -> String {
    if let Some((times, part)) = text.strip_prefix("\\repeat{").and_then(|text| text.split_once('}')) {
        return unescape(part).repeat(parse(times));
    }
    let mut parts = text.split("\\u{");
    let mut plain = parts.next().unwrap_or("").to_owned();
    for part in parts {
        let (hex, rest) = part.split_once('}').expect("an escape ends");
        let code = u32::from_str_radix(hex, 16).expect("hexadecimal");
        plain.push(char::from_u32(code).expect("a character"));
        plain.push_str(rest);
    }
    plain
}

/// Parses a number; panics if the text is not one.
pub fn parse<T: std::str::FromStr>(number: &str) -> T {
    number.parse().unwrap_or_else(|_| panic!("`{number}` is no number"))
}
