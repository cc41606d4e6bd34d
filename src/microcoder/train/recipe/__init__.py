"""What a recipe may say: a class a table of its file, checked when it is read."""
