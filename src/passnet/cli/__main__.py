"""`python -m passnet.cli` is `passnet`."""

from passnet.cli.commands import main

main()
