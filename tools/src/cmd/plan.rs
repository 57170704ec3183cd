//! `twindex plan`: estimates the cost of an index before it is built.

mod codes;
mod measured;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum};
use serde::Serialize;
use twindex::Params;
use twindex::design::{CodecChoice, Codecs, Complete, Design, DesignChoice, DesignName, Scheme, WITHIN_MAX};
use twindex::format::DOCUMENTS_MAX;
use twindex::planner::banding::{Banding, MINIMA};
use twindex::planner::cost::{Cost, KIND_NAMES, Medium, REFERENCE, Raw, Speed, cost};
use twindex::planner::recall::recall;
use twindex::planner::scheme::{SchemeChoice, candidates};
use twindex::sketch::CODE_WIDTHS;
use twindex_kernel::Level;

use self::codes::CodesReport;

use crate::options::{Usage, parse_resemblance, parse_value};
use crate::param_args::parse_minima;
use crate::report::{self, bytes, bytes_of_mean, count};

/// Number of bytes for the rank and the postings of a document.
const BYTES_A_DOCUMENT: f64 = 8.0;
/// Maximum number of documents. With more, no file system could store the tables.
const PLANNED_MAX: u64 = 1 << 50;
/// A design that takes this many times as long as the fastest one is listed only with `--all`.
const SLOW: f64 = 20.0;
/// Default memory in bytes for tables that are read from a disk.
const MEMORY: usize = 1 << 30;

/// Options of `plan`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    twindex plan --documents 50M                     within 3, everything in memory\n  \
    twindex plan --documents 8e9 --memory 64G --medium ssd --sort bytes\n  \
    twindex plan --documents 2^34 --design choose-6-3 --codec plain\n  \
    twindex plan --documents 1M --design random-8-12-7     a free design: what it finds\n  \
    twindex plan --documents 30M --bits 256 --within 31     hashes of images\n  \
    twindex plan --threshold 0.8                     bands of MinHash: the S-curve\n\n\
    Times are predicted for one thread of the machine that is named below the list, many queries together, half of them\n\
    with a hit. Bytes are those of the tables; each document takes 8 more and its key.")]
pub(crate) struct PlanArgs {
    /// Number of documents, each with a fingerprint; written as 8000000000, 8e9, 8G or 2^33
    #[arg(long, value_name = "N", value_parser = parse_documents, required_unless_present = "threshold")]
    documents: Option<u64>,
    /// Number of bits of a fingerprint: 128, 192, 256, 384 or 512 instead of 64. Plans its parts; tables are for 64 bits
    #[arg(long, value_name = "N", value_parser = parse_bits, requires_all = ["documents", "within"],
          conflicts_with_all = ["memory", "medium", "design", "codec", "sort", "all", "measure", "threshold"])]
    bits: Option<u16>,
    /// Hamming radius: the largest number of bits in which near fingerprints differ, up to 10, or --bits [default: 3]
    #[arg(long, value_name = "K")]
    within: Option<u16>,
    /// Memory for the tables. With --medium memory, tables that do not fit are marked; otherwise, the part that does not
    /// fit is read from the medium [default: 1G with --medium ssd and disk]
    #[arg(long, value_name = "SIZE", value_parser = parse_value::<usize>)]
    memory: Option<usize>,
    /// The medium that tables are read from
    #[arg(long, value_enum, default_value = "memory")]
    medium: MediumArg,
    /// List only this design, or the design that auto, small or fast selects
    #[arg(long, value_name = "NAME")]
    design: Option<DesignChoice>,
    /// List only tables with this codec
    #[arg(long, value_name = "CODEC")]
    codec: Option<Codecs>,
    /// Order of the list
    #[arg(long, value_enum, default_value = "time")]
    sort: SortArg,
    /// List every codec of every design, including those that are slow or both larger and slower than another codec of
    /// the same design
    #[arg(long)]
    all: bool,
    /// Also print the MinHash bands for this resemblance and their recall
    #[arg(long, value_name = "J", value_parser = parse_resemblance)]
    threshold: Option<f64>,
    /// Number of minima from which these bands are built, 120 to 1024
    #[arg(long, value_name = "N", value_parser = parse_minima(), default_value_t = MINIMA, requires = "threshold")]
    minima: u16,
    /// Predict times for this machine: measures it, which takes about a tenth of a second
    #[arg(long, requires = "documents")]
    measure: bool,
    /// Print one JSON document on standard output instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum MediumArg {
    Memory,
    Ssd,
    Disk,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum SortArg {
    Time,
    Bytes,
}

