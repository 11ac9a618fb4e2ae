"""The rules of the artifact of Pollux, by hand on an application whose numbers are round."""

from __future__ import annotations

from scheduler_core.simulate.compat.pollux_application import Application
from scheduler_core.simulate.compat.pollux_optimus import PolluxOptimus
from scheduler_core.simulate.compat.pollux_rounds import RoundsJob, placed, run_rounds
from scheduler_core.simulate.compat.pollux_tiresias import PolluxTiresias
from scheduler_core.simulate.traces.pollux import PolluxJob

_PLACEMENTS = "placement,local_bsz,step_time,sync_time\n" + "".join(
    f"{gpus},{local},{step_s},0.25\n" for gpus, step_s in ((1, 1.0), (2, 0.5), (3, 0.75)) for local in (4, 8)
)
_VALIDATION = "progress,iteration,metric,grad_sqr,grad_var\n100.2,100,0,1,0\n200,200,0,1,0\n"
BERT = Application(
    "bert",
    {
        "placements.csv": _PLACEMENTS,
        "scalability.csv": "num_nodes,num_replicas,local_bsz,step_time,sync_time\n4,4,4,1.0,0.5\n",
        "validation-8.csv": _VALIDATION,
        "validation-16.csv": _VALIDATION,
    },
)


def _asked(name: str, submitted_s: int = 0, num_gpus: int = 1, batch_size: int = 8) -> PolluxJob:
    return PolluxJob(name=name, submitted_s=submitted_s, application="bert", num_gpus=num_gpus, batch_size=batch_size)


def test_completion_to_the_second() -> None:
    """Seen at 60 s, 30 s of delay, 100 s (100.2 rounded) and 100 s (99.8 rounded): 290 s, less 50 s."""
    assert run_rounds([_asked("x", 50)], {"bert": BERT}, PolluxTiresias()) == {"x": 240}


def test_batch_is_split_in_passes() -> None:
    """16 on one GPU are two passes of 8; 12 above the initial batch accumulate too; 16 on two GPUs are one of 8."""
    assert [BERT.split(16, 1), BERT.split(12, 1), BERT.split(8, 1), BERT.split(16, 2)] == [
        (8, 1),
        (6, 1),
        (8, 0),
        (8, 0),
    ]


def test_tiresias_demotes_by_service_and_fills_behind() -> None:
    """The job with 57,600 GPU seconds goes behind; who fits in the rest goes ahead of who does not."""
    policy = PolluxTiresias()
    jobs = [RoundsJob(_asked(name, num_gpus=gpus), BERT) for name, gpus in (("old", 40), ("new", 40), ("small", 24))]
    jobs[0].ran_s = 1_440
    assert {name: len(nodes) for name, nodes in policy(jobs).items()} == {"new": 40, "small": 24}


def test_optimus_grows_while_the_remaining_time_falls() -> None:
    """From 1 to 2 GPUs it falls (1.75 s accumulated to 0.5 s); a third would not be had: 8 // 4 = 2 at most."""
    jobs = [RoundsJob(_asked("x"), BERT), RoundsJob(_asked("y", batch_size=16), BERT)]
    assert {name: len(nodes) for name, nodes in PolluxOptimus()(jobs).items()} == {"x": 2, "y": 2}


def test_new_workers_take_the_freest_node() -> None:
    """Six workers fill a whole node and take two of the next; who stays is not moved."""
    assert placed({"a": (0, 0)}, [("b", 6)]) == {"a": (0, 0), "b": (1, 1, 1, 1, 2, 2)}
