"""The nouns of the loop (problem, program, verdict, reward), and the files, recipes and errors that all rooms share."""
