"""torchani: potentials of molecules, from the surroundings of each atom."""

import importlib
from typing import Any

import torch

from passnet.data.capture.catalog import listed, row_of
from passnet.data.capture.net import Net, NetInput, floats

ADDS = (
    "potentials of molecules: all pairs and triples of atoms, angles and cutoffs, a net for each "
    "element, a sum over atoms"
)
PACKAGES = ("torchani",)

MOLECULES, ATOMS = 4, 16
SYMBOLS = ("H", "C", "N", "O")

POTENTIALS: dict[str, dict[str, Any]] = {
    "ani": {},
    "ani-cosine": {"cutoff_fn": "cosine", "radial_cutoff": 5.1},
    "ani-celu": {"activation": "celu", "bias": True},
    "ani-plain": {"repulsion": False},
    "ani-dispersion": {"dispersion": True},
    "ani-ensemble": {"ensemble_size": 4},
    "ani-shared": {"container": "ANISharedNetworks"},
    "ani-one-net": {"container": "SingleNN"},
    "ani-zero-energies": {"self_energies": "zero"},
}
"""Potential -> settings that differ from the library's own."""

CHARGES = "-charges"
"""The ending of potentials that also give the charge of every atom."""

names = listed(
    "torchani.arch",
    [name + end for name in POTENTIALS for end in ("", CHARGES)],
    importlib.import_module,
)


def build(name: str) -> Net:
    """Build a potential with the library's sizes, on four molecules of 16 atoms."""
    arch = importlib.import_module("torchani.arch")
    plain = name.removesuffix(CHARGES)
    make = arch.simple_ani if plain == name else arch.simple_aniq
    settings = {"self_energies": dict.fromkeys(SYMBOLS, -1.0)} | row_of(POTENTIALS, plain)
    potential = make(SYMBOLS, "wb97x-631gd", strategy="pyaev", **settings)
    elements = torch.tensor([6, 1, 1, 1, 6, 8, 7, 1] * (ATOMS // 8)).repeat(MOLECULES, 1)
    atoms = NetInput(elements, ("batch", "atom"))
    places = floats(MOLECULES, ATOMS, 3, axes=("batch", "atom", "3"), scale=2.0)
    net = Energies(potential)
    return Net(net.eval(), (atoms, places), task="molecular-property-prediction")


class Energies(torch.nn.Module):
    """A potential that is called with elements and places by position."""

    def __init__(self, potential: torch.nn.Module) -> None:
        super().__init__()
        self.potential = potential

    def forward(self, atoms: torch.Tensor, places: torch.Tensor) -> Any:
        """Return the energy of every molecule."""
        return self.potential((atoms, places)).energies
