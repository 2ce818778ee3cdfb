"""Routes in addition to those of Agent Server."""
