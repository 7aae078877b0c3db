"""Which tool does which operation on files, and with which arguments."""
