//! 64-bit fingerprints in a field of a record: perceptual hashes of images or sounds, or simhashes from another system.
//! Such documents are not sketched; they are compared by the Hamming distance of their fingerprints.
//!
//! | form | written as | value |
//! |---|---|---|
//! | `hex` | 16 hexadecimal digits, or `0x` and 1 to 16 | the number |
//! | `decimal` | 0 to 18446744073709551615 | the number |
//! | `signed` | -9223372036854775808 to 9223372036854775807 | the bits of the number in two's complement |
//! | `bits` | 64 zeros and ones | the first is the highest bit |
//! | `auto` | a string that is valid in exactly one of these forms | as in that form |
//!
//! A JSON number, or a number in an integer column, is decimal; for numbers that are not negative, `decimal` and
//! `signed` give the same value. A string of 16 decimal digits could be `hex` or `decimal`, so `auto` rejects it. Every
//! other string is valid in at most one form, because hexadecimal digits without `0x` must be exactly 16.

use std::fmt;
use std::str::FromStr;

/// The format of fingerprints in their field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FingerprintForm {
    /// Any of the other formats. A string that is valid in two formats is an error.
    #[default]
    Auto,
    /// 16 hexadecimal digits, or `0x` and 1 to 16 hexadecimal digits.
    Hex,
    /// An unsigned decimal number.
    Decimal,
    /// A signed decimal number in two's complement. Databases without unsigned types store fingerprints in this format.
    Signed,
    /// 64 zeros and ones, the highest bit first.
    Bits,
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
    pub const ALL: [Self; 5] = [Self::Auto, Self::Hex, Self::Decimal, Self::Signed, Self::Bits];

    /// Returns the name of the format.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Hex => "hex",
            Self::Decimal => "decimal",
            Self::Signed => "signed",
            Self::Bits => "bits",
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
                "16 hexadecimal digits, 0x and up to 16 of them, a number from -2^63 to 2^64-1, or 64 zeros and ones"
            }
            Self::Hex => "up to 16 hexadecimal digits, with or without 0x before them",
            Self::Decimal => "a number from 0 to 18446744073709551615",
            Self::Signed => "a number from -9223372036854775808 to 9223372036854775807",
            Self::Bits => "64 zeros and ones",
        }
    }

    /// Parses a fingerprint in time linear in the length of the string. [`FingerprintForm::Auto`] rejects 16 decimal
    /// digits, which are valid as `hex` and as `decimal`.
    ///
    /// # Errors
    ///
    /// The string is not in this format or, with [`FingerprintForm::Auto`], is valid in two formats. The message shows
    /// the expected format and the string.
    pub fn parse(self, written: &str) -> Result<u64, String> {
        let found = match self {
            Self::Hex => hex(written, 1),
            Self::Decimal => decimal(written),
            Self::Signed => signed(written),
            Self::Bits => bits(written),
            Self::Auto => {
                if written.len() == HEX_DIGITS && written.bytes().all(|byte| byte.is_ascii_digit()) {
                    return Err(format!(
                        "{written:?} can be hexadecimal and decimal: say which with --fingerprint-field hex:FIELD or decimal:FIELD"
                    ));
                }
                hex(written, HEX_DIGITS)
                    .or_else(|| decimal(written))
                    .or_else(|| signed(written))
                    .or_else(|| bits(written))
            }
        };
        found.ok_or_else(|| {
            let advice = match self {
                Self::Auto if hex(written, 1).is_some() => "; hex:FIELD takes digits without leading zeros",
                _ if written.len() > HEX_DIGITS && written.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
                    "; fingerprints have 64 bits, so a longer hash has to be shortened before"
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
    pub(crate) fn parse_number(self, digits: &str) -> Result<u64, String> {
        let found = match self {
            Self::Hex | Self::Bits => None,
            Self::Decimal => decimal(digits),
            Self::Signed => signed(digits),
            Self::Auto => decimal(digits).or_else(|| signed(digits)),
        };
        found.ok_or_else(|| self.refused(&format!("the number {digits}")))
    }

    fn refused(self, found: &str) -> String {
        let form = self.name();
        format!("expected {}, found {found} (--fingerprint-field {form}:FIELD)", self.expected())
    }
}

/// Formats a fingerprint in the format of [`FingerprintForm::Hex`].
pub(crate) fn written(fingerprint: u64) -> String {
    format!("0x{fingerprint:016x}")
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

/// Parses up to 16 hexadecimal digits; without `0x` before them, at least `digits_min`.
fn hex(written: &str, digits_min: usize) -> Option<u64> {
    let marked = written.strip_prefix("0x").or_else(|| written.strip_prefix("0X"));
    let (digits, digits_min) = marked.map_or((written, digits_min), |digits| (digits, 1));
    if !(digits_min..=HEX_DIGITS).contains(&digits.len()) {
        return None;
    }
    // `from_str_radix` accepts a sign, so digits are checked here.
    let are_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16).ok().filter(|_| are_digits)
}

fn decimal(written: &str) -> Option<u64> {
    written.parse().ok().filter(|_| written.bytes().all(|byte| byte.is_ascii_digit()))
}

fn signed(written: &str) -> Option<u64> {
    let digits = written.strip_prefix('-').unwrap_or(written);
    let number: Option<i64> =
        written.parse().ok().filter(|_| digits.bytes().all(|byte| byte.is_ascii_digit()));
    number.map(i64::cast_unsigned)
}

fn bits(written: &str) -> Option<u64> {
    let are_bits = written.len() == 64 && written.bytes().all(|byte| b"01".contains(&byte));
    u64::from_str_radix(written, 2).ok().filter(|_| are_bits)
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
        ] {
            let found = FingerprintForm::named(form).unwrap().parse(written);
            assert_eq!(found.clone().ok(), value, "{form} {written}: {found:?}");
        }
        let both = FingerprintForm::Auto.parse("1000000000000000").unwrap_err();
        assert!(both.contains("--fingerprint-field hex:FIELD or decimal:FIELD"), "{both}");
        let short = FingerprintForm::Auto.parse("fff").unwrap_err();
        assert!(short.ends_with("; hex:FIELD takes digits without leading zeros"), "{short}");
        let pdq = FingerprintForm::Auto.parse(&"0f".repeat(32)).unwrap_err();
        assert!(pdq.ends_with("so a longer hash has to be shortened before"), "{pdq}");
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
                value,
                "{form} {digits}"
            );
        }
    }

    #[test]
    fn written_fingerprints_are_read_back() {
        for fingerprint in [0, 1, 0x1000_0000_0000_0000, u64::MAX] {
            assert_eq!(FingerprintForm::Hex.parse(&written(fingerprint)), Ok(fingerprint));
        }
    }
}
