"""A net and a call of it, and one built backend for this input signature."""

import copy
import itertools
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import is_not
from typing import Any

import torch
from torch.export import Dim, ExportedProgram, export
from torch.utils._pytree import TreeSpec, tree_flatten, tree_unflatten

from passnet.core.jobs.overtime import OvertimeError, limited_to
from passnet.errors import BackendError, InputError, boundary
from passnet.inductor.compiler import unspecialised_sizes
from passnet.optimizer.call import effects
from passnet.optimizer.call.foreign_tensors import constants_of_scripts, foreign_tensors
from passnet.optimizer.call.held_objects import held_by
from passnet.optimizer.call.process_state import random_states_kept
from passnet.optimizer.call.sizes import (
    CallPlan,
    CallSizes,
    compared_sizes,
    measured_sizes,
    resized,
    sizes_of,
    traced_sizes,
)
from passnet.optimizer.call.values import (
    OutputStructure,
    argument_names,
    check_arguments,
    comparable,
    difference,
    flattened,
    is_dense,
    lost_part,
    nested,
    objects_of,
    other_values,
    with_article,
)
from passnet.optimizer.call.weight_file import WeightFile
from passnet.optimizer.outside.original import calls_of_original, put_back, remember_original
from passnet.optimizer.outside.watched import watched
from passnet.optimizer.record import Precision, SizeRange

NUM_REPEATED = 5
"""Further calls at each of which a random generator must move, or another thread has drawn."""

_LEAST_OVERTIME_S, _OVERTIME = 2.0, 20
"""Seconds, and times of a usual call, after which a call on other values counts as one that fails:
a loop may be as long as they say.
"""


def within_overtime(call_s: float) -> AbstractContextManager[None]:
    """Return a context that ends a call which takes far longer than a usual one, by its seconds."""
    return limited_to(_LEAST_OVERTIME_S + _OVERTIME * call_s)


@dataclass(frozen=True, slots=True)
class BuiltBackend:
    """One built backend for one input signature, without checks.

    Args:
        leaves: the example's arguments, flat: tensors, and constants of the input signature.
        run: takes the tensors among the leaves and returns the tensors among the outputs.
        structure: the nesting of the outputs, and constants among them.
        weights: the parameters and buffers that it was built with, by name.
        is_frozen: weights are folded in.
        plain: the net as torch itself calls it, with a user's arguments.
        compares: folded values are compared with the weights at each call.
        bound: the largest magnitude of a float in arguments, none of them NaN; None for any.
        index_bounds: the least and greatest index allowed in each tensor, None for any.
        filled_rows: whether each row along a tensor's last axis must hold more than zeros.
        instead: the backend for calls that this one refuses for values of weights or arguments.
        by_size: for sizes that were measured, the backend that is fastest there; None for eager.
        ends_process: it may end the process where eager torch raises an error.
        bind: makes it read other weights, by name, where it keeps its own references.
        net: the copy of the net that it was built from.
        ranges: the sizes that vary from call to call.
        precision: a lower precision than the net's own in which it computes.
        attributes: by module, attributes of the copy after its calls.
        keeps_values: the net's first call sets attributes, and no later one does.
    """

    engine: str
    args_spec: TreeSpec
    leaves: tuple[Any, ...]
    run: Callable[[list[torch.Tensor]], Sequence[Any]]
    structure: OutputStructure
    weights: Mapping[str, torch.Tensor]
    is_frozen: bool = False
    plain: Callable[..., Any] | None = None
    compares: bool = False
    bound: float | None = None
    index_bounds: tuple[tuple[int, int] | None, ...] = ()
    filled_rows: tuple[bool, ...] = ()
    instead: "BuiltBackend | None" = None
    by_size: tuple[tuple[CallSizes, "BuiltBackend | None"], ...] = ()
    says: str = ""
    ends_process: bool = False
    bind: Callable[[Mapping[str, torch.Tensor]], None] | None = None
    net: torch.nn.Module | None = None
    ranges: tuple[SizeRange, ...] = ()
    precision: Precision | None = None
    attributes: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    keeps_values: bool = False

    @property
    def is_bounded(self) -> bool:
        """True where it runs only some values of arguments."""
        return self.bound is not None or bool(self.index_bounds) or any(self.filled_rows)

    def __call__(self, tensors: list[torch.Tensor]) -> Any:
        """Return the outputs, nested as the net returns them."""
        return nested(self.structure, self.run(tensors))


