"""How the process holds its memory, looked at in a process of its own."""

import subprocess
import sys


def told_by(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=20, check=True
    )
    return done.stdout.split()


def test_what_is_there_at_the_start_is_never_searched_for_cycles_again():
    frozen, tracked = told_by(
        "import gc\n"
        "from llmgw.daemon.memory import settle_heap\n"
        "settle_heap()\n"
        "print(gc.get_freeze_count(), len(gc.get_objects()))"
    )

    assert int(frozen) > 1000
    assert int(tracked) < 100


def test_cycles_made_later_are_still_found():
    (left,) = told_by(
        "import gc, weakref\n"
        "from llmgw.daemon.memory import settle_heap\n"
        "class Knot: pass\n"
        "settle_heap()\n"
        "knot = Knot(); knot.self = knot\n"
        "seen = weakref.ref(knot)\n"
        "del knot\n"
        "kept = [[] for _ in range(50_000)]\n"
        "print(seen() is None)"
    )

    assert left == "True"


def test_a_large_body_faults_its_pages_in_only_once():
    first, later = map(
        int,
        told_by(
            "from resource import RUSAGE_SELF, getrusage\n"
            "from llmgw.daemon.memory import tune_allocator\n"
            "tune_allocator()\n"
            "def faults():\n"
            "    before = getrusage(RUSAGE_SELF).ru_minflt\n"
            "    body = b'x' * 1_000_000\n"
            "    body = body + b'y'\n"
            "    return getrusage(RUSAGE_SELF).ru_minflt - before\n"
            "print(faults(), faults())"
        ),
    )

    assert first > 100
    assert later < 20
