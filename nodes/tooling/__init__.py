"""What running tools needs: jobs, the audit, recall."""
