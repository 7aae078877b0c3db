"""Exits before it says anything."""

import sys

sys.stderr.write("error: DATABASE_URL is not set\n")
sys.exit(3)
