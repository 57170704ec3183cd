"""Near-duplicate detection: an embedded, crash-safe index of simhash fingerprints and MinHash bands.

>>> import tempfile, twindex
>>> texts = ["one two three four five six", "something else", "one two three four five six"]
>>> twindex.dedup(texts).filter(texts)
['one two three four five six', 'something else']
>>> where = tempfile.mkdtemp() + "/pages.twx"
>>> with twindex.Index.create(where, words=2) as index:      # commits when the block ends
...     index.put("a", "a rose is a rose is a rose")
>>> twindex.Index.open(where).near("A rose is a rose is a rose!")[0].key
'a'

`dedup` compares texts in memory; `Index` is an index on disk; `MinHash` and `Simhash` only compute sketches;
`twindex.spark` runs on a cluster. Texts may be lists, columns or tables of any library; Arrow arrays are not copied.
"""

from . import _errors
from ._errors import *  # noqa: F403 - its __all__ lists the names
from ._sketchers import MinHash, Simhash
from ._twindex import (
    Admitted,
    Dedup,
    Forest,
    Hit,
    IdfTable,
    Index,
    Params,
    ShardBuilder,
    Sketch,
    Sketcher,
    Values,
    __version__,
    dedup,
    passages,
    set_threads,
)

__all__ = [
    *_errors.__all__,
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
