"""The paper's 34 insights, by aspect, in our own words (arXiv 2603.07777, sections 2, 3, 4 and 7)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

ASPECTS: Mapping[str, str] = MappingProxyType(
    {
        "E": "Evaluator",
        "T": "Temperature",
        "D": "Data",
        "C": "Context length",
        "M": "Truncation masking",
        "B": "Batch size and on-policy",
        "K": "KL and clip",
        "X": "Beyond the 34",
    }
)

INSIGHTS: Mapping[str, str] = MappingProxyType(
    {
        "E1": "A checker that recognises valid answers in other forms measures a higher accuracy, closer to the truth.",
        "E2": "The robust evaluator gives higher critic reward in training.",
        "E3": "Training with the robust evaluator reaches higher test accuracy, sooner.",
        "E4": "The difference between the evaluators is largest early in training.",
        "T1": "The highest temperature at which sampling stays accurate grows during training.",
        "T2": "Higher temperature, higher diversity.",
        "T3": "At a fixed temperature diversity falls as training goes on.",
        "T4": "If diversity starts below the value it would converge to, it keeps falling and training fails.",
        "T5": "The once-standard temperature 0.6 can fail.",
        "T6": "Modern models train stably even at temperature 1.8, with little effect on the final value.",
        "T7": "Diversity converges to similar values whatever the temperature.",
        "T8": "The temperature should be chosen from diversity: neither steady decline nor drastic swings.",
        "T9": "Staged low-to-high beats the high temperature from the start.",
        "T10": "Continuous uniform change destabilises; even a brief ramp leaves lasting damage.",
        "D1": "The harder dataset gives fast test gains; the easy one nearly none.",
        "D2": "The harder dataset gives lower critic reward.",
        "D3": "Both rewards grow alike; only the hard one's growth carries over to the test set.",
        "D4": "On harder problems responses grow faster and end longer, though they start no longer.",
        "C1": "Longer maximum output, higher final accuracy.",
        "C2": "Longer maximum output, faster growth and longer final outputs.",
        "C3": "Longer (maximum) outputs go with higher diversity.",
        "C4": "A short limit at the start harms length and diversity, and so accuracy, even after extension.",
        "C5": "The shorter the first limit, the greater the harm.",
        "C6": "The longer one trains under a short limit, the less is recovered; past a threshold, nothing.",
        "M1": "Masking gives a rapid rise, then a decline, then a plateau.",
        "M2": "More masking, faster length growth toward the limit; 30 % grows as fast as all.",
        "M3": "More masking reaches the first peak sooner.",
        "M4": "Less masking improves for longer and peaks higher.",
        "M5": "More masking, faster diversity decline, lower final diversity; all: a brief rise, then collapse.",
        "M6": "Conditional masking is the most stable and ends highest.",
        "B1": "More on-policy: less stable, diversity converges faster, length rises then falls.",
        "B2": "More off-policy: more stable on both diversity and length.",
        "B3": "The middle batch size performs best.",
        "K1": "No KL with high clip: more diversity, longer responses, sustained gains; KL with symmetric clip: early "
        "gain, then decline.",
    }
)
