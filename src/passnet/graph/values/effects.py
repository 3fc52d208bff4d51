"""Calls that write into an argument or return its memory, by name only."""

from collections.abc import Hashable, Mapping, Sequence

from passnet.graph.fx.operators import IN_PLACE, name_set
from passnet.graph.spec import Op, op_refs, refs

_VIEWS = name_set("""
    view reshape transpose permute expand expand_as squeeze unsqueeze flatten unflatten narrow
    select split split_with_sizes chunk unbind getitem getattr detach contiguous to float half
    bfloat16 double long int bool short char byte type type_as view_as reshape_as t adjoint
    diagonal movedim moveaxis swapaxes swapdims unfold as_strided alias ravel atleast_1d
    atleast_2d atleast_3d tensor_split hsplit vsplit dsplit broadcast_to broadcast_tensors
    meshgrid view_as_real view_as_complex real imag resolve_conj resolve_neg positive conj
    requires_grad_ cpu cuda dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout
    feature_alpha_dropout pad index __getitem__ as_tensor einsum _unsafe_view pixel_shuffle
    pixel_unshuffle interpolate lift_fresh_copy sum_to_size expand_copy item pos conj_physical
    linalg_diagonal cfloat cdouble chalf to_dense cartesian_prod slice _reshape_alias unsafe_chunk
    unsafe_split unsafe_split_with_sizes
""")
"""Last names of calls whose result may be, or be a view of, their first argument."""

SHARES_ALL = name_set("einsum broadcast_tensors meshgrid atleast_1d atleast_2d atleast_3d")
"""Last names of calls whose result may share memory with any argument, not only the first."""

_RANDOM = name_set("""
    rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal
    dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout feature_alpha_dropout
    native_dropout uniform random exponential geometric cauchy log_normal rrelu rrelu_with_noise
    gumbel_softmax fractional_max_pool2d fractional_max_pool3d
""")
"""Last names of calls that draw random numbers, without underscores at their ends."""
_DROPS = name_set("scaled_dot_product_attention multi_head_attention_forward lstm gru")
"""Last names of calls that draw them where they drop values out."""

_STATE = name_set("""
    _set_grad_enabled _enter_autocast _exit_autocast _vmap_increment_nesting
    _vmap_decrement_nesting _add_batch_dim _remove_batch_dim lazy_load_decompositions
    _log_api_usage_once FunctionCtx _assert _check _check_is_size _assert_scalar _assert_async
""")
"""Last names of calls that change the state of the process, and no tensor."""

_IN_PLACE_OPERATORS = frozenset(IN_PLACE.values()) | {"setitem"}
_IN_PLACE_METHODS = name_set("""
    __setitem__ __iadd__ __isub__ __imul__ __itruediv__ __iand__ __ior__
""")


def last_name(target: str) -> str:
    """Return the last part of a target; for an aten op, the part before its overload."""
    if target.startswith("torch.ops."):
        return target.split(".")[3]
    return target.rsplit(".", 1)[-1]


def may_alias(target: str) -> bool:
    """Return whether the result of a call may share memory with its first argument."""
    return last_name(target) in _VIEWS or writes_first(target, {})


def writes_first(target: str, kwargs: Mapping[str, object]) -> bool:
    """Return whether a call writes into its first argument.

    Examples:
        >>> writes_first("operator.iadd", {}), writes_first("Tensor.mul_", {})
        (True, True)
        >>> writes_first("torch.nn.functional.relu", {"inplace": True})
        True
        >>> writes_first("Tensor.__and__", {}), writes_first("Tensor.relu", {})
        (False, False)
    """
    name = last_name(target)
    if target.startswith("operator."):
        return name in _IN_PLACE_OPERATORS
    if kwargs.get("inplace") is True:
        return True
    if name.startswith("__"):
        return name in _IN_PLACE_METHODS
    return name.endswith("_") and name != "requires_grad_"


def has_state(target: str) -> bool:
    """Return whether a call switches or checks a state (grad mode, autocast, vmap level)."""
    return last_name(target) in _STATE


def is_random(target: str) -> bool:
    """Return whether a call may draw random numbers."""
    return last_name(target).rstrip("_") in _RANDOM


