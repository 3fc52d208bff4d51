"""Agreement with eager torch.

agreement     a backend's outputs against eager torch's
fresh_values  other inputs of the same signature, hostile ones too, and bounds of indices
"""
