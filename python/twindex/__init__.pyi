"""Types of twindex. What has a sequence of texts or keys takes lists, and Arrow arrays of any library, uncopied."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, SupportsIndex, TypeVar, overload

from ._errors import AfterCommitError as AfterCommitError
from ._errors import AlreadyExistsError as AlreadyExistsError
from ._errors import CorruptError as CorruptError
from ._errors import Error as Error
from ._errors import InvalidError as InvalidError
from ._errors import IoError as IoError
from ._errors import LimitError as LimitError
from ._errors import LockedError as LockedError
from ._errors import NoSpaceError as NoSpaceError
from ._errors import NotAnIndexError as NotAnIndexError
from ._errors import ParamsMismatchError as ParamsMismatchError
from ._errors import PoisonedError as PoisonedError
from ._errors import UnsupportedError as UnsupportedError
from ._sketchers import MinHash as MinHash
from ._sketchers import Simhash as Simhash

__all__ = [
    "AfterCommitError",
    "AlreadyExistsError",
    "CorruptError",
    "Error",
    "InvalidError",
    "IoError",
    "LimitError",
    "LockedError",
    "NoSpaceError",
    "NotAnIndexError",
    "ParamsMismatchError",
    "PoisonedError",
    "UnsupportedError",
    "Admitted",
    "Dedup",
    "Forest",
    "Hit",
    "IdfTable",
    "Index",
    "MinHash",
    "Params",
    "ShardBuilder",
    "Simhash",
    "Sketch",
    "Sketcher",
    "Values",
    "__version__",
    "dedup",
    "passages",
    "set_threads",
]

__version__: str

_T = TypeVar("_T", covariant=True)

class ArrowArray(Protocol):
    """An array of any library of Arrow's."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class ArrowStream(Protocol):
    """A stream of arrays, as a chunked array is."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class RecordBatch(ArrowArray, Protocol):
    """Columns that any library of Arrow's takes, for example as `pyarrow.record_batch(batch)`."""

class Table(Protocol):
    """Columns by their names, as a DataFrame has them."""

    def __getitem__(self, name: Any, /) -> Any: ...

_Path = str | PathLike[str]
# A set of features, or a vector of them with weights, where the parameters have tokens="features".
_Feature = str | int
_Features = Sequence[_Feature] | Sequence[Sequence[_Feature | float]] | dict[str, float] | dict[int, float]
_Text = str | bytes | _Features
_Key = str | bytes | int
_Texts = Iterable[_Text | None] | ArrowArray | ArrowStream
_Numbers = Iterable[int | float] | ArrowArray | ArrowStream
_Keys = Iterable[_Key | None] | ArrowArray | ArrowStream
_Progress = bool | Callable[[str, int, int], object] | None

