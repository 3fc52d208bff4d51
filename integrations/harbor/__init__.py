"""Tasks of passnet as a Harbor dataset, judged by a separate verifier.

export    every task as a folder of Harbor
verify    the verifier, which is copied into each task
__main__  the command, `python -m integrations.harbor`
"""
