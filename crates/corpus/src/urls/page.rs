//! Stores the pages of a site, with their URLs split into parts. The position of a part identifies corresponding parts
//! in different URLs of the site.

use std::collections::HashMap;

use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use crate::urls::parts::{Parts, runs};

/// Maximum number of parts of a URL: segments, runs and parameters. No rules are learned from URLs with more parts.
const PARTS_MAX: usize = 128;

/// The position of a part in the URLs of a site. Each URL has at most one part at a position.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum UrlPlace {
    /// A run of letters and digits in a segment. `frame` is the segment with each run replaced by a NUL.
    Run { segment: usize, run: usize, frame: String },
    /// A segment that has no runs.
    NoRun { segment: usize, frame: String },
    /// The n-th parameter of this name, counted from 0.
    Parameter { in_path: bool, name: String, nth: usize, has_value: bool },
}

impl UrlPlace {
    pub(crate) fn is_of_path(&self) -> bool {
        !matches!(self, Self::Parameter { .. })
    }
}

/// A part of a URL: its position, and its range of bytes in the URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UrlPart {
    pub(crate) place: u32,
    start: u32,
    end: u32,
}

/// The pages of one site: distinct URLs, each with the group of its page.
#[derive(Default)]
pub(crate) struct SitePages<'u> {
    pub(crate) urls: Vec<&'u str>,
    pub(crate) groups: Vec<u64>,
    /// For each URL, whether it was added several times with different groups.
    pub(crate) mixed: Vec<bool>,
    parts: Vec<UrlPart>,
    ends: Vec<usize>,
    /// For each URL, the number of segments of its path.
    pub(crate) depths: Vec<usize>,
    /// For each URL, the sum of the hashes of its parts and of its depth. Subtracting a part's hash yields the hash of
    /// the URL without this part.
    pub(crate) hashes: Vec<u128>,
    pub(crate) places: Vec<UrlPlace>,
    numbers: HashMap<u128, u32>,
    frame: String,
}

pub(crate) fn hash_of(place: u32, value: &str) -> u128 {
    xxh3_128_with_seed(value.as_bytes(), u64::from(place) + 1)
}

impl<'u> SitePages<'u> {
    /// Adds a page. URLs must be added in ascending bytewise order. A page whose URL equals the previous URL is merged
    /// with the previous page.
    pub(crate) fn add(&mut self, url: &'u str, group: u64) {
        if self.urls.last() == Some(&url) {
            let last = self.urls.len() - 1;
            self.mixed[last] |= self.groups[last] != group;
            return;
        }
        let Some(parts) = Parts::parse(url) else { return };
        let start = self.parts.len();
        if self.add_parts(url, &parts).is_none() {
            self.parts.truncate(start);
            return;
        }
        let depth = parts.segments().count();
        let hashed = self.parts[start..].iter().map(|part| hash_of(part.place, value_of(url, *part)));
        let hash = hashed.fold(xxh3_128(&(depth as u64).to_le_bytes()), u128::wrapping_add);
        self.urls.push(url);
        self.groups.push(group);
        self.mixed.push(false);
        self.depths.push(depth);
        self.hashes.push(hash);
        self.ends.push(self.parts.len());
    }

    /// Appends the parts of a URL, sorted by position. Returns `None` if the URL has more than [`PARTS_MAX`] parts.
    fn add_parts(&mut self, url: &'u str, parts: &Parts<'u>) -> Option<()> {
        let start = self.parts.len();
        for (segment, text) in parts.segments().enumerate() {
            self.frame.clear();
            let mut after = 0;
            for run in runs(text) {
                let at = run.as_ptr() as usize - text.as_ptr() as usize;
                self.frame.push_str(&text[after..at]);
                self.frame.push('\0');
                after = at + run.len();
            }
            self.frame.push_str(&text[after..]);
            let frame = std::mem::take(&mut self.frame);
            let mut found = 0;
            for (run, value) in runs(text).enumerate() {
                found += 1;
                let place = self.number(&frame, &[0, segment, run], || UrlPlace::Run {
                    segment,
                    run,
                    frame: frame.clone(),
                });
                self.push(url, place, value, start)?;
            }
            if found == 0 {
                let place =
                    self.number(&frame, &[1, segment], || UrlPlace::NoRun { segment, frame: frame.clone() });
                self.push(url, place, text, start)?;
            }
            self.frame = frame;
        }
        let mut seen: Vec<(bool, &str)> = Vec::new();
        for parameter in parts.parameters() {
            let (in_path, name) = (parameter.in_path, parameter.name);
            let nth = seen.iter().filter(|one| **one == (in_path, name)).count();
            seen.push((in_path, name));
            let has_value = parameter.value.is_some();
            let numbers = [2, usize::from(in_path), nth, usize::from(has_value)];
            let place = self.number(name, &numbers, || UrlPlace::Parameter {
                in_path,
                name: name.to_owned(),
                nth,
                has_value,
            });
            self.push(url, place, parameter.value.unwrap_or(&name[name.len()..]), start)?;
        }
        self.parts[start..].sort_unstable_by_key(|part| part.place);
        Some(())
    }

    fn push(&mut self, url: &'u str, place: u32, value: &str, start: usize) -> Option<()> {
        let at = (value.as_ptr() as usize - url.as_ptr() as usize) as u32;
        self.parts.push(UrlPart { place, start: at, end: at + value.len() as u32 });
        (self.parts.len() - start <= PARTS_MAX).then_some(())
    }

    /// Returns the id of the position that `text` and `numbers` identify. If it is new, adds the result of `place`.
    fn number(&mut self, text: &str, numbers: &[usize], place: impl FnOnce() -> UrlPlace) -> u32 {
        let hash = numbers.iter().fold(xxh3_128(text.as_bytes()), |hash, &number| {
            hash.rotate_left(29) ^ xxh3_128_with_seed(&hash.to_le_bytes(), number as u64 + 1)
        });
        let places = &mut self.places;
        *self.numbers.entry(hash).or_insert_with(|| {
            places.push(place());
            places.len() as u32 - 1
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.urls.len()
    }

    /// Returns the parts of a page's URL, ordered by position.
    pub(crate) fn parts(&self, page: u32) -> &[UrlPart] {
        let page = page as usize;
        let start = page.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.parts[start..self.ends[page]]
    }

    /// Returns the value of a part of a page's URL.
    pub(crate) fn value(&self, page: u32, part: UrlPart) -> &'u str {
        value_of(self.urls[page as usize], part)
    }

    /// Returns the value of a page's URL at position `place`, or `None` if the URL has no part at this position.
    pub(crate) fn find(&self, page: u32, place: u32) -> Option<&'u str> {
        let parts = self.parts(page);
        let at = parts.binary_search_by_key(&place, |part| part.place).ok()?;
        Some(self.value(page, parts[at]))
    }
}

fn value_of(url: &str, part: UrlPart) -> &str {
    &url[part.start as usize..part.end as usize]
}
