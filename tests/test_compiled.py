"""Extensions are used while they are their sources', all of them or none."""

import os
import subprocess
import sys
from importlib.util import source_hash
from pathlib import Path

import pytest

from llmgw.compiled import LIBRARY, RECORD, SUFFIX

ROOT = Path(__file__).resolve().parents[1]
MODULES = ("core/one", "core/two", "web/head")
LOOK = """
import sys
from importlib.util import find_spec
from llmgw.compiled import choose
print(choose("built", sys.argv[1], sys.argv[2] or None))
for name in sys.argv[3:]:
    spec = find_spec(name)
    print(name, spec and spec.origin)
"""


@pytest.fixture
def built(tmp_path):
    """A package as a build leaves it; its extensions are none, for nobody imports them."""
    package = tmp_path / "built"
    for module in (*MODULES, "core/plain"):
        source = package / f"{module}.py"
        source.parent.mkdir(parents=True, exist_ok=True)
        source.write_text(f"# {module}\n")
        (source.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    for module in (LIBRARY, *MODULES):
        (package / f"{module}{SUFFIX}").touch()
    sums = [
        f"{source_hash((package / f'{one}.py').read_bytes()).hex()} {one}.py" for one in MODULES
    ]
    (package / RECORD).write_text("\n".join([*sums, ""]))
    return package


def look(package, *names, pure=""):
    """Why the sources are taken, and for each name which file would be imported."""
    said = run(package, *names, pure=pure)
    assert said.returncode == 0, said.stderr
    why, *places = said.stdout.splitlines()
    files = [place.split()[1] for place in places]
    return why, [one if one == "None" else str(Path(one).relative_to(package)) for one in files]


def run(package, *names, pure=""):
    path = os.pathsep.join((str(ROOT), str(package.parent)))
    return subprocess.run(
        [sys.executable, "-c", LOOK, str(package), pure, *names],
        env={**os.environ, "PYTHONPATH": path, "LLMGW_PURE": "1"},  # of the package that looks
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_what_was_built_is_used(built):
    why, files = look(built, "built.core.one", "built.web.head", "built.core.plain")

    assert why == ""
    assert files == [f"core/one{SUFFIX}", f"web/head{SUFFIX}", "core/plain.py"]


def test_newer_times_alone_change_nothing(built):
    for source in built.rglob("*.py"):
        os.utime(source, (4e9, 4e9))

    assert look(built)[0] == ""


def edit(package):
    (package / "core" / "two.py").write_text("# otherwise\n")


def edit_as_long_and_as_old(package):
    source = package / "core" / "two.py"
    before = source.stat()
    source.write_text(source.read_text().replace("two", "owt"))
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove_a_source(package):
    (package / "core" / "two.py").unlink()


def remove_an_extension(package):
    (package / f"core/two{SUFFIX}").unlink()


def remove_the_library(package):
    (package / f"{LIBRARY}{SUFFIX}").unlink()


def leave_one_of_another_build(package):
    (package / f"core/plain{SUFFIX}").touch()


def remove_the_record(package):
    (package / RECORD).unlink()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        pytest.param(edit, "core/two.py has changed since it was compiled", id="edited"),
        pytest.param(
            edit_as_long_and_as_old,
            "core/two.py has changed since it was compiled",
            id="edited, and put back in time",
        ),
        pytest.param(
            remove_a_source, "core/two.py has changed since it was compiled", id="no source"
        ),
        pytest.param(
            remove_an_extension, f"core/two{SUFFIX} is missing", id="an extension is missing"
        ),
        pytest.param(remove_the_library, f"{LIBRARY}{SUFFIX} is missing", id="no library"),
        pytest.param(
            leave_one_of_another_build,
            f"core/plain{SUFFIX} is of another build",
            id="a module that is no longer compiled",
        ),
        pytest.param(remove_the_record, "not compiled", id="a build that did not end"),
    ],
)
def test_all_come_from_their_sources_where_one_is_not_as_built(built, change, why):
    change(built)

    found = look(built, "built.core.one", "built.core.plain", "built.web.head")

    assert found == (why, ["core/one.py", "core/plain.py", "web/head.py"])


def test_a_module_without_a_source_is_not_found(built):
    remove_a_source(built)

    said = run(built, "built.core.two")

    assert said.stderr.splitlines()[-1] == "ModuleNotFoundError: no source of built.core.two"


def test_extensions_of_another_python_are_left_alone(built):
    for path in built.rglob(f"*{SUFFIX}"):
        path.rename(str(path).replace(SUFFIX, ".cpython-30-none.so"))

    assert look(built)[0].endswith(f"{SUFFIX} is missing")


def test_it_can_be_told_to_take_the_sources(built):
    why, files = look(built, "built.core.one", pure="1")

    assert why == "LLMGW_PURE=1"
    assert files == ["core/one.py"]


def test_it_can_be_told_to_take_no_sources(built):
    assert look(built, pure="0")[0] == ""

    edit(built)
    said = run(built, pure="0")

    assert said.returncode != 0
    assert said.stderr.splitlines()[-1] == (
        "ImportError: built must run compiled (LLMGW_PURE=0): "
        "core/two.py has changed since it was compiled"
    )


def test_a_folder_that_is_no_package_stays_one(built):
    (built / "static").mkdir()
    edit(built)

    assert look(built, "built.static")[1] == ["None"]
