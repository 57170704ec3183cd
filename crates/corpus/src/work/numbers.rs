//! Formats numbers for messages.

/// Formats a count with thousands separators.
#[must_use]
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Formats a count and its noun, such as `2 documents`. Adds an `s` to `noun` unless the count is 1.
#[must_use]
pub fn counted(number: u64, noun: &str) -> String {
    format!("{} {noun}{}", count(number), if number == 1 { "" } else { "s" })
}

/// Formats a number of bytes in bytes, kB, MB, GB or TB, which are powers of 1000.
#[must_use]
pub fn bytes(number: u64) -> String {
    let mut value = number as f64;
    for unit in ["bytes", "kB", "MB", "GB"] {
        if value < 1000.0 {
            return if unit == "bytes" { format!("{number} bytes") } else { format!("{value:.1} {unit}") };
        }
        value /= 1000.0;
    }
    format!("{value:.1} TB")
}

/// Formats a part of a number of bytes, such as `39.1 of 58.0 MB`.
#[must_use]
pub fn bytes_of(part: u64, whole: u64) -> String {
    let (part, whole) = (bytes(part), bytes(whole));
    match (part.split_once(' '), whole.split_once(' ')) {
        (Some((number, unit)), Some((_, of_whole))) if unit == of_whole => format!("{number} of {whole}"),
        _ => format!("{part} of {whole}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_printed_with_separators() {
        assert_eq!([0, 999, 1000, 1_234_567].map(count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!((counted(1, "pair"), counted(2000, "pair")), ("1 pair".into(), "2,000 pairs".into()));
        assert_eq!(
            [(39, 58), (999, 1000)].map(|(a, b)| bytes_of(a, b)),
            ["39 of 58 bytes", "999 bytes of 1.0 kB"]
        );
        assert_eq!([999, 1000, 56_000_000].map(bytes), ["999 bytes", "1.0 kB", "56.0 MB"]);
    }
}
