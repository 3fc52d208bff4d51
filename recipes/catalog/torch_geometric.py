"""torch_geometric: graph nets, as stacks of each kind of layer and as ready models."""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.net import Net, NetInput, floats, integers

ADDS = "graph nets: gather along edges, messages, scatter-add or softmax over each node's edges"
PACKAGES = ("torch_geometric",)

NODES, EDGES, WIDTH, CLASSES, EDGE_WIDTH, RELATIONS, ATOMS = 2708, 10556, 64, 7, 16, 5, 24

LayerFactory = Callable[[Any], Any]
"""From the module `torch_geometric.nn` to one of its layers or nets."""


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


LAYERS: dict[str, tuple[LayerFactory, str]] = {
    "gcn": (lambda g: g.GCNConv(WIDTH, WIDTH), ""),
    "gcn-weighted": (lambda g: g.GCNConv(WIDTH, WIDTH), "weight"),
    "cheb": (lambda g: g.ChebConv(WIDTH, WIDTH, 3), ""),
    "sage": (lambda g: g.SAGEConv(WIDTH, WIDTH), ""),
    "sage-max": (lambda g: g.SAGEConv(WIDTH, WIDTH, aggr="max"), ""),
    "sage-lstm": (lambda g: g.SAGEConv(WIDTH, WIDTH, aggr="lstm"), ""),
    "graph": (lambda g: g.GraphConv(WIDTH, WIDTH), ""),
    "gated-graph": (lambda g: g.GatedGraphConv(WIDTH, 3), ""),
    "res-gated-graph": (lambda g: g.ResGatedGraphConv(WIDTH, WIDTH), ""),
    "gat": (lambda g: g.GATConv(WIDTH, WIDTH // 4, heads=4), ""),
    "gat-edges": (lambda g: g.GATConv(WIDTH, WIDTH // 4, heads=4, edge_dim=EDGE_WIDTH), "features"),
    "gatv2": (lambda g: g.GATv2Conv(WIDTH, WIDTH // 4, heads=4), ""),
    "transformer": (lambda g: g.TransformerConv(WIDTH, WIDTH // 4, heads=4), ""),
    "transformer-beta": (lambda g: g.TransformerConv(WIDTH, WIDTH // 4, 4, beta=True), ""),
    "agnn": (lambda g: g.AGNNConv(), ""),
    "tag": (lambda g: g.TAGConv(WIDTH, WIDTH), ""),
    "gin": (lambda g: g.GINConv(_mlp(), train_eps=True), ""),
    "gine": (lambda g: g.GINEConv(_mlp(), edge_dim=EDGE_WIDTH), "features"),
    "arma": (lambda g: g.ARMAConv(WIDTH, WIDTH, num_stacks=2, num_layers=2), ""),
    "sg": (lambda g: g.SGConv(WIDTH, WIDTH, K=2), ""),
    "ssg": (lambda g: g.SSGConv(WIDTH, WIDTH, alpha=0.1, K=4), ""),
    "appnp": (lambda g: g.APPNP(K=5, alpha=0.1), ""),
    "mf": (lambda g: g.MFConv(WIDTH, WIDTH, max_degree=4), ""),
    "rgcn": (lambda g: g.RGCNConv(WIDTH, WIDTH, RELATIONS, num_bases=4), "kind"),
    "rgcn-fast": (lambda g: g.FastRGCNConv(WIDTH, WIDTH, RELATIONS, num_bases=4), "kind"),
    "rgat": (lambda g: g.RGATConv(WIDTH, WIDTH, RELATIONS), "kind"),
    "gmm": (lambda g: g.GMMConv(WIDTH, WIDTH, dim=EDGE_WIDTH, kernel_size=4), "features"),
    "nn": (lambda g: g.NNConv(WIDTH, WIDTH, nn.Linear(EDGE_WIDTH, WIDTH * WIDTH)), "features"),
    "cg": (lambda g: g.CGConv(WIDTH, dim=EDGE_WIDTH), "features"),
    "edge": (lambda g: g.EdgeConv(nn.Linear(2 * WIDTH, WIDTH)), ""),
    "feast": (lambda g: g.FeaStConv(WIDTH, WIDTH, heads=4), ""),
    "hypergraph": (lambda g: g.HypergraphConv(WIDTH, WIDTH), ""),
    "le": (lambda g: g.LEConv(WIDTH, WIDTH), ""),
    "cluster-gcn": (lambda g: g.ClusterGCNConv(WIDTH, WIDTH), ""),
    "gen": (lambda g: g.GENConv(WIDTH, WIDTH), ""),
    "gen-powermean": (lambda g: g.GENConv(WIDTH, WIDTH, aggr="powermean"), ""),
    "film": (lambda g: g.FiLMConv(WIDTH, WIDTH), ""),
    "supergat": (lambda g: g.SuperGATConv(WIDTH, WIDTH // 4, heads=4), ""),
    "eg": (lambda g: g.EGConv(WIDTH, WIDTH, aggregators=["sum", "mean", "max"]), ""),
    "pdn": (lambda g: g.PDNConv(WIDTH, WIDTH, EDGE_WIDTH, 32), "features"),
    "general": (lambda g: g.GeneralConv(WIDTH, WIDTH, in_edge_channels=EDGE_WIDTH), "features"),
    "lg": (lambda g: g.LGConv(), ""),
    "gps": (lambda g: g.GPSConv(WIDTH, g.GINConv(_mlp()), heads=4), ""),
    "antisymmetric": (lambda g: g.AntiSymmetricConv(WIDTH, num_iters=3), ""),
    "directed": (lambda g: g.DirGNNConv(g.SAGEConv(WIDTH, WIDTH)), ""),
    "mixhop": (lambda g: g.MixHopConv(WIDTH, WIDTH // 2, powers=[0, 1]), ""),
}
"""Kind of layer -> its factory, and the features of its edges."""

MODELS: dict[str, tuple[LayerFactory, str]] = {
    "GCN": (lambda g: g.GCN(WIDTH, WIDTH, 3, CLASSES, norm="batch", jk="cat"), "graph"),
    "GraphSAGE": (lambda g: g.GraphSAGE(WIDTH, WIDTH, 3, CLASSES, jk="max"), "graph"),
    "GIN": (lambda g: g.GIN(WIDTH, WIDTH, 4, CLASSES, norm="graph"), "graph"),
    "GAT": (lambda g: g.GAT(WIDTH, WIDTH, 3, CLASSES, heads=4, jk="lstm"), "graph"),
    "GATv2": (lambda g: g.GAT(WIDTH, WIDTH, 3, CLASSES, v2=True, heads=4), "graph"),
    "EdgeCNN": (lambda g: g.EdgeCNN(WIDTH, WIDTH, 3, CLASSES), "graph"),
    "PNA": (lambda g: g.PNA(
        WIDTH, WIDTH, 3, CLASSES, aggregators=["mean", "min", "max", "std"],
        scalers=["identity", "amplification", "attenuation"],
        deg=torch.tensor([50, 300, 700, 800, 500, 358])), "graph"),
    "LINKX": (lambda g: g.LINKX(NODES, WIDTH, WIDTH, CLASSES, 2), "graph"),
    "PMLP": (lambda g: g.PMLP(WIDTH, WIDTH, CLASSES, 3), "graph"),
    "GraphUNet": (lambda g: g.GraphUNet(WIDTH, WIDTH, CLASSES, depth=3), "graph"),
    "Polynormer": (lambda g: g.Polynormer(WIDTH, WIDTH, CLASSES), "graph in a batch"),
    "SGFormer": (lambda g: g.SGFormer(WIDTH, WIDTH, CLASSES), "graph in a batch"),
    "GPSE": (lambda g: g.GPSE(WIDTH, virtual_node=False), "graph"),
    "NeuralFingerprint": (lambda g: g.NeuralFingerprint(WIDTH, WIDTH, 16, 3), "graph in a batch"),
    "AttentiveFP": (lambda g: g.AttentiveFP(WIDTH, WIDTH, 1, EDGE_WIDTH, 3, 2), "edges in a batch"),
    "LightGCN": (lambda g: g.LightGCN(NODES, WIDTH, 3), "edges only"),
    "GAE": (lambda g: g.GAE(g.GCN(WIDTH, WIDTH, 2)), "graph"),
    "SchNet": (lambda g: g.SchNet(interaction_graph=_all_pairs), "molecule"),
}  # fmt: skip
"""Ready model -> its factory and inputs."""


class Stack(nn.Module):
    """Three layers of one kind with ReLU between, then the class of each node."""

    def __init__(self, layers: Sequence[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, *edges: torch.Tensor) -> Any:
        """Return the scores of every node's classes."""
        for layer in self.layers:
            x = layer(x, edge_index, *edges).relu()
        return self.head(x)


names = listed("torch_geometric", [*LAYERS, *MODELS], importlib.import_module)


def build(name: str) -> Net:
    """Build a stack of layers on a graph as large as Cora, or a ready model on a molecule."""
    library = importlib.import_module("torch_geometric.nn")
    make, inputs = row_of(LAYERS | MODELS, name)
    net = Stack([make(library) for _ in range(3)]) if name in LAYERS else make(library)
    tasks = {"molecule": "molecular-property-prediction", "edges only": "link-prediction"}
    task = tasks.get(inputs, "node-classification")
    return Net(net.eval(), _inputs(inputs), domain="other", task=task)


def _inputs(kind: str) -> tuple[NetInput, ...]:
    """Return the features of nodes, edges sorted by their target (an LSTM aggregates so), features
    of edges, and the number of each node's graph.
    """
    if kind == "molecule":
        return _molecule()
    ends = integers(NODES, 2, EDGES).value
    ends = NetInput(ends[:, ends[1].argsort(stable=True)], ("2", "edge"))
    if kind == "edges only":
        return (ends,)
    args = (floats(NODES, WIDTH, axes=("node", "channel")), ends)
    if kind == "weight":
        args += (NetInput(floats(EDGES).value.abs(), ("edge",)),)
    elif kind == "kind":
        args += (integers(RELATIONS, EDGES, axes=("edge",)),)
    elif kind in ("features", "edges in a batch"):
        args += (floats(EDGES, EDGE_WIDTH, axes=("edge", "channel")),)
    if "batch" in kind:
        args += (NetInput(torch.arange(NODES) * 8 // NODES, ("node",)),)
    return args


def _molecule() -> tuple[NetInput, ...]:
    """Return elements, places and molecule number of each atom of two molecules."""
    atoms = integers(10, ATOMS, low=1, axes=("atom",))
    molecule = NetInput(torch.arange(ATOMS) * 2 // ATOMS, ("atom",))
    return atoms, floats(ATOMS, 3, axes=("atom", "3"), scale=2.0), molecule


def _all_pairs(pos: torch.Tensor, batch: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the pairs of atoms of a molecule, and their distances, without a search."""
    half = ATOMS // 2
    first, second = torch.meshgrid(torch.arange(half), torch.arange(half), indexing="ij")
    pairs = torch.stack([first.flatten(), second.flatten()])
    both = torch.cat([pairs, pairs + half], 1)
    return both, (pos[both[0]] - pos[both[1]]).norm(dim=-1)
