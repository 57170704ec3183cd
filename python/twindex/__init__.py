"""Near-duplicate detection: an embedded, crash-safe index of simhash fingerprints and MinHash bands.

>>> import tempfile, twindex
>>> where = tempfile.mkdtemp() + "/pages.twx"
>>> with twindex.Index.create(where, words=2) as index:      # commits at its end
...     index.put("a", "a rose is a rose is a rose")
>>> twindex.Index.open(where).near("A rose is a rose is a rose!")[0].key
'a'
>>> twindex.dedup(["one two three four five six", "something else", "one two three four five six"]).kept
[0, 1]

`Index` is the store; `dedup` compares texts in memory; `MinHash` and `Simhash` are sketchers alone; `twindex.spark` does
the same on a cluster. Texts come as lists or as Arrow arrays of any library, without a copy.
"""

from ._errors import (
    AfterCommitError,
    AlreadyExistsError,
    CorruptError,
    Error,
    InvalidError,
    IoError,
    LimitError,
    LockedError,
    NoSpaceError,
    NotAnIndexError,
    ParamsMismatchError,
    PoisonedError,
    UnsupportedError,
)
from ._sketchers import MinHash, Simhash
from ._twindex import Dedup, Forest, Hit, Index, Params, ShardBuilder, Sketch, Sketcher, __version__, dedup, set_threads

__all__ = [
    "AfterCommitError",
    "AlreadyExistsError",
    "CorruptError",
    "Dedup",
    "Error",
    "Forest",
    "Hit",
    "Index",
    "InvalidError",
    "IoError",
    "LimitError",
    "LockedError",
    "MinHash",
    "NoSpaceError",
    "NotAnIndexError",
    "Params",
    "ParamsMismatchError",
    "PoisonedError",
    "ShardBuilder",
    "Simhash",
    "Sketch",
    "Sketcher",
    "UnsupportedError",
    "__version__",
    "dedup",
    "set_threads",
]
