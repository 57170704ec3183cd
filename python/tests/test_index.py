"""Documents that are put into an index are found, even after the program crashed; errors are exceptions with a
remedy."""

import json
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import sys
import threading
import time

import pytest

import twindex

ROSE = "a rose is a rose is a rose"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "pages.twx"


def create(path, **options):
    return twindex.Index.create(path, **{"words": 2, **options})


def test_committed_documents_are_found_and_uncommitted_ones_lost(path):
    with create(path) as index:
        index.put("a", ROSE)
        assert index.put_many(["b", "c"], ["something else altogether", ROSE + " too"]) == 2
    index = twindex.Index.open(path)
    assert len(index) == 3 and "a" in index and "z" not in index
    assert index.keys() == ["a", "b", "c"]
    assert index.near("A rose is a rose is a rose!")[0] == index.near(ROSE)[0]
    assert index.near(ROSE)[0].key == "a" and index.near(ROSE)[0].distance == 0
    index.put("lost", ROSE)
    index.close(discard=True)
    index = twindex.Index.open(path)
    index.delete("b")
    index.commit(b"so far")
    assert twindex.Index.open(path).keys() == ["a", "c"]
    assert twindex.Index.open(path).payload == b"so far"
    assert index.verify() == []


def test_with_block_that_raises_commits_nothing(path):
    create(path).close()
    with pytest.raises(RuntimeError):
        with twindex.Index.open(path) as index:
            index.put("a", ROSE)
            raise RuntimeError("no")
    assert len(twindex.Index.open(path)) == 0


WORDS = [f"word{number}" for number in range(200)]
# 180 of 200 words are common: a resemblance of 180/220, or 0.818.
PAIR = " ".join(WORDS), " ".join(WORDS[:180] + [f"other{number}" for number in range(20)])


@pytest.mark.parametrize("threshold, is_near", [(0.95, False), (0.6, True)])
def test_admit_uses_the_stored_threshold_unless_one_is_given(path, threshold, is_near):
    how = {"words": 1, "minhash": (100, 2), "threshold": threshold}
    params = twindex.Params(**how)
    assert params.near == (threshold, None) and params.fields["threshold"] == str(threshold)
    with twindex.Index.create(path, params) as index:
        assert index.admit("a", PAIR[0]).outcome == "new"
        admitted = index.admit("b", PAIR[1])
        assert (admitted.outcome != "new") == is_near
        index.delete("b")
        other = index.admit("b", PAIR[1], resembling=0.6 if threshold > 0.9 else 0.95)
        assert (other.outcome != "new") != is_near
        # The options of a call do not affect later calls.
        index.delete("b")
        assert (index.admit("b", PAIR[1]).outcome != "new") == is_near
    index = twindex.Index.open(path)
    assert index.params.near == (threshold, None)
    assert [hit.key for hit in index.near(PAIR[1])] == (["b", "a"] if is_near else ["b"])
    assert len(index.pairs(estimated=True)) == is_near
    with pytest.raises(twindex.InvalidError, match="not both"):
        index.admit("c", PAIR[0], within=3, resembling=0.5)


def test_distance_decides_only_if_it_is_given_or_nothing_else_is_kept():
    assert twindex.Params().near == (0.8, None) and "threshold" not in twindex.Params().fields
    assert twindex.Params(sets=True, marks=True, simhash=5).near == (0.8, None)
    assert twindex.Params(near_within=3).text + "near-within=none\n" == twindex.Params().text
    assert twindex.Params.parse(twindex.Params(near_within=3).text).near == (0.8, 3)
    assert twindex.Params(simhash=None).near == (0.8, None) and twindex.Params(minhash=None).near == (None, 3)
    assert twindex.Params(near_within=1).near == (0.8, 1) and twindex.Params(threshold=0.9, near_within=2).near == (0.9, 2)
    with pytest.raises(twindex.InvalidError, match="MinHash"):
        twindex.Params(minhash=None, threshold=0.9)


