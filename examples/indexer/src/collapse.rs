//! Shows one search result per group of near-duplicates, and keeps the results correct while pages change: tantivy
//! stores each page with the leader of its group, and a search returns one page per leader.
//!
//! A batch adds, changes and deletes pages in twindex, and commits. Then `Snapshot::changed_leaders` returns the pages
//! whose leader changed. Only these pages and the changed pages are indexed again in tantivy, which then commits, too.
//! If a crash prevents tantivy's commit, the leaders of all pages are compared with those stored in tantivy.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use tantivy::collector::DocSetCollector;
use tantivy::directory::MmapDirectory;
use tantivy::query::{AllQuery, TermQuery};
use tantivy::schema::{Field, IndexRecordOption, STORED, STRING, Schema, TEXT, Value};
use tantivy::{IndexWriter, Searcher, TantivyDocument, Term};
use twindex::{Document, Error, Index, KeyBuf, Params, Resources, Snapshot};

use crate::pages::{mixed, page, url};
use crate::{BATCH, HEAP_BYTES, KNOWN, SEARCHABLE};

/// Number of words whose search results `check` compares.
const QUERIES: u64 = 300;

/// The search engine. It stores each page with its version and the leader of its group.
struct Search {
    index: tantivy::Index,
    url: Field,
    version: Field,
    leader: Field,
    body: Field,
}

/// The content of a page in tantivy: its version and its leader.
type Indexed = (u64, String);

impl Search {
    fn open(folder: &Path) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let mut schema = Schema::builder();
        let url = schema.add_text_field("url", STRING | STORED);
        let version = schema.add_u64_field("version", STORED);
        let leader = schema.add_text_field("leader", STRING | STORED);
        let body = schema.add_text_field("body", TEXT);
        let index = tantivy::Index::open_or_create(MmapDirectory::open(folder)?, schema.build())?;
        Ok(Self { index, url, version, leader, body })
    }

    fn batches(&self) -> Result<u64> {
        match self.index.load_metas()?.payload {
            None => Ok(0),
            Some(payload) => payload.parse().context("the payload of tantivy's commit is no number"),
        }
    }

    /// Indexes a page again, or removes it if `page` is `None`.
    fn replace(&self, indexing: &IndexWriter, url: &str, page: Option<Indexed>) -> Result<()> {
        indexing.delete_term(Term::from_field_text(self.url, url));
        if let Some((version, leader)) = page {
            let mut document = TantivyDocument::default();
            document.add_text(self.url, url);
            document.add_u64(self.version, version);
            document.add_text(self.leader, leader);
            document.add_text(self.body, text(url, version)?);
            indexing.add_document(document)?;
        }
        Ok(())
    }

    fn read(&self, searcher: &Searcher, address: tantivy::DocAddress) -> Result<(String, Indexed)> {
        let document: TantivyDocument = searcher.doc(address)?;
        let field = |field| document.get_first(field).and_then(|value| value.as_str()).map(str::to_owned);
        let version = document.get_first(self.version).and_then(|version| version.as_u64());
        let url = field(self.url).context("a page without a URL")?;
        Ok((url, (version.context("no version")?, field(self.leader).context("no leader")?)))
    }

    fn pages(&self) -> Result<BTreeMap<String, Indexed>> {
        let searcher = self.index.reader()?.searcher();
        let mut pages = BTreeMap::new();
        for address in searcher.search(&AllQuery, &DocSetCollector)? {
            let (url, page) = self.read(&searcher, address)?;
            ensure!(pages.insert(url.clone(), page).is_none(), "{url} is in tantivy twice");
        }
        Ok(pages)
    }

    /// Returns the collapsed results for a word: each leader, with the pages of its group that contain the word.
    fn collapsed(&self, searcher: &Searcher, word: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
        let term = TermQuery::new(Term::from_field_text(self.body, word), IndexRecordOption::Basic);
        let mut groups: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for address in searcher.search(&term, &DocSetCollector)? {
            let (url, (_, leader)) = self.read(searcher, address)?;
            groups.entry(leader).or_default().insert(url);
        }
        Ok(groups)
    }
}

