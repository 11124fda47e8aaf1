# SPDX-License-Identifier: Apache-2.0
"""`python -m lagging`."""

from lagging.cli import main

if __name__ == "__main__":
    main()
