"""Recording: threads that sample on time, the journal they fill, and the iostat witness."""
