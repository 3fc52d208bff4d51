"""Passes for a net.

chosen_passes, pass_choice  passes looked up or written, and the set that saves most
ranges                      ranges that passes may replace
judging                     passes for one range, written and judged
kept_passes                 copies of judged passes, the evidence for a net's claims
"""
