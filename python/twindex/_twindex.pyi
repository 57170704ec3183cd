"""The items that are written in Rust; their types are in the package's stub."""

from . import Admitted as Admitted
from . import Dedup as Dedup
from . import Forest as Forest
from . import Hit as Hit
from . import IdfTable as IdfTable
from . import Index as Index
from . import Params as Params
from . import ShardBuilder as ShardBuilder
from . import Sketch as Sketch
from . import Sketcher as Sketcher
from . import Values as Values
from . import __version__ as __version__
from . import dedup as dedup
from . import passages as passages
from . import set_threads as set_threads
