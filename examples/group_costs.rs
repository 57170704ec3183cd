//! What it costs to find leaders: questions and microseconds for each, for corpora of several kinds.
//!
//! ```sh
//! cargo run --release --example group_costs [DOCUMENTS]
//! ```
//!
//! Documents are fingerprints, near within 3 bits, in one segment: with 1, 30 and 90 % near-duplicates (families of 2 to 10),
//! in families as large as a tenth of them, and in chains of a hundredth, each in the order of key hashes; then the
//! families and the chains in an order of priorities that is hostile to questions, a document after those that it waits
//! for. Each question is asked with nothing known. Then all groups are listed.

use std::time::Instant;

use twindex::{Decision, Document, Error, Fingerprint, Index, Params, Resources, Writer};

/// Leaders that are asked for.
const ASKED: u64 = 300;
/// The most questions for one.
const MOST: u64 = 20_000;

fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ mixed >> 31
}

/// The member of a family: one or two bits of its center are others.
fn member(family: u64, place: u64) -> u64 {
    let bits = mix(family << 32 | place);
    mix(family) ^ 1 << (bits & 63) ^ 1 << (bits >> 8 & 63)
}

/// A row of fingerprints, each near the next one and few others.
fn link(chain: u64, place: u64) -> u64 {
    let gray = place ^ place >> 1;
    (0..32).fold(mix(chain), |value, bit| if gray >> bit & 1 == 1 { value ^ 3 << (2 * bit) } else { value })
}

/// A corpus: its name, the fingerprint of a document, and its priority.
struct Corpus {
    name: String,
    fingerprint: Box<dyn Fn(u64) -> u64>,
    priority: fn(u64) -> Option<u64>,
}

fn corpora(documents: u64) -> Vec<Corpus> {
    let mut all = Vec::new();
    for percent in [1, 30, 90] {
        // Of ten families of 10 documents, or of 100 documents, so many are of families.
        let fingerprint = move |i: u64| if mix(i / 10) % 100 < percent { member(i / 10, i) } else { mix(!i) };
        all.push(Corpus {
            name: format!("{percent} % duplicates"),
            fingerprint: Box::new(fingerprint),
            priority: |_| None,
        });
    }
    let (family, chain) = ((documents / 10).max(1), (documents / 100).max(1));
    for (order, priority) in [("", (|_| None) as fn(u64) -> Option<u64>), (", hostile order", Some)] {
        let of_families = Box::new(move |i| member(i / family, i));
        all.push(Corpus { name: format!("families of {family}{order}"), fingerprint: of_families, priority });
        let of_chains = Box::new(move |i| link(i / chain, i % chain));
        all.push(Corpus { name: format!("chains of {chain}{order}"), fingerprint: of_chains, priority });
    }
    all
}

fn quantiles(mut all: Vec<f64>) -> (f64, f64, f64) {
    all.sort_by(f64::total_cmp);
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    (mean, all[all.len() * 99 / 100], all[all.len() - 1])
}

fn main() -> twindex::Result<()> {
    let documents: u64 = std::env::args().nth(1).and_then(|number| number.parse().ok()).unwrap_or(1_000_000);
    let scratch = tempfile::tempdir().map_err(|error| Error::io("make", &std::env::temp_dir(), error))?;
    println!("{documents} documents, {ASKED} leaders with nothing known, at most {MOST} questions for each");
    println!("corpus\tquestions mean\tp99\tmax\tundecided\tus mean\tp99\tmax\tgroups\tlisting s");
    for (number, corpus) in corpora(documents).into_iter().enumerate() {
        let dir = scratch.path().join(format!("{number}.twx"));
        let params = Params::builder().u64_keys().simhash(3).priorities().build()?;
        let index = Index::create(&dir, params)?;
        let mut writer: Writer = index.writer()?;
        writer.set_logged(false);
        for i in 0..documents {
            let document =
                Document::from(Fingerprint((corpus.fingerprint)(i))).with_priority((corpus.priority)(i));
            writer.put(i, document)?;
        }
        writer.commit()?;
        drop(writer);
        index.compact()?;
        let (mut questions, mut micros, mut undecided) = (Vec::new(), Vec::new(), 0);
        // The dearest questions of a hostile order take long: then fewer are asked.
        let began = Instant::now();
        for place in 0..ASKED {
            if began.elapsed().as_secs() > 60 {
                break;
            }
            // A snapshot of its own knows nothing of the questions before.
            let snapshot = Index::open(&dir)?.snapshot();
            let key = mix(place) % documents;
            let start = Instant::now();
            let found = snapshot.leader(key, MOST)?;
            micros.push(start.elapsed().as_secs_f64() * 1e6);
            if let Some(Decision::Decided(leader)) = found {
                questions.push(leader.questions as f64);
            } else {
                questions.push(MOST as f64);
                undecided += 1;
            }
        }
        let start = Instant::now();
        let groups =
            index.snapshot().groups(&Resources { threads: 2, ..Resources::in_dir(scratch.path()) })?;
        let listing = start.elapsed().as_secs_f64();
        let asked = questions.len();
        let ((q_mean, q_99, q_max), (u_mean, u_99, u_max)) = (quantiles(questions), quantiles(micros));
        println!(
            "{}\t{q_mean:.1}\t{q_99}\t{q_max}\t{undecided} of {asked}\t{u_mean:.0}\t{u_99:.0}\t{u_max:.0}\t{}\t{listing:.2}",
            corpus.name,
            groups.count()
        );
    }
    Ok(())
}
