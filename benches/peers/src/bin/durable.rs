//! Measures stores that add documents durably and find near documents: twindex, and an embedded baseline that implements
//! MinHash bands on top of redb, LMDB or fjall. `scripts/experiment compare_all` runs it.
//!
//! ```text
//! durable load SYSTEM DIR FILE.jsonl               creates a store with the documents of a file
//! durable add SYSTEM DIR FILE.jsonl BATCH          opens it, looks up each document, and adds those without a near document
//! durable latency SYSTEM DIR DOCUMENTS SECONDS     fills a store, adds to it while another thread queries it,
//!                                                  and opens it again
//! durable texts DOCUMENTS FIRST                    prints DOCUMENTS generated documents from number FIRST on, one per line
//! ```
//!
//! SYSTEM is `twindex`, `twindex-estimates`, `redb`, `lmdb` or `fjall`. All of them use the sketcher of twindex, with 20 bands of 6
//! minima and a threshold of 0.8. `twindex` compares the sets of shingles exactly. The others estimate the resemblance from
//! 8 bits of each of the 120 minima. The baseline has a table from band to documents, and a table from document to signature
//! and key. It looks up each document in the tables and among the documents of the current batch, and inserts the sorted
//! bands of a batch at the commit.
//!
//! Commits are durable. `add` commits every BATCH documents, and `latency` every 1,000. The times of `admit` and `near`
//! include the time for the sketch. Generated documents have 60 words; one in twenty is a copy of an earlier document with
//! up to three words replaced.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use fjall::Readable as _;
use lmdb::{Cursor, DatabaseFlags, Environment, Transaction, WriteFlags};
use measure::{Random, resident};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};
use serde_json::json;
use twindex::sketch::Resemblance;
use twindex::{Admitted, Banding, Index, Params, Sketch, Sketcher, Writer, WriterOptions};

#[path = "../measure.rs"]
#[allow(dead_code, reason = "other programs use the rest")]
mod measure;

const THRESHOLD: f64 = 0.8;
/// Number of documents in each commit of `latency`.
const BATCH: usize = 1000;
/// Number of documents in each transaction that fills a store.
const FILL: u32 = 250_000;
/// Number of words in a generated document.
const WORDS: usize = 60;
const VOCABULARY: usize = 50_000;

/// The number and the key of a document.
type Name = (u32, String);

/// A function that finds the documents near a text, and returns how many there are.
type Reader = Box<dyn FnMut(&str) -> Result<usize> + Send>;

/// A store to which documents are added.
trait Store {
    /// Adds documents without looking them up.
    fn fill(&mut self, documents: &mut dyn Iterator<Item = Result<(Name, Sketch)>>) -> Result<()>;
    /// Adds each text that has no near document, and passes the seconds that each text took to `admitted`. Commits at
    /// the end. Returns the seconds that the commit took, and the number of added documents.
    fn batch(&mut self, texts: &[(Name, String)], admitted: &mut dyn FnMut(f64)) -> Result<(f64, u64)>;
    /// Returns a function that finds the documents near a text in the last commit.
    fn reader(&self) -> Result<Reader>;
}

fn params(sets: bool) -> Result<Params> {
    let Banding { bands, rows } = Banding::for_threshold(THRESHOLD);
    let builder = Params::builder().words(5).minhash(bands, rows);
    Ok(if sets { builder.sets() } else { builder }.build()?)
}

struct Twindex {
    index: Index,
    writer: Writer,
    sketcher: Sketcher,
    is_exact: bool,
}

impl Twindex {
    fn open(dir: &Path, is_exact: bool) -> Result<Self> {
        let path = dir.join("index.twx");
        let index =
            if path.exists() { Index::open(&path)? } else { Index::create(&path, params(is_exact)?)? };
        let writer =
            index.writer_with(WriterOptions::default().drop_duplicates(true).estimated(!is_exact))?;
        Ok(Self { sketcher: index.sketcher()?, index, writer, is_exact })
    }
}

impl Store for Twindex {
    fn fill(&mut self, documents: &mut dyn Iterator<Item = Result<(Name, Sketch)>>) -> Result<()> {
        for document in documents {
            let ((number, key), sketch) = document?;
            self.writer.put(key.as_str(), &sketch)?;
            if number % FILL == FILL - 1 {
                self.writer.commit()?;
            }
        }
        self.writer.commit()?;
        Ok(self.writer.wait_for_merge()?)
    }

