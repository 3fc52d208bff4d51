"""The reward service as its clients see it; the server is `passnet_service`.

submission  what is sent and answered
client      a client that waits for verdicts, also for an agent's session
"""
