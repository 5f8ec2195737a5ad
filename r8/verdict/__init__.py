"""What the numbers say: blocks, intervals, verdicts, gates, and runs held against runs."""