    fn batch(&mut self, texts: &[(Name, String)], admitted: &mut dyn FnMut(f64)) -> Result<(f64, u64)> {
        let mut added = 0;
        for ((_, key), text) in texts {
            let start = Instant::now();
            let sketch = self.sketcher.sketch(text)?;
            added += u64::from(matches!(self.writer.admit(key.as_str(), &sketch)?, Admitted::New));
            admitted(start.elapsed().as_secs_f64());
        }
        let start = Instant::now();
        self.writer.commit()?;
        Ok((start.elapsed().as_secs_f64(), added))
    }

    fn reader(&self) -> Result<Reader> {
        let (index, sketcher, is_exact) = (self.index.clone(), self.sketcher.clone(), self.is_exact);
        Ok(Box::new(move |text| {
            let near = index.snapshot().near(&sketcher.sketch(text)?).limit(10);
            Ok(if is_exact { near } else { near.estimated() }.run()?.hits.len())
        }))
    }
}

/// Read access of a transaction to the two tables of the baseline.
trait Tables {
    /// Appends the numbers of the documents with this band.
    fn with_band(&self, band: u64, numbers: &mut Vec<u32>) -> Result<()>;
    /// Calls `read` with the row of a document: its signature, followed by its key.
    fn row(&self, number: u32, read: &mut dyn FnMut(&[u8])) -> Result<()>;
}

/// The documents of the current transaction that are not in the tables yet.
#[derive(Default)]
struct Pending {
    bands: HashMap<u64, Vec<u32>>,
    rows: HashMap<u32, Vec<u8>>,
}

impl Pending {
    fn add(&mut self, (number, key): &Name, sketch: &Sketch) {
        for &band in sketch.features() {
            self.bands.entry(band).or_default().push(*number);
        }
        let row = bits(sketch).chain(key.bytes()).collect();
        self.rows.insert(*number, row);
    }

    /// Returns the entries of both tables, sorted.
    #[allow(clippy::type_complexity, reason = "the entries of two tables")]
    fn sorted(self) -> (Vec<(u64, u32)>, Vec<(u32, Vec<u8>)>) {
        let mut bands: Vec<(u64, u32)> = self
            .bands
            .into_iter()
            .flat_map(|(band, numbers)| numbers.into_iter().map(move |one| (band, one)))
            .collect();
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        bands.sort_unstable();
        rows.sort_unstable();
        (bands, rows)
    }
}

/// Returns the lowest 8 bits of each minimum.
fn bits(sketch: &Sketch) -> impl Iterator<Item = u8> + '_ {
    sketch.signature().iter().map(|&minimum| minimum as u8)
}

/// Returns the numbers of the documents that share a band and whose estimated resemblance reaches the threshold.
fn nearest(sketch: &Sketch, tables: &dyn Tables, pending: &Pending) -> Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for &band in sketch.features() {
        tables.with_band(band, &mut numbers)?;
        numbers.extend(pending.bands.get(&band).into_iter().flatten());
    }
    numbers.sort_unstable();
    numbers.dedup();
    let minima = sketch.signature().len();
    let mut near = Vec::new();
    for number in numbers {
        let mut judge = |row: &[u8]| {
            let matches = bits(sketch).zip(row).filter(|(a, b)| a == *b).count();
            if Resemblance::from_matches(matches, minima, 8).at_least(THRESHOLD) {
                near.push(number);
            }
        };
        match pending.rows.get(&number) {
            Some(row) => judge(row),
            None => tables.row(number, &mut judge)?,
        }
    }
    Ok(near)
}

/// Looks up a batch of texts, and returns the documents that have no near document. Passes the seconds that each text took
/// to `admitted`.
fn admit(
    texts: &[(Name, String)],
    sketcher: &Sketcher,
    tables: &dyn Tables,
    admitted: &mut dyn FnMut(f64),
) -> Result<Pending> {
    let mut pending = Pending::default();
    for (name, text) in texts {
        let start = Instant::now();
        let sketch = sketcher.sketch(text)?;
        if nearest(&sketch, tables, &pending)?.is_empty() {
            pending.add(name, &sketch);
        }
        admitted(start.elapsed().as_secs_f64());
    }
    Ok(pending)
}

