"""x + y, wherever no relu follows."""

from pass_dir.elementwise import add


def pattern(x, y):
    return x + y


def replacement_args(x, y):
    return x, y, 0


def replacement_func():
    return add
