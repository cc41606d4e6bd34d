"""What an algorithm's settings are called: the published name, with the differences from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ADVANTAGES = {"grpo": "", "dr_grpo": "Dr. GRPO's advantage", "rloo": "RLOO's advantage", "maxrl": "MaxRL's advantage"}
_MASKS = {
    "none": "",
    "conditional": "conditional truncation mask",
    "all": "all truncated masked",
    "soft_penalty": "soft length penalty",
    "stop_properly": "stop-properly penalty",
}


def algorithm_name(config: Mapping[str, Any]) -> str:
    """Return the published name of an algorithm's settings with their differences from it; empty for no settings.

    Args:
        config: the `algorithm` table of a run's manifest.
    """
    if not config:
        return ""
    loss, masking = _table(config.get("loss"), "dapo"), _table(config.get("masking"), "none")
    advantage, has_kl = str(config.get("advantage") or "grpo"), bool(config.get("kl_coefficient"))
    kind, mask = loss["kind"], _mask_name(masking)
    name = "Dr. GRPO" if kind == "dr_grpo" else str(kind).upper()
    if name == "DAPO" and masking["kind"] == "conditional" and advantage == "grpo" and not has_kl:
        name, mask = "MicroCoder-GRPO", ""
    own_advantage = "" if kind == advantage == "dr_grpo" else _ADVANTAGES.get(advantage, f"advantage {advantage}")
    is_symmetric = kind == "dapo" and loss.get("clip_high") is not None and loss["clip_high"] == loss.get("clip_low")
    # GRPO's own recipe has a KL term; the others have none.
    kl = ("" if has_kl else "no KL") if kind == "grpo" else ("KL" if has_kl else "")
    filtering = _table(config.get("group_filtering"), "none")["kind"]
    entropy = _table(config.get("entropy"), "none")["kind"]
    departures = (
        own_advantage,
        mask,
        "symmetric clip" if is_symmetric else "",
        kl,
        "dynamic sampling" if filtering == "dynamic" else "",
        "" if entropy == "none" else f"entropy {entropy}",
    )
    return ", ".join([name, *(text for text in departures if text)])


def _mask_name(masking: Mapping[str, Any]) -> str:
    kind = str(masking["kind"])
    if kind == "own":
        return f"mask {masking.get('name')}"
    out_of = masking.get("leave_out_of") or "gradient"
    return _MASKS.get(kind, kind) + ("" if out_of == "gradient" else f" (out of the {out_of})")


def _table(value: object, default: str) -> dict[str, Any]:
    if isinstance(value, Mapping):
        return {"kind": default, **value}
    return {"kind": value or default}
