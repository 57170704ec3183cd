"""Types of twindex. Sequences of texts or keys may be lists, or Arrow arrays of any library, which are not copied."""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from types import TracebackType
from typing import Any, Generic, Literal, Protocol, SupportsIndex, TypedDict, TypeVar, overload

from typing_extensions import Buffer, Unpack

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
from ._containers import Mask as _Mask
from ._pairs import Pairs as _Pairs
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
    """An array of any Arrow library."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...

class ArrowStream(Protocol):
    """A stream of Arrow arrays, for example a chunked array."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class RecordBatch(ArrowArray, Protocol):
    """A record batch that any Arrow library accepts, for example `pyarrow.record_batch(batch)`."""

class _Frame(Protocol):
    """A table whose columns are indexed by name, such as a DataFrame."""

    def __getitem__(self, name: Any, /) -> Any: ...

class _Scanner(Protocol):
    """A dataset or a scanner of pyarrow."""

    def to_table(self) -> Any: ...

class _File(Protocol):
    """A file of columns, such as a ParquetFile of pyarrow."""

    def read(self) -> Any: ...

Table = _Frame | _Scanner | _File | Iterable[Mapping[str, Any] | RecordBatch]

_Path = str | PathLike[str]
# A set of features, or a vector of weighted features, for parameters with tokens="features".
_Feature = str | int
_Features = Sequence[_Feature] | Sequence[Sequence[_Feature | float]] | dict[str, float] | dict[int, float]
_Text = str | bytes | _Features
_Key = str | bytes | int
_Texts = Iterable[_Text | None] | ArrowArray | ArrowStream
# A sketch, or the bytes of a fingerprint for an index with codes; of many fingerprints, bytes or a matrix of uint8.
_Document = _Text | Sketch | Buffer
_Documents = _Texts | Buffer
_Numbers = Iterable[int | float] | ArrowArray | ArrowStream
_Keys = Iterable[_Key | None] | ArrowArray | ArrowStream
_Rule = (
    str
    | tuple[Literal["max", "min"], _Numbers]
    | tuple[Literal["earliest"], _Numbers | Iterable[str | datetime.datetime]]
    | tuple[Literal["key-hash", "smallest-key"], _Keys]
)
_Progress = bool | Callable[[str, int, int], object] | None
# The value of a setting; None is its default.
_Setting = str | int | float | None

# From here on written by python/tests/test_settings.py.

class _TextSettings(TypedDict, total=False):
    tokens: _Setting
    words: _Setting
    normal_form: Literal["none", "nfkc"] | None
    fold: _Setting
    stop_words: _Setting
    stemming: _Setting
    shingle_hash: _Setting
    seed: _Setting

class _PassagesSettings(TypedDict, total=False):
    tokens: _Setting
    normal_form: Literal["none", "nfkc"] | None
    fold: _Setting
    stop_words: _Setting
    stemming: _Setting
    seed: _Setting
    memory: _Setting

class _DedupSettings(TypedDict, total=False):
    threshold: float | str | None
    weights: Literal["distinct", "tf", "idf"] | None
    weight_unit: _Setting
    without_boilerplate: _Setting
    max_work: _Setting
    tokens: _Setting
    words: _Setting
    normal_form: Literal["none", "nfkc"] | None
    fold: _Setting
    stop_words: _Setting
    stemming: _Setting
    shingle_hash: _Setting
    seed: _Setting
    memory: _Setting

# The end of what it writes.

