# SPDX-License-Identifier: Apache-2.0
"""A run of an agent over a test set: jobs, worker processes, the journal that survives a crash."""
