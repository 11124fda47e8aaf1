# SPDX-License-Identifier: Apache-2.0
"""Hostile inputs by the thousand, for every reader and command; what must hold of each is checked.

| module | one idea |
|---|---|
| `cases.py` | an input: its files and options, as JSON |
| `hostile.py` | values that programs get wrong |
| `mutators.py` | damage to trees, lines and bytes |
| `documents.py`, `dialects.py` | valid logs and other files of every format, as trees, and how a tree is written |
| `parsers.py` | a second, slow reading of every format |
| `oracles.py` | what must hold of an outcome, and how two outcomes differ |
| `terminal.py` | commands run in this process |
| `logs.py`, `tables.py`, `spoken.py`, `words.py`, `names.py`, `live.py`, `commands.py`, `groups.py` | the targets |
| `targets.py` | all of them, by name |
| `worker.py`, `pool.py` | inputs tried in processes of their own, with limits of time and memory |
| `findings.py` | what was found, as a file; the same, smaller |
| `broken.py` | targets that fail on purpose, to test the machine |

An input is made from the name of its target and a number, and from nothing else.
"""