class Params:
    """What an index keeps, and how texts are sketched. Fixed when the index is created."""

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
        codes: int | None = None,
        simhash_bits: int = 64,
        sets: bool = False,
        marks: bool = False,
        priorities: bool = False,
        minhash_weights: Literal["distinct", "frequencies", "idf"] = "distinct",
        weight_unit: float | None = None,
        family: str | None = None,
        idf: IdfTable | None = None,
        **fields: object,
    ) -> None:
        """words: number of tokens in a shingle, 1 to 16; by default 5 words, 9 characters or 1 sentence.
        tokens: what shingles are runs of: "words", "unicode-words", "word-characters", "characters", "sentences",
            "words-symbols" or "raw". With "features", documents are not texts but sets or vectors of features, as in
            dedup.
        normal_form: "none" or "nfkc".
        fold: characters that are ignored, "marks", "invisible" or "invisible+marks".
        simhash: the Hamming radius that the index is optimized for; None for no fingerprints.
        simhash_bits: number of bits of a simhash: 64, 128, 192, 256, 384 or 512. With more than 64, the index keeps
            neither tables nor minima; give near_within. Queries compare all simhashes.
        minhash: the numbers of bands and rows; None for no minima.
        feature_bits: number of bits kept of each feature; 8 for features of one byte.
        threshold: smallest resemblance of near documents, by default 0.8 with minhash.
        near_within: largest distance of documents that are near whatever their resemblance. By default, the distance
            is not considered; with minhash=None it is the radius of simhash.
        codes: documents are not texts but fingerprints of this number of bits: 64, 128, 192, 256, 384 or 512, such as
            hashes of images. They are given as bytes, the highest bits first, and near within `near_within` bits.
            Queries compare all of them, so they find all, and any `within` is allowed.
        sets: keep the shingle hashes of each document, so that resemblance is counted exactly and no near document
            is missed. Without sets, resemblance is estimated. With suffixes="kept", the index also lists all hashes,
            which `near` looks up for containment, instead of reading all sets.
        marks: let `admit` mark the duplicates that it adds, and compare later documents only with unmarked ones.
            A mark counts only while a live unmarked document is near.
        priorities: let documents have priorities, by which `groups` chooses leaders.
        weights: the weight of a shingle in a simhash: "occurrences", "distinct", or "idf", the number of occurrences
            multiplied by the inverse document frequency.
        minhash_weights: the weight of a shingle in minima and sets: "distinct", the same for each; "frequencies",
            the number of occurrences; or "idf", that number multiplied by the inverse document frequency.
        idf: the IdfTable of these weights, whose texts must have been tokenized in the same way.
        weight_unit: round minhash_weights to multiples of this unit, 1/256 to 2, so that sets can count them.
            Required for "idf", unless family="darts".
        family: the family of hash functions for minima, by default "one-permutation-filled".

        Any other name in `fields` can be given as an option, with _ for -."""

    @property
    def near(self) -> tuple[float | None, int | None]:
        """The smallest resemblance and the largest distance of near documents. None if resemblance or distance is not
        used."""

    @classmethod
    def parse(cls, text: str, idf: IdfTable | None = None) -> Params:
        """Parses parameters. idf: the IDF table that they refer to, if they refer to one."""

    @property
    def idf(self) -> IdfTable | None:
        """The IDF table that was given; None if there is none."""

    @property
    def text(self) -> str:
        """The parameters as lines, as stored in files. Equal parameters have equal lines."""

    @property
    def fields(self) -> dict[str, str]:
        """The lines by name."""

    @property
    def keys(self) -> Literal["bytes", "u64"]:
        """The type of the keys."""

    def check(self, given: Params) -> None:
        """Raises ParamsMismatchError, which names the field, unless both parameters are equal."""

    def __hash__(self) -> int: ...
    def __eq__(self, other: object) -> bool: ...

