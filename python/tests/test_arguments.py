"""Every function refuses an argument that is out of range with an error that names it."""

import re

import pytest

import twindex

FEW = ["a b c d e f"]


def refused(name, expected, call):
    with pytest.raises(twindex.InvalidError, match=rf"^{name}: expected {expected}"):
        call()


def test_out_of_range_numbers_are_refused_naming_the_argument(tmp_path):
    with twindex.Index.create(tmp_path / "x.twx", words=2, sets=True, priorities=True) as index:
        index.put("a", FEW[0])
    for words in (-1, 0, 17, 300, 2**99):
        refused("words", f'1 to 16 tokens.*, found "{words}"', lambda: twindex.dedup(FEW, words=words))
        refused("words", "1 to 16", lambda: twindex.Params(words=words))
    for call, name in [
        (lambda: twindex.dedup(FEW, seed=-1), "seed"),
        (lambda: twindex.dedup(FEW, memory=-1), "memory"),
        (lambda: twindex.dedup(FEW, memory=1), "memory"),
        (lambda: twindex.dedup(FEW, max_work=-1), "max_work"),
        (lambda: twindex.dedup(FEW, 1.5), "near"),
        (lambda: twindex.dedup(FEW, float("nan")), "near"),
        (lambda: twindex.dedup(FEW, threshold=1.5), "threshold"),
        (lambda: twindex.dedup(FEW, words=2.5), "words"),
        (lambda: twindex.passages(FEW, 0), "min_words"),
        (lambda: twindex.passages(FEW, 70_000), "min_words"),
        (lambda: twindex.Params(seed=2**64), "seed"),
        (lambda: twindex.Params(minhash=(0, 6)), "bands"),
        (lambda: twindex.Params(minhash=(20, -6)), "rows"),
        (lambda: twindex.Params(simhash=-1), "simhash"),
        (lambda: twindex.Params(threshold=7), "threshold"),
        (lambda: twindex.Params(signature_bits=999), "signature_bits"),
        (lambda: index.near(FEW[0], limit=-1), "limit"),
        (lambda: index.near(FEW[0], within=-1), "within"),
        (lambda: index.near(FEW[0], resembling=-0.1), "resembling"),
        (lambda: index.near_many(FEW, limit=-1), "limit"),
        (lambda: index.query(FEW, FEW, segment=-1), "segment"),
        (lambda: index.admit("b", FEW[0], resembling=2), "resembling"),
        (lambda: twindex.Index.open(index.path).put("b", FEW[0], priority=-1), "priority"),
        (lambda: index.pairs(within=513), "within"),
        (lambda: index.pairs(resembling=2), "resembling"),
        (lambda: index.pairs_batches(left=-1), "left"),
        (lambda: index.groups(min_size=-1), "min_size"),
        (lambda: twindex.Sketcher(twindex.Params()).rows(FEW, FEW, shards=0), "shards"),
        (lambda: twindex.set_threads(-1), "threads"),
        (lambda: twindex.Forest(memory=-1), "memory"),
    ]:
        refused(name, "", call)
    with pytest.raises(TypeError, match="words: expected an integer, found float 2.5"):
        twindex.Params(words=2.5)


def test_listed_parameter_names_are_accepted_and_errors_state_remedies_once(tmp_path):
    with pytest.raises(TypeError, match="no parameter bogus; there are (.*)") as refusal:
        twindex.Params(bogus=3)
    names = re.search("there are (.*)", str(refusal.value)).group(1).split(", ")
    assert len(names) == len(set(names)) > 20 and "tokens" in names and "fold" in names
    known = twindex.Params().fields
    for name in names:
        # Each name is accepted with its default value, if it has one.
        value = known.get(name.replace("_", "-"))
        if name in ("words", "width", "simhash", "minhash", "keys", "key", "weights", "sets", "marks", "priorities", "near_within"):
            continue
        if value is not None and not value.isdecimal():
            twindex.Params(**{name: value})
    twindex.Index.create(tmp_path / "there.twx").close()
    with pytest.raises(twindex.AlreadyExistsError) as there:
        twindex.Index.create(tmp_path / "there.twx")
    assert str(there.value).count("open") == 1
    with pytest.raises(twindex.InvalidError) as invalid:
        twindex.dedup(FEW, words=0)
    assert invalid.value.remedy is None and "(" not in str(invalid.value)


def test_tokens_are_accepted_without_version_and_get_default_width():
    named = twindex.Params(tokens="characters")
    assert named.fields["tokens"].startswith("characters/") and named.fields["width"] == "9"
    assert named == twindex.Params(tokens=named.fields["tokens"], words=9)
    assert twindex.Params(tokens="sentences").fields["width"] == "1" and twindex.Params().fields["width"] == "5"
    both = twindex.Params(normal_form="nfkc", fold="invisible+marks").fields
    assert both["normal-form"].startswith("nfkc/") and both["fold"].startswith("invisible+marks/")
    for name, value, expected in [
        ("tokens", "chars", "one of words, .*characters"),
        ("normal_form", "nfd", "none or nfkc"),
        ("fold", "case", "marks, invisible"),
    ]:
        refused(name, expected, lambda: twindex.Params(**{name: value}))
