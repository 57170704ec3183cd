//! Fingerprints in a field of a record: perceptual hashes of images or sounds, or simhashes from another system. Such
//! documents are not sketched; they are compared by the Hamming distance of their fingerprints, which must have the same
//! number of bits.
//!
//! | form | written as | value |
//! |---|---|---|
//! | `hex` | 16, 32, 48, 64, 96 or 128 hexadecimal digits, with or without `0x`, or `0x` and 1 to 16 | the number |
//! | `decimal` | 0 to 18446744073709551615 | the number |
//! | `signed` | -9223372036854775808 to 9223372036854775807 | the bits of the number in two's complement |
//! | `bits` | 64, 128, 192, 256, 384 or 512 zeros and ones | the first is the highest bit |
//! | `base64` | 12, 24, 32, 44, 64 or 88 characters of the alphabet with `+` and `/`, with `=` at the end | the bytes |
//! | `bytes` | the bytes themselves, in a column of bytes | the first byte has the highest bits |
//! | `auto` | a string that is valid in exactly one of these forms | as in that form |
//!
//! A JSON number, or a number in an integer column, is decimal; for numbers that are not negative, `decimal` and
//! `signed` give the same value. A string of 16 decimal digits could be `hex` or `decimal`, and one of 128 zeros and ones
//! `hex` or `bits`, so `auto` rejects it; 64 zeros and ones are `bits`. `auto` reads `base64` only with a `=`: 32 and 64
//! characters have none and could be `hex`. Every other string is valid in at most one form.
//! A column of bytes of fixed length is read like `bytes` in any form.

use std::fmt;
use std::str::FromStr;

use base64::Engine;
use base64::prelude::BASE64_STANDARD as STANDARD;
pub use twindex::Code;
#[cfg(test)]
use twindex::sketch::CODE_WIDTHS;

/// The format of fingerprints in their field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FingerprintForm {
    /// Any of the other formats. A string that is valid in two formats is an error.
    #[default]
    Auto,
    /// 16, 32, 48, 64, 96 or 128 hexadecimal digits, with or without `0x`, or 1 to 16.
    Hex,
    /// An unsigned decimal number.
    Decimal,
    /// A signed decimal number in two's complement. Databases without unsigned types store fingerprints in this format.
    Signed,
    /// Zeros and ones, the highest bit first.
    Bits,
    /// The bytes in Base64 (RFC 4648, section 4), with padding.
    Base64,
    /// The bytes of a column of bytes.
    Bytes,
}

/// A field of fingerprints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FingerprintField {
    /// The format of the fingerprints.
    pub form: FingerprintForm,
    /// The name of the field.
    pub field: String,
}

/// Parses `FIELD` or `FORM:FIELD`.
impl FromStr for FingerprintField {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let form =
            text.split_once(':').and_then(|(form, field)| Some((FingerprintForm::named(form)?, field)));
        let (form, field) = form.unwrap_or((FingerprintForm::Auto, text));
        if field.is_empty() {
            return Err(format!("expected FIELD or FORM:FIELD, found {text:?}"));
        }
        Ok(Self { form, field: field.to_owned() })
    }
}

impl fmt::Display for FingerprintField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A name with a colon is written with its form. Otherwise, the part before the colon could be parsed as a form.
        if self.form != FingerprintForm::Auto || self.field.contains(':') {
            write!(f, "{}:", self.form.name())?;
        }
        f.write_str(&self.field)
    }
}

/// Maximum number of characters of an invalid fingerprint that a message shows.
const CHARACTERS_SHOWN: usize = 70;

impl FingerprintForm {
    /// All formats.
    pub const ALL: [Self; 7] =
        [Self::Auto, Self::Hex, Self::Decimal, Self::Signed, Self::Bits, Self::Base64, Self::Bytes];

