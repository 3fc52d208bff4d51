"""The rules of the static inspection, as data: what the use of a name in a pass means."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.judge.findings import Severity

RulesName: TypeAlias = Literal["strict", "open"]
RuleVerdict: TypeAlias = tuple[Severity, str]
"""How much a finding weighs, and its name."""
Uses: TypeAlias = Iterator[tuple[RuleVerdict, str]]
"""What is used that the rules name, and in which words to say so."""

OP: RuleVerdict = ("reject", "torch_fallback")
"""A torch op, by its dotted name."""
METHOD: RuleVerdict = ("flag", "torch_fallback")
"""A method or operator that computes if its object is a tensor, which text cannot tell."""
EVASION: RuleVerdict = ("flag", "evasion")
PATTERN_CALLED: RuleVerdict = ("flag", "pattern_called")
PATCH: RuleVerdict = ("flag", "timer_patch")
PERSISTENCE: RuleVerdict = ("flag", "persistence")
COMPARISON: RuleVerdict = ("flag", "overloaded_comparison")


def _words(text: str) -> frozenset[str]:
    """The words of a text; one that ends with a dot is put before those that follow it."""
    words: set[str] = set()
    prefix = ""
    for word in text.split():
        if word.endswith("."):
            prefix = word
        else:
            words.add(prefix + word)
    return frozenset(words)


_NAMES: dict[RuleVerdict, str] = {
    EVASION: """.__globals__ .__builtins__ .__subclasses__ .__closure__ .__self__ .__path__
    importlib imp runpy pkgutil zipimport site passnet pickle marshal dill cloudpickle
    builtins. exec eval compile __import__ globals locals __builtins__ ctypes. pythonapi PyDLL
    sys. path meta_path path_hooks path_importer_cache""",
    PATCH: "unittest.mock",
    ("flag", "thread"): """threading multiprocessing concurrent asyncio _thread
    torch.jit. fork _fork""",
    ("flag", "process"): """subprocess pty signal os. fork forkpty system popen _exit abort kill
    killpg posix_spawn posix_spawnp execl execle execlp execlpe execv execve execvp execvpe spawnl
    spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe""",
    ("flag", "network"): "socket socketserver urllib http requests ssl ftplib smtplib",
    ("flag", "introspection"): """.f_back .f_locals .f_globals .f_builtins .tb_frame .gi_frame
    .cr_frame gc. get_objects get_referrers get_referents sys. _getframe _current_frames modules
    settrace setprofile inspect. stack currentframe trace getouterframes getinnerframes
    traceback. walk_stack walk_tb""",
    PERSISTENCE: """.write_text .write_bytes .tofile .symlink_to .hardlink_to tempfile shelve dbm
    mmap multiprocessing.shared_memory torch.save numpy. save savez savetxt memmap
    os. open memfd_create putenv unsetenv os.environ. update setdefault pop clear __setitem__""",
    ("flag", "nested_compile"): "torch. compile _inductor _dynamo.optimize jit.script jit.trace",
    ("note", "foreign_code"): """ctypes cffi cppyy numba cupy pycuda pybind11 cutlass tilelang
    torch.utils.cpp_extension""",
}
_NAMES_OF_OPS: dict[RuleVerdict, str] = {
    METHOD: """torchvision torchaudio torchao functorch timm transformers xformers einops
    operator. matmul imatmul""",
    EVASION: "operator. methodcaller attrgetter",
}
_TORCH = """torch.
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
    compiler.is_compiling backends.cpu.get_cpu_capability backends.mkldnn.is_available
    torch.Tensor.
    contiguous view reshape size stride dim numel data_ptr shape dtype device is_contiguous
    element_size expand t transpose permute unsqueeze squeeze flatten new_empty new_zeros clone
    copy_ to item"""
_COMPUTING = """
    abs add addbmm addcdiv addcmul addmm addmv all amax amin any argmax argmin argsort avg_pool2d
    adaptive_avg_pool2d baddbmm batch_norm bernoulli bmm cat ceil clamp clamp_max clamp_min conv1d
    conv2d conv3d cos cosh cross cummax cumprod cumsum diff div dot dropout einsum embedding eq erf
    exp fft floor fmod gather gelu group_norm hardswish hardtanh index_add index_select inverse kron
    layer_norm leaky_relu lerp linear log log1p log2 log_softmax logsumexp masked_fill masked_select
    matmul max max_pool2d maximum mean median min minimum mm mul multiply mv nansum neg norm normal_
    outer pow prelu prod reciprocal relu relu6 roll rms_norm rsqrt rsub scaled_dot_product_attention
    scatter scatter_add scatter_reduce sigmoid sign silu sin sinh softmax softplus sqrt square stack
    std sub sum tan tanh tensordot topk tril triu true_divide uniform_ unfold var var_mean where
    xlogy __add__ __iadd__ __matmul__ __rmatmul__ __imatmul__ __mul__ __imul__ __sub__ __truediv__
    __pow__ __neg__"""


def _by_name(table: dict[RuleVerdict, str]) -> dict[str, RuleVerdict | None]:
    return {name: verdict for verdict, text in table.items() for name in _words(text)}


@dataclass(frozen=True, slots=True)
class Rules:
    """What code outside `pattern` and `replacement_args` may use.

    `names`: dotted name -> what its use and the use of what is below it means; the longest name
    counts, None means nothing; `.name` is an attribute of any object. `methods`: those that compute
    when called on a tensor, as do those that are called so with a `_` after it. `torch`: the names
    of torch that may be used, with what is below them; None where all may. `texts`: what a string
    may not hold, as native code does that looks for a library to compute with.
    """

    names: dict[str, RuleVerdict | None]
    methods: frozenset[str] = frozenset()
    torch: frozenset[str] | None = None
    texts: frozenset[str] = frozenset()


OPEN = Rules(_by_name(_NAMES) | {"passnet.passes.cpp": None, "passnet.errors": None})
"""Torch ops are allowed; what evades an inspection or attacks a judge is not."""
STRICT = Rules(
    OPEN.names | _by_name(_NAMES_OF_OPS),
    methods=_words(_COMPUTING),
    torch=_words(_TORCH),
    texts=_words("dlsym dlopen cblas_ libtorch libmkl openblas"),
)
"""Own kernels only: torch creates, describes and moves tensors, and computes nothing."""
RULES: dict[RulesName, Rules] = {"strict": STRICT, "open": OPEN}
KERNEL_DECORATORS = _words("triton.jit numba. njit cuda.jit vectorize guvectorize")
"""What is under these is compiled, and never runs as Python on a tensor."""
OWN_OBJECTS = _words(
    """numpy math ctypes cffi cppyy numba cupy triton json re time struct decimal.Decimal
    dataclasses.dataclass passnet.passes.cpp torch.utils.cpp_extension"""
)
"""Whatever comes out of these, and out of their methods, is no tensor of torch."""
CONTAINERS = _words("builtins. str bytes set frozenset list tuple dict")
"""What these make is no tensor, though what is in it may be."""
NUMBER_MAKERS = _words(
    """builtins. int float bool complex len math. sqrt exp log log2 pow fsum
    numpy. float16 float32 float64 int8 int16 int32 int64 bool_ uint8 uint16 uint32 uint64"""
)
"""What these make is a number, or an array of them, whatever they are given."""
NUMBER_PATHS = {"numpy.numbers()", *NUMBER_MAKERS} | {
    f"{path.rpartition('.')[2]!r}()" for path in NUMBER_MAKERS
}
"""Numbers as `names.py` writes them, their types, and the names of these."""
VIEWS = _words("numpy.numbers(). T mT real imag flat size ndim itemsize nbytes shape dtype")
"""Attributes of an array that are numbers, or tell of them."""
MEMORY = _words("numpy().base numpy.numbers().base")
"""What an array has its memory from: of `x.numpy()` it is `x`."""
ARRANGING = _words(
    "numpy.numbers(). reshape transpose swapaxes repeat squeeze ravel flatten copy item tolist"
)
"""Methods of an array of numbers that give its numbers, whatever they are given."""
SHAPED_MAKERS = _words("numpy. zeros ones empty")
"""What makes numbers of a shape, and of a type that is given after it."""
ARRAY_MAKERS = SHAPED_MAKERS | _words("numpy. array asarray ascontiguousarray full arange")
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
    """typing.NamedTuple typing.Protocol typing.final enum.Enum enum.IntEnum enum.StrEnum enum.Flag
    enum.unique abc.ABC abc.ABCMeta dataclasses.dataclass dataclasses.dataclass()
    functools.total_ordering builtins. object tuple str int float dict list set frozenset Exception
    ValueError RuntimeError"""
)
"""What a class may be made of, by base, decorator or metaclass, so that its objects are no tensors
and have no attributes but its own; with `()`, by what a call of it gives.
"""
SWITCHES = _words("TRITON_INTERPRET")
"""Variables of the environment that a pass may set."""
EMBEDDED = _words("torch os sys subprocess ctypes importlib builtins threading multiprocessing")
"""Modules that are themselves when reached through another that imports them (`cpp.os.system`)."""

WRITERS = {"builtins.open": 1, "io.open": 1, "codecs.open": 1, "os.fdopen": 1, "?.open": 0}
"""What opens files -> the position of its mode."""
SETTERS = _words("setattr delattr object.__setattr__ type.__setattr__")
BY_NAME = SETTERS | {"getattr"}
REFLECTION = _words("builtins. getattr hasattr setattr delattr isinstance vars")
"""What may be called with the module torch itself."""
APPLIERS = _words("builtins.map builtins.filter functools.partial functools.reduce")
"""What calls its first argument."""
COMPARISONS = _words("__eq__ __ne__")
OVERLOADS = COMPARISONS | _words("__torch_function__ __torch_dispatch__")
CLASS_MAKERS = _words("builtins.type types.new_class")
_HARMLESS_DUNDERS = _words("__name__ __version__ __file__ __doc__")


def prefixes_of(path: str) -> list[str]:
    """A dotted path and the paths it is below, the longest first."""
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def is_dotted(path: str) -> bool:
    """Whether a path is a dotted name: of no object, and of nothing that the folder defines."""
    return path.replace(".", "").isidentifier()


def uses(rules: Rules, path: str) -> Uses:
    """What the use of a dotted name means under the rules, most often nothing.

    Examples:
        >>> list(uses(STRICT, "torch.matmul")), list(uses(STRICT, "torch.empty"))
        ([(('reject', 'torch_fallback'), 'torch.matmul')], [])
        >>> list(uses(OPEN, "torch.matmul")), list(uses(OPEN, "subprocess.run"))
        ([], [(('flag', 'process'), 'subprocess.run')])
    """
    if not is_dotted(path):
        return
    prefixes, (root, *attrs) = prefixes_of(path), path.split(".")
    if named := next((rules.names[name] for name in prefixes if name in rules.names), None):
        yield named, path
    if root == "torch" and rules.torch is not None:
        is_allowed = any(name in prefixes or name.startswith(f"{path}.") for name in rules.torch)
        yield from () if is_allowed else [(OP, path)]
    dunders = {attr for attr in attrs if attr.startswith("__") and attr.endswith("__")}
    if root != "builtins" and dunders - _HARMLESS_DUNDERS:
        yield EVASION, path
