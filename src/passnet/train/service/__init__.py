"""The judge behind an HTTP port.

app, server, settings           the HTTP interface and the service's life
submission, queue, dispatch     submissions on disk, and their way to judges and back
judges, judge_process, judging  judges as processes here or as Ray actors
client                          a client that waits for verdicts
"""