    /// Returns the name of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Hex => "hex",
            Self::Decimal => "decimal",
            Self::Signed => "signed",
            Self::Bits => "bits",
            Self::Base64 => "base64",
            Self::Bytes => "bytes",
        }
    }

    /// Returns the format with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// Returns a description of the strings in this format, for error messages.
    fn expected(self) -> &'static str {
        match self {
            Self::Auto => {
                "16, 32, 48, 64, 96 or 128 hexadecimal digits, 0x and up to 16 of them, a number from -2^63 to 2^64-1, 64, 128, \
                 192, 256, 384 or 512 zeros and ones, or 12, 24, 44 or 88 characters of base64"
            }
            Self::Hex => {
                "up to 16 hexadecimal digits, or 32, 48, 64, 96 or 128, with or without 0x before them"
            }
            Self::Decimal => "a number from 0 to 18446744073709551615",
            Self::Signed => "a number from -9223372036854775808 to 9223372036854775807",
            Self::Bits => "64, 128, 192, 256, 384 or 512 zeros and ones",
            Self::Base64 => "12, 24, 32, 44, 64 or 88 characters of base64, with = at the end as padding",
            Self::Bytes => "8, 16, 24, 32, 48 or 64 bytes, in a column of bytes",
        }
    }

    /// Parses a fingerprint in time linear in the length of the string. [`FingerprintForm::Auto`] rejects 16 decimal
    /// digits, which are valid as `hex` and as `decimal`.
    ///
    /// # Errors
    ///
    /// The string is not in this format or, with [`FingerprintForm::Auto`], is valid in two formats. The message shows
    /// the expected format and the string.
    pub fn parse(self, written: &str) -> Result<Code, String> {
        let found = match self {
            Self::Hex => hex(written, 1),
            Self::Decimal => decimal(written),
            Self::Signed => signed(written),
            Self::Bits => bits(written),
            Self::Base64 => base64(written),
            Self::Bytes => None,
            Self::Auto => {
                let other = match written.len() {
                    HEX_DIGITS if written.bytes().all(|byte| byte.is_ascii_digit()) => Some("decimal"),
                    HEX_DIGITS_MAX if bits(written).is_some() => Some("bits"),
                    _ => None,
                };
                if let Some(other) = other {
                    return Err(format!(
                        "{:?} can be hexadecimal and {other}: say which with --fingerprint-field hex:FIELD or {other}:FIELD",
                        ValueExcerpt(written)
                    ));
                }
                bits(written)
                    .or_else(|| hex(written, HEX_DIGITS))
                    .or_else(|| decimal(written))
                    .or_else(|| signed(written))
                    .or_else(|| base64(written).filter(|_| written.ends_with('=')))
            }
        };
        found.ok_or_else(|| {
            let advice = match self {
                Self::Auto if hex(written, 1).is_some() => "; hex:FIELD takes digits without leading zeros",
                Self::Auto if base64(written).is_some() => {
                    "; base64:FIELD takes 32 and 64 characters of base64"
                }
                _ => "",
            };
            format!("{}{advice}", self.refused(&format!("{:?}", ValueExcerpt(written))))
        })
    }

    /// Parses a fingerprint from the decimal digits of a number.
    ///
    /// # Errors
    ///
    /// The format does not accept numbers, or the number is out of range.
    pub(crate) fn parse_number(self, digits: &str) -> Result<Code, String> {
        let found = match self {
            Self::Hex | Self::Bits | Self::Base64 | Self::Bytes => None,
            Self::Decimal => decimal(digits),
            Self::Signed => signed(digits),
            Self::Auto => decimal(digits).or_else(|| signed(digits)),
        };
        found.ok_or_else(|| self.refused(&format!("the number {digits}")))
    }

    /// Reads a fingerprint from bytes, the highest first.
    ///
    /// # Errors
    ///
    /// No fingerprint has as many bytes.
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Code, String> {
        Code::of_bytes(bytes).ok_or_else(|| Self::Bytes.refused(&format!("{} bytes", bytes.len())))
    }

    fn refused(self, found: &str) -> String {
        let form = self.name();
        format!("expected {}, found {found} (--fingerprint-field {form}:FIELD)", self.expected())
    }
}

/// Formats a fingerprint in the format of [`FingerprintForm::Hex`].
pub(crate) fn written(fingerprint: Code) -> String {
    format!("0x{fingerprint}")
}

/// Displays the start of an invalid value in a message.
struct ValueExcerpt<'s>(&'s str);

impl fmt::Debug for ValueExcerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.0.chars().take(CHARACTERS_SHOWN).collect();
        let dots = if shown.len() < self.0.len() { " ..." } else { "" };
        write!(f, "{shown:?}{dots}")
    }
}

const HEX_DIGITS: usize = 16;
const HEX_DIGITS_MAX: usize = Code::WORDS_MAX * HEX_DIGITS;