class Params:
    """What an index keeps, and how text becomes numbers. Fixed when the index is made."""

    def __init__(
        self,
        *,
        words: int | None = None,
        simhash: int | None = 3,
        minhash: tuple[int, int] | None = (20, 6),
        seed: int = 0,
        keys: Literal["bytes", "u64"] = "bytes",
        weights: Literal["occurrences", "distinct", "idf"] = "occurrences",
        signature_bits: int = 8,
        feature_bits: int = 32,
        bottom: int = 0,
        modulus: int = 0,
        threshold: float | None = None,
        near_within: int | None = None,
        sets: bool = False,
        marks: bool = False,
        priorities: bool = False,
        minhash_weights: Literal["distinct", "frequencies", "idf"] = "distinct",
        weight_unit: float | None = None,
        family: str | None = None,
        idf: IdfTable | None = None,
        **fields: object,
    ) -> None:
        """words: tokens in a shingle, 1 to 16; 5 words, 9 characters or 1 sentence unless it is named. tokens: what a shingle
        is a run of, "words", "unicode-words", "word-characters", "characters", "sentences" or "raw"; with "features" documents
        are no texts, but sets or vectors of your own, as in dedup. normal_form: "none" or
        "nfkc". fold: what is dropped, "marks", "invisible" or "invisible+marks". simhash: the Hamming radius that is asked for, None for no fingerprints. minhash:
        bands and rows, None for no minima. feature_bits: bits kept of each feature, 8 for features of one byte.
        threshold: the resemblance from which documents are near, by itself without regard to distance; near_within: the
        distance in which they are, too. Without these 0.8 and the radius of simhash. sets: keep the shingle hashes of each
        document, so that resemblance is counted and none near is missed; without them it is estimated. marks: let `admit`
        mark the duplicates that it adds, and compare with the others alone. priorities: let documents have one, by which
        `groups` chooses who leads. weights: how often a shingle votes in a simhash, "occurrences", "distinct", or "idf", each
        occurrence by its inverse document frequency. minhash_weights: what a shingle weighs in minima and sets, "distinct", each the
        same, "frequencies", as often as it occurs, or "idf", that times its inverse document frequency. idf: the IdfTable of these
        weights, whose texts were cut in the same way. weight_unit: minhash_weights are rounded to whole units of this, 1/256 to 2,
        so that sets count them; "idf" needs it, or family="darts". family: the orders of minima, "one-permutation-filled" unless
        it is named. Any other line of `fields` can be
        named, with _ for -."""

    @property
    def near(self) -> tuple[float | None, int | None]:
        """The resemblance from which documents are near, and the distance in which they are; None for what makes none
        near."""

    @classmethod
    def parse(cls, text: str, idf: IdfTable | None = None) -> Params:
        """Reads what `text` says; with the table that it names, if it names one."""

    @property
    def idf(self) -> IdfTable | None:
        """The table of inverse document frequencies that was given."""

    @property
    def text(self) -> str:
        """The lines that stand in files; equal for equal parameters only."""

    @property
    def fields(self) -> dict[str, str]:
        """The lines by name."""

    @property
    def keys(self) -> Literal["bytes", "u64"]:
        """The kind of the keys."""

    def check(self, given: Params) -> None:
        """Raises ParamsMismatchError, naming the field, unless both are the same."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class IdfTable:
    """In how many documents of a collection each shingle is, from which its weight follows: rare shingles weigh more.

    A table is made by `of`, or by the command `twindex idf`, and does not change. `Params`, `Index.create` and `dedup` take
    it as `idf`."""

    @staticmethod
    def open(path: _Path) -> IdfTable:
        """Reads the file of a table."""

    @staticmethod
    def of(
        texts: _Texts | Table,
        *,
        text_field: str | None = None,
        words: int | None = None,
        seed: int = 0,
        tokens: str | None = None,
        normal_form: str | None = None,
        fold: str | None = None,
        min_df: int = 2,
        max_entries: int = 1_000_000,
        progress: _Progress = None,
    ) -> IdfTable:
        """Counts texts. words, seed, tokens, normal_form, fold: how texts are cut into shingles, as in Params. Shingles of fewer
        than `min_df` texts are left out, and of the others all but the `max_entries` most frequent ones; such a shingle has
        the weight of the rarest one that was left out. progress: as for dedup."""

    def save(self, path: _Path, replace: bool = False) -> None:
        """Writes it to a file, as a whole or not at all. A file that is there is an error, unless it is to be replaced."""

    @property
    def digest(self) -> str:
        """Identifies the table: two of the same digest give the same weights."""

    @property
    def documents(self) -> int:
        """Texts that were counted, those without shingles left out."""

    def weight(self, shingle: str) -> float:
        """The weight of a shingle, given as a text that has no other, or of a feature, given by its name:
        1 + log2((documents + 1) / (frequency + 1)), rounded down to a multiple of 1/256."""

    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class Sketch:
    """The numbers of one text."""

    @property
    def is_empty(self) -> bool:
        """True for a text without words."""

    @property
    def fingerprint(self) -> int | None:
        """The simhash; None where none is kept, or for an empty text."""

    @property
    def signature(self) -> tuple[int, ...]:
        """The minima."""

    @property
    def features(self) -> tuple[int, ...]:
        """A number for each band."""

    def resemblance(self, other: Sketch) -> float:
        """How much the two documents resemble each other (Jaccard), estimated from the minima."""

    def distance(self, other: Sketch) -> int:
        """Bits in which the fingerprints differ."""

class Sketcher:
    """Texts to numbers. May be shared by threads."""

    def __init__(self, params: Params) -> None: ...
    @property
    def params(self) -> Params:
        """The parameters it was made with."""

    def sketch(self, text: _Text) -> Sketch:
        """The numbers of one text."""

    def sketch_many(self, texts: _Texts) -> list[Sketch]:
        """Those of many texts, on all cores."""

    def rows(self, keys: _Keys, texts: _Texts, shards: int = 1) -> RecordBatch:
        """Columns key, shard (from 0, by a hash of the key), fingerprint, features, signature, bottom, modular, set: what
        a ShardBuilder takes. Sets are null where the parameters keep none."""

class Hit:
    """A near document."""

    @property
    def key(self) -> str | bytes | int:
        """Its key."""

    @property
    def distance(self) -> int | None:
        """The bits in which the fingerprints differ; None where that was not asked for."""

    @property
    def resemblance(self) -> float | None:
        """How much both resemble each other; None where that was not asked for."""

    @property
    def query_in_hit(self) -> float | None:
        """How much of the document that was asked about is contained in this one: counted where that was asked for, otherwise
        estimated from the index's samples; None without both."""

    @property
    def hit_in_query(self) -> float | None:
        """How much of this document is contained in the one that was asked about; likewise."""