def draws(target: str, arguments: Mapping[str, object]) -> bool:
    """Return whether a call with these arguments, by name, may draw random numbers.

    Examples:
        >>> draws("torch.nn.functional.dropout", {"p": 0.5, "training": False})
        False
        >>> draws("torch.nn.functional.dropout", {"p": 0.5})
        True
    """
    probabilities = [arguments.get(name) for name in ("p", "dropout_p", "dropout")]
    if arguments.get("training", arguments.get("train")) is False or 0 in probabilities:
        return False
    return is_random(target) or last_name(target) in _DROPS


class AliasClasses:
    """Groups of values that may share memory (union-find over views and in-place calls)."""

    def __init__(self) -> None:
        self._parents: dict[Hashable, Hashable] = {}

    def find(self, value: Hashable) -> Hashable:
        """Return the representative of the group of `value`."""
        parents = self._parents
        root = value
        while parents.get(root, root) != root:
            root = parents[root]
        while parents.get(value, value) != root:
            parents[value], value = root, parents[value]
        return root

    def join(self, values: Sequence[Hashable]) -> None:
        """Put all of `values` into one group."""
        for value in values[1:]:
            self._parents[self.find(value)] = self.find(values[0])


def alias_classes(ops: Sequence[Op]) -> AliasClasses:
    """Return the groups of values that may share memory."""
    classes = AliasClasses()
    for op in ops:
        if op.output is not None:
            shared = first_values(op) if may_alias(op.target) else ()
            classes.join([op.output, *written_values(op), *shared])
    return classes


def first_values(op: Op) -> tuple[str, ...]:
    """Return the values in the first argument of a call; all values where it is no plain one."""
    is_plain = op.args and last_name(op.target) not in SHARES_ALL
    return refs(op.args[0]) if is_plain else op_refs(op)


_INPLACE_INDEX = {
    **dict.fromkeys(("relu", "relu6", "silu", "selu", "mish", "hardswish", "hardsigmoid"), 1),
    **dict.fromkeys(("elu", "celu", "leaky_relu"), 2),
    **dict.fromkeys(("hardtanh", "threshold", "_threshold", "alpha_dropout"), 3),
    **dict.fromkeys(("dropout", "dropout1d", "dropout2d", "dropout3d"), 3),
    **{"feature_alpha_dropout": 3, "rrelu": 4},
}
"""The index of `inplace` among the arguments of functions of torch.nn.functional, by last name.

Source: their signatures in torch 2.13."""


def written_values(op: Op) -> tuple[str, ...]:
    """Return the values that a call writes into."""
    return (*written_results(op), *_written_state(op))


def written_results(op: Op) -> tuple[str, ...]:
    """Return the values that a call writes its result into; the rest of its writes are state."""
    kwargs = dict(op.kwargs)
    index = _INPLACE_INDEX.get(last_name(op.target), len(op.args))
    if op.target.startswith("torch.nn.functional.") and len(op.args) > index:
        kwargs["inplace"] = op.args[index]
    first = first_values(op) if writes_first(op.target, kwargs) else ()
    return (*first, *refs(kwargs.get("out")))


_OF_TORCH = dict.fromkeys(
    ("batch_norm", "instance_norm", "native_batch_norm", "_native_batch_norm_legit"),
    ("input", "weight", "bias", "running_mean", "running_var", "training"),
)
_OF_FUNCTIONS = {
    "batch_norm": ("input", "running_mean", "running_var", "weight", "bias", "training"),
    "instance_norm": ("input", "running_mean", "running_var", "weight", "bias", "use_input_stats"),
    "embedding": ("input", "weight", "padding_idx", "max_norm"),
    "embedding_bag": ("input", "weight", "offsets", "max_norm"),
}
"""The first arguments of functions of torch, and of torch.nn.functional, that may write into
others than the first one.

Source: their signatures in torch 2.13."""


def _written_state(op: Op) -> tuple[str, ...]:
    """Return the statistics of a norm in training, or the table whose rows are renormed."""
    name = last_name(op.target)
    signatures = _OF_FUNCTIONS if op.target.startswith("torch.nn.functional.") else _OF_TORCH
    if name not in signatures:
        return ()
    given = dict(zip(signatures[name], op.args, strict=False)) | dict(op.kwargs)
    if "max_norm" in signatures[name]:
        return refs(given.get("weight")) if given.get("max_norm") is not None else ()
    trains = given.get("training", given.get("use_input_stats", name == "instance_norm"))
    if trains is not True:
        return ()
    return (*refs(given.get("running_mean")), *refs(given.get("running_var")))
