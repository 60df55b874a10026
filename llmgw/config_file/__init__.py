"""TOML in and out: a file becomes a `Config`, or all its faults at once, each with its place."""

from llmgw.config_file.changes import diff
from llmgw.config_file.faults import ConfigError, Fault, FileMissing, Note
from llmgw.config_file.keys import load_keys
from llmgw.config_file.loading import Loaded, config_for_nodes, load, state_folder
from llmgw.config_file.rendering import render

__all__ = [
    "ConfigError",
    "Fault",
    "FileMissing",
    "Loaded",
    "Note",
    "config_for_nodes",
    "diff",
    "load",
    "load_keys",
    "render",
    "state_folder",
]
