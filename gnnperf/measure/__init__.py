"""Time real networks on this machine, in rows that `gnnperf data import` and `gnnperf adapt` read."""
