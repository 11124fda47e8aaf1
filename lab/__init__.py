# SPDX-License-Identifier: Apache-2.0
"""The paper's experiment: train wait-k and MILk, run them, and draw AL against DAL."""
