//! Describes the values of a URL part that differs between the URLs of one page: their shape and kind.

use std::fmt;

/// The character set of a value. The sets are nested: each contains all previous sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Charset {
    /// `0-9`.
    Decimal,
    /// `0-9a-f`.
    Hexadecimal,
    /// `0-9a-z`.
    Base36,
    /// `0-9A-Za-z`.
    Base62,
    /// All characters.
    Any,
}

impl Charset {
    /// All character sets, the narrowest first.
    const ALL: [Self; 5] = [Self::Decimal, Self::Hexadecimal, Self::Base36, Self::Base62, Self::Any];

    /// Returns the name of the character set in a table of rules.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Decimal => "decimal",
            Self::Hexadecimal => "hexadecimal",
            Self::Base36 => "base-36",
            Self::Base62 => "base-62",
            Self::Any => "any",
        }
    }

    fn has(self, byte: u8) -> bool {
        match self {
            Self::Decimal => byte.is_ascii_digit(),
            Self::Hexadecimal => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
            Self::Base36 => byte.is_ascii_digit() || byte.is_ascii_lowercase(),
            Self::Base62 => byte.is_ascii_alphanumeric(),
            Self::Any => true,
        }
    }

    /// Returns the narrowest set that contains all characters of a value.
    fn of(value: &str) -> Self {
        let has_all = |set: &Self| value.bytes().all(|byte| set.has(byte));
        Self::ALL.into_iter().find(has_all).unwrap_or(Self::Any)
    }
}

/// The kind of a URL part, guessed from its name and values. It is shown to users; rules do not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The id of a session or of a user.
    Session,
    /// A number, such as a page number or a counter.
    Counter,
    /// A date, or a time in seconds or milliseconds since 1970.
    Date,
    /// A parameter that records which page or campaign a visitor came from.
    Tracking,
    /// A language code of ISO 639-1, with or without a region.
    Language,
    /// Any other kind.
    Other,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Session, Self::Counter, Self::Date, Self::Tracking, Self::Language, Self::Other];

    /// Returns the name of the kind in a table of rules.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Session => "session id",
            Self::Counter => "counter",
            Self::Date => "date",
            Self::Tracking => "tracking",
            Self::Language => "language",
            Self::Other => "other",
        }
    }
}

/// The shape of the values of a URL part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The character set of the values.
    pub charset: Charset,
    /// Minimum length of a value in bytes.
    pub min: usize,
    /// Maximum length of a value in bytes; `usize::MAX` if unlimited.
    pub max: usize,
    /// The kind of the values.
    pub kind: Kind,
}

impl Shape {
    /// Returns true if a value has this shape.
    #[must_use]
    pub fn has(&self, value: &str) -> bool {
        (self.min..=self.max).contains(&value.len()) && value.bytes().all(|byte| self.charset.has(byte))
    }

    /// Parses the output of [`Display`](fmt::Display).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, form) = text.split_once(": ")?;
        let kind = Kind::ALL.into_iter().find(|one| one.name() == kind)?;
        let (length, charset) = form.split_once(' ')?;
        let charset = Charset::ALL.into_iter().find(|one| one.name() == charset)?;
        let (min, max) = match length.split_once('-') {
            Some((min, max)) => (min.parse().ok()?, max.parse().ok()?),
            None => match length.strip_suffix('+') {
                Some(min) => (min.parse().ok()?, usize::MAX),
                None => (length.parse().ok()?, length.parse().ok()?),
            },
        };
        (min <= max).then_some(Self { charset, min, max, kind })
    }
}

/// Formats a shape: `session id: 12 base-62`, `counter: 1+ decimal`, `other: 2-5 any`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.kind.name())?;
        match (self.min, self.max) {
            (min, max) if min == max => write!(f, "{min}")?,
            (min, usize::MAX) => write!(f, "{min}+")?,
            (min, max) => write!(f, "{min}-{max}")?,
        }
        write!(f, " {}", self.charset.name())
    }
}

