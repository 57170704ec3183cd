//! Random jobs, drawn from the declarations of the settings, through the doors of the command and the library: the same
//! documents stay, or the same refusal is given. `doors` has the same jobs through Python and Spark.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fmt::Write;
use std::path::Path;

use rayon::prelude::*;
use twindex::{Admitted, Index};
use twindex_corpus::settings::{self, AnySettings, Kind};
use twindex_corpus::{Dedup, DedupTexts, FieldNumber, Keep, Near, TextAttributes, Weights};

use crate::doors;
use crate::support::Bench;

/// Number of jobs; `TWINDEX_JOBS` replaces it.
const JOBS: u64 = 2000;

/// Returns values to draw for a setting, good ones and bad ones. A new setting has to be added here.
fn values(name: &str) -> &'static [&'static str] {
    match name {
        "near" => &["0.8", "0.8", "0.5", "0.95", "containment:0.8", "within:3", "within:0", "equal", "2"],
        "keep" => &[
            "longest",
            "smallest-key",
            "key-hash",
            "max:points",
            "min:meta.rank",
            "max:/meta/rank",
            "max:nope",
            "earliest:points",
            "rank:lang=fr,en",
        ],
        "simhash_bits" => &["64", "128", "512", "100"],
        "weights" => &["tf", "idf"],
        "weight_unit" => &["0.5"],
        "without_boilerplate" => &["3", "2:5", "@missing"],
        "max_work" => &["1000000", "1"],
        "inside" => &["lang", "meta.part", "nope"],
        "url_field" => &["url", "nope"],
        "repeated_keys" => &["first", "last", "error", "some"],
        "index" => &["kept", "all"],
        "text_field" => &["text", "title,text", "title,nope", "nope"],
        "text_form" => &["html", "pages"],
        "id_field" => &["id", "FILE:ROW", "meta.rank"],
        "format" => &["jsonl", "csv"],
        "glob" => &["*.jsonl", "!*.csv"],
        "skip_bad" => &["1", "100"],
        "encoding" => &["windows-1251", "no-such"],
        "invalid_utf8" => &["replace", "skip"],
        "features_field" => &["feats"],
        "fingerprint_field" => &["print", "hex:print", "bits:print"],
        "dialect" => &["delimiter=|", "quote=none,no-header", "|"],
        "tokens" => &["characters", "unicode-words", "words-symbols", "sentences", "raw"],
        "words" => &["1", "3", "1+2", "17"],
        "normal_form" => &["nfkc"],
        "fold" => &["marks", "marks+invisible"],
        "stop_words" => &["english", "@missing"],
        "stemming" => &["english"],
        "shingle_hash" => &["rabin"],
        "seed" => &["7"],
        "memory" => &["1M", "64M", "5"],
        "threads" => &["1"],
        "annotation_prefix" => &["x_"],
        "compress" => &["gzip", "zstd"],
        "also" => &["annotated", "sizes", "revisits"],
        // What is read and written is the same for all jobs; journals, histories and tables have tests of their own.
        "inputs" | "out" | "force" | "resume" | "against" | "texts" | "idf" => &[],
        _ => panic!("the setting {name} has no values here"),
    }
}

/// Settings that change which documents stay are drawn more often.
fn is_frequent(name: &str) -> bool {
    ["near", "keep", "words", "tokens", "inside", "text_field", "weights"].contains(&name)
}

struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F);
        (self.0 >> 33) as usize % end
    }

    fn of<'v>(&mut self, values: &[&'v str]) -> &'v str {
        values[self.below(values.len())]
    }
}

/// One document: its key, its text and its line.
pub(crate) struct One {
    pub(crate) id: String,
    text: String,
    score: u32,
    pub(crate) line: String,
}

