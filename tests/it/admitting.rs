//! Tests `admit` against a simple model of the live documents and the current time.

use std::collections::BTreeMap;

use twindex::params::Near;
use twindex::{Admitted, Document, Fingerprint, Index, Params, Writer, WriterOptions};

/// The age at which documents expire.
const AGE: u64 = 60;
const RADIUS: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq)]
struct KeptDocument {
    fingerprint: u64,
    stamp: u64,
    is_marked: bool,
}

/// The documents that are live at the current time, including those of the uncommitted batch.
#[derive(Clone, Debug, Default)]
struct Model {
    now: u64,
    alive: BTreeMap<u64, KeptDocument>,
}

impl Model {
    fn move_time(&mut self, stamp: u64) {
        self.now = self.now.max(stamp);
        let now = self.now;
        self.alive.retain(|_, kept| now - kept.stamp < AGE);
    }

    /// Applies `admit` to the model. Returns the name of the outcome, and the key and the distance of the near document.
    fn admit(
        &mut self,
        key: u64,
        fingerprint: u64,
        stamp: u64,
        drops: bool,
    ) -> (&'static str, Option<(u64, u32)>) {
        self.move_time(stamp);
        if self.now - stamp >= AGE {
            return ("expired", None);
        }
        let near = self
            .alive
            .iter()
            .filter(|(other, kept)| **other != key && !kept.is_marked)
            .map(|(&other, kept)| (other, (kept.fingerprint ^ fingerprint).count_ones()))
            .filter(|&(_, distance)| distance <= RADIUS)
            .min_by_key(|&(other, distance)| (distance, other));
        let is_known = self.alive.contains_key(&key);
        if near.is_none() || is_known || !drops {
            self.alive.insert(key, KeptDocument { fingerprint, stamp, is_marked: near.is_some() });
        }
        let outcome = match (is_known, near) {
            (false, None) => "new",
            (false, Some(_)) => "duplicate",
            (true, None) => "updated",
            (true, Some(_)) => "known",
        };
        (outcome, near)
    }
}

fn outcome(admitted: &Admitted) -> (&'static str, Option<(u64, u32)>) {
    let of = |hit: &twindex::Hit| Some((hit.key.as_u64().unwrap(), hit.distance.unwrap()));
    match admitted {
        Admitted::New => ("new", None),
        Admitted::Updated => ("updated", None),
        Admitted::Expired => ("expired", None),
        Admitted::Duplicate(hit) => ("duplicate", of(hit)),
        Admitted::Known { near } => ("known", of(near)),
        other => panic!("{other:?}"),
    }
}

fn check(index: &Index, model: &Model) {
    let snapshot = index.snapshot();
    let mut found = BTreeMap::new();
    snapshot
        .for_each_key(|key| {
            let record = snapshot.get(key)?.unwrap();
            let key = key.to_buf().as_u64().unwrap();
            let fingerprint = record.fingerprint.unwrap().0;
            let kept =
                KeptDocument { fingerprint, stamp: record.stamp.unwrap(), is_marked: record.is_duplicate };
            found.insert(key, kept);
            Ok(())
        })
        .unwrap();
    assert_eq!(found, model.alive);
    assert!(snapshot.now().unwrap_or(0) == model.now || model.now == 0);
}

