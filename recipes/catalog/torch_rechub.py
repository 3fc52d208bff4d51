"""torch_rechub: nets that rank items for users, from columns of ids and numbers."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.net import Net, NetInput, floats, integers

ADDS = (
    "recommenders: an embedding for each column, factorisation machines, cross layers, attention "
    "over a user's history, mixtures of experts with a tower for each task"
)
PACKAGES = ("torch-rechub",)

BATCH, VOCABULARY, WIDTH, HISTORY = 8, 10000, 16, 50
NUM_IDS, NUM_NUMBERS = 26, 13
"""Columns of each kind, as in the Criteo set."""

MLP = {"dims": [256, 128], "dropout": 0.2, "activation": "relu"}
TOWERS = [{"dims": [16]}, {"dims": [16]}]
KINDS = ["classification", "classification"]

RankerFactory = Callable[[Any, Any], Any]
"""From the models of a module and the columns to a net."""

RANKING: dict[str, RankerFactory] = {
    "WideDeep": lambda m, c: m.WideDeep(c.ids, c.all, MLP),
    "DeepFM": lambda m, c: m.DeepFM(c.all, c.ids, MLP),
    "DCN": lambda m, c: m.DCN(c.all, 3, MLP),
    "DCNv2": lambda m, c: m.DCNv2(c.all, 3, MLP),
    "DCNv2-full-rank": lambda m, c: m.DCNv2(c.all, 3, MLP, use_low_rank_mixture=False),
    "DCNv2-stacked": lambda m, c: m.DCNv2(c.all, 3, MLP, model_structure="stacked"),
    "EDCN": lambda m, c: m.EDCN(c.ids, 3, MLP),
    "EDCN-attention": lambda m, c: m.EDCN(c.ids, 3, MLP, bridge_type="attention_pooling"),
    "AFM": lambda m, c: m.AFM(c.ids, WIDTH),
    "FiBiNet": lambda m, c: m.FiBiNet(c.ids, MLP),
    "FiBiNet-all": lambda m, c: m.FiBiNet(c.ids, MLP, bilinear_type="field_all"),
    "FiBiNet-each": lambda m, c: m.FiBiNet(c.ids, MLP, bilinear_type="field_each"),
    "AutoInt": lambda m, c: m.AutoInt(c.ids, c.numbers, mlp_params=MLP),
}

HISTORIES: dict[str, RankerFactory] = {
    "DIN": lambda m, c: m.DIN(c.all, c.past, c.target, {"dims": [256, 128]}, {"dims": [256, 128]}),
    "BST": lambda m, c: m.BST(c.all, c.past, c.target, MLP),
}

TASKS: dict[str, RankerFactory] = {
    "SharedBottom": lambda m, c: m.SharedBottom(c.all, KINDS, MLP, TOWERS),
    "MMOE": lambda m, c: m.MMOE(c.all, KINDS, 8, {"dims": [64]}, TOWERS),
    "PLE": lambda m, c: m.PLE(c.all, KINDS, 2, 2, 2, {"dims": [64]}, TOWERS),
    "AITM": lambda m, c: m.AITM(c.all, 2, {"dims": [64, 32]}, TOWERS),
}


class FeatureColumns(nn.Module):
    """A recommender that is called with its columns instead of a dictionary of them."""

    def __init__(self, net: nn.Module, columns: Sequence[str]) -> None:
        super().__init__()
        self.net = net
        self.columns = tuple(columns)

    def forward(self, *values: torch.Tensor) -> Any:
        """Return the scores of every row."""
        return self.net(dict(zip(self.columns, values, strict=True)))


class _Columns:
    """The columns of a table as features of the library."""

    def __init__(self, history: bool) -> None:
        from torch_rechub.basic.features import DenseFeature, SequenceFeature, SparseFeature

        names = ("user", "age", "city") if history else [f"id_{i}" for i in range(NUM_IDS)]
        self.ids = [SparseFeature(name, VOCABULARY, WIDTH) for name in names]
        self.numbers = [DenseFeature(f"number_{i}") for i in range(0 if history else NUM_NUMBERS)]
        self.all = self.ids + self.numbers
        past = SequenceFeature("items", VOCABULARY, WIDTH, pooling="concat", shared_with="item")
        self.target, self.past = [SparseFeature("item", VOCABULARY, WIDTH)], [past]


names = listed("torch_rechub", [*RANKING, *HISTORIES, *TASKS], importlib.import_module)


def build(name: str) -> Net:
    """Build a net on eight rows of as many columns as the Criteo set has, or on eight histories."""
    columns = _Columns(history=name in HISTORIES)
    module = "multi_task" if name in TASKS else "ranking"
    models = importlib.import_module(f"torch_rechub.models.{module}")
    net = row_of(RANKING | HISTORIES | TASKS, name)(models, columns)
    inputs = {column.name: _ids() for column in columns.ids}
    inputs |= {column.name: floats(BATCH, axes=("batch",)) for column in columns.numbers}
    if name in HISTORIES:
        history = integers(VOCABULARY, BATCH, HISTORY, low=1, axes=("batch", "sequence"))
        inputs |= {"items": history, "item": _ids()}
    args = tuple(inputs.values())
    task = "multi-task-ranking" if name in TASKS else "click-prediction"
    return Net(FeatureColumns(net, tuple(inputs)).eval(), args, domain="other", task=task)


def _ids() -> NetInput:
    return integers(VOCABULARY, BATCH, low=1, axes=("batch",))
