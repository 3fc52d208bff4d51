"""On the page of an optimised net, the ranges of its ops, and the trials and sources of passes."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from passnet.core.records.serialise import encode
from passnet.optimizer.record import FormRecord, RangeRecord
from passnet.pages.optimizer.page_text import in_ms, interval, link, short_ops, shown, what_is_used
from passnet.passes.library.entries import saved_ms
from passnet.passes.library.kept import KeptPass

MAX_OPS = 6
"""Ops of a range that are shown at first."""

_HEADS = (
    '<th>ops</th><th class="n">places</th><th class="n">eager ms</th><th class="n">pass ms</th>'
    '<th class="n">speedup (95 %)</th><th>author</th><th class="n">saved ms (95 %)</th>'
    "<th>outcome</th>"
)


def ranges_section(form: FormRecord, number: int, trials: Mapping[str, str]) -> Iterator[str]:
    """The ranges of the form of a number, what saves most first; `trials` are the anchors of
    trials, by digest.
    """
    if not form.ranges:
        return
    yield "<h3>Ranges and their passes</h3>"
    yield (
        '<p class="quiet">Times and savings are of one place, as the judge measured the range by '
        "itself; each links to its trial. Of passes that win, those that save most together are "
        f"chosen.{what_is_used(form, number)}</p>"
        '<div class="wide" role="region" tabindex="0" aria-label="Ranges">'
        f"<table><thead><tr>{_HEADS}</tr></thead><tbody>"
    )
    order = sorted(
        range(len(form.ranges)),
        key=lambda index: -form.ranges[index].saved_ms * form.ranges[index].num_places,
    )
    for index in order:
        each = form.ranges[index]
        trial = trials.get(each.digest or "")
        speedup = interval(each.speedup, each.speedup_low, each.speedup_high)
        saved = in_ms(each.saved_ms)
        if each.saved_ms and each.speedup_high is not None:
            saved += f" to {in_ms(saved_ms(each.eager_ms, each.speedup_high))}"
        yield (
            f'<tr id="form-{number}-range-{index}">'
            f'<td class="ops">{_ops(each)}</td><td class="n">{each.num_places}</td>'
            f'<td class="n">{in_ms(each.eager_ms)}</td><td class="n">{in_ms(each.pass_ms)}</td>'
            f'<td class="n">{link(trial, speedup) if trial and each.speedup else speedup}</td>'
            f'<td>{shown(each.author)}</td><td class="n">{saved}</td>'
            f'<td class="says">{_outcome(each, trial)}</td></tr>'
        )
    yield "</tbody></table></div>"


def _ops(each: RangeRecord) -> str:
    if len(each.ops) <= MAX_OPS:
        return f"<code>{shown(short_ops(each.ops, MAX_OPS))}</code>"
    return (
        f"<details><summary><code>{shown(short_ops(each.ops, MAX_OPS))}</code> ({len(each.ops)} "
        f"ops)</summary><code>{shown(short_ops(each.ops, len(each.ops)))}</code></details>"
    )


def _outcome(each: RangeRecord, trial: str | None) -> str:
    """What came of a range, in words."""
    status = link(trial, shown(each.status)) if trial else f"{shown(each.status)} (not kept)"
    if each.num_chosen:
        places = f" in {each.num_chosen} of {each.num_places} places" if each.num_places > 1 else ""
        return f'{status}, <span class="mark">chosen</span>{places}'
    if each.saved_ms:
        return f"{status}, others save more"
    return status + (f": {shown(each.error)}" if each.error else "")


def trials_section(kept: Sequence[KeptPass], anchors: Mapping[str, str]) -> Iterator[str]:
    """The trials of passes, with their sources."""
    if not kept:
        return
    yield "<h2>Trials and sources</h2>"
    yield (
        '<p class="quiet">Every pass that was judged for this net: what it replaces, how the judge '
        "found it, the judge's own record, and the files of the pass.</p>"
    )
    for each in kept:
        entry = each.entry
        yield (
            f'<details class="trial"><summary><code>{entry.digest[:12]}</code> '
            f"{shown(short_ops(entry.ops))}, by {shown(entry.author)}: {shown(entry.status)}"
            f'</summary><div id="{anchors[entry.digest]}" tabindex="-1"><dl>'
        )
        yield from (f"<dt>{name}</dt><dd>{shown(text)}</dd>" for name, text in _facts(each))
        yield "</dl>"
        texts = {"range": entry.program, **each.files}
        if each.trial is not None:
            texts["record of the judge"] = _json(each.trial)
        if each.settings is not None:
            texts["settings of the judge"] = _json(each.settings)
        for name, text in texts.items():
            lines = len(text.splitlines())
            yield (
                f"<details><summary>{shown(name)}, {lines} lines</summary>"
                f'<pre tabindex="0">{shown(text)}</pre></details>'
            )
        yield "</div></details>"


def _json(record: object) -> str:
    return msgspec.json.format(encode(record), indent=2).decode()


def _facts(each: KeptPass) -> Iterator[tuple[str, str]]:
    """What a trial says, by name."""
    entry, trial = each.entry, each.trial
    yield "entry of the library", entry.digest
    yield "arguments", ", ".join(entry.forms)
    yield f"judged {entry.origin}", f"{entry.judged}, by passnet {entry.passnet}"
    yield "on", entry.hardware.text
    if each.settings is not None:
        yield "seed of the inputs", str(each.settings.judge.seed)
        yield "sandbox", each.settings.sandbox
    if trial is not None:
        yield "status", trial.status
        if trial.smallest_t is not None:
            yield "right at", f"t = {trial.smallest_t}"
        if trial.relative_error is not None:
            eager = trial.eager_error
            beside = "" if eager is None else f"; eager torch's is {eager:.1e}"
            yield "relative error beside float64", f"{trial.relative_error:.1e}{beside}"
        if trial.speedup is not None:
            times = interval(trial.speedup, trial.speedup_low, trial.speedup_high)
            yield "speedup (95 % interval)", times
            both = (trial.reference_ms, trial.candidate_ms)
            yield "ms of a call", "{} by eager torch, {} by the pass".format(*map(in_ms, both))
        if trial.self_ratio is not None:
            yield "eager torch beside itself", f"{trial.self_ratio:.3f} (1 on a quiet machine)"
        if trial.findings:
            yield "findings", "; ".join(f"{one.name}: {one.evidence}" for one in trial.findings)
    if entry.error:
        yield "error", entry.error
