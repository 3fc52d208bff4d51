"""Safe texts of the site: names of files, scripts that hold data, colours and changes of files."""

import hashlib
import re
from collections.abc import Mapping
from difflib import unified_diff
from typing import Any

import msgspec
from pygments.formatters import HtmlFormatter

from passnet.core.records.serialise import encode
from passnet.core.terminal.visible_text import source_lines, visible

_COLOURS = {"light": "xcode", "dark": "github-dark"}
MAX_DIFF_LINES = 2_000
"""Most lines, before and after, that are compared, which takes up to cubic time; a longer file is
shown as gone and new."""

_SAFE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,79}")
_HASHED = re.compile(r".*-[0-9a-f]{16}")


def file_stem(text: str) -> str:
    """Return the stem of a file for any name; distinct names have distinct stems, in any case.

    Examples:
        >>> file_stem("rms_norm"), file_stem("../A b")
        ('rms_norm', 'a-b-e3f8e011e476be6b')
    """
    if _SAFE.fullmatch(text) and _HASHED.fullmatch(text) is None:
        return text
    plain = re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-")[:60] or "x"
    return f"{plain}-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"


def shown(value: Any) -> Any:
    """Return a value of JSON with all its texts and keys made visible."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, Mapping):
        return {visible(str(key)): shown(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(inner) for inner in value]
    return value


def script(name: str, value: Any) -> str:
    """Return a script that gives a value to its page, and that is never read as HTML.

    Examples:
        >>> script("a", ["</script>"])
        'PASSNET.put("a",["\\\\u003c/script\\\\u003e"]);\\n'
    """
    encode(value)  # refuses what is not finite
    text = msgspec.json.encode(shown(value)).decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return f'PASSNET.put("{name}",{text});\n'


def colours_css() -> str:
    """Return the style sheet of `coloured`, for light and dark pages."""
    styles = []
    for style in _COLOURS.values():
        lines = HtmlFormatter(style=style).get_style_defs(".src").splitlines()
        styles.append("\n".join(line for line in lines if line.startswith(".src .")))
    light, dark = styles
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"


def folder_diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Return the changes between two states of a folder as one text; empty if there are none."""
    parts: list[str] = []
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            old, new = (source_lines(files.get(name, "")) for files in (before, after))
            pairs = (
                [(old, new)] if len(old) + len(new) <= MAX_DIFF_LINES else [(old, []), ([], new)]
            )
            for pair in pairs:
                parts += unified_diff(*pair, f"{name} before", f"{name} after", lineterm="")
    return "\n".join(parts)