class Admitted:
    """What became of a document that was admitted."""

    __match_args__ = ("outcome", "near")

    @property
    def outcome(self) -> Literal["new", "updated", "known", "duplicate", "expired"]:
        """"new": nothing is near it, and it was added. "updated": its key was there, and nothing else is near; it was replaced.
        "known": its key was there, and another document is near; it was replaced. "duplicate": another document is near; it
        was added unless duplicates are dropped. "expired": it is too old by its stamp, and nothing was added."""

    @property
    def near(self) -> Hit | None:
        """The nearest other document, of one that is "known" or a "duplicate"; None of others."""

    @property
    def contained(self) -> list[tuple[str | bytes | int, float]]:
        """Where containment was asked for, earlier documents that this one contains, and how much of each."""

class Index:
    """A directory that maps keys of documents to fingerprints and features. One process writes at a time, any number
    reads. In a `with` block, what was put is committed at its end, and is gone if the block raises."""

    @staticmethod
    def open(path: _Path) -> Index:
        """Never creates."""

    @staticmethod
    def create(path: _Path, params: Params | None = None, **options: Any) -> Index:
        """Never overwrites. Options are those of Params."""

    @staticmethod
    def adopt(path: _Path, params: Params, segments: Sequence[_Path]) -> Index:
        """Makes an index of segments that ShardBuilders made; no key may be in two of them."""

    @property
    def path(self) -> str:
        """Its directory."""

    @property
    def params(self) -> Params:
        """The parameters it was made with."""

    @property
    def generation(self) -> int:
        """The number of the last commit."""

    @property
    def uuid(self) -> str:
        """Chosen at random when it was made."""

    @property
    def segments(self) -> list[int]:
        """The documents of each segment; those of the log come last, where there are some."""

    @property
    def logged(self) -> int:
        """Documents that were committed and are in no segment yet."""

    @property
    def payload(self) -> bytes | None:
        """What the last commit that had a payload was given."""

    def sketch(self, text: _Text) -> Sketch:
        """The numbers of one text, by the index's parameters."""

    def put(self, key: _Key, document: _Text | Sketch, priority: int | None = None) -> None:
        """Adds a document, or replaces the one with this key. priority: the smallest number leads its group."""

    def put_many(self, keys: _Keys, texts: _Texts, progress: _Progress = None) -> int:
        """Adds many, sketched on all cores; returns how many. progress: as for dedup. Ctrl-C ends it; what was put until then is
        not committed."""

    def delete(self, key: _Key) -> None:
        """Removes a document; one that is not there is nothing to remove."""

    def admit(
        self,
        key: _Key,
        document: _Text | Sketch,
        drop_duplicates: bool = False,
        within: int | None = None,
        resembling: float | None = None,
        unverified: bool = False,
        estimated: bool = False,
        containment: float | None = None,
        inside: str | bytes | None = None,
        memory: int = 1_073_741_824,
    ) -> Admitted:
        """Looks up and adds, as one step. Near is what is so by `within` or `resembling`, or else by what the index's parameters
        say. Where the index keeps sets, resemblance
        is counted, unless it is to be `estimated`; otherwise it is an estimate from signatures. An index without both raises
        `InvalidError`, unless `unverified` says that sharing a band is enough. A duplicate is added too, with a mark where
        the index keeps marks, unless it is to be dropped.

        containment: a document is a duplicate if this share of it is contained in one that is at least as large; `contained` of
        the result has earlier documents that this one contains. The elements of all documents are held for that, made of what is
        committed at the first call, in `memory` bytes: some 5 KB for a text of 300 words. Other ways to put documents in between
        make it read the index again.
        inside: a value, such as the source; the document is compared only with those of the same value, which the index keeps
        (`Params(values="kept")`). Both need an index with sets."""

    def commit(self, payload: bytes | None = None) -> int:
        """Makes durable what was put; returns the commit's number. Up to 64 KiB of yours go with it."""

    def close(self, discard: bool = False) -> None:
        """Lets others write, and takes no more documents; what was not committed is gone, with a warning unless it is said to
        be discarded. What is committed can still be read."""

    def refresh(self) -> bool:
        """Takes in what other processes committed; True if there was anything."""

    def get(self, key: _Key) -> dict[str, Any] | None:
        """What is kept of a document: fingerprint, signature, value, stamp, priority."""

    def leader(self, key: _Key, questions: int | None = None) -> str | bytes | int | None:
        """The key of the document that leads this one's group, of all that is committed: the first in the order of
        priorities and hashes of keys that is near it and leads itself. None where `questions` about near documents are too
        few for an answer, and where there is no document of this key."""

    def group(self, key: _Key, questions: int | None = None) -> list[str | bytes | int] | None:
        """The keys of all documents that have the same leader, in order; None as for `leader`."""

    def groups(
        self, min_size: int = 1, memory: int = 1_073_741_824
    ) -> list[tuple[str | bytes | int, str | bytes | int, int]]:
        """Key, leader and size of the group of each document, in the order of keys; of groups of min_size documents or
        more."""

    def keys(self) -> list[str | bytes | int]:
        """All keys, in order."""

    def near(
        self,
        document: _Text | Sketch,
        limit: int | None = None,
        within: int | None = None,
        resembling: float | None = None,
        unverified: bool = False,
        estimated: bool = False,
        containment: float | None = None,
    ) -> list[Hit]:
        """Documents near this one, nearest first: within a Hamming radius, exactly; resembling it by so much; without both,
        what is near by the index's parameters. Resemblance is counted where the index keeps sets, from its threshold on,
        unless it is to be `estimated`. Otherwise it is an estimate from signatures, among documents that share a band; an
        index without both raises `InvalidError`, unless `unverified` says that sharing a band is enough.

        containment: instead the documents that contain this share of the document and are as large or larger, and documents that
        the document contains as much of, counted. It needs an index with sets and reads those of all documents: ask for many at once."""

    def near_many(
        self,
        texts: _Texts,
        limit: int | None = None,
        within: int | None = None,
        resembling: float | None = None,
        unverified: bool = False,
        estimated: bool = False,
        containment: float | None = None,
    ) -> list[list[Hit]]:
        """The same for many, on all cores."""

    def query(
        self,
        keys: _Keys,
        texts: _Texts,
        within: int | None = None,
        resembling: float | None = None,
        limit: int | None = None,
        segment: int | None = None,
        unverified: bool = False,
        estimated: bool = False,
    ) -> RecordBatch:
        """The same in columns: query, key, distance, resemblance; of one segment if it is named. All answers are held
        in memory: give it fewer texts at once, or a limit."""

    def same_features(self, document: _Text | Sketch) -> list[tuple[str | bytes | int, int]]:
        """Documents that share a feature (band) with this one, and how many, most first; unverified."""

    def pairs(
        self, within: int | None = None, resembling: float | None = None, estimated: bool = False
    ) -> list[tuple[str | bytes | int, str | bytes | int, int | float]]:
        """Pairs that are near, a < b, sorted, and their distance or resemblance; a list in memory. Within a radius all
        of them. Resemblance is counted on the sets of the index, and no pair is missed. With `estimated`, it is estimated
        from the signatures of documents that share a band; an index without sets takes nothing else. Of buckets of more than
        10,000 documents, or shingles that are among the rarest of more, only enough pairs to hold them together, which a
        warning says."""

    def pairs_batches(
        self,
        within: int | None = None,
        resembling: float | None = None,
        left: int | None = None,
        right: int | None = None,
        memory: int = 1_073_741_824,
        estimated: bool = False,
    ) -> Iterator[RecordBatch]:
        """The same in columns, a, b, and distance or resemblance, unsorted; of one segment, `left`, or across two, if
        they are named. The join takes about `memory` bytes. Batches come while it goes on, and few are held: of at
        most 65,536 pairs each, and some 64 MB of keys a column."""

    def gc(self) -> int:
        """Removes files that nothing needs; returns their bytes."""

    def compact(self) -> int:
        """Merges all segments to one."""

    def verify(self) -> list[str]:
        """What is wrong, to the last byte; empty for a sound index."""

    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...
    def __contains__(self, key: _Key) -> bool: ...
    def __enter__(self) -> Index: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]: ...

