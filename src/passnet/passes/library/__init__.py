"""A library of judged passes.

    entries       entries read from disk, and the passes that win on a machine
    store         passes added, merged, exported and removed
    kept          the judged passes of an optimised net
    verification  passes judged again
"""
