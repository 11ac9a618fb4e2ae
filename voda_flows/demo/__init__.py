"""The demo: five jobs on four slots of this machine, in real processes, from ``voda up`` to a report.

``script`` says what is submitted when (pure), ``verify`` what the record must show (pure), ``run`` does it.
"""
