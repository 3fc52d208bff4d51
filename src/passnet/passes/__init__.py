"""Passes: load them, match their patterns, rewrite graphs, plug them into torch.compile."""
