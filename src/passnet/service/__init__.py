"""The judge as a service: whoever trains an llm asks it over HTTP what answers are worth.

submission     what is asked, and what is answered
settings       devices, limits, and how submissions are judged
queue          submissions on disk, whatever kills the service
judging        what judges one item after another
judge_process  a judge in a process of its own
judges         judges as the service sees them: processes here, or actors of a Ray cluster
dispatch       items on their way from the queue to judges and back
app            what clients may ask over HTTP
server         the service from its start to its end
client         what asks it, until it has an answer

A trial that the judge could not measure, and a fault of ours, come back as such: no reward, not 0.
"""
