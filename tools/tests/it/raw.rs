//! Other programs use the index with raw fingerprints, and its speed is measured with them. These tests compare all
//! answers over 20,000 clustered fingerprints with brute force, line by line and by checksum.

#[cfg(target_os = "linux")]
use crate::support::skip::{Missing, skip};
use crate::support::{Bench, Random, has_fields, mix, raw, says};

/// Returns 20,000 fingerprints distributed as in real corpora: groups around common centres, many equal ones, and single
/// ones.
fn clustered(seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let centres: Vec<u64> = (0..600).map(|_| random.next()).collect();
    (0..20_000)
        .map(|_| {
            if random.below(3) == 0 {
                return random.next();
            }
            let mut fingerprint = centres[random.below(centres.len())];
            for _ in 0..random.below(6) {
                fingerprint ^= 1 << random.below(64);
            }
            fingerprint
        })
        .collect()
}

/// Returns the lines of `pairs` and their checksum, by brute force.
fn pairs_of(keys: &[u64], fingerprints: &[u64], within: u32) -> (Vec<String>, u64) {
    let (mut pairs, mut checksum) = (Vec::new(), 0_u64);
    for (i, &x) in fingerprints.iter().enumerate() {
        for (j, &y) in fingerprints[..i].iter().enumerate() {
            let distance = (x ^ y).count_ones();
            if distance <= within {
                let (a, b) = (keys[i].min(keys[j]), keys[i].max(keys[j]));
                checksum = checksum.wrapping_add(mix(a, b));
                pairs.push((a, b, distance));
            }
        }
    }
    pairs.sort_unstable();
    (pairs.iter().map(|(a, b, distance)| format!("{a}\t{b}\t{distance}")).collect(), checksum)
}

/// Returns the lines of `query` and their checksum: by query, then by distance, then by key.
fn hits_of(keys: &[u64], fingerprints: &[u64], queries: &[u64], within: u32) -> (Vec<String>, u64) {
    let (mut lines, mut checksum) = (Vec::new(), 0_u64);
    for (number, query) in queries.iter().enumerate() {
        let mut hits: Vec<(u32, u64)> = fingerprints
            .iter()
            .zip(keys)
            .map(|(fingerprint, &key)| ((fingerprint ^ query).count_ones(), key))
            .filter(|(distance, _)| *distance <= within)
            .collect();
        hits.sort_unstable();
        for (distance, key) in hits {
            checksum = checksum.wrapping_add(mix(number as u64, key));
            lines.push(format!("{number}\t{key}\t{distance}\t-"));
        }
    }
    (lines, checksum)
}

#[test]
fn clustered_fingerprint_queries_and_pairs_equal_brute_force() {
    let bench = Bench::new();
    let fingerprints = clustered(1);
    let mut queries: Vec<u64> = clustered(1).into_iter().step_by(100).collect();
    queries.extend(clustered(2).into_iter().take(50));
    bench.write("all.u64", raw(&fingerprints));
    bench.write("queries.u64", raw(&queries));
    let keys: Vec<u64> = (0..20_000).collect();
    let report = bench.json("build all.twx --fingerprints all.u64");
    has_fields(&report, &[("documents", "count"), ("distinct_fingerprints", "count")]);
    let mut distinct = fingerprints.clone();
    distinct.sort_unstable();
    distinct.dedup();
    assert_eq!(report["documents"], 20_000);
    assert_eq!(report["distinct_fingerprints"], distinct.len());

    // One brute-force comparison is used for all three radii.
    let (all_pairs, _) = pairs_of(&keys, &fingerprints, 6);
    for within in [0, 3, 6] {
        let near = |line: &&String| {
            let distance = line.rsplit('\t').next().unwrap();
            distance.parse::<u32>().unwrap() <= within
        };
        let wanted: Vec<&String> = all_pairs.iter().filter(near).collect();
        let checksum = wanted.iter().fold(0_u64, |sum, line| {
            let numbers: Vec<u64> = line.split('\t').map(|number| number.parse().unwrap()).collect();
            sum.wrapping_add(mix(numbers[0], numbers[1]))
        });
        assert!(wanted.len() > 100, "a test of something");
        let found = bench.ok(&format!("pairs all.twx --near within:{within}"));
        assert!(found.lines().eq(wanted.iter().map(|line| line.as_str())), "pairs within {within}");
        let report = bench.json(&format!("pairs all.twx --near within:{within}"));
        assert_eq!(report["pairs"], wanted.len());
        assert_eq!(report["checksum"], format!("{checksum:016x}"), "pairs within {within}");
        let count = bench.ok(&format!("pairs all.twx --near within:{within} --count"));
        assert_eq!(count, format!("{}\n", wanted.len()));

        let (wanted, checksum) = hits_of(&keys, &fingerprints, &queries, within);
        let line = format!("query all.twx --fingerprints queries.u64 --near within:{within}");
        assert!(bench.ok(&line).lines().eq(wanted.iter().map(String::as_str)), "queries within {within}");
        let report = bench.json(&line);
        assert_eq!(report["queries"], queries.len());
        assert_eq!(report["hits"], wanted.len());
        assert_eq!(report["checksum"], format!("{checksum:016x}"), "queries within {within}");
        assert_eq!(bench.ok(&format!("{line} --count")), format!("{}\n", wanted.len()));
    }
}

