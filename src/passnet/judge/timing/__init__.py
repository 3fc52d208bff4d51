"""Time as the judge measures it, and its checks meanwhile.

clock                  rounds in which every worker makes a burst of calls in its turn
cold_caches            calls that find their caches filled by other work
timed_worker           one worker as the clock has it: run, stopped, and read
worker_record          what the clock notes of it
fresh_inputs           fresh values for every timed call
probes, outputs        reads of outputs: in a worker's memory, or delivered from a device
rounds                 calls of this process timed in rounds
estimate, roofline     speedups with their intervals, and the least possible time T_sol
wrong_answers          explanations of wrong timed calls
measurement            the measurement of several workers: times, and observations
measurement_findings   findings that a measurement shows
"""
