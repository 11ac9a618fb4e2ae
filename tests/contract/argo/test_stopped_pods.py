"""What is left of a Workflow that was stopped, on the real engine."""

from __future__ import annotations

from pathlib import Path

from tests.contract.argo import engine_world
from tests.contract.argo.engine_world import EngineWorld
from tests.contract.argo.world import finish, is_ready_to_end, is_up
from tests.unit.local.argo.builders import shell, workflow
from voda_flows.local.argo import operate
from voda_flows.local.launch import pod_folder
from voda_flows.local.up import down


def test_stopped_pod_stays_with_its_log_and_exit_code(tmp_path: Path) -> None:
    """Its processes are asked to end, what they said last can still be read, and the Workflow says how they ended."""
    says_bye = "trap 'echo bye; exit 4' TERM; sleep 60 & wait"
    engine_world.begin(tmp_path)
    try:
        world = EngineWorld({**workflow(shell(command=says_bye)), "metadata": {"name": "w"}}, tmp_path)
        world.until(lambda: "w" in world.pods and is_up(world.pods["w"]) and is_ready_to_end(world, "w"))
        world.operate(operate.stop)
        status = finish(world)

        pod = world.pods["w"]
        assert (status["phase"], status["message"]) == ("Failed", "Stopped with strategy 'Stop'")
        assert status["nodes"]["w"]["outputs"] == {"exitCode": "4"}
        assert pod["status"]["phase"] == "Failed"
        assert (pod_folder(tmp_path, pod["metadata"]["uid"]) / "main.log").read_text() == "bye\n"
    finally:
        down(tmp_path, drain_s=0.2)