#[test]
fn default_radius_is_the_radius_of_the_index() {
    let bench = Bench::new();
    bench.write("f.u64", raw(&[0, 0b1, 0b111, 0b1_1111]));
    bench.ok("build i.twx --fingerprints f.u64 --near within:2 -q");
    assert_eq!(bench.ok("pairs i.twx"), "0\t1\t1\n1\t2\t2\n2\t3\t2\n");
    bench.write("q.u64", raw(&[0]));
    assert_eq!(bench.ok("query i.twx --fingerprints q.u64"), "0\t0\t0\t-\n0\t1\t1\t-\n");
    // `--limit` keeps the first answers in their order, and counts the queries with others.
    let line = "query i.twx --fingerprints q.u64 --near within:5 --limit 3";
    assert_eq!(bench.ok(line), "0\t0\t0\t-\n0\t1\t1\t-\n0\t2\t3\t-\n");
    let report = bench.json(line);
    assert_eq!((&report["hits"], &report["limited"]), (&3.into(), &1.into()));
}

#[test]
fn second_build_with_ids_adds_new_keys_and_replaces_known_ones() {
    let bench = Bench::new();
    let fingerprints: Vec<u64> = clustered(3).into_iter().take(2000).collect();
    let ids: Vec<u64> = (0..2000_u64).map(|i| u64::MAX - i * 977).collect();
    bench.write("f.u64", raw(&fingerprints));
    bench.write("ids.u64", raw(&ids));
    let report = bench.json("build i.twx --fingerprints f.u64 --ids ids.u64");
    assert_eq!((&report["documents"], &report["added"]), (&2000.into(), &2000.into()));
    let (wanted, _) = pairs_of(&ids, &fingerprints, 3);
    assert!(bench.ok("pairs i.twx").lines().eq(wanted.iter().map(String::as_str)));

    // 300 keys are repeated with other fingerprints; 200 keys are new.
    let (mut keys, mut now) = (ids, fingerprints);
    let more: Vec<u64> = clustered(4).into_iter().take(500).collect();
    let mut more_ids: Vec<u64> = keys[1700..].to_vec();
    more_ids.extend(1..=200);
    bench.write("more.u64", raw(&more));
    bench.write("more-ids.u64", raw(&more_ids));
    let report = bench.json("build i.twx --fingerprints more.u64 --ids more-ids.u64");
    assert_eq!(report["documents"], 2200);
    assert_eq!(report["added"], 500, "what this run brought, not what the index holds");
    now.truncate(1700);
    now.extend(&more);
    keys.truncate(1700);
    keys.extend(&more_ids);
    let (wanted, checksum) = pairs_of(&keys, &now, 3);
    assert!(bench.ok("pairs i.twx").lines().eq(wanted.iter().map(String::as_str)));
    assert_eq!(bench.json("pairs i.twx")["checksum"], format!("{checksum:016x}"));
    let (wanted, _) = hits_of(&keys, &now, &more, 3);
    assert!(bench.ok("query i.twx --fingerprints more.u64").lines().eq(wanted.iter().map(String::as_str)));
    let stats = bench.json("stats i.twx");
    assert_eq!(
        (&stats["documents"], &stats["deleted"], &stats["segments"]),
        (&2200.into(), &300.into(), &2.into())
    );
    assert_eq!(bench.json("verify i.twx")["sound"], true);
}

