"""What one execution of an operator costs: class, multiply-accumulates, operations, bytes, matrix product."""

from gnnperf.graph.costs.describe import describe, total_cost

__all__ = ["describe", "total_cost"]
