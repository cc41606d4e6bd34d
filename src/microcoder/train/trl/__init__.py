"""HF TRL, the engine on one machine."""
