"""Rows of layers, made."""

import numpy as np
import pytest

from gnnperf.datasets.schema import Kind, measurements


@pytest.fixture(scope="session")
def layer_rows():
    """Function that makes rows of layers from their specifications; every other argument is one value or a sequence."""

    def make(specs, batch=4, optimizer="none", latency_ms=1.0, source="justus2018", device="1080ti", citation="made"):
        optimizer = np.broadcast_to(optimizer, len(specs))
        return measurements(
            source=source, model=list(specs), device=np.broadcast_to(device, len(specs)), stack="tensorflow-1",
            kind=Kind.LAYER, citation=citation, batch=np.broadcast_to(batch, len(specs)),
            latency_ms=np.broadcast_to(latency_ms, len(specs)), optimizer=optimizer,
            phase=np.where(optimizer == "none", "inference", "training"),
        )  # fmt: skip

    return make