/// Parses up to 16 hexadecimal digits, or as many as a longer fingerprint has; without `0x` before them, at least
/// `digits_min`.
fn hex(written: &str, digits_min: usize) -> Option<Code> {
    let marked = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"));
    let (digits, digits_min) = marked.map_or((written, digits_min), |digits| (digits, 1));
    if digits.len() < digits_min {
        return None;
    }
    words(digits, HEX_DIGITS, 16)
}

/// Parses words of `digits` digits each. A single word may have fewer, but not 0.
fn words(written: &str, digits: usize, radix: u32) -> Option<Code> {
    let word = |word: &[u8]| {
        // `from_str_radix` accepts a sign, so digits are checked here.
        let are_digits = word.iter().all(|&byte| char::from(byte).is_digit(radix));
        let is_whole = word.len() == digits || word.len() == written.len();
        str::from_utf8(word)
            .ok()
            .filter(|_| are_digits && is_whole)
            .and_then(|word| u64::from_str_radix(word, radix).ok())
    };
    let words: Option<Vec<u64>> =
        written.as_bytes().chunks(digits).take(Code::WORDS_MAX + 1).map(word).collect();
    Code::of_words(&words?)
}

fn decimal(written: &str) -> Option<Code> {
    let number: Option<u64> =
        written.parse().ok().filter(|_| written.bytes().all(|byte| byte.is_ascii_digit()));
    number.map(Code::from)
}

fn signed(written: &str) -> Option<Code> {
    let digits = written.strip_prefix('-').unwrap_or(written);
    let number: Option<i64> =
        written.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number.map(|number| number.cast_unsigned().into())
}

fn base64(written: &str) -> Option<Code> {
    // Decoding takes memory for as many bytes as the string has.
    let is_short = written.len() <= Code::WORDS_MAX * 11;
    let bytes = is_short.then(|| STANDARD.decode(written).ok()).flatten()?;
    Code::of_bytes(&bytes)
}

