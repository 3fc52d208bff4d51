"""`passnet suite check`: the tasks of a suite, put to the test.

check          wrong programs, NaN and rounding on every graph, and the sound version of a suite
check_command  the command
"""
