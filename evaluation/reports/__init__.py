"""What a run says: for people, for programs and for CI."""
