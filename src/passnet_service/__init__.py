"""The server of the reward service; its client is `passnet.train.service`.

command, server, settings  the command, and a service from start to end
app, queue, dispatch       the HTTP interface, and the way of submissions to judges and back
judges, judging            judges in processes here or in actors of a Ray cluster
"""
