//! Counts duplicates by host and domain, URL aliases of pages, and mirrored hosts.
//!
//! The input is the URL and the cluster of each document. In each cluster, all documents with a URL except one are
//! duplicates: of a page on the same host, else on the same domain, else on another domain. Data that exceeds the
//! memory budget is sorted in scratch files.

use std::io::Write;
use std::path::Path;

use serde::Serialize;
use twindex::sys::{Column, MemoryBudget};
use twindex_join::Sorter;
use xxhash_rust::xxh3::xxh3_64;

use crate::stored::groups::{InsideValues, NO_FIELD};
use crate::urls::alias::Alias;
use crate::urls::parts::Parts;
use crate::work::file::write_file;
use crate::work::tsv;

/// File names in a results folder: the table of hosts, and the table of host pairs with near pages.
pub(crate) const HOSTS: &str = "hosts.tsv";
pub(crate) const MIRRORS: &str = "mirrors.tsv";

/// Pairs of hosts are counted only in clusters with at most this number of hosts.
const HOSTS_PAIRED: usize = 64;
/// Number of hosts, and of pairs of hosts, shown in a report.
const SHOWN: usize = 10;
/// A list of hosts or host pairs that reaches this number of entries is reduced to its [`SHOWN`] top entries.
const HELD: usize = 1 << 12;

/// Statistics of duplicates by host.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Hosts {
    /// Number of documents with a URL, called pages below.
    pub pages: u64,
    /// Number of hosts of the pages. A host includes the port if it is not the default port of the scheme.
    pub hosts: u64,
    /// Number of registrable domains of these hosts.
    pub domains: u64,
    /// Number of pages that are duplicates: the sum of the next three fields.
    pub duplicates: u64,
    /// Number of duplicates of pages on the same host: pages minus hosts of a cluster, summed over all clusters.
    pub duplicates_within_hosts: u64,
    /// Number of duplicates of pages on another host of the same domain: hosts minus domains of a cluster, summed over
    /// all clusters.
    pub duplicates_within_domains: u64,
    /// Number of duplicates of pages on another domain: domains of a cluster minus 1, summed over all clusters.
    pub duplicates_across_domains: u64,
    /// For each kind of URL alias, such as a leading `www.`: its name, and the number of URLs that have near pages both
    /// with and without the alias.
    pub aliases: Vec<(&'static str, u64)>,
    /// Number of pairs of hosts with near pages.
    pub mirrors: u64,
    /// Number of clusters whose pairs of hosts were not counted because the cluster has too many hosts.
    pub crowded_clusters: u64,
    /// The hosts with the most near pages.
    pub most_near: Vec<Host>,
    /// The pairs of hosts with the largest shares of near pages, by the smaller of the two shares.
    pub most_mirrored: Vec<Mirror>,
}

/// A host, with counts of its pages.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Host {
    /// The name of the host, followed by its port unless it is the default port.
    pub host: String,
    /// The registrable domain of the host.
    pub domain: String,
    /// Number of pages of the host.
    pub pages: u64,
    /// Number of pages that are near another page.
    pub near: u64,
    /// Number of pages that are near another page of this host.
    pub near_inside: u64,
    /// Number of pages that are near a page of another host.
    pub near_outside: u64,
}

/// Two hosts that have pages near each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mirror {
    /// The host whose name sorts first.
    pub host: String,
    /// The other host.
    pub other: String,
    /// Number of pages of the first host.
    pub pages: u64,
    /// Number of pages of the other host.
    pub pages_of_other: u64,
    /// Number of pages of the first host that are near a page of the other.
    pub near: u64,
    /// Number of pages of the other host that are near a page of the first.
    pub near_of_other: u64,
}

impl Mirror {
    /// Returns the share of each host's pages that are near a page of the other host, from 0 to 1.
    #[must_use]
    pub fn shares(&self) -> (f64, f64) {
        let share = |near: u64, pages: u64| near as f64 / pages.max(1) as f64;
        (share(self.near, self.pages), share(self.near_of_other, self.pages_of_other))
    }
}

impl Host {
    fn rate(&self) -> f64 {
        self.near as f64 / self.pages.max(1) as f64
    }
}

/// Collects the URLs and clusters of documents, then counts duplicates by host.
pub struct HostCounter<'r> {
    budget: &'r MemoryBudget,
    memory: usize,
    hosts: InsideValues,
    pages: Column<HostPage>,
}

