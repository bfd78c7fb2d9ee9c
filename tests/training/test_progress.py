"""What a user sees of a run, in a terminal and in a log file."""

import io
from types import SimpleNamespace

from rich.console import Console

from gnnperf.training.progress import TrainingBar


def watch(terminal, steps=40, metrics=None):
    console = Console(file=io.StringIO(), force_terminal=terminal, width=100)
    bar = TrainingBar(console)
    trainer = SimpleNamespace(max_steps=steps, global_step=0, callback_metrics=metrics or {"loss": 0.5, "mape": 20.0})
    bar.on_train_start(trainer, None)
    for step in range(1, steps + 1):
        trainer.global_step = step
        bar.on_train_batch_end(trainer)
    bar.on_train_end(trainer, None)
    return console.file.getvalue()


def test_a_terminal_gets_a_bar_with_figures_and_time_left():
    text = watch(terminal=True)
    assert "40/40" in text and "loss 0.500  mape 20.0 %" in text and "left" in text


def test_a_log_file_gets_twenty_plain_lines():
    lines = watch(terminal=False).splitlines()
    assert len(lines) == 20 and lines[0] == "step 2 of 40: loss 0.500  mape 20.0 %"
    assert len(watch(terminal=False, steps=3).splitlines()) == 3


def test_steps_without_whole_models_have_no_mape():
    text = watch(terminal=False, metrics={"loss": 0.25, "mape": float("nan")})
    assert "loss 0.250" in text and "mape" not in text
