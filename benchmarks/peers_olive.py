"""The script that Olive loads: net, example, fresh inputs with labels, and settings of a workflow.

Olive imports it by its path; the environment names the net. A label is the greatest element of
eager torch's last output (its sign, if there is but one), so that accuracy is agreement with it.
"""

import inspect
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from benchmarks.peers_ways import NET, NETS, Case

NUM_SAMPLES = 8
SEARCH_S = 200
DATA = "fresh_inputs"
THREADS = {"onnx": {"session_options": {"intra_op_num_threads": 1}}}


def _case() -> Case:
    torch.manual_seed(0)
    return NETS[os.environ[NET]]()


def _model_loader(_: Any = None) -> torch.nn.Module:
    return _case().net


def _dummy_inputs(_: Any = None) -> dict[str, torch.Tensor]:
    case = _case()
    return {_name(case): torch.cat([case.args[0]] * 2)}  # one row would be exported as fixed


def _name(case: Case) -> str:
    return next(iter(inspect.signature(case.net.forward).parameters))


def _io_config(_: Any = None) -> Mapping[str, Any]:
    case = _case()
    with torch.no_grad():
        outputs = [f"output_{n}" for n, _ in enumerate(tree_leaves(case.net(*case.args)))]
    axes = {str(axis): f"axis_{axis}" for axis in case.dynamic}
    return {
        "input_names": [_name(case)],
        "input_shapes": [list(case.args[0].shape)],
        "input_types": [str(case.args[0].dtype).removeprefix("torch.")],
        "output_names": outputs,
        "dynamic_shapes": {_name(case): axes},
        "dynamic_axes": {_name(case): axes, **{name: {"0": "axis_0"} for name in outputs}},
    }


class Labelled(torch.utils.data.Dataset):
    """Fresh inputs, each with the label that eager torch gives it."""

    def __init__(self) -> None:
        self.case = _case()

    def __len__(self) -> int:
        """Return the number of inputs."""
        return NUM_SAMPLES

    def __getitem__(self, index: int) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
        """Return one input and its label."""
        if index >= NUM_SAMPLES:
            raise IndexError(index)
        (x,) = self.case.fresh(index)
        with torch.no_grad():
            return {_name(self.case): x[0]}, label(self.case.net(x))[0]


def labelled(**_: Any) -> Labelled:
    """Return the data (Olive takes no class from a script)."""
    return Labelled()


def label(outputs: Any, **_: Any) -> torch.Tensor:
    """Return the label of each row."""
    last = tree_leaves(outputs)[-1].flatten(1)
    return last.argmax(1) if last.shape[1] > 1 else (last[:, 0] > 0).long()


def register() -> None:
    """Make data and labels known to Olive."""
    from olive.data.registry import Registry

    Registry.register_dataset(DATA)(labelled)
    Registry.register_post_process(DATA)(label)


def workflow(folder: Path, path: Path) -> dict[str, Any]:
    """Return a search of passes over an ONNX file for the least latency that keeps the labels.

    It starts from the file, for in 0.13.0 a search point fails that shares a pass with another.
    """
    script = str(Path(__file__).resolve())
    data = {
        **{"name": DATA, "user_script": script, "load_dataset_config": {"type": DATA}},
        **{"post_process_data_config": {"type": DATA}, "dataloader_config": {"batch_size": 1}},
    }
    common = {"data_config": DATA, "user_config": {"inference_settings": THREADS}}
    accuracy = {
        **{"name": "accuracy_score", "priority": 2},
        "metric_config": {"task": "multiclass", "num_classes": 1000},
        "goal": {"type": "max-degradation", "value": 0.01},
    }
    sub_types = {"latency": {"name": "avg", "priority": 1}, "accuracy": accuracy}
    metrics = [{"name": n, "type": n, "sub_types": [s], **common} for n, s in sub_types.items()]
    device = {"device": "cpu", "execution_providers": ["CPUExecutionProvider"]}
    int8 = {"per_channel": False, "reduce_range": False, "quant_preprocess": True}
    static = {"calibrate_method": "MinMax", "quant_format": "QDQ", "data_config": DATA, **int8}
    passes = [
        {"type": "OnnxPeepholeOptimizer"},
        {"type": "OrtTransformersOptimization", "model_type": "bert"},
        {"type": "OnnxDynamicQuantization", **int8},
        {"type": "OnnxStaticQuantization", **static},
    ]
    return {
        "input_model": {"type": "OnnxModel", "model_path": str(path)},
        "data_configs": [data],
        "systems": {"cpu": {"type": "LocalSystem", "accelerators": [device]}},
        "evaluators": {"both": {"metrics": metrics}},
        "passes": {"last": passes},
        "search_strategy": {
            **{"execution_order": "joint", "sampler": "sequential"},
            **{"max_iter": 30, "max_time": SEARCH_S},
        },
        **{"evaluator": "both", "host": "cpu", "target": "cpu", "evaluate_input_model": True},
        **{"cache_dir": str(folder / "cache"), "output_dir": str(folder / "output")},
        "log_severity_level": 1,
    }


if os.environ.get(NET):
    register()
