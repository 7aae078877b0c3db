"""A gateway between our client and our server: both hops are recorded, compared and judged."""
