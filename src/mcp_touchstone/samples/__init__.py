"""Values made from schemas, patterns and URI templates."""
