import os

import pytest

from probes.kernel_log import kernel_messages
from probes.parts import UnavailableError

RECORDS = b"6,1,100,-;first\n SUBSYSTEM=pci\n DEVICE=+pci:0000\n3,2,200,-;second; with more\n"


def log(root, content=RECORDS):
    (root / "dev").mkdir()
    (root / "dev/kmsg").write_bytes(content)
    return root


def test_messages_without_their_prefixes_and_key_values(tmp_path):
    assert kernel_messages(log(tmp_path)) == ["first", "second; with more"]


@pytest.mark.parametrize("content", [b"", b"no prefix\n", b"\xff\xfe;\xff\n", b"1,2"])
def test_garbage_is_no_error(tmp_path, content):
    assert len(kernel_messages(log(tmp_path, content))) <= 1


def test_a_log_longer_than_a_read(tmp_path):
    lines = b"".join(b"6,%d,1,-;message %d\n" % (i, i) for i in range(5000))
    assert kernel_messages(log(tmp_path, lines))[-1] == "message 4999"


def test_a_log_that_is_hidden_is_unavailable(tmp_path):
    with pytest.raises(UnavailableError, match="No such file"):
        kernel_messages(tmp_path)
    (tmp_path / "dev/kmsg").mkdir(parents=True)
    with pytest.raises(UnavailableError, match="directory"):
        kernel_messages(tmp_path)


def test_the_end_of_the_log_is_not_waited_for(tmp_path):
    """As of ``/dev/kmsg``: a pipe with a writer gives what it has, and would wait for more."""
    (tmp_path / "dev").mkdir()
    os.mkfifo(tmp_path / "dev/kmsg")
    pipe = os.open(tmp_path / "dev/kmsg", os.O_RDWR | os.O_NONBLOCK)
    try:
        os.write(pipe, RECORDS)
        assert kernel_messages(tmp_path) == ["first", "second; with more"]
    finally:
        os.close(pipe)


def test_this_machines_log_is_read_or_refused_but_not_waited_for():
    try:
        messages = kernel_messages()
    except UnavailableError:
        return  # most containers hide it
    assert messages
