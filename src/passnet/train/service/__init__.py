"""The judge behind an HTTP port.

app, server, settings        the HTTP interface, and a service from start to end
submission, queue, dispatch  submissions on disk, and their way to judges and back
judges, judging              judges in processes here or in actors of a Ray cluster
client                       a client that waits for verdicts, also for an agent's session
"""
