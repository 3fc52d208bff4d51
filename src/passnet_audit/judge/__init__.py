"""`passnet judge audit` and `passnet judge attack`: the judge, put to the test.

audit, audit_command    exploits that it must catch, and honest passes that it must not
attack, attack_command  exploits played, or an LLM that looks for one
"""
