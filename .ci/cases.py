"""Run the behaviour cases, and say plainly which ones are known not to pass and why.

    cases.py RUNNER CASES [options of the runner]

A case that contradicts the contract is listed here, with what it asks for. It is run like the
others and never counted as passed; the gate fails where it passes after all, or fails for another
reason than the one that is given.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

CONTRADICTIONS = {
    "H69-sec-headers-and-loop": (
        "x-new-thing",
        "wants an unknown response header of an account to reach the client; of an account's "
        "headers only the listed ones may pass, and this one is not among them",
    ),
}
"""By case: a word that each of its reasons must hold, and what is wrong with the case."""


def main(runner, cases, *options):
    verdicts = run(runner, cases, options)
    if not verdicts:
        print("no case was run", file=sys.stderr)
        return 1
    passed = [one for one in verdicts if one["result"] == "PASS"]
    known = [one for one in verdicts if is_known(one)]
    skipped = [one for one in verdicts if one["result"] == "SKIP"]
    wrong = [one for one in verdicts if one["result"] == "FAIL" and one not in known]
    wrong += [one for one in passed if one["id"] in CONTRADICTIONS]
    passed = [one for one in passed if one not in wrong]
    for one in known:
        print(f"contradicts the contract: {one['id']} {CONTRADICTIONS[one['id']][1]}")
    for one in skipped:
        print(f"could not be run here: {one['id']} {'; '.join(one['reasons'])}")
    for one in wrong:
        print(f"{one['result']}, and should not: {one['id']}")
    counts = f"{len(passed)} passed, {len(known)} contradict the contract"
    print(f"{counts}, {len(skipped)} not run, {len(wrong)} wrong")
    return 1 if wrong else 0


def run(runner, cases, options):
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "verdicts.json"
        command = [sys.executable, runner, cases, "--json", str(report), *options]
        # its status counts the known ones as failed
        subprocess.run(command, check=False)  # noqa: S603 - what the gate was told to run
        return json.loads(report.read_text()) if report.exists() else []


def is_known(verdict):
    word, _ = CONTRADICTIONS.get(verdict["id"], (None, ""))
    reasons = verdict["reasons"]
    failed = verdict["result"] == "FAIL" and word is not None
    return failed and bool(reasons) and all(word in reason for reason in reasons)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
