"""One suite of Workflow documents, run side by side on the local engine and on the real Argo controller.

``documents/`` has them, named for what they try; ``*_cases.py`` say what is done to them; ``play.py`` plays them in
two worlds (``world.py``: ``local_world.py``, ``cluster_world.py``); ``story.py`` holds what became of them against one
another. ``tier.py`` says what the tests play and what ``make show AREA=cluster`` does.
"""
