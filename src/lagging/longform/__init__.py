# SPDX-License-Identifier: Apache-2.0
"""Long form: a log of whole recordings, a segmentation with references, and the log cut into the segments of it."""
