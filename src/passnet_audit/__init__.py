"""The audits of passnet's promises: the optimiser, the judge and its suites, put to the test.

nets    hazardous and harmless nets, optimised and compared with eager PyTorch
judge   exploits and honest passes judged, and new exploits looked for
suites  tasks that tell no wrong program from a right one, or hang on rounding
"""
