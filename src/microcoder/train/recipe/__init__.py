"""Schema of recipes: one config class for each table of a recipe file, validated when the file is read."""
