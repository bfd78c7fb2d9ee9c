"""Errors that a user can act on: the command line prints their message as one line and exits non-zero."""


class GnnperfError(Exception):
    """Base of every error that is caused by what the user gave, not by a defect of gnnperf."""


class ModelFileError(GnnperfError):
    """The ONNX file cannot be read, or the shapes asked for do not fit it."""


class DeviceError(GnnperfError):
    """The device is unknown, or its description is invalid."""


class DataError(GnnperfError):
    """A measurement table, a raw source or a graph store is missing, incomplete or invalid."""


class TrainingError(GnnperfError):
    """A training configuration or a checkpoint is invalid."""


class MeasureError(GnnperfError):
    """A network cannot be run or timed on this machine."""


class TuningError(GnnperfError):
    """A study or its storage cannot be used."""


class ResultsError(GnnperfError):
    """A table of predictions cannot be written, or a run not be gone on with."""
