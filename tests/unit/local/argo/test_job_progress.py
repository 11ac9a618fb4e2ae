"""Progress of a whole elastic job over graceful resizes: Argo's own field, and what ``voda`` shows.

The shipped template on the pure engine; drivers write their progress file with the runtime's own code.
"""

from __future__ import annotations

from itertools import count
from pathlib import Path

import pytest

from scheduler_core.model.plan import NewWorker
from tests.unit.local.argo.builders import START, Bench
from voda_flows.local.up import shipped_templates
from voda_flows.objects import format_time
from voda_flows.report.lives import lives
from voda_flows.runtime.driver_progress import Places, Progress
from voda_flows.wire import gate_workers_text

EPOCHS = 2
WORKERS = gate_workers_text((NewWorker(id="w0", node="n0", gpus=1), NewWorker(id="w1", node="n0", gpus=1)))
MORE = gate_workers_text((NewWorker(id="w2", node="n1", gpus=1),))


def job() -> Bench:
    """A job of two epochs, submitted."""
    (template,) = [found for found in shipped_templates() if found["metadata"]["name"] == "voda-elastic-job"]
    arguments = [{"name": "command", "value": "true"}, {"name": "epochs", "value": str(EPOCHS)}]
    metadata = {"name": "w", "namespace": "default", "uid": "uid-w", "creationTimestamp": format_time(START)}
    spec = {"workflowTemplateRef": {"name": "voda-elastic-job"}, "arguments": {"parameters": arguments}}
    return Bench({"kind": "Workflow", "metadata": metadata, "spec": spec}, {"voda-elastic-job": template})


class Life:
    """A job that lives, and what was seen of its progress after each look."""

    def __init__(self, folder: Path) -> None:
        self.bench = job()
        self.folder = folder
        self.segment = "w[0].segment"
        self.seen: list[tuple[int, int]] = []
        self.training: list[float] = []
        self.shown: list[float] = []
        self.look()

    def look(self) -> None:
        """The engine looks until nothing changes, and progress is noted."""
        self.bench.look(after_s=1)
        done, _, total = self.bench.status["progress"].partition("/")
        self.seen.append((int(done), int(total)))
        (life,) = lives(self.bench.workflow, self.bench.pods.values())
        self.shown.append(life.fraction)

    def answer(self, gate: str, **outputs: str) -> None:
        """What the scheduler does: completes a gate with values."""
        nodes = self.bench.workflow["status"]["nodes"]
        (node,) = [found for found in nodes.values() if found["name"] == gate]
        assert node["phase"] == "Running"
        parameters = [{"name": name, "value": value} for name, value in outputs.items()]
        done = {**node, "phase": "Succeeded", "outputs": {"parameters": parameters}}
        status = {**self.bench.workflow["status"], "nodes": {**nodes, node["id"]: done}}
        self.bench.workflow = {**self.bench.workflow, "status": status}
        self.look()

    def train(self, begin: float, end: float, *, state: str, grows: bool = False) -> None:
        """A whole segment: granted, trains from one epoch to another in steps of a tenth, and ends."""
        self.answer(f"{self.segment}[0].gate", grant="given", workers=WORKERS)
        train = f"{self.segment}[1].train"
        file = self.folder / f"progress-{len(self.seen)}"
        output = file.with_suffix(".output")
        places = Places(shown=file, kept=file.with_suffix(".kept"), output=output)
        progress = Progress(places, EPOCHS, clock=count(0, 10).__next__)
        for node in self.pods(train):
            self.bench.run(node)
        self.look()
        progress.begin(begin)
        self.say(train, file)
        grow = f"{train}[0].grow"
        for tenth in range(round((end - begin) * 10) + 1):
            progress.reach(begin + tenth / 10)
            self.say(train, file)
            self.training.append(self.seen[-1][0] / self.seen[-1][1])
            if grows and tenth == 2:
                self.answer(f"{grow}[0].gate", workers=MORE, more="yes")
                grow = f"{grow}[1].again"
        progress.end(end)
        self.say(train, file)
        for node in self.pods(train):
            if node.endswith("driver"):
                self.bench.end(node, progress=output.read_text())
            else:
                self.bench.end(node)
            self.look()
        self.answer(f"{grow}[0].gate", workers="[]", more="no")
        self.bench.end(f"{train}[1].checkpoint(0)", state=state)
        self.look()
        self.segment = f"{train}[2].resize"

    def pods(self, train: str) -> list[str]:
        """Nodes of pods of a segment that have not ended."""
        return [
            name
            for name, node in self.bench.nodes.items()
            if node["type"] == "Pod" and name.startswith(f"{train}[0]") and node["phase"] in ("Pending", "Running")
        ]

    def say(self, train: str, file: Path) -> None:
        """What the driver wrote reaches its pod, as the parent process of the pod brings it."""
        self.bench.pod(f"{train}[0].driver")["metadata"]["annotations"]["voda.dev/progress"] = file.read_text()
        self.look()


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Life:
    """Two resizes with a checkpoint, one before the first step of a segment, a growth in place, and the end."""
    made = Life(tmp_path_factory.mktemp("progress"))
    made.train(0.0, 0.5, state="resize")
    made.train(0.5, 0.5, state="resize")
    made.train(0.5, 1.2, state="resize", grows=True)
    made.train(1.2, 2.0, state="done")
    return made


def test_progress_in_voda_never_goes_backwards(life: Life) -> None:
    """Each look shows at least as much as the one before, up to the whole."""
    assert life.bench.status["phase"] == "Succeeded"
    assert life.shown == sorted(life.shown)
    assert (life.shown[0], life.shown[-1]) == (0.0, 1.0)


def test_what_argo_counts_as_done_never_goes_backwards(life: Life) -> None:
    """Its number of done parts grows, and in the end the parts of all segments are those of the whole job, once."""
    done = [one for one, _ in life.seen]
    assert done == sorted(done)

    last_done, last_total = life.seen[-1]
    others = [node for node in life.bench.nodes.values() if node["type"] in ("Pod", "Suspend")
              and node.get("templateName") != "driver"]  # fmt: skip
    empty = 1  # the segment that ended before its first step
    assert last_done == last_total == EPOCHS * 100 + len(others) + empty


def test_share_that_argo_shows_while_the_job_trains_does_not_fall_at_a_resize(life: Life) -> None:
    """From one training moment to the next, but for a hair where a growth adds pods that have yet to do their part."""
    falls = [before - after for before, after in zip(life.training, life.training[1:], strict=False)]

    assert max(falls) <= 0.01