/// A page: host, cluster, one bit for each alias in its URL, and the two halves of the hash of its URL without aliases.
type HostPage = [u32; 5];

impl<'r> HostCounter<'r> {
    /// Creates a counter without documents. Data about documents counts against `budget`; sorting uses `memory` bytes.
    ///
    /// # Errors
    ///
    /// A scratch file cannot be created.
    pub fn new(budget: &'r MemoryBudget, memory: usize) -> twindex::Result<Self> {
        Ok(Self { budget, memory, hosts: InsideValues::new(budget)?, pages: Column::new(budget) })
    }

    /// Adds a document. Ignores `url` if it is not a URL with a host.
    ///
    /// # Errors
    ///
    /// A scratch file cannot be written, or there are too many hosts.
    pub fn add(&mut self, url: &[u8], cluster: u32) -> anyhow::Result<()> {
        let Some(mut parts) = std::str::from_utf8(url).ok().and_then(Parts::parse) else { return Ok(()) };
        let host = self.hosts.number(parts.authority().as_bytes())?;
        debug_assert_ne!(host, NO_FIELD);
        let mut bits = 0;
        for (bit, alias) in Alias::ALL.into_iter().enumerate() {
            let before = (parts.scheme.len(), parts.host.len(), parts.path.len());
            alias.apply(&mut parts);
            bits |= u32::from(before != (parts.scheme.len(), parts.host.len(), parts.path.len())) << bit;
        }
        let form = xxh3_64(parts.to_string().as_bytes());
        Ok(self.pages.push([host - 1, cluster, bits, (form >> 32) as u32, form as u32])?)
    }

    /// Returns whether no URL was added.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Counts the duplicates. Writes the tables of hosts and of mirrors to `folder`, if given. Scratch files are in the
    /// folder of the memory budget.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn finish(self, folder: Option<&Path>) -> anyhow::Result<Hosts> {
        let Self { budget, memory, hosts, pages } = self;
        let by_name = hosts.sorted(budget, memory)?;
        let mut ranks = Column::filled(budget, hosts.len(), 0_u32)?;
        for (rank, &host) in (0..).zip(&by_name[..]) {
            ranks[host as usize] = rank;
        }
        let name = |rank: u32| String::from_utf8_lossy(hosts.value(by_name[rank as usize])).into_owned();
        let mut found = Hosts { pages: pages.len() as u64, hosts: hosts.len() as u64, ..Hosts::default() };
        // The domain of each host, in the order of names.
        let mut domains = InsideValues::new(budget)?;
        let mut domain_of = Column::new(budget);
        for &host in &by_name[..] {
            domain_of.push(
                domains.number(domain_of_host(&String::from_utf8_lossy(hosts.value(host))).as_bytes())?,
            )?;
        }
        found.domains = domains.len() as u64;

        let mut by_cluster: Sorter<[u64; 4]> = Sorter::new(budget.dir(), memory / 4);
        let mut by_form: Sorter<[u64; 4]> = Sorter::new(budget.dir(), memory / 4);
        for (document, &[host, cluster, bits, high, low]) in (0_u64..).zip(&pages[..]) {
            let rank = ranks[host as usize];
            let place = u64::from(domain_of[rank as usize]) << 32 | u64::from(rank);
            by_cluster.push([cluster.into(), place, document, 0])?;
            by_form.push([cluster.into(), u64::from(high) << 32 | u64::from(low), bits.into(), document])?;
        }
        drop(pages);
        found.count_aliases(by_form)?;
        let mut counts = Column::filled(budget, hosts.len(), [0_u32; 4])?;
        let pairs = found.count_hosts(by_cluster, &mut counts[..], (budget.dir(), memory / 4))?;
        let host = |rank: u32| {
            let [pages, near, near_inside, near_outside] = counts[rank as usize].map(u64::from);
            let host = name(rank);
            let domain = domain_of_host(&host).to_owned();
            Host { host, domain, pages, near, near_inside, near_outside }
        };
        let path = |name: &str| folder.map(|folder| folder.join(name));
        found.most_near = write_hosts(path(HOSTS).as_deref(), (0..hosts.len() as u32).map(host))?;
        let mirror = |a: u32, b: u32, near: u64, near_of_other: u64| Mirror {
            host: name(a),
            other: name(b),
            pages: counts[a as usize][0].into(),
            pages_of_other: counts[b as usize][0].into(),
            near,
            near_of_other,
        };
        found.write_mirrors(path(MIRRORS).as_deref(), pairs, mirror)?;
        Ok(found)
    }
}

