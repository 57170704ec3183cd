//! The options that a resumed run must share with the stopped run, and the lookup results that the journal stores for
//! each document.

use std::path::PathBuf;

use twindex::{KeyBuf, Params, Resemblance};
use twindex_join::DeltaHeader;

use super::Dedup;
use super::dropped::{Dropped, MeasuredNearness};
use super::groups::ANCHORS;
use super::journal::{ChunkParts, JobOptions};
use crate::remembered::{ByteReader, ChunkCache, put_numbers};
use crate::text::StopList;

/// The lookup results of a document: the near document of a history, if any, and the header of its delta-encoded set.
pub(super) type LookupResult = (Option<Dropped>, Option<DeltaHeader>);

/// Returns a cache that stores the lookup results of documents in `parts` of the journal.
pub(super) fn remembered<'r>(parts: &'r mut ChunkParts<'_>) -> ChunkCache<'r, LookupResult> {
    ChunkCache { chunks: parts, minima: ANCHORS, put, take }
}

/// Appends the lookup result of a document to `out`.
fn put((near, header): &LookupResult, out: &mut Vec<u8>) {
    out.push(u8::from(near.is_some()) | u8::from(header.is_some()) << 1);
    if let Some(Dropped { other, near }) = near {
        match other {
            KeyBuf::U64(key) => {
                out.push(0);
                put_numbers(&[*key], out);
            }
            KeyBuf::Bytes(key) => {
                out.push(1);
                put_numbers(&[key.len() as u64], out);
                out.extend_from_slice(key);
            }
        }
        let (kind, numbers) = match *near {
            MeasuredNearness::Counted { intersection, union } => (0, [intersection.into(), union.into()]),
            MeasuredNearness::Resemblance(Resemblance::Exact { intersection, union }) => {
                (1, [intersection as u64, union as u64])
            }
            MeasuredNearness::Resemblance(Resemblance::Estimate { value, standard_error }) => {
                (2, [value.to_bits(), standard_error.to_bits()])
            }
            MeasuredNearness::Distance(distance) => (3, [distance.into(), 0]),
        };
        out.push(kind);
        put_numbers(&numbers, out);
    }
    if let Some(header) = header {
        put_numbers(&header.numbers(), out);
    }
}

/// Decodes a lookup result.
fn take(bytes: &mut ByteReader<'_>) -> Option<LookupResult> {
    let what = bytes.byte()?;
    let near = if what & 1 == 0 {
        None
    } else {
        let other = if bytes.byte()? == 0 {
            KeyBuf::U64(bytes.u64()?)
        } else {
            let length = usize::try_from(bytes.u64()?).ok()?;
            KeyBuf::Bytes(bytes.take(length)?.into())
        };
        let (kind, first, second) = (bytes.byte()?, bytes.u64()?, bytes.u64()?);
        let near = match kind {
            0 => MeasuredNearness::Counted {
                intersection: first.try_into().ok()?,
                union: second.try_into().ok()?,
            },
            1 => MeasuredNearness::Resemblance(Resemblance::Exact {
                intersection: first.try_into().ok()?,
                union: second.try_into().ok()?,
            }),
            2 => MeasuredNearness::Resemblance(Resemblance::Estimate {
                value: f64::from_bits(first),
                standard_error: f64::from_bits(second),
            }),
            3 => MeasuredNearness::Distance(first.try_into().ok()?),
            _ => return None,
        };
        Some(Dropped { other, near })
    };
    let header = if what & 2 == 0 {
        None
    } else {
        Some(DeltaHeader::from_numbers([bytes.u64()?, bytes.u64()?, bytes.u64()?])?)
    };
    Some((near, header))
}

