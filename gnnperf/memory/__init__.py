"""Peak memory of an inference or a training step, part by part, from an operator graph and without running it."""

from gnnperf.memory.estimate import MemoryEstimate, MemoryModel, estimate_memory
from gnnperf.memory.saved import saved_for_backward_bytes

__all__ = ["MemoryEstimate", "MemoryModel", "estimate_memory", "saved_for_backward_bytes"]
