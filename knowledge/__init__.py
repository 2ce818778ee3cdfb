"""What the owner of the data teaches: a glossary, rules, and verified queries."""
