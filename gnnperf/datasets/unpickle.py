"""Reading other people's pickles without running anything they name.

A pickle is a program: loading one calls whatever it names. Here it may name numpy's array constructors, and pandas'
containers, which are replaced by inert records of the state stored for them. Anything else ends in a DataError
before it is called.
"""

from __future__ import annotations

import pickle
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
from numpy._core import multiarray

from gnnperf.errors import DataError


class _Record:
    """Stands in for a pandas object: keeps the state that was stored, does nothing."""

    def __new__(cls, *args: object, **kwargs: object) -> _Record:
        return object.__new__(cls)

    def __init__(self, *args: object, **kwargs: object) -> None:
        self.state: object = None

    def __setstate__(self, state: object) -> None:
        self.state = state


def _new_index(cls: type, state: object) -> _Record:
    record = _Record()
    record.state = state
    return record


def _encode(text: str, encoding: str = "latin1") -> bytes:
    """Python 2 strings travel as text; numpy asks for their bytes back."""
    if encoding not in ("latin1", "latin-1"):
        raise DataError(f"the pickle asks for the text encoding {encoding!r}, which is not read here")
    return text.encode("latin1")


_ALLOWED: dict[tuple[str, str], object] = {
    ("numpy", "ndarray"): np.ndarray,
    ("numpy", "dtype"): np.dtype,
    ("numpy.core.multiarray", "_reconstruct"): multiarray._reconstruct,
    ("numpy.core.multiarray", "scalar"): multiarray.scalar,
    ("numpy._core.multiarray", "_reconstruct"): multiarray._reconstruct,
    ("numpy._core.multiarray", "scalar"): multiarray.scalar,
    ("_codecs", "encode"): _encode,
    ("builtins", "slice"): slice,
    ("__builtin__", "slice"): slice,  # Python 2
    ("pandas.core.frame", "DataFrame"): _Record,
    ("pandas.core.internals", "BlockManager"): _Record,
    ("pandas.core.indexes.base", "Index"): _Record,
    ("pandas.core.indexes.base", "_new_Index"): _new_index,
    ("pandas.core.indexes.range", "RangeIndex"): _Record,
}


class _RestrictedUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> object:
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise DataError(f"the pickle asks for {module}.{name}, which measurement files have no need of") from None

    def persistent_load(self, pid: object) -> object:
        raise DataError("the pickle refers to data outside itself (tensor storage), which is not read here")


def _load(stream: object, path: Path) -> object:
    try:
        return _RestrictedUnpickler(stream, encoding="latin1").load()
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    except Exception as error:  # a damaged pickle fails in as many ways as there are opcodes
        raise DataError(f"{path} is damaged or no pickle: {error}") from None


def load_pickle(path: Path) -> object:
    """Content of a pickle that holds builtins and numpy arrays.

    Raises:
        DataError: the file is missing or damaged, or names anything that is not on the list above.
    """
    try:
        with path.open("rb") as stream:
            return _load(stream, path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def load_torch_archive(path: Path) -> object:
    """Content of a file written by ``torch.save`` that holds builtins and numpy scalars, no tensors.

    The zip container is opened directly, so torch is not imported.

    Raises:
        DataError: the file is missing or damaged, or holds anything else.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if name.endswith("data.pkl")]
            if len(members) != 1:
                raise DataError(f"{path} is no archive written by torch.save")
            with archive.open(members[0]) as stream:
                return _load(stream, path)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except zipfile.BadZipFile:
        raise DataError(f"{path} is damaged or no archive written by torch.save") from None


def load_frame_columns(path: Path) -> pd.DataFrame:
    """A DataFrame that pandas 0.2x pickled under Python 2, rebuilt from its numpy blocks.

    Raises:
        DataError: the file is missing, damaged, or laid out in another way.
    """
    record = load_pickle(path)
    try:
        axes, _, _, extra = record.state["_data"].state
        names = axes[0].state["data"]
        columns = {}
        for block in extra["0.14.1"]["blocks"]:
            columns.update(zip(names[block["mgr_locs"]], block["values"], strict=True))
        return pd.DataFrame({name: columns[name] for name in names})
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        raise DataError(f"{path} is a pickle, but no table as pandas 0.2x wrote them") from None