/// Passes documents to `write` in parts of [`FILL`] documents.
fn in_parts(
    documents: &mut dyn Iterator<Item = Result<(Name, Sketch)>>,
    mut write: impl FnMut(Pending) -> Result<()>,
) -> Result<()> {
    let mut pending = Pending::default();
    for document in documents {
        let (name, sketch) = document?;
        pending.add(&name, &sketch);
        if pending.rows.len() == FILL as usize {
            write(std::mem::take(&mut pending))?;
        }
    }
    write(pending)
}

/// The keys are pairs of a band and a document's number, so the documents of a band are a range.
const BANDS: TableDefinition<'_, (u64, u32), ()> = TableDefinition::new("bands");
/// The row of each document: its signature, followed by its key.
const ROWS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("rows");

struct Redb {
    database: Arc<Database>,
    sketcher: Sketcher,
}

struct RedbTables<B, R>(B, R);

impl<B: ReadableTable<(u64, u32), ()>, R: ReadableTable<u32, &'static [u8]>> Tables for RedbTables<B, R> {
    fn with_band(&self, band: u64, numbers: &mut Vec<u32>) -> Result<()> {
        for entry in self.0.range((band, 0)..=(band, u32::MAX))? {
            numbers.push(entry?.0.value().1);
        }
        Ok(())
    }

    fn row(&self, number: u32, read: &mut dyn FnMut(&[u8])) -> Result<()> {
        read(self.1.get(number)?.context("a document without a row")?.value());
        Ok(())
    }
}

impl Redb {
    fn open(dir: &Path) -> Result<Self> {
        let database = Database::builder().set_cache_size(2 << 30).create(dir.join("store.redb"))?;
        let transaction = database.begin_write()?;
        transaction.open_table(BANDS)?;
        transaction.open_table(ROWS)?;
        transaction.commit()?;
        Ok(Self { database: Arc::new(database), sketcher: Sketcher::new(&params(false)?)? })
    }
}

impl Store for Redb {
    fn fill(&mut self, documents: &mut dyn Iterator<Item = Result<(Name, Sketch)>>) -> Result<()> {
        in_parts(documents, |pending| {
            let transaction = self.database.begin_write()?;
            write_redb(transaction.open_table(BANDS)?, transaction.open_table(ROWS)?, pending)?;
            Ok(transaction.commit()?)
        })
    }

    fn batch(&mut self, texts: &[(Name, String)], admitted: &mut dyn FnMut(f64)) -> Result<(f64, u64)> {
        let transaction = self.database.begin_write()?;
        let pending = {
            let tables = RedbTables(transaction.open_table(BANDS)?, transaction.open_table(ROWS)?);
            admit(texts, &self.sketcher, &tables, admitted)?
        };
        let added = pending.rows.len() as u64;
        let start = Instant::now();
        write_redb(transaction.open_table(BANDS)?, transaction.open_table(ROWS)?, pending)?;
        transaction.commit()?;
        Ok((start.elapsed().as_secs_f64(), added))
    }

    fn reader(&self) -> Result<Reader> {
        let (database, sketcher) = (Arc::clone(&self.database), self.sketcher.clone());
        Ok(Box::new(move |text| {
            let transaction = database.begin_read()?;
            let tables = RedbTables(transaction.open_table(BANDS)?, transaction.open_table(ROWS)?);
            Ok(nearest(&sketcher.sketch(text)?, &tables, &Pending::default())?.len())
        }))
    }
}

fn write_redb(
    mut of_bands: redb::Table<'_, (u64, u32), ()>,
    mut of_rows: redb::Table<'_, u32, &'static [u8]>,
    pending: Pending,
) -> Result<()> {
    let (bands, rows) = pending.sorted();
    for entry in bands {
        of_bands.insert(entry, ())?;
    }
    for (number, row) in &rows {
        of_rows.insert(number, row.as_slice())?;
    }
    Ok(())
}

struct Lmdb {
    environment: Arc<Environment>,
    bands: lmdb::Database,
    rows: lmdb::Database,
    sketcher: Sketcher,
}

struct LmdbTables<'t, T>(&'t T, lmdb::Database, lmdb::Database);

