"""HF TRL, the engine on one machine.

engine.py   what a run calls; a recipe in TRL's arguments
trainer.py  TRL's loop with our sampling, rewards, masks and files: begin here
frugal.py   the same loss without work that changes nothing
adapter.py  all that is private in TRL, under public names
sampler.py  the random state of sampling
vllm.py     vLLM as the sampler
"""
