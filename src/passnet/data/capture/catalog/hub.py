"""Repositories of the Hugging Face hub, by their `config.json`; none of their code is run."""

import inspect
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import torch

from passnet.core.records.untrusted import read_untrusted, read_untrusted_text
from passnet.data.capture.catalog import timm, transformers
from passnet.data.capture.catalog.transformers import configs
from passnet.data.capture.mismatched_wheels import import_with_torchvision
from passnet.data.capture.net import Net
from passnet.errors import InputError

ADDS = "any repository of the Hugging Face hub whose class transformers or timm knows"
PACKAGES = ("transformers", "timm", "torchvision", "huggingface_hub")

CONFIG = "config.json"


def names() -> list[str]:
    """Return no names: the hub is not listed; see `repositories`."""
    return []


def repositories(path_or_name: str) -> list[str]:
    """Return the repositories listed in a .txt file, or the given name itself."""
    path = Path(path_or_name)
    if path.suffix != ".txt":
        return [path_or_name]
    lines = read_untrusted_text(path).splitlines()
    stripped = (line.split("#", 1)[0].strip() for line in lines)
    listed = list(dict.fromkeys(name for name in stripped if name))
    if not listed:
        raise InputError(f"{path} lists no repository; write one a line, as owner/name")
    return listed


def build(repository: str, reduce_layers: bool = False) -> Net:
    """Build the net of a repository, "owner/name", as published, with inputs made for it.
    `reduce_layers` keeps only the first few layers of each stack, as the catalog does.

    Raises:
        InputError: the repository cannot be read, or its class is unknown here.
    """
    path = _fetch(repository)
    try:
        settings = msgspec.json.decode(read_untrusted(path))
    except msgspec.DecodeError as cause:
        raise InputError(f"{CONFIG} of {repository} is not JSON: {cause}") from cause
    if not isinstance(settings, dict):
        raise InputError(f"{CONFIG} of {repository} is not a table of settings")
    if "architecture" in settings and "model_type" not in settings:
        return _timm_net(repository, settings)
    return _transformers_net(repository, path, settings, reduce_layers)


def _fetch(repository: str) -> Path:
    """Download the configuration of a repository into the cache of the hub's client."""
    from huggingface_hub import constants, errors, hf_hub_download

    endpoint = os.environ.get("HF_ENDPOINT") or constants.ENDPOINT
    cache = os.environ.get("HF_HUB_CACHE")
    try:
        return Path(hf_hub_download(repository, CONFIG, endpoint=endpoint, cache_dir=cache))
    except errors.HFValidationError as cause:
        raise InputError(f"{repository!r} is no name of a repository; give owner/name") from cause
    except errors.GatedRepoError as cause:
        raise InputError(
            f"{repository} is open only to those with access; log in with `hf auth login`"
        ) from cause
    except errors.RepositoryNotFoundError as cause:
        raise InputError(f"no repository {repository!r} at {endpoint}, or it is private") from cause
    except errors.RemoteEntryNotFoundError as cause:
        raise InputError(f"{repository} has no {CONFIG}, so its class is not known") from cause
    except (errors.HfHubHTTPError, OSError) as cause:
        raise InputError(
            f"{CONFIG} of {repository} cannot be fetched from {endpoint} ({cause}); "
            "check the network, or name a mirror in HF_ENDPOINT"
        ) from cause


def _transformers_net(
    repository: str, path: Path, settings: dict[str, Any], reduce_layers: bool
) -> Net:
    library = transformers.import_transformers()
    family = settings.get("model_type")
    if family not in library.CONFIG_MAPPING:
        if "auto_map" in settings:
            raise InputError(
                f"{repository} is built by code of its own (model_type {family!r}), which is not "
                "run; write a function that returns the net, and give path/to/file.py:function"
            )
        raise InputError(
            f"{CONFIG} of {repository} has model_type {family!r}, which the transformers that is "
            "installed does not know; a newer one may"
        )
    options = {"trust_remote_code": False, "local_files_only": True}
    config = library.AutoConfig.from_pretrained(path.parent, **options)
    changes: tuple[str, ...] = ()
    if reduce_layers:
        config, changes = configs.reduce_layers(config)
    return transformers.net_of(_net_class(library, repository, config), config, changes)


def _net_class(library: Any, repository: str, config: Any) -> Any:
    """Return the class that the configuration names, else the base net of its family."""
    named = getattr(library, (config.architectures or [""])[0], None)
    if named is not None:
        return named
    if type(config) not in library.MODEL_MAPPING:
        raise InputError(
            f"{CONFIG} of {repository} names no class that transformers has "
            f"(architectures {config.architectures}), and its family has no base net"
        )
    base = library.MODEL_MAPPING[type(config)]
    return base[0] if isinstance(base, (list, tuple)) else base


def _timm_net(repository: str, settings: dict[str, Any]) -> Net:
    library = import_with_torchvision("timm")
    name = str(settings["architecture"])
    if not library.is_model(name):
        raise InputError(
            f"{CONFIG} of {repository} has architecture {name!r}, which the timm that is "
            "installed does not know; a newer one may"
        )
    options = dict(settings.get("model_args") or {})
    if unknown := options.keys() - _timm_settings(library, name):
        raise InputError(
            f"{CONFIG} of {repository} has {', '.join(sorted(unknown))} in model_args, and {name} "
            "has no such setting; write a function that returns the net, and give "
            "path/to/file.py:function"
        )
    if "num_classes" in settings:
        options["num_classes"] = settings["num_classes"]
    net = library.create_model(name, pretrained=False, **options).eval()
    input_size = (settings.get("pretrained_cfg") or {}).get("input_size")
    task = "image-classification" if net.num_classes else "image-feature-extraction"
    return timm.net_of(net, input_size, task)


def _timm_settings(library: Any, name: str) -> set[str]:
    """Return the settings that an architecture and its parts take. Those of `create_model` itself
    are left out: they read weights from local files.
    """
    entry = library.model_entrypoint(name)
    parts = vars(sys.modules[entry.__module__]).values()
    nets = [part for part in parts if isinstance(part, type) and issubclass(part, torch.nn.Module)]
    taken = {key for part in (entry, *nets) for key in inspect.signature(part).parameters}
    return taken - set(inspect.signature(library.create_model).parameters)