class ShardBuilder:
    """Makes the segment of one shard, in a folder, under a name that its bytes give it."""

    def __init__(self, into: _Path, params: Params, memory: int = 268_435_456, scratch: _Path | None = None) -> None: ...
    def add(
        self,
        keys: _Keys,
        fingerprints: Any,
        features: Any,
        signatures: Any,
        bottoms: Any,
        modulars: Any,
        sets: Any = None,
    ) -> None:
        """Adds rows of Sketcher.rows, with their sets where the parameters keep sets."""

    def finish(self) -> tuple[str, int, int]:
        """Name, documents, and bytes of the segment."""

    def abandon(self) -> None:
        """Stops, and removes what was made."""


class Forest:
    """A spanning forest of pairs of keys. It takes about `memory` bytes, and scratch files beyond."""

    def __init__(self, keys: Literal["bytes", "u64"] = "bytes", memory: int = 268_435_456) -> None: ...
    def add(self, a: _Keys, b: _Keys) -> None:
        """Joins the keys of each row."""

    def finish(self) -> Iterator[RecordBatch]:
        """Columns root and key: each component is a star around its smallest key. Few batches are held at once."""

class Values(Generic[_T]):
    """A column of a result, one value for each text, or for each pair. Reads as a sequence does: len(), [], slices, for and ==.
    numpy.asarray and libraries of Arrow's take it as one array."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, at: SupportsIndex) -> _T: ...
    @overload
    def __getitem__(self, at: slice) -> list[_T]: ...
    def __iter__(self) -> Iterator[_T]: ...
    def tolist(self) -> list[_T]:
        """A list of all values."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A numpy array of all values; NaN where there is none, which makes numbers floats. Pairs are of three types, and
        have none: a library of Arrow's takes them."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

