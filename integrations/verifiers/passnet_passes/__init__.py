"""passnet's tasks as a taskset of verifiers: `passnet-passes`.

taskset  tasks, and their reward
tools    the pass folder of a rollout, as tools
asked    how the reward service is asked
"""

from passnet_passes.taskset import PassTaskset

__all__ = ["PassTaskset"]
