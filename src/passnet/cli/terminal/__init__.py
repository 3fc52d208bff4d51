"""What all commands share.

parser, fields       options of a command from the fields of a dataclass, and shared options
completion           words that a shell completes
groups               groups to which other packages add commands
output               tables and JSON
exits, interruption  exit codes, and Ctrl-C
"""
