"""The server of the reward service; its client is `passnet.train.service`.

command, server, settings  the command, and a service from start to end
connections, app           HTTP connections, and the requests that they carry
jobs                        submissions completed for a judge
graph_check                the check of graphs that come with a submission
queue, dispatch            the way of submissions to judges and back
judges, judging            judges in processes here or in actors of a Ray cluster
open_actor                 one such actor, awaited
"""
