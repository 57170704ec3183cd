//! The resources that a job may use.

use std::ffi::OsStr;

use crate::settings::declared::settings;
use crate::settings::value::Value;

/// Default memory budget in bytes. Data that exceeds it is written to scratch files.
pub const MEMORY: usize = 1 << 30;
/// The smallest memory budget in bytes: a smaller one would write a scratch file for every few documents.
pub const MEMORY_MIN: usize = 1 << 16;

settings! {
    /// What a job may use. Results do not depend on it.
    Resources, "Resources" {
        /// Memory budget; data beyond it goes to scratch files
        ///
        /// 64K or more, for example 512M or 4G.
        memory: usize = MEMORY, "SIZE";
        /// Number of threads; by default, all cores
        threads: Option<u16> = None, "N", in 1..=65_535;
    }
}

/// The text form is a size in bytes, with K, M, G or T for powers of 1024.
impl Value for usize {
    fn parse(text: &OsStr) -> Result<Self, String> {
        let text = crate::settings::value::utf8(text)?;
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = match text[digits.len()..].to_ascii_uppercase().trim_end_matches('B').trim_end_matches('I')
        {
            "" => 1_u64,
            "K" => 1 << 10,
            "M" => 1 << 20,
            "G" => 1 << 30,
            "T" => 1 << 40,
            _ => return Err("expected a number and K, M, G or T, for example 512M".into()),
        };
        let (whole, tenths) = digits.split_once('.').unwrap_or((digits, "0"));
        let number = |digits: &str| {
            let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
            digits.parse::<u64>().ok().filter(|_| are_digits)
        };
        // A fraction of bytes is dropped.
        let fraction = number(tenths)
            .zip(10_u64.checked_pow(tenths.len() as u32))
            .map(|(of, ten)| (u128::from(of) * u128::from(unit) / u128::from(ten)) as u64);
        let (Some(whole), Some(fraction)) = (number(whole), fraction) else {
            return Err("expected a number, for example 512M or 1.5G".to_owned());
        };
        match whole.checked_mul(unit).and_then(|size| size.checked_add(fraction)) {
            Some(size) if size < MEMORY_MIN as u64 => Err("expected at least 64K".into()),
            Some(size) => usize::try_from(size).map_err(|_| "more than this machine can address".to_owned()),
            None => Err("too large".into()),
        }
    }

    fn write(&self) -> Vec<String> {
        vec![match *self {
            size if size > 0 && size.is_multiple_of(1 << 30) => format!("{}G", size >> 30),
            size if size > 0 && size.is_multiple_of(1 << 20) => format!("{}M", size >> 20),
            size => size.to_string(),
        }]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_parsed_with_their_units() {
        let parse = |text: &str| usize::parse(OsStr::new(text));
        for (text, size) in [
            ("1048576", 1 << 20),
            ("2048k", 2 << 20),
            ("512M", 512 << 20),
            ("4GiB", 4 << 30),
            ("1GB", 1 << 30),
            ("1.5G", 3 << 29),
            ("0.25m", 1 << 18),
        ] {
            assert_eq!(parse(text), Ok(size), "{text}");
        }
        for bad in
            ["", "M", "1", "63k", "1X", "-1", "1.5", "1.G", ".5G", "1.+5G", "1.5.0G", "99999999999T", "ü"]
        {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
