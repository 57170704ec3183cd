"""Compares `passages` with the definition, with offsets in characters of Python strings."""

import random

import pytest

import twindex


def by_definition(texts, t, within):
    first, lines, grams = {}, [], []
    for number, text in enumerate(texts):
        words, at = [], 0
        for word in text.split(" "):
            words.append((word, at, at + len(word)))
            at += len(word) + 1
        runs = []
        folded = [word.lower() for word, _, _ in words]
        grams.append([tuple(folded[position : position + t]) for position in range(len(words) - t + 1)])
        for position, gram in enumerate(grams[-1]):
            source = first.setdefault(gram, (number, position, words[position][1]))
            if source[:2] == (number, position) or (not within and source[0] == number):
                continue
            # A run goes on while the words after the source are the same.
            if runs and runs[-1][0] + runs[-1][2] == position:
                (other, begin, _), count = runs[-1][1:]
                goes_on = grams[other][begin + count : begin + count + 1] == [gram]
            else:
                goes_on = False
            if goes_on:
                runs[-1][2] += 1
            else:
                runs.append([position, source, 1])
        for position, source, count in runs:
            end = words[position + count + t - 2][2]
            lines.append((number, words[position][1], end, source[0], source[2], count + t - 1))
    return lines


@pytest.mark.parametrize("within", [False, True])
def test_passages_equal_the_definition(within):
    chance = random.Random(2)
    source = [f"w\u00f6rt{n * n % 97}" for n in range(200)]
    texts = []
    for _ in range(60):
        words = []
        for _ in range(chance.randrange(4)):
            start = chance.randrange(150)
            words += source[start : start + chance.randrange(1, 50)]
        texts.append(" ".join(word.upper() if chance.random() < 0.1 else word for word in words))
    found = twindex.passages(texts, 7, within=within, memory=1 << 20)
    assert found == by_definition(texts, 7, within)
    assert len(found) > 20


def test_first_text_in_order_keeps_its_passages():
    chance = random.Random(3)
    source = [f"w{n * n % 97}" for n in range(200)]
    texts = []
    for _ in range(60):
        start = chance.randrange(150)
        texts.append(" ".join(source[start : start + chance.randrange(1, 50)]))
    numbers = [number * 37 % 50 for number in range(len(texts))]
    keys = [f"k{number * 7 % 60:02}" for number in range(len(texts))]
    words = [len(text.split()) for text in texts]
    for keep, ranks in [
        ("longest", [-count for count in words]),
        (("max", numbers), [-number for number in numbers]),
        (("min", numbers), numbers),
        (("smallest-key", keys), keys),
    ]:
        order = sorted(range(len(texts)), key=lambda at: (ranks[at], at))
        lines = by_definition([texts[at] for at in order], 7, False)
        expected = [(order[text], start, end, order[first], begin, count) for text, start, end, first, begin, count in lines]
        found = twindex.passages(texts, 7, keep=keep)
        assert found == sorted(expected, key=lambda line: line[0])
        assert len(found) > 20 and found != twindex.passages(texts, 7)
    with pytest.raises(twindex.InvalidError):
        twindex.passages(texts, 7, keep=("max", numbers[1:]))
    with pytest.raises(twindex.InvalidError):
        twindex.passages(texts, 7, keep="max")


def test_invalid_passage_arguments_are_errors():
    with pytest.raises(twindex.InvalidError):
        twindex.passages(["a"], 0)
    with pytest.raises(twindex.InvalidError):
        twindex.passages(["a"], exact="words")
    assert twindex.passages([], 3) == []