@pytest.mark.parametrize("how, is_near", [({}, False), ({"near_within": 3}, True), ({"minhash": None, "sets": False}, True)])
def test_texts_that_only_repeat_a_word_are_near_if_a_distance_was_asked_for(path, how, is_near):
    texts = ["la " * 500 + " ".join(f"{name}{number}" for number in range(15)) for name in ("left", "right")]
    with twindex.Index.create(path, twindex.Params(**{"sets": True, "marks": True, **how})) as index:
        assert index.admit("a", texts[0]).outcome == "new"
        assert index.admit("b", texts[1]).outcome == ("duplicate" if is_near else "new")
        index.commit()
        assert len(index.near(texts[0])) == len(index.group("a")) == 1 + is_near
        assert len(index.near(texts[0], within=3)) == 2
        assert len(index.pairs()) == is_near


def test_without_signatures_shared_bands_are_near_only_if_unverified(path):
    with twindex.Index.create(path, twindex.Params(words=1, simhash=None, minhash=(100, 2), signature_bits=0)) as index:
        with pytest.raises(twindex.InvalidError, match="no signatures"):
            index.admit("a", PAIR[0])
        assert index.admit("a", PAIR[0], unverified=True).outcome == "new"
        assert index.admit("b", PAIR[1], unverified=True).near.resemblance is None
    index = twindex.Index.open(path)
    for asked in ({}, {"resembling": 0.99}):
        with pytest.raises(twindex.InvalidError, match="no signatures"):
            index.near(PAIR[1], **asked)
        assert len(index.near(PAIR[1], unverified=True, **asked)) == 2


def test_sets_give_exact_resemblance_and_marked_duplicates_are_ignored(path):
    words = [f"w{number}" for number in range(60)]
    a, b, c = (" ".join(words[start : start + 20]) for start in (0, 2, 4))
    with create(path, words=1, simhash=None, sets=True, marks=True) as index:
        assert index.admit("a", a).outcome == "new"
        hit = index.admit("b", b).near
        assert (hit.key, hit.resemblance) == ("a", 18 / 22)
        assert index.admit("c", c).outcome == "new"  # 18 of 22 with b, which is marked, and 16 of 24 with a
        assert index.admit("faces", "?!").outcome == "new"
        assert index.admit("faces again", "?!").near.key == "faces"
        index.commit()
        assert {hit.key: hit.resemblance for hit in index.near(b)} == {"a": 18 / 22, "b": 1.0, "c": 18 / 22}
        with pytest.raises(twindex.InvalidError, match="0.8 or more"):
            index.near(a, resembling=0.5)
        assert index.near(a, resembling=0.5, estimated=True)[0].key == "a"


def test_admit_returns_the_outcome_and_the_near_document(path):
    with create(path) as index:
        assert index.admit("a", ROSE) == index.admit("z", "nothing like it at all") and index.admit("a", ROSE).near is None
        assert index.admit("a", ROSE).outcome == "updated"
        duplicate = index.admit("b", "A rose is a rose is a rose!")
        assert (duplicate.outcome, duplicate.near.key) == ("duplicate", "a")
        known = index.admit("b", ROSE)
        assert (known.outcome, known.near.key, known.near.distance) == ("known", "a", 0)
        assert repr(known).startswith("Admitted(outcome='known', near=Hit(key='a', distance=0")
        match known:
            case twindex.Admitted("known", near):
                assert near == known.near
        with pytest.raises(ValueError, match="estimate"):
            index.admit("c", ROSE, drop_duplicates=True)
        assert index.admit("c", ROSE, drop_duplicates=True, estimated=True).near.distance == 0
    assert twindex.Index.open(path).keys() == ["a", "b", "z"]


def test_get_returns_stored_data_and_near_follows_its_options(path):
    with create(path) as index:
        index.put("a", ROSE)
        index.put("b", ROSE + " is a flower and a flower is a rose")
    sketch = index.sketch(ROSE)
    record = index.get("a")
    assert record["fingerprint"] == sketch.fingerprint and len(record["signature"]) == 120
    assert index.get("z") is None
    assert [hit.key for hit in index.near(sketch, within=0)] == ["a"]
    assert [hit.key for hit in index.near(sketch, resembling=1.0)] == ["a"]
    assert {hit.key for hit in index.near(sketch, within=10)} <= {"a", "b"}
    assert index.same_features(ROSE)[0] == ("a", 20)
    assert [[hit.key for hit in hits] for hits in index.near_many([ROSE, "nothing like it"], within=0)] == [["a"], []]
    with pytest.raises(twindex.InvalidError, match="not both"):
        index.near(sketch, within=1, resembling=0.5)


