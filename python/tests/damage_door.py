"""Answers queries about damaged indexes through the Python module. tests/alone_allocator/damage_doors.rs makes the indexes,
runs this program, and compares its answers with those of undamaged indexes; its head specifies the lines of input and
output. `test_damage.py` and `scripts/damage --door python` run that test."""

import sys

import twindex

FAILED = object()


def line(mark, text):
    print(mark, " ".join(str(text).split()))


def attempt(mark, function):
    """Returns the result of a call. After an exception, prints its class after `mark` and returns FAILED."""
    try:
        return function()
    except twindex.Error as error:
        if str(error) and type(error) is not twindex.Error:
            line(mark, type(error).__name__)
        else:
            line("!", f"{type(error).__name__}: the message {str(error)!r}")
    except BaseException as error:  # the exception of a panic is not derived from Exception
        line("!", f"{type(error).__name__}: {error}")
    return FAILED


def answer(function):
    found = attempt("-", function)
    if found is not FAILED:
        line("+", found)


def hits(found):
    return f"hits {int(bool(found))} {[(hit.key, hit.distance, hit.resemblance) for hit in found]}"


def answer_queries(index, queries):
    answer(lambda: (len(index), index.generation, index.payload, index.uuid))
    answer(lambda: index.params.text)
    answer(index.keys)
    answer(lambda: index.pairs(estimated=True))
    answer(index.groups)
    texts = []
    for query in queries:
        kind, argument = query.split(" ", 1)
        if kind in ("key", "number"):
            key = int(argument) if kind == "number" else bytes.fromhex(argument)
            answer(lambda: (key in index, index.get(key)))
            answer(lambda: index.leader(key, 100))
        elif kind == "text":
            texts.append(argument)
            answer(lambda: index.sketch(argument).fingerprint)
            answer(lambda: hits(index.near(argument, 10)))
            answer(lambda: hits(index.near(argument, 10, resembling=0.5, unverified=True)))
            answer(lambda: hits(index.near(argument, 10, resembling=0.9, estimated=True)))
            answer(lambda: hits(index.near(argument, 10, within=1)))
            answer(lambda: hits(index.near(argument, containment=0.9)))
            answer(lambda: index.same_features(argument))
        elif kind != "fingerprint":  # the module has no queries for fingerprints
            sys.exit(f"unknown query: {query}")
    answer(lambda: [hits(found) for found in index.near_many(texts, 10)])


def write(index):
    """Writes to the index and closes it. Every call may fail."""
    key = 7 if attempt("w", lambda: index.params.keys) == "u64" else "a new key"
    for text in ("a rose is a rose is a rose", "text number 3"):
        attempt("w", lambda: index.put(key, text))
        attempt("w", lambda: index.admit(key, text, estimated=True))
    attempt("w", index.commit)
    attempt("w", index.close)


def use(path, queries):
    index = attempt("-", lambda: twindex.Index.open(path))
    if index is FAILED:
        return
    answer_queries(index, queries)
    problems = attempt("v -", index.verify)
    if problems is not FAILED:
        line("v", len(problems))
    write(index)
    index = attempt("w", lambda: twindex.Index.open(path))
    if index is not FAILED:
        attempt("w", index.compact)
        attempt("w", index.keys)
        attempt("w", index.close)


for request in sys.stdin:
    path, file = request.rstrip("\n").split("\t")
    with open(file, encoding="utf-8") as queries:
        use(path, queries.read().splitlines())
    print(".", flush=True)
