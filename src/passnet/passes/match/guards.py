"""Guards: a pass's requirements on the tensors that it is applied to, in plain words.

A pass declares sentences, each about parameters of its pattern::

    guards = (
        "x, y: float32 or bfloat16, same dtype, shape (..., n), contiguous, cpu",
        "weight: shape (n), not empty",
        "n: multiple of 8",
    )

They are checked once for each match, on tensors without values; a match that they do not cover
keeps its original ops. `docs/passes.md` lists the words. A function `guard` of some parameters of
the pattern, which returns whether the pass may be applied, states further conditions.
"""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import torch
import torch.fx
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map_only

from passnet.errors import PassError, boundary
from passnet.graph.fx.operators import name_set
from passnet.graph.values.fake import fake_mode

_KINDS: dict[str, Callable[[torch.dtype], bool]] = {
    "floating": lambda dtype: dtype.is_floating_point,
    "integer": lambda dtype: (
        not (dtype.is_floating_point or dtype.is_complex) and dtype is not torch.bool
    ),
}
_SHAPE = re.compile(r"\(([^()]*)\)")
_REST = "..."


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a guard, on some parameters or, for a multiple, on the name of a size."""

    names: tuple[str, ...]
    words: str


@dataclass(frozen=True)
class GuardRefusal:
    """A requirement that is not met: the parameter, the expected property and the actual one."""

    name: str
    expected: str
    actual: str


@dataclass(frozen=True)
class Guards:
    """The guards of a pass: conditions in words, and a function of some parameters."""

    conditions: tuple[Condition, ...]
    function: Callable[..., Any] | None
    params: tuple[str, ...]

    def refusal(self, values: Mapping[str, Any]) -> GuardRefusal | None:
        """Return why the pass may not be applied, or None; raise PassError if `guard` fails.

        `values` are the pattern's known parameters by name: literals, and tensors without values.
        """
        sizes: dict[str, Any] = {
            name: value for name, value in values.items() if type(value) is int
        }
        for condition in self.conditions:
            for name in condition.names:
                if name in sizes:
                    continue
                if not isinstance(values.get(name), torch.Tensor):
                    return GuardRefusal(name, condition.words, _show(values.get(name)))
            why = _broken(condition, values, sizes)
            if why is not None:
                return why
        if self.function is None:
            return None
        missing = [name for name in self.params if name not in values]
        if missing:
            return GuardRefusal(missing[0], "a value that guard() can see", "nothing that is known")
        with boundary(PassError, "calling guard"), torch.no_grad():
            allows = self.function(**{name: values[name] for name in self.params})
        if allows:
            return None
        first = self.params[0]
        return GuardRefusal(first, "what guard() allows", _show(values[first]))


def make_guards(label: str, sentences: Any, function: Any, params: Sequence[str]) -> Guards | None:
    """Return the guards of a pass whose pattern has these parameters; None if it declares none.

    A malformed sentence or an unknown parameter is a PassError, which begins with `label`.
    """
    if isinstance(sentences, str):
        sentences = (sentences,)
    if not isinstance(sentences, (tuple, list)) or not all(type(s) is str for s in sentences):
        raise PassError(f"{label} must be sentences such as 'x, y: float32, same shape'")
    conditions: list[Condition] = []
    sizes: set[str] = set()
    for sentence in sentences:
        conditions += _parsed(label, sentence, params, sizes)
    if function is None:
        return Guards(tuple(conditions), None, ()) if conditions else None
    with boundary(PassError, f"{label}: guard is no function with parameters"):
        names = tuple(inspect.signature(function).parameters)
    if not names or any(name not in params for name in names):
        raise PassError(
            f"{label}: guard({', '.join(names)}) must take parameters of the pattern, "
            f"which are {', '.join(params)}"
        )
    return Guards(tuple(conditions), function, names)


def _parsed(label: str, sentence: str, params: Sequence[str], sizes: set[str]) -> list[Condition]:
    head, colon, tail = sentence.partition(":")
    names = tuple(name.strip() for name in head.split(","))
    words = _joined([part.strip() for part in re.split(r",(?![^()]*\))", tail)])
    if not colon or not all(words):
        raise PassError(f"{label}: {sentence!r} is no 'parameters: condition, condition'")
    is_size = all(name in sizes for name in names)
    unknown = [name for name in names if name not in params and not is_size]
    if unknown:
        choices = ", ".join([*params, *sorted(sizes)])
        raise PassError(f"{label}: {sentence!r} names {unknown[0]!r}; there are {choices}")
    if len(dtypes := [word for word in words if _is_dtype(word)]) > 1:
        raise PassError(
            f"{label}: {sentence!r} never holds; write {' or '.join(dtypes)!r} for one of these"
        )
    for word in words:
        if not _is_known(word, is_size):
            raise PassError(f"{label}: {word!r} in {sentence!r} is no condition")
        for text in _SHAPE.findall(word) if word.startswith("shape ") else ():
            sizes |= {part for part in _parts(text) if part.isidentifier()}
    return [Condition(names, " ".join(word.split())) for word in words]


def _joined(words: Sequence[str]) -> list[str]:
    """Return conditions with a list of dtypes such as 'float32, bfloat16 or float16' as one."""
    joined: list[str] = []
    for word in words:
        parts = re.split(r"\s+or\s+", word)
        while len(parts) > 1 and joined and all(map(_is_dtype, (joined[-1], *parts))):
            parts.insert(0, joined.pop())
        joined.append(" or ".join(parts))
    return joined


def _is_dtype(word: str) -> bool:
    return word not in _KINDS and _dtypes(word) is not None


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _is_known(word: str, is_size: bool) -> bool:
    if is_size:
        return re.fullmatch(r"multiple of [1-9]\d*", word) is not None
    if word.startswith("shape "):
        alternatives = word.removeprefix("shape ")
        texts = _SHAPE.findall(alternatives)
        return re.fullmatch(r"\([^()]*\)(\s+or\s+\([^()]*\))*", alternatives) is not None and all(
            _parts(text).count(_REST) <= 1
            and all(
                part in ("*", _REST) or part.isidentifier() or part.isdecimal()
                for part in _parts(text)
            )
            for text in texts
        )
    if word in ("same dtype", "same shape", "same device", "contiguous", "not empty"):
        return True
    if re.fullmatch(r"rank \d+( or \d+)*", word):
        return True
    return word in ("cpu", "cuda") or all(_dtypes(part) for part in re.split(r"\s+or\s+", word))


def _dtypes(word: str) -> Callable[[torch.dtype], bool] | None:
    if word in _KINDS:
        return _KINDS[word]
    dtype = getattr(torch, word, None) if word.isidentifier() else None
    return (lambda actual: actual == dtype) if isinstance(dtype, torch.dtype) else None


def _broken(
    condition: Condition, values: Mapping[str, Any], sizes: dict[str, Any]
) -> GuardRefusal | None:
    """Return the first parameter that breaks a condition; record sizes that get a name."""
    words, names = condition.words, condition.names
    if words.startswith("multiple of "):
        factor = int(words.removeprefix("multiple of "))
        wrong = [name for name in names if name not in sizes or sizes[name] % factor != 0]
        return GuardRefusal(wrong[0], words, str(sizes.get(wrong[0]))) if wrong else None
    first = values[names[0]]
    for name in names:
        tensor: torch.Tensor = values[name]
        if not _holds(words, tensor, first, sizes):
            return GuardRefusal(name, words, _show(tensor))
    return None


def _holds(words: str, tensor: torch.Tensor, first: torch.Tensor, sizes: dict[str, Any]) -> bool:
    match words.split(" ", 1):
        case ["same", "dtype"]:
            return tensor.dtype == first.dtype
        case ["same", "shape"]:
            return tensor.dim() == first.dim() and all(
                bool(size == first_size)
                for size, first_size in zip(tensor.shape, first.shape, strict=True)
            )
        case ["same", "device"]:
            return tensor.device == first.device
        case ["contiguous"]:
            return tensor.is_contiguous()
        case ["not", "empty"]:
            return all(bool(size != 0) for size in tensor.shape)
        case ["rank", ranks]:
            return str(tensor.dim()) in ranks.split(" or ")
        case ["shape", alternatives]:
            texts = _SHAPE.findall(alternatives)
            return any(_fits(_parts(text), tensor.shape, sizes) for text in texts)
        case ["cpu" | "cuda"]:
            return tensor.device.type == words
    return any(is_one(tensor.dtype) for part in words.split(" or ") if (is_one := _dtypes(part)))


def _fits(parts: Sequence[str], shape: Sequence[Any], sizes: dict[str, Any]) -> bool:
    """Return whether a shape is as written; if so, record the sizes that it names."""
    named = dict(sizes)
    remaining = list(shape)
    if _REST in parts:
        before = parts.index(_REST)
        after = len(parts) - before - 1
        if len(remaining) < before + after:
            return False
        middle = tuple(remaining[before : len(remaining) - after])
        bound = named.setdefault(_REST, middle)
        if len(bound) != len(middle) or not all(
            bool(size == first_size) for size, first_size in zip(bound, middle, strict=True)
        ):
            return False
        remaining = remaining[:before] + remaining[len(remaining) - after :]
        parts = [part for part in parts if part != _REST]
    if len(parts) != len(remaining):
        return False
    for part, size in zip(parts, remaining, strict=True):
        expected = int(part) if part.isdecimal() else named.setdefault(part, size)
        if part != "*" and not bool(size == expected):
            return False
    named.pop("*", None)
    sizes.update(named)
    return True


def _show(value: Any) -> str:
    if not isinstance(value, torch.Tensor):
        return "nothing that is known" if value is None else repr(value)
    sizes = ", ".join(map(str, value.shape))
    order = "" if value.is_contiguous() else f", strides ({', '.join(map(str, value.stride()))})"
    return f"{str(value.dtype).removeprefix('torch.')} ({sizes}){order} on {value.device.type}"


EXAMPLE = "example_value"
"""Key in a node's `meta` of a stand-in for its value; Dynamo writes it too."""