impl<T: Transaction> Tables for LmdbTables<'_, T> {
    fn with_band(&self, band: u64, numbers: &mut Vec<u32>) -> Result<()> {
        let band = band.to_ne_bytes();
        match self.0.get(self.1, &band) {
            Err(lmdb::Error::NotFound) => return Ok(()),
            found => found?,
        };
        for entry in self.0.open_ro_cursor(self.1)?.iter_dup_of(band) {
            numbers.push(u32::from_ne_bytes(entry?.1.try_into()?));
        }
        Ok(())
    }

    fn row(&self, number: u32, read: &mut dyn FnMut(&[u8])) -> Result<()> {
        read(self.0.get(self.2, &number.to_ne_bytes())?);
        Ok(())
    }
}

impl Lmdb {
    fn open(dir: &Path) -> Result<Self> {
        let environment = Environment::new().set_max_dbs(2).set_map_size(32 << 30).open(dir)?;
        let of_numbers = DatabaseFlags::DUP_SORT | DatabaseFlags::DUP_FIXED | DatabaseFlags::INTEGER_DUP;
        let bands = environment.create_db(Some("bands"), of_numbers | DatabaseFlags::INTEGER_KEY)?;
        let rows = environment.create_db(Some("rows"), DatabaseFlags::INTEGER_KEY)?;
        Ok(Self {
            environment: Arc::new(environment),
            bands,
            rows,
            sketcher: Sketcher::new(&params(false)?)?,
        })
    }

    fn write(&self, mut transaction: lmdb::RwTransaction<'_>, pending: Pending) -> Result<()> {
        let (bands, rows) = pending.sorted();
        for (band, number) in bands {
            transaction.put(self.bands, &band.to_ne_bytes(), &number.to_ne_bytes(), WriteFlags::empty())?;
        }
        for (number, row) in rows {
            transaction.put(self.rows, &number.to_ne_bytes(), &row, WriteFlags::empty())?;
        }
        Ok(transaction.commit()?)
    }
}

impl Store for Lmdb {
    fn fill(&mut self, documents: &mut dyn Iterator<Item = Result<(Name, Sketch)>>) -> Result<()> {
        in_parts(documents, |pending| self.write(self.environment.begin_rw_txn()?, pending))
    }

    fn batch(&mut self, texts: &[(Name, String)], admitted: &mut dyn FnMut(f64)) -> Result<(f64, u64)> {
        let transaction = self.environment.begin_rw_txn()?;
        let tables = LmdbTables(&transaction, self.bands, self.rows);
        let pending = admit(texts, &self.sketcher, &tables, admitted)?;
        let added = pending.rows.len() as u64;
        let start = Instant::now();
        self.write(transaction, pending)?;
        Ok((start.elapsed().as_secs_f64(), added))
    }

    fn reader(&self) -> Result<Reader> {
        let (environment, sketcher) = (Arc::clone(&self.environment), self.sketcher.clone());
        let (bands, rows) = (self.bands, self.rows);
        Ok(Box::new(move |text| {
            let transaction = environment.begin_ro_txn()?;
            let tables = LmdbTables(&transaction, bands, rows);
            Ok(nearest(&sketcher.sketch(text)?, &tables, &Pending::default())?.len())
        }))
    }
}

struct Fjall {
    database: fjall::Database,
    bands: fjall::Keyspace,
    rows: fjall::Keyspace,
    sketcher: Sketcher,
}

struct FjallTables<'t>(fjall::Snapshot, &'t fjall::Keyspace, &'t fjall::Keyspace);

impl Tables for FjallTables<'_> {
    fn with_band(&self, band: u64, numbers: &mut Vec<u32>) -> Result<()> {
        for entry in self.0.prefix(self.1, band.to_be_bytes()) {
            numbers.push(u32::from_be_bytes(entry.key()?[8..].try_into()?));
        }
        Ok(())
    }

    fn row(&self, number: u32, read: &mut dyn FnMut(&[u8])) -> Result<()> {
        read(&self.0.get(self.2, number.to_be_bytes())?.context("a document without a row")?);
        Ok(())
    }
}

impl Fjall {
    fn open(dir: &Path) -> Result<Self> {
        let database = fjall::Database::builder(dir.join("store.fjall")).cache_size(2 << 30).open()?;
        let keyspace = |name| database.keyspace(name, fjall::KeyspaceCreateOptions::default);
        let (bands, rows) = (keyspace("bands")?, keyspace("rows")?);
        Ok(Self { database, bands, rows, sketcher: Sketcher::new(&params(false)?)? })
    }

