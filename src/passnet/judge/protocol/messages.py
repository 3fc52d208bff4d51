"""What judge and worker say to each other: tagged records, decoded strictly, never pickled."""

from typing import Literal, TypeAlias

import msgspec

# Structs and not dataclasses: only these carry the tag by which a union is told apart.


class InputLayout(msgspec.Struct, frozen=True):
    """Where an argument lies in the input memory: one offset a set; or a number itself."""

    dtype: str
    shape: tuple[int, ...]
    offsets: tuple[int, ...]
    number: int | None = None


class Load(msgspec.Struct, frozen=True, tag=True):
    """Build the graph and get ready to call it.

    `kind` is what to run: eager, null, inductor, or passes from the folder `passes`. `call` is
    compiled (through torch.compile) or direct; `residual` eager or inductor. `device` is where to
    run, and `device_mib` the memory that may be used there. One file descriptor comes with it: the
    input memory, of `num_bytes`.
    """

    program: str
    inputs: tuple[InputLayout, ...]
    num_bytes: int
    kind: Literal["eager", "null", "inductor", "passes"]
    passes: str | None = None
    call: Literal["compiled", "direct"] = "compiled"
    residual: Literal["eager", "inductor"] = "eager"
    device: str = "cpu"
    device_mib: int = 0


class Run(msgspec.Struct, frozen=True, tag=True):
    """Call the graph once on one set of inputs, after seeding the random generators; `exact`: in
    float64, without a candidate.
    """

    input_set: int
    seed: int = 0
    exact: bool = False


class Fetch(msgspec.Struct, frozen=True, tag=True):
    """Copy the last outputs into the memory that comes with this message, of `num_bytes`."""

    num_bytes: int


class Arm(msgspec.Struct, frozen=True, tag=True):
    """Take orders from the control page, see `ControlPage`, until one says to leave.

    `slots` is where the arguments of each call of a burst lie. With this message come the control
    page, the memory of the slots, and where outputs lie on a device that which they are copied to;
    `num_bytes` are their sizes.
    """

    slots: tuple[InputLayout, ...]
    num_bytes: tuple[int, ...]


class CheckMatches(msgspec.Struct, frozen=True, tag=True):
    """Apply the passes of a folder to a graph, and run neither."""

    program: str
    passes: str


class Profile(msgspec.Struct, frozen=True, tag=True):
    """Call the graph so many times on a GPU, and say what runs there."""

    num_calls: int


Request: TypeAlias = Load | Run | Fetch | Arm | CheckMatches | Profile


class MissText(msgspec.Struct, frozen=True):
    """How often a pass matched, and the nearest miss in words when it did not."""

    name: str
    num_matches: int
    miss: str | None = None


class OutputForm(msgspec.Struct, frozen=True):
    """What one output is; `number` holds the text of a value that is no tensor, `device` the kind
    of device that a tensor lies on.
    """

    kind: Literal["tensor", "number", "other"]
    dtype: str = ""
    shape: tuple[int, ...] = ()
    stride: tuple[int, ...] = ()
    number: str = ""
    device: str = ""


class Loaded(msgspec.Struct, frozen=True, tag=True):
    """The graph is ready; `seconds` went into loading and building."""

    seconds: float


class Ran(msgspec.Struct, frozen=True, tag=True):
    """The call returned; `matches` are those of the passes so far, `seconds` the call's time as
    the worker saw it (a note, never the measurement), `flops` what an exact call counted.
    """

    outputs: tuple[OutputForm, ...]
    matches: tuple[MissText, ...]
    seconds: float
    flops: int = 0


class Fetched(msgspec.Struct, frozen=True, tag=True):
    """The outputs lie in the memory."""


class Armed(msgspec.Struct, frozen=True, tag=True):
    """The worker is about to stand still, and takes orders from the control page. `addresses` are
    those of the arguments of every slot, slot by slot, where they lie on a device.
    """

    addresses: tuple[int, ...] = ()


class Observed(msgspec.Struct, frozen=True):
    """What torch ops a replacement used in observed calls; whether they are its pattern's."""

    name: str
    ops: tuple[str, ...]
    same_as_pattern: bool


class Disarmed(msgspec.Struct, frozen=True, tag=True):
    """The worker left the control page; what it saw in observed calls."""

    observed: tuple[Observed, ...] = ()


class Failed(msgspec.Struct, frozen=True, tag=True):
    """The request failed in a way that Python could tell."""

    status: Literal["compile_error", "runtime_error", "out_of_memory", "wrong_dtype"]
    error: str
    text: str


class MatchesChecked(msgspec.Struct, frozen=True, tag=True):
    """Where the passes of a folder match."""

    matches: tuple[MissText, ...]


class Profiled(msgspec.Struct, frozen=True, tag=True):
    """Of one call on a GPU, as the worker saw it (a note, never the measurement): the time between
    two events around it, the time that its kernels ran, and how many there were.
    """

    event_ms: float
    kernel_ms: float
    num_kernels: float


Reply: TypeAlias = Loaded | Ran | Fetched | Armed | Disarmed | MatchesChecked | Profiled | Failed


class WorkerLimits(msgspec.Struct, frozen=True):
    """What a worker may use: memory beyond what it starts with, seconds of processor time, size of
    a file it writes, processes and threads of its user (Linux exempts root from the last). A
    process with a CUDA context maps more addresses than any such limit: its address space must be
    unbound, and its memory on the host is not limited then.
    """

    memory_mib: int
    cpu_s: int = 3600
    file_mib: int = 1024
    num_processes: int = 512
    is_address_space_bound: bool = True


class Spawn(msgspec.Struct, frozen=True, tag=True):
    """To the parent of workers: fork one; its socket and its log come with the message."""

    limits: WorkerLimits


class WarmInductor(msgspec.Struct, frozen=True, tag=True):
    """To the parent of workers: compile with Inductor once, so that workers start out warm; the
    answer is `Ready`.
    """


class Spawned(msgspec.Struct, frozen=True, tag=True):
    """A worker was forked; a descriptor of its process comes with the message."""

    pid: int


class End(msgspec.Struct, frozen=True, tag=True):
    """To the parent of workers: kill a worker with all it started, if it has not ended. The answer
    comes when it is gone, or if that is not awaited when it cannot but go.
    """

    pid: int
    is_awaited: bool = True


class WorkerEnded(msgspec.Struct, frozen=True, tag=True):
    """The exit code of a worker, negative for a signal; `num_left` counts the processes that it
    left behind, which are killed too.
    """

    code: int
    num_left: int = 0


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The parent of workers has imported what workers need."""

    torch_version: str
    seconds: float


ParentRequest: TypeAlias = Spawn | End | WarmInductor
ParentReply: TypeAlias = Ready | Spawned | WorkerEnded
