# SPDX-License-Identifier: Apache-2.0
"""The version, in one place."""

__version__ = "0.2.0.dev0"
