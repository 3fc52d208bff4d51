"""The rules of the static inspection, as data: the meaning of every name in a pass."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from passnet.judge.verdict.findings import Severity

RulesName: TypeAlias = Literal["strict", "open"]
RuleVerdict: TypeAlias = tuple[Severity, str]
"""The severity and the name of a finding."""
Uses: TypeAlias = Iterator[tuple[RuleVerdict, str]]
"""Uses that the rules name: the verdict and the text of each."""
OP: RuleVerdict = ("reject", "torch_fallback")
"""A torch op, by its dotted name."""
METHOD: RuleVerdict = ("flag", "torch_fallback")
"""A use that computes by another library, or may be torch's, which the text does not show."""
EVASION: RuleVerdict = ("flag", "evasion")
PATTERN_CALLED: RuleVerdict = ("flag", "pattern_called")
PATCH: RuleVerdict = ("flag", "timer_patch")
LIBRARY_PATCH: RuleVerdict = ("flag", "patched_library")
PROXY_PATCH: RuleVerdict = ("flag", "patched_proxy")
INTROSPECTION: RuleVerdict = ("flag", "introspection")
HARNESS: RuleVerdict = ("flag", "harness_detection")
PERSISTENCE: RuleVerdict = ("flag", "persistence")
COMPARISON: RuleVerdict = ("flag", "overloaded_comparison")


def words(text: str) -> frozenset[str]:
    """Return the words of a text; one that ends with a dot is a prefix of its successors."""
    listed: set[str] = set()
    prefix = ""
    for word in text.split():
        if word.endswith("."):
            prefix = word
        else:
            listed.add(prefix + word)
    return frozenset(listed)


_NAMES: dict[RuleVerdict, str] = {
    EVASION: """.__globals__ .__builtins__ .__subclasses__ .__closure__ .__self__ .__path__
    .__code__ .__mro__ .__base__ .__bases__ .__getattribute__ .__loader__ .__spec__ .__wrapped__
    importlib imp runpy pkgutil zipimport site passnet pickle marshal dill cloudpickle _ctypes
    base64 binascii zlib gzip bz2 lzma code codeop doctest pdb bdb pydoc
    string.Formatter typing.get_type_hints inspect.getattr_static torch.load
    builtins. exec eval compile __import__ globals locals __builtins__ __loader__ __spec__ chr
    breakpoint ctypes. pythonapi PyDLL py_object codecs. decode encode
    timeit. timeit repeat Timer cProfile. run runctx profile. run runctx
    types. FunctionType CodeType
    sys. path meta_path path_hooks path_importer_cache""",
    LIBRARY_PATCH: "unittest.mock",
    HARNESS: """sys.getrefcount gc. callbacks isenabled get_count get_stats
    torch. _subclasses _C._len_torch_dispatch_stack _C._get_dispatch_mode
    utils._python_dispatch overrides._get_current_function_mode""",
    ("flag", "thread"): """threading multiprocessing concurrent asyncio _thread
    torch.jit. fork _fork""",
    ("flag", "process"): """subprocess pty signal os. fork forkpty system popen _exit abort kill
    killpg posix_spawn posix_spawnp execl execle execlp execlpe execv execve execvp execvpe spawnl
    spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe""",
    ("flag", "network"): "socket socketserver urllib http requests ssl ftplib smtplib",
    INTROSPECTION: """.f_back .f_locals .f_globals .f_builtins .tb_frame .gi_frame
    .cr_frame gc. get_objects get_referrers get_referents sys. _getframe _current_frames modules
    _current_exceptions monitoring
    settrace setprofile inspect. stack currentframe trace getouterframes getinnerframes getmembers
    getmembers_static traceback. walk_stack walk_tb""",
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
}
_TORCH = """torch.
    empty empty_like empty_strided zeros zeros_like ones ones_like full full_like as_tensor tensor
    from_numpy
    float16 float32 float64 bfloat16 half float double bool uint8 uint16 uint32 uint64 int8 int16
    int32 int64 short int long complex32 complex64 complex128 cfloat cdouble float8_e4m3fn
    float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz
    strided sparse_coo sparse_csr contiguous_format channels_last channels_last_3d preserve_format
    Size dtype device layout memory_format
    reshape permute transpose t squeeze unsqueeze split functional.split chunk unbind narrow select
    flatten unflatten ravel movedim moveaxis swapaxes swapdims broadcast_to clone detach as_strided
    view_as_real view_as_complex numel is_same_size inf nan pi e newaxis
    fx.wrap fx.Proxy fx.proxy.Proxy nn.Parameter utils.cpp_extension version __version__
    cuda.current_stream cuda.get_device_properties cuda.device cuda.current_device cuda.synchronize
    cuda.device_count cuda.is_available cuda.get_device_capability
    is_tensor numel get_num_threads finfo iinfo promote_types result_type is_floating_point
    is_complex get_default_dtype broadcast_shapes can_cast no_grad inference_mode is_grad_enabled
    compiler.is_compiling backends.cpu.get_cpu_capability backends.mkldnn.is_available
    torch.Tensor.
    contiguous view reshape size stride dim numel data_ptr shape dtype device is_contiguous
    element_size expand t transpose permute unsqueeze squeeze flatten new_empty new_zeros clone
    copy_ to item"""


