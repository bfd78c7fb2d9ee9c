"""A run gives the same weights however often it is stopped, and a broken one leaves one clear line."""

import pickle
import signal

import pytest
import torch
from lightning.pytorch.callbacks import Callback
from safetensors.torch import load_file

from gnnperf.errors import TrainingError
from gnnperf.training import checkpoint, predictor_files
from gnnperf.training.checkpoint import CHECKPOINT_FILE, Interrupted
from gnnperf.training.config import TrainingConfig
from gnnperf.training.fit import fit, train_network
from gnnperf.training.module import LatencyModule
from gnnperf.training.predictor_files import WEIGHTS_FILE
from gnnperf.training.split import split_rows

STEPS = 12


def config(**optimisation) -> TrainingConfig:
    batch = {"model": 4, "search_space": 2, "layer": 2, "unlabelled": 0}
    return TrainingConfig(
        name="tiny",
        network={"depth": 1, "width": 8, "local_width": 8, "dropout": 0.2},
        optimisation={"steps": STEPS, "batch": batch} | optimisation,
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """Checkpoints every five steps, and no export, which takes longer than all steps."""
    monkeypatch.setattr(checkpoint, "_EVERY_STEPS", 5)
    monkeypatch.setattr(predictor_files, "export_network", lambda network, path: path.write_bytes(b"network"))


class At(Callback):
    """Does something at the end of a step."""

    def __init__(self, step, action):
        self.step, self.action, self.seen = step, action, []

    def on_train_batch_end(self, trainer, *_):
        self.seen.append(trainer.global_step)
        if trainer.global_step == self.step:
            self.action()


def crash():
    raise RuntimeError("power failure")


def interrupt():
    signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def uninterrupted(tiny_dataset, tmp_path_factory):
    """Weights of a run in one piece."""
    folder = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(predictor_files, "export_network", lambda network, path: path.write_bytes(b"network"))
        fit(config(), tiny_dataset, folder)
    return load_file(folder / WEIGHTS_FILE)


def assert_same(weights, expected):
    assert weights.keys() == expected.keys()
    for name, tensor in expected.items():
        assert torch.equal(weights[name], tensor), name


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(tiny_dataset, tmp_path, uninterrupted):
    torch.manual_seed(123)  # what happened before does not matter, nor do threads
    torch.set_num_threads(2)
    fit(config(), tiny_dataset, tmp_path / "again")
    assert torch.get_num_threads() == 2
    assert_same(load_file(tmp_path / "again" / WEIGHTS_FILE), uninterrupted)
    fit(config().model_copy(update={"seed": 1}), tiny_dataset, tmp_path / "other")
    other = load_file(tmp_path / "other" / WEIGHTS_FILE)
    assert not torch.equal(other["encoder.weight"], uninterrupted["encoder.weight"])


def test_training_without_a_folder_gives_the_same_weights(tiny_dataset, uninterrupted):
    split = split_rows(tiny_dataset.frame, config().data, config().seed)
    assert_same(train_network(config(), tiny_dataset, split).state_dict(), uninterrupted)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_training_without_a_folder_ends_with_what_a_callback_raises(tiny_dataset, error):
    def stop():
        raise error

    split = split_rows(tiny_dataset.frame, config().data, config().seed)
    with pytest.raises(error):
        train_network(config(), tiny_dataset, split, callbacks=(At(3, stop),))


@pytest.mark.parametrize("step", [2, 7, 10])
def test_ctrl_c_and_the_same_command_again_give_the_same_weights(tiny_dataset, tmp_path, uninterrupted, step):
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Interrupted, match=f"after step {step + 1} of {STEPS}"):
        fit(config(), tiny_dataset, tmp_path, callbacks=(At(step, interrupt),))
    assert signal.getsignal(signal.SIGINT) is before
    assert not (tmp_path / WEIGHTS_FILE).exists()
    rest = At(-1, None)
    fit(config(), tiny_dataset, tmp_path, callbacks=(rest,))
    assert rest.seen == list(range(step + 2, STEPS + 1))
    assert_same(load_file(tmp_path / WEIGHTS_FILE), uninterrupted)


