"""The judge as a reward for whoever trains an LLM.

rewards  rewards, monitors and environments for trainers
tasks    tasks that may be trained on
service  the judge behind an HTTP port
"""
