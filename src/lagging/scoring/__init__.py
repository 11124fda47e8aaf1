# SPDX-License-Identifier: Apache-2.0
"""From a log or a Run to Scores: what to score, how parts add up, and the signature of every number."""
