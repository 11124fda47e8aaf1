# SPDX-License-Identifier: Apache-2.0
"""What everything works on: uneven rows, columns, tokens, and the Run that holds them, checked once."""