/// Texts that repeat words, with changes, copies, accents and documents without words.
fn corpus() -> Vec<One> {
    let mut random = Random(11);
    let mut texts: Vec<String> = Vec::new();
    let words =
        ["na", "Réponse", "river", "of", "the", "C++", "stone", "walks", "walking", "lamp", "über", "five"];
    (0..60)
        .map(|number| {
            let text = match random.below(10) {
                0..6 if number > 0 => {
                    let mut text = texts[random.below(texts.len())].clone();
                    for _ in 0..random.below(4) {
                        write!(text, " {}", random.of(&words)).unwrap();
                    }
                    text
                }
                6 => "na ".repeat(30),
                7 => String::new(),
                _ => {
                    let count = 5 + random.below(40);
                    (0..count).map(|_| random.of(&words)).collect::<Vec<_>>().join(" ")
                }
            };
            texts.push(text.clone());
            let id = format!("k{:02}", (number * 37) % 60);
            let (score, lang) = (random.below(9) as u32, random.of(&["en", "de"]));
            let line = serde_json::json!({
                "id": id, "text": text, "title": random.of(&["one", "two words here"]), "points": score, "lang": lang,
                "url": format!("https://{lang}.example/{number}"),
                "print": format!("{:016x}", random.below(1 << 12)), "feats": [(text.len() % 7).to_string(), "a", "b"],
                "meta": { "rank": random.below(9), "part": random.below(3).to_string() },
            });
            One { id, text, score, line: line.to_string() }
        })
        .collect()
}

/// The settings of a job: names and values in text form.
pub(crate) type Drawn = Vec<(&'static str, Kind, &'static str)>;

fn draw(seed: u64) -> Drawn {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 5);
    let job = Dedup::default();
    let mut drawn = Drawn::new();
    for (name, kind, _) in job.settings().into_iter().flat_map(AnySettings::texts) {
        let values = values(name);
        let often = if is_frequent(name) { 4 } else { 80 };
        if !values.is_empty() && random.below(often) == 0 {
            drawn.push((name, kind, random.of(values)));
        }
    }
    drawn
}

/// The keys that stay in order, and the pairs; or why the job was refused.
pub(crate) type Outcome = Result<(Vec<String>, String), String>;

fn results(out: &Path) -> (Vec<String>, String) {
    let clusters = std::fs::read_to_string(out.join("clusters.tsv")).unwrap();
    let rows = clusters.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    let kept = rows.filter(|row| row[0] == row[2]).map(|row| row[0].to_owned()).collect();
    (kept, std::fs::read_to_string(out.join("pairs.tsv")).unwrap())
}

fn by_command(bench: &Bench, line: &str, drawn: &Drawn, out: &Path) -> Outcome {
    let mut command = bench.command(line);
    for (name, kind, value) in drawn {
        command.arg(settings::spelled(name));
        if *kind != Kind::Flag {
            command.arg(value);
        }
    }
    let output = command.arg("-q").arg("--out").arg(out).output().unwrap();
    if output.status.success() {
        return Ok(results(out));
    }
    assert!(!out.exists(), "refused, and results are there: {drawn:?}");
    Err(String::from_utf8(output.stderr).unwrap())
}

fn by_library(input: &Path, drawn: &Drawn, out: &Path) -> Outcome {
    let mut job = Dedup::new([input], out);
    for (name, _, value) in drawn {
        settings::set(&mut job.settings_mut(), name, &[value]).map_err(|error| error.to_string())?;
    }
    job.run().map_err(|error| format!("{error:#}"))?;
    Ok(results(out))
}

