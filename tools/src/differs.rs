//! Lists how options of other verbs differ from those of `dedup`: their help, and the values that the verb rejects.

use crate::settings_args::{Difference, pick};

/// The largest radius of an index.
const WITHIN_MAX: Option<u16> = Some(twindex::design::WITHIN_MAX as u16);
/// The error text for `--near equal` in verbs that use an index.
const NO_TEXTS: &str =
    "an index keeps no texts, which --near equal compares; `dedup --near equal` reads them";
/// The error text for `--near containment:J` in verbs that find pairs.
const NO_CONTAINED: &str =
    "pairs are found by resemblance or by distance; `dedup` and `query` measure containment";

/// The help of `--near` for verbs that find pairs in an index.
const NEAR_PAIRS: &str = "Which pairs are found: J or within:K\n\
    `J`, 0.05 to 1: pairs with a resemblance of J or more; all such pairs if the index keeps sets, otherwise those \
    among documents that share a band. `within:K`, 0 to 10: pairs whose fingerprints differ in at most K bits. \
    [default: what the index says; its distance, if it has both]";

const PAIRS: &[Difference] = &[Difference {
    refused: &[("containment:J", NO_CONTAINED), ("equal", NO_TEXTS)],
    ..Difference::of("near", NEAR_PAIRS)
}];

const WEIGHTS: Difference = Difference::of(
    "weights",
    "Weight of a shingle in the resemblance: distinct, tf or idf\n\
    `distinct`: all the same. `tf`: the number of its occurrences, or the weight of a feature, with --family darts or \
    --weight-unit. `idf`: the `tf` weight, multiplied by the inverse document frequency of the table --idf, with \
    --family darts or --weight-unit. Weighted resemblance is the sum of the smaller weights divided by the sum of the \
    larger weights. [default: distinct]",
);

const SIMHASH_BITS: Difference = Difference::of(
    "simhash_bits",
    "Number of bits of the simhashes: 64, 128, 192, 256, 384 or 512\n\
    More bits distinguish documents better. With more than 64, the index has no tables and no MinHash, and queries compare \
    all simhashes; give --near within:K. [default: 64]",
);

const WEIGHT_UNIT: Difference = Difference::of(
    "weight_unit",
    "Round the weights of --weights to multiples of U, 1/256 to 2\n\
    Each unit is stored as a shingle, so that the sets of the index count the rounded weights exactly. Rounding changes \
    a resemblance by at most U / the mean weight. [default: weights are not rounded]",
);

/// The error text for `--near containment:J` in `build`.
const NOT_STORED: &str = "an index is made for a resemblance or a distance; `query` and `stream` measure containment \
    with its sets";

const BUILD: &[Difference] = &[
    Difference {
        repeats: true,
        refused: &[("containment:J", NOT_STORED), ("equal", NO_TEXTS)],
        ..Difference::of(
            "near",
            "Rule for near documents: J, within:K, or both\n\
            `J`, 0.05 to 1: the smallest resemblance of near documents; bands and rows are chosen to find 99.5 % of such \
            pairs. `within:K`, 0 to 10: the simhashes differ in at most K bits; the tables are optimized for it. \
            With --simhash-bits or --fingerprint-field, K may be up to the number of bits: an index for a larger K, or of more than 64 bits, \
            has no tables, and queries compare all fingerprints. With \
            --near J --near within:K, either makes documents near. [default: 0.8, with tables for within:3; within:3 if no \
            MinHash is kept]",
        )
    },
    SIMHASH_BITS,
    WEIGHTS,
    WEIGHT_UNIT,
];

const STREAM: &[Difference] = &[
    Difference {
        repeats: true,
        refused: &[("equal", NO_TEXTS)],
        ..Difference::of(
            "near",
            "Rule for near documents: J, within:K, or both; or containment:J\n\
            `J` and `within:K` are as in `build`, for a new index; for an existing one, they decide in this run. \
            `containment:J`: at least this share of a document is in one that is at least as large. It needs an index of \
            all shingles, which each run builds from the sets in the index, in half of --memory: about 5 KB for a \
            document of 300 words. It must be repeated in each run, and needs an index with sets and without stamps. \
            [default: what the index says; in a new index, 0.8; within:3 if it keeps no MinHash]",
        )
    },
    SIMHASH_BITS,
    WEIGHTS,
    WEIGHT_UNIT,
];

const QUERY: &[Difference] = &[Difference {
    refused: &[("equal", NO_TEXTS)],
    ..Difference::of(
        "near",
        "Rule for near documents: J, containment:J or within:K\n\
        `J`, 0.05 to 1: documents whose resemblance is J or more. `within:K`, 0 to 10, or any if the index has no tables: exactly the documents \
        within this Hamming radius. `containment:J`: documents that are at least as large as the query and contain at least this share \
        of it, and documents that are contained in the query by at least this share; it needs an index with sets, and \
        reads the sets of all documents once for as many queries as fit in half of --memory. [default: what the index \
        says; with --fingerprints, its radius]",
    )
}];

