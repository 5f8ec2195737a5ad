"""What is kept of a request: the capture, the rows derived from it, and the files they go to."""
