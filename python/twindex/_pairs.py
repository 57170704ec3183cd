"""Pairs of a removed and a kept text, drawn side by side with the words that differ."""

from __future__ import annotations

import difflib
import html
import re
from typing import NamedTuple

# Number of equal words shown beside words that differ.
_BESIDE = 12

_STYLE = (
    ".twx td{vertical-align:top;text-align:left!important;width:50%;white-space:pre-wrap;overflow-wrap:anywhere}"
    ".twx mark{background:#fbd38d;color:#222}"
)


class Pair(NamedTuple):
    """A removed text, and the text that is kept for it."""

    text: int
    other: str
    score: float
    removed: str
    kept: str


class Pairs(list[Pair]):
    """Pairs that a notebook draws side by side, and that are printed as lines elsewhere."""

    def _repr_html_(self) -> str:
        rows = []
        for pair in self:
            left, right = (
                "".join(f"<mark>{html.escape(run)}</mark>" if differs else html.escape(run) for differs, run in side)
                for side in _compared(pair)
            )
            head = f"<th>removed: {pair.text}</th><th>kept: {html.escape(pair.other)}, resemblance {pair.score:.3f}</th>"
            rows.append(f"<tr>{head}</tr><tr><td>{left}</td><td>{right}</td></tr>")
        return f"<style>{_STYLE}</style><table class=twx>{''.join(rows)}</table>"

    def __repr__(self) -> str:
        lines = []
        for pair in self:
            lines.append(f"removed {pair.text}, kept {pair.other}, resemblance {pair.score:.3f}")
            for sign, side in zip("-+", _compared(pair)):
                shown = "".join(f"[{run.strip()}]" + run[len(run.rstrip()) :] if differs else run for differs, run in side)
                lines.append(f"  {sign} " + " ".join(shown.split()))
        return "\n".join(lines)


def _compared(pair: Pair) -> tuple[list[tuple[bool, str]], list[tuple[bool, str]]]:
    """Splits both texts into runs of words, each with whether it differs. Long equal runs are shortened."""
    one, other = (re.findall(r"\s*\S+\s*", text) for text in (pair.removed, pair.kept))
    plain = [[word.strip() for word in words] for words in (one, other)]
    sides: tuple[list[tuple[bool, str]], list[tuple[bool, str]]] = ([], [])
    blocks = difflib.SequenceMatcher(None, *plain, autojunk=False).get_opcodes()
    for at, (what, start, end, other_start, other_end) in enumerate(blocks):
        for side, words in zip(sides, (one[start:end], other[other_start:other_end])):
            if what == "equal" and len(words) > 2 * _BESIDE:
                first = words[:_BESIDE] if at > 0 or len(blocks) == 1 else []
                last = words[-_BESIDE:] if at + 1 < len(blocks) else []
                words = [*first, "\u2026 ", *last]
            side.append((what != "equal", "".join(words)))
    return sides
