"""The audits of passnet's promises: the optimiser and the judge, put to the test.

nets   hazardous and harmless nets, optimised and compared with eager PyTorch
judge  exploits and honest passes judged, and new exploits looked for
"""
