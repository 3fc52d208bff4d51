"""Every error type of passnet, and one context manager that converts foreign errors."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class PassnetError(Exception):
    """Root of all errors that passnet raises on purpose; its text is meant for the user."""


class InputError(PassnetError, ValueError):
    """A wrong argument, option or file; the text says what to do."""


class GraphError(InputError):
    """A graph file that cannot be read, printed or built; the text names file and line."""


class SuiteError(InputError):
    """A suite or run folder that cannot be read."""


class PassFolderError(InputError):
    """A pass folder that is incomplete or unreadable; its code has not run."""


class PassError(PassnetError):
    """A failure of a pass's code while it was loaded, traced or applied."""


class ActionError(InputError):
    """An author's call that a tool cannot do; the author reads the text."""


class AuthorError(PassnetError):
    """A failure of a pass author: an LLM without a key or name, or a graph no compiler lowers."""


class CaptureError(PassnetError):
    """A net that could not be captured."""


class CutError(PassnetError):
    """A range of a graph that cannot be cut out as a graph."""


class BackendError(PassnetError):
    """A net that a backend cannot run; the text says why."""


class StoppedError(BackendError):
    """A build of a backend that was stopped at its share of the budget."""


class FusionError(PassnetError):
    """A graph whose fusion plan no compiler could make."""


class WorkerError(PassnetError):
    """A failure of our own worker machinery; the trial is re-run, never scored."""


class MeasureError(PassnetError):
    """A machine that cannot be measured on: no lock, no clock, or too noisy."""


class TrainingStoppedError(PassnetError):
    """A training ended by a monitor, because it learns the wrong thing or nothing."""


@contextmanager
def boundary(error: type[PassnetError], action: str, is_clear: bool = False) -> Iterator[None]:
    """Re-raise any foreign error of the block as `error`, with its cause.

    `action` is a phrase for what was being done, for example "loading pass FuseNorm". If it
    `is_clear` without the text of the cause, that is left out, unless the machine lacks something.
    """
    try:
        yield
    except PassnetError:
        raise
    except Exception as cause:
        if is_clear and not is_exhausted(cause):
            raise error(action) from cause
        text = str(cause).split(_OF_INTERPRETER, 1)[0]
        reason = missing_for_kernels(cause) or f"{type(cause).__name__}: {text}"
        raise error(f"{action}: {reason}") from cause


_OF_INTERPRETER = "\n\nWhile executing %"
"""What `torch.fx.Interpreter` appends to the text of an error: a line of its graph, and more."""

_NO_GPU = (
    "Torch not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs are available",
    "no CUDA-capable device is detected", "0 active drivers",
)  # fmt: skip
"""Texts of torch's and Triton's errors on a machine without a GPU."""


def missing_for_kernels(cause: BaseException) -> str | None:
    """Return what a machine lacks for a pass's kernels, Triton or a GPU, and what to do; or None.

    Examples:
        >>> missing_for_kernels(AssertionError("Torch not compiled with CUDA enabled"))
        'this needs a GPU, which is missing here; use a machine with one and --device cuda'
    """
    if isinstance(cause, ModuleNotFoundError) and (cause.name or "").split(".")[0] == "triton":
        return "this needs Triton, which is not installed: pip install 'passnet[cuda]'"
    if any(text in str(cause) for text in _NO_GPU):
        return "this needs a GPU, which is missing here; use a machine with one and --device cuda"
    return None


_REMEDIES = {
    errno.ENOSPC: "make room on the disk",
    errno.EDQUOT: "make room within that quota",
    errno.EFBIG: "raise `ulimit -f`, or write where files may be larger",
    errno.EROFS: "choose a folder that can be written to",
    errno.EACCES: "choose another path, or ask for the right to this one",
    errno.EPERM: "choose another path, or ask for the right to this one",
    errno.ENOTDIR: "a file stands where a folder is needed; choose another path",
    errno.EEXIST: "a file stands where a folder is needed; choose another path",
    errno.EISDIR: "a folder stands where a file is needed; choose another path",
    errno.EIO: "the disk, or the way to it, fails; use another one",
    errno.EMFILE: "raise `ulimit -n`, or use fewer --jobs",
    errno.ENOMEM: "free memory, or use fewer --jobs",
    errno.EAGAIN: "end other processes, or use fewer --jobs",
}