/// Returns the registrable domain of a host. A port after the host is ignored.
fn domain_of_host(host: &str) -> &str {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((host, port)) if is_port(port) => twindex_domain::domain(host),
        _ => twindex_domain::domain(host),
    }
}

impl Hosts {
    /// Counts, for each alias, the URLs whose pages with and without the alias are in the same cluster.
    fn count_aliases(&mut self, by_form: Sorter<[u64; 4]>) -> anyhow::Result<()> {
        let (mut counts, mut form) = ([0; Alias::ALL.len()], None);
        let (mut with, mut without) = (0, 0);
        let mut take = |with: &mut u64, without: &mut u64| {
            for (bit, count) in counts.iter_mut().enumerate() {
                *count += (*with & *without) >> bit & 1;
            }
            (*with, *without) = (0, 0);
        };
        by_form.finish()?.for_each(|[cluster, hash, bits, _]| -> anyhow::Result<()> {
            if form.replace((cluster, hash)) != Some((cluster, hash)) {
                take(&mut with, &mut without);
            }
            with |= bits;
            without |= !bits;
            Ok(())
        })?;
        take(&mut with, &mut without);
        self.aliases = Alias::ALL.iter().map(|alias| alias.name()).zip(counts).collect();
        Ok(())
    }

    /// Counts the pages of each host in each cluster. Returns the number of near pages of each pair of hosts.
    fn count_hosts(
        &mut self,
        by_cluster: Sorter<[u64; 4]>,
        counts: &mut [[u32; 4]],
        (scratch, memory): (&Path, usize),
    ) -> anyhow::Result<Sorter<[u64; 4]>> {
        let mut pairs: Sorter<[u64; 4]> = Sorter::new(scratch, memory);
        let mut here = HostCluster::default();
        by_cluster.finish()?.for_each(|[cluster, place, ..]| -> anyhow::Result<()> {
            if here.number != Some(cluster) {
                here.end(self, counts, &mut pairs)?;
                here = HostCluster { number: Some(cluster), ..HostCluster::default() };
            }
            here.add((place >> 32) as u32, place as u32, counts);
            Ok(())
        })?;
        here.end(self, counts, &mut pairs)?;
        Ok(pairs)
    }

    fn write_mirrors(
        &mut self,
        path: Option<&Path>,
        pairs: Sorter<[u64; 4]>,
        mirror: impl Fn(u32, u32, u64, u64) -> Mirror,
    ) -> anyhow::Result<()> {
        let pairs = pairs.finish()?;
        let mut max: Vec<Mirror> = Vec::new();
        let mut number = 0;
        let choose = |max: &mut Vec<Mirror>| {
            let share = |one: &Mirror| one.shares().0.min(one.shares().1);
            let order = |a: &Mirror, b: &Mirror| {
                let by_near = b.near.min(b.near_of_other).cmp(&a.near.min(a.near_of_other));
                let by_name = (&a.host, &a.other).cmp(&(&b.host, &b.other));
                share(b).total_cmp(&share(a)).then(by_near).then(by_name)
            };
            max.sort_by(order);
            max.truncate(SHOWN);
        };
        let write = |mut out: &mut dyn Write| -> anyhow::Result<()> {
            let mut each = |one: Mirror| -> anyhow::Result<()> {
                number += 1;
                tsv::write_field(&mut out, one.host.as_bytes())?;
                out.write_all(b"\t")?;
                tsv::write_field(&mut out, one.other.as_bytes())?;
                let (share, share_of_other) = one.shares();
                let (pages, near) = ((one.pages, one.pages_of_other), (one.near, one.near_of_other));
                writeln!(
                    out,
                    "\t{}\t{}\t{}\t{}\t{share:.6}\t{share_of_other:.6}",
                    pages.0, pages.1, near.0, near.1
                )?;
                max.push(one);
                if max.len() >= HELD {
                    choose(&mut max);
                }
                Ok(())
            };
            let mut last: Option<(u64, u64, u64)> = None;
            let hosts = |pair: u64| ((pair >> 32) as u32, pair as u32);
            pairs.for_each(|[pair, _, near, near_of_other]| -> anyhow::Result<()> {
                match &mut last {
                    Some(last) if last.0 == pair => {
                        last.1 += near;
                        last.2 += near_of_other;
                    }
                    other => {
                        if let Some((pair, near, of_other)) = other.replace((pair, near, near_of_other)) {
                            each(mirror(hosts(pair).0, hosts(pair).1, near, of_other))?;
                        }
                    }
                }
                Ok(())
            })?;
            last.map_or(Ok(()), |(pair, near, of_other)| {
                each(mirror(hosts(pair).0, hosts(pair).1, near, of_other))
            })
        };
        let head = "host\tother\tpages\tpages_of_other\tnear\tnear_of_other\tshare\tshare_of_other";
        written(path, head, write)?;
        choose(&mut max);
        (self.mirrors, self.most_mirrored) = (number, max);
        Ok(())
    }
}

