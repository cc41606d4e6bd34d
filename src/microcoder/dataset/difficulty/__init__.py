"""Difficulty: predict, calibrate, select. See docs/difficulty.md."""

from microcoder.dataset.difficulty.calibration import (
    Attempts,
    Calibration,
    CalibrationSettings,
    MeasuredOn,
    RateWithInterval,
    calibrate,
    fit_calibration,
    judge_attempts,
    published_attempts,
)
from microcoder.dataset.difficulty.features import measure_reference, measure_text
from microcoder.dataset.difficulty.predictor import predict_difficulty, predictor_version
from microcoder.dataset.difficulty.scoring import Dimension, ScoringSettings, score_difficulty
from microcoder.dataset.difficulty.selection import SelectionSettings, band_of, select

__all__ = [
    "Attempts",
    "Calibration",
    "CalibrationSettings",
    "Dimension",
    "MeasuredOn",
    "RateWithInterval",
    "ScoringSettings",
    "SelectionSettings",
    "band_of",
    "calibrate",
    "fit_calibration",
    "judge_attempts",
    "measure_reference",
    "measure_text",
    "predict_difficulty",
    "predictor_version",
    "published_attempts",
    "score_difficulty",
    "select",
]
