"""Area cluster, one contract in two worlds: every document of the suite on the local engine and on the real controller."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.cluster import nodes
from tests.cluster.cluster import Cluster
from tests.cluster.places import cache_folder
from tests.contract.two_worlds.play import Pair, stage
from tests.contract.two_worlds.tier import all_cases, quick_cases
from tests.show.registry import Row, exactly, information

from tests.show.registry import figure
