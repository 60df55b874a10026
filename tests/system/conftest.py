"""The tests of the installed service change the machine that they run on: `make system` boots a
systemd of its own for them, and says so in the environment. Nowhere else are they collected.
"""

import os

collect_ignore = [] if os.environ.get("LLMGW_SYSTEM_TEST") else ["test_systemd.py"]