def test_index_pairs_equal_brute_force(path):
    words = [" ".join(f"w{(n // 3 * 31 + word * word) % 1009}" for word in range(40)) for n in range(60)]
    texts = [some + " x" * (n % 3) for n, some in enumerate(words)]
    with create(path) as index:
        index.put_many([f"{n:03}" for n in range(60)], texts)
    pa = pytest.importorskip("pyarrow")
    sketches = index_sketches(index, texts)
    for within in (0, 3, 6):
        expected = sorted(
            (f"{a:03}", f"{b:03}", sketches[a].distance(sketches[b]))
            for a in range(60)
            for b in range(a + 1, 60)
            if sketches[a].distance(sketches[b]) <= within
        )
        found = []
        for batch in index.pairs_batches(within=within):
            table = pa.record_batch(batch)
            found += zip(*(table.column(at).to_pylist() for at in range(3)))
        assert [(a.decode(), b.decode(), distance) for a, b, distance in found] == expected
        assert len(expected) > 20 or within == 0
        assert index.pairs(within=within) == expected


def index_sketches(index, texts):
    return twindex.Sketcher(index.params).sketch_many(texts)


def test_keys_may_be_integers(path):
    with create(path, keys="u64") as index:
        index.put_many([5, 2**64 - 1], [ROSE, "other words here"])
    assert index.keys() == [5, 2**64 - 1]
    assert index.near(ROSE)[0].key == 5
    with pytest.raises(TypeError, match=r"keys\[0\]: expected an int"):
        twindex.Index.open(path).put_many(["a"], [ROSE])


def test_segments_built_separately_are_adopted_as_one_index(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pc = pytest.importorskip("pyarrow.compute")
    params = twindex.Params(words=2)
    keys = [f"page-{n}" for n in range(50)]
    texts = [f"{n} one two three four five {n * n} six seven" for n in range(50)]
    rows = pa.record_batch(twindex.Sketcher(params).rows(keys, texts, 3))
    folder = tmp_path / "segments"

    def build(shard, order):
        builder = twindex.ShardBuilder(folder, params)
        some = rows.filter(pc.equal(rows.column("shard"), shard))
        some = some.take(pa.array(order(range(some.num_rows))))
        names = ("key", "fingerprint", "features", "signature", "bottom", "modular")
        builder.add(*[some.column(name) for name in names])
        return builder.finish()

    made = [build(shard, list) for shard in range(3)]
    again = [build(shard, lambda rows: list(reversed(rows))) for shard in range(3)]
    assert made == again, "the same name whatever the order"
    assert sorted(os.listdir(folder)) == sorted(name for name, _, _ in made)
    index = twindex.Index.adopt(tmp_path / "all", params, [folder / name for name, _, _ in made])
    assert sorted(index.segments) == sorted(documents for _, documents, _ in made)
    assert len(index) == 50 and index.verify() == []
    with pytest.raises(twindex.ParamsMismatchError) as refused:
        twindex.Index.adopt(tmp_path / "other", twindex.Params(words=3), [folder / made[0][0]])
    assert refused.value.field.startswith("width") and (refused.value.expected, refused.value.found) == ("3", "2")

    twice = twindex.ShardBuilder(folder, params)
    some = rows.take(pa.array([0, 1, 0]))
    twice.add(*[some.column(name) for name in ("key", "fingerprint", "features", "signature", "bottom", "modular")])
    with pytest.raises(twindex.InvalidError, match="`page-0` is the key of two"):
        twice.finish()
    left = twindex.ShardBuilder(folder, params)
    others = sorted(name for name, _, _ in made[1:])
    assert twindex._twindex.clean(folder, {made[0][0]}) == others, "not what is written"
    left.abandon()
    assert os.listdir(folder) == [made[0][0]]


def test_shards_equal_the_shards_of_the_command():
    pa = pytest.importorskip("pyarrow")
    # The same assignment as in tools/src/shard.rs, where shards are numbered from 1.
    shards = twindex._twindex.shards_of
    assert pa.array(shards(["a", "b", "https://example.org/"], 64)).to_pylist() == [57, 21, 35]
    assert pa.array(shards([0, 1, 1 << 40], 64, "u64")).to_pylist() == [49, 11, 45]
    with pytest.raises(twindex.InvalidError, match="shards: expected 1 to"):
        shards(["a"], 0)


def test_files_of_a_killed_builder_are_removed(tmp_path):
    program = (
        "import os, signal, sys, twindex\n"
        "builder = twindex.ShardBuilder(sys.argv[1], twindex.Params())\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ended = subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False)
    assert ended.returncode == -9
    (left,) = os.listdir(tmp_path)
    assert twindex._twindex.clean(tmp_path, set()) == [left]
    assert os.listdir(tmp_path) == []


def test_errors_have_path_offset_and_remedy_and_can_be_pickled(path):
    with create(path) as index:
        index.put("a", ROSE)
    with pytest.raises(twindex.AlreadyExistsError) as taken:
        create(path)
    assert str(path) in str(taken.value) and taken.value.path == str(path)
    assert taken.value.remedy in str(taken.value)
    with pytest.raises(twindex.NotAnIndexError):
        twindex.Index.open(path.parent)
    twindex.Index.open(path).compact()
    segment = next(file for file in path.iterdir() if file.suffix == ".seg")
    os.chmod(segment, 0o644)
    damaged = bytearray(segment.read_bytes())
    damaged[10] ^= 1
    segment.write_bytes(damaged)
    with pytest.raises(twindex.CorruptError) as damage:
        twindex.Index.open(path)
    error = damage.value
    assert error.path == str(segment) and error.offset is not None and error.expected and error.found and error.remedy
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.__dict__, str(again)) == (type(error), error.__dict__, str(error))


def test_only_one_writer_at_a_time(path):
    first = create(path)
    first.put("a", ROSE)
    with pytest.raises(twindex.LockedError, match=f"in this very process .{os.getpid()}.*close it"):
        twindex.Index.open(path).put("b", ROSE)
    program = "import sys, twindex\ntwindex.Index.open(sys.argv[1]).put('b', 'a rose')\n"
    other = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True)
    assert f"locked by another writer (process {os.getpid()})" in other.stderr
    first.close(discard=True)


