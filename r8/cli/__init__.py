"""Entry points of the r8 command: one module a family of verbs."""
