"""The site file: what is where, which arms there are, and the plan of cells."""
