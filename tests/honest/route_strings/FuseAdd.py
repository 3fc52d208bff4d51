"""x + y, by way of the dispatcher."""

from pass_dir.dispatch import dispatch


def pattern(x, y):
    return x + y


def replacement_args(x, y):
    return x, y, "add"


def replacement_func():
    return dispatch
