//! Measures the stages from text to sketch, at each SIMD level, on prose from this project's documents.
//!
//! Rates are in bytes of text, so that the stages can be compared with each other and with the memory bandwidth of the
//! machine: "memory read" sums the words of a buffer far larger than the caches, and "copy" copies the texts.

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use twindex::Params;
use twindex::params::Shingling;
#[cfg(feature = "languages")]
use twindex::params::{NormalForm, Stemming, Tokens};
use twindex::sketch::{Buffers, MinHasher, Scratch, Shingler, Sketch, Sketcher, simhash_at};
#[cfg(feature = "languages")]
use twindex::sketch::{Cutter, Units};
use twindex_kernel::Level;

/// About 100 kB of prose from this repository, so that the benchmark needs no other data.
const TEXTS: [&str; 6] = [
    include_str!("../format-spec.md"),
    include_str!("../LICENSE-APACHE"),
    include_str!("../docs/decisions.md"),
    include_str!("../README.md"),
    include_str!("../crates/sketch/src/shingle.rs"),
    include_str!("../src/store/writer/mod.rs"),
];

/// Splits the texts at line ends into documents about as long as the text of a web page.
fn documents() -> Vec<String> {
    let mut documents = Vec::new();
    for text in TEXTS {
        let mut document = String::new();
        for line in text.lines() {
            document.push_str(line);
            document.push('\n');
            if document.len() > 6000 {
                documents.push(std::mem::take(&mut document));
            }
        }
        documents.push(document);
    }
    documents
}

fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

fn memory(criterion: &mut Criterion) {
    let words = vec![1_u64; 32 << 20];
    let mut group = criterion.benchmark_group("limits");
    group.throughput(Throughput::Bytes(8 * words.len() as u64)).sample_size(10);
    group.bench_function("memory read", |bencher| {
        bencher.iter(|| Level::best().run(|| black_box(&words).iter().fold(0_u64, |sum, &word| sum ^ word)));
    });
    let documents = documents();
    let bytes: usize = documents.iter().map(String::len).sum();
    group.throughput(Throughput::Bytes(bytes as u64));
    let mut copy = vec![0; bytes];
    group.bench_function("copy", |bencher| {
        bencher.iter(|| {
            for document in &documents {
                copy[..document.len()].copy_from_slice(black_box(document).as_bytes());
            }
            copy[0]
        });
    });
    group.finish();
}

fn stages(criterion: &mut Criterion) {
    let documents = documents();
    let bytes: usize = documents.iter().map(String::len).sum();
    let shingler = |width| Shingler::new(&Shingling::words(width, 0)).expect("plain words");
    let shingles: Vec<Vec<u64>> = documents
        .iter()
        .map(|text| {
            let mut hashes = Vec::new();
            shingler(5).occurrences(text, &mut Buffers::default(), &mut hashes);
            hashes
        })
        .collect();
    let count: usize = shingles.iter().map(Vec::len).sum();
    assert!(count > 10_000, "the texts have words");
    println!("{bytes} bytes, {count} shingles, {:.0} a document", count as f64 / documents.len() as f64);

    let mut group = criterion.benchmark_group("text");
    group.throughput(Throughput::Bytes(bytes as u64));
    for level in levels() {
        for width in [1, 5] {
            let shingler = shingler(width).at(level);
            let (mut buffers, mut hashes) = (Buffers::default(), Vec::new());
            group.bench_function(BenchmarkId::new(format!("to shingles of {width}"), level), |bencher| {
                bencher.iter(|| {
                    for text in &documents {
                        shingler.occurrences(black_box(text), &mut buffers, &mut hashes);
                        black_box(&hashes);
                    }
                });
            });
        }
        let params = Params::builder().words(5).simhash(3).minhash(6, 14).build().expect("good parameters");
        let sketcher = Sketcher::new(&params).expect("plain words").at(level);
        let (mut scratch, mut sketch) = (Scratch::default(), Sketch::default());
        group.bench_function(BenchmarkId::new("to simhash + 84 minima + 6 features", level), |bencher| {
            bencher.iter(|| {
                for text in &documents {
                    sketcher.sketch_into(black_box(text), &mut scratch, &mut sketch).expect("a text");
                    black_box(&sketch);
                }
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("shingles");
    group.throughput(Throughput::Elements(count as u64));
    for level in levels() {
        group.bench_function(BenchmarkId::new("to simhash", level), |bencher| {
            bencher.iter(|| {
                let all = shingles.iter().map(|hashes| simhash_at(level, black_box(hashes)).0);
                all.fold(0, |a, b| a ^ b)
            });
        });
        for minima in [84, 120, 256] {
            let hasher = MinHasher::new(minima).at(level);
            let mut signature = Vec::new();
            group.bench_function(BenchmarkId::new(format!("to {minima} minima"), level), |bencher| {
                bencher.iter(|| {
                    for hashes in &shingles {
                        hasher.signature(black_box(hashes), &mut signature);
                        black_box(&signature);
                    }
                });
            });
        }
    }
    // Documents with few shingles leave most bins empty.
    for of in [20, 100] {
        let short: Vec<&[u64]> = shingles.iter().flat_map(|hashes| hashes.chunks_exact(of)).collect();
        group.throughput(Throughput::Elements((short.len() * of) as u64));
        for level in levels() {
            let hasher = MinHasher::new(84).at(level);
            let mut signature = Vec::new();
            let name = format!("to 84 minima, {of} a document");
            group.bench_function(BenchmarkId::new(name, level), |bencher| {
                bencher.iter(|| {
                    for hashes in &short {
                        hasher.signature(black_box(hashes), &mut signature);
                        black_box(&signature);
                    }
                });
            });
        }
    }
    group.finish();
}

/// Measures each kind of tokens, on the same prose and on text in several scripts.
#[cfg(feature = "languages")]
fn units(criterion: &mut Criterion) {
    let scripts =
        "L'été dernier, déjà vu… Быстрая лиса прыгает. הכלב החום. 東京タワーは高い。 빠른 갈색 여우가 뛴다. ";
    let inputs = [("prose", documents()), ("scripts", vec![scripts.repeat(40); 25])];
    let with = |change: &dyn Fn(&mut Shingling)| {
        let mut shingling = Shingling::words(1, 0);
        change(&mut shingling);
        shingling
    };
    let of = |tokens| Shingling::words(1, 0).with_tokens(tokens).expect("this build has all tables");
    let choices = [
        ("words", with(&|_| ())),
        ("words of nfkc", with(&|s| s.normal_form = NormalForm::nfkc().expect("this build has all tables"))),
        ("stems", with(&|s| s.stemming = Stemming::English)),
        ("unicode-words", of(Tokens::UnicodeWords)),
        ("sentences", of(Tokens::Sentences)),
    ];
    let mut group = criterion.benchmark_group("units");
    for (input, documents) in &inputs {
        group.throughput(Throughput::Bytes(documents.iter().map(|text| text.len() as u64).sum()));
        for (choice, shingling) in &choices {
            let cutter = Cutter::new(shingling).expect("this build has all tables");
            let mut units = Units::default();
            group.bench_function(BenchmarkId::new(*choice, input), |bencher| {
                bencher.iter(|| {
                    for text in documents {
                        cutter.cut(black_box(text), &mut units);
                        black_box(&units);
                    }
                });
            });
        }
    }
    group.finish();
}

/// Measures nothing, because a build without the feature `languages` has no Unicode tables and no stemmers.
#[cfg(not(feature = "languages"))]
fn units(_: &mut Criterion) {}

criterion_group!(benches, memory, stages, units);
criterion_main!(benches);
