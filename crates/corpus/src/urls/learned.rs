//! Learns rules for URLs from a table of keys and clusters that `dedup` wrote.
//!
//! Pages are sorted by host in scratch files. Rules are learned one host at a time, from the pages of this host in
//! memory.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail, ensure};
use serde::Serialize;
use twindex::extsort::{Record, Runs, WordRecord, combine};
use twindex::sys::MemoryBudget;
use xxhash_rust::xxh3::xxh3_64;

use crate::input::jsonl::lines::TableLines;
use crate::urls::hosts::{HostCounter, Hosts};
use crate::urls::learn::{Learner, Options};
use crate::urls::rules::Rules;
use crate::work::observer::Observer;
use crate::work::tsv;

/// Estimated memory in bytes for each page, and for each byte of its URL, while the rules of its host are learned.
const BYTES_A_PAGE: usize = 1024;
const BYTES_A_BYTE: usize = 8;
/// Minimum buffer size for reading a sorted run, in bytes.
const BUFFER: usize = 1 << 12;
/// The beginnings of the first lines of clusters.tsv and of against.tsv.
const CLUSTERS: &[u8] = b"key\tcluster\t";
const AGAINST: &[u8] = b"key\tother\t";
/// Name of the table of URLs. It is in the same folder as the table of clusters.
pub const URLS: &str = "urls.tsv";
/// The first line of a table of URLs.
pub const URLS_HEAD: &str = "key\turl";

/// The learned rules, and the counts of the pages from which they were learned.
#[derive(Debug, Serialize)]
pub struct Learned {
    /// The rules, grouped by host.
    #[serde(skip)]
    pub rules: Rules,
    /// Number of pages from which rules were learned.
    pub pages: u64,
    /// Number of documents whose key, or value of the URL field, is not a URL with a host.
    pub other_keys: u64,
    /// Number of hosts. `www.example.org` and `example.org` are counted as one host.
    pub hosts: u64,
}

/// Learns rules from a results folder of `dedup`, or from a table of clusters that lists all documents, the output of
/// `twindex groups INDEX --as clusters --min-size 1`. URLs are read from `urls.tsv` in the folder or, without this
/// file, from the keys. Uses at most `memory` bytes of memory; scratch files are in `scratch`.
///
/// # Errors
///
/// Fails if a table cannot be read or has other columns, or if the pages of one host do not fit in `memory`.
pub fn learn(
    input: &Path,
    options: Options,
    scratch: &Path,
    memory: usize,
    observer: &dyn Observer,
) -> anyhow::Result<Learned> {
    let (clusters, against) = if input.is_dir() {
        (input.join("clusters.tsv"), Some(input.join("against.tsv")))
    } else {
        (input.to_owned(), None)
    };
    if !clusters.is_file() {
        let shown = input.display();
        fs::metadata(input).with_context(|| format!("{shown}: cannot be opened"))?;
        bail!("{shown}: expected a folder of results of `dedup`, found no clusters.tsv in it");
    }
    let mut pages = Pages::new(scratch, memory / 2);
    let mut found = Learned { rules: Rules::default(), pages: 0, other_keys: 0, hosts: 0 };
    let urls = input.is_dir().then(|| input.join(URLS)).filter(|urls| urls.is_file());
    let mut urls = urls.map(|path| UrlTable::open(&path)).transpose()?;
    let length = fs::metadata(&clusters).ok().map(|metadata| metadata.len());
    let progress = observer.begin("reading clusters", length);
    let mut read = 0;
    for_each_row(&clusters, CLUSTERS, |key, cluster| {
        read += (key.len() + cluster.len()) as u64;
        progress.set(read);
        let number = std::str::from_utf8(cluster).ok().and_then(|text| text.parse::<u64>().ok());
        let cluster = number.with_context(|| {
            format!("expected the number of a cluster, found {:?}", String::from_utf8_lossy(cluster))
        })?;
        let key = match &mut urls {
            Some(urls) => urls.of(key)?,
            None => Some(tsv::unescape(key)?.into_owned()),
        };
        found.add(&mut pages, key.as_deref(), cluster)
    })?;
    drop(progress);
    // against.tsv lists the documents that were removed as duplicates of a history document. All duplicates of one
    // history document form a group.
    if let Some(against) = against.filter(|path| path.is_file()) {
        let mut urls = match &urls {
            Some(urls) => Some(UrlTable::open(&urls.lines.name())?),
            None => None,
        };
        for_each_row(&against, AGAINST, |key, other| {
            let key = match &mut urls {
                Some(urls) => urls.of(key)?,
                None => Some(tsv::unescape(key)?.into_owned()),
            };
            found.add(&mut pages, key.as_deref(), 1 << 63 | xxh3_64(other))
        })?;
    }
    let progress = observer.begin("learning", None);
    let mut done = 0;
    pages.for_each_host(memory / 2, |of_host| {
        let mut learner = Learner::new(options);
        for (url, group) in of_host {
            done += 1;
            learner.add(url, *group);
        }
        progress.set(done);
        found.hosts += 1;
        found.rules.extend(learner.finish());
    })?;
    Ok(found)
}

