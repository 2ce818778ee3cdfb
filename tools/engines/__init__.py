"""One module an engine: how it is opened, walled in, limited and cancelled."""
