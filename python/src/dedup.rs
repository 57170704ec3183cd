//! `dedup`: texts in memory. What is near, and what stays, is the library's rule.

use std::ffi::CString;

use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use twindex::params::Shingling;
use twindex_corpus::{Beside, Clustering, DedupTexts, FieldNumber, Keep, ListedPairs, NearBy};

use crate::columns::Column;
use crate::error::{Failure, Result};
use crate::numbers::field_numbers;
use crate::process::check_process;

#[pyclass(frozen, get_all, module = "twindex")]
pub(crate) struct Dedup {
    /// Of each text the place of the one that is kept for it.
    clusters: Vec<u32>,
    /// Of each text its resemblance to that.
    scores: Vec<f64>,
    kept: Vec<u32>,
    /// Texts that go, with the one that is kept for them; or all pairs, the smaller place first.
    pairs: Vec<(u32, u32, f64)>,
    /// Shingles that too many texts have, beyond which pairs may be missing; and how many are too many.
    capped_shingles: u64,
    cap: u64,
}

#[pymethods]
impl Dedup {
    fn __repr__(&self) -> String {
        format!("<twindex.Dedup {} texts, {} kept>", self.clusters.len(), self.kept.len())
    }
}

#[pyfunction]
#[pyo3(signature = (texts, threshold=0.8, *, near="resemblance", keep=None, inside=None, clusters="leaders", pairs="covering",
    max_work=None, max_cluster=None, words=5, seed=0, max_bucket=10_000, memory=1 << 30))]
#[allow(clippy::too_many_arguments, reason = "named ones, as in Python")]
pub(crate) fn dedup(
    py: Python<'_>,
    texts: &Bound<'_, PyAny>,
    threshold: f64,
    near: &str,
    keep: Option<&Bound<'_, PyAny>>,
    inside: Option<&Bound<'_, PyAny>>,
    clusters: &str,
    pairs: &str,
    max_work: Option<u64>,
    max_cluster: Option<u32>,
    words: u8,
    seed: u64,
    max_bucket: u32,
    memory: usize,
) -> Result<Dedup> {
    if !(1..=twindex::params::SHINGLE_WIDTH_MAX).contains(&words) {
        let most = twindex::params::SHINGLE_WIDTH_MAX;
        return Err(Failure::invalid(format!("words: expected 1 to {most}, found {words}")));
    }
    let (keep, numbers) = keep.map_or(Ok((Keep::First, None)), keep_of)?;
    let near = match near {
        "resemblance" => NearBy::Resemblance,
        "containment" => NearBy::Containment,
        other => {
            return Err(Failure::invalid(format!(
                "near: expected resemblance or containment, found {other}"
            )));
        }
    };
    let clusters = match clusters {
        "leaders" => Clustering::Leaders,
        "components" => Clustering::Components,
        other => {
            return Err(Failure::invalid(format!("clusters: expected leaders or components, found {other}")));
        }
    };
    let pairs = match pairs {
        "covering" => ListedPairs::Covering,
        "all" => ListedPairs::All,
        other => return Err(Failure::invalid(format!("pairs: expected covering or all, found {other}"))),
    };
    let texts = Column::of("texts", texts)?;
    if u32::try_from(texts.len()).is_err() {
        return Err(Failure::invalid(format!("texts: expected at most 2^32 - 1, found {}", texts.len())));
    }
    let inside = inside.map(|inside| Column::of("inside", inside)).transpose()?;
    let shingling = Shingling::words(words, seed);
    let job = DedupTexts {
        threshold,
        near,
        shingling,
        keep,
        clusters,
        pairs,
        max_work,
        max_cluster,
        max_bucket,
        memory,
    };
    let found = py.detach(|| work(&texts, inside.as_ref(), numbers.as_deref(), &job))?;
    if found.capped_shingles > 0 {
        let Dedup { capped_shingles, cap, .. } = found;
        let why = format!(
            "{capped_shingles} shingles are in the prefixes of more than {cap} texts, which are not paired all with all: \
             pairs may be missing; a larger max_bucket finds more"
        );
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &CString::new(why).unwrap_or_default(), 1)?;
    }
    Ok(found)
}

/// What `keep` says: a name, or a name and numbers.
fn keep_of(keep: &Bound<'_, PyAny>) -> Result<(Keep, Option<Vec<FieldNumber>>)> {
    const EXPECTED: &str = "keep: expected first, longest, (\"max\", numbers) or (\"min\", numbers)";
    if let Ok((name, numbers)) = keep.extract::<(String, Bound<'_, PyAny>)>() {
        let keep = match &*name {
            "max" => Keep::Max,
            "min" => Keep::Min,
            _ => return Err(Failure::invalid(format!("{EXPECTED}, found {name}"))),
        };
        return Ok((keep, Some(field_numbers("keep", &numbers)?)));
    }
    match keep.extract::<String>().as_deref() {
        Ok("first") => Ok((Keep::First, None)),
        Ok("longest") => Ok((Keep::Longest, None)),
        _ => Err(Failure::invalid(format!("{EXPECTED}, found {keep}"))),
    }
}

fn work(
    texts: &Column,
    inside: Option<&Column>,
    numbers: Option<&[FieldNumber]>,
    job: &DedupTexts,
) -> Result<Dedup> {
    check_process()?;
    let texts: Vec<&[u8]> = (0..texts.len()).map(|row| texts.text(row)).collect::<Result<_>>()?;
    // A value that is missing is refused as an empty one is.
    let inside: Option<Vec<&[u8]>> = match inside {
        None => None,
        Some(inside) => Some(
            (0..inside.len()).map(|row| Ok(inside.bytes(row)?.unwrap_or_default())).collect::<Result<_>>()?,
        ),
    };
    let found = job.run_beside(&texts, Beside { numbers, inside: inside.as_deref() })?;
    let kept =
        (0..).zip(&found.kept_of).filter(|&(text, &kept)| text == kept).map(|(text, _)| text).collect();
    Ok(Dedup {
        clusters: found.kept_of,
        scores: found.scores,
        kept,
        pairs: found.pairs,
        capped_shingles: found.capped_shingles,
        cap: found.cap,
    })
}
