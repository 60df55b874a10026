"""The run of known mistakes is believed because it tells a caught one from all else."""

import textwrap
from pathlib import Path

import pytest

from tests.mutants import run

MUTANTS = run.read_mutants(run.HERE)
CODE = """\
FIRST = 1
SECOND = 2


def double(number):
    return number + number


LAST = 3
"""
TEST = "from llmgw.code import double\n\ndef test_it():\n    assert double(3) == 6\n"
PATCH = """\
# A number is squared.
# caught by: tests/test_code.py
--- a/llmgw/code.py
+++ b/llmgw/code.py
@@ -3,7 +3,7 @@


 def double(number):
-    return number + number
+    return {returned}


 LAST = 3
"""


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_patch_names_files_of_the_tree(mutant):
    files = [
        line.split(" b/")[1] for line in mutant.path.read_text().splitlines() if " b/" in line
    ]

    assert files
    assert all((run.ROOT / file).is_file() for file in (*files, *mutant.caught_by))
    assert mutant.mistake.endswith(".")


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: one.name)
def test_a_patch_still_applies(mutant, tree):
    assert run.apply(mutant, tree)
    assert run.apply(mutant, tree, "--reverse")


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return run.copy_tree(run.ROOT, tmp_path_factory.mktemp("trees") / "whole")


@pytest.fixture
def small(tmp_path) -> Path:
    """A tree of one function and its test."""
    for folder in ("llmgw", "tests"):
        (tmp_path / "small" / folder).mkdir(parents=True)
    (tmp_path / "small" / "llmgw" / "__init__.py").touch()
    (tmp_path / "small" / "llmgw" / "code.py").write_text(CODE)
    (tmp_path / "small" / "tests" / "test_code.py").write_text(TEST)
    return tmp_path / "small"


def mutant_of(folder: Path, text: str) -> run.Mutant:
    path = folder / "squared.patch"
    path.write_text(text)
    return run.read_mutant(path)


@pytest.mark.parametrize(
    ("returned", "is_good", "said"),
    [
        pytest.param("number * number", True, "tests/test_code.py::test_it", id="caught"),
        pytest.param("2 * number", False, "no test noticed", id="no mistake at all"),
        pytest.param("numbr", False, "the patch breaks the code", id="no code any more"),
        pytest.param("(", False, "did not get to a failing test", id="no module any more"),
    ],
)
def test_only_a_test_that_fails_has_caught_a_mistake(small, tmp_path, returned, is_good, said):
    verdict = run.verdict_of(mutant_of(tmp_path, PATCH.format(returned=returned)), small)

    assert verdict.is_good is is_good
    assert said in verdict.said
    assert (small / "llmgw" / "code.py").read_text() == CODE, "the tree is whole again"


def test_a_patch_finds_its_place_where_lines_have_moved(small, tmp_path):
    (small / "llmgw" / "code.py").write_text("ONE = 1\n" * 40 + CODE)

    assert run.verdict_of(mutant_of(tmp_path, PATCH.format(returned="0")), small).is_good


def test_a_patch_without_a_place_is_wrong(small, tmp_path):
    (small / "llmgw" / "code.py").write_text(CODE.replace("number", "value"))

    verdict = run.verdict_of(mutant_of(tmp_path, PATCH.format(returned="0")), small)

    assert (verdict.is_good, verdict.said) == (False, "the patch no longer applies")


def test_tests_that_hang_have_noticed_nothing(small, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "WITHIN", 0.01)

    verdict = run.verdict_of(mutant_of(tmp_path, PATCH.format(returned="0")), small)

    assert not verdict.is_good
    assert "did not end" in verdict.said


@pytest.mark.parametrize("header", ["# Something.", "# caught by: tests/test_code.py", ""])
def test_a_header_says_what_and_by_whom(tmp_path, header):
    with pytest.raises(ValueError, match=r"squared\.patch"):
        mutant_of(tmp_path, textwrap.dedent(header))
