"""What is sent: the plan of a phase, its prompts, its schedule and the bytes of each request."""
