"""The domains of nets."""

from typing import Literal, TypeAlias

Domain: TypeAlias = Literal["nlp", "cv", "multimodal", "audio", "other"]
DOMAINS: tuple[Domain, ...] = ("nlp", "cv", "multimodal", "audio", "other")
"""The domains by which the published dataset is described (PassNet paper, Section 3)."""
