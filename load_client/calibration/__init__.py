"""How exact this client is: the null server, which knows the true instants, and the comparison."""
