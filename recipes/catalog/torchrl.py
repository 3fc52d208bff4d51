"""torchrl: policies, values, mixers of agents and models of worlds, for reinforcement learning."""

import importlib
from collections.abc import Callable
from typing import Any

import torch

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.mismatched_wheels import import_with_torchaudio
from passnet.data.capture.net import Net, NetInput, floats

ADDS = (
    "reinforcement learning: policies and values from pixels and states, duelling heads, noisy "
    "layers, agents that share weights, mixers, models of worlds with latent states"
)
PACKAGES = ("torchrl",)

BATCH, STATE, ACTIONS, AGENTS, TIME = 32, 24, 6, 4, 20
AgentFactory = Callable[[Any], Any]

_CELLS = {"num_cells": [256, 256]}

NETS: dict[str, tuple[AgentFactory, str]] = {
    "mlp": (lambda m: m.MLP(STATE, ACTIONS, num_cells=[256, 256]), "state"),
    "mlp-relu": (lambda m: m.MLP(STATE, ACTIONS, num_cells=[400, 300],
                 activation_class=torch.nn.ReLU, activate_last_layer=True), "state"),
    "mlp-norm": (lambda m: m.MLP(STATE, ACTIONS, num_cells=[256, 256],
                 norm_class=torch.nn.LayerNorm, norm_kwargs={"normalized_shape": 256}), "state"),
    "mlp-noisy": (lambda m: m.MLP(STATE, ACTIONS, num_cells=[256, 256],
                  layer_class=m.NoisyLinear), "state"),
    "mlp-dropout": (lambda m: m.MLP(STATE, ACTIONS, num_cells=[256] * 4, dropout=0.1), "state"),
    "convnet": (lambda m: m.ConvNet(3, num_cells=[32, 64, 64], kernel_sizes=[8, 4, 3],
                strides=[4, 2, 1]), "pixels"),
    "convnet-pooled": (lambda m: m.ConvNet(3, num_cells=[32, 64, 64], kernel_sizes=[8, 4, 3],
        strides=[4, 2, 1], aggregator_class=torch.nn.AdaptiveAvgPool2d,
        aggregator_kwargs={"output_size": (1, 1)}, squeeze_output=True), "pixels"),
    "conv3d": (lambda m: m.Conv3dNet(3, num_cells=[16, 32], kernel_sizes=3), "clip"),
    "duelling-dqn": (lambda m: m.DuelingCnnDQNet(ACTIONS), "pixels"),
    "duelling-mlp-dqn": (lambda m: m.models.DuelingMlpDQNet(
        ACTIONS, mlp_kwargs_feature={"in_features": STATE}), "state"),
    "distributional-dqn": (lambda m: torch.nn.Sequential(
        m.MLP(STATE, (51, ACTIONS), num_cells=[256, 256]), m.DistributionalDQNnet()), "state"),
    "ddpg-pixels": (lambda m: m.DdpgCnnActor(ACTIONS), "pixels"),
    "ddpg-pixels-value": (lambda m: m.DdpgCnnQNet(), "pixels and action"),
    "ddpg": (lambda m: m.DdpgMlpActor(ACTIONS, {"in_features": STATE}), "state"),
    "ddpg-value": (lambda m: m.DdpgMlpQNet(
        {"in_features": STATE, "num_cells": [400], "out_features": 300, "depth": 1},
        {"in_features": 300 + ACTIONS, "out_features": 1}), "state and action"),
    "normal-parameters": (lambda m: torch.nn.Sequential(
        m.MLP(STATE, 2 * ACTIONS, num_cells=[256, 256]), m.NormalParamExtractor()), "state"),
    "normal-parameters-exp": (lambda m: torch.nn.Sequential(
        m.MLP(STATE, 2 * ACTIONS, num_cells=[256, 256]),
        m.NormalParamExtractor(scale_mapping="exp", scale_lb=1e-3)), "state"),
    "agents": (lambda m: m.MultiAgentMLP(STATE, ACTIONS, AGENTS, centralized=False,
               share_params=False, **_CELLS, depth=2), "agents"),
    "agents-shared": (lambda m: m.MultiAgentMLP(STATE, ACTIONS, AGENTS, centralized=False,
                      share_params=True, **_CELLS, depth=2), "agents"),
    "agents-central": (lambda m: m.MultiAgentMLP(STATE, ACTIONS, AGENTS, centralized=True,
                       share_params=True, **_CELLS, depth=2), "agents"),
    "agents-central-own": (lambda m: m.MultiAgentMLP(STATE, ACTIONS, AGENTS, centralized=True,
                           share_params=False, **_CELLS, depth=2), "agents"),
    "agents-pixels": (lambda m: m.MultiAgentConvNet(AGENTS, centralized=True, share_params=True,
                      in_features=3), "agents' pixels"),
    "qmixer": (lambda m: m.QMixer((STATE,), 32, AGENTS, "cpu"), "values and state"),
    "vdn-mixer": (lambda m: m.VDNMixer(AGENTS, "cpu"), "values"),
    "decision-transformer": (lambda m: m.DTActor(STATE, ACTIONS), "episode"),
    "decision-transformer-online": (lambda m: m.OnlineDTActor(STATE, ACTIONS), "episode"),
    "dreamer-actor": (lambda m: m.DreamerActor(ACTIONS), "latent and belief"),
    "dreamer-encoder": (lambda m: m.ObsEncoder(in_channels=3), "pixels of 64"),
    "dreamer-decoder": (lambda m: m.ObsDecoder(latent_dim=230), "latent and belief"),
    "dreamer-posterior": (lambda m: m.RSSMPosterior(rnn_hidden_dim=200, obs_embed_dim=1024),
                          "belief and embedding"),
    "dreamer3-mlp": (lambda m: m.DreamerV3MLP(STATE, ACTIONS, num_cells=512), "state"),
    "dreamer3-encoder": (lambda m: m.DreamerV3ImageEncoder(depth=16), "pixels of 64"),
    "dreamer3-decoder": (lambda m: m.DreamerV3ImageDecoder(512, depth=16), "features"),
    "dreamer3-gru": (lambda m: m.DreamerV3BlockGRUCell(STATE, 512, projection_size=64),
                     "state and memory"),
    "dreamer3-posterior": (lambda m: m.RSSMPosteriorV3(rnn_hidden_dim=200, obs_embed_dim=1024),
                           "belief and embedding"),
    "lstm": (lambda m: m.LSTM(STATE, 128, num_layers=2), "sequence"),
    "gru": (lambda m: m.GRU(STATE, 128, num_layers=2), "sequence"),
    "lstm-cell": (lambda m: m.LSTMCell(STATE, 128), "state"),
    "gru-cell": (lambda m: m.GRUCell(STATE, 128), "state"),
    "batch-renorm": (lambda m: torch.nn.Sequential(
        torch.nn.Linear(STATE, 256), m.BatchRenorm1d(256), torch.nn.ReLU(),
        torch.nn.Linear(256, ACTIONS)), "state"),
    "rbf": (lambda m: m.RBFController(STATE, ACTIONS, 1.0), "mean and covariance"),
}  # fmt: skip
"""Name -> constructor and inputs of a net."""


