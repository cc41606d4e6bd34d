"""verl asks for its device as it is imported, by whichever test comes first."""

import os

os.environ.setdefault("MICROCODER_VERL_DEVICE", "cpu")
