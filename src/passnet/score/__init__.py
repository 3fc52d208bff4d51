"""Scores as pure arithmetic, which imports no folder but records.

    tolerance    the smallest level t at which two tensors agree
    status       how a trial can end, and what of it is tolerated
    es           ES_t of some trials, and its aggregate AS
    interval     bootstrap intervals of AS
    suite_score  the score of a candidate over the tasks of a suite
    sensitivity  how the score, and the order of candidates, change with the rules

Nothing here reads a file, a clock or a device.
"""
