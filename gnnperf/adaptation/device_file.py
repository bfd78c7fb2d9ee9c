"""The device file that an adaptation ends in: the description that it started from, and the scales."""

from __future__ import annotations

from pathlib import Path

from gnnperf.devices import Device
from gnnperf.devices.correction import Correction, split_correction
from gnnperf.devices.flat_yaml import read_flat_yaml
from gnnperf.devices.user_file import read_device_file
from gnnperf.errors import DeviceError
from gnnperf.files import write_whole

_HEAD = """\
# Made by `gnnperf adapt`. Scales are factors on parts of every prediction for the device: docs/adaptation.md. They mean
# nothing for another predictor than the one that they were fitted for.
"""


def write_adapted(device: Device, source: str, correction: Correction, output: Path) -> Device:
    """Write ``output``, which ``--device`` takes everywhere.

    Args:
        device: what was adapted.
        source: how the user named it: a registered device, or a file whose other keys are kept.
        correction: what was fitted.
        output: the file.

    Returns:
        The device that the file describes.

    Raises:
        DeviceError: the file cannot be written.
    """
    import yaml

    if device.source.startswith("user file"):
        values, _ = split_correction(read_flat_yaml(Path(source)), source)
    else:
        values = {"name": f"{device.name}, adapted", "base": device.slug}
    text = yaml.safe_dump(values | correction.to_keys(), sort_keys=False, allow_unicode=True)
    try:
        write_whole(output, (_HEAD + text).encode())
    except OSError as error:
        raise DeviceError(f"cannot write {output}: {error.strerror or error}") from None
    return read_device_file(output)
