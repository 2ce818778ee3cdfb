"""How a turn ends: failures, notices, flagged figures."""
