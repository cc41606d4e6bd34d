"""verl without GPUs, for tests: the CPU as its device and a transformers rollout server. No part of the product."""