impl Learned {
    fn add(&mut self, pages: &mut Pages, url: Option<&[u8]>, group: u64) -> anyhow::Result<()> {
        let url = url.and_then(|url| std::str::from_utf8(url).ok());
        if let Some((unit, url)) = url.and_then(|url| Some((Learner::unit(url)?, url))) {
            self.pages += 1;
            return pages.push(&unit, url, group);
        }
        self.other_keys += 1;
        Ok(())
    }
}

/// Counts near documents by host, from a table of clusters that lists all documents by URL. Returns `None` if no key is
/// a URL. Scratch files are in `scratch`.
///
/// # Errors
///
/// Fails if the table cannot be read or has other columns.
pub fn count_hosts(table: &Path, scratch: &Path, memory: usize) -> anyhow::Result<Option<Hosts>> {
    let budget = MemoryBudget::new(scratch, memory / 2);
    let mut counter = HostCounter::new(&budget, memory / 2)?;
    for_each_row(table, CLUSTERS, |key, cluster| {
        let number = std::str::from_utf8(cluster).ok().and_then(|text| text.parse::<u32>().ok());
        let cluster = number.with_context(|| {
            format!("expected the number of a cluster, found {:?}", String::from_utf8_lossy(cluster))
        })?;
        counter.add(&tsv::unescape(key)?, cluster)
    })?;
    if counter.is_empty() { Ok(None) } else { counter.finish(None).map(Some) }
}

