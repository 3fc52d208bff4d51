"""`passnet suite make` and `suite check`: tasks put to the test, before and after they are a suite.

selection, balance         the tasks that a suite takes from a dataset
assembly, make_command     a suite made of a dataset
check, check_command       the graphs of a suite, and its sound version
admission, wrong_programs  graphs on which wrong programs fail
soundness, domains         graphs whose answers are numbers that do not hang on rounding
"""