names = listed("torchrl.modules", NETS, import_with_torchaudio)


def build(name: str) -> Net:
    """Build a net with the library's sizes, or of moderate ones, on 32 observations."""
    modules = import_with_torchaudio("torchrl.modules")
    modules.models = importlib.import_module("torchrl.modules.models.models")
    make, inputs = row_of(NETS, name)
    return Net(make(modules).eval(), _inputs(inputs), task="reinforcement-learning")


def _values(*shape: int, names: str = "") -> NetInput:
    middle = names.split() or [str(size) for size in shape]
    return floats(BATCH, *shape, axes=("batch", *middle))


def _inputs(kind: str) -> tuple[NetInput, ...]:
    state, action = _values(STATE), _values(ACTIONS)
    pixels = _values(3, 84, 84, names="3 height width")
    plain: dict[str, tuple[NetInput, ...]] = {
        "state": (state,),
        "pixels": (pixels,),
        "pixels of 64": (_values(3, 64, 64),),
        "clip": (_values(3, 8, 32, 32, names="3 frames height width"),),
        "pixels and action": (pixels, action),
        "state and action": (state, action),
        "agents": (_values(AGENTS, STATE),),
        "agents' pixels": (_values(AGENTS, 3, 64, 64),),
        "values and state": (_values(AGENTS, 1), state),
        "values": (_values(AGENTS, 1),),
        "episode": (
            _values(TIME, STATE, names=f"time {STATE}"),
            _values(TIME, ACTIONS, names=f"time {ACTIONS}"),
            _values(TIME, 1, names="time 1"),
        ),
        "latent and belief": (_values(30), _values(200)),
        "belief and embedding": (_values(200), _values(1024)),
        "features": (_values(512),),
        "state and memory": (state, _values(512)),
        "sequence": (_values(TIME, STATE, names=f"time {STATE}"),),
        "mean and covariance": (state, NetInput(0.1 * torch.eye(STATE).repeat(BATCH, 1, 1),
                                                ("batch", str(STATE), str(STATE)))),
    }  # fmt: skip
    return plain[kind]
