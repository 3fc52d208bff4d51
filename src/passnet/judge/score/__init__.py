"""Scores as pure arithmetic: no file, clock or device.

tolerance, status      the smallest t at which tensors agree, and how a trial can end
es, suite_score        ES_t and AS of trials, and of a suite
share_score            AS by share: tasks weighted by their shares of nets' time
sol                    S: the score against the hardware
interval               bootstrap intervals
"""