/// Names of parameters that record which page or campaign a visitor came from.
const TRACKING: [&str; 34] = [
    "_ga",
    "_gl",
    "_hsenc",
    "_hsmi",
    "aff",
    "affid",
    "affiliate",
    "campaign",
    "campaignid",
    "cmp",
    "cmpid",
    "dclid",
    "fbclid",
    "from",
    "gbraid",
    "gclid",
    "gclsrc",
    "icid",
    "igshid",
    "mc_cid",
    "mc_eid",
    "mkt_tok",
    "msclkid",
    "partner",
    "ref",
    "referer",
    "referrer",
    "source",
    "src",
    "tag",
    "trk",
    "twclid",
    "wbraid",
    "yclid",
];
/// Names of parameters that contain the id of a session or a user.
const SESSION: [&str; 22] = [
    "aspsessionid",
    "cfid",
    "cftoken",
    "jsessionid",
    "oscsid",
    "phpsessid",
    "s",
    "ses",
    "sess",
    "session",
    "session_id",
    "sessid",
    "sessionid",
    "sid",
    "token",
    "uid",
    "userid",
    "visit",
    "visitid",
    "visitor",
    "xtc",
    "zenid",
];
/// The language codes of ISO 639-1, two letters each.
const LANGUAGES: &str = "aaabaeafakamanarasavayazbabebgbhbibmbnbobrbscacechcocrcscucvcydadedvdzeeeleneoeseteufafffifjfo\
    frfygaglgngugvhahehihohrhthuhyhziaidieigiiikioisitiujajvkakgkikjkkklkmknkokrkskukvkwkylalblglilnloltlulvmgmhmimkml\
    mnmrmsmtmynanbndnenlnonrnvnyocojomorospapiplpsptqurmrnrorurwsascsdsesgsiskslsmsnsosqsrssstsusvswtatetgthtitktltn\
    totrtstttwtyugukuruzvevivovwaweowoxhyiyozazhzu";

/// Statistics of the values of a URL part, from which its [`Shape`] is computed.
#[derive(Clone, Debug)]
pub(crate) struct Summary {
    charset: Charset,
    min: usize,
    max: usize,
    values: usize,
    dates: usize,
    languages: usize,
    /// Number of values that mix digits and letters, or upper and lower case.
    mixed: usize,
}

impl Summary {
    pub(crate) fn new() -> Self {
        let (min, max) = (usize::MAX, 0);
        Self { charset: Charset::Decimal, min, max, values: 0, dates: 0, languages: 0, mixed: 0 }
    }

    pub(crate) fn add(&mut self, value: &str) {
        let charset = Charset::of(value);
        // Character sets are nested, so the greater of two sets contains both.
        self.charset = self.charset.max(charset);
        (self.min, self.max) = (self.min.min(value.len()), self.max.max(value.len()));
        self.values += 1;
        self.dates += usize::from(is_date(value));
        self.languages += usize::from(is_language(value));
        let has = |is: fn(&u8) -> bool| value.as_bytes().iter().any(is);
        let kinds = usize::from(has(u8::is_ascii_digit))
            + usize::from(has(u8::is_ascii_lowercase))
            + usize::from(has(u8::is_ascii_uppercase));
        self.mixed += usize::from(kinds > 1);
    }

    /// Returns the shape of all values of the part. `name` is the parameter's name, if the part is a parameter. If the
    /// values have different lengths, the maximum length is unlimited, because counters grow.
    pub(crate) fn shape(&self, name: Option<&str>) -> Shape {
        let kind = self.kind(name);
        let max = if self.min == self.max { self.max } else { usize::MAX };
        let min = if self.min == self.max || kind == Kind::Session { self.min } else { self.min.min(1) };
        Shape { charset: self.charset, min, max, kind }
    }

    fn kind(&self, name: Option<&str>) -> Kind {
        let all = |number: usize| number == self.values;
        if let Some(name) = name.map(str::to_ascii_lowercase) {
            if name.starts_with("utm_") || TRACKING.contains(&&*name) {
                return Kind::Tracking;
            }
            if SESSION.contains(&&*name) || name.starts_with("aspsessionid") {
                return Kind::Session;
            }
        }
        if all(self.dates) {
            Kind::Date
        } else if all(self.languages) {
            Kind::Language
        } else if self.charset == Charset::Decimal && (self.min != self.max || self.max < 8) {
            Kind::Counter
        } else if self.min >= 8 && self.charset <= Charset::Base62 && 2 * self.mixed >= self.values {
            Kind::Session
        } else if self.charset == Charset::Decimal {
            Kind::Counter
        } else {
            Kind::Other
        }
    }
}

