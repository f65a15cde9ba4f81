"""The kernel log, as far as this process may read it. May import probes.parts."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

from probes.parts import UnavailableError

RECORD_BYTES = 8192
"""``/dev/kmsg`` gives one record a read and refuses a buffer smaller than it (kernel: CONSOLE_EXT_LOG_MAX)."""

MOST_BYTES = 64 * 2**20
"""No kernel keeps a longer log; a guard against a file that never ends."""


def kernel_messages(root: Path = Path("/")) -> list[str]:
    """Messages since boot, oldest first, without their prefixes.

    Raises
    ------
    UnavailableError
        If the log is hidden or not permitted, as in most containers.
    """
    path = root / "dev/kmsg"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError as error:
        raise UnavailableError(f"the kernel log cannot be read here ({error.strerror})") from None
    try:
        text = b"".join(_records(descriptor)).decode(errors="replace")
    except OSError as error:
        raise UnavailableError(f"the kernel log cannot be read here ({error.strerror})") from None
    finally:
        os.close(descriptor)
    # Records are "priority,sequence,microseconds,flags;message"; lines that begin with a space are their key-values.
    return [line.partition(";")[2] for line in text.splitlines() if ";" in line and not line.startswith(" ")]


def _records(descriptor: int) -> Iterator[bytes]:
    total = 0
    while total < MOST_BYTES:
        try:
            record = os.read(descriptor, RECORD_BYTES)
        except BlockingIOError:  # the newest record was read
            return
        except OSError as error:
            if error.errno == errno.EPIPE:  # the kernel overwrote the record meanwhile: read on
                continue
            raise
        if not record:
            return
        total += len(record)
        yield record