_EXHAUSTED = frozenset((
    errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.EIO,
))  # fmt: skip


def is_exhausted(cause: BaseException | None) -> bool:
    """Return whether the machine lacked something: no fault of a file, and it may work later.

    Examples:
        >>> is_exhausted(OSError(24, "Too many open files")), is_exhausted(FileNotFoundError(2, ""))
        (True, False)
    """
    return isinstance(cause, OSError) and cause.errno in _EXHAUSTED


def names_exhaustion(text: str) -> bool:
    """Return whether the text of another process's failure says that the machine lacked something.

    Examples:
        >>> names_exhaustion("RuntimeError: cannot fork: Too many open files (24)")
        True
    """
    return any(os.strerror(number) in text for number in _EXHAUSTED)


def os_error_sentence(cause: OSError) -> str:
    """Return what the OS refused and what to do about it: "PATH: REASON; REMEDY".

    Examples:
        >>> os_error_sentence(OSError(28, "", "runs/trials.jsonl"))
        'runs/trials.jsonl: No space left on device; make room on the disk'
        >>> os_error_sentence(FileNotFoundError(2, "", "passes"))
        'passes: No such file or directory'
        >>> os_error_sentence(OSError("no route to the host"))
        'no route to the host'
    """
    if cause.errno not in errno.errorcode:
        return " ".join(str(cause).split()) or type(cause).__name__
    path = "" if cause.filename is None else f"{os.fsdecode(cause.filename)}: "
    remedy = f"; {_REMEDIES[cause.errno]}" if cause.errno in _REMEDIES else ""
    return f"{path}{os.strerror(cause.errno)}{remedy}"


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Name the written file in an OSError of the block; Python does so only on opening."""
    try:
        yield
    except OSError as cause:
        if cause.filename is None and cause.errno is not None:
            cause.filename = str(path)
        raise


MAX_NAMES = 40
"""Most names that a sentence lists."""


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return a question that offers up to three similar words; empty if there is none.

    Examples:
        >>> did_you_mean("inductr", ["eager", "null", "inductor"])
        '; did you mean inductor?'
        >>> did_you_mean("norm", ["rms_norm", "layer_norm", "softmax"])
        '; did you mean rms_norm or layer_norm?'
        >>> did_you_mean("examples/pases", ["examples/passes", "examples/cuda"])
        '; did you mean examples/passes?'
        >>> did_you_mean("zzz", ["eager", "null", "inductor"]), did_you_mean("null", ["null"])
        ('', '')
    """
    from difflib import get_close_matches

    folder = word[: word.rfind("/") + 1]
    short = word.removeprefix(folder)
    by_name = {each.removeprefix(folder): each for each in choices if each != word}
    near = get_close_matches(short, by_name)
    near += [name for name in by_name if len(short) > 2 and short in name and name not in near]
    return f"; did you mean {' or '.join(by_name[name] for name in near[:3])}?" if near else ""


def no_such(kind: str, name: str, known: Iterable[str]) -> str:
    """Return "no KIND 'NAME'", the names that there are unless they are many, and similar ones.

    Examples:
        >>> no_such("baseline", "egaer", ["eager", "null"])
        "no baseline 'egaer'; there are eager, null; did you mean eager?"
        >>> no_such("net", "resnet", ["resnet18", *map(str, range(99))])
        "no net 'resnet'; did you mean resnet18?"
    """
    names = [*known]
    near = did_you_mean(name, names)
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    shown = f"; there are {', '.join(names[:MAX_NAMES]) or 'none'}{more}"
    return f"no {kind} {name!r}{near if near and more else shown + near}"


def neighbours(path: Path) -> list[str]:
    """Return the paths next to a missing path; empty if its folder cannot be read."""
    with suppress(OSError):
        return [str(neighbour) for neighbour in path.parent.iterdir()]
    return []


def check_exists(path: Path) -> None:
    """Raise InputError if there is nothing at a path; offer similar paths."""
    if not path.exists():
        hint = did_you_mean(str(path), neighbours(path))
        raise InputError(f"{path}: no such file or folder{hint}")
