"""What our server plays for clients under test: the engine; the suite on clients has the parts."""
