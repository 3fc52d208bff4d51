"""Collections of subgraphs: suites of tasks, stored as Parquet."""
