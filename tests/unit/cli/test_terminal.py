"""The command on terminals of all kinds, in pipes, without a locale, and interrupted: as people run it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.unit.cli.test_verbs import running
from tests.unit.cli.world import World
from tests.unit.report.world import Building

PROGRAM = [sys.executable, "-c", "from voda_flows.cli import main; main()"]
END = "--- end"
#: Several command lines in one process, which takes the time of one to start; each is followed by a mark.
ONE_AFTER_ANOTHER = [
    sys.executable,
    "-c",
    f"""
import sys
from voda_flows.cli import run
for line in sys.argv[1:]:
    code = run(line.split())
    print({END!r}, flush=True)
    if code:
        sys.exit(code)
""",
]
ESCAPE = "\x1b"
LIMIT_S = 60


def environment(world: World, **more: str) -> dict[str, str]:
    """A plain environment in which this world is found."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "TERM")}
    return {**kept, "VODA_HOME": str(world.home), "TERM": "xterm-256color", **more}


def on_terminal(
    world: World,
    *arguments: str,
    program: list[str] = PROGRAM,
    columns: int = 80,
    settings: dict[str, str] | None = None,
) -> str:
    """What a command shows on a terminal of so many columns."""
    own, other = pty.openpty()
    fcntl.ioctl(own, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = subprocess.Popen([*program, *arguments], stdin=other, stdout=other, stderr=other,
                               env=environment(world, **(settings or {})), close_fds=True)  # fmt: skip
    os.close(other)
    shown = b""
    try:
        while part := os.read(own, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    finally:
        os.close(own)
    assert process.wait(LIMIT_S) == 0, shown
    return shown.decode().replace("\r\n", "\n")


@pytest.fixture
def busy(world: World) -> World:
    """A world with a job that trains, and one that waits for a reason that takes long to say."""
    world.add(running())
    world.add(Building(name="rigid-with-a-rather-long-name", submitted=5).say("place 1 of 1; waits for 2 GPUs on n1"))
    return world


def test_a_terminal_has_colours_unless_told_otherwise(busy: World) -> None:
    """NO_COLOR and TERM=dumb: not one escape code; the words are the same."""
    coloured = on_terminal(busy, "list")

    assert ESCAPE in coloured
    for setting in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        shown = on_terminal(busy, "list", settings=setting)
        assert ESCAPE not in shown
        assert shown.split()[:7] == re.sub(r"\x1b\[[0-9;]*m", "", coloured).split()[:7]


@pytest.mark.parametrize("columns", [40, 60])
def test_no_line_is_longer_than_the_terminal_is_wide(busy: World, columns: int) -> None:
    """Whatever the width: what matters most is there, what does not fit is left out or goes on below."""
    verbs = ("list -o wide", "get digits", "queue", "nodes", "top --once", "events", "watch --once")
    shown = on_terminal(busy, *verbs, program=ONE_AFTER_ANOTHER, columns=columns, settings={"NO_COLOR": "1"})
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown.replace("\r", "\n"))
    lines_by_verb = dict(zip(verbs, (part.splitlines() for part in plain.split(f"{END}\n")), strict=False))

    assert [verb for verb, lines in lines_by_verb.items() if max(map(len, lines)) > columns] == []
    assert [verb for verb, lines in lines_by_verb.items() if not any("digits" in line for line in lines)] == ["queue"]
    assert len(lines_by_verb) == len(verbs) == plain.count(END)


def test_a_narrow_watch_keeps_phase_gpus_and_progress(busy: World) -> None:
    """On 45 columns every field that is shown is shown whole."""
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", on_terminal(busy, "watch", "--once", columns=45))

    assert re.search(r"digits +Running +2/1-4 +25% ", shown), shown
    assert re.search(r"rigid…name +Queued +0/1-4 +0% ", shown), shown


def test_a_reader_that_leaves_ends_it_quietly(busy: World) -> None:
    """As `voda list | head -1`: exit 0, and not a word on stderr."""
    for arguments in (["list"], ["--help"], ["get", "digits", "-o", "json"], ["completion", "zsh"]):
        read, write = os.pipe()
        os.close(read)
        ended = subprocess.run([*PROGRAM, *arguments], stdout=write, stderr=subprocess.PIPE, check=False,
                               env=environment(busy), timeout=LIMIT_S)  # fmt: skip
        os.close(write)

        assert (ended.returncode, ended.stderr) == (0, b""), arguments


@pytest.mark.parametrize(
    "arguments",
    [["watch"], ["logs", "digits", "-f"], ["events", "-f"], ["wait", "digits"], ["top", "--interval", "1h"]],
)
def test_ctrl_c_ends_with_130_and_no_traceback(busy: World, arguments: list[str]) -> None:
    """While it waits: 130, as a shell has it."""
    busy.log("digits-driver-0", "hello\n")
    told = "import sys, signal, threading; from voda_flows.cli import run; import voda_flows.local.store as store\n"
    # The signal comes when it waits for the first time: nothing is measured by a clock.
    told += f"import os, time; pid = {os.getpid()}; wait, sleep = store.LocalStore.wait, time.sleep\n"
    told += "def interrupt(*_): signal.raise_signal(signal.SIGINT)\n"
    told += "store.LocalStore.wait = interrupt; time.sleep = interrupt\n"
    told += "sys.exit(run(sys.argv[1:]))"
    ended = subprocess.run([sys.executable, "-c", told, *arguments], capture_output=True, text=True, check=False,
                           env=environment(busy), timeout=LIMIT_S)  # fmt: skip

    assert ended.returncode == 128 + signal.SIGINT, ended
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "setting",
    [{"LANG": "C"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, {"PYTHONIOENCODING": "ascii"}],
)
def test_without_a_locale_every_text_is_printed(busy: World, setting: dict[str, str]) -> None:
    """Signs that a stream does not have are drawn with others; nothing fails."""
    for arguments in (["get", "digits", "-o", "wide"], ["list"], ["watch", "--once"], ["--help"]):
        ended = subprocess.run([*PROGRAM, *arguments], capture_output=True, check=False,
                               env=environment(busy, **setting), timeout=LIMIT_S)  # fmt: skip

        assert (ended.returncode, ended.stderr) == (0, b""), arguments


def test_all_is_asked_for_and_refused_where_nobody_can_answer(busy: World) -> None:
    """`--all` without --yes and without a terminal: exit 2, and nothing is done."""
    for verb in ("delete", "stop"):
        ended = subprocess.run([*PROGRAM, verb, "--all"], capture_output=True, text=True, check=False,
                               env=environment(busy), stdin=subprocess.DEVNULL, timeout=LIMIT_S)  # fmt: skip

        assert (ended.returncode, ended.stdout) == (2, "")
        assert f"expected --yes where nobody can be asked whether to {verb} 2 jobs" in ended.stderr
    assert all("deletionTimestamp" not in body["metadata"] for body in busy.store.list("Workflow"))


@pytest.mark.parametrize(("answer", "code", "gone"), [("y\n", 0, True), ("n\n", 1, False)])
def test_all_is_done_when_the_answer_is_yes(busy: World, answer: str, code: int, gone: bool) -> None:
    """On a terminal it is asked, naming how many and which."""
    own, other = pty.openpty()
    process = subprocess.Popen([*PROGRAM, "delete", "--all", "--no-wait"], stdin=other, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, env=environment(busy), text=True)  # fmt: skip
    os.close(other)
    os.write(own, answer.encode())
    _, err = process.communicate(timeout=LIMIT_S)
    os.close(own)

    assert process.returncode == code, err
    assert "delete 2 jobs (digits, rigid-with-a-rather-long-name)?" in err
    assert {"deletionTimestamp" in body["metadata"] for body in busy.store.list("Workflow")} == {gone}


def test_bash_completes_verbs_jobs_nodes_and_policies(busy: World, tmp_path: Path) -> None:
    """The script that `voda completion bash` prints, run by bash as it runs it for a person who presses Tab."""
    program = tmp_path / "voda"
    program.write_text(f"#!/bin/sh\nexec {sys.executable} -c 'from voda_flows.cli import main; main()' \"$@\"\n")
    program.chmod(0o755)
    lines = {
        "voda sub": "submit",
        "voda get di": "digits",
        "voda get @la": "latest",
        "voda list --status Running,que": "Running,Queued",
        "voda nodes n": "n0",
        "voda up --set policy=ela": "elastic_fifo",
        "voda up --set deci": "decide_interval_s=",
        "voda list -n de": "default",
    }
    script = 'compopt() { :; }; eval "$(voda completion bash)"\n' + "".join(
        f"COMPREPLY=(); COMP_LINE={line!r}; COMP_POINT=${{#COMP_LINE}}; COMP_WORDS=($COMP_LINE); "
        f'COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _voda_completion voda; printf "%s\\n" "${{COMPREPLY[0]}}"\n'
        for line in lines
    )
    ended = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=False, timeout=LIMIT_S * 2,
                           env=environment(busy, PATH=f"{tmp_path}:{os.environ['PATH']}"))  # fmt: skip

    assert dict(zip(lines, ended.stdout.splitlines(), strict=False)) == lines, ended.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_asks_and_is_answered(busy: World, shell: str) -> None:
    """The protocol of each shell's script: words and cursor in, what fits out."""
    asked = {
        "COMP_WORDS": "voda get di",
        "COMP_CWORD": "di" if shell == "fish" else "2",
        "_VODA_COMPLETE": f"{shell}_complete",
    }
    ended = subprocess.run(PROGRAM, capture_output=True, text=True, check=False, timeout=LIMIT_S,
                           env=environment(busy, **asked))  # fmt: skip

    assert "digits" in ended.stdout
    assert "_VODA_COMPLETE" in busy.voda("completion", shell).out
