"""``python -m gnnperf``."""

from gnnperf.cli.main import main

main()
