"""A closed writer accepts no documents, and uncommitted documents are not lost silently."""

import gc
import subprocess
import sys
import warnings

import pytest

import twindex

ROSE = "a rose is a rose is a rose"


def test_closed_index_refuses_documents_but_can_be_read(tmp_path):
    path = tmp_path / "pages.twx"
    with twindex.Index.create(path, words=2) as index:
        index.put("a", ROSE)
    for call in (
        lambda: index.put("b", ROSE),
        lambda: index.put_many(["b"], [ROSE]),
        lambda: index.delete("a"),
        lambda: index.admit("b", ROSE),
        lambda: index.commit(),
    ):
        with pytest.raises(twindex.InvalidError, match="this index was closed.*open it again"):
            call()
    assert index.keys() == ["a"] and index.near(ROSE)[0].key == "a" and index.verify() == []
    index.close()
    # Calls that need the lock only for a moment release it.
    index.compact()
    index.gc()
    with twindex.Index.open(path) as other:
        other.put("b", ROSE)
    assert index.refresh() and index.keys() == ["a", "b"]


def test_lost_uncommitted_documents_cause_a_warning(tmp_path):
    path = tmp_path / "pages.twx"
    index = twindex.Index.create(path, words=2)
    index.put_many(["a", "b"], [ROSE, ROSE])
    index.delete("a")
    with pytest.warns(UserWarning, match=r"pages.twx: 3 documents .* not committed.*commit\(\)"):
        index.close()
    index = twindex.Index.open(path)
    index.put("a", ROSE)
    with pytest.warns(UserWarning, match="1 documents that were put or deleted were not committed"):
        del index
        gc.collect()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        index = twindex.Index.open(path)
        index.put("a", ROSE)
        index.close(discard=True)
        index = twindex.Index.open(path)
        index.put("a", ROSE)
        index.commit()
        index.close()
        del index
        with pytest.raises(RuntimeError):
            with twindex.Index.open(path) as index:
                index.put("b", ROSE)
                raise RuntimeError("said by itself")
        del index
        gc.collect()
    assert twindex.Index.open(path).keys() == ["a"]


# A separate program, because the test process has threads that a fork would not have.
FORKED = """
import multiprocessing, sys
import twindex

ROSE = "a rose is a rose is a rose"
path = sys.argv[1]


def use(index, pipe):
    said = []
    for call in (lambda: index.put("child", ROSE), lambda: index.delete("a"), lambda: index.commit()):
        try:
            call()
            said.append("done")
        except twindex.InvalidError as error:
            said.append("refused" if "was opened by process" in str(error) else str(error))
    said.append(str(index.keys()))
    index.close(discard=True)
    pipe.send(said)


def write(path, pipe):
    try:
        with twindex.Index.open(path) as index:
            index.put("other", ROSE)
        pipe.send("written")
    except twindex.LockedError:
        pipe.send("locked")


def run(method, target, argument):
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    process = context.Process(target=target, args=(argument, there))
    process.start()
    there.close()
    said = here.recv()
    process.join()
    return said


if __name__ == "__main__":
    index = twindex.Index.create(path, words=2)
    index.put("a", ROSE)
    index.commit()
    index.put("b", ROSE)
    print(run("fork", use, index))
    print(run("fork", write, path), run("spawn", write, path))
    index.commit()
    index.put("c", ROSE)
    index.commit()
    index.close()
    print(run("spawn", write, path))
    print(twindex.Index.open(path).keys())
"""


def test_multiprocessing_child_cannot_write_and_parent_loses_nothing(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(FORKED)
    ended = subprocess.run(
        [sys.executable, program, tmp_path / "pages.twx"], capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "['refused', 'refused', 'refused', \"['a']\"]",
        "locked locked",
        "written",
        "['a', 'b', 'c', 'other']",
    ]


def test_empty_index_is_truthy(tmp_path):
    index = twindex.Index.create(tmp_path / "pages.twx")
    assert index and len(index) == 0
