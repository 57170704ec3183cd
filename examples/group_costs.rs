//! Measures the number of queries and the time to find the leader of a document, for several kinds of corpora.
//!
//! ```sh
//! cargo run --release --example group_costs [DOCUMENTS [WORD OF THE CORPUS]]
//! ```
//!
//! Most corpora are one segment of fingerprints, which are near if they differ in at most 3 bits. The corpora are:
//!
//! - 1, 30 and 90 % near-duplicates, in families of 2 to 10;
//! - families of a tenth of all documents, at most 100,000;
//! - chains of a hundredth of all documents, at most 10,000, in which each document is near the next one;
//! - cubes of the same number of documents, in which each document is near about fourteen others;
//! - texts that all resemble each other, stored with their sets. Their number is that of the largest family.
//!
//! By default, documents are ordered by the hashes of their keys. Families, chains and cubes are also measured with an
//! adversarial order, in which each document depends on earlier ones. Leaders are searched in an index that was just
//! opened, and in one that has cached earlier results. At the end, the groups of all documents are listed.

use std::time::Instant;

use twindex::params::Near;
use twindex::{
    Decision, Document, Error, Fingerprint, Index, Leader, Params, Resources, Snapshot, Writer, WriterOptions,
};

/// Number of documents whose leaders are measured.
const ASKED: u64 = 300;
/// Maximum number of queries that may be made to find one leader.
const MOST: u64 = 20_000;

fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// Returns the fingerprint of a member of a family. It differs from the centre of the family in one or two bits.
fn member(family: u64, place: u64) -> u64 {
    let bits = mix(family << 32 | place);
    mix(family) ^ 1 << (bits & 63) ^ 1 << (bits >> 8 & 63)
}

/// Returns the fingerprint of a corner of a cube. It is near the corners that differ from it in one dimension.
fn corner(cube: u64, place: u64) -> u64 {
    (0..32).fold(mix(cube), |value, bit| if place >> bit & 1 == 1 { value ^ 3 << (2 * bit) } else { value })
}

/// Returns chains of fingerprints. Each fingerprint is near the next one of its chain and near few others.
fn chains(documents: u64, length: u64) -> Vec<u64> {
    let mut value = 0;
    let mut link = |i| {
        let bits = mix(i);
        value = if i % length == 0 { bits } else { value ^ 1 << (bits & 63) ^ 1 << (bits >> 8 & 63) };
        value
    };
    (0..documents).map(&mut link).collect()
}

/// Returns the text of a member of a family. Each member replaces one of the family's forty words.
fn text(i: u64) -> String {
    let word = |place: u64| if place == mix(i) % 40 { format!("x{i}") } else { format!("w{place}") };
    (0..40).map(word).collect::<Vec<_>>().join(" ")
}

/// A corpus: its name, the number of its documents, and the fingerprint and the priority of each document.
struct Corpus {
    name: String,
    documents: u64,
    /// Returns the fingerprint of a document; `None` if the documents are texts, which are stored with sets.
    fingerprint: Option<Box<dyn Fn(u64) -> u64>>,
    priority: fn(u64) -> Option<u64>,
}

fn corpora(documents: u64) -> Vec<Corpus> {
    let mut all = Vec::new();
    let mut add = |name: String, fingerprint: Box<dyn Fn(u64) -> u64>, priority| {
        all.push(Corpus { name, documents, fingerprint: Some(fingerprint), priority });
    };
    for percent in [1, 30, 90] {
        // `percent` per cent of all blocks of 10 documents are families.
        let fingerprint = move |i: u64| if mix(i / 10) % 100 < percent { member(i / 10, i) } else { mix(!i) };
        add(format!("{percent} % duplicates"), Box::new(fingerprint), |_| None);
    }
    let (family, chain) = ((documents / 10).clamp(1, 100_000), (documents / 100).clamp(1, 10_000));
    for (order, priority) in [("", (|_| None) as fn(u64) -> Option<u64>), (", hostile order", Some)] {
        add(format!("families of {family}{order}"), Box::new(move |i| member(i / family, i)), priority);
        let links = chains(documents, chain);
        add(format!("chains of {chain}{order}"), Box::new(move |i| links[i as usize]), priority);
        add(format!("cubes of {chain}{order}"), Box::new(move |i| corner(i / chain, i % chain)), priority);
    }
    let name = format!("a family of {family} sets");
    all.push(Corpus { name, documents: family, fingerprint: None, priority: |_| None });
    all
}

