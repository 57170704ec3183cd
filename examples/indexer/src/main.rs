//! An indexer with two stores: twindex decides whether a page is near an existing one, and tantivy makes the other
//! pages searchable. The indexer may be killed at any time and started again. In the end, tantivy contains every page
//! exactly once, either as a text or as a duplicate of another page.
//!
//! ```sh
//! cargo run -- run FOLDER PAGES             # index, or continue
//! cargo run -- check FOLDER PAGES           # check all pages in both stores
//! cargo run -- torture FOLDER PAGES KILLS   # run, kill, run ..., check, and compare with an uninterrupted run
//! ```
//!
//! `collapse`, `check-collapse` and `torture-collapse` do the same for pages that are also changed and deleted, and for
//! search results that are collapsed by group; see `collapse.rs`.
//!
//! A commit is not atomic across both stores, so each store records its number of pages in its commit. tantivy commits
//! first, twindex second. After a crash, tantivy may be one batch ahead. The indexer then adds this batch to twindex
//! again, which makes the same decisions because its commits are atomic. It does not add the batch to tantivy again,
//! because the number of pages recorded there includes the batch.

use std::collections::HashSet;
use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use pages::{page, url};
use tantivy::collector::DocSetCollector;
use tantivy::directory::MmapDirectory;
use tantivy::query::TermQuery;
use tantivy::schema::{Field, IndexRecordOption, STORED, STRING, Schema, TEXT, Value};
use tantivy::{IndexWriter, TantivyDocument, Term};
use twindex::RealVfs;
use twindex::verify;
use twindex::{Admitted, Error, Index, Params};

mod collapse;
mod pages;

/// Number of pages in a commit.
const BATCH: u64 = 1000;
/// The line that is printed after each commit of tantivy. twindex may not have committed these pages yet.
const SEARCHABLE: &str = "searchable";
/// The line that is printed after each commit of twindex.
const KNOWN: &str = "known";
/// The memory limit of tantivy in bytes.
const HEAP_BYTES: usize = 50_000_000;

/// The search engine: a tantivy index and its fields.
struct Search {
    index: tantivy::Index,
    url: Field,
    body: Field,
    duplicate_of: Field,
}

impl Search {
    fn open(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut schema = Schema::builder();
        let url = schema.add_text_field("url", STRING | STORED);
        let body = schema.add_text_field("body", TEXT);
        let duplicate_of = schema.add_text_field("duplicate_of", STRING | STORED);
        let index = tantivy::Index::open_or_create(MmapDirectory::open(folder)?, schema.build())?;
        Ok(Self { index, url, body, duplicate_of })
    }

    /// Returns the number of pages committed in tantivy.
    fn pages(&self) -> Result<u64> {
        match self.index.load_metas()?.payload {
            None => Ok(0),
            Some(payload) => payload.parse().context("the payload of tantivy's commit is no number"),
        }
    }
}

/// Opens the index that decides which pages are near.
fn open_near(folder: &Path) -> twindex::Result<Index> {
    let params = Params::builder().words(3).simhash(3).minhash(20, 6).build()?;
    match Index::create(folder, params) {
        Err(Error::AlreadyExists { .. }) => Index::open(folder),
        other => other,
    }
}

/// Returns the number of pages committed in twindex.
fn pages_near(index: &Index) -> Result<u64> {
    match index.snapshot().payload() {
        None => Ok(0),
        Some(bytes) => Ok(u64::from_le_bytes(bytes.try_into().context("a payload of another program")?)),
    }
}

fn run(folder: &Path, pages: u64) -> Result<()> {
    let search = Search::open(&folder.join("search"))?;
    let near = open_near(&folder.join("near.twx"))?;
    let sketcher = near.sketcher()?;
    let mut indexing: IndexWriter = search.index.writer_with_num_threads(1, HEAP_BYTES)?;
    let mut admitting = near.writer()?;
    let (searchable, mut done) = (search.pages()?, pages_near(&near)?);
    ensure!(searchable >= done, "tantivy has {searchable} pages, twindex {done}: it commits first");
    while done < pages {
        let end = pages.min(done + BATCH);
        for number in done..end {
            let (url, text) = (url(number), page(number));
            let mut document = TantivyDocument::default();
            document.add_text(search.url, &url);
            match admitting.admit(url.as_str(), &sketcher.sketch(&text)?)? {
                Admitted::New => document.add_text(search.body, &text),
                Admitted::Duplicate(hit) => document.add_text(search.duplicate_of, hit.key.to_string()),
                other => bail!("{url} was admitted before: {other:?}"),
            }
            if number >= searchable {
                indexing.add_document(document)?;
            }
        }
        if end > searchable {
            let mut prepared = indexing.prepare_commit()?;
            prepared.set_payload(&end.to_string());
            prepared.commit()?;
            println!("{end} {SEARCHABLE}");
        }
        admitting.commit_with(&end.to_le_bytes())?;
        done = end;
        println!("{done} {KNOWN}");
    }
    indexing.wait_merging_threads()?;
    Ok(())
}

