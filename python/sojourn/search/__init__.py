"""Search the parameters of a scenario: the best settings, sensitivities and the worst case."""