class IdfTable:
    """The number of documents of a collection that contain each shingle. Shingles are weighted by it: rare shingles
    weigh more.

    A table is created by `of`, or by the command `twindex idf`, and does not change. `Params`, `Index.create` and
    `dedup` accept it as `idf`."""

    @staticmethod
    def open(path: _Path) -> IdfTable:
        """Reads a table from a file."""

    @staticmethod
    def of(
        texts: _Texts | Table,
        *,
        text_field: str | None = None,
        min_df: int = 2,
        max_entries: int = 1_000_000,
        progress: _Progress = None,
        **settings: Unpack[_TextSettings],
    ) -> IdfTable:
        """Creates a table by counting texts. Omits shingles that are in fewer than `min_df` texts, and all but the
        `max_entries` most frequent of the others. An omitted shingle has the weight of the rarest shingle that was
        omitted. progress: as for dedup. All other keywords say how texts are split into shingles, as for dedup: words,
        tokens, normal_form, fold, stop_words, stemming, shingle_hash, seed."""

    def save(self, path: _Path, replace: bool = False) -> None:
        """Writes the table to a file, which appears only when it is complete. An existing file is an error, unless
        `replace` is true."""

    @property
    def digest(self) -> str:
        """Identifies the table: two tables with the same digest give the same weights."""

    @property
    def documents(self) -> int:
        """The number of counted texts, without texts that have no shingles."""

    def weight(self, shingle: str) -> float:
        """Returns the weight of a shingle, given as a text that consists of it, or of a feature, given by its name: 1 +
        log2((documents + 1) / (frequency + 1)), rounded down to a multiple of 1/256."""

    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...

class Sketch:
    """The sketch of one text: its fingerprint, minima and features."""

    @property
    def is_empty(self) -> bool:
        """True for a text without words."""

    @property
    def fingerprint(self) -> int | None:
        """The simhash; None if the parameters keep none, or the text has no words."""

    @property
    def signature(self) -> tuple[int, ...]:
        """The minima of the shingle hashes, `rows` for each band; empty if the parameters keep none."""

    @property
    def features(self) -> tuple[int, ...]:
        """A hash of the minima of each band; empty if the parameters keep no bands."""

    def resemblance(self, other: Sketch) -> float:
        """Returns the resemblance (Jaccard) of the two documents, estimated from the minima."""

    def distance(self, other: Sketch) -> int:
        """Returns the number of bits in which the fingerprints differ."""

class Sketcher:
    """Computes sketches of texts. May be shared by threads."""

    def __init__(self, params: Params) -> None: ...
    @property
    def params(self) -> Params:
        """The parameters given at creation."""

    def sketch(self, text: _Text) -> Sketch:
        """Returns the sketch of one text."""

    def sketch_many(self, texts: _Texts) -> list[Sketch]:
        """Returns the sketches of many texts, computed on all cores."""

    def rows(self, keys: _Keys, texts: _Texts, shards: int = 1) -> RecordBatch:
        """Returns the columns that a ShardBuilder needs: key, shard (from 0, by a hash of the key), fingerprint,
        features, signature, bottom, modular, set. Sets are null if the parameters keep none."""

class Hit:
    """A near document found by a query."""

    @property
    def key(self) -> str | bytes | int:
        """The key of the document."""

    @property
    def distance(self) -> int | None:
        """The number of bits in which the fingerprints differ; None if distance was not requested."""

    @property
    def resemblance(self) -> float | None:
        """The resemblance of both documents; None if it was not requested."""

    @property
    def query_in_hit(self) -> float | None:
        """The share of the query document that this one contains: counted exactly if requested, otherwise estimated
        from the index's samples; None if neither is possible."""

    @property
    def hit_in_query(self) -> float | None:
        """The share of this document that the query document contains; computed as `query_in_hit`."""

    @property
    def unique_in_query(self) -> float | None:
        """The share of the query document that this one adds to a cover; None without `gather`."""

class Admitted:
    """The result of `admit`, which compares a document with the index and adds it."""

    __match_args__ = ("outcome", "near")

    @property
    def outcome(self) -> Literal["new", "updated", "known", "duplicate", "expired"]:
        """"new": no document is near it, and it was added. "updated": its key existed, and no other document is near;
        the old document was replaced. "known": its key existed, and another document is near; the old document was
        replaced. "duplicate": another document is near; it was added unless duplicates are dropped. "expired": its
        stamp is too old, and nothing was added."""

    @property
    def near(self) -> Hit | None:
        """The nearest other document if the outcome is "known" or "duplicate"; None otherwise."""

    @property
    def contained(self) -> list[tuple[str | bytes | int, float]]:
        """If containment was requested, the keys of earlier documents that this one contains, each with the share that
        is contained."""

