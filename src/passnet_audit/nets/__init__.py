"""`passnet optimize audit`: hazardous and harmless nets, optimised and compared with eager PyTorch.

case, held         a net of a corpus, and the state of nets, arguments and the process
differences        two returned values compared
outcome, tables    the outcome of a case, counts by backend, and tables; they import no torch
audit, run         one case audited, and a corpus in child processes
command            the command
"""