/// Checks both stores. Returns an entry for each page in order: `None` if the page is searchable, otherwise the URL of
/// the page that it duplicates.
fn check(folder: &Path, pages: u64) -> Result<Vec<Option<String>>> {
    let search = Search::open(&folder.join("search"))?;
    let near = open_near(&folder.join("near.twx"))?;
    let snapshot = near.snapshot();
    ensure!(search.pages()? == pages && pages_near(&near)? == pages, "not all pages are committed");
    ensure!(snapshot.documents() == pages, "twindex has {} pages", snapshot.documents());
    let searcher = search.index.reader()?.searcher();
    ensure!(searcher.num_docs() == pages, "tantivy has {} pages", searcher.num_docs());
    let mut became = Vec::new();
    for number in 0..pages {
        let url = url(number);
        let term = TermQuery::new(Term::from_field_text(search.url, &url), IndexRecordOption::Basic);
        let found: HashSet<_> = searcher.search(&term, &DocSetCollector)?;
        ensure!(found.len() == 1, "{url} is in tantivy {} times", found.len());
        ensure!(snapshot.contains(url.as_str())?, "{url} is not in twindex");
        let mut duplicate_of = None;
        for address in found {
            let document: TantivyDocument = searcher.doc(address)?;
            duplicate_of =
                document.get_first(search.duplicate_of).and_then(|of| of.as_str().map(str::to_owned));
        }
        if let Some(of) = &duplicate_of {
            ensure!(*of != url && snapshot.contains(of.as_str())?, "{url} is a duplicate of {of}");
        }
        became.push(duplicate_of);
    }
    let found = verify(&RealVfs, &folder.join("near.twx"), |_| ());
    ensure!(found.problems.is_empty(), "{:?}", found.problems);
    let searchable = became.iter().filter(|of| of.is_none()).count();
    println!("{pages} pages: {searchable} searchable, {} duplicates of others", became.len() - searchable);
    Ok(became)
}

/// Starts the indexer and kills it at a moment that depends on `kill`: just after its start, some time after both
/// stores have committed, or between their commits. Returns false if the indexer ended by itself.
fn killed(verb: &str, folder: &Path, pages: u64, kill: u64, kills: u64) -> Result<bool> {
    let first = if verb == "run" { SEARCHABLE } else { KNOWN };
    let mut child = Command::new(std::env::current_exe()?)
        .args([verb.as_ref(), folder.as_os_str(), pages.to_string().as_ref()])
        .stdout(Stdio::piped())
        .spawn()?;
    // Read all output. If the pipe were closed, the indexer would exit by itself before it is killed.
    let mut lines = BufReader::new(child.stdout.take().context("no pipe")?).lines();
    let (at_start, between) = (kill % 3 == 1, kill % 3 == 2);
    if !at_start {
        let wanted = (kill + 1) * pages / (kills + 2);
        for line in &mut lines {
            let line = line?;
            let (number, what) = line.split_once(' ').context("a number and what it is")?;
            if number.parse::<u64>()? >= wanted && (!between || what == first) {
                break;
            }
        }
    }
    if !between {
        std::thread::sleep(Duration::from_millis(pages::mixed(kill) % if at_start { 400 } else { 120 }));
    }
    child.kill()?; // SIGKILL
    let status = child.wait()?;
    drop(lines);
    ensure!(status.success() || status.signal() == Some(9), "the indexer ended by itself: {status}");
    Ok(!status.success())
}

fn torture(folder: &Path, pages: u64, kills: u64) -> Result<()> {
    let (kept, other) = (folder.join("killed"), folder.join("undisturbed"));
    let (start, mut ahead) = (Instant::now(), 0);
    for kill in 0..kills {
        ensure!(
            killed("run", &kept, pages, kill, kills)?,
            "all pages were done before kill {kill}: give it more pages"
        );
        // Count the kills after which tantivy was ahead. The indexer does not need this check when it starts again.
        let (search, near) = (kept.join("search"), kept.join("near.twx"));
        // Open only existing stores: opening would create missing files, which only the indexer may do.
        if search.join("meta.json").is_file() && near.join("CURRENT").is_file() {
            ahead += u64::from(Search::open(&search)?.pages()? > pages_near(&open_near(&near)?)?);
        }
    }
    println!(
        "{kills} kills in {:.0} s; after {ahead} of them tantivy was ahead",
        start.elapsed().as_secs_f64()
    );
    run(&kept, pages)?;
    run(&other, pages)?;
    ensure!(check(&kept, pages)? == check(&other, pages)?, "a run that was killed ends otherwise");
    println!("what became of each page is the same as in a run that nobody killed");
    Ok(())
}

fn torture_collapse(folder: &Path, pages: u64, kills: u64) -> Result<()> {
    let (kept, other) = (folder.join("collapse-killed"), folder.join("collapse-undisturbed"));
    for kill in 0..kills {
        ensure!(
            killed("collapse", &kept, pages, kill, kills)?,
            "all pages were done before kill {kill}: give it more pages"
        );
    }
    collapse::run(&kept, pages)?;
    collapse::run(&other, pages)?;
    let same = collapse::check(&kept, pages)? == collapse::check(&other, pages)?;
    ensure!(same, "a run that was killed ends with other groups");
    println!("after {kills} kills the group of each page is the same as in a run that nobody killed");
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let usage = "expected: run FOLDER PAGES, check FOLDER PAGES, or torture FOLDER PAGES KILLS; or the same with collapse, \
                 check-collapse and torture-collapse";
    let [verb, folder, numbers @ ..] = &arguments[..] else { bail!(usage) };
    let numbers: Vec<u64> =
        numbers.iter().map(|number| number.parse()).collect::<Result<_, _>>().context(usage)?;
    let folder = Path::new(folder);
    match (verb.as_str(), &numbers[..]) {
        ("run", &[pages]) => run(folder, pages),
        ("check", &[pages]) => check(folder, pages).map(drop),
        ("torture", &[pages, kills]) => torture(folder, pages, kills),
        ("collapse", &[pages]) => collapse::run(folder, pages),
        ("check-collapse", &[pages]) => collapse::check(folder, pages).map(drop),
        ("torture-collapse", &[pages, kills]) => torture_collapse(folder, pages, kills),
        _ => bail!(usage),
    }
}