def leaf_in_words(leaf: Any) -> str:
    """Return the dtype and shape of a tensor, or a constant, as text."""
    if isinstance(leaf, torch.Tensor):
        return f"{str(leaf.dtype).removeprefix('torch.')}{list(leaf.shape)}"
    return repr(leaf)


class NetCall:
    """A net with the arguments of one call.

    `given` is the net as the user gave it, perhaps a function; `net` is a module. `leaves` are the
    arguments, flat; `outputs` the tensors among the outputs, and `structure` the rest of these;
    `seconds` is the time of the first call.
    `written` names the weights and arguments that a call writes into. `refusal` is a sentence why
    no backend may serve the net, None where one may; calls for comparisons add to it, as outputs
    other than tensors must stay as in the example. `keeps_values` is True if the first call set
    attributes, `divides_towards_zero` if a call divides whole numbers so. `weight_file` holds
    weights for children.
    `ranges` are sizes that vary from call to call; `plan` says which arguments it has for some.
    `original` is the user's net of which the net is a copy or a part of one.

    Raises:
        InputError: the net is in training mode, fails on these arguments, or returns no tensor;
            arguments cannot be checked, or outputs not made anew.
    """

    def __init__(
        self,
        net: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        weight_file: WeightFile | None = None,
        ranges: tuple[SizeRange, ...] = (),
        plan: CallPlan | None = None,
        original: torch.nn.Module | None = None,
    ) -> None:
        self.ranges, self.plan = ranges, plan
        self.autocast: torch.dtype | None = None
        self.given, self.net, self.weight_file = net, as_module(net), weight_file
        is_training = getattr(self.net, "training", False)  # which frozen scripts lack
        if is_training and net is self.net and not _is_exported(self.net):
            raise InputError(
                f"{type(net).__name__} is in training mode; call net.eval() first: only nets that "
                "are evaluated are optimised"
            )
        self.args, self.kwargs = tuple(args), dict(kwargs)
        check_arguments(self.args, self.kwargs)
        self.leaves, self.args_spec = tree_flatten((self.args, self.kwargs))
        self.weights = state_tensors(self.net)
        self.written: list[str] = []
        self.refusal: str | None = None
        self.divides_towards_zero = self.keeps_values = False
        self._outside = Counter[str]()
        self._draws: Collection[str] = ()
        with effects.shared_kept(self.net), random_states_kept(lambda: bool(self._draws)):
            self._first_call(original)

    def _first_call(self, original: torch.nn.Module | None) -> None:
        """Call the net on the example, and note its side effects."""
        names = argument_names(self.args, self.kwargs)
        named = zip(names, self.leaves, strict=True)
        tensors = self.weights | {name: leaf for name, leaf in named if is_dense(leaf)}
        before, copy = effects.state_of(self.net, tensors), effects.bare_copy(self.net)
        own = None if original is None else remember_original(original, state_tensors(original))
        args, kwargs = tree_unflatten(list(self.leaves), self.args_spec)
        start = time.perf_counter()
        try:
            with torch.no_grad(), watched() as seen:
                outputs = self.net(*args, **kwargs)
        except Exception as cause:
            raise InputError(
                f"the net fails on these inputs: {type(cause).__name__}: {cause}"
            ) from cause
        finally:
            self.seconds = time.perf_counter() - start
            others, are_back = ([], True) if own is None else put_back(own, self.weights)
        self.outputs, self.structure = flattened(outputs)
        if not self.outputs:
            raise InputError("the net returns no tensor; return its numbers as tensors")
        if not all(map(is_dense, self.outputs)):
            raise InputError("the net returns a sparse tensor, or one of a class of its own")
        self._objects = objects_of((args, kwargs))
        self._note_structure(outputs)
        self._objects = objects_of(outputs)  # kept, so that no other object has their identities
        after, former = effects.state_of(self.net, tensors), self.weights
        self.weights = state_tensors(self.net)  # tables of a first call too
        self.written, self._draws = effects.written(before, after), effects.drawn(before, after)
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self.args_spec or any(map(is_not, leaves, self.leaves)):
            self.written.append("a list or dict among its arguments")
        outputs = set(map(id, self.outputs))
        returned = [name for name, weight in self.weights.items() if id(weight) in outputs]
        strange = [name for name, weight in self.weights.items() if not is_dense(weight)]
        if strange:
            self.refusal = f"attribute {strange[0]} is a sparse tensor or one of a class of its own"
        elif self.written:
            self.refusal = f"the net writes into {_listed(self.written)}"
        elif returned:
            self.refusal = f"the net returns its weight {returned[0]} itself; return a copy"
        elif original is not None and (bound := calls_of_original(self.net, original)):
            self.refusal = (
                f"{bound} of a copy of the net calls the net itself; give the net as it was before "
                "torch.compile, or another wrapper, was put there"
            )
        elif others:
            lost = "" if are_back else "; its former values are lost, so load them again"
            self.refusal = (
                f"a call of a copy of the net changes {_listed(others)} of the net itself, by an "
                f"object, hook or closure that both hold{lost}"
            )
        elif seen and (again := [name for name in self._seen_again() if name in seen]):
            self.refusal = f"each call {' and '.join(again)}, which a backend would not"
        else:
            self._draws = self._drawn_again(self._draws)
        if self._draws and not self.refusal:
            self.refusal = (
                f"the net draws from the random generator of {_listed(self._draws)}, and a backend "
                "would draw other numbers; pass them as an argument"
            )
        if self.refusal:
            return
        is_anew = any(self.weights[name] is not former.get(name) for name in self.weights)
        self.keeps_values = bool(effects.moved(before, after)) or is_anew
        if self.keeps_values:
            self._compare_states(before, after, copy)
        elif not self.structure.has_tensors_alone:
            self._call_otherwise(self.net)
        if not self.refusal:
            self._call_in_inference_mode()

    def _seen_again(self) -> Collection[str]:
        """Return what a second call does outside of the net; what is done but once, such as an
        import, is no effect of a call.
        """
        with watched() as effects_seen, suppress(Exception):
            self.eager(self.leaves)
        return effects_seen

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Refuse a net of which two calls do the same outside of it, for any arguments."""
        try:
            with watched() as seen:
                yield
        finally:
            self._outside.update([*seen])
            again = [name for name in seen if self._outside[name] > 1]
            if again and not self.refusal:
                self.refusal = f"some calls {_without_s(again)}, which a backend would not"

    def _drawn_again(self, names: Collection[str]) -> list[str]:
        """Return the random generators that move at each further call, too: another thread may have
        drawn from one. A call that sets a seed moves one from any other state.
        """
        net = effects.bare_copy(self.net) if names else self.net
        for _ in range(NUM_REPEATED if names else 0):
            effects.draw_from_all()
            before = effects.generators()
            with suppress(Exception):
                self.eager(self.leaves, net)
            moved = effects.differing(before, effects.generators())
            names = [name for name in names if name in moved]
        return [*names]

    def compare_with(self, original: Callable[..., Any]) -> None:
        """Refuse a net that is no copy in all: it knows its own weights or modules by identity.

        The net itself is called, unless its first call would keep a value.
        """
        if self.refusal or self.keeps_values:
            return
        try:
            with _scripts_kept(original):
                own = self.eager_outputs(self.filled([x.clone() for x in self.tensors()]), original)
            is_alike = all(itertools.starmap(_are_close, zip(own, self.outputs, strict=True)))
        except Exception:  # noqa: BLE001 (boundary: a net may raise anything)
            is_alike = False
        if not is_alike:
            self.refusal = (
                "a copy of the net returns other values than the net, which may know its weights "
                "or modules by their identity"
            )

    def at(self, sizes: CallSizes) -> "NetCall":
        """Return a call of the same net whose arguments have these sizes, and the example's values.

        It takes the place of the first call for comparisons alone: `refusal` is of its own outputs.

        Raises:
            InputError: the net fails on them.
        """
        other = copy.copy(self)
        other.leaves = self.filled(self.tensors_of(sizes))
        other.args, other.kwargs = tree_unflatten(other.leaves, self.args_spec)
        start = time.perf_counter()
        try:
            other.outputs = other.eager_outputs(other.leaves)
        except Exception as cause:
            of = ", ".join(f"{r.name} {size}" for r, size in zip(self.ranges, sizes, strict=True))
            raise InputError(
                f"the net fails on inputs of other sizes ({of}): {type(cause).__name__}: {cause}"
            ) from cause
        other.seconds = time.perf_counter() - start
        return other

    @property
    def measured_sizes(self) -> list[CallSizes]:
        """The sizes for which times are taken."""
        return self.plan.measured if self.plan else measured_sizes(self.ranges)

    @property
    def compared_sizes(self) -> list[CallSizes]:
        """The sizes for comparisons besides the example's."""
        return self.plan.compared if self.plan else compared_sizes(self.ranges)

    def tensors_of(self, sizes: CallSizes) -> list[torch.Tensor]:
        """Return arguments of some sizes."""
        if self.plan is not None:
            return self.plan.example(sizes)
        return resized(self.tensors(), self.ranges, sizes)

    def _call_in_inference_mode(self) -> None:
        """Refuse a net that reads tensors which nobody watches, or that returns other values in
        inference mode.
        """
        if unseen := effects.unseen_of(self.net):
            self.refusal = f"{unseen}; hold what the net reads of it as buffers, numbers or lists"
            return
        known = [*self.weights.values(), *self.tensors(), *constants_of_scripts(self.net)]
        try:
            with torch.inference_mode():
                outputs, foreign, self.divides_towards_zero = foreign_tensors(
                    lambda: self.eager_outputs(self.leaves), known
                )
            is_alike = all(itertools.starmap(_are_close, zip(outputs, self.outputs, strict=True)))
        except Exception as cause:  # noqa: BLE001 (boundary: a net may raise anything)
            self.refusal = f"the net fails in inference mode: {type(cause).__name__}: {cause}"
            return
        if foreign:
            tensor = leaf_in_words(foreign[0])
            self.refusal = (
                f"the net reads a tensor, {tensor}, that is neither an argument nor in its "
                "attributes; register it as a buffer"
            )
        elif not is_alike:
            self.refusal = "the net returns other values in inference mode"

    def _compare_states(
        self, before: effects.State, after: effects.State, copy: torch.nn.Module
    ) -> None:
        """Find attributes that other arguments or a second call set to other values or tensors."""
        first = effects.attributes_of(copy)
        self._call_otherwise(copy)
        second = effects.attributes_of(copy)
        names = dict.fromkeys([*effects.moved(before, after), *effects.differing(first, second)])
        moves = [name for name in names if after.attributes.get(name) != second.get(name)]
        self._call_otherwise(self.net)
        moves += effects.differing(after.attributes, effects.attributes_of(self.net))
        own = state_tensors(self.net)
        anew = [name for name in own if own[name] is not self.weights.get(name)]
        if moves:
            self.refusal = (
                f"each call changes {_listed(moves)}, which a backend would not; pass such a "
                "value as an argument and return it"
            )
        elif anew:
            self.refusal = (
                f"each call computes attribute {_listed(anew)} anew, as weight_norm and prune of "
                "torch.nn.utils do; remove what computes it, or use parametrizations"
            )
        if self.refusal:
            return
        try:
            pairs = zip(self.eager_outputs(self.leaves), self.outputs, strict=False)
            is_alike = all(itertools.starmap(_are_close, pairs))
        except Exception:  # noqa: BLE001 (boundary: a net may raise anything)
            is_alike = False
        if not is_alike:
            self.refusal = (
                "the first call of the net returns other values than the next; call it once first"
            )

    def _call_otherwise(self, net: torch.nn.Module) -> None:
        """Call a net on other values than the example's, as far as it takes them."""
        for with_whole in (True, False):
            try:
                moved = {id(tensor): other_values(tensor, with_whole) for tensor in self.tensors()}
                leaves = [moved.get(id(leaf), leaf) for leaf in self.leaves]
                with within_overtime(self.seconds):
                    outputs = self.eager(leaves, net)
            except (Exception, OvertimeError):  # noqa: BLE001, S112 (boundary: a net raises anything)
                continue
            self._note_structure(outputs)
            return

    def eager(self, leaves: Sequence[Any], net: Callable[..., Any] | None = None) -> Any:
        """Call the net, or a replacement for it, with these leaves."""
        args, kwargs = tree_unflatten(list(leaves), self.args_spec)
        lower = self.autocast
        context = nullcontext() if lower is None else torch.autocast("cpu", dtype=lower)
        with torch.no_grad(), context:
            return (self.net if net is None else net)(*args, **kwargs)

    def eager_outputs(
        self, leaves: Sequence[Any], net: Callable[..., Any] | None = None
    ) -> list[torch.Tensor]:
        """Return the tensors among the outputs of the same call, in order."""
        outputs = self.eager(leaves, net)
        if net is None and not torch.compiler.is_compiling():
            self._note_structure(outputs)
        return flattened(outputs)[0]

    def _note_structure(self, outputs: Any) -> None:
        """Note outputs that no backend returns: of another structure than the example's, or with
        gradients.
        """
        if self.refusal:
            return
        try:
            tensors, structure = flattened(outputs)
            differs = difference(self.structure, structure)
        except InputError:
            tensors, differs = [], "objects for some arguments alone"
        former = set(map(id, self._objects))
        again = [value for value in objects_of(outputs) if id(value) in former]
        if differs:
            self.refusal = f"the net returns {differs}; return tensors instead"
        elif again:
            kind = with_article(type(again[0]).__name__)
            self.refusal = (
                f"the net returns {kind} of its own or of its arguments, and a backend would "
                "return another one; return a copy"
            )
        elif lost := lost_part(outputs):
            self.refusal = f"the net returns {lost}, and a backend another; return tensors instead"
        elif any(tensor.requires_grad for tensor in tensors):
            self.refusal = "the net returns a tensor that needs a gradient; return it detached"

    def filled(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """Return the leaves with these tensors in place of their own."""
        remaining = iter(tensors)
        return [next(remaining) if isinstance(leaf, torch.Tensor) else leaf for leaf in self.leaves]

    def tensors(self) -> list[torch.Tensor]:
        """Return the tensors among the leaves."""
        return [leaf for leaf in self.leaves if isinstance(leaf, torch.Tensor)]

    @property
    def sizes(self) -> CallSizes:
        """The sizes of the example, of each range one."""
        return sizes_of(self.ranges, self.tensors())

    def weights_away(self) -> AbstractContextManager[None]:
        """Free the memory of weights that a file holds, while a child works."""
        file = self.weight_file
        return file.away() if file is not None and file.is_written else nullcontext()

    @property
    def num_bytes(self) -> int:
        """The bytes of all weights."""
        return sum(weight.nbytes for weight in self.weights.values())

    @property
    def is_on_cpu(self) -> bool:
        """True where all weights are in the memory of the processor."""
        return all(weight.device.type == "cpu" for weight in self.weights.values())

    def built(
        self,
        engine: str,
        run: Callable[[list[torch.Tensor]], Sequence[Any]],
        is_frozen: bool = False,
        plain: Callable[..., Any] | None = None,
    ) -> BuiltBackend:
        """Return a backend for this input signature."""
        return BuiltBackend(
            engine,
            self.args_spec,
            tuple(self.leaves),
            run,
            self.structure,
            self.weights,
            is_frozen,
            plain,
            net=self.net,
            ranges=self.ranges,
            keeps_values=self.keeps_values,
        )

    @cached_property
    def exported_flat(self) -> ExportedProgram:
        """The program of a net that takes the tensors alone and returns `distinct_outputs`."""
        with boundary(BackendError, "torch.export"), torch.no_grad():
            flat = FlatNet(self, list(self.distinct_outputs.values())).eval()
            for weight in flat.parameters():
                weight._is_param = True  # type: ignore[attr-defined] (those of scripted modules)
            inputs: list[torch.Tensor] = []
            # a size of 1 would be taken for a constant
            for tensor in self.tensors_of(traced_sizes(self.ranges)):
                is_again = any(tensor is earlier for earlier in inputs)  # or it were one input
                inputs.append(tensor.clone() if is_again else tensor)
            return exported(flat, inputs, self.ranges)

    def in_autocast(self, dtype: torch.dtype) -> "NetCall":
        """Return the same call of the net in autocast, whose program is to be exported."""
        lowered = copy.copy(self)
        lowered.autocast = dtype
        vars(lowered).pop("exported_flat", None)
        return lowered

    @cached_property
    def distinct_outputs(self) -> dict[int, int]:
        """The first position of each output, by its identity."""
        first: dict[int, int] = {}
        for number, output in enumerate(self.outputs):
            first.setdefault(id(output), number)
        return first


def exported(
    net: torch.nn.Module, tensors: Sequence[torch.Tensor], ranges: Sequence[SizeRange]
) -> ExportedProgram:
    """Return the program of a net of tensors, for all sizes of some ranges.

    Export refuses a net that takes other branches for some of these sizes, except for a size of 1
    where it cannot tell.
    """
    dims: list[dict[int, Any]] = [{} for _ in tensors]
    for number, size_range in enumerate(ranges):
        dim = Dim(f"size_{number}", min=size_range.low, max=size_range.high)
        for position, axis in size_range.places:
            dims[position][axis] = dim
    if not ranges:
        return export(net, tuple(tensors), strict=False)
    shapes = (tuple(dims),)
    with suppress(Exception), unspecialised_sizes():  # attention of torch asks whether a size is 1
        return export(net, tuple(tensors), dynamic_shapes=shapes, strict=False)
    return export(net, tuple(tensors), dynamic_shapes=shapes, strict=False)


class FlatNet(torch.nn.Module):
    """A net that takes the tensors of a call and returns its outputs, or some, as a tuple."""

    def __init__(self, call: NetCall, numbers: Sequence[int] | None = None) -> None:
        super().__init__()
        self.net = call.net
        self._call, self._numbers = call, numbers

    def forward(self, *tensors: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return the outputs of the net, flat."""
        outputs = self._call.eager_outputs(self._call.filled(tensors))
        if self._call.autocast is not None:
            outputs = [o.to(own.dtype) for o, own in zip(outputs, self._call.outputs, strict=True)]
        return tuple(outputs if self._numbers is None else (outputs[n] for n in self._numbers))


class FunctionNet(torch.nn.Module):
    """A function of tensors as a module; it must hold no module or tensor."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        for value in _held_by(function):
            if isinstance(value, (torch.nn.Module, torch.Tensor)):
                raise InputError(
                    f"the function holds a {type(value).__name__}, whose changes would not be "
                    "seen; give a torch.nn.Module that holds it and calls the function"
                )
        self.function = function

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.function(*args, **kwargs)


def as_module(net: Callable[..., Any]) -> torch.nn.Module:
    """Return a net, or a function of tensors, as a module."""
    return net if isinstance(net, torch.nn.Module) else FunctionNet(net)


def name_of(net: Callable[..., Any]) -> str:
    """Return the name of a net's class, or of a function."""
    if isinstance(net, torch.nn.Module):
        return net.__class__.__name__  # of an optimised net the net's
    return getattr(net, "__name__", type(net).__name__)


def weights_of(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the parameters and buffers of a net, by each of their names."""
    return {
        **dict(net.named_parameters(remove_duplicate=False)),
        **dict(net.named_buffers(remove_duplicate=False)),
    }


def state_tensors(net: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the weights of a net and all other tensors that its attributes hold, by name."""
    return {**held_by(net).tensors, **weights_of(net)}


@contextmanager
def _scripts_kept(net: Callable[..., Any]) -> Iterator[None]:
    """Remove the methods that torch keeps in scripted modules once these are called."""
    modules = net.modules() if isinstance(net, torch.nn.Module) else ()
    before = [(vars(m), {*vars(m)}) for m in modules if isinstance(m, torch.jit.ScriptModule)]
    try:
        yield
    finally:
        for own, names in before:
            for name in own.keys() - names:
                del own[name]


def _is_exported(net: torch.nn.Module) -> bool:
    """Return whether a net is a program of `torch.export`, whose ops ask for no training flag."""
    return any(kind.__module__ == "torch.export._unlift" for kind in type(net).__mro__)


def _are_close(output: torch.Tensor, right: torch.Tensor) -> bool:
    output, right = comparable(output), comparable(right)
    if output.shape != right.shape or not right.is_floating_point():
        return torch.equal(output, right)
    return torch.allclose(output, right, rtol=1e-3, atol=1e-6, equal_nan=True)


def _without_s(says: Sequence[str]) -> str:
    """Return what calls do of what each does: "logs to a" as "log to a"."""
    words = (sentence.split(" ", 1) for sentence in says)
    return " and ".join(" ".join([verb.removesuffix("s"), *tail]) for verb, *tail in words)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(names[:3]))


def _held_by(function: Any) -> list[Any]:
    """Return the objects held by a method, a closure or a `partial`."""
    values = [getattr(function, "__self__", None)]
    values += [cell.cell_contents for cell in getattr(function, "__closure__", None) or ()]
    if isinstance(function, partial):
        values += [*function.args, *function.keywords.values(), *_held_by(function.func)]
    return values
