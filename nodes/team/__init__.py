"""Who answers, and by which rule: personas, their modes, and what each is told."""