impl Dedup {
    /// Returns the options that affect the results or the content of the journal. The pattern names every field, so
    /// that the compiler reports a new field that is not handled.
    pub(super) fn deciding_options(&self, params: &Params) -> JobOptions {
        let Self {
            inputs: _, // compared as the list of input files
            input: _,  // its fields are listed below
            repeated_keys,
            out: _,
            force: _,
            resume: _,
            method,
            near,
            threshold: _,
            within,
            against,
            texts,
            index,
            modulus,
            bottom,
            preset,
            minima,
            join: _,
            sharing,
            verify: _,
            signature_bits: _, // included in the parameters
            sets,
            text,
            without_boilerplate,
            boilerplate_words,
            boilerplate,
            weights,
            weight_unit,
            idf,
            keep,
            keep_field,
            inside,
            url_field,
            clusters,
            pairs,
            max_work,
            max_cluster,
            max_bucket,
            annotations,
            write_revisits,
            compression,
            memory,
        } = self;
        let input = self.input_options();
        let fields = params.fields();
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = match &text.stop_words {
            // A built-in list is identified by its name. The content of a stop word file is checked with the other
            // input files.
            Some(StopList::Words { name, .. }) => format!("{name:?}"),
            other => format!("{other:?}"),
        };
        vec![
            ("the version of twindex", env!("CARGO_PKG_VERSION").to_owned()),
            ("--memory", memory.to_string()),
            ("--method", format!("{method:?}")),
            ("--near", format!("{near:?}")),
            ("--threshold", self.threshold().to_string()),
            ("--within", format!("{within:?}")),
            ("--join", format!("{:?}", self.join())),
            ("--verify", format!("{:?}", self.verify())),
            ("--repeated-keys", format!("{repeated_keys:?}")),
            ("--against", format!("{against:?}")),
            ("--texts", format!("{texts:?}")),
            ("--index", format!("{index:?}")),
            ("--modulus", format!("{modulus:?}")),
            ("--bottom", format!("{bottom:?}")),
            ("--preset", format!("{preset:?}")),
            ("--minima", format!("{minima:?}")),
            ("--sharing", format!("{sharing:?}")),
            ("--sets", sets.unwrap_or(true).to_string()),
            ("--stop-words", text),
            ("--without-boilerplate", format!("{without_boilerplate:?}")),
            ("--boilerplate-words", format!("{boilerplate_words:?}")),
            ("--boilerplate", format!("{boilerplate:?}")),
            ("--weights", format!("{weights:?}")),
            ("--weight-unit", format!("{weight_unit:?}")),
            ("--idf", format!("{idf:?}")),
            ("--keep", format!("{keep:?}")),
            ("the field of --keep", format!("{keep_field:?}")),
            ("--inside", format!("{inside:?}")),
            ("--url-field", format!("{url_field:?}")),
            ("--clusters", format!("{clusters:?}")),
            ("--pairs", format!("{pairs:?}")),
            ("--max-work", format!("{max_work:?}")),
            ("--max-cluster", format!("{max_cluster:?}")),
            ("--max-bucket", format!("{max_bucket:?}")),
            ("--annotate, --cluster-size or --annotation-prefix", format!("{annotations:?}")),
            ("--write-revisits", write_revisits.to_string()),
            ("--compress", format!("{compression:?}")),
            ("the reading of inputs", format!("{input:?}")),
            ("the parameters of the index", fields.join(" ")),
        ]
    }

    /// Returns the files and folders that a run reads in addition to the inputs.
    pub(super) fn other_files(&self) -> Vec<PathBuf> {
        let stop_words = match &self.text.stop_words {
            Some(StopList::File(path)) => Some(path.clone()),
            _ => None,
        };
        self.against
            .iter()
            .chain(&self.texts)
            .chain(&self.idf)
            .chain(&self.boilerplate)
            .cloned()
            .chain(stop_words)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookup_result_round_trips_and_truncated_bytes_are_refused() {
        let key = || KeyBuf::Bytes(b"a key"[..].into());
        let nears = [
            MeasuredNearness::Counted { intersection: 3, union: 4 },
            MeasuredNearness::Resemblance(Resemblance::Exact { intersection: 5, union: 7 }),
            MeasuredNearness::Resemblance(Resemblance::Estimate { value: 0.25, standard_error: 0.5 }),
            MeasuredNearness::Distance(2),
        ];
        let header = DeltaHeader::from_numbers([1, 2, 3]);
        let mut all: Vec<LookupResult> = vec![(None, None), (None, header)];
        all.extend(nears.into_iter().zip([header, None, header, None]).map(|(near, header)| {
            (Some(Dropped { other: if header.is_some() { key() } else { KeyBuf::U64(9) }, near }), header)
        }));
        for looked in &all {
            let (mut bytes, mut again) = (Vec::new(), Vec::new());
            put(looked, &mut bytes);
            let mut rest = ByteReader(&bytes);
            put(&take(&mut rest).unwrap(), &mut again);
            assert!(rest.0.is_empty());
            assert_eq!(bytes, again);
            assert!((0..bytes.len()).all(|end| take(&mut ByteReader(&bytes[..end])).is_none()));
        }
    }
}
