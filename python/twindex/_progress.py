"""A bar for `progress=True`: that of tqdm where it is installed, which knows notebooks, or a line on standard error."""

import sys


class Bar:
    """Called with a stage, how much of it is done, and how much there is."""

    def __init__(self):
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._tqdm = tqdm
        self._bar, self._stage, self._shown = None, "", ""

    def __call__(self, stage, done, total):
        if self._tqdm is None:
            self._line(stage, done, total)
            return
        if stage != self._stage:
            self._end()
            self._bar, self._stage = self._tqdm(total=total, desc=stage), stage
        self._bar.update(done - self._bar.n)

    def _line(self, stage, done, total):
        shown = f"{stage} {100 * done // max(total, 1)} %"
        if shown == self._shown:
            return
        self._shown = shown
        # A line of its own for each stage where nobody can rewrite it, as in a log.
        if sys.stderr.isatty():
            print(f"\r{shown:40}", end="", file=sys.stderr, flush=True)
        elif stage != self._stage:
            print(stage, file=sys.stderr, flush=True)
        self._stage = stage

    def _end(self):
        if self._bar is not None:
            self._bar.close()

    def __del__(self):
        if self._tqdm is not None:
            self._end()
        elif self._shown and sys.stderr is not None and sys.stderr.isatty():
            print(file=sys.stderr)