/// Returns the text of a page in one version. Odd versions are copies of an earlier page.
fn text(url: &str, version: u64) -> Result<String> {
    let number: u64 = url.rsplit('/').next().context("no number")?.parse()?;
    Ok(page(if version % 2 == 0 { number } else { mixed(number ^ version << 40) % (number + 1) }))
}

fn open_near(folder: &Path) -> twindex::Result<Index> {
    let params = Params::builder().words(3).simhash(3).values().priorities().build()?;
    match Index::create(folder, params) {
        Err(Error::AlreadyExists { .. }) => Index::open(folder),
        other => other,
    }
}

fn batches_near(snapshot: &Snapshot) -> Result<u64> {
    match snapshot.payload() {
        None => Ok(0),
        Some(bytes) => Ok(u64::from_le_bytes(bytes.try_into().context("a payload of another program")?)),
    }
}

fn version_of(snapshot: &Snapshot, url: &str) -> Result<Option<u64>> {
    let Some(record) = snapshot.get(url)? else { return Ok(None) };
    Ok(Some(u64::from_le_bytes(
        record.value.unwrap_or_default().as_slice().try_into().context("a value of another program")?,
    )))
}

fn name(key: &KeyBuf) -> Result<String> {
    Ok(key.as_str().context("a key that is no URL")?.to_owned())
}

/// Returns the changes of a batch by page number: the new version of each added or changed page, and `None` for each
/// deleted page.
fn changes(batch: u64, pages: u64) -> BTreeMap<u64, Option<u64>> {
    let first = batch * BATCH;
    let mut all: BTreeMap<u64, Option<u64>> = BTreeMap::new();
    for change in 0..if batch == 0 { 0 } else { BATCH / 5 } {
        let draw = mixed(batch << 20 | change);
        all.insert(mixed(draw) % first, (draw % 3 > 0).then_some(batch));
    }
    all.extend((first..pages.min(first + BATCH)).map(|number| (number, Some(0))));
    all
}

/// Returns the URL of the leader of each page, by the URL of the page.
fn leaders(snapshot: &Snapshot, scratch: &Path) -> Result<BTreeMap<String, String>> {
    let mut all = BTreeMap::new();
    snapshot.groups(&Resources::in_dir(scratch))?.for_each(1, |url, leader, _| {
        all.insert(url.to_buf().to_string(), leader.to_buf().to_string());
        Ok(())
    })?;
    Ok(all)
}

/// Compares all pages in tantivy with the pages in a snapshot, and updates tantivy. Returns the number of updated pages.
fn reconcile(search: &Search, indexing: &IndexWriter, snapshot: &Snapshot, scratch: &Path) -> Result<usize> {
    let (mut indexed, mut count) = (search.pages()?, 0);
    for (url, leader) in leaders(snapshot, scratch)? {
        let page = (version_of(snapshot, &url)?.context("a page of the listing is gone")?, leader);
        if indexed.remove(&url).as_ref() != Some(&page) {
            search.replace(indexing, &url, Some(page))?;
            count += 1;
        }
    }
    for url in indexed.keys() {
        search.replace(indexing, url, None)?;
    }
    Ok(count + indexed.len())
}

