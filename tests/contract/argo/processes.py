"""Pods as plain processes, just enough of a node to run the golden documents: no slots, no adoption, no limits.

In: pod objects of ``voda_flows.local.argo``; out: the same with a status, and the annotations in which local mode
keeps outputs and progress (docs/contracts.md, section 9).
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from voda_flows.objects import Object, format_time

REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
ANNOTATION_PATH = re.compile(r"metadata\.annotations\['(.+)'\]")
GRACE_S = 3.0


def expanded(text: str, env: dict[str, str]) -> str:
    """``$(NAME)`` of the environment, ``$$`` as an escaped ``$``: Kubernetes' own expansion of command and args."""
    return REFERENCE.sub(lambda found: "$" if found.group(1) is None else env.get(found.group(1), found.group(0)), text)


class PodProcess:
    """One pod's process, its folder, and the thread that waits for it."""

    def __init__(self, pod: Object, folder: Path, ended: Callable[[], None]) -> None:
        folder.mkdir(parents=True)
        self.pod = pod
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        self._ended = ended
        self._paths: dict[str, str] = {}
        self._late = False

    def start(self) -> None:
        """Start it; a program that is not there ends it as Argo's executor would."""
        container, collect = self.pod["spec"]["containers"][0], self._collect()
        for index, path in enumerate(collect["parameters"].values()):
            self._paths[path] = str(self.folder / f"out-{index}")
        for mount in container.get("volumeMounts") or ():
            self._paths[mount["mountPath"]] = str(self.folder / mount["name"])
            (self.folder / mount["name"]).mkdir()
        self.write_downward_files()
        if "source" in collect:
            self._paths[collect["sourcePath"]] = str(self.folder / "script")
            (self.folder / "script").write_text(self._mapped(collect["source"]))
        env = self._environment(container)
        command = [self._mapped(expanded(word, env)) for word in (*container["command"], *container.get("args", ()))]
        env["ARGO_PROGRESS_FILE"] = str(self.folder / "progress")
        if shutil.which(command[0]) is None:
            fault = f'failed to find name in PATH: exec: "{command[0]}": executable file not found in $PATH'
            self._end(64, "", fault)
            return
        with (self.folder / "main.log").open("wb") as log:
            self.process = subprocess.Popen(command, stdout=log, env={**os.environ, **env}, start_new_session=True)
        self.pod["status"] = {"phase": "Running", "startTime": format_time(datetime.now(UTC))}
        threading.Thread(target=self._wait, daemon=True).start()
        if "activeDeadlineSeconds" in self.pod["spec"]:
            self._later(self.pod["spec"]["activeDeadlineSeconds"], self._run_out_of_time)

    def stop(self) -> None:
        """End it as a deletion does: asked first, then made to."""
        if self.process is not None and self.process.poll() is None:
            self._signal(signal.SIGTERM)
            self._later(GRACE_S, lambda: self._signal(signal.SIGKILL))

    def write_downward_files(self) -> None:
        """Bring the files of downward-API volumes up to the pod's annotations."""
        for volume in self.pod["spec"].get("volumes") or ():
            for item in (volume.get("downwardAPI") or {}).get("items") or ():
                found = ANNOTATION_PATH.fullmatch(item["fieldRef"]["fieldPath"])
                if found:
                    target = self.folder / volume["name"] / item["path"]
                    target.parent.mkdir(exist_ok=True)
                    target.write_text(self.pod["metadata"]["annotations"].get(found.group(1), ""))

    def read_progress(self) -> bool:
        """Take over what the process wrote of its progress; whether that was news."""
        path = self.folder / "progress"
        said = path.read_text().strip() if path.exists() else ""
        annotations = self.pod["metadata"]["annotations"]
        if not said or annotations.get("voda.dev/progress") == said:
            return False
        annotations["voda.dev/progress"] = said
        return True

    def _later(self, delay_s: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(delay_s, act)
        timer.daemon = True
        timer.start()

    def _run_out_of_time(self) -> None:
        self._late = True
        self.stop()

    def _signal(self, number: int) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def _collect(self) -> dict[str, Any]:
        collect: dict[str, Any] = json.loads(self.pod["metadata"]["annotations"]["voda.dev/collect"])
        return collect

    def _mapped(self, text: str) -> str:
        for path, place in sorted(self._paths.items(), key=lambda pair: -len(pair[0])):
            text = text.replace(path, place)
        return text

    def _environment(self, container: Object) -> dict[str, str]:
        env: dict[str, str] = {}
        for each in container.get("env") or ():
            env[each["name"]] = expanded(str(each.get("value", "")), env)
        return env

    def _wait(self) -> None:
        assert self.process is not None
        code = self.process.wait()
        self.read_progress()
        self._signal(signal.SIGKILL)
        self._end(code if code >= 0 else 128 - code, (self.folder / "main.log").read_text())

    def _end(self, code: int, stdout: str, message: str = "") -> None:
        collect, values = self._collect(), {}
        for name, path in collect["parameters"].items():
            if path in self._paths and Path(self._paths[path]).exists():
                values[name] = Path(self._paths[path]).read_text()
        said = {"parameters": values, "result": stdout.removesuffix("\n"), "exitCode": str(code)}
        self.pod["metadata"]["annotations"]["voda.dev/outputs"] = json.dumps(said)
        terminated = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "message": message,
                      "finishedAt": format_time(datetime.now(UTC))}  # fmt: skip
        self.pod["status"] = {
            **self.pod.get("status", {}),
            "phase": "Succeeded" if code == 0 and not self._late else "Failed",
            **({"reason": "DeadlineExceeded"} if self._late else {}),
            "message": "" if code == 0 else f"Error (exit code {code})",
            "containerStatuses": [{"name": "main", "state": {"terminated": terminated}}],
        }
        self._ended()
