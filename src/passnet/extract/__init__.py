"""From nets to graphs: run the tracer and keep what it saw."""
