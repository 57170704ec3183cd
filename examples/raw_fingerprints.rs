//! Stores fingerprints of any data (images, sounds, another simhash) under numeric keys, and queries them in large
//! batches.
//!
//! ```sh
//! cargo run --release --example raw_fingerprints
//! ```

use random::Random;
use twindex::{Fingerprint, Index, Params};

#[path = "../tests/support/random.rs"]
mod random;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let params = Params::builder().u64_keys().simhash(3).build()?;
    let index = Index::create(dir.path().join("images.twx"), params)?;

    let mut random = Random(1);
    let stored: Vec<u64> = (0..100_000).map(|_| random.next()).collect();
    let mut writer = index.writer()?;
    for (key, &fingerprint) in (0_u64..).zip(&stored) {
        writer.put(key, Fingerprint(fingerprint))?;
    }
    writer.commit()?;
    drop(writer);

    // Each query differs in two bits from a stored fingerprint.
    let queries: Vec<Fingerprint> =
        stored.iter().take(1000).map(|fingerprint| Fingerprint(fingerprint ^ 0x8000_0001)).collect();
    let (snapshot, mut hits) = (index.snapshot(), 0);
    snapshot.for_each_within_any(&queries, 3, |_query, _document, distance| {
        hits += usize::from(distance <= 3);
        Ok(())
    })?;
    let one = snapshot.within(queries[7], 3).any()?.ok_or("a fingerprint that is stored")?;
    println!(
        "{hits} hits of {} queries; the first of query 7: {} at {:?}",
        queries.len(),
        one.key,
        one.distance
    );
    assert!(hits >= queries.len());
    Ok(())
}
