//! Splits a URL into its parts.

use std::borrow::Cow;

/// Maximum length of a URL in bytes. Longer URLs are not parsed, so no rule is learned from them or applied to them.
pub const MAX_BYTES: usize = 8 << 10;

/// The parts of a URL with a host, created by [`parse`](Self::parse). No part is percent-decoded.
///
/// ```
/// use twindex_corpus::urls::Parts;
///
/// let parts = Parts::parse("HTTP://WWW.Example.org:80/a/b;v=2?id=7#top").unwrap();
/// assert_eq!((&*parts.scheme, &*parts.host, parts.port), ("http", "www.example.org", None));
/// assert_eq!((parts.path, parts.params, parts.query), ("/a/b", ";v=2", Some("id=7")));
/// assert_eq!(parts.to_string(), "http://www.example.org/a/b;v=2?id=7");
/// assert!(Parts::parse("mailto:me@example.org").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts<'u> {
    /// The scheme, in lower case.
    pub scheme: Cow<'u, str>,
    /// The host, without a trailing dot. ASCII letters are in lower case.
    pub host: Cow<'u, str>,
    /// The port; `None` if it is missing or the default port of the scheme.
    pub port: Option<u16>,
    /// The path, beginning with `/`, without the parameters at its end. A URL without a path has the path `/`.
    pub path: &'u str,
    /// The parameters at the end of the path, each preceded by a `;`. Empty if there are none.
    pub params: &'u str,
    /// The query after the `?`; `None` if there is no `?`.
    pub query: Option<&'u str>,
}

fn lower(text: &str) -> Cow<'_, str> {
    if text.bytes().any(|byte| byte.is_ascii_uppercase()) {
        Cow::Owned(text.to_ascii_lowercase())
    } else {
        Cow::Borrowed(text)
    }
}

impl<'u> Parts<'u> {
    /// Splits a URL. White space around the URL, user names and the fragment are removed.
    ///
    /// Returns `None` if `url` lacks `scheme://` or a host, has an invalid character in the host, or has a port that is
    /// not a 16-bit number. Also returns `None` if it contains white space or control characters, or exceeds
    /// [`MAX_BYTES`] bytes.
    #[must_use]
    pub fn parse(url: &'u str) -> Option<Self> {
        let url = url.trim_ascii();
        if url.len() > MAX_BYTES || url.bytes().any(|byte| byte <= b' ' || byte == 0x7F) {
            return None;
        }
        let (scheme, rest) = url.split_once("://")?;
        let is_scheme = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        if !is_scheme {
            return None;
        }
        let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let authority = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (authority, ""),
        };
        let host = host.strip_suffix('.').unwrap_or(host);
        let is_of_host = |c: char| c.is_alphanumeric() || !c.is_ascii() || "-_.[]:".contains(c);
        if host.is_empty() || !host.chars().all(is_of_host) || host.contains(':') && !host.starts_with('[') {
            return None;
        }
        let scheme = lower(scheme);
        let own = match &*scheme {
            "http" => Some(80),
            "https" => Some(443),
            _ => None,
        };
        let port = if port.is_empty() { None } else { Some(port.parse::<u16>().ok()?) };
        let (path, query) = rest.split_once('?').map_or((rest, None), |(path, query)| (path, Some(query)));
        let last = path.rfind('/').map_or(0, |at| at + 1);
        let params = path[last..].find(';').map_or(path.len(), |at| last + at);
        let (path, params) = path.split_at(params);
        let path = if path.is_empty() { "/" } else { path };
        Some(Self { scheme, host: lower(host), port: port.filter(|_| port != own), path, params, query })
    }

    /// Returns the host, followed by the port if it is not the default port of the scheme.
    #[must_use]
    pub fn authority(&self) -> Cow<'_, str> {
        match self.port {
            Some(port) => Cow::Owned(format!("{}:{port}", self.host)),
            None => Cow::Borrowed(&self.host),
        }
    }

    /// Returns whether a link on the page with this URL names this URL. A link may be relative.
    pub(crate) fn is_named_by(&self, link: &str) -> bool {
        let link = link.trim_ascii();
        let link = link.split_once('#').map_or(link, |(before, _)| before);
        let (scheme, authority, path) = (&self.scheme, self.authority(), self.path);
        let whole = match link.as_bytes() {
            [] => return true,
            _ if Parts::parse(link).is_some() => link.to_owned(),
            [b'/', b'/', ..] => format!("{scheme}:{link}"),
            [b'/', ..] => format!("{scheme}://{authority}{link}"),
            [b'?', ..] => format!("{scheme}://{authority}{path}{}{link}", self.params),
            _ => format!("{scheme}://{authority}{}{link}", &path[..=path.rfind('/').unwrap_or(0)]),
        };
        Parts::parse(&whole).is_some_and(|named| named == *self)
    }

    /// Returns the segments of the path, which are separated by `/`. The first segment follows the first `/`.
    pub(crate) fn segments(&self) -> impl Iterator<Item = &'u str> + use<'u> {
        self.path.strip_prefix('/').unwrap_or(self.path).split('/')
    }

    /// Returns the parameters of the path, followed by the parameters of the query, unchanged.
    pub(crate) fn parameters(&self) -> impl Iterator<Item = Parameter<'u>> + use<'u> {
        let of_path = self.params.split(';').skip(1).map(|text| Parameter::of(text, true));
        let of_query = self.query.into_iter().flat_map(|query| query.split('&'));
        of_path.chain(of_query.map(|text| Parameter::of(text, false)))
    }
}