def test_params_have_names_and_can_be_compared_and_pickled():
    params = twindex.Params(words=3, seed=7, tokens="characters/14.0.0")
    assert params == twindex.Params.parse(params.text) == pickle.loads(pickle.dumps(params))
    assert params.fields["width"] == "3" and params != twindex.Params(words=3)
    with pytest.raises(TypeError, match="no parameter colour"):
        twindex.Params(colour="red")
    with pytest.raises(twindex.ParamsMismatchError) as differ:
        twindex.Params(words=3).check(twindex.Params(words=4))
    assert (differ.value.field, differ.value.expected, differ.value.found) == ("width", "3", "4")
    small = twindex.Params(minhash=(8, 12), feature_bits=8)
    assert small.fields["feature-bits"] == "8" and "feature-bits" not in twindex.Params().fields
    with pytest.raises(twindex.ParamsMismatchError) as differ:
        twindex.Params(minhash=(8, 12)).check(small)
    assert (differ.value.field, differ.value.expected, differ.value.found) == ("feature-bits", "absent", "8")


def test_right_segment_requires_a_left_segment(path):
    with create(path) as index:
        index.put_many(["a", "b"], [ROSE, ROSE])
    assert index.logged == 2 and len(index.uuid) == 32
    index.compact()
    assert index.logged == 0 and index.segments == [2]
    assert sum(len(batch.__arrow_c_array__()) for batch in index.pairs_batches(3, left=0, right=0)) > 0
    with pytest.raises(twindex.InvalidError, match="right: expected none without left, found 0"):
        index.pairs_batches(3, right=0)


def test_resemblance_pairs_are_counted_or_estimated_on_request(path, tmp_path):
    words = [f"w{number}" for number in range(40)]
    texts = {f"{at:02}": " ".join(words[at : at + 20]) for at in range(20)}
    with create(path, words=1, sets=True) as index:
        index.put_many(list(texts), list(texts.values()))
    # Two texts that are d positions apart share 20 - d of 20 + d words.
    expected = [(a, b, (20 - d) / (20 + d)) for a in texts for b in texts for d in [int(b) - int(a)] if 0 < d <= 2]
    assert index.pairs(resembling=0.8) == expected
    pa = pytest.importorskip("pyarrow")
    rows = [row for batch in index.pairs_batches(resembling=0.8) for row in pa.record_batch(batch).to_pylist()]
    assert sorted((row["a"].decode(), row["b"].decode(), row["resemblance"]) for row in rows) == expected
    with create(tmp_path / "plain.twx", words=1) as plain:
        plain.put_many(list(texts), list(texts.values()))
    with pytest.raises(twindex.InvalidError, match="estimated=True"):
        plain.pairs(resembling=0.8)
    assert len(plain.pairs(resembling=0.8, estimated=True)) > 10


