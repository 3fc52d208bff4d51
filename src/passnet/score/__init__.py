"""From trials to scores: factors, ES_t, AS, the columns of the published table, intervals."""
