//! What a run that continues a stopped one must have in common with it, and what is kept of each document.

use std::path::PathBuf;

use twindex::{KeyBuf, Params, Resemblance};
use twindex_join::Told;

use super::Dedup;
use super::dropped::{Dropped, HowNear};
use super::groups::ANCHORS;
use super::journal::{Options, Parts};
use crate::remembered::{Bytes, Remembered, put_numbers};
use crate::text::StopList;

/// What is found out about a document when it is read: what it goes for, and how its set is delta-encoded.
pub(super) type Looked = (Option<Dropped>, Option<Told>);

/// How what is found out when documents are read is kept in these parts.
pub(super) fn remembered<'r>(parts: &'r mut Parts<'_>) -> Remembered<'r, Looked> {
    Remembered { chunks: parts, minima: ANCHORS, put, take }
}

/// Appends what was found out about a document.
fn put((near, told): &Looked, out: &mut Vec<u8>) {
    out.push(u8::from(near.is_some()) | u8::from(told.is_some()) << 1);
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
            HowNear::Counted { intersection, union } => (0, [intersection.into(), union.into()]),
            HowNear::Resemblance(Resemblance::Exact { intersection, union }) => {
                (1, [intersection as u64, union as u64])
            }
            HowNear::Resemblance(Resemblance::Estimate { value, standard_error }) => {
                (2, [value.to_bits(), standard_error.to_bits()])
            }
            HowNear::Distance(distance) => (3, [distance.into(), 0]),
        };
        out.push(kind);
        put_numbers(&numbers, out);
    }
    if let Some(told) = told {
        put_numbers(&told.numbers(), out);
    }
}

/// Takes it back.
fn take(bytes: &mut Bytes<'_>) -> Option<Looked> {
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
            0 => HowNear::Counted { intersection: first.try_into().ok()?, union: second.try_into().ok()? },
            1 => HowNear::Resemblance(Resemblance::Exact {
                intersection: first.try_into().ok()?,
                union: second.try_into().ok()?,
            }),
            2 => HowNear::Resemblance(Resemblance::Estimate {
                value: f64::from_bits(first),
                standard_error: f64::from_bits(second),
            }),
            3 => HowNear::Distance(first.try_into().ok()?),
            _ => return None,
        };
        Some(Dropped { other, near })
    };
    let told = if what & 2 == 0 {
        None
    } else {
        Some(Told::of_numbers([bytes.u64()?, bytes.u64()?, bytes.u64()?])?)
    };
    Some((near, told))
}

impl Dedup {
    /// The options that decide the results, or the content of the journal. All fields are named, so that a new one is not
    /// forgotten.
    pub(super) fn deciding_options(&self, params: &Params) -> Options {
        let Self {
            inputs: _, // the files are known by themselves
            input: _,  // below
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
            signature_bits: _, // of the parameters
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
            memory,
        } = self;
        let input = self.input_options();
        let fields = params.fields();
        let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let text = match &text.stop_words {
            // Its content is known as that of the files.
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
            ("--sets", sets.to_string()),
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
            ("the reading of inputs", format!("{input:?}")),
            ("the parameters of the index", fields.join(" ")),
        ]
    }

    /// Files and folders that are read beside the inputs.
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
    fn what_is_found_out_about_a_document_comes_back_and_nothing_comes_of_less() {
        let key = || KeyBuf::Bytes(b"a key"[..].into());
        let nears = [
            HowNear::Counted { intersection: 3, union: 4 },
            HowNear::Resemblance(Resemblance::Exact { intersection: 5, union: 7 }),
            HowNear::Resemblance(Resemblance::Estimate { value: 0.25, standard_error: 0.5 }),
            HowNear::Distance(2),
        ];
        let told = Told::of_numbers([1, 2, 3]);
        let mut all: Vec<Looked> = vec![(None, None), (None, told)];
        all.extend(nears.into_iter().zip([told, None, told, None]).map(|(near, told)| {
            (Some(Dropped { other: if told.is_some() { key() } else { KeyBuf::U64(9) }, near }), told)
        }));
        for looked in &all {
            let (mut bytes, mut again) = (Vec::new(), Vec::new());
            put(looked, &mut bytes);
            let mut rest = Bytes(&bytes);
            put(&take(&mut rest).unwrap(), &mut again);
            assert!(rest.0.is_empty());
            assert_eq!(bytes, again);
            assert!((0..bytes.len()).all(|end| take(&mut Bytes(&bytes[..end])).is_none()));
        }
    }
}
