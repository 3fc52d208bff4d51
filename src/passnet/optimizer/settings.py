"""How a net is optimised: which ways are tried, for how long, and what is promised of the net."""

from dataclasses import dataclass

from passnet.agent.settings import LlmSettings
from passnet.errors import InputError
from passnet.optimizer.backends.engines import ENGINES
from passnet.optimizer.backends.other_runtimes import RUNTIMES, is_installed

USUAL = ("eager", "compile", "graph", "aot")
WITH_PASSES = ("passes", "passes_compiled", "aot_passes", "aot_passes_frozen")
FOLDING = ("aot_frozen", "script_frozen", "aot_autotune_frozen", *RUNTIMES)
FROZEN = ("compile_frozen",)
"""Ways that are tried in any case, those where authors of passes are named, those that fold weights
in, which are compared at each call if they may change (other runtimes only where they are
installed), and what is tried only if they may not."""


@dataclass(frozen=True, slots=True)
class OptimizeSettings:
    """How a net is optimised.

    Args:
        freeze: whether weights will not change, so that those that were folded in need not be
            compared at each call.
        finite: whether arguments may be taken as finite, and indices among them as within what
            they index. NaN and infinities need then not be looked for at each call of a way that
            does not treat them as eager torch does (a ReLU that is fused into a product by oneDNN
            makes 0 of NaN), and ways may be used that raise no error for such an index.
        budget_s: seconds after which no further way is begun.
        threads: torch's threads while ways are built and timed; None for as many as it has.
        seconds: seconds that each way is timed.
        engines: the ways that are tried; None for `USUAL`, `FOLDING` as far as it is installed,
            `FROZEN` where weights will not change, and `WITH_PASSES` where there are authors.
        authors: who gives passes for the ranges of the net: "library" for what was judged before,
            and programs that write passes, "compiler" and "search". They have what is left of the
            budget when torch's own ways are built.
        library: the folder of the library of passes; None for the user's own.
        llm: an llm that writes passes too, "provider/name" or how it is asked; what it says is kept
            with the net.
    """

    freeze: bool = False
    finite: bool = False
    budget_s: float = 600.0
    threads: int | None = None
    seconds: float = 2.0
    engines: tuple[str, ...] | None = None
    authors: tuple[str, ...] = ()
    library: str | None = None
    llm: str | LlmSettings | None = None

    @property
    def asked(self) -> LlmSettings | None:
        """The llm, and how it is asked."""
        return LlmSettings(self.llm) if isinstance(self.llm, str) else self.llm

    def tried(self) -> tuple[str, ...]:
        """The ways that are tried.

        Raises:
            InputError: one of them, or an author, is not known; llms cannot be asked here.
            AuthorError: this llm cannot be asked at all (no key, no such provider).
        """
        frozen = FROZEN if self.freeze else ()
        passes = WITH_PASSES if self.authors or self.llm else ()
        folding = tuple(name for name in FOLDING if is_installed(name))
        usual = USUAL + folding + frozen + passes
        names = self.engines or usual
        unknown = [name for name in names if name not in ENGINES]
        if unknown:
            raise InputError(f"no engine {unknown[0]!r}; there are {', '.join(ENGINES)}")
        if self.authors:
            from passnet.optimizer.choose.pass_choice import writers_of

            writers_of(self.authors)
        if self.asked is not None:
            from passnet.agent.run import open_author

            open_author(self.asked)
        return tuple(dict.fromkeys(("eager", *names)))


DEFAULTS = OptimizeSettings()