/// Writes a table with these columns to `path`. Without a path, only runs `write`.
fn written(
    path: Option<&Path>,
    head: &str,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let Some(path) = path else { return write(&mut std::io::sink()) };
    let mut failure = None;
    let file = write_file(path, |out| {
        writeln!(out, "{head}")?;
        write(out).map_err(|error| {
            failure = Some(error);
            std::io::Error::other("the table cannot be made")
        })
    });
    file.map_err(|error| failure.unwrap_or(error))
}

/// Writes the table of hosts, and returns the hosts with the most near pages.
fn write_hosts(path: Option<&Path>, hosts: impl Iterator<Item = Host>) -> anyhow::Result<Vec<Host>> {
    let mut max: Vec<Host> = Vec::new();
    let choose = |max: &mut Vec<Host>| {
        max.sort_by(|a, b| b.near.cmp(&a.near).then_with(|| a.host.cmp(&b.host)));
        max.truncate(SHOWN);
    };
    let head = "host\tdomain\tpages\tnear\tnear_inside\tnear_outside\trate";
    written(path, head, |mut out| {
        for host in hosts {
            tsv::write_field(&mut out, host.host.as_bytes())?;
            out.write_all(b"\t")?;
            tsv::write_field(&mut out, host.domain.as_bytes())?;
            let Host { pages, near, near_inside, near_outside, .. } = host;
            writeln!(out, "\t{pages}\t{near}\t{near_inside}\t{near_outside}\t{:.6}", host.rate())?;
            if near > 0 {
                max.push(host);
            }
            if max.len() >= HELD {
                choose(&mut max);
            }
        }
        Ok(())
    })?;
    choose(&mut max);
    Ok(max)
}

/// Counts the pages of one cluster. Pages must be added in the order of domains, then hosts.
#[derive(Default)]
struct HostCluster {
    number: Option<u64>,
    pages: u64,
    domains: u64,
    domain: Option<u32>,
    /// The current host, the number of its pages, and the number of hosts before it.
    host: Option<u32>,
    of_host: u32,
    before: u64,
    /// The hosts, each with the number of its pages: at most [`HOSTS_PAIRED`] + 1 entries.
    hosts: Vec<(u32, u32)>,
}

impl HostCluster {
    fn add(&mut self, domain: u32, host: u32, counts: &mut [[u32; 4]]) {
        if self.host != Some(host) {
            if self.host.is_some() {
                self.end_host(true, counts);
                self.before += 1;
            }
            self.domains += u64::from(self.domain != Some(domain));
            (self.domain, self.host, self.of_host) = (Some(domain), Some(host), 0);
        }
        self.pages += 1;
        self.of_host += 1;
    }

    /// Adds the completed current host to `counts`. `others` is true if the cluster has other hosts.
    fn end_host(&mut self, others: bool, counts: &mut [[u32; 4]]) {
        let (Some(host), number) = (self.host, self.of_host) else { return };
        let [pages, near, inside, outside] = &mut counts[host as usize];
        *pages += number;
        *near += if others || number > 1 { number } else { 0 };
        *inside += if number > 1 { number } else { 0 };
        *outside += if others { number } else { 0 };
        if self.hosts.len() <= HOSTS_PAIRED {
            self.hosts.push((host, number));
        }
    }

