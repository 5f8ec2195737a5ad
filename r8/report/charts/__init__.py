"""Charts as SVG, the same to the byte for the same numbers."""