#[test]
fn admit_agrees_with_the_model_in_batches_and_single_commits() {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    // `TWINDEX_CASES` overrides the number of seeds.
    let seeds = std::env::var("TWINDEX_CASES").map_or(8_u64, |cases| cases.parse().expect("a number"));
    for seed in 0..seeds {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut below = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x");
        let params = Params::builder()
            .u64_keys()
            .simhash(3)
            .marks()
            .expire_after(AGE)
            .near(Near::within(RADIUS as u8));
        let mut index = Index::create(&path, params.build().unwrap()).unwrap();
        let drops = seed % 2 == 0;
        let open = |index: &Index| -> Writer {
            index.writer_with(WriterOptions::default().drop_duplicates(drops).max_jump(u64::MAX)).unwrap()
        };
        let mut writer = open(&index);
        let mut model = Model::default();
        let mut committed = model.clone();
        let mut time = 1000;
        for step in 0..150 {
            time += below(if seed % 3 == 0 { 3 } else { 12 });
            let stamp = time - below(80).saturating_sub(55).min(time) * 4;
            let (key, center) = (below(25), below(9));
            let fingerprint = center.wrapping_mul(0x0FED_CBA9_8765_4321) ^ 1 << below(64) ^ 1 << below(64);
            let document = Document::from(Fingerprint(fingerprint)).with_stamp(stamp);
            let admitted = writer.admit(key, document).unwrap();
            let expected = model.admit(key, fingerprint, stamp, drops);
            assert_eq!(outcome(&admitted), expected, "{seed} {step}: {key} at {stamp}, {time}");
            *counts.entry(expected.0).or_default() += 1;
            // Changes of the batch are not visible before the commit.
            if step % 10 == 5 {
                check(&index, &committed);
            }
            match below(12) {
                0..=3 => _ = writer.commit().unwrap(),
                4 => {
                    writer.commit().unwrap();
                    writer.flush().unwrap();
                }
                5 => {
                    writer.commit().unwrap();
                    writer.compact().unwrap();
                }
                6 => {
                    // Dropping the writer discards uncommitted documents and the time that their stamps set.
                    drop(writer);
                    index = Index::open(&path).unwrap();
                    writer = open(&index);
                    model = committed.clone();
                }
                _ => continue,
            }
            check(&index, &model);
            check(&Index::open(&path).unwrap(), &model);
            committed = model.clone();
        }
    }
    for outcome in ["new", "duplicate", "updated", "known", "expired"] {
        assert!(counts.get(outcome).is_some_and(|&count| count > 12), "{counts:?}");
    }
}

#[test]
fn copy_of_an_expired_document_is_admitted_as_new() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x");
    let params = Params::builder().u64_keys().simhash(3).expire_after(60).build().unwrap();
    let index = Index::create(&path, params).unwrap();
    let mut writer = index.writer_with(WriterOptions::default().drop_duplicates(true)).unwrap();
    let at = |stamp: u64| Document::from(Fingerprint(7)).with_stamp(stamp);
    assert_eq!(writer.admit(1, at(1001)).unwrap(), Admitted::New);
    assert_eq!(writer.admit(3, at(1061)).unwrap(), Admitted::New, "the first one is too old by now");
    assert!(
        matches!(writer.admit(2, at(1061)).unwrap(), Admitted::Duplicate(hit) if hit.key.as_u64() == Some(3))
    );
    writer.commit().unwrap();
    let keys = |index: &Index| -> Vec<u64> {
        let mut keys = Vec::new();
        let snapshot = index.snapshot();
        let push = |key: twindex::Key<'_>| {
            keys.push(key.to_buf().as_u64().unwrap());
            Ok(())
        };
        snapshot.for_each_key(push).unwrap();
        keys
    };
    assert_eq!(keys(&index), [3]);
    assert!(matches!(writer.admit(4, at(1100)).unwrap(), Admitted::Duplicate(_)));
    writer.commit().unwrap();
    drop(writer);
    let index = Index::open(&path).unwrap();
    assert_eq!((keys(&index), index.snapshot().now()), (vec![3], Some(1100)));
    let mut writer = index.writer().unwrap();
    assert_eq!(writer.admit(5, at(1040)).unwrap(), Admitted::Expired);
    assert_eq!(writer.admit(3, at(1040)).unwrap(), Admitted::Expired, "the newer version stays");
    writer.commit().unwrap();
    assert_eq!(index.snapshot().get(3).unwrap().unwrap().stamp, Some(1061));
}
