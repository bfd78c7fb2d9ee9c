"""How an analytic model of the forward pass is carried over to the other phases."""

from __future__ import annotations

from gnnperf.conditions import Phase

FORWARD_PASSES = {Phase.INFERENCE: 1.0, Phase.FORWARD: 1.0, Phase.BACKWARD: 2.0, Phase.TRAINING: 3.0}
"""Forward passes that a phase is worth: gradients of inputs and of weights cost about a forward pass each."""