/// Returns the keys that stay of the texts in memory; `None` if this job is not one of texts alone.
fn by_texts(corpus: &[One], drawn: &Drawn) -> Option<Result<Vec<String>, String>> {
    let (mut job, mut text) = (DedupTexts::default(), twindex_corpus::TextOptions::default());
    for (name, _, value) in drawn {
        let texts = [OsStr::new(value)];
        let set = job.rule.set(name, &texts).or_else(|| text.set(name, &texts));
        match set.or_else(|| job.resources.set(name, &texts)) {
            Some(Ok(())) => {}
            Some(Err(error)) => return Some(Err(error.to_string())),
            None if ["index", "compress"].contains(name) || *value != "revisits" && *name == "also" => {}
            None => return None,
        }
    }
    let is_file = matches!(job.rule.without_boilerplate, Some(twindex_corpus::BoilerplateSpans::List(_)));
    let by_score =
        matches!(job.rule.keep.single(), Some(Keep::Max(field) | Keep::Earliest(field)) if field == "points");
    if matches!(job.rule.near, Some(Near::Within(_) | Near::Equal)) || is_file {
        return None;
    }
    if job.rule.keep.rules().iter().any(|rule| rule.field().is_some() || rule.is_of_url()) && !by_score
        || job.rule.weights == Weights::Idf
    {
        return None;
    }
    job.shingling = match text.shingling() {
        Ok(shingling) => shingling,
        Err(error) => return Some(Err(format!("{error:#}"))),
    };
    let numbers: Vec<FieldNumber> =
        corpus.iter().map(|one| FieldNumber::integer(one.score.into()).unwrap()).collect();
    let keys: Vec<&[u8]> = corpus.iter().map(|one| one.id.as_bytes()).collect();
    let texts: Vec<&[u8]> = corpus.iter().map(|one| one.text.as_bytes()).collect();
    let lists = [&numbers[..]];
    let beside = TextAttributes {
        keys: Some(&keys),
        numbers: if by_score { &lists } else { &[] },
        ..TextAttributes::default()
    };
    let found = match job.run_with_attributes(&texts, beside) {
        Ok(found) => found,
        Err(error) => return Some(Err(format!("{error:#}"))),
    };
    let kept: BTreeSet<u32> = found.kept_of.iter().copied().collect();
    let mut kept: Vec<String> = kept.iter().map(|&text| corpus[text as usize].id.clone()).collect();
    kept.sort_unstable();
    Some(Ok(kept))
}

/// Returns the keys that `stream` finds new; `None` if a stream cannot decide this job.
fn by_stream(bench: &Bench, input: &str, drawn: &Drawn, name: &str) -> Option<Vec<String>> {
    let mut options = String::new();
    for (name, _, value) in drawn {
        match *name {
            "near" if value.parse::<f64>().is_ok_and(|near| near <= 1.0) => {
                write!(options, " --threshold {value}").unwrap();
            }
            "words" | "tokens" | "normal_form" | "fold" | "stemming" | "seed" | "text_field" => {
                write!(options, " {} {value}", settings::spelled(name)).unwrap();
            }
            "also" | "index" => {}
            _ => return None,
        }
    }
    let printed = bench.ok(&format!("stream {name}.twx {input} --json{options}"));
    let lines = printed.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let new = lines.filter(|line| line["decision"] == "new");
    let mut kept: Vec<String> = new.filter_map(|line| Some(line["key"].as_str()?.to_owned())).collect();
    kept.sort_unstable();
    Some(kept)
}

/// Returns the keys that [`Writer::admit`](twindex::Writer::admit) finds new, one document after the other; `None` if it
/// does not decide by the rule of this job.
fn by_admit(corpus: &[One], drawn: &Drawn, folder: &Path) -> Option<Vec<String>> {
    let mut job = Dedup::default();
    for (name, _, value) in drawn {
        settings::set(&mut job.settings_mut(), name, &[value]).ok()?;
    }
    let usual = Dedup::default();
    let rule = settings::Rule { near: job.rule.near, ..usual.rule };
    let is_of_texts = job.reading == usual.reading && job.scope == usual.scope && !job.brings_fingerprints();
    let is_by_resemblance = matches!(job.rule.near, None | Some(Near::Resemblance(_)));
    if job.rule != rule || !is_of_texts || !is_by_resemblance {
        return None;
    }
    let index = Index::create(folder, job.params(None).unwrap()).unwrap();
    let (sketcher, mut writer) = (index.sketcher().unwrap(), index.writer().unwrap());
    let mut kept = Vec::new();
    for one in corpus {
        match writer.admit(one.id.as_str(), &sketcher.sketch(&one.text).unwrap()).unwrap() {
            Admitted::New => kept.push(one.id.clone()),
            Admitted::Duplicate(_) => {}
            other => panic!("{other:?}"),
        }
    }
    kept.sort_unstable();
    Some(kept)
}

