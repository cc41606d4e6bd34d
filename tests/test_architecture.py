"""The rules of the house that a machine can check."""

import ast
import graphlib
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import microcoder
from microcoder.judge.core.installation import how_to_install

SOURCE = Path(microcoder.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))

# Rooms, each of which imports those above it only, and the lines it may hold: what is added to one makes room in it.
BUDGETS = {
    "judge/core": 2530,
    "judge/sandbox": 4010,
    "judge/compare": 1360,
    "judge/languages": 1060,
    "judge/run": 5470,
    "judge/fleet": 2460,
    "judge/serve": 1460,
    "judge": 60,
    "data/formats": 5110,
    "data": 1670,
    "data/micro": 1110,
    "data/clean": 1970,
    "data/verify": 1000,
    "data/inputs": 1050,
    "data/filter": 1160,
    "data/tests": 1400,
    "data/behaviour": 970,
    "data/pipeline": 750,
    "data/release": 740,
    "data/benchmarks": 540,
    "data/build": 1070,
    "train": 540,
    "train/algorithm": 1460,
    "train/recipe": 760,
    "train/run": 3010,
    "train/trl": 1190,
    "train/verl": 1880,
    "lab": 10,
    "lab/flawed": 160,
    "lab/yardstick": 1200,
    "lab/studies": 3300,
