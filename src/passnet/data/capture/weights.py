"""Weights without memory: under `FakeWeights` the results of factories such as `torch.empty` are
fake.

Everything else (index tables, masks, schedules) stays real, as nets read such values.
Initialisation runs on a small real sample of each weight, so that mean and standard deviation are
known.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

SAMPLE_ELEMENTS = 4096
"""Elements of a sample: the error of its mean is a 64th of the standard deviation."""

LARGE_ELEMENTS = 1 << 16
"""Elements from which on tensors with given values are fake."""

aten = torch.ops.aten

_EMPTY = {aten.empty.memory_format, aten.empty_strided.default}
_FILLED: dict[Any, Callable[..., torch.Tensor]] = {
    aten.zeros.default: torch.zeros, aten.ones.default: torch.ones,
    aten.randn.default: torch.randn, aten.rand.default: torch.rand,
}  # fmt: skip

_ELEMENTWISE = {
    "normal_", "uniform_", "fill_", "zero_", "mul_", "add_", "sub_", "div_", "erfinv_", "clamp_",
    "clamp_min_", "clamp_max_", "exp_", "log_", "pow_", "sqrt_", "neg_", "bernoulli_",
    "exponential_", "abs_", "tanh_", "sigmoid_", "log1p_", "expm1_", "reciprocal_", "logit_",
    "mul", "add", "sub", "div", "neg", "exp", "log", "clamp", "pow", "sqrt", "abs", "tanh",
    "expm1", "log1p", "reciprocal", "sigmoid", "rsub", "logit",
}  # fmt: skip
"""Ops that treat all elements of their first argument alike, if the others are numbers."""

_SAME = {"detach", "alias", "clone", "_to_copy", "view", "reshape", "_unsafe_view", "transpose",
         "permute", "t", "unsqueeze", "squeeze"}  # fmt: skip
"""Ops that only rearrange the elements of their first argument."""


def replace_weights(
    module: torch.nn.Module, convert: Callable[[torch.Tensor], torch.Tensor | None]
) -> None:
    """Replace each parameter and buffer by `convert` of it unless None; shared ones stay shared."""
    converted: dict[int, torch.Tensor | None] = {}
    for part in module.modules():
        tables: tuple[dict[str, Any], ...] = (part._parameters, part._buffers)
        for table in tables:
            for name, old in table.items():
                if old is None:
                    continue
                if id(old) not in converted:
                    new = convert(old)
                    if new is not None and isinstance(old, torch.nn.Parameter):
                        new = torch.nn.Parameter(new, requires_grad=old.requires_grad)
                    converted[id(old)] = new
                if converted[id(old)] is not None:
                    table[name] = converted[id(old)]


class FakeWeights(TorchDispatchMode):
    """A context for constructors: float tensors are fake, except for small ones with values."""

    def __init__(self) -> None:
        super().__init__()
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._samples: dict[int, torch.Tensor] = {}

    def sample(self, tensor: torch.Tensor) -> torch.Tensor | None:
        """Return elements as initialisation would have made them; None if unknown."""
        return self._samples.get(_storage(tensor))

    def __enter__(self) -> FakeWeights:
        super().__enter__()
        self._truncated = torch.nn.init._no_grad_trunc_normal_
        torch.nn.init._no_grad_trunc_normal_ = self._truncated_normal
        return self

    def __exit__(self, exc_type: Any, exc_val: Any, exc_tb: Any) -> None:
        torch.nn.init._no_grad_trunc_normal_ = self._truncated
        super().__exit__(exc_type, exc_val, exc_tb)

    def _truncated_normal(self, tensor: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        # torch draws again as long as any value lies outside, which needs values.
        if not isinstance(tensor, FakeTensor):
            return self._truncated(tensor, *args, **kwargs)
        with torch.no_grad():
            self._keep(tensor, self._truncated(torch.zeros(SAMPLE_ELEMENTS), *args, **kwargs))
        return tensor

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if func not in _EMPTY and func not in _FILLED:
            result = func(*args, **kwargs)
            if isinstance(result, FakeTensor):
                self._follow(func, args, kwargs, result)
            return result
        if not self._is_weight(func, args, kwargs):
            return func(*args, **kwargs)
        with self.mode:
            weight = func(*args, **kwargs)
        self._keep(weight, _FILLED[func](SAMPLE_ELEMENTS) if func in _FILLED else None)
        return weight

    def _is_weight(self, func: Any, args: Any, kwargs: dict[str, Any]) -> bool:
        dtype, device = kwargs.get("dtype") or torch.get_default_dtype(), kwargs.get("device")
        if device is not None and torch.device(device).type != "cpu":
            return False
        return dtype.is_floating_point and (
            func in _EMPTY or math.prod(int(size) for size in args[0]) >= LARGE_ELEMENTS
        )

    def _follow(self, func: Any, args: Any, kwargs: dict[str, Any], result: FakeTensor) -> None:
        """Apply an op on a tensor to its sample too."""
        name = func.name().removeprefix("aten::").split(".")[0]
        first = args[0] if args and isinstance(args[0], torch.Tensor) else None
        if first is None:
            self._keep(result, None)
            return
        is_whole = first.numel() == first.untyped_storage().nbytes() // first.element_size()
        if name == "copy_":
            if is_whole:
                self._keep(first, self._sample_of(args[1]))
            return
        if name in _SAME:
            if _storage(result) != _storage(first):
                self._keep(result, self._sample_of(first))
            return
        numbers = not any(isinstance(arg, torch.Tensor) for arg in (*args[1:], *kwargs.values()))
        sample = self._sample_of(first)
        if name in _ELEMENTWISE and numbers and sample is not None:
            if result is not first or is_whole:
                self._keep(result, func(sample, *args[1:], **kwargs))
        elif name in ("normal_", "uniform_", "fill_", "zero_") and numbers:
            if is_whole:
                self._keep(first, func(torch.zeros(SAMPLE_ELEMENTS), *args[1:], **kwargs))
        elif _storage(result) != _storage(first) or (name.endswith("_") and is_whole):
            self._keep(result, None)

    def _sample_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        if isinstance(tensor, FakeTensor):
            sample = self.sample(tensor)
            return None if sample is None else sample.clone()
        flat = tensor.detach().reshape(-1).float()
        if not flat.numel():
            return None
        stride = max(1, flat.numel() // SAMPLE_ELEMENTS)
        return flat[::stride][:SAMPLE_ELEMENTS].clone()

    def _keep(self, tensor: torch.Tensor, sample: torch.Tensor | None) -> None:
        if sample is None:
            self._samples.pop(_storage(tensor), None)
        else:
            self._samples[_storage(tensor)] = sample


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata
