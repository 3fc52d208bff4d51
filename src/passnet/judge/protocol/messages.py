"""The messages of judge and worker: tagged records, decoded strictly, never pickled.

A worker's message is checked only here: numbers lie in their ranges, no list is longer than its
limit, forms are those of a tensor, and texts are made plain. Anything else is no message.
"""

import math
import re
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from passnet.core.records.dtypes import storage
from passnet.graph.spec import TensorSpec
from passnet.graph.text.meta import MAX_DIMS, MAX_ELEMENTS
from passnet.judge.processes.confine import Confinement

_STEERING = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|[ -/]*[0-~]?)"
)
"""Text that a terminal obeys: ECMA-48's control sequences, control strings, and short escapes."""


def plain_text(text: str, most: int) -> str:
    """Return the first `most` characters of a text as one line without terminal escapes.

    Characters that do not print (control characters, line ends, marks that turn the direction of
    writing) become spaces.

    Examples:
        >>> plain_text("\\x1b[2K\\r\\x1b[32mall\\n correct \\u202e\\x1b]0;title\\x07", 100)
        'all correct'
    """
    plain = _STEERING.sub("", text[:most])
    if not plain.isprintable():
        plain = "".join(letter if letter.isprintable() else " " for letter in plain)
    return " ".join(plain.split())


# Structs, not dataclasses: only these carry the tags of a union.

MAX_ADDRESS = 2**47 - 1
"""Highest address of a process on 64-bit Linux; no tensor spans more bytes either."""
MAX_SECONDS = 1e6
"""Longest time that a worker can report, eleven days; also the most milliseconds."""
MAX_OUTPUTS = 4096
"""Most outputs of a graph; the suites' graphs have up to 10."""
MAX_ARGUMENTS = 1_000_000
"""Most addresses of arguments: of a hundred calls, of graphs with up to 110 in the suites."""
MAX_REPORTS = 1000
"""Most passes that a worker reports on; each counts once for every part that a compiler made."""
MAX_OPS = 1000
"""Most ops that one replacement can be seen to use; torch itself has some thousand."""
MAX_COUNT = 2**53
"""Largest count that a worker can give, which a float holds exactly: of matches, of operations."""
MAX_NAME = 100
"""Most characters of the name of a pass, an op, a type or an error."""
MAX_SENTENCE = 2000
"""Most characters of an error's text, or of the words on a near miss."""
MAX_NUMBER = 400
"""Characters of an output that is a number: a float has up to 24, an integer of a graph 19."""
MAX_PID = 2**22
"""Highest number of a process on Linux."""

Address: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_ADDRESS)]
Count: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Duration: TypeAlias = Annotated[float, Meta(ge=0, le=MAX_SECONDS)]
Size: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_ELEMENTS)]
Step: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_ADDRESS)]
"""Values that decode into a number of a reply; the steps of a tensor are its strides."""


def _make_plain(message: msgspec.Struct, most: int, *names: str) -> None:
    for name in names:
        text = getattr(message, name)
        if text is not None:
            msgspec.structs.force_setattr(message, name, plain_text(text, most))


class InputLayout(msgspec.Struct, frozen=True):
    """The place of an argument in the input memory: one offset a set; or a number itself."""

    dtype: str
    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    number: int | None = None


class Load(msgspec.Struct, frozen=True, tag=True):
    """Build the graph and get ready to call it, with the input memory in a file descriptor.

    `passes` is the folder of a candidate of `kind`; see `judge.candidate` for `call` too.
    `residual` runs what no pass replaced, `device_mib` the memory limit on `device`. `fence` is the
    library that fences the tensors of an untimed worker; `num_bytes` the size of the input memory.
    `op_counter` is the library that counts torch's ops, in memory that comes second.
    """

    program: str
    inputs: tuple[InputLayout, ...]
    num_bytes: int
    kind: Literal["eager", "null", "inductor", "inductor-precise", "aoti", "passes", "module"]
    passes: str | None = None
    call: Literal["compiled", "direct", "guarded"] = "compiled"
    residual: Literal["eager", "inductor", "inlined"] = "eager"
    device: str = "cpu"
    device_mib: int = 0
    fence: str | None = None
    op_counter: str | None = None


class Run(msgspec.Struct, frozen=True, tag=True):
    """Call the graph once on an input set; `exact`: in float64, without a candidate.

    `counted`: the reply tells the least work of a call.
    """

    input_set: int
    seed: int = 0
    exact: bool = False
    counted: bool = False


class Fetch(msgspec.Struct, frozen=True, tag=True):
    """Copy the last outputs into the memory that comes with this message, of `num_bytes`."""

    num_bytes: int


OverheadName: TypeAlias = Literal["compiled", "guarded"]
OVERHEADS: tuple[OverheadName, ...] = ("compiled", "guarded")
"""Ways of calling a graph that cost something by themselves."""


class Arm(msgspec.Struct, frozen=True, tag=True):
    """Take orders from the control page, see `ControlPage`, until one says to leave.

    `slots` are the places of the arguments of each call of a burst. Three memories of `num_bytes`
    come along: the control page, the slots, and for a device the delivered outputs. A reference
    gets ready to call a graph without ops in the ways of `overheads`.
    """

    slots: tuple[InputLayout, ...]
    num_bytes: tuple[int, ...]
    overheads: tuple[OverheadName, ...] = ()


class CheckMatches(msgspec.Struct, frozen=True, tag=True):
    """Apply the passes of a folder to a graph with such arguments, without running either."""

    program: str
    tensors: tuple[TensorSpec, ...]
    passes: str


class Profile(msgspec.Struct, frozen=True, tag=True):
    """Call the graph so many times on a GPU, and report the GPU's activity."""

    num_calls: int


Request: TypeAlias = Load | Run | Fetch | Arm | CheckMatches | Profile


class MissText(msgspec.Struct, frozen=True):
    """The number of matches of a pass, and its nearest miss in words if there were none."""

    name: str
    num_matches: Count
    miss: str | None = None

    def __post_init__(self) -> None:
        _make_plain(self, MAX_NAME, "name")
        _make_plain(self, MAX_SENTENCE, "miss")


class OutputForm(msgspec.Struct, frozen=True):
    """The form of an output: a tensor, or a value with its type, a number also with its text."""

    kind: Literal["tensor", "number", "other"]
    dtype: str = ""
    shape: Annotated[tuple[Size, ...], Meta(max_length=MAX_DIMS)] = ()
    stride: Annotated[tuple[Step, ...], Meta(max_length=MAX_DIMS)] = ()
    number: Annotated[str, Meta(max_length=MAX_NUMBER)] = ""
    device: Literal["", "cpu", "cuda", "meta"] = ""

    def __post_init__(self) -> None:
        _make_plain(self, MAX_NAME, "dtype")
        _make_plain(self, MAX_NUMBER, "number")
        if self.kind == "tensor":
            self._check_tensor()
        elif self.kind == "number" and self.number not in ("True", "False"):
            float(self.number)  # raises a ValueError for other text

    def _check_tensor(self) -> None:
        if len(self.stride) != len(self.shape):
            raise ValueError(f"{len(self.shape)} sizes with {len(self.stride)} strides")
        if math.prod(max(1, size) for size in self.shape) > MAX_ELEMENTS:
            raise ValueError(f"shape {list(self.shape)} has more than {MAX_ELEMENTS} elements")
        if self.span_bytes > MAX_ADDRESS:
            raise ValueError(f"strides {list(self.stride)} lead out of the address space")

    @property
    def num_bytes(self) -> int:
        """Return the bytes of its values, without gaps; 0 unless it is a tensor."""
        if self.kind != "tensor":
            return 0
        return math.prod(self.shape) * storage(self.dtype).itemsize

    @property
    def span_bytes(self) -> int:
        """Return the bytes from its first to its last value; 0 unless it is a tensor."""
        if self.num_bytes == 0:
            return 0
        last = sum((size - 1) * step for size, step in zip(self.shape, self.stride, strict=True))
        return (last + 1) * storage(self.dtype).itemsize


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The graph is ready; loading and building took `seconds`.

    `ops_per_call` are the counted torch ops of a call outside replacements.
    """

    seconds: Duration
    ops_per_call: Count = 0


class Ran(msgspec.Struct, frozen=True, tag=True):
    """The call returned, after `seconds` by the worker's own clock.

    `matches` are those of the passes so far; addresses are 0 unless of tensors; `work` are counted
    operations of products, elementwise operations, and bytes of arguments read.
    """

    outputs: Annotated[tuple[OutputForm, ...], Meta(max_length=MAX_OUTPUTS)]
    matches: Annotated[tuple[MissText, ...], Meta(max_length=MAX_REPORTS)]
    seconds: Duration
    outputs_at: Annotated[tuple[Address, ...], Meta(max_length=MAX_OUTPUTS)] = ()
    arguments_at: Annotated[tuple[Address, ...], Meta(max_length=MAX_ARGUMENTS)] = ()
    work: tuple[Count, Count, Count] = (0, 0, 0)


class Fetched(msgspec.Struct, frozen=True, tag=True):
    """The outputs lie in the memory."""


class Armed(msgspec.Struct, frozen=True, tag=True):
    """The worker is about to stand still; `addresses` are its arguments' on a device."""

    addresses: Annotated[tuple[Address, ...], Meta(max_length=MAX_ARGUMENTS)] = ()


