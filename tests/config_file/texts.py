"""Configurations as text for tests, parsed without a disk."""

import tomllib
from pathlib import Path

from llmgw.config_file.assembly import parse
from llmgw.config_file.faults import ConfigError, Fault, Note, Report
from llmgw.config_file.secrets import Secrets
from llmgw.core.config import Config

FOLDER = Path("/etc/llmgw")
DIGEST = "sha256:" + "a" * 64
SCRYPT = f"scrypt$16384$8$5${'A' * 22}==${'A' * 43}="
NODE = '[[nodes]]\nurl = "http://10.0.0.5:8000"\nname = "a"\n'
ACCOUNT = '[[accounts]]\nurl = "https://api.example.org"\nname = "p"\n'


def secrets(environ=None, files=None) -> Secrets:
    """`files` maps paths to bytes."""

    def read(path: Path) -> bytes:
        try:
            return (files or {})[str(path)]
        except KeyError:
            raise FileNotFoundError(2, "No such file or directory") from None

    return Secrets(environ or {}, FOLDER, read)


def config_of(text: str, *, environ=None, files=None) -> Config:
    return parse(tomllib.loads(text), secrets(environ, files), Report()).config


def faults_of(text: str, *, environ=None, files=None) -> dict[str, Fault]:
    try:
        config_of(text, environ=environ, files=files)
    except ConfigError as error:
        return {fault.place: fault for fault in error.faults}
    return {}


def notes_of(text: str) -> dict[str, Note]:
    report = Report()
    parse(tomllib.loads(text), secrets(), report)
    return {note.place: note for note in report.notes}