def test_capped_buckets_are_reported(path):
    with create(path, simhash=None, minhash=(1, 1)) as index:
        index.put_many([f"{number:05}" for number in range(10_001)], [ROSE] * 10_001)
    with pytest.warns(UserWarning, match="1 buckets of bands have more than 10000 documents"):
        found = index.pairs(resembling=0.9, estimated=True)
    assert 10_000 <= len(found) < 30_000


def test_segments_from_scratch_folders_are_readable_by_everyone(tmp_path):
    scratch = "/dev/shm"
    if not os.path.isdir(scratch) or os.stat(scratch).st_dev == os.stat(tmp_path).st_dev:
        pytest.skip("no second file system to make a segment on")
    pa = pytest.importorskip("pyarrow")
    params = twindex.Params(words=2)
    rows = pa.record_batch(twindex.Sketcher(params).rows(["a"], [ROSE], 1))
    builder = twindex.ShardBuilder(tmp_path, params, scratch=scratch)
    builder.add(*[rows.column(name) for name in ("key", "fingerprint", "features", "signature", "bottom", "modular")])
    name, _, _ = builder.finish()
    assert os.stat(tmp_path / name).st_mode & 0o777 == 0o444


def test_other_threads_run_while_texts_are_sketched():
    sketcher = twindex.Sketcher(twindex.Params())
    texts = [" ".join(f"w{(n * word) % 5003}" for word in range(2000)) for n in range(400)]
    ticks, done = [], threading.Event()

    def tick():
        while not done.wait(0.001):
            ticks.append(time.perf_counter())

    # A tick during a call shows that the call released the lock. When the next tick occurs depends on the load of the
    # machine, so there are many calls. If calls do not release the lock, no call has a tick.
    def ticked_inside_a_call():
        start = time.perf_counter()
        sketcher.sketch_many(texts)
        tenth = (time.perf_counter() - start) / 10
        return any(start + tenth < tick < start + 9 * tenth for tick in ticks)

    ticking = threading.Thread(target=tick)
    ticking.start()
    try:
        assert any(ticked_inside_a_call() for _ in range(500))
    finally:
        done.set()
        ticking.join()


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in /proc")
def test_pairs_and_forests_are_streamed_and_can_be_stopped_early(path):
    pa = pytest.importorskip("pyarrow")
    count = 420
    with create(path) as index:
        index.put_many([f"{n:03}" for n in range(count)], ["a rose is a rose is a rose is a rose"] * count)
    index.compact()
    pairs = count * (count - 1) // 2

    def rows(batches):
        return [pa.record_batch(batch).num_rows for batch in batches]

    assert rows(index.pairs_batches(within=0)) == [65_536, pairs - 65_536]
    early = index._pairs_of_parts((0, None, False), (0, 0), 1 << 20)
    assert early.capped_buckets is None and pa.record_batch(next(early)).num_rows == 65_536
    assert workers() == 1
    del early
    until(lambda: workers() == 0, "the thread ends")
    whole = index._pairs_of_parts((0, None, False), (0, 0), 1 << 20)
    assert sum(rows(whole)) == pairs and whole.capped_buckets == 0
    assert rows(whole) == [], "it has ended"

    forest = twindex.Forest()
    keys = pa.array([f"{n:06}" for n in range(70_000)])
    forest.add(keys.slice(0, 69_999), keys.slice(1))
    stars = forest.finish()
    first, second = (pa.record_batch(batch) for batch in stars)
    assert (first.num_rows, second.num_rows) == (65_536, 4_463)
    assert set(first["root"].to_pylist()) == {b"000000"}
    with pytest.raises(twindex.InvalidError, match="was finished"):
        forest.finish()


def workers():
    """Returns the number of this process's threads that produce batches."""
    names = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        try:
            names.append((task / "comm").read_text().strip())
        except OSError:
            pass
    return names.count("twindex-batches")


def until(holds, what):
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, what
        time.sleep(0.01)