class Dedup:
    """What `dedup` found: columns with a value for each text, in the order of the texts. `len()` is the number of texts, and
    libraries of Arrow's take it as a table of mask, group, representative and score."""

    @property
    def kept(self) -> Values[int]:
        """The places of the texts that stay."""

    @property
    def mask(self) -> Values[bool]:
        """Whether each text is kept."""

    @property
    def groups(self) -> Values[int | None]:
        """The group of each text, in the order in which groups begin; None where it was dropped as a null."""

    @property
    def representatives(self) -> Values[int | None]:
        """Of each text the place of the one that is kept for it, itself if it stays; None where it goes for one of `against`,
        or was dropped as a null."""

    @property
    def scores(self) -> Values[float | None]:
        """The resemblance of each text to that; None where it was dropped as a null."""

    @property
    def history(self) -> Values[int | None]:
        """The place in `against` of the text for which each text is removed; None where there is none."""

    @property
    def pairs(self) -> Values[tuple[int, int, float]]:
        """Each text that goes for another one of `texts`, that one, and their resemblance. With pairs="all", every pair at the
        threshold or above, the smaller place first, if no shingle is capped; of more than max_bucket identical texts, only the
        pairs with the first."""

    @property
    def contained(self) -> Values[tuple[int, int, float]]:
        """With near="containment", texts of `against` that a later text contains, which stays: the place in `against`, the place
        of the text, and the share of the first that the second contains."""

    @property
    def capped_shingles(self) -> int:
        """With pairs="all" or clusters="components", shingles in the prefixes of more than `cap` texts. These are not paired
        all with all, so pairs may be missing; a warning says so."""

    @property
    def cap(self) -> int:
        """max_bucket, or less to bound the work."""

    @property
    def boilerplate_spans(self) -> int | None:
        """With without_boilerplate, spans that did not count, each a run of boilerplate_words words; None without it."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def dedup(
    texts: _Texts | Table,
    threshold: float = 0.8,
    *,
    text_field: str | None = None,
    near: Literal["resemblance", "containment"] = "resemblance",
    weights: Literal["distinct", "tf", "idf"] = "distinct",
    keep: Literal["first", "longest"]
    | tuple[Literal["max", "min"], _Numbers]
    | tuple[Literal["key-hash", "smallest-key"], _Keys]
    | None = None,
    against: _Texts | Table | None = None,
    inside: _Keys | None = None,
    nulls: Literal["raise", "keep", "drop"] = "raise",
    clusters: Literal["leaders", "components"] = "leaders",
    pairs: Literal["covering", "all"] = "covering",
    max_work: int | None = None,
    max_cluster: int | None = None,
    words: int | None = None,
    seed: int = 0,
    tokens: str | None = None,
    normal_form: Literal["none", "nfkc"] | None = None,
    fold: str | None = None,
    max_bucket: int | None = None,
    memory: int = 1_073_741_824,
    progress: _Progress = None,
    idf: IdfTable | None = None,
    weight_unit: float | None = None,
    without_boilerplate: int | None = None,
    boilerplate_words: int | None = None,
) -> Dedup:
    """Decides which texts stay, by the rule of the command `twindex dedup`.

    A text goes if and only if a kept text before it resembles it by `threshold` or more, counted exactly. So no two kept
    texts are near each other, and nothing goes that is not near a kept one.

    texts: a list or another iterable of str or bytes, a column of pandas, polars, pyarrow or numpy, or a table with one column
        of text: a pyarrow Table, a polars or pandas DataFrame, a DuckDB relation, a dataset of Hugging Face's. With
        tokens="features" each is a set or vector of your own: a list of names, a dict of weights, or a list of pairs of a name
        and its weight. Names are str or int, and 7 is the name "7".
    text_field: the column of a table that has the texts, where it has several.
    near: "containment" lets a text go if `threshold` of its shingles stand in a kept one that has as many or more; larger texts
        come first.
    weights: "tf" counts a shingle as often as it occurs, "idf" that times its inverse document frequency, by the IdfTable that
        `idf` gives, rounded to whole units of weight_unit, 1/256 to 2; 1 unless it is named. A resemblance changes by at most
        weight_unit / the mean weight of the shingles of both texts. Texts are cut as those of the table. For features "tf" is
        the weight that the vector says, and "idf" that times its inverse document frequency, both in units; "distinct" is the
        set of features whose weight is above 0.
    keep: which texts come first: the first, the longest by words, the one with the largest or smallest number,
        ("max", numbers) or ("min", numbers), the one whose key has the smallest hash or is the smallest itself,
        ("key-hash", keys) or ("smallest-key", keys). Of equal numbers the first comes first.
    against: texts that were kept before. They come before all of `texts`, and stay. A text goes for an equal one first.
    inside: a value for each text, such as its source; texts are compared only inside a value, so that each keeps its survivor.
    nulls: what becomes of texts that are None: an error, or they are kept, each near nothing, or dropped.
    clusters: "components" keeps one text of each connected component of near texts, and `max_cluster` cuts larger ones.
        It is refused where a shingle is in too many texts to compare them all, unless `max_bucket` is given.
    pairs: "all" lists all near pairs beside that, unless a shingle is in more than `max_bucket` texts (10,000 if it is None):
        Dedup.capped_shingles.
    max_work: ends the work with an error after this number of comparisons; each text is compared with kept texts alone.
    words, seed, tokens, normal_form, fold: how texts are cut into shingles, as in Params.
    without_boilerplate: spans that more than this number of texts share, those of `against` too, do not count: menus, footers,
        licences. It should be larger than any family of copies. boilerplate_words: words of a span, 10 unless it is named.
    memory: what the work takes beside texts and pairs, which are held, in bytes; 65,536 or more.
    progress: True for a bar, or a function of the stage, how much of it is done, and how much there is. Ctrl-C, and an error
        that it raises, end the call.

    `threshold` is 0.05 to 1. What is out of range raises InvalidError, which names the argument."""

def passages(
    texts: _Texts | Table,
    min_words: int = 50,
    *,
    within: bool = False,
    exact: Literal["tokens", "bytes"] = "tokens",
    keep: Literal["first", "longest"]
    | tuple[Literal["max", "min"], _Numbers]
    | tuple[Literal["key-hash", "smallest-key"], _Keys]
    | None = None,
    memory: int = 1_073_741_824,
    text_field: str | None = None,
    progress: _Progress = None,
) -> list[tuple[int, int, int, int, int, int]]:
    """Runs of `min_words` words or more, 1 to 65,535, that stand in an earlier text, or, with `within`, earlier in the same.

    A position is repeated if the run of `min_words` words from it on came before, and its source is the first occurrence.
    A passage is a run of repeated positions whose sources advance together. Each is a tuple `(text, start, end,
    first_text, first_start, words)`: places in `texts`, and characters in them, so that `texts[text][start:end]` is the
    passage. They come in the order of the texts. `exact="bytes"` compares all that is between the words, too.
    keep: which texts come first, whose passages stay: "first" or "longest", or ("max", numbers), ("min", numbers),
    ("key-hash", keys) or ("smallest-key", keys), a value for each text.
    `memory` is what the work takes beside texts and passages, in bytes; what is more goes to scratch files. `text_field` and
    `progress` are as for dedup."""

def set_threads(threads: int) -> None:
    """How many threads batches take; before the first batch. A process that is forked after it has none of them, and
    batches are refused there."""