/// Returns true if the bytes begin with a date `YYYY-MM-DD` that is not followed by a letter or digit.
pub(crate) fn is_dashed_date(bytes: &[u8]) -> bool {
    let Some(date) = bytes.get(..10) else { return false };
    let ends = bytes.get(10).is_none_or(|byte| !byte.is_ascii_alphanumeric());
    ends && date[4] == b'-' && date[7] == b'-' && is_day(&[&date[..4], &date[5..7], &date[8..]].concat())
}

/// Returns true if `digits` is a date `YYYYMMDD` of the years 1970 to 2099. Does not check how many days the month has.
fn is_day(digits: &[u8]) -> bool {
    let Some(number) = std::str::from_utf8(digits).ok().and_then(|text| text.parse::<u32>().ok()) else {
        return false;
    };
    let (year, month, day) = (number / 10_000, number / 100 % 100, number % 100);
    digits.len() == 8 && (1970..2100).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day)
}

/// Returns true if a value is a date, or a time from September 2001 to the end of 2099, in seconds or milliseconds since
/// 1970.
fn is_date(value: &str) -> bool {
    let bytes = value.as_bytes();
    if is_dashed_date(bytes) && bytes.len() == 10 || is_day(bytes) {
        return true;
    }
    let seconds = match value.len() {
        10 => value.parse::<u64>(),
        13 => value.parse::<u64>().map(|milliseconds| milliseconds / 1000),
        _ => return false,
    };
    seconds.is_ok_and(|seconds| (1_000_000_000..4_102_444_800).contains(&seconds))
}

/// Returns true if a value is a language code, such as `en`, `pt-BR` or `zh_TW`.
fn is_language(value: &str) -> bool {
    let (language, region) = value.split_once(['-', '_']).map_or((value, None), |(l, r)| (l, Some(r)));
    let is_region = |region: &str| region.len() == 2 && region.bytes().all(|byte| byte.is_ascii_alphabetic());
    let language = language.to_ascii_lowercase();
    let is_known = LANGUAGES.as_bytes().chunks(2).any(|one| one == language.as_bytes());
    is_known && region.is_none_or(is_region)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: Option<&str>, values: &[&str]) -> Shape {
        let mut summary = Summary::new();
        for value in values {
            summary.add(value);
        }
        summary.shape(name)
    }

    #[test]
    fn kinds_of_values_are_recognized_and_shapes_round_trip() {
        for (name, values, wanted) in [
            (None, &["fXyiE5bZS43a", "LcNLKgc7bMgq"][..], "session id: 12 base-62"),
            (None, &["1", "22", "333"], "counter: 1+ decimal"),
            (None, &["20240131", "20230228"], "date: 8 decimal"),
            (None, &["2024-01-31", "2023-02-28"], "date: 10 any"),
            (Some("t"), &["1700000000", "1600000000"], "date: 10 decimal"),
            (Some("utm_source"), &["mail", "feed9"], "tracking: 1+ base-36"),
            (Some("PHPSESSID"), &["a1", "b2"], "session id: 2 hexadecimal"),
            (None, &["en", "de", "pt-BR"], "language: 1+ any"),
            (None, &["red", "green"], "other: 1+ base-36"),
        ] {
            let shape = shape(name, values);
            assert_eq!(shape.to_string(), wanted, "{values:?}");
            assert_eq!(Shape::parse(wanted), Some(shape));
            assert!(values.iter().all(|value| shape.has(value)));
        }
        assert!(
            LANGUAGES.len().is_multiple_of(2) && is_language("zu") && is_language("aa") && !is_language("xx")
        );
    }

    #[test]
    fn invalid_shapes_are_refused() {
        for text in ["", "counter", "counter: 1", "counter: 1 x", "x: 1 decimal", "counter: 3-2 decimal"] {
            assert_eq!(Shape::parse(text), None, "{text}");
        }
    }
}
