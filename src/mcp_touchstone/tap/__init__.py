"""Between a client and a server: pass their bytes on, record them, judge both sides."""
