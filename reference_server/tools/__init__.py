"""The tools, but for CEDARScript, and the box they are kept in."""