#[test]
fn last_fingerprint_of_a_repeated_key_wins() {
    let bench = Bench::new();
    bench.write("f.u64", raw(&[0, u64::MAX, 1]));
    bench.write("ids.u64", raw(&[5, 6, 5]));
    bench.ok("build i.twx --fingerprints f.u64 --ids ids.u64 -q");
    bench.write("q.u64", raw(&[1]));
    assert_eq!(bench.ok("query i.twx --fingerprints q.u64 --near within:0"), "0\t5\t0\t-\n");
    assert_eq!(bench.json("stats i.twx")["documents"], 2);
}

#[test]
fn raw_files_of_wrong_length_are_refused_and_nothing_is_created() {
    let bench = Bench::new();
    bench.write("f.u64", raw(&[1, 2, 3]));
    bench.write("cut.u64", &raw(&[1, 2, 3])[..21]);
    bench.write("two.u64", raw(&[1, 2]));
    bench.write("texts.jsonl", "{\"id\":\"a\",\"text\":\"one two three\"}\n");
    let before = bench.contents(".");
    says(
        &bench.refused("build i.twx --fingerprints cut.u64"),
        &["cut.u64", "21 bytes", "64-bit", "5 bytes too many"],
    );
    let line = "build i.twx --fingerprints f.u64 --ids two.u64";
    says(&bench.refused(line), &["two.u64", "2 keys", "3 fingerprints", "f.u64"]);
    says(&bench.refused("build i.twx --fingerprints none.u64"), &["none.u64", "No such file"]);
    says(&bench.refused("build i.twx --fingerprints ."), &["not a regular file"]);
    says(
        &bench.refused("build i.twx --fingerprints f.u64 --method minhash"),
        &["keeps simhash and no MinHash"],
    );
    assert_eq!(bench.contents("."), before);

    bench.ok("build texts.twx texts.jsonl -q");
    bench.ok("build hashes.twx --fingerprints f.u64 -q");
    let before = bench.contents(".");
    says(&bench.refused("query hashes.twx --fingerprints cut.u64"), &["cut.u64", "21 bytes"]);
    says(&bench.refused("build texts.twx --fingerprints f.u64"), &["keeps simhash and no MinHash"]);
    says(&bench.refused("build hashes.twx texts.jsonl"), &["texts.jsonl:1", "u64 keys", "`a`"]);
    assert_eq!(bench.contents("."), before);
}

/// Answering many queries must hold only few queries and answers in memory at a time.
#[cfg(target_os = "linux")]
#[test]
fn fingerprint_files_are_not_read_into_memory_at_once() {
    use std::process::{Command, Stdio};

    let bench = Bench::new();
    bench.write("f.u64", raw(&[0]));
    bench.ok("build i.twx --fingerprints f.u64 -q");
    let sparse = std::fs::File::create(bench.path("huge.u64")).unwrap();
    if let Err(error) = sparse.set_len(1 << 42) {
        return skip(Missing::Elsewhere(&format!("no file of 4 TB on this file system: {error}")));
    }
    let (mut reader, writer) = std::io::pipe().unwrap();
    let child = Command::new(crate::support::TWINDEX)
        .args(["query", "i.twx", "--fingerprints", "huge.u64"])
        .current_dir(bench.root())
        .stdout(Stdio::from(writer))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 8];
    let read = std::io::Read::read_exact(&mut reader, &mut first);
    drop(reader); // the child's next write fails, and it exits
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), &*stderr), (Some(0), ""));
    read.unwrap();
    assert_eq!(&first, b"0\t0\t0\t-\n");
}