def test_a_crash_loses_at_most_the_steps_since_the_last_checkpoint(tiny_dataset, tmp_path, uninterrupted):
    with pytest.raises(RuntimeError, match="power failure"):
        fit(config(), tiny_dataset, tmp_path, callbacks=(At(8, crash),))
    rest = At(-1, None)
    fit(config(), tiny_dataset, tmp_path, callbacks=(rest,))
    assert rest.seen == list(range(6, STEPS + 1))
    assert_same(load_file(tmp_path / WEIGHTS_FILE), uninterrupted)


def test_settling_moves_effects_of_other_devices_alone_and_can_be_resumed(tiny_dataset, tmp_path):
    def run(settle_steps, *callbacks, folder="."):
        focus = {"devices": ["1080ti"], "start": 0.5, "weight": 1000, "settle_steps": settle_steps}
        fit(config(focus=focus), tiny_dataset, tmp_path / folder, callbacks=callbacks)
        return load_file(tmp_path / folder / WEIGHTS_FILE)

    before, after = run(0, folder="0"), run(8, folder="8")
    effects = {name: before.pop(name) for name in ("effects.device", "effects.campaign")}
    settled = {name: after.pop(name) for name in effects}
    assert_same(after, before)
    device, campaign = (settled[name] - effects[name] for name in effects)
    assert device[:2].abs().max() == 0 and device[2].abs().max() > 0.01  # none, GTX 1080 Ti, V100
    assert effects["effects.device"][:, 2:].abs().max() == 0 and device[2, 2].abs() > 0  # backward passes
    moved = campaign.abs().amax((1, 2)) > 0
    assert moved.tolist() == [False, False, False, True, False]  # nor do search spaces

    with pytest.raises(RuntimeError, match="power failure"):
        run(8, At(STEPS + 4, crash), folder="crashed")
    again = At(-1, None)
    resumed = run(8, again, folder="crashed")
    assert again.seen[0] == STEPS + 4  # the checkpoint of step 15
    assert_same(resumed, after | settled)


def test_a_second_ctrl_c_ends_at_once(tiny_dataset, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fit(config(), tiny_dataset, tmp_path, callbacks=(At(3, lambda: (interrupt(), interrupt())),))


def test_a_finished_run_is_not_repeated_but_its_files_are_written_anew(tiny_dataset, tmp_path):
    fit(config(steps=3), tiny_dataset, tmp_path)
    weights = load_file(tmp_path / WEIGHTS_FILE)
    description = (tmp_path / "predictor.json").read_text()
    for name in (WEIGHTS_FILE, "network.onnx", "predictor.json"):
        (tmp_path / name).unlink()
    again = At(-1, None)
    fit(config(steps=3), tiny_dataset, tmp_path, callbacks=(again,))
    assert again.seen == []
    assert_same(load_file(tmp_path / WEIGHTS_FILE), weights)
    assert (tmp_path / "predictor.json").read_text() == description
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        CHECKPOINT_FILE, "measured.json", "network.onnx", "predictor.json", WEIGHTS_FILE,
    ]  # fmt: skip


def test_a_checkpoint_of_another_run_is_refused(tiny_dataset, tmp_path):
    fit(config(steps=1), tiny_dataset, tmp_path)
    for other in (config(steps=2), config(steps=1).model_copy(update={"seed": 5})):
        with pytest.raises(TrainingError, match="another configuration"):
            fit(other, tiny_dataset, tmp_path)


