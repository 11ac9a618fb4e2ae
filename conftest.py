"""Settings of all tests: how many cases Hypothesis tries, and the documentation's code blocks as tests."""

from __future__ import annotations

import os
import signal

from hypothesis import settings

from tests.quality.documentation import documentation

EVERYDAY_EXAMPLES = 100

# Everyday runs are repeatable; a long run (VODA_TEST_EXAMPLES) looks for what they have missed, and prints how to
# reproduce what it finds.
settings.register_profile("everyday", max_examples=EVERYDAY_EXAMPLES, derandomize=True, deadline=None, database=None)
settings.register_profile(
    "long", max_examples=int(os.environ.get("VODA_TEST_EXAMPLES", EVERYDAY_EXAMPLES)), deadline=None, print_blob=True
)
settings.load_profile("long" if "VODA_TEST_EXAMPLES" in os.environ else "everyday")

# A shell has what it runs in the background ignore Ctrl-C, and whatever that starts; tests of Ctrl-C run there too.
signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["tests.cluster.fixture"]

pytest_collect_file = documentation().pytest()