def _by_name(table: dict[RuleVerdict, str]) -> dict[str, RuleVerdict | None]:
    return {name: verdict for verdict, text in table.items() for name in words(text)}


@dataclass(frozen=True, slots=True)
class Rules:
    """The names that code outside patterns may use.

    `names`: dotted name -> the verdict on it and on names below it; the longest name counts, None
    means no verdict; `.name` is an attribute of any object. `torch`: the names of torch that are
    allowed, with those below them; None allows all. `texts`: forbidden text of strings and native
    sources, with the verdict.
    """

    names: dict[str, RuleVerdict | None]
    torch: frozenset[str] | None = None
    texts: tuple[tuple[re.Pattern[str], RuleVerdict], ...] = ()


_TEXTS = (
    (re.compile(r"\bPy(Run|Eval|Import|GILState|Object_Call|Code|Marshal)_?\w*|\bPy_\w+"), EVASION),
    (re.compile(r"libpython\w*|\bPython\.h\b"), EVASION),
    (re.compile(r"/proc/(self|thread-self|\d+|%d|\{)\S*"), INTROSPECTION),
    (re.compile(r"\bpassnet\.judge\b|\bPYTEST_CURRENT_TEST\b"), HARNESS),
)
"""A pattern of text -> the verdict on native code, or a string that may become code, with it."""
_TEXTS_OF_OPS = (
    (re.compile(r"\bdlv?sym\b|\bdlm?open\b|cblas_\w*|libtorch\w*|libmkl\w*|openblas"), METHOD),
    (
        re.compile(
            r"\bat\s*::\s*(?:native|cpu|meta|composite\w*|cuda(?=\s*::\s*[a-z0-9_]+\s*\())\b"
            r"|\bnamespace\s+at\b|\baoti_torch_\w+|\b_ZNK?\d*(?:2at|3c10|5torch)\d*\w*"
            r"|\bATen/(?:native/|\w*(?:CPU|CUDA|Native|Meta|Composite\w*)Functions\w*\.h"
            r"|ops/\w*_(?:native|dispatch)\.h|ops/(?!empty|zeros|ones|full|from_blob)\w+\.h)"
        ),
        OP,
    ),
    (
        re.compile(
            r"(?s)(?:\bnamespace\s+\w+\s*=\s*(?:::\s*)?at\b|\busing\s+namespace\s+(?:at|torch)\b)"
            r".*?\b(?:native|cpu)\s*::\s*\w+"
        ),
        OP,
    ),
)

