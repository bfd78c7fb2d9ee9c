import io
import os
import pickle
import zipfile

import numpy as np
import pytest

from gnnperf.datasets.unpickle import load_frame_columns, load_pickle, load_torch_archive
from gnnperf.errors import DataError


class Malicious:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def archive(path, content: bytes):
    with zipfile.ZipFile(path, "w") as stream:
        stream.writestr("archive/data.pkl", content)
    return path


def test_arrays_and_builtins_are_read(tmp_path):
    content = {"a": [1, 2.5], "b": np.arange(3), "c": np.float64(4.5)}
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(content, protocol=2))
    loaded = load_pickle(path)
    assert loaded["a"] == [1, 2.5] and loaded["c"] == 4.5
    assert loaded["b"].tolist() == [0, 1, 2]
    assert load_torch_archive(archive(tmp_path / "x.pt", path.read_bytes()))["c"] == 4.5


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_malicious_pickle_is_refused_and_not_run(tmp_path, protocol):
    target = tmp_path / "made-by-pickle"
    content = pickle.dumps([1, Malicious(target)], protocol=protocol)
    (tmp_path / "x.pkl").write_bytes(content)
    with pytest.raises(DataError, match="mkdir"):
        load_pickle(tmp_path / "x.pkl")
    with pytest.raises(DataError, match="mkdir"):
        load_torch_archive(archive(tmp_path / "x.pt", content))
    assert not target.exists()


@pytest.mark.parametrize("name", ["eval", "exec", "getattr", "__import__"])
def test_builtins_that_run_code_are_refused(tmp_path, name):
    path = tmp_path / "x.pkl"
    path.write_bytes(f"cbuiltins\n{name}\n(S'1'\ntR.".encode())
    with pytest.raises(DataError, match=name):
        load_pickle(path)


def test_damaged_and_missing_files_are_refused(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps(list(range(1000)))[:-20])
    with pytest.raises(DataError, match="damaged"):
        load_pickle(path)
    with pytest.raises(DataError, match="damaged"):
        load_torch_archive(path)
    with pytest.raises(DataError, match="cannot read"):
        load_pickle(tmp_path / "absent")


def test_a_pickle_that_is_no_old_table_is_refused(tmp_path):
    path = tmp_path / "x.pkl"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(DataError, match="no table"):
        load_frame_columns(path)


def test_tensors_in_an_archive_are_refused(tmp_path):
    stream = io.BytesIO()
    pickler = pickle.Pickler(stream, protocol=2)
    pickler.persistent_id = lambda item: "storage" if item == "tensor" else None
    pickler.dump(["tensor"])
    with pytest.raises(DataError, match=r"x\.pt.*outside itself"):
        load_torch_archive(archive(tmp_path / "x.pt", stream.getvalue()))
