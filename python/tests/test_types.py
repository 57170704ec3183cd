"""Type checkers accept correct user code and report errors in wrong code."""

import json
import pathlib
import subprocess
import sys

import pytest

TYPED = pathlib.Path(__file__).with_name("typed.py")


def run(*line):
    return subprocess.run(line, capture_output=True, text=True, cwd=TYPED.parent)


def test_mypy_strict_accepts_user_code(tmp_path):
    pytest.importorskip("mypy")
    # With --strict, an unused ignore comment is an error, so each wrong line must be reported.
    ran = run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path), str(TYPED))
    assert ran.returncode == 0 and "Success" in ran.stdout, ran.stdout + ran.stderr
    # Checks modules by name: given paths, mypy would treat all installed packages as the user's code.
    parts = [part for name in ("", "._sketchers", "._errors", "._progress") for part in ("-m", f"twindex{name}")]
    ran = run(sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path), *parts)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_pyright_accepts_user_code_and_reports_wrong_lines(tmp_path):
    pytest.importorskip("basedpyright")
    settings = {"include": [str(TYPED)], "typeCheckingMode": "strict", "enableTypeIgnoreComments": False}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    line = [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(tmp_path), "--pythonpath", sys.executable]
    ran = run(*line)
    found = json.loads(ran.stdout)["generalDiagnostics"]
    wrong_from = TYPED.read_text().split("def wrong(")[0].count("\n")
    errors = [(one["range"]["start"]["line"], one["rule"]) for one in found if one["severity"] == "error"]
    # Exactly the wrong lines are reported.
    assert sorted({line - wrong_from for line, _ in errors}) == [1, 2, 3], errors
