"""PassAgent: an author, llm or program, writes passes for a task and is judged as it goes."""
