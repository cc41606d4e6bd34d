"""The types of the loop (problem, program, verdict, reward); the files, recipes and errors that all packages use."""