fn build(dir: &std::path::Path, corpus: &Corpus) -> twindex::Result<Index> {
    let builder = Params::builder().u64_keys().priorities();
    let params = match corpus.fingerprint {
        Some(_) => builder.simhash(3),
        None => builder.words(1).minhash(20, 5).near(Near::resembling(0.8)?).sets(),
    };
    let index = Index::create(dir, params.build()?)?;
    let sketcher = index.sketcher()?;
    let mut writer: Writer = index.writer_with(WriterOptions::default().logged(false))?;
    for i in 0..corpus.documents {
        let priority = (corpus.priority)(i);
        match &corpus.fingerprint {
            Some(fingerprint) => {
                writer.put(i, Document::from(Fingerprint(fingerprint(i))).with_priority(priority))?;
            }
            None => writer.put(i, Document::from(&sketcher.sketch(&text(i))?).with_priority(priority))?,
        }
    }
    writer.commit()?;
    drop(writer);
    index.compact()?;
    Ok(index)
}

/// Returns the leader of a document (`None` if it is undecided), and the time of the search in microseconds.
fn ask(snapshot: &Snapshot, key: u64) -> twindex::Result<(Option<Leader>, f64)> {
    let start = Instant::now();
    let found = snapshot.leader(key, MOST)?;
    Ok((found.and_then(Decision::decided), start.elapsed().as_secs_f64() * 1e6))
}

/// Returns the mean, the median, the 99th percentile and the maximum.
fn quantiles(mut all: Vec<f64>) -> [f64; 4] {
    all.sort_by(f64::total_cmp);
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    [mean, all[all.len() / 2], all[all.len() * 99 / 100], all[all.len() - 1]]
}

fn main() -> twindex::Result<()> {
    let documents: u64 = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(1_000_000);
    let scratch = tempfile::tempdir().map_err(|error| Error::io("make", &std::env::temp_dir(), error))?;
    println!("{documents} documents, {ASKED} leaders with nothing known, at most {MOST} queries for each");
    let of_four = |name: &str| format!("{name} mean\tmedian\tp99\tmax");
    let [queries, opened, warm] = ["queries", "us opened", "us"].map(of_four);
    println!("corpus\t{queries}\tundecided\t{opened}\t{warm}\tgroups\tlisting s");
    let wanted = std::env::args().nth(2).unwrap_or_default();
    for (number, corpus) in corpora(documents).into_iter().enumerate() {
        if !corpus.name.contains(&wanted) {
            continue;
        }
        let dir = scratch.path().join(format!("{number}.twx"));
        let index = build(&dir, &corpus)?;
        let (mut queries, mut undecided, mut asked) = (Vec::new(), 0, 0);
        let mut micros = [Vec::new(), Vec::new()];
        let mut writer: Writer = index.writer()?;
        // With an adversarial order, searching for the most expensive leaders takes long, so measure fewer documents.
        let (sketcher, began) = (index.sketcher()?, Instant::now());
        for place in 0..ASKED {
            if began.elapsed().as_secs() > 60 {
                break;
            }
            let key = mix(place) % corpus.documents;
            if place % 10 == 0 {
                micros[0].push(ask(&Index::open(&dir)?.snapshot(), key)?.1);
            }
            // A commit gives a new snapshot, which has no cached results.
            let far = corpus.documents + place;
            match corpus.fingerprint {
                Some(_) => writer.put(far, Document::from(Fingerprint(mix(far))).with_priority(far))?,
                None => writer.put(far, &sketcher.sketch(&format!("z{far}"))?)?,
            }
            writer.commit()?;
            let (leader, time) = ask(&index.snapshot(), key)?;
            micros[1].push(time);
            asked += 1;
            undecided += u64::from(leader.is_none());
            queries.push(leader.map_or(MOST as f64, |leader| leader.questions as f64));
        }
        let start = Instant::now();
        let groups =
            index.snapshot().groups(&Resources { threads: 2, ..Resources::in_dir(scratch.path()) })?;
        let listing = start.elapsed().as_secs_f64();
        let shown = |all: Vec<f64>, digits| quantiles(all).map(|one| format!("{one:.digits$}")).join("\t");
        let [opened, warm] = micros.map(|micros| shown(micros, 0));
        println!(
            "{}\t{}\t{undecided} of {asked}\t{opened}\t{warm}\t{}\t{listing:.2}",
            corpus.name,
            shown(queries, 1),
            groups.count()
        );
    }
    Ok(())
}
