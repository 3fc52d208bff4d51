"""`passnet judge audit`, `attack`, `doctor`, `roofline`: the judge and its machine put to test.

audit, audit_command    exploits that it must catch, and honest passes that it must not
attack, attack_command  exploits played, or an LLM that looks for one
doctor, doctor_command  the sandbox of this machine, tried
intruder                attempts of code to escape its sandbox, for the doctor
roofline_command        the rates of this machine, printed
"""
