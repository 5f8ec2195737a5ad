"""The lab: the only package that acts on machines. It writes evidence and expects no answer."""