@pytest.mark.parametrize("content", [b"", b"not a checkpoint", None, "cut", "foreign"])
def test_a_damaged_or_foreign_checkpoint_is_refused_in_one_line(tiny_dataset, tmp_path, content):
    path = tmp_path / CHECKPOINT_FILE
    if content is None:
        path.mkdir()
    elif content == "cut":
        fit(config(steps=1), tiny_dataset, tmp_path)
        path.write_bytes(path.read_bytes()[:-2000])
    elif content == "foreign":
        torch.save({"state_dict": {}, "global_step": 3}, path)
    else:
        path.write_bytes(content)
    with pytest.raises(TrainingError, match=r"no checkpoint of `gnnperf train`, or damaged.*delete it") as error:
        fit(config(steps=1), tiny_dataset, tmp_path)
    assert "\n" not in str(error.value)


class Malicious:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("save", [torch.save, lambda value, path: path.write_bytes(pickle.dumps(value))])
def test_a_checkpoint_that_would_run_code_is_refused_and_does_not(tiny_dataset, tmp_path, save):
    trace = tmp_path / "trace"
    save({"identity": Malicious(str(trace)), "global_step": 1, "seconds": 1.0, "state_dict": {}},
         tmp_path / CHECKPOINT_FILE)  # fmt: skip
    with pytest.raises(TrainingError, match="no checkpoint"):
        fit(config(steps=1), tiny_dataset, tmp_path)
    assert not trace.exists()


def test_a_folder_that_cannot_be_written_is_named(tiny_dataset, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match=f"cannot write to {tmp_path / 'file'}"):
        fit(config(steps=1), tiny_dataset, tmp_path / "file")


def test_a_full_disk_is_one_line(tiny_dataset, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(predictor_files, "write_whole", full)
    with pytest.raises(TrainingError, match="No space left"):
        fit(config(steps=1), tiny_dataset, tmp_path)


def test_a_loss_that_is_no_number_stops_the_run_without_a_predictor(tiny_dataset, tmp_path, monkeypatch):
    original = LatencyModule.training_step

    def broken(self, step, number):
        return original(self, step, number) * (float("nan") if self.global_step == 3 else 1)

    monkeypatch.setattr(LatencyModule, "training_step", broken)
    with pytest.raises(TrainingError, match="no longer finite at step 3"):
        fit(config(), tiny_dataset, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_weights_that_are_no_numbers_are_never_written(tiny_dataset, tmp_path):
    class Overflow(Callback):
        def on_train_end(self, trainer, module):
            module.network.log_overlap.data.fill_(float("inf"))

    with pytest.raises(TrainingError, match="no longer finite"):
        fit(config(steps=1), tiny_dataset, tmp_path, callbacks=(Overflow(),))
    assert not (tmp_path / WEIGHTS_FILE).exists()


def test_training_lowers_the_error(tiny_dataset, tmp_path):
    class Mapes(Callback):
        values = []

        def on_train_batch_end(self, trainer, *_):
            self.values.append(float(trainer.callback_metrics["mape"]))

    mapes = Mapes()
    fit(config(steps=40, learning_rate=5e-3, physics_learning_rate=2e-2), tiny_dataset, tmp_path, callbacks=(mapes,))
    assert sum(mapes.values[-5:]) < 0.6 * sum(mapes.values[:5])


def test_nothing_is_printed(tiny_dataset, tmp_path, capfd):
    fit(config(steps=2), tiny_dataset, tmp_path)
    assert capfd.readouterr() == ("", "")


def test_the_domain_describes_the_rows_trained_on(tiny_dataset):
    from gnnperf.training.predictor_files import training_domain

    frame = tiny_dataset.frame[tiny_dataset.frame["model"].isin(["resnet18", "squeezenet1_1", "dense/c512-f1000"])]
    domain = training_domain(frame, tiny_dataset.graphs)
    assert domain.batch == (1, 8) and domain.devices == ("1080ti", "v100-pcie-32gb")
    assert domain.phases == ("inference", "training") and domain.precisions == ("fp32",)
    assert domain.macs[0] == pytest.approx(0.35e9, rel=0.02) and domain.macs[1] == pytest.approx(8 * 1.81e9, rel=0.01)
    assert {"conv", "pooling"} <= set(domain.op_classes) and "depthwise_conv" not in domain.op_classes
