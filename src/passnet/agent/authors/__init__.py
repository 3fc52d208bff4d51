"""Authors that are programs: a compiler that writes passes, and a search that improves them."""