impl std::fmt::Display for Parts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}://{}{}{}", self.scheme, self.authority(), self.path, self.params)?;
        self.query.map_or(Ok(()), |query| write!(f, "?{query}"))
    }
}

/// A parameter of the path or of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameter<'u> {
    /// Whether the parameter is in the path, after a `;`.
    pub(crate) in_path: bool,
    pub(crate) name: &'u str,
    /// The value; `None` if there is no `=`.
    pub(crate) value: Option<&'u str>,
}

impl<'u> Parameter<'u> {
    fn of(text: &'u str, in_path: bool) -> Self {
        let (name, value) = text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
        Self { in_path, name, value }
    }
}

/// Returns the runs of a segment: longest sequences of letters, digits, percent signs and non-ASCII characters. A date
/// such as `2024-05-31` is one run, although it contains `-`.
pub(crate) fn runs(segment: &str) -> impl Iterator<Item = &str> {
    let bytes = segment.as_bytes();
    let is_run = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'%' || !byte.is_ascii();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += bytes[at..].iter().position(|&byte| is_run(byte))?;
        let start = at;
        at += bytes[at..].iter().position(|&byte| !is_run(byte)).unwrap_or(bytes.len() - at);
        if at - start == 4 && crate::urls::value::is_dashed_date(&bytes[start..]) {
            at = start + 10;
        }
        Some(&segment[start..at])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_of_many_forms_are_split_into_parts() {
        for (url, wanted) in [
            ("http://a.b", Some("http://a.b/")),
            (" https://A.b.:443?q#f ", Some("https://a.b/?q")),
            ("https://u:p@a.b:8443/x", Some("https://a.b:8443/x")),
            ("http://[2001:db8::1]:80/", Some("http://[2001:db8::1]/")),
            ("http://b\u{fc}cher.example/\u{fc}", Some("http://b\u{fc}cher.example/\u{fc}")),
            ("http://a.b/x;y=1/z;s=2?", Some("http://a.b/x;y=1/z;s=2?")),
            ("http://", None),
            ("http:///path", None),
            ("//a.b/", None),
            ("a.b/c", None),
            ("1http://a.b", None),
            ("http://a b/", None),
            ("http://a.b:x/", None),
            ("http://a.b:99999/", None),
            ("http://a:b:80/", None),
            ("http://a%b/", None),
        ] {
            assert_eq!(Parts::parse(url).map(|parts| parts.to_string()).as_deref(), wanted, "{url}");
        }
        assert!(Parts::parse(&format!("http://a.b/{}", "x".repeat(MAX_BYTES))).is_none());
    }

    #[test]
    fn absolute_and_relative_links_name_a_url() {
        let page = Parts::parse("https://a.b/c/d;e?f=1").unwrap();
        for link in
            ["HTTPS://A.b:443/c/d;e?f=1#g", "//a.b/c/d;e?f=1", "/c/d;e?f=1", " d;e?f=1 ", "?f=1", "#g"]
        {
            assert!(page.is_named_by(link), "{link}");
        }
        for link in
            ["http://a.b/c/d;e?f=1", "//a.c/c/d;e?f=1", "/d;e?f=1", "d;e", "?f=2", "mailto:a@b", "e/d"]
        {
            assert!(!page.is_named_by(link), "{link}");
        }
    }

    #[test]
    fn punctuation_separates_runs_except_in_dates() {
        for (segment, wanted) in [
            ("S-fXyiE5bZS43", &["S", "fXyiE5bZS43"][..]),
            ("a%20b.html", &["a%20b", "html"]),
            ("2024-01-31-news", &["2024-01-31", "news"]),
            ("1234-99-31", &["1234", "99", "31"]),
            ("--", &[]),
            ("", &[]),
            ("\u{e9}t\u{e9}_1", &["\u{e9}t\u{e9}", "1"]),
        ] {
            assert_eq!(runs(segment).collect::<Vec<_>>(), wanted, "{segment}");
        }
    }
}
