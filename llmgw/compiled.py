"""Whether the package runs compiled, which it only does while its extensions are its sources'.

A build leaves `compiled.sums`: the hash of each source that it compiled. Where one has changed
since, where an extension is missing, or where one is left of another build, all modules are
imported from their sources: the extensions share one library and call each other past the import
system. Times of files tell nothing here, for an installer sets them as it comes.

`LLMGW_PURE` in the environment decides otherwise: 1 takes the sources, and with 0 the import fails
rather than take them.

Imported before anything else of the package, at each start: it takes less than 2 ms.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from importlib.util import source_hash
from types import ModuleType

RECORD = "compiled.sums"
LIBRARY = "native__mypyc"  # of all extensions
SUFFIX = EXTENSION_SUFFIXES[0]  # of this Python's alone


class Sources:
    """Finds a package's modules by their sources alone; to stand before all other finders.

    Raises `ModuleNotFoundError` for an extension without a source, lest one of them finds that.
    """

    def __init__(self, package: str) -> None:
        self._prefix = f"{package}."
        self._folders: dict[str, FileFinder] = {}

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if not name.startswith(self._prefix):
            return None
        for folder in path or ():
            spec = self._finder(folder).find_spec(name)
            if spec is not None and spec.loader is not None:  # else a folder without a module
                return spec
        others = PathFinder.find_spec(name, path)
        if others is not None and isinstance(others.loader, ExtensionFileLoader):
            raise ModuleNotFoundError(f"no source of {name}", name=name)
        return None

    def _finder(self, folder: str) -> FileFinder:
        if folder not in self._folders:
            self._folders[folder] = FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))
        return self._folders[folder]


def choose(package: str, folder: str, pure: str | None) -> str:
    """Why the package in this folder is imported from its sources, which is arranged for here;
    empty where its extensions are used. `pure`: as `LLMGW_PURE` says. Raises `ImportError`.
    """
    why = "LLMGW_PURE=1" if pure == "1" else _lack(folder)
    if why and pure == "0":
        raise ImportError(f"{package} must run compiled (LLMGW_PURE=0): {why}", name=package)
    if why:
        sys.meta_path.insert(0, Sources(package))
    return why


def _lack(folder: str) -> str:
    try:
        found, sums = set(_extensions(folder)), _sums(folder)
    except OSError:  # most often there is no record
        return "not compiled"
    wanted = {LIBRARY, *(os.path.splitext(path)[0] for path in sums)}
    if odd := sorted(found ^ wanted):
        return f"{odd[0]}{SUFFIX} is {'of another build' if odd[0] in found else 'missing'}"
    changed = (path for path, sum in sums.items() if not _is_unchanged(folder, path, sum))
    return next((f"{path} has changed since it was compiled" for path in changed), "")


def _extensions(folder: str, within: str = "") -> Iterator[str]:
    """Their paths below the folder, without the suffix. Raises `OSError`."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith(SUFFIX):
                yield within + entry.name.removesuffix(SUFFIX)
            elif "." not in entry.name and entry.name != "__pycache__" and entry.is_dir():
                yield from _extensions(entry.path, f"{within}{entry.name}/")


def _sums(folder: str) -> Mapping[str, str]:
    """The hash of each compiled source, by its path below the folder. Raises `OSError`."""
    with open(os.path.join(folder, RECORD), encoding="utf-8") as lines:
        pairs = (line.split() for line in lines)
        return {path: sum for sum, path in pairs}


def _is_unchanged(folder: str, path: str, sum: str) -> bool:
    try:
        with open(os.path.join(folder, path), "rb") as source:
            return source_hash(source.read()).hex() == sum
    except OSError:
        return False


WHY = choose("llmgw", os.path.dirname(os.path.abspath(__file__)), os.environ.get("LLMGW_PURE"))
IS_COMPILED = not WHY
