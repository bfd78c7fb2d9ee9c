"""Options for the conditions that a prediction is for."""

from __future__ import annotations

from typing import Annotated

import typer

from gnnperf.conditions import Optimizer, Precision, Stack, Window

PrecisionOption = Annotated[Precision, typer.Option(help="Number format.")]
StackOption = Annotated[
    Stack, typer.Option(metavar="STACK", help=f"Framework that would run the network: {', '.join(Stack)}.")
]
WindowOption = Annotated[
    Window, typer.Option(metavar="WINDOW", help=f"What the timed window includes: {', '.join(Window)}.")
]
OptimizerOption = Annotated[
    Optimizer,
    typer.Option(metavar="OPTIMIZER", help=f"Update that a training step ends with: {', '.join(Optimizer)}."),
]
