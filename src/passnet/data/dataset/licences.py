"""Licences of the libraries that nets were captured from; docs/licences.md takes a position."""

from collections.abc import Iterable, Sequence

LICENCES: dict[str, str] = {
    **dict.fromkeys(
        ("timm", "transformers", "diffusers", "monai", "neuralforecast", "kornia", "speechbrain",
         "litgpt", "peft", "transformers_variants", "birder"), "Apache-2.0"),
    **dict.fromkeys(
        ("smp", "x_transformers", "vit_pytorch", "torch_geometric", "open_clip", "torch_rechub",
         "torchrl", "torchani", "fair_esm", "zuko", "neuraloperator", "torchscale", "asteroid",
         "transformer_lens", "one_net_text", "pytorchcv", "one_net_sequences"), "MIT"),
    **dict.fromkeys(("torchvision", "braindecode", "pypots", "torchtune"), "BSD-3-Clause"),
    "torchaudio": "BSD-2-Clause",
    "ultralytics": "AGPL-3.0",
}  # fmt: skip
"""Library of the catalog -> the licence of its code.

Source: the metadata of the version that was captured, or its source.
"""

UNKNOWN = "not known"
"""Nets of a hub's repositories, and of users' own files."""

CHOICES = (*sorted({*LICENCES.values()}), UNKNOWN)


MAX_NETS = 8
"""The most nets that a row names."""


def named_nets(nets: Iterable[str]) -> tuple[str, ...]:
    """Return the nets that a row names: the first of each licence, then the first by name.

    The licences of the named nets are therefore those of all nets.

    Examples:
        >>> named_nets([*(f"timm/{number}" for number in range(10, 30)), "ultralytics/yolo"])[-2:]
        ('timm/16', 'ultralytics/yolo')
    """
    names = sorted({*nets})
    first = {licence_of(net): net for net in reversed(names)}
    others = (net for net in names if net not in first.values())
    return tuple(sorted([*first.values(), *others][:MAX_NETS]))


def licence_of(net: str) -> str:
    """Return the licence of the library of a net."""
    return LICENCES.get(net.partition("/")[0], UNKNOWN)


def licences_of(nets: Sequence[str]) -> list[str]:
    """Return the licences of the libraries of some nets, once each.

    Examples:
        >>> licences_of(["timm/vit_tiny", "timm/resnet18", "my_nets.py:make"])
        ['Apache-2.0', 'not known']
    """
    return sorted({licence_of(net) for net in nets or ("",)})


def licence_column() -> str:
    """Return `licences_of` the column `nets`, as an expression of SQL."""
    cases = " ".join(f"WHEN '{name}' THEN '{licence}'" for name, licence in LICENCES.items())
    licence = f"CASE split_part(net, '/', 1) {cases} ELSE '{UNKNOWN}' END"
    named = "CASE WHEN len(nets) = 0 THEN [''] ELSE nets END"
    return f"list_sort(list_distinct([{licence} for net in {named}]))"


def under(licences: Sequence[str]) -> str:
    """Return an expression of SQL that is true if all nets of a row are under some licences."""
    names = ", ".join("'" + licence.replace("'", "''") + "'" for licence in licences)
    return f"list_has_all([{names}], licences)"
