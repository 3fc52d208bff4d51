"""From graphs to subgraphs."""