def test_large_batches_become_segments_and_small_ones_use_the_log(path):
    index = create(path)
    count = 1 << 16
    keys, texts = [f"{n}" for n in range(count)], [f"a{n % 997} b{n % 641} c{n}" for n in range(count)]
    assert index.put_many(keys[:100], texts[:100]) == 100
    index.commit()
    assert (index.logged, len(index.segments)) == (100, 1)
    for start in range(0, count, count // 2):
        index.put_many(keys[start : start + count // 2], texts[start : start + count // 2])
    again = index.admit("another", texts[-1])
    assert again.near.key == keys[-1], "what the batch added before is found"
    index.commit()
    assert (index.logged, len(index)) == (0, count + 1)
    index.put_many(["one more"], ["of few"])
    index.commit()
    assert index.logged == 1, "the next batch is counted from zero"
    with pytest.raises(twindex.InvalidError) as refused:
        index.put_many([*keys[:5000], None, *keys[5001:9000]], texts[:9000])
    assert refused.value.record == 5000
    index.close(discard=True)
    assert twindex.Index.open(path).verify() == []


def test_groups_follow_priorities_and_deletions(path):
    with create(path, priorities=True) as index:
        index.put("copy", ROSE, priority=7)
        index.put("original", ROSE, priority=1)
        index.put("other", "something else altogether")
    assert index.groups() == [("copy", "original", 2), ("original", "original", 2), ("other", "other", 1)]
    assert index.groups(min_size=2) == index.groups()[:2]
    assert index.leader("copy") == "original" and index.group("original") == ["copy", "original"]
    assert index.get("copy")["priority"] == 7 and index.get("other")["priority"] is None
    assert index.leader("missing") is None and index.leader("copy", questions=0) is None
    index = twindex.Index.open(path)
    index.delete("original")
    index.commit()
    assert index.leader("copy") == "copy"
    with create(path.with_name("none.twx")) as index, pytest.raises(ValueError, match="keeps no priorities"):
        index.put("a", ROSE, priority=1)


def parts(seed, count):
    """Returns lists of words. Many are parts of earlier ones, or contain them."""
    drawn = random.Random(seed)
    texts = []
    for _ in range(count):
        words = [f"w{drawn.randrange(60)}" for _ in range(drawn.randrange(2, 20))]
        if texts and drawn.random() < 0.6:
            other = drawn.choice(texts)
            words = words[:3] + other[drawn.randrange(len(other)) // 2 :]
        texts.append(words)
    return texts


def part_in(one, other, share):
    """Returns the share of one set in another that is at least as large; None if it is below `share`."""
    part = len(one & other) / len(one)
    return part if len(other) >= len(one) and part >= share else None


def test_containment_queries_find_containing_and_contained_documents(path):
    texts = parts(1, 90)
    stored, asked = texts[:60], texts[60:]
    with create(path, words=1, minhash=(20, 6), simhash=None, sets=True) as index:
        index.put_many([f"d{at:02}" for at in range(60)], [" ".join(words) for words in stored])
    found = index.near_many([" ".join(words) for words in asked], containment=0.75)
    assert sum(map(len, found)) > 40
    for words, hits in zip(asked, found):
        wanted = {}
        for at, other in enumerate(stored):
            one, two = set(words), set(other)
            if part_in(one, two, 0.75) is not None or part_in(two, one, 0.75) is not None:
                both = len(one & two)
                wanted[f"d{at:02}"] = (both / len(one | two), both / len(one), both / len(two))
        assert {hit.key: (hit.resemblance, hit.query_in_hit, hit.hit_in_query) for hit in hits} == wanted
        order = [(-max(hit.query_in_hit, hit.hit_in_query), hit.key) for hit in hits]
        assert order == sorted(order)
        assert index.near(" ".join(words), containment=0.75) == hits
        assert index.near(" ".join(words), limit=1, containment=0.75) == hits[:1]
    assert pickle.loads(pickle.dumps(found)) == found
    for name, value in (("within", 3), ("resembling", 0.8), ("unverified", True), ("estimated", True)):
        for ask in (
            lambda **options: index.near(ROSE, **options),
            lambda **options: index.near_many([ROSE], **options),
            lambda **options: index.query(["q"], [ROSE], **options),
        ):
            with pytest.raises(twindex.InvalidError, match=f"^{name} does not go with containment, which is counted on"):
                ask(containment=0.8, **{name: value})
    with pytest.raises(twindex.InvalidError, match="containment: expected 0 to 1, found 1.5"):
        index.near(ROSE, containment=1.5)
    with create(path.with_name("none.twx")) as none:
        with pytest.raises(twindex.InvalidError, match="keeps no sets.*make another index with sets"):
            none.near(ROSE, containment=0.8)


def cover(text, stored, share):
    """Returns the greedy cover of a set by definition: keys, and the shares that each adds."""
    rest, found = set(text), []
    while rest:
        key = min(stored, key=lambda key: (-len(rest & stored[key]), key))
        added = len(rest & stored[key]) / len(text)
        if added < share:
            break
        found.append((key, added))
        rest -= stored[key]
    return found


def test_gather_returns_the_greedy_cover(path):
    pa = pytest.importorskip("pyarrow")
    texts = parts(5, 90)
    stored, asked = {f"d{at:02}": set(words) for at, words in enumerate(texts[:60])}, texts[60:]
    with create(path, words=1, minhash=(20, 6), simhash=None, sets=True) as index:
        index.put_many(list(stored), [" ".join(words) for words in texts[:60]])
    queries = [" ".join(words) for words in asked]
    expected = [cover(set(words), stored, 0.1) for words in asked]
    assert sum(len(one) > 1 for one in expected) > 5
    found = index.near_many(queries, containment=0.1, gather=True)
    assert [[(hit.key, hit.unique_in_query) for hit in hits] for hits in found] == expected
    assert index.near(queries[0], containment=0.1, gather=True) == found[0]
    assert pickle.loads(pickle.dumps(found)) == found
    rows = pa.record_batch(index.query([b"q"] * 30, queries, containment=0.1, gather=True)).to_pylist()
    added = [(key, share, round(share * len(set(words)))) for words, one in zip(asked, expected) for key, share in one]
    assert [(row["key"].decode(), row["unique_in_query"], row["unique"]) for row in rows] == added
    assert index.near(queries[0], containment=0.1)[0].unique_in_query is None
    with pytest.raises(twindex.InvalidError, match="gather goes with containment"):
        index.near(queries[0], gather=True)


def test_query_by_containment_returns_the_columns_of_the_command(path, tmp_path):
    pa = pytest.importorskip("pyarrow")
    texts = [" ".join(words) for words in parts(3, 120)]
    keys = [f"d{at:03}" for at in range(120)]
    with create(path, words=1, minhash=(20, 6), simhash=None, sets=True, signature_bits=0) as index:
        for start in (0, 50):
            index.put_many(keys[start : start + 50], texts[start : start + 50])
            index.commit()
    asked, queries = keys[100:], texts[100:]

    def rows_of(**options):
        rows = pa.record_batch(index.query(asked, queries, containment=0.75, **options)).to_pylist()
        return [{**row, "query": row["query"].decode(), "key": row["key"].decode()} for row in rows]

    rows = rows_of()
    expected = [
        (key, hit.key, None, hit.resemblance, hit.query_in_hit, hit.hit_in_query)
        for key, hits in zip(asked, index.near_many(queries, containment=0.75))
        for hit in hits
    ]
    names = ["query", "key", "distance", "resemblance", "query_in_hit", "hit_in_query"]
    assert [tuple(row[name] for name in names) for row in rows] == expected and len(rows) > 20
    there = dict(zip(keys, texts))
    for row in rows:
        one, two = set(there[row["query"]].split()), set(there[row["key"]].split())
        assert (row["intersection"], row["union"]) == (len(one & two), len(one | two))
    assert any(row["query_in_hit"] < 0.75 for row in rows) and any(row["hit_in_query"] < 0.75 for row in rows)
    assert rows_of(limit=1) == [row for at, row in enumerate(rows) if row["query"] not in {r["query"] for r in rows[:at]}]
    # Without containment, there are four columns.
    assert pa.record_batch(index.query(asked, queries)).schema.names == names[:4]
    with pytest.raises(twindex.InvalidError, match="containment: expected 0 to 1, found -1"):
        index.query(asked, queries, containment=-1)
    with create(path.with_name("none.twx")) as none:
        with pytest.raises(twindex.InvalidError, match="keeps no sets.*make another index with sets"):
            none.query(asked, queries, containment=0.8)
    command = os.environ.get("TWINDEX") or shutil.which("twindex")
    if not command:
        pytest.skip("no command to compare with: name it in TWINDEX")
    with open(tmp_path / "asked.jsonl", "w") as out:
        out.writelines(json.dumps({"id": key, "text": text}) + "\n" for key, text in zip(asked, queries))
    line = [command, "query", path, tmp_path / "asked.jsonl", "--near", "containment:0.75"]
    line += ["--out", tmp_path / "hits.tsv", "-q"]
    subprocess.run(line, check=True)
    names, *lines = (line.split("\t") for line in (tmp_path / "hits.tsv").read_text().splitlines())
    assert names == list(rows[0])
    shown = [[f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values()] for row in rows]
    assert lines == [["-" if value == "None" else value for value in row] for row in shown]


def test_containment_query_of_a_segment_finds_its_documents(path, tmp_path):
    pa = pytest.importorskip("pyarrow")
    params = twindex.Params(words=1, sets=True)
    sketcher, made = twindex.Sketcher(params), []
    for part in (["a", "b"], ["c"]):
        rows = pa.record_batch(sketcher.rows(part, [ROSE] * len(part)))
        builder = twindex.ShardBuilder(tmp_path, params)
        builder.add(*(rows[name] for name in ("key", "fingerprint", "features", "signature", "bottom", "modular", "set")))
        made.append(tmp_path / builder.finish()[0])
    index = twindex.Index.adopt(path, params, made)
    assert index.segments == [2, 1]
    for segment, found in ((0, [b"a", b"b"]), (1, [b"c"]), (None, [b"a", b"b", b"c"])):
        rows = pa.record_batch(index.query(["q"], ["a rose"], containment=0.5, segment=segment))
        assert rows["key"].to_pylist() == found


@pytest.mark.parametrize("drops", [False, True])
def test_admit_with_containment_and_inside_follows_the_definition(path, drops):
    texts = parts(2, 120)
    index = create(path, words=1, minhash=(20, 6), simhash=None, sets=True, marks=True, values="kept")
    there, duplicates, contained = {}, 0, 0
    for at, words in enumerate(texts):
        key, value, one = f"d{at:03}", "ab"[at % 2], set(words)
        deciding = {other: two for other, (two, of) in there.items() if of == value}
        found = index.admit(key, " ".join(words), drops, containment=0.75, inside=value, memory=1 << 20)
        over = {other: part for other, two in deciding.items() if (part := part_in(one, two, 0.75)) is not None}
        if over:
            nearest = min(over, key=lambda other: (-over[other], other))
            assert (found.outcome, found.near.key, found.near.query_in_hit) == ("duplicate", nearest, over[nearest])
            assert found.contained == []
            duplicates += 1
        else:
            under = [(other, part) for other, two in sorted(deciding.items()) if (part := part_in(two, one, 0.75)) is not None]
            assert (found.outcome, found.near, found.contained) == ("new", None, under)
            assert pickle.loads(pickle.dumps(found)) == found
            contained += len(under)
            there[key] = (one, value)
        if at % 50 == 49:
            index.commit()
    assert duplicates > 10 and contained > 2
    # Documents that were put in another way are not compared until they are committed.
    index.put("other", ROSE)
    with pytest.raises(twindex.InvalidError, match="commit them first"):
        index.admit("part", "a rose is", containment=0.75)
    index.commit()
    assert index.admit("part", "a rose is", containment=0.75).near.key == "other"
    index.close(discard=True)


def test_inside_keeps_documents_of_each_value(path):
    index = create(path, sets=True, marks=True, values="kept")
    outcomes = [
        (index.admit(key, ROSE, inside=value).outcome, value) for key, value in [("a", "x"), ("b", "y"), ("c", b"x"), ("d", "y")]
    ]
    assert outcomes == [("new", "x"), ("new", "y"), ("duplicate", b"x"), ("duplicate", "y")]
    assert index.admit("a", "something else altogether", inside="x").outcome == "updated"
    index.commit()
    assert index.get("b")["value"] == b"y"
    with pytest.raises(twindex.InvalidError, match="estimated does not go with containment and inside"):
        index.admit("e", ROSE, inside="x", estimated=True)
    with pytest.raises(twindex.InvalidError, match="inside: expected a str or bytes"):
        index.admit("e", ROSE, inside=7)
    index.close()
    with create(path.with_name("none.twx"), sets=True) as none:
        with pytest.raises(twindex.InvalidError, match="keeps no values"):
            none.admit("e", ROSE, inside="x")