impl MediumArg {
    fn medium(self) -> Medium {
        match self {
            Self::Memory => Medium::Memory,
            Self::Ssd => Medium::Ssd,
            Self::Disk => Medium::Disk,
        }
    }
}

fn parse_bits(text: &str) -> Result<u16, String> {
    let bits = text.parse().ok().filter(|bits| *bits > 64 && CODE_WIDTHS.contains(&usize::from(*bits)));
    bits.ok_or_else(|| "expected 128, 192, 256, 384 or 512; without it, fingerprints have 64 bits".to_owned())
}

fn parse_documents(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of documents, for example 50M, 8e9 or 2^34".to_string();
    let text = text.replace('_', "");
    let whole = |text: &str| text.parse::<u64>().map_err(|_| wrong());
    let times = |number: u64, base: u64, exponent: u32| {
        base.checked_pow(exponent).and_then(|factor| number.checked_mul(factor))
    };
    let number = if let Some((base, exponent)) = text.split_once('^') {
        times(1, whole(base)?, exponent.parse().map_err(|_| wrong())?)
    } else {
        let (digits, exponent) = if let Some((digits, exponent)) = text.split_once(['e', 'E']) {
            (digits, exponent.parse::<u32>().map_err(|_| wrong())?)
        } else {
            let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            let exponent = match text[digits.len()..].to_ascii_uppercase().as_str() {
                "" => 0,
                "K" => 3,
                "M" => 6,
                "G" | "B" => 9,
                "T" => 12,
                _ => return Err(wrong()),
            };
            (digits, exponent)
        };
        let (digits, fraction) = digits.split_once('.').unwrap_or((digits, ""));
        let zeros = exponent.checked_sub(fraction.len() as u32).ok_or_else(wrong)?;
        if digits.is_empty() || digits.starts_with('+') {
            return Err(wrong());
        }
        times(whole(&format!("{digits}{fraction}"))?, 10, zeros)
    };
    match number {
        Some(0) => Err("at least one document".into()),
        Some(number) if number <= PLANNED_MAX => Ok(number),
        _ => Err("at most 2^50 documents".into()),
    }
}

/// The statistics that `--json` prints.
#[derive(Serialize)]
struct PlanReport {
    documents: u64,
    within: u8,
    medium: MediumArg,
    memory_bytes: Option<u64>,
    segments: u64,
    /// The machine for which times are predicted.
    times_of: String,
    /// The vector instructions that this process uses.
    kernel: &'static str,
    /// Number of bytes of ranks and postings for a document, without its key.
    bytes_per_document: f64,
    auto: String,
    small: String,
    fast: String,
    designs: Vec<DesignLine>,
    paper: Vec<Paper>,
    expansion: Expansion,
    #[serde(skip_serializing_if = "Option::is_none")]
    bands: Option<Curve>,
}

/// A design with its codec. All counts and sizes are sums over all segments.
#[derive(Clone, Serialize)]
struct DesignLine {
    name: String,
    codecs: String,
    tables: u32,
    /// The distinct lengths in bits of the prefixes by which tables are probed.
    prefix_bits: Vec<u32>,
    bytes_per_fingerprint: f64,
    bytes: u64,
    probes: u64,
    /// Whether a query scans all fingerprints instead of probing, which is faster for a small number of fingerprints.
    scan: bool,
    entries: f64,
    candidates: f64,
    /// Mean number of pages that a query reads from the medium.
    cold_pages: f64,
    ns_per_query: f64,
    /// The number of operations of a query in memory, by kind. The cost model multiplies each by its time and adds up
    /// the products.
    work: BTreeMap<&'static str, f64>,
    exact: bool,
    /// For each distance from 0 to `within`, the probability that a document at this distance is found.
    recall: Vec<f64>,
    /// The standard error of the recall; 0 if the recall is computed exactly.
    recall_standard_error: f64,
    fits: bool,
    chosen_by: Vec<&'static str>,
}