pub(crate) fn run(folder: &Path, pages: u64) -> Result<()> {
    let search = Search::open(&folder.join("search"))?;
    let near = open_near(&folder.join("near.twx"))?;
    let sketcher = near.sketcher()?;
    let mut indexing: IndexWriter = search.index.writer_with_num_threads(1, HEAP_BYTES)?;
    let mut writer = near.writer()?;
    let mut earlier = near.snapshot();
    let commit = |indexing: &mut IndexWriter, batches: u64| -> Result<()> {
        let mut prepared = indexing.prepare_commit()?;
        prepared.set_payload(&batches.to_string());
        prepared.commit()?;
        println!("{} {SEARCHABLE}", batches * BATCH);
        Ok(())
    };
    let mut batch = batches_near(&earlier)?;
    ensure!(search.batches()? <= batch, "tantivy is ahead: twindex commits first");
    if search.batches()? < batch {
        let count = reconcile(&search, &indexing, &earlier, folder)?;
        eprintln!("tantivy lacks the last commit: {count} pages are indexed again");
        commit(&mut indexing, batch)?;
    }
    let (mut of_pages, mut of_leaders) = (0, 0);
    while batch * BATCH < pages {
        let mut touched = BTreeSet::new();
        for (number, version) in changes(batch, pages) {
            let url = url(number);
            match version {
                Some(version) => {
                    let sketch = sketcher.sketch(&text(&url, version)?)?;
                    let value = version.to_le_bytes();
                    // Older pages have priority as leaders of their groups.
                    writer.put(
                        url.as_str(),
                        Document::from(&sketch).with_value(&value).with_priority(number),
                    )?;
                }
                None => writer.delete(url.as_str())?,
            }
            touched.insert(url);
        }
        batch += 1;
        writer.commit_with(&batch.to_le_bytes())?;
        println!("{} {KNOWN}", batch * BATCH);
        let snapshot = near.snapshot();
        let (changed, before) = (snapshot.changed_leaders(&earlier)?, touched.len());
        for change in &changed {
            touched.insert(name(&change.key)?);
        }
        (of_pages, of_leaders) = (of_pages + before, of_leaders + touched.len() - before);
        for url in &touched {
            let page = match (version_of(&snapshot, url)?, snapshot.leader(url.as_str(), u64::MAX)?) {
                (Some(version), Some(leader)) => {
                    let leader = leader.decided().context("no bound, and undecided")?;
                    Some((version, name(&leader.key)?))
                }
                _ => None,
            };
            search.replace(&indexing, url, page)?;
        }
        commit(&mut indexing, batch)?;
        earlier = snapshot;
    }
    indexing.wait_merging_threads()?;
    eprintln!("indexed again: {of_pages} pages that changed, {of_leaders} others whose leader changed");
    Ok(())
}

/// Compares the pages in tantivy with those in twindex. Also compares collapsed results with results that are computed
/// from leaders and texts. Returns all pages with their leaders.
pub(crate) fn check(folder: &Path, pages: u64) -> Result<BTreeMap<String, Indexed>> {
    let search = Search::open(&folder.join("search"))?;
    let near = open_near(&folder.join("near.twx"))?;
    let snapshot = near.snapshot();
    let batches = pages.div_ceil(BATCH);
    ensure!(search.batches()? == batches && batches_near(&snapshot)? == batches, "not all is committed");
    let mut expected = BTreeMap::new();
    for (url, leader) in leaders(&snapshot, folder)? {
        let version = version_of(&snapshot, &url)?.context("a page of the listing is gone")?;
        expected.insert(url, (version, leader));
    }
    let indexed = search.pages()?;
    for (url, page) in &expected {
        ensure!(
            indexed.get(url) == Some(page),
            "{url}: expected {page:?}, tantivy has {:?}",
            indexed.get(url)
        );
    }
    ensure!(
        indexed.len() == expected.len(),
        "tantivy has {} pages, twindex {}",
        indexed.len(),
        expected.len()
    );
    let searcher = search.index.reader()?.searcher();
    let mut words: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for query in 0..QUERIES {
        let draw = url(mixed(query) % pages);
        if let Some((version, _)) = expected.get(&draw) {
            let word = text(&draw, *version)?.split(' ').next().context("a page without words")?.to_owned();
            words.insert(word, BTreeMap::new());
        }
    }
    for (url, (version, leader)) in &expected {
        for word in text(url, *version)?.split(' ') {
            if let Some(groups) = words.get_mut(word) {
                groups.entry(leader.clone()).or_default().insert(url.clone());
            }
        }
    }
    let (mut hits, mut shown) = (0, 0);
    for (word, groups) in &words {
        let found = search.collapsed(&searcher, word)?;
        ensure!(found == *groups, "{word}: collapsed results are {found:?} and not {groups:?}");
        hits += found.values().map(BTreeSet::len).sum::<usize>();
        shown += found.len();
    }
    ensure!(shown < hits, "nothing was collapsed");
    println!("{} pages; {} queries have {hits} hits, {shown} after collapsing", expected.len(), words.len());
    Ok(expected)
}
