"""Training: the algorithm as pure functions, and the engines that run it."""