class Index:
    """A directory that maps keys of documents to fingerprints and features. One process at a time may write, and any
    number may read. A `with` block commits the documents put in it when it ends, and discards them if it raises an
    exception."""

    @staticmethod
    def open(path: _Path) -> Index:
        """Opens an existing index. Never creates one."""

    @staticmethod
    def create(path: _Path, params: Params | None = None, **options: Any) -> Index:
        """Creates an index. Never overwrites an existing one. The options are those of Params."""

    @staticmethod
    def adopt(path: _Path, params: Params, segments: Sequence[_Path]) -> Index:
        """Creates an index from segments made by ShardBuilders. No key may be in two segments."""

    @property
    def path(self) -> str:
        """The directory of the index."""

    @property
    def params(self) -> Params:
        """The parameters given at creation."""

    @property
    def generation(self) -> int:
        """The number of the last commit."""

    @property
    def uuid(self) -> str:
        """A random identifier that was chosen when the index was created."""

    @property
    def segments(self) -> list[int]:
        """The number of documents in each segment, and last, if there are any, the number of documents in the log."""

    @property
    def logged(self) -> int:
        """The number of committed documents that are not in a segment yet."""

    @property
    def payload(self) -> bytes | None:
        """The payload of the last commit that has a payload."""

    def sketch(self, text: _Text) -> Sketch:
        """Returns the sketch of one text, computed with the index's parameters."""

    def put(self, key: _Key, document: _Document, priority: int | None = None) -> None:
        """Adds a document, or replaces the document with the same key. priority: the document with the smallest
        priority leads its group. In an index with codes, a document is a fingerprint: bytes, or a vector of uint8."""

    def put_many(self, keys: _Keys, texts: _Documents, progress: _Progress = None) -> int:
        """Adds many documents, sketched on all cores, and returns their number. progress: as for dedup. Ctrl-C ends the
        call; the documents put until then are not committed. In an index with codes, texts are fingerprints: bytes, a
        binary column, or a matrix of uint8 with a row for each, as `numpy.packbits` makes it."""

    def delete(self, key: _Key) -> None:
        """Deletes a document. Has no effect if there is no document with this key."""

    def admit(
        self,
        key: _Key,
        document: _Document,
        drop_duplicates: bool = False,
        within: int | None = None,
        resembling: float | None = None,
        unverified: bool = False,
        estimated: bool = False,
        containment: float | None = None,
        inside: str | bytes | None = None,
        memory: int = 1_073_741_824,
    ) -> Admitted:
        """Looks up a document and adds it, as one step. Documents are near by `within` or `resembling` if given,
        otherwise by the near relation in the index's parameters. If the index keeps sets, resemblance is counted
        exactly unless `estimated` is true; otherwise it is estimated from signatures. An index without both raises
        `InvalidError`, unless `unverified` is true, which treats all documents that share a band as near. A
        duplicate is also added, with a mark if the index keeps marks, unless `drop_duplicates` is true.

        containment: the document is a duplicate if at least this share of it is contained in a document that is at
            least as large; `contained` of the result lists earlier documents that this one contains. This needs the
            sets of all documents, which are read at the first call into `memory` bytes: about 5 KB for a text of 300
            words. If documents are put in other ways in between, the index is read again.
        inside: a value, such as the source. The document is compared only with documents of the same value, which
            the index keeps (`Params(values="kept")`). Both options need an index with sets."""

    def commit(self, payload: bytes | None = None) -> int:
        """Makes all changes durable, and returns the number of the commit. payload: up to 64 KiB of data to store with
        the commit."""

    def close(self, discard: bool = False) -> None:
        """Releases the lock for other writers. No more documents can be put. Uncommitted changes are lost, with a
        warning unless `discard` is true. Committed documents can still be read."""

    def refresh(self) -> bool:
        """Makes the commits of other processes visible. Returns True if there were any."""

    def get(self, key: _Key) -> dict[str, Any] | None:
        """Returns the stored data of a document: fingerprint (bytes if the index has codes), signature, value, stamp
        and priority; None if the key does not exist."""

    def leader(self, key: _Key, questions: int | None = None) -> str | bytes | int | None:
        """Returns the key of the leader of this document's group, among all committed documents. The leader is the
        first near document, ordered by priority and hash of the key, that is itself a leader. None if more than
        `questions` queries for near documents would be needed, or if there is no document with this key."""

    def group(self, key: _Key, questions: int | None = None) -> list[str | bytes | int] | None:
        """Returns the keys of all documents that have the same leader, in order; None as for `leader`."""

    def groups(
        self, min_size: int = 1, memory: int = 1_073_741_824
    ) -> list[tuple[str | bytes | int, str | bytes | int, int]]:
        """Returns the key, leader and group size of each document, ordered by key. Only groups of at least min_size
        documents are listed."""

    def keys(self) -> list[str | bytes | int]:
        """Returns all keys in order."""

    def near(
        self,
        document: _Document,
        limit: int | None = None,
        within: int | None = None,
        resembling: float | None = None,
        unverified: bool = False,
        estimated: bool = False,
        containment: float | None = None,
        gather: bool = False,
    ) -> list[Hit]:
        """Returns the documents near this one, nearest first: `within` a Hamming radius, found exactly; `resembling` it
        by at least this value; or, without both, near by the index's parameters. If the index keeps sets,
        resemblance from its threshold on is counted exactly unless `estimated` is true. Otherwise it is estimated
        from signatures, for documents that share a band; an index without both raises `InvalidError`, unless
        `unverified` is true, which treats all documents that share a band as near.

        containment: returns instead the documents that contain at least this share of the document and are at least
            as large, and the documents that are contained in it by at least this share, counted exactly. This needs an
            index with sets. If it has no suffixes, it reads the sets of all documents, so query many documents at
            once.
        gather: returns the greedy cover instead: the document that shares the most shingles with this one, then the
            one that shares the most of the others, until none adds this share of the document."""

    def near_many(
        self,
        texts: _Documents,
        limit: int | None = None,
        within: int | None = None,
        resembling: float | None = None,
        unverified: bool = False,
        estimated: bool = False,
        containment: float | None = None,
        gather: bool = False,
    ) -> list[list[Hit]]:
        """Returns the near documents of many texts, as `near`, on all cores."""

    def query(
        self,
        keys: _Keys,
        texts: _Documents,
        within: int | None = None,
        resembling: float | None = None,
        limit: int | None = None,
        segment: int | None = None,
        unverified: bool = False,
        estimated: bool = False,
        containment: float | None = None,
        gather: bool = False,
    ) -> RecordBatch:
        """Returns the near documents of many texts, as `near`, as columns: query, key, distance, resemblance. With
        `containment` there are also the columns intersection, union, query_in_hit and hit_in_query: the numbers of
        shingles in both and in either, and the share of the text that the document contains, and of the document that
        the text contains; with `gather`, unique and unique_in_query: what the document adds to the cover. segment:
        searches only this segment. All answers are held in memory, so limit the number of texts or the number of
        hits."""

    def same_features(self, document: _Text | Sketch) -> list[tuple[str | bytes | int, int]]:
        """Returns the documents that share features (bands) with this one, with the number of shared features, most
        first. They are not verified."""

    def pairs(
        self, within: int | None = None, resembling: float | None = None, estimated: bool = False
    ) -> list[tuple[str | bytes | int, str | bytes | int, int | float]]:
        """Returns the near pairs as a sorted list of (a, b, score), where a < b and the score is the distance or
        resemblance. Within a radius, all pairs are found. Resemblance is counted with the sets of the index, and no
        pair is missed. If `estimated` is true, which is required for an index without sets, resemblance is estimated
        from the signatures of documents that share a band. For buckets of more than 10,000 documents, and shingles
        that are among the rarest of more than 10,000 documents, only enough pairs to connect these documents are
        returned, with a warning."""

    def pairs_batches(
        self,
        within: int | None = None,
        resembling: float | None = None,
        left: int | None = None,
        right: int | None = None,
        memory: int = 1_073_741_824,
        estimated: bool = False,
    ) -> Iterator[RecordBatch]:
        """Returns the near pairs, as `pairs`, unsorted in batches with the columns a, b, and distance or resemblance.
        left, right: finds pairs within the segment `left`, or across both segments. The join uses about `memory`
        bytes. Batches are produced during the join, and only a few are in memory: each has at most 65,536 pairs and
        about 64 MB in each key column."""

    def gc(self) -> int:
        """Removes files that the index does not need. Returns the number of bytes freed."""

    def compact(self) -> int:
        """Merges all segments into one."""

    def verify(self) -> list[str]:
        """Checks every byte of the index. Returns the problems found; empty if the index is undamaged."""

    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...
    def __contains__(self, key: _Key) -> bool: ...
    def __enter__(self) -> Index: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> Literal[False]: ...

