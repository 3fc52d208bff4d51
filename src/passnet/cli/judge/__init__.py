"""`passnet judge`: the judge itself, put to the test, or at the service of others.

group          the group of these commands
serve, doctor  the judge over HTTP, and the sandbox of this machine
"""

from passnet.cli.judge import doctor, serve  # noqa: F401 (adds the commands)
from passnet.cli.judge.group import judge_group

__all__ = ["judge_group"]