fn bits(written: &str) -> Option<Code> {
    if written.len() < 64 { None } else { words(written, 64, 2) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_fingerprint_format_accepts_only_its_own_strings() {
        let bits = "1".repeat(63) + "0";
        for (form, written, value) in [
            ("hex", "00000000000000ff", Some(255)),
            ("hex", "FfFfFfFfFfFfFfFf", Some(u64::MAX)),
            ("hex", "0xff", Some(255)),
            ("hex", "0x", None),
            ("hex", "ff", Some(255)),
            ("hex", "", None),
            ("hex", "00000000000000000", None),
            ("hex", "0x00000000000000000", None),
            ("hex", "+000000000000001", None),
            ("hex", "-1", None),
            ("decimal", "18446744073709551615", Some(u64::MAX)),
            ("decimal", "18446744073709551616", None),
            ("decimal", "1000000000000000", Some(1_000_000_000_000_000)),
            ("decimal", "007", Some(7)),
            ("decimal", "-1", None),
            ("decimal", "+1", None),
            ("decimal", " 1", None),
            ("decimal", "", None),
            ("signed", "-9223372036854775808", Some(1 << 63)),
            ("signed", "-1", Some(u64::MAX)),
            ("signed", "9223372036854775807", Some(u64::MAX >> 1)),
            ("signed", "9223372036854775808", None),
            ("signed", "--1", None),
            ("signed", "-", None),
            ("bits", &bits, Some(u64::MAX - 1)),
            ("bits", &bits[1..], None),
            ("bits", "1", None),
            ("auto", &bits, Some(u64::MAX - 1)),
            ("auto", "0X00ff", Some(255)),
            ("auto", "00000000000000fF", Some(255)),
            ("auto", "123456789012345", Some(123_456_789_012_345)),
            ("auto", "12345678901234567", Some(12_345_678_901_234_567)),
            ("auto", "-123456789012345", Some((-123_456_789_012_345_i64).cast_unsigned())),
            ("auto", "1000000000000000", None),
            ("auto", "fff", None),
            ("auto", "", None),
            ("auto", "1e3", None),
            ("base64", "AAAAAAAAAP8=", Some(255)),
            ("base64", "AAAAAAAAAP9=", None), // bits after the last byte
            ("base64", "AAAAAAAA-_8=", None),
            ("base64", "AAAAAAAAAP8=\n", None),
            ("auto", "AAAAAAAAAP8=", Some(255)),
            ("auto", "AAAAAAAAAP8", None),
        ] {
            let found = FingerprintForm::named(form).unwrap().parse(written);
            assert_eq!(found.clone().ok(), value.map(Code::from), "{form} {written}: {found:?}");
        }
        let both = FingerprintForm::Auto.parse("1000000000000000").unwrap_err();
        assert!(both.contains("--fingerprint-field hex:FIELD or decimal:FIELD"), "{both}");
        let short = FingerprintForm::Auto.parse("fff").unwrap_err();
        assert!(short.ends_with("; hex:FIELD takes digits without leading zeros"), "{short}");
        let unpadded = FingerprintForm::Auto.parse(&"+".repeat(32)).unwrap_err();
        assert!(unpadded.ends_with("; base64:FIELD takes 32 and 64 characters of base64"), "{unpadded}");
        assert_eq!(
            FingerprintForm::Auto.parse(&"ab".repeat(16)),
            FingerprintForm::Hex.parse(&"ab".repeat(16))
        );
        let long = FingerprintForm::Hex.parse(&"g".repeat(1000)).unwrap_err();
        assert!(long.len() < 250 && long.contains("expected up to 16 hexadecimal digits"), "{long}");
    }

    #[test]
    fn integers_are_read_as_decimal_fingerprints_in_every_input_format() {
        for (form, digits, value) in [
            ("auto", "1000000000000000", Some(1_000_000_000_000_000)),
            ("auto", "-1", Some(u64::MAX)),
            ("auto", "18446744073709551615", Some(u64::MAX)),
            ("decimal", "-1", None),
            ("signed", "18446744073709551615", None),
            ("hex", "1000000000000000", None),
            ("bits", "1", None),
        ] {
            assert_eq!(
                FingerprintForm::named(form).unwrap().parse_number(digits).ok(),
                value.map(Code::from),
                "{form} {digits}"
            );
        }
    }

    #[test]
    fn written_fingerprints_are_read_back() {
        for fingerprint in [0, 1, 0x1000_0000_0000_0000, u64::MAX] {
            let fingerprint = Code::from(fingerprint);
            assert_eq!(FingerprintForm::Hex.parse(&written(fingerprint)), Ok(fingerprint));
        }
    }

    #[test]
    fn fingerprints_of_each_width_are_read_in_each_form() {
        for width in (8..1100).step_by(8) {
            let bytes: Vec<u8> = (0..width / 8).map(|byte| (byte * 37 + 0xab) as u8).collect();
            let code = Code::of_bytes(&bytes);
            assert_eq!(code.is_some(), CODE_WIDTHS.contains(&width), "{width}");
            let digits = bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
            let zeros_and_ones = bytes.iter().map(|byte| format!("{byte:08b}")).collect::<Vec<_>>().concat();
            // Up to 16 digits are 64 bits.
            let of_hex = if width < 64 {
                Code::of_bytes(&[vec![0; 8 - width / 8], bytes.clone()].concat())
            } else {
                code
            };
            let marked = format!("0X{digits}");
            let base64 = STANDARD.encode(&bytes);
            let is_padded = base64.ends_with('=');
            for (form, written, value) in [
                ("hex", &digits, of_hex),
                ("hex", &marked, of_hex),
                ("bits", &zeros_and_ones, code),
                ("auto", &digits, code),
                ("auto", &marked, of_hex),
                ("base64", &base64, code),
                ("base64", &base64.trim_end_matches('=').to_owned(), code.filter(|_| !is_padded)),
                ("hex", &base64, None),
                ("auto", &base64, code.filter(|_| is_padded)),
            ] {
                assert_eq!(
                    FingerprintForm::named(form).unwrap().parse(written).ok(),
                    value,
                    "{form} {written}"
                );
            }
            if let Some(code) = code {
                assert_eq!(
                    (code.bits(), code.to_string(), code.to_bytes().len()),
                    (width, digits, width / 8)
                );
                assert_eq!(FingerprintForm::Hex.parse(&written(code)), Ok(code));
            }
        }
        let blank = "0".repeat(128);
        let both = FingerprintForm::Auto.parse(&blank).unwrap_err();
        assert!(both.contains("hex:FIELD or bits:FIELD"), "{both}");
        assert_eq!(
            FingerprintForm::Auto.parse(&blank[..64]),
            Ok(Code::from(0)),
            "as it was before wider ones"
        );
        assert_eq!(FingerprintForm::Hex.parse(&blank).unwrap().bits(), 512);
    }
}