class ShardBuilder:
    """Builds the segment of one shard in a folder, under a name derived from its bytes."""

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
        """Adds rows of Sketcher.rows, with their sets if the parameters keep sets."""

    def add_codes(self, keys: _Keys, codes: _Documents) -> None:
        """Adds fingerprints, for parameters with codes: a binary column, or a matrix of uint8."""

    def finish(self) -> tuple[str, int, int]:
        """Finishes the segment. Returns its name, its number of documents, and its size in bytes."""

    def abandon(self) -> None:
        """Stops, and removes unfinished files."""


class Forest:
    """A spanning forest of pairs of keys. It uses about `memory` bytes of memory, and scratch files for more data."""

    def __init__(self, keys: Literal["bytes", "u64"] = "bytes", memory: int = 268_435_456) -> None: ...
    def add(self, a: _Keys, b: _Keys) -> None:
        """Adds a pair of keys for each row."""

    def finish(self) -> Iterator[RecordBatch]:
        """Returns batches with the columns root and key: each component is a star around its smallest key. Only a small
        number of batches is in memory at a time."""

class Values(Generic[_T]):
    """A column of a result, with one value for each text or for each pair. It supports the operations of a sequence:
    len(), [], slices, for and ==. numpy.asarray and Arrow libraries accept it as an array."""

    def __len__(self) -> int: ...
    @overload
    def __getitem__(self, at: SupportsIndex) -> _T: ...
    @overload
    def __getitem__(self, at: slice) -> list[_T]: ...
    def __iter__(self) -> Iterator[_T]: ...
    def tolist(self) -> list[_T]:
        """Returns a list of all values."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Returns a numpy array of all values. Missing values become NaN, which converts integers to floats. Pairs have
        three types, so they cannot be converted; use an Arrow library for them."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_schema__(self) -> object: ...

class Dedup:
    """The result of `dedup`: columns with one value for each text, in the order of the texts. `len()` is the number of
    texts. Arrow libraries accept a result as a table with the columns mask, group, representative and score."""

    @property
    def kept(self) -> Values[int]:
        """The positions of the texts that are kept."""

    @property
    def mask(self) -> _Mask:
        """Whether each text is kept: a list, which pandas, polars, pyarrow and numpy take as a mask. ~mask is true for
        removed texts."""

    @property
    def groups(self) -> Values[int | None]:
        """The group number of each text. Groups are numbered in the order of their first texts. None if the text was
        dropped as a null."""

    @property
    def representatives(self) -> Values[int | None]:
        """For each text, the position of the text that is kept for it; its own position if it is kept. None if the text
        was removed for one of `against`, or was dropped as a null."""

    @property
    def scores(self) -> Values[float | None]:
        """The resemblance of each text to the text that is kept for it. None if the text was dropped as a null."""

    @property
    def history(self) -> Values[int | None]:
        """For each text, the position in `against` of the text for which it was removed; None if there is none."""

    @property
    def pairs(self) -> Values[tuple[int, int, float]]:
        """Each removed text, the text of `texts` for which it was removed, and their resemblance."""

    @property
    def contained(self) -> Values[tuple[int, int, float]]:
        """With near="containment:J", the texts of `against` that a later, kept text contains: the position in `against`,
        the position of the containing text, and the share of the text of `against` that is contained."""

    @property
    def boilerplate_spans(self) -> int | None:
        """With without_boilerplate, the number of spans that were ignored; None without it."""

    def filter(self, data: Any) -> Any:
        """Returns `data` without its removed rows, as a container of the same kind: data must have the rows of `texts`.
        Of an Arrow scanner, reader or file, returns a table."""

    def show(self) -> _Pairs:
        """Returns up to 12 removed texts beside the texts that are kept for them, from the least to the most similar. A
        notebook draws them with the words that differ marked; elsewhere they are printed as lines."""

    def __len__(self) -> int: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def dedup(
    texts: _Texts | Table,
    near: float | str | None = None,
    *,
    text_field: str | None = None,
    id_field: str | None = None,
    keep: _Rule | list[_Rule] | list[str] | None = None,
    against: _Texts | Table | None = None,
    against_text_field: str | None = None,
    inside: str | _Keys | None = None,
    against_inside: str | _Keys | None = None,
    nulls: Literal["raise", "keep", "drop"] = "raise",
    idf: IdfTable | None = None,
    progress: _Progress = None,
    **settings: Unpack[_DedupSettings],
) -> Dedup:
    """Decides which texts to keep, by the rule of the command `twindex dedup`.

    A text is removed if and only if it is near an earlier kept text, by default with a resemblance of at least 0.8, which is
    counted exactly. So no two kept texts are near each other, and every removed text is near a kept one.

    texts: a list or another iterable of str or bytes; a column of pandas, polars, pyarrow or numpy; or a table: of pandas,
        polars (also a LazyFrame), pyarrow (also a dataset, a scanner or a ParquetFile), DuckDB or Hugging Face (of a
        DatasetDict, its only split), a list of record batches, or dicts. Texts are compared as they are, HTML with its
        tags. With tokens="features" each text is a set or vector of features: a list of names, a dict of weights, or a
        list of pairs of a name and its weight. Names are str or int; 7 is the same as "7". An empty one is near no other.
    near: the setting `near` below; `threshold` is its second name.
    text_field: the column with the texts, if a table has several columns of text: a name, a path into structs or dicts,
        "page.text" or "/page/text", or a list of these, "title,page.text", whose values are joined by line feeds. A column
        with exactly this name takes precedence. A row with some of the texts of a list is taken with those.
    id_field: the column or columns with the keys of a table, named in the same way, for keep="key-hash" and "smallest-key".
        Of texts with equal numbers, that with the smallest key is considered first.
    keep: the order in which texts are considered, so that earlier texts are kept: a rule, or a list of rules, where the
        first rule that distinguishes two texts decides. "first", the input order; "longest", by number of words;
        ("max", numbers), ("min", numbers) or ("earliest", times), the largest or smallest first; "max:COLUMN",
        "min:COLUMN" or "earliest:COLUMN", the same with a column of the table `texts`; "rank:COLUMN=A,B", the values in
        this order; ("key-hash", keys) or ("smallest-key", keys), by the hash of the key or by the key: ints as numbers,
        and keys of id_field by their digits, as the command; "https" or "shortest-url", by the URLs in id_field. Without
        keys, texts with equal numbers are considered in input order.
    against: texts that were kept earlier. They come before all of `texts` and are always kept. A text equal to one of
        them is removed for the equal text first.
    against_text_field: the column with the texts of `against`; by default `text_field`, if `against` is a table.
    inside: a value for each text, such as its source, or the name of a column with the values. Only texts with the same
        value are compared, so one text of each value is kept.
    against_inside: with `against` and `inside`, the value of each text of `against`, or a column of it; by default that of
        `inside`.
    nulls: what to do with texts that are None: "raise" an error, "keep" them, near no other text, or "drop" them.
    idf: the IdfTable of weights="idf". Texts are tokenized as those of the table.
    progress: True for a progress bar, or a function that is called with the stage, the amount of work done, and the
        total. Ctrl-C, and an exception from the function, end the call.

    All other keywords are settings of the command, with the same values, such as words="1+2", memory="512M", or
    without_boilerplate="50:8" for spans of 8 words that more than 50 texts share. Numbers are taken, too, and None is
    the default. A wrong name or value raises InvalidError, which names it.

    - near: Rule for near documents: J, containment:J, within:K or equal. Not within:K: texts in memory are compared by
      shingles; Index.pairs(within=K) compares simhashes. Default: 0.8.
    - weights: Weight of a shingle in the resemblance: distinct, tf or idf. Default: distinct.
    - weight_unit: Round fractional weights to multiples of U, 1/256 to 2. Default: 1.
    - without_boilerplate: Ignore spans of words that more than N documents share. Not @FILE: a list is for files; give
      the number of texts that share a span.
    - max_work: Stop with an error after N comparisons of documents. Default: no limit.
    - tokens: Tokens of a shingle: words, characters and others. Default: words.
    - words: Number of tokens in a shingle, 1 to 16. Default: 5 words, 9 characters, 1 sentence.
    - normal_form: Unicode normal form of the text: none or nfkc.
    - fold: Characters to ignore: marks, invisible, or marks+invisible.
    - stop_words: Words to ignore: the stop words of a language, such as english, or @FILE.
    - stemming: Language of the stemmer, such as english.
    - shingle_hash: 64-bit hash function of shingles: fast, rabin or rabin-karp. Default: fast.
    - seed: Seed of the hash functions. Default: 0.
    - memory: Memory budget; data beyond it goes to scratch files. Default: 1G.

    `dedup` lists no other pairs and forms no connected components: `Index.pairs` lists all near pairs of an index, and
    `Forest` connects pairs."""

def passages(
    texts: _Texts | Table,
    min_words: int = 50,
    *,
    within: bool = False,
    exact: Literal["tokens", "bytes"] = "tokens",
    keep: _Rule | list[_Rule] | list[str] | None = None,
    text_field: str | None = None,
    id_field: str | None = None,
    progress: _Progress = None,
    **settings: Unpack[_PassagesSettings],
) -> list[tuple[int, int, int, int, int, int]]:
    """Returns runs of at least `min_words` words, 1 to 65,535, that occur in an earlier text or, with `within`, earlier in
    the same text.

    A position is repeated if the run of `min_words` words at this position occurs earlier; its source is the first
    occurrence. A passage is a run of repeated positions that goes on while the words after its source are the same. Each
    passage is a tuple `(text, start, end, first_text, first_start, words)` of positions in `texts` and of characters in
    them, so that `texts[text][start:end]` is the passage. Passages are returned in the order of the texts.

    exact: "bytes" also compares the bytes between the words.
    keep: the order in which texts are considered; the passages of the first text are kept; as for dedup.
    text_field, id_field, progress: as for dedup.

    All other keywords are settings of the command, as for dedup.

    - tokens: Tokens of a shingle: words, characters and others. Default: words.
    - normal_form: Unicode normal form of the text: none or nfkc.
    - fold: Characters to ignore: marks, invisible, or marks+invisible.
    - stop_words: Words to ignore: the stop words of a language, such as english, or @FILE.
    - stemming: Language of the stemmer, such as english.
    - seed: Seed of the hash functions. Default: 0.
    - memory: Memory budget; data beyond it goes to scratch files. Default: 1G.
    """

def set_threads(threads: int) -> None:
    """Sets the number of threads for batches. Must be called before the first batch. Each call in a forked process starts
    its own threads."""
