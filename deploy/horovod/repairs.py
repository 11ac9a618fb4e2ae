"""What is mended in the Gloo that Horovod's source release carries, before it is compiled (docs/adr/0009).

When a rank dies in the middle of a collective, Gloo (as of 2023) can leave another rank waiting for its whole time
limit, 30 seconds, in ``UnboundBuffer::waitRecv`` or ``waitSend``, although the connection in question has long
ended, or end that other rank's process. The places in ``gloo/transport/tcp/pair.cc`` that do that are each mended by
a few lines here.

A repair is a text that occurs exactly once and what takes its place: the source release is pinned by its digest, so
anything else means that the release is another, and the build stops.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

PAIR = "third_party/gloo/gloo/transport/tcp/pair.cc"


class RepairError(Exception):
    """A source is not the one that a repair was written for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """One change of one file.

    Attributes:
        path: The file, from the root of the source release.
        why: What goes wrong without it.
        before: The text that is there, exactly once.
        after: The text that takes its place.
    """

    path: str
    why: str
    before: str
    after: str


REPAIRS = (
    Repair(
        path=PAIR,
        why=(
            "A collective that failed on one connection destroys its buffers; data that another rank had sent for "
            "one of them then blocks that rank's connection for good: neither data nor its end is read any more."
        ),
        before="""\
    buf = NonOwningPtr<UnboundBuffer>(op.ubuf);
    if (!buf) {
      return -1;
    }
""",
        after="""\
    buf = NonOwningPtr<UnboundBuffer>(op.ubuf);
    if (!buf) {
      signalException(GLOO_ERROR_MSG(
          "The buffer of a failed operation is gone, closing ", peer_.str()));
      return -1;
    }
""",
    ),
    Repair(
        path=PAIR,
        why=(
            "What is left to send of a destroyed buffer stays at the head of its queue for good, and the thread of the "
            "device goes round at full speed."
        ),
        before="""\
    buf = NonOwningPtr<UnboundBuffer>(op.ubuf);
    if (!buf) {
      return false;
    }
""",
        after="""\
    buf = NonOwningPtr<UnboundBuffer>(op.ubuf);
    if (!buf) {
      signalException(GLOO_ERROR_MSG(
          "The buffer of a failed operation is gone, closing ", peer_.str()));
      return false;
    }
""",
    ),
    Repair(
        path=PAIR,
        why=(
            "A rank that failed before it asked for another's data goes on to the next operation, and that data comes "
            "for it: of a wrong length. The exception leaves through the thread of the device and ends the process."
        ),
        before="""\
  if (state_ == CONNECTED) {
    handleReadWrite(events);
    return;
  }
""",
        after="""\
  if (state_ == CONNECTED) {
    try {
      handleReadWrite(events);
    } catch (const std::exception& error) {
      if (ex_ == nullptr) {
        signalException(GLOO_ERROR_MSG(
            "Out of step, closing ", peer_.str(), ": ", error.what()));
      }
    }
    return;
  }
""",
    ),
    Repair(
        path=PAIR,
        why=(
            "Operations in the middle of being sent or received are in none of the queues that are told of an error: "
            "who waits for one of them does not hear that its connection has ended."
        ),
        before="""\
    if (op.buf != nullptr) {
      op.buf->signalException(ex);
    }
  }
""",
        after="""\
    if (op.buf != nullptr) {
      op.buf->signalException(ex);
    }
    NonOwningPtr<UnboundBuffer> sending(op.ubuf);
    if (sending) {
      sending->signalException(ex);
    }
  }

  // The operation whose payload was just being received.
  NonOwningPtr<UnboundBuffer> receiving(rx_.ubuf);
  if (receiving) {
    receiving->signalException(ex);
  }
""",
    ),
)


def digest() -> str:
    """Eight hexadecimal digits that change with any repair."""
    text = "\0".join(part for repair in REPAIRS for part in (repair.path, repair.before, repair.after))
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def apply(root: Path) -> None:
    """Mend the sources under ``root``, all or none.

    Raises:
        RepairError: A text is not there exactly once.
    """
    mended: dict[Path, str] = {}
    for repair in REPAIRS:
        path = root / repair.path
        text = mended[path] if path in mended else path.read_text(encoding="utf-8")
        found = text.count(repair.before)
        if found != 1:
            raise RepairError(
                f"{path}: expected the text of a repair once, found it {found} times; the source release is another "
                "than deploy/horovod/repairs.py was written for: look whether the repair is still needed\n"
            )
        mended[path] = text.replace(repair.before, repair.after)
    for path, text in mended.items():
        path.write_text(text, encoding="utf-8")
