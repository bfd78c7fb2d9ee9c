"""Every method on the same measurements: what is published, what is obvious, and gnnperf."""
