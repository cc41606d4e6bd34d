"""The micro lab world: generated graded problems and demonstrations, for experiments on a laptop."""
