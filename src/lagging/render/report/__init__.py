# SPDX-License-Identifier: Apache-2.0
"""The report: what a page about several systems shows, as plain data, and the page itself as one file."""

from __future__ import annotations

from lagging.render.report.page import Report, report

__all__ = ["Report", "report"]
