"""Passes: load them, match their patterns, rewrite graphs with them, plug them into torch.compile."""
