"""The rules of the static inspection, as data: what the use of a name in a pass means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.judge.findings import Severity

RuleVerdict: TypeAlias = tuple[Severity, str]
"""How much a finding weighs, and its name."""

OP: RuleVerdict = ("reject", "torch_fallback")
"""A torch op, by its dotted name."""
METHOD: RuleVerdict = ("flag", "torch_fallback")
"""A method or operator that computes if its object is a tensor, which text cannot tell."""
EVASION: RuleVerdict = ("flag", "evasion")
PATTERN_CALLED: RuleVerdict = ("flag", "pattern_called")
PATCH: RuleVerdict = ("flag", "timer_patch")
PERSISTENCE: RuleVerdict = ("flag", "persistence")
COMPARISON: RuleVerdict = ("flag", "overloaded_comparison")


@dataclass(frozen=True, slots=True)
class Rules:
    """What code outside `pattern` and `replacement_args` may use.

    `names`: dotted name -> what its use and the use of what is below it means; the longest name
    counts, None means nothing. `attributes`: the same for attributes of any object. `methods`:
    those that compute when called on a tensor. `torch`: the names of torch that may be used, with
    what is below them; None where all may. `texts`: what a string may not hold, as native code does
    that looks for a library to compute with.
    """

    names: dict[str, RuleVerdict | None]
    attributes: dict[str, RuleVerdict]
    methods: frozenset[str]
    torch: frozenset[str] | None
    texts: frozenset[str] = frozenset()


def _words(text: str, prefix: str = "") -> frozenset[str]:
    return frozenset(prefix + name for name in text.split())


def _each(verdict: RuleVerdict, text: str, prefix: str = "") -> dict[str, RuleVerdict]:
    return dict.fromkeys(_words(text, prefix), verdict)


_MOVING = _words(
    """contiguous view reshape size stride dim numel data_ptr shape dtype device is_contiguous
    element_size expand t transpose permute unsqueeze squeeze flatten new_empty new_zeros clone
    copy_ to item""",
    "torch.Tensor.",
)
"""Methods that move or describe data and compute nothing."""

_COMPUTING = _words(
    """abs abs_ add add_ addbmm addcdiv addcdiv_ addcmul addcmul_ addmm addmm_ addmv all amax
    amin any argmax argmin argsort avg_pool2d adaptive_avg_pool2d baddbmm baddbmm_
    batch_norm bernoulli bmm cat ceil clamp clamp_ clamp_max clamp_min conv1d conv2d conv3d cos cosh
    cross cummax cumprod cumsum cumsum_ diff div div_ dot dropout einsum embedding eq erf exp exp_
    fft floor fmod gather gelu gelu_ group_norm hardswish hardtanh index_add index_add_ index_select
    inverse kron layer_norm leaky_relu lerp lerp_ linear log log1p log2 log_softmax logsumexp
    masked_fill masked_fill_ masked_select matmul max max_pool2d maximum mean median min minimum mm
    mul mul_ multiply mv nansum neg neg_ norm normal_ outer pow pow_ prelu prod reciprocal relu
    relu6 relu_ roll rms_norm rsqrt rsqrt_ rsub scaled_dot_product_attention scatter scatter_
    scatter_add scatter_add_ scatter_reduce sigmoid sigmoid_ sign silu silu_ sin sinh softmax
    softplus sqrt sqrt_ square stack std sub sub_ sum tan tanh tanh_ tensordot topk tril triu
    true_divide uniform_ unfold var var_mean where xlogy __add__ __iadd__ __matmul__
    __rmatmul__ __imatmul__ __mul__ __imul__ __sub__ __truediv__ __pow__ __neg__"""
)

_TORCH = _MOVING | _words(
    """
    empty empty_like empty_strided zeros zeros_like ones ones_like full full_like as_tensor tensor
    from_numpy
    float16 float32 float64 bfloat16 half float double bool uint8 uint16 uint32 uint64 int8 int16
    int32 int64 short int long complex32 complex64 complex128 cfloat cdouble float8_e4m3fn
    float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
    strided sparse_coo sparse_csr contiguous_format channels_last channels_last_3d preserve_format
    Size dtype device layout memory_format
    fx.wrap utils.cpp_extension version __version__
    cuda.current_stream cuda.get_device_properties cuda.device cuda.current_device cuda.synchronize
    cuda.device_count cuda.is_available cuda.get_device_capability
    is_tensor numel get_num_threads finfo iinfo promote_types result_type is_floating_point
    is_complex get_default_dtype broadcast_shapes can_cast no_grad inference_mode is_grad_enabled
    compiler.is_compiling backends.cpu.get_cpu_capability backends.mkldnn.is_available""",
    "torch.",
)

KERNEL_DECORATORS = _words("triton.jit numba.njit numba.cuda.jit numba.vectorize numba.guvectorize")
"""What is under these is compiled, and never runs as Python on a tensor."""

OWN_OBJECTS = _words(
    """numpy math ctypes cffi cppyy numba cupy triton json re time struct decimal.Decimal
    passnet.passes.cpp torch.utils.cpp_extension"""
)
"""Whatever comes out of these, and out of their methods, is no tensor of torch."""

CONTAINERS = _words("str bytes set frozenset list tuple dict", "builtins.")
"""What these make is no tensor, though what is in it may be."""

NUMBER_MAKERS = (
    _words("int float bool complex len", "builtins.")
    | _words("sqrt exp log log2 pow fsum", "math.")
    | _words("float16 float32 float64 int8 int16 int32 int64 bool_", "numpy.")
    | _words("uint8 uint16 uint32 uint64", "numpy.")
)
"""What these make is a number, or an array of them, whatever they are given."""
VIEWS = _words("T mT real imag flat size ndim itemsize nbytes")
"""Attributes of an array that are numbers."""
ARRANGING = _words("reshape transpose swapaxes repeat squeeze ravel flatten copy item tolist")
"""Methods of an array of numbers that give its numbers, whatever they are given."""
SHAPED_MAKERS = _words("zeros ones empty", "numpy.")
"""What makes numbers of a shape, and of a type that is given after it."""
ARRAY_MAKERS = SHAPED_MAKERS | _words("array asarray ascontiguousarray full arange", "numpy.")
"""What makes an array of the `dtype` that it is given, if it is."""

NO_OPERANDS = _words("log exp sqrt abs ceil floor sign neg square")
"""Methods that on a tensor raise if they are given anything."""
NO_TEXT = _words("add sub")
"""Methods that on a tensor raise if they are given a string or a container."""

REACHERS = _words(
    """type setattr delattr vars builtins inspect pickle copyreg __class__ __func__ __dict__
    __getattr__ __getattribute__ __setattr__ __delattr__ __setstate__ __reduce__ __get__"""
)
"""What reaches a method otherwise than through its object, or an attribute by a name that is not
written out: where one is mentioned, an attribute may be more than what is assigned to it.
"""
BASES = _words(
    """builtins.object builtins.tuple builtins.str builtins.int builtins.float
    builtins.dict builtins.list builtins.set builtins.frozenset builtins.Exception
    builtins.ValueError builtins.RuntimeError typing.NamedTuple
    typing.Protocol typing.final enum.Enum enum.IntEnum enum.StrEnum
    enum.Flag enum.unique abc.ABC abc.ABCMeta dataclasses.dataclass dataclasses.dataclass()
    functools.total_ordering"""
)
"""What a class may be made of, by base, decorator or metaclass, so that its objects are no tensors
and have no attributes but its own; with `()`, by what a call of it gives.
"""
CALLED_BY_US = _words("pattern replacement_args replacement_func")
"""Functions of a pass that other code than its own calls."""
SWITCHES = frozenset(["TRITON_INTERPRET"])
"""Variables of the environment that a pass may set."""

EMBEDDED = _words("torch os sys subprocess ctypes importlib builtins threading multiprocessing")
"""Modules that are themselves when reached through another that imports them (`cpp.os.system`)."""

HARMLESS_DUNDERS = _words("__name__ __version__ __file__ __doc__")
WRITERS = {"builtins.open": 1, "io.open": 1, "codecs.open": 1, "os.fdopen": 1, "?.open": 0}
"""What opens files -> the position of its mode."""
SETTERS = _words("setattr delattr object.__setattr__ type.__setattr__")
REFLECTION = _words("getattr hasattr setattr delattr isinstance vars", "builtins.")
"""What may be called with the module torch itself."""
APPLIERS = _words("builtins.map builtins.filter functools.partial functools.reduce")
"""What calls its first argument."""
COMPARISONS = _words("__eq__ __ne__")
OVERLOADS = COMPARISONS | _words("__torch_function__ __torch_dispatch__")
CLASS_MAKERS = _words("builtins.type types.new_class")

_NAMES: dict[str, RuleVerdict | None] = {
    **_each(EVASION, "exec eval compile __import__ globals locals __builtins__", "builtins."),
    **_each(EVASION, "importlib imp runpy pkgutil zipimport site passnet"),
    **_each(EVASION, "ctypes.pythonapi ctypes.PyDLL pickle marshal dill cloudpickle"),
    **_each(EVASION, "path meta_path path_hooks path_importer_cache", "sys."),
    **_each(PATCH, "unittest.mock"),
    **_each(("flag", "thread"), "threading multiprocessing concurrent asyncio _thread"),
    **_each(("flag", "thread"), "torch.jit.fork torch.jit._fork"),
    **_each(("flag", "process"), "subprocess pty signal"),
    **_each(
        ("flag", "process"),
        """fork forkpty system popen _exit abort kill killpg posix_spawn posix_spawnp execl execle
        execlp execlpe execv execve execvp execvpe spawnl spawnle spawnlp spawnlpe spawnv spawnve
        spawnvp spawnvpe""",
        "os.",
    ),
    **_each(("flag", "network"), "socket socketserver urllib http requests ssl ftplib smtplib"),
    **_each(
        ("flag", "introspection"),
        """gc.get_objects gc.get_referrers gc.get_referents sys._getframe sys._current_frames
        sys.modules sys.settrace sys.setprofile inspect.stack inspect.currentframe inspect.trace
        inspect.getouterframes inspect.getinnerframes traceback.walk_stack traceback.walk_tb""",
    ),
    **_each(
        PERSISTENCE,
        """tempfile shelve dbm mmap multiprocessing.shared_memory torch.save numpy.save numpy.savez
        numpy.savetxt numpy.memmap os.open os.memfd_create os.putenv os.unsetenv os.environ.update
        os.environ.setdefault os.environ.pop os.environ.clear os.environ.__setitem__""",
    ),
    **_each(
        ("flag", "nested_compile"),
        "torch.compile torch._inductor torch._dynamo.optimize torch.jit.script torch.jit.trace",
    ),
    **_each(
        ("note", "foreign_code"),
        "ctypes cffi cppyy numba cupy pycuda pybind11 cutlass tilelang torch.utils.cpp_extension",
    ),
    "passnet.passes.cpp": None,
    "passnet.errors": None,
}

_ATTRIBUTES = {
    **_each(
        ("flag", "introspection"),
        "f_back f_locals f_globals f_builtins tb_frame gi_frame cr_frame",
    ),
    **_each(EVASION, "__globals__ __builtins__ __subclasses__ __closure__ __self__ __path__"),
    **_each(PERSISTENCE, "write_text write_bytes tofile symlink_to hardlink_to"),
}

OPEN = Rules(_NAMES, _ATTRIBUTES, frozenset(), None)
"""Torch ops are allowed; what evades an inspection or attacks a judge is not."""

STRICT = Rules(
    _NAMES
    | _each(METHOD, "operator.matmul operator.imatmul")
    | _each(EVASION, "operator.methodcaller operator.attrgetter")
    | _each(METHOD, "torchvision torchaudio torchao functorch timm transformers xformers einops"),
    _ATTRIBUTES,
    _COMPUTING,
    _TORCH,
    _words("dlsym dlopen cblas_ libtorch libmkl openblas"),
)
"""Own kernels only: torch creates, describes and moves tensors, and computes nothing."""

RulesName: TypeAlias = Literal["strict", "open"]

RULES: dict[RulesName, Rules] = {"strict": STRICT, "open": OPEN}


def meanings(rules: Rules, path: str) -> list[RuleVerdict]:
    """What the use of a name means, most often nothing.

    Args:
        rules: the rules that hold where it is used.
        path: its dotted path from the module it lives in.

    Examples:
        >>> meanings(STRICT, "torch.matmul"), meanings(STRICT, "torch.empty")
        ([('reject', 'torch_fallback')], [])
        >>> meanings(OPEN, "torch.matmul"), meanings(OPEN, "subprocess.run")
        ([], [('flag', 'process')])
    """
    parts = path.split(".")
    prefixes = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    known = next((rules.names[item] for item in prefixes if item in rules.names), None)
    found = [known] if known else []
    if parts[0] == "torch" and rules.torch is not None:
        namespace = any(item.startswith(path + ".") for item in rules.torch)
        if not namespace and rules.torch.isdisjoint(prefixes):
            found.append(OP)
    dunders = {item for item in parts[1:] if item.startswith("__") and item.endswith("__")}
    if parts[0] != "builtins" and dunders - HARMLESS_DUNDERS:
        found.append(EVASION)
    return found
