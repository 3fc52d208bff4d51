"""Agreement with eager torch.

agreement                   a backend's outputs against eager torch's
fresh_values, index_bounds  other inputs of the same signature, hostile ones too
"""
