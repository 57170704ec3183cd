"""The bar for `progress=True`: a tqdm bar if tqdm is installed, which supports notebooks, otherwise a line on standard
error."""

import importlib
import sys
from typing import Any


class Bar:
    """A progress callback: is called with a stage, the amount of work done, and the total."""

    def __init__(self) -> None:
        try:
            self._tqdm: Any = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            self._tqdm = None
        self._bar: Any = None
        self._stage, self._shown = "", ""

    def __call__(self, stage: str, done: int, total: int) -> None:
        if self._tqdm is None:
            self._line(stage, done, total)
            return
        if stage != self._stage:
            self._end()
            self._bar, self._stage = self._tqdm(total=total, desc=stage), stage
        self._bar.update(done - self._bar.n)

    def _line(self, stage: str, done: int, total: int) -> None:
        shown = f"{stage} {100 * done // max(total, 1)} %"
        if shown == self._shown:
            return
        self._shown = shown
        # If the output cannot be overwritten, as in a log, prints one line for each stage.
        if sys.stderr.isatty():
            print(f"\r{shown:40}", end="", file=sys.stderr, flush=True)
        elif stage != self._stage:
            print(stage, file=sys.stderr, flush=True)
        self._stage = stage

    def _end(self) -> None:
        if self._bar is not None:
            self._bar.close()

    def __del__(self) -> None:
        if self._tqdm is not None:
            self._end()
        elif self._shown and sys.stderr is not None and sys.stderr.isatty():
            print(file=sys.stderr)
