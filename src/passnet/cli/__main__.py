"""`python -m passnet.cli` is `passnet`."""

import sys

if not sys.flags.safe_path:
    sys.path.pop(0)  # the current directory, which may be a pass folder

from passnet.cli.commands import main

main()
