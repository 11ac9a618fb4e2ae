"""The authenticated conversation: what belongs to it is taken, anything else is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from voda_flows.runtime.channel import AgentHandshake, Channel, DriverHandshake, Party, read_key
from voda_flows.runtime.errors import BadEnvironment, BadMessage, Refused
from voda_flows.runtime.lines import MAX_LINE_BYTES, LineBuffer, decode, encode

KEY = b"5e" * 32
PARTY = Party(job="uid/train", segment=3, driver_uid="driver-1")


def _talk(driver_key: bytes = KEY, party: Party = PARTY, worker: str = "w0") -> tuple[Channel, Channel]:
    """Driver's and agent's channels after a handshake."""
    agent = AgentHandshake(KEY, job=PARTY.job, segment=PARTY.segment, worker="w0")
    driver = DriverHandshake(driver_key, party, worker=worker)
    proven, answer, agents_channel = agent.accept(driver.answer(agent.hello().rstrip())[:-1])
    assert proven == party
    return driver.finish(answer.rstrip()), agents_channel


def test_messages_arrive_in_both_directions() -> None:
    """What one end seals the other opens, in order."""
    driver, agent = _talk()

    there = [agent.open(driver.seal({"type": "run", "slot": number})[:-1]) for number in range(3)]
    back = driver.open(agent.seal({"type": "pong"})[:-1])

    assert (there, back) == ([{"type": "run", "slot": number} for number in range(3)], {"type": "pong"})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"driver_key": b"f0" * 32}, "not made with this job's key"),
        ({"party": Party(job="uid/other", segment=3, driver_uid="driver-1")}, "expected a driver of job 'uid/train'"),
        ({"party": Party(job="uid/train", segment=2, driver_uid="driver-1")}, "segment 3, got 'uid/train' segment 2"),
        ({"worker": "w1"}, "expected the agent of worker 'w1', got 'w0'"),
    ],
)
def test_who_is_not_of_this_job_is_refused(change: dict[str, object], says: str) -> None:
    """Another key, job, segment or worker ends the handshake, with a reason and without the key."""
    with pytest.raises(Refused, match=says) as refusal:
        _talk(**change)  # type: ignore[arg-type]

    assert KEY.decode() not in str(refusal.value)


def test_an_agent_without_the_key_is_refused_by_the_driver() -> None:
    """The proof is mutual."""
    agent = AgentHandshake(b"f0" * 32, job=PARTY.job, segment=PARTY.segment, worker="w0")
    driver = DriverHandshake(KEY, PARTY, worker="w0")
    driver.answer(agent.hello().rstrip())

    with pytest.raises(Refused, match="the agent's proof"):
        driver.finish(encode({"type": "proved", "worker": "w0", "proof": "00" * 32}).rstrip())


def test_a_proof_of_another_conversation_is_refused() -> None:
    """A recorded handshake cannot be played again: the agent draws a new nonce."""
    first = AgentHandshake(KEY, job=PARTY.job, segment=PARTY.segment, worker="w0")
    recorded = DriverHandshake(KEY, PARTY, worker="w0").answer(first.hello().rstrip())
    second = AgentHandshake(KEY, job=PARTY.job, segment=PARTY.segment, worker="w0")

    with pytest.raises(Refused, match="not made with this job's key"):
        second.accept(recorded[:-1])


def test_a_message_played_again_left_out_or_sent_back_is_refused() -> None:
    """Every message has its place in its direction of its conversation."""
    driver, agent = _talk()
    first, second = driver.seal({"type": "ping"})[:-1], driver.seal({"type": "bye"})[:-1]

    with pytest.raises(Refused, match="expected message number 0"):
        agent.open(second)
    agent.open(first)
    with pytest.raises(Refused, match="expected message number 1"):
        agent.open(first)
    with pytest.raises(Refused, match="its code does not fit"):
        driver.open(first)
    with pytest.raises(Refused, match="its code does not fit"):
        _talk()[1].open(first)


@given(st.binary(min_size=1, max_size=40), st.integers(min_value=0, max_value=200))
@settings(deadline=None)
def test_no_changed_message_is_taken(noise: bytes, place: int) -> None:
    """Whatever bytes are written over a message, it is refused or it is what was sent."""
    driver, agent = _talk()
    line = driver.seal({"type": "run", "host": "w0", "slot": 0, "command": "python train.py"})[:-1]
    changed = line[:place] + noise + line[place + len(noise) :]

    if changed == line:
        assert agent.open(changed)["type"] == "run"
    else:
        with pytest.raises(Refused):
            agent.open(changed)


@given(st.binary(max_size=300))
@settings(deadline=None)
def test_noise_instead_of_a_proof_is_refused(noise: bytes) -> None:
    """A stranger's bytes, whatever they are, end in a refusal and nothing else."""
    agent = AgentHandshake(KEY, job=PARTY.job, segment=PARTY.segment, worker="w0")

    with pytest.raises(Refused):
        agent.accept(noise)


@given(
    st.dictionaries(
        st.sampled_from(["type", "job", "segment", "driver_uid", "nonce", "proof"]),
        st.one_of(st.none(), st.integers(), st.text(max_size=20), st.just("prove"), st.lists(st.integers())),
    )
)
@settings(deadline=None)
def test_a_proof_of_the_wrong_shape_is_refused(found: dict[str, object]) -> None:
    """Fields that are missing or of another kind are a refusal too."""
    agent = AgentHandshake(KEY, job=PARTY.job, segment=PARTY.segment, worker="w0")

    with pytest.raises((Refused, BadMessage)):
        agent.accept(encode(found)[:-1])


@given(st.lists(st.binary(max_size=30)), st.integers(min_value=1, max_value=7))
def test_lines_do_not_depend_on_how_bytes_arrive(parts: list[bytes], chunk: int) -> None:
    """Lines come out whole, whatever the pieces that they came in."""
    wanted = [part for part in (part.replace(b"\n", b"") for part in parts) if part]
    stream = b"".join(part + b"\n" for part in wanted)
    buffer = LineBuffer()

    found = [line for start in range(0, len(stream), chunk) for line in buffer.feed(stream[start : start + chunk])]

    assert found == wanted


def test_a_line_has_a_limit_in_both_directions() -> None:
    """Neither a message nor a stream without an end fills the memory."""
    with pytest.raises(BadMessage, match="expected at most 65536 bytes"):
        encode({"type": "row", "row": "x" * MAX_LINE_BYTES})
    with pytest.raises(BadMessage, match="expected lines of at most 65536 bytes"):
        LineBuffer().feed(b"x" * (MAX_LINE_BYTES + 1))


@pytest.mark.parametrize("line", [b"", b"[]", b"{}", b'{"type": 1}', b"\xff", b"[" * 5000])
def test_what_is_no_message_is_said_to_be_none(line: bytes) -> None:
    """Every line is an object with a type."""
    with pytest.raises(BadMessage, match="expected a JSON object"):
        decode(line)


def test_a_key_file_must_hold_a_key(tmp_path: object) -> None:
    """Too short a key is no key; the message names the variable, not the content."""
    from pathlib import Path

    path = Path(str(tmp_path)) / "key"
    path.write_text("short")

    with pytest.raises(BadEnvironment, match=r"VODA_KEY_FILE: expected at least 16 bytes .* got 5"):
        read_key(path)
    with pytest.raises(BadEnvironment, match="VODA_KEY_FILE: expected the job's key"):
        read_key(path.with_name("absent"))
