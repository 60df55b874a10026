"""What stands before the keys in the sample file and on the reference page."""

from __future__ import annotations

from typing import Final

FILE_HEAD: Final = """\
# llmgw: every key with its default. Lines that begin with "# " explain; take the "#" away from
# a line that begins with "#" and a key to set that key.
#
# Durations are strings: "500ms", "3s", "1m30s", "12h", "30d". Sizes are integers or "32MiB".
# Secrets are never in this file: api_key_env and api_key_file say where they are.
# llmgw check says all that is wrong with a file, and llmgw check --diff what a reload changes.
# The smallest file that does something is one node:
#
# [[nodes]]
# url = "http://10.0.0.5:8000"
"""

PAGE_HEAD: Final = """\
# Configuration

One TOML file, `/etc/llmgw/llmgw.toml` unless `-c FILE` names another. This page is made from the
tables that the file is read by (`python -m llmgw.config_file.reference`).

    llmgw init http://10.0.0.5:8000 http://10.0.0.6:8000 -o llmgw.toml
    llmgw check -c llmgw.toml           all faults at once, each with its place; exit status 0 or 1
    llmgw check -c llmgw.toml --diff    what a reload would change in the running gateway
    llmgw check -c NEW --diff OLD       what differs between two files
    llmgw config show -c llmgw.toml     every key with its effective value, secrets masked
    llmgw config migrate gateway.toml   a file of the older gateway in today's form

## Forms

- A **place** is written as `nodes[2].url`; the tables of a list are counted from 0.
- **Durations** are strings of numbers with units, the larger first: `"500ms"`, `"3s"`, `"1m30s"`,
  `"12h"`, `"30d"`. A bare number is refused, for it does not say what it counts.
- **Sizes** are integers (bytes) or strings: `"256KiB"`, `"32MiB"`, `"1GiB"` are powers of 1024,
  `"32MB"` of 1000.
- **Addresses** to listen on are `":8000"` (all of this machine's), `"host:port"`, `"[::1]:8000"`,
  `"unix:/run/llmgw/http.sock"`, or a list of them.
- **Base URLs** of upstreams are the part before `/v1`: `"http://10.0.0.5:8000"`,
  `"https://host/some/prefix"`. A trailing slash means nothing. One that ends in `/v1` is taken
  without it, with a warning.
- `"off"` switches a limit off where its type says so.

## Secrets

Keys of upstreams are read at each load: `api_key_env` names an environment variable,
`api_key_file` a file whose first line is the key. A file named without a folder is looked for in
`CREDENTIALS_DIRECTORY` first (`LoadCredential=` of systemd), else beside the configuration.
Clients' keys are kept as digests only. Nothing prints a secret.

## Errors and warnings

An unknown key or section, a wrong type, a missing key, two upstreams of one name, two nodes of one
URL, an assignment of an unknown upstream, an upstream that is this gateway itself, a secret in the
file, or one that can't be read: the file is not loaded, and all that is wrong is told at once.

A ring that no node is in, a model that nobody could serve, an upstream in no pool, open access:
the file is loaded, with a warning. That no node serves a configured model is never a reason to
refuse a file.

## The older gateway's file

A `gateway.toml` loads unchanged: `ip` and `vllm_port` are an older form of `url`,
`pipeline_stages` is accepted and means nothing, an empty `name`, `ring` or `default` is as if
it were not there, `[provision]` is ignored with a warning.
"""
