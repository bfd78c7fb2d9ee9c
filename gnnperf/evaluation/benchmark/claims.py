"""What was published for these networks on this GPU, and over which rows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Claim:
    """A published figure.

    Attributes:
        method: name of the method.
        mape: mean absolute percentage error, a fraction.
        over: the rows that it is over, as far as the authors say.
        source: where it stands.
    """

    method: str
    mape: float
    over: str
    source: str


CLAIMS = (
    Claim(
        "ResPerfNet",
        0.084,
        "LeNet, AlexNet and VGG16 on a GTX 1080 Ti; networks as sums of layers. The rows were not published: the "
        "authors' layer times of these networks (layer-sum here) are the nearest to them",
        "Wang et al., ResPerfNet: Deep Residual Learning for Regressional Performance Modeling of Deep Neural "
        "Networks, arXiv 2012.01671, abstract",
    ),
    Claim(
        "PerfNetV2",
        0.131,
        "LeNet, AlexNet and VGG16 on a GTX 1080 Ti; networks as sums of layers. The rows were not published; none of "
        "those here is known to be among them",
        "Wang et al., Toward Accurate Platform-Aware Performance Modeling for Deep Neural Networks, arXiv 2012.00211, "
        "abstract",
    ),
)
"""No row here is known to be one of theirs, so these figures are no column of a table."""
