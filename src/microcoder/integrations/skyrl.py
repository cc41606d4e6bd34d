"""SkyRL-gym's environment `microcoder`; importing this registers it."""

from collections.abc import Mapping
from typing import Any

from skyrl_gym import register
from skyrl_gym.envs.base_text_env import BaseTextEnv, BaseTextEnvStepOutput

from microcoder.data.formats.rows import to_problem
from microcoder.integrations.shared import as_figures, fault_of, shared_judge
from microcoder.judge.core.extract import extract_program

ID = "microcoder"
"""Id of the environment, the value of SkyRL's `environment.env_class`."""


class CodeEnv(BaseTextEnv):
    """One problem, one answer: its last code block is judged by the problem's tests."""

    def __init__(self, env_config: object = None, extras: Mapping[str, Any] | None = None) -> None:
        """Read the problem of a row.

        Args:
            env_config: `environment.skyrl_gym.microcoder`, a mapping or an object: its `judge` has
                options of `Judge`.
            extras: the row's columns beside `prompt` and `env_class`, in any form that
                `read_problem` reads; `reward_spec` is read as verl's `reward_model`.

        Raises:
            ConfigError: an option is unknown, or another environment of this process has another
                value of it.
            DataError: the row cannot be judged: which field, and why.
        """
        super().__init__()
        if isinstance(env_config, Mapping):
            options = env_config.get("judge")
        else:
            options = getattr(env_config, "judge", None)
        self._judge = shared_judge(**(options or {}))
        # SkyRL adds its own setting to the columns of the row.
        columns = extras or {}
        row = {name: value for name, value in columns.items() if name != "max_turns"}
        if "reward_spec" in row:
            row["reward_model"] = row.pop("reward_spec")
        self.problem = to_problem(row)
        self._metrics: dict[str, float] = {}

    def step(self, action: str) -> BaseTextEnvStepOutput:
        """Judge an answer.

        Raises:
            EvaluatorFault: the sandbox failed each time: SkyRL needs a reward, and 0 means that the
                program is wrong.
        """
        program = extract_program(action, language=self.problem.language)
        (verdict,) = self._judge.judge([program], [self.problem])
        if not verdict.is_scorable:
            raise fault_of(verdict)
        share = verdict.tests_passed / max(1, verdict.tests_total)
        self._metrics = {"accepted": float(verdict.is_accepted), "tests_passed_share": share}
        metadata = {
            "parsed_code": program.code,
            "extraction": program.reason,
            **as_figures(verdict),
        }
        return BaseTextEnvStepOutput(
            observations=[],
            reward=float(verdict.is_accepted),
            done=True,
            metadata=metadata,
        )

    def get_metrics(self) -> dict[str, float]:
        """Return `accepted` and `tests_passed_share` of the last answer; empty before `step`."""
        return self._metrics


register(id=ID, entry_point=f"{__name__}:CodeEnv")
