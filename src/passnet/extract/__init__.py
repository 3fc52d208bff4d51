"""From nets to graphs: nets of libraries, or one's own, are built, traced and their graphs kept.

    catalog           the nets of each library, with inputs
    net               a net, and what to call it with
    capture           a net to graphs
    trace             one run under Dynamo, and how data flows between its graphs
    backward          the graph of the gradients of a graph
    weights           weights without memory
    constraints       the checks on captured graphs
    entry_capture     one entry of the catalog, in this process
    capture_job       one entry in a process of its own
    run               many entries into a folder, resumed where it stopped
    entry_selection   names and patterns to entries
    record            what came of capturing one net
    store             captured graphs on disk
    sampling          a part of many graphs that stands for the whole
    recapture         a net again, on other sizes or in another dtype
    domain            the domains of nets
    torchvision_ops   torchvision beside a torch that it was not built for
    torchaudio_library   torchaudio beside a torch that it was not built for

Nets have the weights that they are initialised with, or none; nothing is downloaded.
"""
