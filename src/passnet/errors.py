"""Every error type of passnet, and the one context manager that turns foreign errors into ours."""

import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


class PassnetError(Exception):
    """Root of all errors that passnet raises on purpose; its text is meant for the user."""


class InputError(PassnetError, ValueError):
    """The caller gave something wrong (argument, option, file); the text says what to do."""


class GraphError(InputError):
    """A graph file cannot be read, printed or built; the text names file, line and construct."""


class SuiteError(InputError):
    """A suite or run folder cannot be read."""


class PassFolderError(InputError):
    """A pass folder is incomplete or unreadable, as far as can be told without running it."""


class PassError(PassnetError):
    """Code of a pass failed while it was loaded, traced or applied."""


class ActionError(InputError):
    """An author asked for something that a tool cannot do; the text is what it is told."""


class AuthorError(PassnetError):
    """An author of passes could not go on: an llm without a key, of an unknown name, that refuses,
    or a compiler that cannot lower the graph.
    """


class CaptureError(PassnetError):
    """A net could not be captured."""


class CutError(PassnetError):
    """A range of a graph cannot be cut out as a graph of its own."""


class EngineError(PassnetError):
    """A net cannot be run in some way; the text says why."""


class FusionError(PassnetError):
    """A compiler's plan for a graph could not be had."""


class WorkerError(PassnetError):
    """Our own worker machinery failed (not the candidate); the trial is re-run, never scored."""


class MeasureError(PassnetError):
    """The machine cannot be measured on: no lock, no clock, or too noisy."""


class TrainingStoppedError(PassnetError):
    """A monitor ended a training: what is learned is not what was meant, or nothing any more."""


@contextmanager
def boundary(error: type[PassnetError], what: str) -> Iterator[None]:
    """Re-raise whatever foreign code raises inside the block as `error`, with the cause attached.

    Args:
        error: the type named after the boundary that is crossed.
        what: a phrase for what was being done, for example "loading pass FuseNorm".
    """
    try:
        yield
    except PassnetError:
        raise
    except Exception as cause:
        raise error(f"{what}: {type(cause).__name__}: {cause}") from cause


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


def os_error_sentence(cause: OSError) -> str:
    """What the operating system refused, and what to do about it: "PATH: REASON; REMEDY".

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
    """Let an OSError of the block name the file that it writes, where it names none: Python's own
    does so when a file is opened, and not when what is written does not fit.
    """
    try:
        yield
    except OSError as cause:
        if cause.filename is None and cause.errno is not None:
            cause.filename = str(path)
        raise


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """The end of an error text about a word that is none of the choices: up to three that are spelt
    like it, or that contain it, as a question; empty where there are none. Of words with slashes
    only what comes after the last is compared.

    Examples:
        >>> did_you_mean("inductr", ["eager", "null", "inductor"])
        '; did you mean inductor?'
        >>> did_you_mean("norm", ["rms_norm", "layer_norm", "softmax"])
        '; did you mean rms_norm or layer_norm?'
        >>> did_you_mean("examples/pases", ["examples/passes", "examples/cuda"])
        '; did you mean examples/passes?'
        >>> did_you_mean("zzz", ["eager", "null", "inductor"])
        ''
    """
    from difflib import get_close_matches

    folder = word[: word.rfind("/") + 1]
    short = word.removeprefix(folder)
    by_name = {choice.removeprefix(folder): choice for choice in choices}
    near = get_close_matches(short, by_name)
    near += [name for name in by_name if len(short) > 2 and short in name and name not in near]
    return f"; did you mean {' or '.join(by_name[name] for name in near[:3])}?" if near else ""


def neighbours(path: Path) -> list[str]:
    """The paths in the folder of a path that does not exist; none if that cannot be read."""
    with suppress(OSError):
        return [str(neighbour) for neighbour in path.parent.iterdir()]
    return []
