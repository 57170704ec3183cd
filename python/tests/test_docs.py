"""The examples in the documentation run."""

import ast
import doctest
import inspect
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
def test_readme_example_runs(tmp_path, folder):
    readme = (pathlib.Path(__file__).parents[2] / folder / "README.md").read_text()
    (program,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    if "import pyarrow" in program:
        pytest.importorskip("pyarrow")
    ran = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "https://example.org/a" in ran.stdout


def plain(doc):
    return " ".join((doc or "").split())


def test_docstrings_equal_the_stubs():
    tree = ast.parse((pathlib.Path(twindex.__file__).parent / "__init__.pyi").read_text())
    compared = 0
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)) or node.name not in twindex.__all__:
            continue
        there = getattr(twindex, node.name)
        said = plain(ast.get_docstring(node))
        assert said and said in plain(there.__doc__), node.name
        compared += 1
        for member in getattr(node, "body", ()) if isinstance(node, ast.ClassDef) else ():
            if isinstance(member, ast.FunctionDef) and (said := plain(ast.get_docstring(member))):
                shown = there if member.name == "__init__" else getattr(there, member.name)
                if member.name.startswith("__") and member.name != "__init__":
                    continue
                assert said in plain(shown.__doc__), f"{node.name}.{member.name}"
                compared += 1
            elif isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                decorated = [getattr(one, "id", "") for one in member.decorator_list]
                assert "overload" in decorated, f"{node.name}.{member.name} says nothing"
    assert compared > 70


def test_signatures_show_their_defaults():
    for name in ("dedup", "passages"):
        shown = str(inspect.signature(getattr(twindex, name)))
        assert "..." not in shown and "Ellipsis" not in shown and shown.endswith("progress=None, **settings)")
    for cls in (twindex.Params, twindex.Index, twindex.Forest, twindex.ShardBuilder):
        for name, member in vars(cls).items():
            if callable(member) and not name.startswith("_"):
                assert "..." not in str(inspect.signature(getattr(cls, name))), f"{cls.__name__}.{name}"


def test_stubs_list_every_public_name():
    stub = (pathlib.Path(twindex.__file__).parent / "__init__.pyi").read_text()
    for name in twindex.__all__:
        assert re.search(rf"^(class|def) {name}\b|^{name}\b|import .*\b{name}\b", stub, re.MULTILINE), name
    exceptions = {name for name, found in vars(twindex._errors).items() if isinstance(found, type) and issubclass(found, Exception)}
    assert exceptions == set(twindex._errors.__all__)
    shown = [found for found in vars(twindex).values() if isinstance(found, type) and found.__module__ == "twindex"]
    assert len(shown) >= 10
    for cls in shown:
        body = stub.split(f"class {cls.__name__}", 1)[1].split("\nclass ", 1)[0]
        for name in vars(cls):
            if not name.startswith("_"):
                assert re.search(rf"\b{name}\b", body), f"{cls.__name__}.{name}"


def test_licence_files_equal_the_files_of_the_repository():
    here = pathlib.Path(__file__).parents[1] / "licenses"
    names = sorted(path.name for path in here.iterdir())
    assert names == ["LICENSE", "LICENSE-APACHE", "LICENSE-MIT"]
    for name in names:
        assert (here / name).read_bytes() == (here.parents[1] / name).read_bytes(), name