    fn tables(&self) -> FjallTables<'_> {
        FjallTables(self.database.snapshot(), &self.bands, &self.rows)
    }

    fn write(&self, pending: Pending) -> Result<()> {
        let mut batch = self.database.batch().durability(Some(fjall::PersistMode::SyncData));
        let (bands, rows) = pending.sorted();
        for (band, number) in bands {
            batch.insert(&self.bands, [&band.to_be_bytes()[..], &number.to_be_bytes()].concat(), []);
        }
        for (number, row) in rows {
            batch.insert(&self.rows, number.to_be_bytes(), row);
        }
        Ok(batch.commit()?)
    }
}

impl Store for Fjall {
    fn fill(&mut self, documents: &mut dyn Iterator<Item = Result<(Name, Sketch)>>) -> Result<()> {
        in_parts(documents, |pending| self.write(pending))
    }

    fn batch(&mut self, texts: &[(Name, String)], admitted: &mut dyn FnMut(f64)) -> Result<(f64, u64)> {
        let pending = admit(texts, &self.sketcher, &self.tables(), admitted)?;
        let added = pending.rows.len() as u64;
        let start = Instant::now();
        self.write(pending)?;
        Ok((start.elapsed().as_secs_f64(), added))
    }

    fn reader(&self) -> Result<Reader> {
        let (database, sketcher) = (self.database.clone(), self.sketcher.clone());
        let (bands, rows) = (self.bands.clone(), self.rows.clone());
        Ok(Box::new(move |text| {
            let tables = FjallTables(database.snapshot(), &bands, &rows);
            Ok(nearest(&sketcher.sketch(text)?, &tables, &Pending::default())?.len())
        }))
    }
}

fn store(system: &str, dir: &Path) -> Result<Box<dyn Store>> {
    #[allow(clippy::disallowed_methods, reason = "no folder of an index")]
    std::fs::create_dir_all(dir)?;
    Ok(match system {
        "twindex" => Box::new(Twindex::open(dir, true)?),
        "twindex-estimates" => Box::new(Twindex::open(dir, false)?),
        "redb" => Box::new(Redb::open(dir)?),
        "lmdb" => Box::new(Lmdb::open(dir)?),
        "fjall" => Box::new(Fjall::open(dir)?),
        other => bail!("{other}: an unknown system"),
    })
}

/// Reads the documents of a JSONL file. They are numbered from `first`.
#[allow(clippy::disallowed_methods, reason = "no file of an index")]
fn read(path: &str, first: u32) -> Result<Vec<(Name, String)>> {
    let lines = BufReader::new(File::open(path).with_context(|| path.to_owned())?).lines();
    (first..)
        .zip(lines)
        .map(|(number, line)| {
            let document: serde_json::Value = serde_json::from_str(&line?)?;
            let field = |name: &str| {
                Ok::<_, anyhow::Error>(document[name].as_str().with_context(|| name.to_owned())?.to_owned())
            };
            Ok(((number, field("id")?), field("text")?))
        })
        .collect()
}

/// Returns the original words of generated document `number`, which `text` may replace with a copy of an earlier
/// document.
fn base(number: u64) -> Vec<u64> {
    let mut random = Random(Random(number).next());
    (0..WORDS).map(|_| random.below(VOCABULARY) as u64).collect()
}

/// Returns the text of generated document `number`.
fn text(number: u64) -> String {
    let mut random = Random(Random(!number).next());
    let mut words = base(number);
    if number > 0 && random.below(20) == 0 {
        words = base(random.next() % number);
        for _ in 0..random.below(4) {
            let at = random.below(WORDS);
            words[at] = random.below(VOCABULARY) as u64;
        }
    }
    let mut text = String::with_capacity(WORDS * 6);
    for word in words {
        let _ = write!(text, "w{:x} ", word.wrapping_mul(40_503) % (1 << 18));
    }
    text.pop();
    text
}

/// Returns the median, the 99th percentile and the maximum in microseconds.
fn percentiles(mut seconds: Vec<f64>) -> serde_json::Value {
    seconds.sort_by(f64::total_cmp);
    let at = |share: f64| {
        seconds.get(((seconds.len() as f64 * share) as usize).min(seconds.len().saturating_sub(1)))
    };
    let micros = |share: f64| at(share).map(|seconds| seconds * 1e6);
    json!({ "count": seconds.len(), "p50": micros(0.5), "p99": micros(0.99), "max": micros(1.0) })
}