class Observed(msgspec.Struct, frozen=True):
    """The torch ops of a replacement in observed calls, and whether they are its pattern's."""

    name: str
    ops: Annotated[tuple[str, ...], Meta(max_length=MAX_OPS)]
    same_as_pattern: bool

    def __post_init__(self) -> None:
        _make_plain(self, MAX_NAME, "name")
        ops = tuple(plain_text(op, MAX_NAME) for op in self.ops)
        msgspec.structs.force_setattr(self, "ops", ops)


class Disarmed(msgspec.Struct, frozen=True, tag=True):
    """The worker left the control page; its observations."""

    observed: Annotated[tuple[Observed, ...], Meta(max_length=MAX_REPORTS)] = ()


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The request failed with an exception of Python."""

    status: Literal["compile_error", "runtime_error", "out_of_memory", "wrong_dtype"]
    error: str
    text: str

    def __post_init__(self) -> None:
        _make_plain(self, MAX_NAME, "error")
        _make_plain(self, MAX_SENTENCE, "text")


class MatchesChecked(msgspec.Struct, frozen=True, tag=True):
    """The matches of the passes of a folder."""

    matches: Annotated[tuple[MissText, ...], Meta(max_length=MAX_REPORTS)]


class Profiled(msgspec.Struct, frozen=True, tag=True):
    """A worker's note on a call on a GPU: between two events, in kernels, and their number."""

    event_ms: Duration
    kernel_ms: Duration
    num_kernels: Annotated[float, Meta(ge=0, le=MAX_COUNT)]


Reply: TypeAlias = Loaded | Ran | Fetched | Armed | Disarmed | MatchesChecked | Profiled | Failed


class WorkerLimits(msgspec.Struct, frozen=True):
    """The limits of a worker, for memory beyond what it starts with.

    Processes and threads are those of its user (Linux exempts root). A CUDA context maps more
    addresses than any such limit: its address space is unbound, and its memory on the host not
    limited.
    """

    memory_mib: int
    """Limit the memory of a process to this many MiB."""
    cpu_s: int = 3600
    file_mib: int = 1024
    num_processes: int = 512
    is_address_space_bound: bool = True


class Spawn(msgspec.Struct, frozen=True, tag=True):
    """To the parent of workers: fork one; its socket and its log come with the message."""

    limits: WorkerLimits


class StartParent(msgspec.Struct, frozen=True, tag=True):
    """To the warm process: fork a confined parent of workers; its socket comes with the message."""

    environment: dict[str, str]
    confinement: Confinement
    is_shared: bool


class Forked(msgspec.Struct, frozen=True, tag=True):
    """A parent of workers begins; a descriptor of its process comes with the message."""


class WarmInductor(msgspec.Struct, frozen=True, tag=True):
    """To the parent of workers: compile with Inductor once, to warm workers; answer `Ready`."""


class Spawned(msgspec.Struct, frozen=True, tag=True):
    """A worker was forked; a descriptor of its process comes with the message."""

    pid: Annotated[int, Meta(ge=1, le=MAX_PID)]


class Born(msgspec.Struct, frozen=True, tag=True):
    """The first message of a confined worker: the descriptor of its requests to start a process
    comes with it, where Linux has one; see `Starts`.
    """


class EndOthers(msgspec.Struct, frozen=True, tag=True):
    """To the parent: kill all processes of the sandbox but a worker."""

    pid: int


class OthersEnded(msgspec.Struct, frozen=True, tag=True):
    """All processes of the sandbox but its worker have ended: so many."""

    num_ended: Annotated[int, Meta(ge=0, le=MAX_PID)]


class End(msgspec.Struct, frozen=True, tag=True):
    """To the parent: kill a worker and all it started; answered when it is gone, or sure to go."""

    pid: int
    is_awaited: bool = True


class WorkerEnded(msgspec.Struct, frozen=True, tag=True):
    """A worker's exit code, negative for a signal, and the number of processes that it left."""

    code: Annotated[int, Meta(ge=-64, le=255)]
    num_left: Annotated[int, Meta(ge=0, le=MAX_PID)] = 0


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The parent of workers has imported what workers need."""

    torch_version: str
    seconds: Duration


ParentRequest: TypeAlias = Spawn | EndOthers | End | WarmInductor
ParentReply: TypeAlias = Forked | Ready | Spawned | OthersEnded | WorkerEnded
