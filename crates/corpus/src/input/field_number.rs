//! Numbers in fields, which are compared exactly.

use std::fmt;

/// Base-2 logarithm of the exclusive limit on the magnitude of integers, which are compared exactly.
const INTEGER_BITS: u32 = 116;
/// The type of the number field in messages.
pub(super) const NUMBER_TYPE: &str = "a number";

/// A finite number in a field. Integers and floats are compared by their exact values: 2^53 + 1 is greater than 2^53,
/// and 1 equals 1.0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldNumber(
    /// The high 64 bits are the greatest float that is not above the number, mapped to an integer of the same order.
    /// The low 64 bits are the difference between the number and that float.
    u128,
);

impl FieldNumber {
    /// Converts an integer; `None` if its magnitude is 2^116 or more.
    #[must_use]
    pub fn integer(number: i128) -> Option<Self> {
        if number.unsigned_abs() >> INTEGER_BITS != 0 {
            return None;
        }
        let nearest = number as f64;
        let below = if nearest as i128 > number { nearest.next_down() } else { nearest };
        Some(Self(ordered(below) << 64 | (number - below as i128).unsigned_abs()))
    }

    /// Converts a float; `None` if it is infinite or not a number. -0 becomes 0.
    #[must_use]
    pub fn float(number: f64) -> Option<Self> {
        number.is_finite().then(|| Self(ordered(number + 0.0) << 64))
    }

    /// Parses a number: an integer exactly, any other number as the nearest float.
    ///
    /// # Errors
    ///
    /// The text is not a number, or the number is too large. The error is the description of the expected format.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            let integer = text.parse().ok().and_then(Self::integer);
            return integer
                .ok_or_else(|| format!("an integer between -2^{INTEGER_BITS} and 2^{INTEGER_BITS}"));
        }
        // Excludes the texts for infinity and not-a-number.
        let is_of_digits = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
        match text.parse().ok().filter(|_| is_of_digits).map(Self::float) {
            Some(Some(number)) => Ok(number),
            Some(None) => Err("a number that a float of 64 bits can be".to_owned()),
            None => Err(NUMBER_TYPE.to_owned()),
        }
    }

    /// Returns the greatest float that is not above the number, mapped to 64 bits of the same order. It is the priority
    /// of a document, where the smallest comes first. Integers from 2^53 on that map to the same float have the same
    /// priority.
    #[must_use]
    pub fn priority(self) -> u64 {
        (self.0 >> 64) as u64
    }

    /// Returns all bits; they are in the order of the numbers.
    pub(crate) fn bits(self) -> u128 {
        self.0
    }

    /// Returns all bits as bytes, which [`from_bytes`](Self::from_bytes) reads.
    pub(super) fn to_bytes(self) -> [u8; 16] {
        self.0.to_le_bytes()
    }

    pub(super) fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_le_bytes(bytes))
    }
}

/// Returns the bits of a float, mapped so that their order as integers is the order of the floats.
fn ordered(number: f64) -> u128 {
    let bits = number.to_bits();
    (if bits >> 63 == 0 { bits | 1 << 63 } else { !bits }).into()
}

impl fmt::Display for FieldNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (high, missing) = ((self.0 >> 64) as u64, self.0 as u64);
        let float = f64::from_bits(if high >> 63 == 1 { high ^ 1 << 63 } else { !high });
        let is_integer = float.fract().abs() == 0.0 && float.abs() <= (1_u128 << INTEGER_BITS) as f64;
        if is_integer { write!(f, "{}", float as i128 + i128::from(missing)) } else { write!(f, "{float}") }
    }
}
