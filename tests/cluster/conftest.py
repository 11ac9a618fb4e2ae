from tests.cluster.fixture import cluster
from tests.cluster.installed import installed

__all__ = ["cluster", "installed"]