    fn end(
        &mut self,
        found: &mut Hosts,
        counts: &mut [[u32; 4]],
        pairs: &mut Sorter<[u64; 4]>,
    ) -> anyhow::Result<()> {
        let Some(cluster) = self.number else { return Ok(()) };
        self.end_host(self.before > 0, counts);
        let hosts = self.before + 1;
        found.duplicates += self.pages - 1;
        found.duplicates_within_hosts += self.pages - hosts;
        found.duplicates_within_domains += hosts - self.domains;
        found.duplicates_across_domains += self.domains - 1;
        if self.hosts.len() > HOSTS_PAIRED {
            found.crowded_clusters += 1;
            return Ok(());
        }
        self.hosts.sort_unstable();
        for (place, &(a, of_a)) in self.hosts.iter().enumerate() {
            for &(b, of_b) in &self.hosts[place + 1..] {
                pairs.push([u64::from(a) << 32 | u64::from(b), cluster, of_a.into(), of_b.into()])?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The URLs of each cluster of a small crawl with known mirrors.
    const CRAWL: [&[&str]; 7] = [
        &["http://a.example/1", "https://a.example/1", "http://www.a.example/1"],
        &["http://a.example/2?s=1", "http://a.example/2?s=2", "http://m.other.example.org/2"],
        &["http://a.example/3", "http://m.other.example.org/3"],
        &["http://m.other.example.org/4/", "http://m.other.example.org/4/index.html", "no URL"],
        &["http://b.co.uk/5", "http://c.co.uk/5"],
        &["http://a.example/6"],
        &["a key"],
    ];

    fn counted(memory: usize, folder: Option<&Path>) -> Hosts {
        let scratch = tempfile::tempdir().unwrap();
        let budget = MemoryBudget::new(scratch.path(), memory);
        let mut counter = HostCounter::new(&budget, memory).unwrap();
        for (cluster, urls) in (0..).zip(CRAWL) {
            for url in urls {
                counter.add(url.as_bytes(), cluster).unwrap();
            }
        }
        counter.finish(folder).unwrap()
    }

    #[test]
    fn hosts_of_a_known_crawl_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let found = counted(usize::MAX, Some(folder.path()));
        assert_eq!((found.pages, found.hosts, found.domains), (13, 5, 4));
        let parts =
            [found.duplicates_within_hosts, found.duplicates_within_domains, found.duplicates_across_domains];
        assert_eq!((found.duplicates, parts), (7, [3, 1, 3]));
        let aliases: Vec<u64> = found.aliases.iter().map(|(_, count)| *count).collect();
        assert_eq!(aliases, [1, 1, 1, 0], "{:?}", found.aliases);
        let hosts = std::fs::read_to_string(folder.path().join(HOSTS)).unwrap();
        assert_eq!(
            hosts,
            "host\tdomain\tpages\tnear\tnear_inside\tnear_outside\trate\n\
             a.example\ta.example\t6\t5\t4\t5\t0.833333\n\
             b.co.uk\tb.co.uk\t1\t1\t0\t1\t1.000000\n\
             c.co.uk\tc.co.uk\t1\t1\t0\t1\t1.000000\n\
             m.other.example.org\texample.org\t4\t4\t2\t2\t1.000000\n\
             www.a.example\ta.example\t1\t1\t0\t1\t1.000000\n"
        );
        let mirrors = std::fs::read_to_string(folder.path().join(MIRRORS)).unwrap();
        assert_eq!(
            mirrors,
            "host\tother\tpages\tpages_of_other\tnear\tnear_of_other\tshare\tshare_of_other\n\
             a.example\tm.other.example.org\t6\t4\t3\t2\t0.500000\t0.500000\n\
             a.example\twww.a.example\t6\t1\t2\t1\t0.333333\t1.000000\n\
             b.co.uk\tc.co.uk\t1\t1\t1\t1\t1.000000\t1.000000\n"
        );
        assert_eq!((found.mirrors, found.most_mirrored[0].host.as_str()), (3, "b.co.uk"));
        assert_eq!(counted(1 << 10, None), found, "little memory changes nothing");
    }

    #[test]
    fn cluster_with_more_hosts_than_the_cap_adds_no_mirror_pairs() {
        let budget = MemoryBudget::unlimited();
        let mut counter = HostCounter::new(&budget, 1 << 20).unwrap();
        for host in 0..=HOSTS_PAIRED {
            counter.add(format!("http://h{host}.example/").as_bytes(), 1).unwrap();
        }
        counter.add(b"http://h0.example/x", 2).unwrap();
        counter.add(b"http://h1.example/x", 2).unwrap();
        let found = counter.finish(None).unwrap();
        assert_eq!(
            (found.crowded_clusters, found.mirrors, found.duplicates),
            (1, 1, HOSTS_PAIRED as u64 + 1)
        );
    }
}