_RESHAPING = name_set("""
    t_ transpose_ squeeze_ unsqueeze_ swapaxes_ swapdims_ as_strided_ resize_ resize_as_ set_
""")


def note_example_values(module: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> None:
    """Note an example value at every node, as far as ops run, unless Dynamo has done so.

    Where a call changes the shape of a value in place, Dynamo's values have the last shape.
    """
    nodes = [node for node in module.graph.nodes if node.op != "output"]
    is_reshaped = any(str(node.target).rpartition(".")[2] in _RESHAPING for node in nodes)
    if not is_reshaped and all(EXAMPLE in node.meta for node in nodes):
        return
    mode = detect_fake_mode(example_inputs) or fake_mode()
    values = [
        mode.from_tensor(value, static_shapes=True) if isinstance(value, torch.Tensor) else value
        for value in example_inputs
    ]

    class Noting(torch.fx.Interpreter):
        def run_node(self, n: torch.fx.Node) -> Any:
            value = super().run_node(n)
            if is_reshaped and isinstance(value, torch.Tensor):
                n.meta[EXAMPLE] = value.detach()  # keeps its shape
            elif n.op != "output":
                n.meta.setdefault(EXAMPLE, value)
            return value

    with suppress(Exception), mode, torch.no_grad():  # boundary: whatever torch raises
        Noting(module).run(*values)


def note_example_value(node: torch.fx.Node) -> None:
    """Note an example value at a call, if all that it reads has one and it runs on stand-ins."""
    if not all(EXAMPLE in each.meta for each in node.all_input_nodes):
        return
    read = torch.fx.map_arg((node.args, node.kwargs), lambda each: each.meta[EXAMPLE])
    mode = detect_fake_mode(read) or fake_mode()

    def stand_in(value: torch.Tensor) -> torch.Tensor:
        is_one = isinstance(value, FakeTensor)
        return value if is_one else mode.from_tensor(value, static_shapes=True)

    args, kwargs = tree_map_only(torch.Tensor, stand_in, read)
    with suppress(Exception), mode, torch.no_grad():  # boundary: whatever torch raises
        if node.op == "call_method":
            node.meta[EXAMPLE] = getattr(args[0], str(node.target))(*args[1:], **kwargs)
        elif callable(node.target):
            node.meta[EXAMPLE] = node.target(*args, **kwargs)


class ValuesNeededError(Exception):
    """A guard asked for a value that `note_inputs` left out."""


_LEFT_OUT = object()


def note_inputs(module: torch.fx.GraphModule, inputs: Sequence[Any]) -> None:
    """Note example values at the arguments of a graph alone, which takes no fake tensors.

    Arguments without an example have none. A guard that asks for another value raises
    ValuesNeededError.
    """
    remaining = iter(inputs)
    for node in module.graph.nodes:
        node.meta[EXAMPLE] = next(remaining, None) if node.op == "placeholder" else _LEFT_OUT


def example_of(value: Any) -> Any:
    """Return the example value of a node, None without one; anything else as it is."""
    example = value.meta.get(EXAMPLE) if isinstance(value, torch.fx.Node) else value
    if example is _LEFT_OUT:
        raise ValuesNeededError
    return example
