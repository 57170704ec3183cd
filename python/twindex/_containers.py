"""The containers that hold texts: opens them as columns or tables, and removes rows from them.

A container is recognised by the module of its class, so that no library is imported that the caller does not use.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ._errors import InvalidError

_LIBRARIES = ("pyarrow", "pandas", "polars", "datasets", "duckdb", "numpy")


class Mask(list[bool]):
    """Whether each text is kept: a list, because pandas, polars, pyarrow and numpy all take a list as a mask."""

    def __invert__(self) -> Mask:
        """Returns whether each text is removed."""
        return Mask(not kept for kept in self)

    def __repr__(self) -> str:
        shown = repr(self[:20])
        return shown if len(self) <= 20 else f"{shown[:-1]}, ...] ({len(self)} values)"

    def tolist(self) -> list[bool]:
        """Returns a plain list."""
        return list(self)


def opened(argument: str, given: Any) -> Any:
    """Returns a container as a list, a column or a table, which can be read more than once."""
    if isinstance(given, (str, bytes, os.PathLike)):
        raise TypeError(
            f"{argument}: expected texts, found a single {type(given).__name__}; put a text in a list, and deduplicate "
            "files by the command: twindex dedup FILE -o OUT"
        )
    library = _library(given)
    if library == "datasets" and isinstance(given, Mapping):
        return given[_only_split(argument, given)]
    if library == "pyarrow":
        # A stream; a dataset or a scanner; a file of Parquet or ORC.
        for read in ("read_all", "to_table", "read"):
            if hasattr(given, read):
                return getattr(given, read)()
    if library == "polars" and hasattr(given, "collect"):
        return given.collect()
    if not isinstance(given, (list, tuple)):
        if hasattr(given, "__len__") or (_has_columns(given) and library != "datasets"):
            return given
        if not hasattr(given, "__iter__"):
            raise TypeError(f"{argument}: expected texts, found {type(given).__name__}")
        given = list(given)
    return _concatenated(argument, given) if given and _has_columns(given[0]) else given


def is_table(given: Any) -> bool:
    """Returns whether an opened container has columns with names."""
    return isinstance(given, Mapping) or _has_columns(given) or _is_rows(given)


def columns(given: Any) -> Any:
    """Returns a list of dicts as a dict of columns. Any other table is returned unchanged."""
    if not _is_rows(given):
        return given
    names = dict.fromkeys(name for row in given if row is not None for name in row)
    return {name: [None if row is None else row.get(name) for row in given] for name in names}


def text_column(argument: str, given: Any) -> Any:
    """Returns the only column with strings of a dataset or of a list of dicts. Anything else is returned unchanged."""
    if _is_rows(given):
        given = columns(given)
        names = [name for name in given if any(isinstance(value, (str, bytes)) for value in given[name])]
    elif _library(given) == "datasets" and _has_columns(given):
        names = [name for name, kind in given.features.items() if str(getattr(kind, "dtype", "")).endswith("string")]
    else:
        return given
    if len(names) == 1:
        return given[names[0]]
    there = ", ".join(getattr(given, "column_names", given))
    raise InvalidError(f'{argument}: which of the columns {there}? name it by text_field="..."')


def filtered(data: Any, mask: Mask) -> Any:
    """Returns the rows of `data` that `mask` keeps, in a container of the same kind."""
    library = _library(data)
    if library == "datasets" and isinstance(data, Mapping):
        split = _only_split("data", data)
        return type(data)({split: filtered(data[split], mask)})
    if library == "duckdb":
        return import_module("duckdb").from_arrow(filtered(import_module("pyarrow").table(data), mask))
    if library == "polars" and hasattr(data, "collect"):
        return filtered(data.collect(), mask).lazy()
    if library == "pyarrow" and not hasattr(data, "__len__"):
        table = filtered(opened("data", data), mask)
        return import_module("pyarrow.dataset").dataset(table) if hasattr(data, "get_fragments") else table
    if isinstance(data, Mapping):
        return {name: filtered(values, mask) for name, values in data.items()}
    if not hasattr(data, "__len__"):
        data = list(data)
    parts = data if isinstance(data, (list, tuple)) and data and _has_columns(data[0]) else None
    found = sum(map(len, parts)) if parts else len(data)
    if found != len(mask):
        raise InvalidError(f"data: expected {len(mask)} rows, one for each text, found {found}")
    if library in ("pandas", "numpy"):
        return data[mask]
    if library in ("pyarrow", "polars"):
        return data.filter(mask)
    if library == "datasets" and hasattr(data, "select"):
        return data.select([row for row, kept in enumerate(mask) if kept])
    rest = iter(mask)
    rows = (filtered(part, Mask(itertools.islice(rest, len(part)))) for part in parts) if parts else itertools.compress(data, rest)
    return tuple(rows) if isinstance(data, tuple) else list(rows)


def _library(given: Any) -> str:
    # A class of the user may be derived from one of a library.
    modules = (cls.__module__.partition(".")[0].lstrip("_") for cls in type(given).__mro__)
    return next((module for module in modules if module in _LIBRARIES), "")


def _has_columns(given: Any) -> bool:
    return any(hasattr(given, name) for name in ("column_names", "columns", "schema"))


def _is_rows(given: Any) -> bool:
    return isinstance(given, (list, tuple)) and isinstance(next((row for row in given if row is not None), None), Mapping)


def _only_split(argument: str, splits: Mapping[str, Any]) -> str:
    if len(splits) == 1:
        return next(iter(splits))
    first, *others = splits
    raise InvalidError(
        f'{argument}: which split of {", ".join(splits)}? name it, {argument}["{first}"]'
        + (f', and compare it with another by against=...["{others[0]}"]' if others else "")
    )


def _concatenated(argument: str, parts: Any) -> Any:
    library = _library(parts[0])
    if any(_library(part) != library for part in parts):
        raise TypeError(f"{argument}: expected tables of one library, found several in a list")
    module = import_module(library)
    if library == "pyarrow":
        return module.concat_tables([module.table(part) for part in parts])
    if library == "datasets":
        return module.concatenate_datasets(list(parts))
    return module.concat(list(parts), ignore_index=True) if library == "pandas" else module.concat(list(parts))
