"""Time, as the judge measures it, and what it looks at meanwhile.

clock                  rounds in which every worker is let run for a burst of calls in its turn
timed_worker           one worker as the clock has it: let run, stopped, and read
fresh_inputs           values of its own for every timed call
probes                 reads of a worker's memory: random places of its outputs, or all of them
outputs                how outputs are read: in the worker's memory, or as a device delivers them
rounds                 calls of this process timed in rounds
estimate, roofline     speedups with their intervals, and the least possible time
wrong_answers          why timed calls came out wrong
measurement            what is measured of several workers: times, and what was seen beside them
measurement_findings   what a measurement shows of a candidate's honesty
"""