OPEN = Rules(
    _by_name(_NAMES)
    | dict.fromkeys(
        words("""passnet. errors passes.cpp
        passes.cpp.kernel passes.cpp.kernels passes.cpp.empty_strided passes.cpp.build
        threading. local Lock RLock get_ident current_thread main_thread""")
    ),
    texts=_TEXTS,
)
"""Torch ops are allowed; evading the inspection or attacking the judge is not."""
STRICT = Rules(
    OPEN.names | _by_name(_NAMES_OF_OPS),
    torch=words(_TORCH),
    texts=_TEXTS + _TEXTS_OF_OPS,
)
"""Own kernels only: torch creates, describes and moves tensors, and computes nothing."""
BUILTINS_OF_TORCH = words("abs all any max min pow round sum")
"""Functions of Python that `from torch import *` replaces by ops."""
LOADERS = words("importlib. import_module util.spec_from_file_location util.module_from_spec")
"""Functions that return a module of the folder, or its specification, for its name."""
TIMERS = words(
    """time statistics timeit torch. cuda.Event cuda.synchronize utils.benchmark testing allclose
    equal isclose eq Tensor.allclose Tensor.equal Tensor.isclose Tensor.eq Tensor.__eq__
    numpy. allclose isclose array_equal testing"""
)
"""Functions that measure and compare: replacing one is `timer_patch`."""
PROXIES = words("torch.fx. Proxy proxy")
HARNESS_TYPES = words(
    """torch. fx.Proxy fx.proxy.Proxy nn.Parameter nn.parameter.Parameter
    _subclasses.FakeTensor _subclasses.fake_tensor.FakeTensor"""
)
"""Types that differ between a judge's calls and others: no kernel needs to know them."""
TYPE_QUESTIONS = words("builtins. isinstance issubclass")
NATIVE_SUFFIXES = frozenset(
    (".c", ".cc", ".cpp", ".cxx", ".cu", ".cuh", ".h", ".hpp", ".inl", ".txt")
)
HARNESS_TYPE_NAMES = {name.rpartition(".")[2] for name in HARNESS_TYPES}
RULES: dict[RulesName, Rules] = {"strict": STRICT, "open": OPEN}
KERNEL_DECORATORS = words("triton.jit numba. njit cuda.jit vectorize guvectorize")
"""Decorators of compiled code, which never runs as Python on a tensor."""
OWN_OBJECTS = words(
    """numpy math ctypes cffi cppyy numba cupy triton json re time struct decimal.Decimal
    dataclasses.dataclass passnet.passes.cpp torch.utils.cpp_extension"""
)
"""Modules whose results, and their methods' results, are no tensors of torch."""
REACHERS = words(
    """type setattr delattr vars builtins inspect pickle copyreg __class__ __func__ __dict__
    __getattr__ __getattribute__ __setattr__ __delattr__ __setstate__ __reduce__ __get__"""
)
"""Names that reach a method past its object, or an attribute by a computed name."""
BASES = words(
    """typing.NamedTuple typing.Protocol typing.final enum.Enum enum.IntEnum enum.StrEnum enum.Flag
    enum.unique abc.ABC abc.ABCMeta dataclasses.dataclass dataclasses.dataclass()
    functools.total_ordering builtins. object tuple str int float dict list set frozenset Exception
    ValueError RuntimeError"""
)
"""Bases, decorators and metaclasses of classes whose objects have only their own attributes."""
SWITCHES = words("TRITON_INTERPRET")
"""Variables of the environment that a pass may set."""
EMBEDDED = words(
    """torch os sys subprocess ctypes importlib builtins threading multiprocessing gc inspect pickle
    marshal runpy signal socket"""
)
"""Modules that stay themselves when reached through another that imports them (`cpp.os.system`)."""
WRITERS = {"builtins.open": 1, "io.open": 1, "codecs.open": 1, "os.fdopen": 1, "?.open": 0}
"""Functions that open files -> the position of the mode."""
SETTERS = words("setattr delattr object.__setattr__ object.__delattr__ type.__setattr__")
GETTERS = words("getattr object.__getattribute__ type.__getattribute__")
BY_NAME = SETTERS | GETTERS
GET_BY_NAME = {f"builtins.{name}" for name in GETTERS}
SELECTORS = words("operator. attrgetter methodcaller")
"""Functions of names alone, which are looked up on any object."""
NEVER_HANDED_ON = {f"builtins.{name}" for name in (*BY_NAME, "vars")} | SELECTORS
"""Functions that may only be called where they are named."""
REFLECTION = words("builtins. getattr hasattr setattr delattr isinstance vars")
"""Functions that may be called with the module torch itself."""
COMPARISONS = words("__eq__ __ne__")
OVERLOADS = COMPARISONS | words("__torch_function__ __torch_dispatch__")
CLASS_MAKERS = words("builtins.type types.new_class dataclasses.make_dataclass")
_CPP = "passnet.passes.cpp"
"""A module of which only the listed names may be used."""
_HARMLESS_DUNDERS = words("__name__ __version__ __file__ __doc__")


KNOWN_ROOTS = sys.stdlib_module_names | {
    name.split(".")[0] for name in (*STRICT.names, *OWN_OBJECTS, "torch", "triton", "numpy")
}
"""Modules that are not the folder's own, whatever it holds."""


def prefixes_of(path: str) -> list[str]:
    """Return a dotted path and all its parents, the longest first."""
    parts = path.split(".")
    return [".".join(parts[:count]) for count in range(len(parts), 0, -1)]


def is_dotted(path: str) -> bool:
    """Return whether a path is a dotted name: of no object, and of no definition of the folder."""
    return path.replace(".", "").isidentifier()


def uses(rules: Rules, path: str) -> Uses:
    """Yield the verdicts of the rules on a dotted name, most often none.

    Examples:
        >>> list(uses(STRICT, "torch.matmul")), list(uses(STRICT, "torch.empty"))
        ([(('reject', 'torch_fallback'), 'torch.matmul')], [])
        >>> list(uses(OPEN, "torch.matmul")), list(uses(OPEN, "subprocess.run"))
        ([], [(('flag', 'process'), 'subprocess.run')])
    """
    if not is_dotted(path):
        return
    prefixes, (root, *attrs) = prefixes_of(path), path.split(".")
    name = next((name for name in prefixes if name in rules.names), "")
    if named := EVASION if name == _CPP != path else rules.names.get(name):
        yield named, path
    if root == "torch" and rules.torch is not None:
        is_allowed = any(name in prefixes or name.startswith(f"{path}.") for name in rules.torch)
        yield from () if is_allowed else [(OP, path)]
    dunders = {attr for attr in attrs if attr.startswith("__") and attr.endswith("__")}
    is_proxy = not PROXIES.isdisjoint(prefixes)
    if root != "builtins" and not is_proxy and dunders - _HARMLESS_DUNDERS:
        yield EVASION, path
