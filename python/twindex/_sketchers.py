"""Sketchers for MinHash alone and for simhash alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._twindex import Params, Sketcher

if TYPE_CHECKING:
    from . import Sketch, _Text, _Texts


class MinHash:
    """Computes the `bands` times `rows` minima of a text's shingles, and a feature for each band of `rows` minima.

    >>> minhash = MinHash(words=2)
    >>> minhash.resemblance("a rose is a rose", "a rose is a rose") == 1.0
    True
    """

    def __init__(
        self, bands: int = 20, rows: int = 6, *, words: int | None = None, seed: int = 0, **options: Any
    ) -> None:
        self.params = Params(words=words, seed=seed, simhash=None, minhash=(bands, rows), **options)
        self._sketcher = Sketcher(self.params)

    def sketch(self, text: _Text) -> Sketch:
        """Returns the sketch of one text."""
        return self._sketcher.sketch(text)

    def sketch_many(self, texts: _Texts) -> list[Sketch]:
        """Returns the sketches of many texts in a list or an Arrow array, computed on all cores."""
        return self._sketcher.sketch_many(texts)

    def resemblance(self, a: _Text, b: _Text) -> float:
        """Returns the estimated resemblance (Jaccard) of two texts."""
        return self.sketch(a).resemblance(self.sketch(b))


class Simhash:
    """Computes the simhash of a text, of 64 bits or of `simhash_bits`.

    >>> simhash = Simhash(words=2)
    >>> simhash.distance("a rose is a rose", "A rose is a rose!")
    0
    """

    def __init__(self, *, words: int | None = None, seed: int = 0, **options: Any) -> None:
        self.params = Params(words=words, seed=seed, minhash=None, **options)
        self._sketcher = Sketcher(self.params)

    def fingerprint(self, text: _Text) -> int | None:
        """Returns the fingerprint of one text; None for a text without words."""
        return self._sketcher.sketch(text).fingerprint

    def fingerprints(self, texts: _Texts) -> list[int | None]:
        """Returns the fingerprints of many texts in a list or an Arrow array, computed on all cores."""
        return [sketch.fingerprint for sketch in self._sketcher.sketch_many(texts)]

    def distance(self, a: _Text, b: _Text) -> int:
        """Returns the number of bits in which the fingerprints of two texts differ."""
        return self._sketcher.sketch(a).distance(self._sketcher.sketch(b))