/// Returns whether the two refusals say the same: the command adds its name, and the parser of the command line names
/// the value.
pub(crate) fn say_the_same(command: &str, library: &str) -> bool {
    let first = library.split(": ").next().unwrap_or_default();
    let rest = library.strip_prefix(&format!("{first}: ")).unwrap_or(library);
    let last = library.rsplit(": ").next().unwrap_or_default();
    command.contains(library) || command.contains(first) && (command.contains(rest) || command.contains(last))
}

#[test]
fn random_jobs_end_alike_through_every_door() {
    let jobs = std::env::var("TWINDEX_JOBS").ok().and_then(|jobs| jobs.parse().ok()).unwrap_or(JOBS);
    let corpus = corpus();
    let ran: Vec<(doors::Job, [u64; 6])> = (0..jobs)
        .into_par_iter()
        .map(|seed| {
            let bench = Bench::new();
            let lines: Vec<&str> = corpus.iter().map(|one| one.line.as_str()).collect();
            bench.write("in.jsonl", lines.join("\n") + "\n");
            let (input, drawn) = (bench.path("in.jsonl"), draw(seed));
            let line = format!("dedup {}", input.display());
            let command = by_command(&bench, &line, &drawn, &bench.path("a"));
            let library = by_library(&input, &drawn, &bench.path("b"));
            match (&command, &library) {
                (Ok(command), Ok(library)) => assert!(command == library, "job {seed}: {drawn:?}"),
                (Err(command), Err(library)) => {
                    assert!(say_the_same(command, library), "job {seed}: {drawn:?}\n{command}\n{library}");
                }
                _ => panic!("job {seed}: {drawn:?}\ncommand {command:?}\nlibrary {library:?}"),
            }
            let texts = by_texts(&corpus, &drawn);
            match (&command, &texts) {
                (_, None) => {}
                (Ok((kept, _)), Some(Ok(texts))) => assert_eq!(kept, texts, "job {seed}, texts: {drawn:?}"),
                (Err(command), Some(Err(texts))) => {
                    assert!(say_the_same(command, texts), "job {seed}, texts: {drawn:?}\n{command}\n{texts}");
                }
                _ => panic!("job {seed}: {drawn:?}\ncommand {command:?}\ntexts {texts:?}"),
            }
            let (mut by_file, mut streamed, mut admitted) = (0, 0, 0);
            if let (Ok(_), true) = (&command, seed % 8 == 0) {
                // The same job from the run.json of the run.
                let again = bench.path("c");
                let line = format!("dedup --job {}", bench.path("a").join("run.json").display());
                assert_eq!(
                    by_command(&bench, &line, &Drawn::new(), &again),
                    command,
                    "job {seed}: {drawn:?}"
                );
                by_file = 1;
            }
            if let Ok((kept, _)) = &command
                && let Some(new) = by_stream(&bench, "in.jsonl", &drawn, "s")
            {
                assert_eq!(kept, &new, "job {seed}, stream: {drawn:?}");
                streamed = 1;
            }
            if let Ok((kept, _)) = &command
                && let Some(new) = by_admit(&corpus, &drawn, &bench.path("d"))
            {
                assert_eq!(kept, &new, "job {seed}, admit: {drawn:?}");
                admitted = 1;
            }
            let ended = [command.is_ok(), command.is_err(), texts.is_some()].map(u64::from);
            let [decided, refused, texts] = ended;
            let counts = [decided, refused, texts, by_file, streamed, admitted];
            (doors::Job { seed, drawn, command }, counts)
        })
        .collect();
    let (ran, counts): (Vec<doors::Job>, Vec<[u64; 6]>) = ran.into_iter().unzip();
    let tally: [u64; 6] = std::array::from_fn(|at| counts.iter().map(|counts| counts[at]).sum());
    let [decided, refused, texts, by_file, streamed, admitted] = tally;
    println!(
        "{jobs} jobs: {decided} decided, {refused} refused; {texts} by texts, {by_file} by file, {streamed} by stream, \
         {admitted} by admit"
    );
    assert!(tally.iter().all(|&count| count * 40 > jobs), "each door is tested: {tally:?}");
    doors::compare(&Bench::new(), &corpus, &ran);
}
