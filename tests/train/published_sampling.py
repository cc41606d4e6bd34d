"""A value for every setting that a checkpoint's generation_config.json may have,
each one that would change answers.
"""

import json
import shutil
from pathlib import Path
from typing import Any

SETTINGS: dict[str, Any] = {
    "max_length": 7,
    "max_new_tokens": 3,
    "min_length": 90,
    "min_new_tokens": 90,
    "early_stopping": True,
    "max_time": 0.0001,
    "stop_strings": ["e", " ", "1"],
    "do_sample": True,
    "num_beams": 3,
    "use_cache": False,
    "cache_implementation": "static",
    "temperature": 3.5,
    "top_k": 2,
    "top_p": 0.1,
    "min_p": 0.9,
    "top_h": 0.1,
    "typical_p": 0.1,
    "epsilon_cutoff": 0.3,
    "eta_cutoff": 0.3,
    "repetition_penalty": 1.9,
    "encoder_repetition_penalty": 1.9,
    "length_penalty": -5.0,
    "no_repeat_ngram_size": 1,
    "bad_words_ids": [[token] for token in range(40, 90)],
    "renormalize_logits": True,
    "forced_bos_token_id": 44,
    "forced_eos_token_id": 45,
    "remove_invalid_values": True,
    "exponential_decay_length_penalty": [1, 4.0],
    "suppress_tokens": list(range(60, 200)),
    "begin_suppress_tokens": list(range(30, 300)),
    "sequence_bias": [[[77], 50.0]],
    "token_healing": True,
    "guidance_scale": 3.0,
    "watermarking_config": {"greenlist_ratio": 0.1, "bias": 9.0},
    "num_return_sequences": 2,
    "output_attentions": True,
    "output_hidden_states": True,
    "output_scores": True,
    "output_logits": True,
    "return_dict_in_generate": True,
    "encoder_no_repeat_ngram_size": 1,
    "decoder_start_token_id": 12,
    "is_assistant": True,
    "num_assistant_tokens": 3,
    "num_assistant_tokens_schedule": "constant",
    "assistant_confidence_threshold": 0.1,
    "prompt_lookup_num_tokens": 3,
    "max_matching_ngram_size": 1,
    "assistant_early_exit": 1,
    "assistant_lookbehind": 2,
    "target_lookbehind": 2,
    "low_memory": True,
    "penalty_alpha": 0.9,
    "dola_layers": "low",
    "diversity_penalty": 4.0,
    "num_beam_groups": 3,
    "prefill_chunk_size": 2,
    "disable_compile": False,
    # Of transformers 5.24; older ones know none of them.
    "assistant_ensemble_weight": 0.9,
    "max_cache_len": 8,
    "speculation_type": "assistant",
    "use_mtp": True,
}
NOT_OF_SAMPLING = {
    # What ends and pads a response is the checkpoint's to say.
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "transformers_version",
    "_from_model_config",
    # Objects that no JSON file of a checkpoint holds, or keys that are gone.
    "cache_config",
    "compile_config",
    "continuous_batching_config",
    "constraints",
    "force_words_ids",
}


def publish(checkpoint: Path, folder: Path, **settings: Any) -> Path:
    """Copy a checkpoint, with further settings in its generation_config.json."""
    shutil.copytree(checkpoint, folder)
    file = folder / "generation_config.json"
    own = json.loads(file.read_text(encoding="utf-8"))
    file.write_text(json.dumps({**own, **settings}), encoding="utf-8")
    return folder


def edit(file: Path, **changes: Any) -> None:
    """Change keys of a JSON file; None removes one."""
    values = {**json.loads(file.read_text(encoding="utf-8")), **changes}
    kept = {}
    for key, value in values.items():
        if value is not None:
            kept[key] = value
    file.write_text(json.dumps(kept), encoding="utf-8")
