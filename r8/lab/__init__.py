"""The lab: the only room that acts on machines. It writes evidence and expects no answer."""