const GROUPS: &[Difference] = &[
    Difference {
        refused: &[("containment:J", NO_CONTAINED), ("equal", NO_TEXTS)],
        within_max: WITHIN_MAX,
        ..Difference::of("near", NEAR_PAIRS)
    },
    Difference::of(
        "keep",
        "Which document of a cluster to keep; repeated, the first rule that distinguishes two documents decides\n\
        The rules are those of `dedup`. All but `smallest-key` and `key-hash` need --texts. `first`: the first in the order \
        of --texts. `longest`: tokens are those of the index or of the files of pairs; of tables without parameters, \
        words. URLs are the keys. [default: smallest-key]",
    ),
];

const BY_RESEMBLANCE: &[(&str, &str)] = &[
    ("containment:J", "documents are compared by resemblance"),
    ("within:K", "documents are compared by resemblance"),
    ("equal", "documents are compared by resemblance; 1 is that of equal shingles"),
];

const PAGE: &[Difference] = &[Difference {
    refused: BY_RESEMBLANCE,
    ..Difference::of(
        "near",
        "On the page, smallest estimated resemblance of documents in a cluster, 0.05 to 1 [default: 0.8]",
    )
}];

const STUDY: &[Difference] = &[Difference {
    refused: &[("containment:J", NO_CONTAINED), ("equal", NO_TEXTS)],
    within_max: WITHIN_MAX,
    ..Difference::of(
        "near",
        "Smallest exact resemblance of a near pair, 0.05 to 1; with --urls also within:K\n\
        With --truth, only known pairs with at least this resemblance are counted, in every row. With --urls, the \
        documents of an index are near if their fingerprints differ in at most K bits. [default: 0.8; with --truth, the \
        threshold of the row, or 0.8 for radii; with --urls, the radius of an index without MinHash bands]",
    )
}];

const REPEATED: &[Difference] = &[Difference::of(
    "repeated_keys",
    "Treatment of repeated keys: number, first, last or error\n\
    `number`: later documents get a number after their key. `first`, `last`: only this document is used. `error`: an error. \
    [default: every document is used]",
)];

const REPEATED_IN_INDEX: &[Difference] = &[Difference::of(
    "repeated_keys",
    "Treatment of repeated keys: number, first, last or error\n\
    `number`: later documents get a number after their key. `first`, `last`: only this document is used. `error`: an error. \
    A key that is in the index is no repeated one: its document is replaced. [default: last]",
)];

const IDF: &[Difference] = &[Difference::of(
    "idf",
    "Table of document frequencies, which weights the shingles of the simhash\n\
    `twindex idf` makes it. With --weights idf it also weights those of MinHash. Texts are tokenized as for the table.",
)];

const INSIDE: &[Difference] = &[Difference::of(
    "inside",
    "Compare only documents with the same value in this field\n\
    `host` and `domain` are those of the URL; `field:NAME` is a field with any name. The index keeps the value as the \
    document's value. This option must be repeated in each run, and needs an index with sets and without stamps.",
)];

pick!(NearAlone: "near"; PAIRS);
pick!(NearOfQuery: "near"; QUERY);
pick!(NearOfPage: "near"; PAGE);
pick!(NearOfStudy: "near"; STUDY);
pick!(NearAndKeep: "near", "keep"; GROUPS);
pick!(ReadingTexts: all but "inputs");
pick!(InBuild: "near", "simhash_bits", "weights", "weight_unit"; BUILD);
pick!(InStream: "near", "simhash_bits", "weights", "weight_unit"; STREAM);
pick!(IdfTables: "idf"; IDF);
pick!(InsideAlone: "inside"; INSIDE);
pick!(Repeated: "repeated_keys"; REPEATED);
pick!(RepeatedInIndex: "repeated_keys"; REPEATED_IN_INDEX);

#[cfg(test)]
mod tests {
    use twindex_corpus::settings::{Reading, Rule, Scope, Settings};

    use super::*;
    use crate::settings_args::Pick;

    fn names_are_settings<S: Settings, P: Pick>() {
        let picked = P::NAMES.unwrap_or_default().iter().chain(P::OMITTED);
        for name in picked.chain(P::DIFFERS.iter().map(|one| &one.setting)) {
            assert!(S::TABLE.iter().any(|setting| setting.name == *name), "there is no setting {name}");
        }
    }

    #[test]
    fn picked_names_are_settings() {
        names_are_settings::<Rule, NearAlone>();
        names_are_settings::<Rule, NearOfQuery>();
        names_are_settings::<Rule, NearOfPage>();
        names_are_settings::<Rule, NearOfStudy>();
        names_are_settings::<Rule, NearAndKeep>();
        names_are_settings::<Rule, InBuild>();
        names_are_settings::<Rule, InStream>();
        names_are_settings::<Reading, ReadingTexts>();
        names_are_settings::<Scope, Repeated>();
        names_are_settings::<Scope, RepeatedInIndex>();
    }
}
