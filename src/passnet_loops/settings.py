"""Settings of training data, of fine-tuning, of asking an LLM, and of evaluation."""

from dataclasses import dataclass, field
from pathlib import Path

from passnet.core.jobs.run_plan import WHOLE, RunShard


@dataclass(frozen=True, slots=True)
class DataSettings:
    """Settings of the making of training data."""

    num_structures: int = 6000
    """Stop mining after this many structures."""

    max_per_sequence: int = field(default=8, metadata={"option": "per-sequence"})
    """Take at most this many structures of one op sequence."""

    max_windows: int = 60
    """Take at most this many subgraphs of one captured graph."""

    rare: int = 0
    """Make only rows with an op that fewer rows than this hold, also by exchanging one for it."""

    shard: tuple[int, int] = (1, 1)
    """Part of the captured graphs: its number from 1, and the number of parts."""


@dataclass(frozen=True, slots=True)
class LlmShape:
    """The size of a new LLM: LFM2, alternating a convolution over three words with attention.

    Words are tied to the output. Where each layer sees its neighbours, attention that copies names
    is learned in fewer steps.
    """

    width: int = 192
    """Make an untrained LLM of this width."""

    num_layers: int = 4
    """Make an untrained LLM of this many layers."""

    num_heads: int = 4
    max_words: int = 1024


@dataclass(frozen=True, slots=True)
class SftSettings:
    """Settings of fine-tuning."""

    shape: LlmShape = LlmShape()
    num_copies: int = field(default=6, metadata={"option": "copies"})
    """Learn each row this often."""

    batch_size: int = field(default=16, metadata={"option": "batch"})
    """Learn this many rows in one step."""

    learning_rate: float = field(default=2e-3, metadata={"option": "rate"})
    """Learn at this rate.

    AdamW has this rate, for embeddings and gains; Muon has five times it, for the other matrices.
    """

    max_words: int = field(default=330, metadata={"option": "words"})
    """Leave out rows with more words of prompt and answer than this."""

    seed: int = 0
    """Seed initial weights, names and the order of rows with this number."""

    num_structures: int | None = None
    """Learn from this many structures only; from all by default."""

    is_renamed: bool = True
    """Give every second copy of a row other names."""

    is_bfloat16: bool = False
    """Compute in bfloat16, which is slow unless `has_bfloat16`."""


@dataclass(frozen=True, slots=True)
class SftPlan:
    """The start of fine-tuning, and its data."""

    start: Path | None = field(default=None, metadata={"option": "from"})
    """Begin with the LLM of this run; by default with an untrained one."""

    resume: bool = False
    """Continue an interrupted run from its last state."""

    is_untrained: bool = False
    """Only write the LLM that training begins with, as a baseline."""

    others: tuple[Path, ...] = field(default=(), metadata={"option": "with"})
    """Also learn all of this training data, such as answers of `passnet train answer`."""


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """Settings of asking an LLM."""

    num_drawn: int = field(default=4, metadata={"option": "draw"})
    """Sample this many answers where the greedy one is wrong."""

    judge_every: int = field(default=16, metadata={"option": "judge"})
    """Judge one in this many of the answers to be kept."""

    max_words: int = 220
    """Length of an answer."""

    max_prompt_words: int = 220
    """Pass over longer prompts."""

    num_rows: int | None = field(default=None, metadata={"option": "limit"})
    """Ask for at most this many rows, chosen at random."""

    shard: RunShard = WHOLE
    """Part of the rows to ask for."""

    seed: int = 0
    """Seed samples with this number."""


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """The systems and tasks of an evaluation, and how they are asked and judged."""

    num_tasks: int | None = None
    """Evaluate on this many tasks, chosen at random."""

    per_task: int = 1
    """Evaluate on this many graphs of each task, chosen at random."""

    num_samples: int = 1
    """Judge this many answers, the likeliest first; the first correct one counts."""

    is_timed: bool = False
    """Time the answers too."""

    seed: int = 0
    """Seed the choice of tasks and graphs, and samples, with this number."""

    is_free: bool = False
    """Let LLMs say any word, not only those that the grammar allows."""

    num_drawn: int = field(default=1, metadata={"option": "draw"})
    """Sample this many answers to a graph."""

    is_checked: bool = field(default=False, metadata={"option": "check"})
    """Run the loops of answers with torch first, and pass over wrong ones."""

    data: Path | None = None
    """Compare with the nearest neighbour in this training data."""

    has_teacher: bool = False
    """Evaluate the compiler author too."""

    answered: tuple[Path, ...] = field(default=(), metadata={"option": "answers"})
    """Judge the answers of the evaluation in this folder again, without asking anew."""
