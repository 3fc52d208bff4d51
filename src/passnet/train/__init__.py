"""The judge as a reward for whoever trains an LLM.

rewards  rewards, monitors and environments for trainers
service  the judge behind an HTTP port
"""
