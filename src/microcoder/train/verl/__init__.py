"""verl on Ray, the engine on a cluster.

engine.py     what a run calls: data, verl's command, and what it shows
translate.py  a recipe in verl's options: begin here
plugin.py     loaded by verl in each of its processes; enters the following
trainer.py    verl's trainers with our sampling, masks, advantages and files
reward.py     the judge as verl's reward manager
sampling.py   temperature, length and seed of each request
settings.py   the plug-in's settings, and our advantages as verl's estimators
rows.py       verl's rows <-> our groups
"""