/// Passes the first two fields of each row of a table to `each`.
fn for_each_row(
    path: &Path,
    head: &[u8],
    mut each: impl FnMut(&[u8], &[u8]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut lines = TableLines::open(path)?;
    let mut is_first = true;
    while let Some((number, line)) = lines.next_line()? {
        let at = || format!("{}:{number}", path.display());
        if is_first {
            let columns = String::from_utf8_lossy(head).trim_end().replace('\t', ", ");
            ensure!(line.starts_with(head), "{}: expected a table whose first columns are {columns}", at());
            is_first = false;
            continue;
        }
        let mut fields = line.split(|&byte| byte == b'\t');
        let (Some(key), Some(other)) = (fields.next(), fields.next()) else {
            bail!("{}: expected two columns or more, found one", at())
        };
        each(key, other).with_context(at)?;
    }
    ensure!(!is_first, "{}: is empty; expected a table", path.display());
    Ok(())
}

/// Reads the URLs of documents from `urls.tsv`, in ascending order of keys.
struct UrlTable {
    lines: TableLines,
    next: Option<(Vec<u8>, Vec<u8>)>,
}

impl UrlTable {
    fn open(path: &Path) -> anyhow::Result<Self> {
        let mut lines = TableLines::open(path)?;
        let head = lines.next_line()?.map(|(_, line)| line.to_vec());
        ensure!(
            head.as_deref() == Some(URLS_HEAD.as_bytes()),
            "{}: not as `dedup --url-field` writes it",
            path.display()
        );
        let mut table = Self { lines, next: None };
        table.advance()?;
        Ok(table)
    }

    fn advance(&mut self) -> anyhow::Result<()> {
        let name = self.lines.name();
        self.next = match self.lines.next_line()? {
            None => None,
            Some((number, line)) => {
                let mut fields = line.splitn(2, |&byte| byte == b'\t');
                let (Some(key), Some(url)) = (fields.next(), fields.next()) else {
                    bail!("{}:{number}: not as `dedup --url-field` writes it", name.display())
                };
                Some((tsv::unescape(key)?.into_owned(), tsv::unescape(url)?.into_owned()))
            }
        };
        Ok(())
    }

    /// Returns the URL of the document with this key, without escapes; `key` is escaped as in the table. Successive
    /// calls must pass keys in ascending order.
    fn of(&mut self, key: &[u8]) -> anyhow::Result<Option<Vec<u8>>> {
        let key = tsv::unescape(key)?;
        while let Some((next, url)) = &mut self.next {
            if next.as_slice() > &*key {
                break;
            }
            let found = (next.as_slice() == &*key).then(|| std::mem::take(url));
            self.advance()?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

/// A page in the sort by host. `text` consists of the host, a NUL byte and the URL.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CrawledPage {
    text: Vec<u8>,
    group: u64,
}

impl Record for CrawledPage {
    /// Length of the fixed part of a record: the length of the text, and the group.
    const HEAD: usize = 12;

    fn tail(head: &[u8]) -> usize {
        head.first_chunk().map_or(0, |length| u32::from_le_bytes(*length) as usize)
    }

    fn put(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&(self.text.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&self.group.to_le_bytes());
        bytes.extend_from_slice(&self.text);
    }

    fn take(bytes: &[u8], record: &mut Option<Self>) {
        let (head, tail) = bytes.split_at(Self::HEAD);
        let group = head[4..].try_into().map_or(0, u64::from_le_bytes);
        *record = Some(Self { text: tail.to_vec(), group });
    }
}

/// Collects pages and sorts them by host.
struct Pages {
    held: Vec<CrawledPage>,
    bytes: usize,
    memory: usize,
    runs: Runs<CrawledPage>,
}

impl Pages {
    fn new(scratch: &Path, memory: usize) -> Self {
        let runs = Runs::new(scratch, WordRecord::default(), memory / BUFFER, memory);
        Self { held: Vec::new(), bytes: 0, memory, runs }
    }

    fn push(&mut self, unit: &str, url: &str, group: u64) -> anyhow::Result<()> {
        let text = [unit.as_bytes(), b"\0", url.as_bytes()].concat();
        self.bytes += text.len() + 2 * size_of::<CrawledPage>();
        self.held.push(CrawledPage { text, group });
        if self.bytes > self.memory {
            self.write()?;
        }
        Ok(())
    }

    fn write(&mut self) -> anyhow::Result<()> {
        self.held.sort_unstable();
        self.held.drain(..).try_for_each(|page| self.runs.put(&page))?;
        self.bytes = 0;
        Ok(self.runs.end_run()?)
    }

    /// Passes the pages of each host to `each`, in ascending order of hosts.
    fn for_each_host(mut self, memory: usize, mut each: impl FnMut(&[(String, u64)])) -> anyhow::Result<()> {
        self.write()?;
        self.held = Vec::new();
        let (mut unit, mut of_unit, mut bytes): (Vec<u8>, Vec<(String, u64)>, usize) =
            (Vec::new(), Vec::new(), 0);
        combine(self.runs.readers(), |page: CrawledPage| -> anyhow::Result<()> {
            let end = page.text.iter().position(|&byte| byte == 0).unwrap_or(page.text.len());
            let (host, url) = page.text.split_at(end);
            if host != unit {
                if !of_unit.is_empty() {
                    each(&of_unit);
                    of_unit.clear();
                }
                (unit, bytes) = (host.to_owned(), 0);
            }
            let url = String::from_utf8_lossy(url.get(1..).unwrap_or_default()).into_owned();
            bytes += BYTES_A_PAGE + BYTES_A_BYTE * url.len();
            of_unit.push((url, page.group));
            ensure!(
                bytes <= memory,
                "the host {} has more than {} pages, which are learned from together: give --memory {}K, or more",
                String::from_utf8_lossy(&unit),
                of_unit.len() - 1,
                (4 * memory).div_ceil(1 << 10)
            );
            Ok(())
        })?;
        if !of_unit.is_empty() {
            each(&of_unit);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_sorted_with_all_pages_for_any_memory_budget() {
        let folder = tempfile::tempdir().unwrap();
        let of = |memory: usize| {
            let mut pages = Pages::new(folder.path(), memory);
            for number in (0..500_u64).rev() {
                let host = format!("h{}.example", number % 7);
                pages.push(&host, &format!("http://{host}/{number}"), number / 2).unwrap();
            }
            let mut all = Vec::new();
            pages.for_each_host(1 << 24, |of_host| all.push(of_host.to_vec())).unwrap();
            all
        };
        let all = of(1 << 24);
        assert_eq!(all.iter().map(Vec::len).sum::<usize>(), 500);
        assert!(all.len() == 7 && all[0].iter().all(|(url, _)| url.starts_with("http://h0.example/")));
        assert_eq!(of(1 << 10), all);

        let mut pages = Pages::new(folder.path(), 1 << 20);
        pages.push("a", "http://a/1", 1).unwrap();
        let refused = pages.for_each_host(100, |_| {}).unwrap_err().to_string();
        assert!(
            refused.contains("the host a has more than 0 pages") && refused.contains("--memory"),
            "{refused}"
        );
    }
}
