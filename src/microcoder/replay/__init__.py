"""What another mask, filter, reward or test set would have made of rollouts that are recorded.

    from microcoder.replay import Alternative, open_recording, replay

    recording = open_recording(["runs/demo"])
    found = replay(recording, [Alternative("mask all", {"algorithm.masking.kind": "all"})])
    found.alternatives[0].run.first_difference

`replaying.py` is the whole of it, from top to bottom; docs/replay.md has a walk through a run.
"""

from typing import TYPE_CHECKING

from microcoder.lazy import lazy_names

if TYPE_CHECKING:
    from microcoder.replay.foreign import open_recording
    from microcoder.replay.recordings import Lack, Recording
    from microcoder.replay.rejudging import Rejudging, compare_by
    from microcoder.replay.replaying import Replay, replay
    from microcoder.replay.sentences import describe_replay
    from microcoder.replay.settings import Alternative

__all__ = [
    "Alternative",
    "Lack",
    "Recording",
    "Rejudging",
    "Replay",
    "compare_by",
    "describe_replay",
    "open_recording",
    "replay",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "foreign": ("open_recording",),
        "recordings": ("Lack", "Recording"),
        "rejudging": ("Rejudging", "compare_by"),
        "replaying": ("Replay", "replay"),
        "sentences": ("describe_replay",),
        "settings": ("Alternative",),
    },
)