/// The method of Manku, Jain and Das Sarma: sorted tables of complete fingerprints.
#[derive(Serialize)]
struct Paper {
    design: String,
    tables: u32,
    bytes: f64,
    probes: u64,
    prefixes: Vec<Prefix>,
}

#[derive(Serialize)]
struct Prefix {
    bits: u32,
    tables: u32,
    candidates: f64,
}

/// The method of looking up every value within the radius of the query.
#[derive(Serialize)]
struct Expansion {
    probes: u64,
    at_distance: u64,
}

/// The recall of bands as a function of resemblance.
#[derive(Serialize)]
struct Curve {
    threshold: f64,
    bands: u16,
    rows: u16,
    points: Vec<Point>,
}

#[derive(Serialize)]
struct Point {
    resemblance: f64,
    recall: f64,
}

impl PlanArgs {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let bands = self.threshold.map(|threshold| curve(threshold, self.minima));
        let Some(documents) = self.documents else {
            if self.design.is_some() || self.codec.is_some() || self.memory.is_some() {
                return Err(Usage::new(
                    "--design, --codec and --memory are for fingerprints: give --documents",
                )
                .into());
            }
            match &bands {
                Some(curve) if self.json => report::print_json(&serde_json::json!({ "bands": curve }))?,
                Some(curve) => report::print_lines(&curve.to_lines())?,
                None => {}
            }
            return Ok(ExitCode::SUCCESS);
        };
        let max = self.bits.unwrap_or(WITHIN_MAX.into());
        if let Some(within) = self.within.filter(|within| *within > max) {
            let why = format!(
                "--within {within}: expected at most {max} for fingerprints of {} bits",
                self.bits.unwrap_or(64)
            );
            return Err(Usage::new(why).into());
        }
        if let (Some(bits), Some(near)) = (self.bits, self.within) {
            let params = Params::builder().codes(bits, near).build()?;
            let report = params.codes.map(|codes| CodesReport::of(documents, codes));
            match report {
                Some(report) if self.json => report::print_json(&report)?,
                Some(report) => report::print_lines(&report.to_lines())?,
                None => {}
            }
            return Ok(ExitCode::SUCCESS);
        }
        let report = self.report(documents, bands)?;
        if self.json {
            report::print_json(&report)?;
        } else {
            report::print_lines(&Self::to_lines(&report))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the radius for tables.
    fn radius(&self) -> u8 {
        self.within.map_or(3, |within| within as u8) // at most WITHIN_MAX
    }

    /// Returns the memory for tables in bytes; `None` if it is not limited.
    fn memory(&self) -> Option<u64> {
        let usual = (self.medium != MediumArg::Memory).then_some(MEMORY);
        self.memory.or(usual).map(|memory| memory as u64)
    }

    fn report(&self, documents: u64, bands: Option<Curve>) -> Result<PlanReport> {
        let segments = documents.div_ceil(DOCUMENTS_MAX);
        let rows = documents.div_ceil(segments);
        let codec = self.codec.map_or(CodecChoice::Auto, CodecChoice::Named);
        let choose = |design| Scheme::choose(design, codec, self.radius(), rows);
        let chosen =
            [("auto", DesignChoice::Auto), ("small", DesignChoice::Small), ("fast", DesignChoice::Fast)]
                .map(|(word, design)| (word, choose(design)));
        let speed = self.measure.then(measured::speed).transpose()?;
        let mut designs = Vec::new();
        for choice in self.choices(&chosen, codec, rows)? {
            designs.push(self.line(&choice, &chosen, (documents, segments), speed.unwrap_or_default())?);
        }
        let time = |a: &DesignLine, b: &DesignLine| a.ns_per_query.total_cmp(&b.ns_per_query);
        designs.sort_by(|a, b| match self.sort {
            SortArg::Time => time(a, b),
            SortArg::Bytes => a.bytes.cmp(&b.bytes).then(time(a, b)),
        });
        let [auto, small, fast] = chosen.map(|(_, scheme)| scheme.to_string());
        Ok(PlanReport {
            documents,
            within: self.radius(),
            medium: self.medium,
            memory_bytes: self.memory(),
            segments,
            times_of: speed.map_or_else(|| REFERENCE.to_owned(), measured::text),
            kernel: Level::chosen().name(),
            bytes_per_document: BYTES_A_DOCUMENT,
            auto,
            small,
            fast,
            designs,
            paper: self.paper(documents),
            expansion: Expansion {
                probes: twindex::design::masks::count(64, self.radius().into()),
                at_distance: twindex::design::masks::choices(64, self.radius().into()),
            },
            bands,
        })
    }

    /// Returns the designs to list.
    fn choices(&self, chosen: &[(&str, Scheme)], codec: CodecChoice, rows: u64) -> Result<Vec<SchemeChoice>> {
        let of = |scheme: Scheme| -> Result<SchemeChoice> {
            Ok(SchemeChoice { scheme, cost: cost(scheme, self.radius().into(), rows)? })
        };
        let name = match self.design {
            Some(DesignChoice::Named(name)) => {
                name.check_within(self.radius().into())?;
                Some(name)
            }
            Some(word) => return Ok(vec![of(Scheme::choose(word, codec, self.radius(), rows))?]),
            None => None,
        };
        let mut listed = candidates(name, self.codec, self.radius(), rows);
        let known = |listed: &[SchemeChoice], scheme| listed.iter().any(|choice| choice.scheme == scheme);
        if !self.all && self.codec.is_none() {
            let fastest = listed.iter().map(|choice| choice.cost.nanos()).fold(f64::INFINITY, f64::min);
            let beaten = |choice: &SchemeChoice| {
                let better = |other: &SchemeChoice| {
                    let (a, b) = (&other.cost, &choice.cost);
                    other.scheme.design == choice.scheme.design
                        && (a.bytes, a.nanos()) != (b.bytes, b.nanos())
                        && a.bytes <= b.bytes
                        && a.nanos() <= b.nanos()
                };
                let is_chosen = chosen.iter().any(|(_, scheme)| *scheme == choice.scheme);
                let is_slow = choice.cost.nanos() > SLOW * fastest;
                !is_chosen && (is_slow || listed.iter().any(better))
            };
            // Compares each design with all others, even with those that the list will omit.
            let kept: Vec<bool> = listed.iter().map(|choice| !beaten(choice)).collect();
            let mut kept = kept.into_iter();
            listed.retain(|_| kept.next().unwrap_or(true));
        }
        if name.is_none() {
            let first = self.codec.map_or(Complete::Planes, |codecs| codecs.first);
            let every = Scheme { design: DesignName::Expansion, codecs: Codecs { first, partial: None } };
            for scheme in chosen.iter().map(|&(_, scheme)| scheme).chain([every]) {
                if !known(&listed, scheme) {
                    listed.push(of(scheme)?);
                }
            }
        }
        Ok(listed)
    }

    fn line(
        &self,
        choice: &SchemeChoice,
        chosen: &[(&'static str, Scheme)],
        (documents, segments): (u64, u64),
        speed: Speed,
    ) -> Result<DesignLine> {
        let SchemeChoice { scheme, cost } = choice;
        let times = segments as f64;
        let design = Design::new(scheme.design)?;
        let mut prefix_bits = cost.probe_bits.clone();
        prefix_bits.sort_unstable();
        prefix_bits.dedup();
        let mut found = Vec::new();
        let mut standard_error = 0.0_f64;
        for distance in 0..=self.radius().into() {
            let recall = if scheme.design.is_exact() {
                1.0
            } else {
                let recall = recall(&design, self.radius().into(), rows_of(documents, segments), distance)?;
                standard_error = standard_error.max(recall.standard_error);
                recall.probability
            };
            found.push(recall);
        }
        let total = cost.bytes.saturating_mul(segments);
        let cold_pages = self.cold_pages(cost, segments);
        Ok(DesignLine {
            name: scheme.design.to_string(),
            codecs: scheme.codecs.to_string(),
            tables: scheme.design.tables(),
            prefix_bits,
            bytes_per_fingerprint: total as f64 / (rows_of(documents, segments) as f64 * times),
            bytes: total,
            probes: if cost.scan { 0 } else { cost.probes.saturating_mul(segments) },
            scan: cost.scan,
            entries: cost.entries * times,
            candidates: cost.candidates * times,
            cold_pages,
            ns_per_query: cost.work.nanos_at(speed) * times
                + cold_pages * self.medium.medium().nanos_a_page(),
            work: KIND_NAMES.into_iter().zip(cost.work.0.map(|count| count * times)).collect(),
            exact: scheme.design.is_exact(),
            recall: found,
            recall_standard_error: standard_error,
            fits: self.memory().is_none_or(|memory| total <= memory),
            chosen_by: chosen.iter().filter(|(_, own)| own == scheme).map(|&(word, _)| word).collect(),
        })
    }

    fn cold_pages(&self, cost: &Cost, segments: u64) -> f64 {
        match (self.medium, self.memory()) {
            (MediumArg::Memory, _) | (_, None) => 0.0,
            (_, Some(memory)) => cost.cold_pages(memory / segments) * segments as f64,
        }
    }

    /// Returns the costs of the method of [`Paper`], with the design of `--design` or the paper's designs for this
    /// radius.
    fn paper(&self, documents: u64) -> Vec<Paper> {
        let within = self.radius();
        let names: Vec<DesignName> = if let Some(DesignChoice::Named(name)) = self.design {
            vec![name]
        } else {
            let blocks = DesignName::Blocks(within + 1);
            let nested = (within == 3).then_some(DesignName::Nested { outer: 4, inner: 4 });
            let choose = [2_u8, 3].map(|leading| DesignName::Choose { blocks: within + leading, leading });
            let few = choose.into_iter().filter(|name| within > 0 && name.tables() <= 64);
            std::iter::once(blocks).chain(nested).chain(few).collect()
        };
        let raw = names.into_iter().filter_map(|name| Raw::of(name, within.into(), documents as f64).ok());
        raw.map(|raw| Paper {
            design: raw.design.to_string(),
            tables: raw.tables,
            bytes: raw.bytes,
            probes: raw.probes,
            prefixes: raw
                .prefixes
                .iter()
                .map(|&(bits, tables, candidates)| Prefix { bits, tables, candidates })
                .collect(),
        })
        .collect()
    }

    fn to_lines(report: &PlanReport) -> Vec<String> {
        let mut lines = vec![format!(
            "{} documents, within {}, {}{}",
            count(report.documents),
            report.within,
            match report.medium {
                MediumArg::Memory => "tables in memory",
                MediumArg::Ssd => "tables on a solid-state disk",
                MediumArg::Disk => "tables on a disk",
            },
            report
                .memory_bytes
                .map(|memory| format!(", {} of memory for them", bytes(memory)))
                .unwrap_or_default(),
        )];
        if report.segments > 1 {
            lines.push(format!(
                "{} segments (or shards) of {} documents at most: a query probes each, and the numbers are for all \
                 of them",
                report.segments,
                count(DOCUMENTS_MAX),
            ));
        }
        lines.push(String::new());
        lines.push(format!(
            "{:<13} {:<11} {:>6} {:>6} {:>8} {:>9} {:>7} {:>10} {:>10} {:>9}  {}",
            "design",
            "codec",
            "tables",
            "prefix",
            "bytes/fp",
            "total",
            "probes",
            "entries",
            "candidates",
            "time",
            "finds"
        ));
        lines.extend(report.designs.iter().map(DesignLine::to_lines));
        lines.push(String::new());
        for paper in &report.paper {
            lines.push(paper.to_lines());
        }
        lines.push(format!(
            "asking for every value instead: {} at distance {}, {} within {}",
            count(report.expansion.at_distance),
            report.within,
            count(report.expansion.probes),
            report.within
        ));
        lines.push(format!("times: {}; this process uses {}", report.times_of, report.kernel));
        lines.push(String::new());
        lines.extend(Self::advice(report));
        if let Some(curve) = &report.bands {
            lines.push(String::new());
            lines.extend(curve.to_lines());
        }
        lines
    }

    /// Returns the recommended design and the reason, as lines of text.
    fn advice(report: &PlanReport) -> Vec<String> {
        let of = |word| report.designs.iter().find(|line| line.chosen_by.contains(&word));
        let mut lines: Vec<String> = Vec::new();
        for (word, why) in [
            ("auto", "nearly the fastest, bytes well spent; answers every radius up to 10"),
            ("small", "the fewest bytes at up to 6 times the least time; answers every radius up to 10"),
            ("fast", "the least time"),
        ] {
            if let Some(line) = of(word) {
                lines.push(format!(
                    "--design {word:<5} takes {} {}: {:.1} bytes a fingerprint, {} a query: {why}",
                    line.name,
                    line.codecs,
                    line.bytes_per_fingerprint,
                    nanos_text(line.ns_per_query)
                ));
            }
        }
        if let Some(line) = report.designs.iter().find(|line| !line.exact) {
            lines.push(format!(
                "{} is not exact: it misses {:.1} % of what is {} bits away. An index that keeps it says so.",
                line.name,
                100.0 * (1.0 - line.recall.last().unwrap_or(&1.0)),
                report.within
            ));
        }
        let Some(auto) = of("auto") else { return lines };
        let Some(memory) = report.memory_bytes else {
            let documents = report.documents as f64 * report.bytes_per_document;
            lines.push(format!(
                "Choose auto, which is what `build` takes: {} of tables and {} for documents, keys apart, are to stay in \
                 memory. With less, small; --memory SIZE says what fits.",
                bytes(auto.bytes),
                bytes_of_mean(documents)
            ));
            return lines;
        };
        let fitting = report
            .designs
            .iter()
            .filter(|line| line.fits && line.exact)
            .min_by(|a, b| a.ns_per_query.total_cmp(&b.ns_per_query));
        lines.push(match (auto.fits, fitting) {
            (true, _) => format!("The tables of auto fit into {}: choose auto.", bytes(memory)),
            (false, Some(line)) => format!(
                "The tables of auto do not fit into {}. {} {} is the fastest that does: {}, {} a query.",
                bytes(memory),
                line.name,
                line.codecs,
                bytes(line.bytes),
                nanos_text(line.ns_per_query)
            ),
            (false, None) => {
                let least = report.designs.iter().map(|line| line.bytes).min().unwrap_or(0);
                let shards = least.div_ceil(memory.max(1));
                let cold = if report.medium == MediumArg::Memory {
                    "on less, ask for --medium ssd".to_string()
                } else {
                    format!("on less, auto reads {:.1} pages a query", auto.cold_pages)
                };
                format!(
                    "No exact design fits into {}: the smallest takes {}, {shards} machines with that much; {cold}.",
                    bytes(memory),
                    bytes(least)
                )
            }
        });
        lines
    }
}

fn rows_of(documents: u64, segments: u64) -> u64 {
    documents.div_ceil(segments)
}

impl DesignLine {
    fn to_lines(&self) -> String {
        let span = |numbers: &[u32]| match numbers {
            [] => String::new(),
            [one] => one.to_string(),
            [first, .., last] => format!("{first}-{last}"),
        };
        let finds = if self.exact {
            "all".to_string()
        } else {
            let shares: Vec<String> = self.recall.iter().map(|share| format!("{share:.3}")).collect();
            format!("{} at 0 to {} bits", shares.join(" "), self.recall.len().saturating_sub(1))
        };
        let mut line = format!(
            "{:<13} {:<11} {:>6} {:>6} {:>8.2} {:>9} {:>7} {:>10} {:>10} {:>9}  {finds}",
            self.name,
            self.codecs,
            self.tables,
            span(&self.prefix_bits),
            self.bytes_per_fingerprint,
            bytes(self.bytes),
            if self.scan { "scan".to_string() } else { count(self.probes) },
            mean_count(self.entries),
            mean_count(self.candidates),
            nanos_text(self.ns_per_query),
        );
        if !self.chosen_by.is_empty() {
            let _ = write!(line, "  <- {}", self.chosen_by.join(", "));
        }
        if !self.fits {
            line.push_str("  beyond the memory");
        }
        line
    }
}

impl Paper {
    fn to_lines(&self) -> String {
        let prefixes: Vec<String> = self
            .prefixes
            .iter()
            .map(|prefix| format!("{} at p = {}", mean_count(prefix.candidates), prefix.bits))
            .collect();
        let tables =
            if self.tables == 1 { "1 raw table".to_string() } else { format!("{} raw tables", self.tables) };
        format!(
            "the paper's way, {}: {tables}, {}, {} probes; candidates a probe: {}",
            self.design,
            bytes_of_mean(self.bytes),
            count(self.probes),
            prefixes.join(", ")
        )
    }
}

impl Curve {
    fn to_lines(&self) -> Vec<String> {
        let mut lines = vec![format!(
            "resemblance {}: {} bands of {} minima; a pair shares one with probability",
            self.threshold, self.bands, self.rows
        )];
        for point in &self.points {
            let side = if point.resemblance < self.threshold { "false positives" } else { "recall" };
            lines.push(format!("  {:.2}  {:>7.4}  {side}", point.resemblance, point.recall));
        }
        let banding = Banding { bands: self.bands, rows: self.rows };
        let below = self.threshold / 2.0;
        lines.push(format!(
            "Choose `build --near {}` if that is the lowest resemblance you will ask for: it finds {:.2} % of the \
             pairs there, and more of nearer ones. Of pairs at {below:.2}, {:.2} % are checked in vain. A lower \
             threshold costs more bands: more bytes, and more pairs to look at.",
            self.threshold,
            100.0 * banding.recall(self.threshold),
            100.0 * banding.recall(below),
        ));
        lines
    }
}

fn curve(threshold: f64, minima: u16) -> Curve {
    let banding = Banding::of_minima(minima, threshold);
    let mut at: Vec<f64> = (10..20).map(|twentieths| f64::from(twentieths) / 20.0).collect();
    if at.iter().all(|resemblance| (resemblance - threshold).abs() > 1e-9) {
        at.push(threshold);
    }
    at.sort_by(f64::total_cmp);
    let point = |resemblance| Point { resemblance, recall: banding.recall(resemblance) };
    Curve { threshold, bands: banding.bands, rows: banding.rows, points: at.into_iter().map(point).collect() }
}

fn nanos_text(nanos: f64) -> String {
    match nanos {
        n if n < 999.5 => format!("{n:.0} ns"),
        n if n < 999.5e3 => format!("{:.2} us", n / 1e3),
        n if n < 999.5e6 => format!("{:.2} ms", n / 1e6),
        n => format!("{:.1} s", n / 1e9),
    }
}

/// Formats a mean value, with up to two decimals if it is below 100.
fn mean_count(mean: f64) -> String {
    if mean > 0.0 && mean < 0.005 {
        return "<0.01".to_string();
    }
    if mean < 99.95 {
        let text = format!("{mean:.2}");
        return text.trim_end_matches('0').trim_end_matches('.').to_string();
    }
    #[allow(clippy::cast_sign_loss, reason = "a mean of counts")]
    count(mean.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_counts_are_parsed_in_every_notation() {
        for (text, documents) in [
            ("1", 1),
            ("50M", 50_000_000),
            ("8e9", 8_000_000_000),
            ("8G", 8_000_000_000),
            ("1.5B", 1_500_000_000),
            ("2^34", 1 << 34),
            ("1_000_000", 1_000_000),
            ("2.5e3", 2500),
            ("12k", 12_000),
        ] {
            assert_eq!(parse_documents(text), Ok(documents), "{text}");
        }
        for bad in [
            "", "0", "M", "-1", "1.5", "2^", "2^64", "1e16", "e9", "8X", "1e-3", "+5", ".5M", "1.0005k",
            "nan",
        ] {
            assert!(parse_documents(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn times_and_counts_are_formatted_with_units() {
        let nanos = [83.4, 999.4, 1154.0, 8e6, 2e9].map(nanos_text);
        assert_eq!(nanos, ["83 ns", "999 ns", "1.15 us", "8.00 ms", "2.0 s"]);
        assert_eq!(
            [0.0, 1e-3, 0.5, 8.0, 2.25, 1234.4].map(mean_count),
            ["0", "<0.01", "0.5", "8", "2.25", "1,234"]
        );
    }
}
