"""Long calls report progress, and Ctrl-C ends them soon."""

import pickle
import signal
import subprocess
import sys
import time

import pytest

import twindex

# Texts that are not near each other but are all compared, and many copies of one long text. Either takes minutes.
SLOW = (
    "import random\n"
    "chance, words = random.Random(1), [f'w{n}' for n in range(200)]\n"
    "texts = [' '.join(chance.choices(words, k=60)) for _ in range(40_000)]\n"
    "many = [' '.join(f'w{n * n % 9973}' for n in range(10_000))] * 100_000\n"
    "keys = [str(n) for n in range(len(many))]\n"
)


@pytest.mark.parametrize(
    "work",
    [
        "twindex.dedup(texts, 0.5, words=1)",
        "twindex.dedup(texts, 'containment:0.5', words=1)",
        "twindex.passages(many, 3)",
        "index.put_many(keys, many)",
        "twindex.Sketcher(twindex.Params()).sketch_many(many)",
        # Each text shares words with each document, so the work grows with the product of their numbers.
        "index.near_many(texts, containment=0.9)",
    ],
)
def test_ctrl_c_ends_a_long_call(tmp_path, work):
    program = (
        "import sys, time, twindex\n"
        f"{SLOW}"
        "index = twindex.Index.create(sys.argv[1], words=1, sets=True)\n"
        "if 'containment' in sys.argv[2]:\n"
        "    index.put_many(keys[:len(texts)], texts)\n"
        "    index.commit()\n"
        # Repeats the call, because a fast machine may finish it before the signal arrives.
        f"def work():\n    while True:\n        {work}\n"
        "print('ready', flush=True)\n"
        "try:\n"
        "    work()\n"
        "except KeyboardInterrupt:\n"
        "    index.close(discard=True)\n"
        "    print('interrupted', flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(tmp_path / "x.twx"), work], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "ready\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    said, _ = process.communicate(timeout=60)
    assert said == "interrupted\n" and process.returncode == 0
    assert time.monotonic() - began < 10


def test_progress_is_reported_and_its_exceptions_end_the_call(tmp_path):
    told = []
    texts = [f"a{n} b{n % 7} c d e f g" for n in range(2000)]
    twindex.dedup(texts, 0.5, words=2, progress=lambda *now: told.append(now))
    assert told[-1] == ("comparing", 2000, 2000) and all(0 <= done <= total for _, done, total in told)
    told.clear()
    with twindex.Index.create(tmp_path / "x.twx") as index:
        index.put_many([str(n) for n in range(2000)], texts, progress=lambda *now: told.append(now))
    assert told[-1] == ("adding", 2000, 2000)

    def stop(stage, done, total):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        twindex.dedup(texts, progress=stop)


def test_progress_line_is_printed_without_tqdm(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    twindex.dedup(["a b c", "d e f"], progress=True)
    assert "comparing" in capsys.readouterr().err
    twindex.dedup(["a b c", "d e f"], progress=False)
    assert capsys.readouterr().err == ""


def test_plain_data_objects_can_be_pickled():
    params = twindex.Params(words=2, sets=True)
    text = "a rose is a rose"
    for sketcher in (twindex.Sketcher(params), twindex.MinHash(words=2), twindex.Simhash(words=2)):
        again = pickle.loads(pickle.dumps(sketcher))
        assert again.params == sketcher.params
    again = pickle.loads(pickle.dumps(twindex.Sketcher(params)))
    assert again.sketch(text) == twindex.Sketcher(params).sketch(text) != again.sketch("other")


def test_hits_and_admission_results_can_be_pickled(tmp_path):
    with twindex.Index.create(tmp_path / "x.twx", keys="u64", words=2) as index:
        index.put(7, "a rose is a rose")
        index.commit()
        (hit,) = index.near("a rose is a rose")
        admitted = index.admit(9, "a rose is a rose")
    assert pickle.loads(pickle.dumps(hit)) == hit and pickle.loads(pickle.dumps(hit)).key == 7
    assert pickle.loads(pickle.dumps(admitted)) == admitted and admitted.near == hit