fn latency(system: &str, dir: &Path, documents: u64, limit: f64) -> Result<()> {
    let mut store = store(system, dir)?;
    let sketcher = Sketcher::new(&params(system == "twindex")?)?;
    let start = Instant::now();
    let (sender, receiver) = std::sync::mpsc::sync_channel(4);
    thread::scope(|scope| {
        // Another thread makes the sketches, so that the time to fill is mostly the time of the store.
        scope.spawn(|| {
            for first in (0..documents).step_by(1000) {
                let part: Result<Vec<_>> = (first..(first + 1000).min(documents))
                    .map(|number| Ok(((number as u32, number.to_string()), sketcher.sketch(&text(number))?)))
                    .collect();
                if sender.send(part).is_err() {
                    return;
                }
            }
            drop(sender);
        });
        let mut documents = receiver.into_iter().flat_map(|part| match part {
            Ok(part) => part.into_iter().map(Ok).collect::<Vec<_>>(),
            Err(error) => vec![Err(error)],
        });
        store.fill(&mut documents)
    })?;
    let filled = start.elapsed().as_secs_f64();

    let mut near = store.reader()?;
    let is_done = AtomicBool::new(false);
    let (mut admits, mut commits, mut added, mut count) = (Vec::new(), Vec::new(), 0, documents);
    let (queries, answers) = thread::scope(|scope| {
        let reader = scope.spawn(|| -> Result<(Vec<f64>, usize)> {
            let (mut seconds, mut answers, mut random) = (Vec::new(), 0, Random(3));
            while !is_done.load(Ordering::Relaxed) {
                // Half of the queries are texts with which the store was filled, and the others are later texts.
                let text = text(random.next() % (2 * documents));
                let start = Instant::now();
                answers += near(&text)?;
                seconds.push(start.elapsed().as_secs_f64());
            }
            Ok((seconds, answers))
        });
        let mut write = || -> Result<()> {
            let start = Instant::now();
            while start.elapsed().as_secs_f64() < limit && !reader.is_finished() {
                let texts: Vec<(Name, String)> = (count..count + BATCH as u64)
                    .map(|number| ((number as u32, number.to_string()), text(number)))
                    .collect();
                count += BATCH as u64;
                let (seconds, new) = store.batch(&texts, &mut |seconds| admits.push(seconds))?;
                commits.push(seconds);
                added += new;
            }
            Ok(())
        };
        let written = write();
        is_done.store(true, Ordering::Relaxed);
        let read = reader.join().unwrap_or_else(|_| Err(anyhow!("the reader panicked")));
        written.and(read)
    })?;
    drop((near, store));
    let start = Instant::now();
    self::store(system, dir)?.reader()?(&text(0))?;
    let reopened = start.elapsed().as_secs_f64();
    let work: f64 = admits.iter().sum::<f64>() + commits.iter().sum::<f64>();
    println!(
        "{}",
        json!({
            "filled": filled, "reopened": reopened, "documents": documents, "batches": commits.len(), "added": added,
            "refused": admits.len() as u64 - added, "answers": answers, "queries": queries.len(),
            "commits_a_second": commits.len() as f64 / work, "admit": percentiles(admits),
            "commit": percentiles(commits), "near": percentiles(queries), "peak": resident(true)?,
        })
    );
    Ok(())
}

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["load", system, dir, file] => {
            let mut store = store(system, Path::new(dir))?;
            let sketcher = Sketcher::new(&params(*system == "twindex")?)?;
            let documents = read(file, 0)?;
            store.fill(&mut documents.into_iter().map(|(name, text)| Ok((name, sketcher.sketch(&text)?))))
        }
        ["add", system, dir, file, batch] => {
            let mut store = store(system, Path::new(dir))?;
            let mut added = 0;
            for texts in read(file, 1 << 31)?.chunks(batch.parse()?) {
                added += store.batch(texts, &mut |_| ())?.1;
            }
            println!("{}", json!({ "added": added }));
            Ok(())
        }
        ["latency", system, dir, documents, seconds] => {
            latency(system, Path::new(dir), documents.parse()?, seconds.parse()?)
        }
        ["texts", documents, first] => {
            let mut out = BufWriter::new(std::io::stdout().lock());
            let first: u64 = first.parse()?;
            for number in first..first + documents.parse::<u64>()? {
                writeln!(out, "{}", text(number))?;
            }
            Ok(out.flush()?)
        }
        _ => bail!("expected load, add, latency or texts, and their arguments"),
    }
}
