"""Compile what each request goes through, where that can be done: see `packaging/native.py`.

All else that an installation needs to know stands in `pyproject.toml`.
"""

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path(__file__).resolve().parent / "packaging"))

from native import BuildNative, extensions

setup(ext_modules=extensions(), cmdclass={"build_ext": BuildNative})
