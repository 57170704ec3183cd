"""What the documentation shows runs."""

import doctest
import pathlib
import re
import subprocess
import sys

import pytest

import twindex
import twindex._sketchers


def test_examples_in_docstrings_run():
    for module in (twindex, twindex._sketchers):
        failed, run = doctest.testmod(module)
        assert failed == 0 and run > 0, module.__name__


@pytest.mark.parametrize("folder", ["python", "."])
def test_the_readmes_example_runs(tmp_path, folder):
    readme = (pathlib.Path(__file__).parents[2] / folder / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "https://example.org/a" in ran.stdout


def test_stubs_name_all_there_is():
    stub = (pathlib.Path(twindex.__file__).parent / "__init__.pyi").read_text()
    assert "from ._errors import *" in stub
    for name in set(twindex.__all__) - set(twindex._errors.__all__):
        assert re.search(rf"^(class|def) {name}\b|^{name}\b|import .*\b{name}\b", stub, re.MULTILINE), name
    exceptions = {name for name, found in vars(twindex._errors).items() if isinstance(found, type)}
    assert exceptions == set(twindex._errors.__all__)
    shown = (twindex.Index, twindex.Sketcher, twindex.Sketch, twindex.Params, twindex.Dedup, twindex.ShardBuilder)
    for cls in shown:
        body = stub.split(f"class {cls.__name__}", 1)[1].split("\nclass ", 1)[0]
        for name in vars(cls):
            if not name.startswith("_"):
                assert re.search(rf"\b{name}\b", body), f"{cls.__name__}.{name}"
