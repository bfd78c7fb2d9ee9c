"""A file is complete, or what it was before; links, devices and pipes stay what they are."""

import os

import pytest

from gnnperf.files import write_whole


def test_a_file_is_written_and_replaced_and_nothing_else_is_left(tmp_path):
    path = tmp_path / "a"
    write_whole(path, b"1")
    write_whole(path, b"22")
    assert path.read_bytes() == b"22" and os.listdir(tmp_path) == ["a"]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "target").write_bytes(b"old")
    (tmp_path / "link").symlink_to("target")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "target").read_bytes() == b"new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes with a name here")
def test_a_pipe_stays_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="no file"):
        write_whole(tmp_path / "pipe", b"new")
    assert (tmp_path / "pipe").is_fifo() and os.listdir(tmp_path) == ["pipe"]
