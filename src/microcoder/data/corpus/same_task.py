"""Finds benchmark problems by a model: does a problem set the same task as one of its nearest?

    statement -> task without its story -> the 20 nearest tasks of the benchmarks
    -> "the same task?" of each -> Hit

Another story or language leaves no words in common, so the nearest are found among restatements:
the model states each task in plain English, once a problem (the endpoint keeps its replies). Both
whole statements are then put side by side. Problems that the comparison by execution suspects are
asked about first.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from heapq import nlargest

from microcoder.data.behaviour.keeping import find_suspects
from microcoder.data.completions import Endpoint
from microcoder.data.filter.contamination import Hit
from microcoder.data.filter.texts import words
from microcoder.data.formats.candidates import Candidate
from microcoder.judge.core.types import Record

NUM_NEAREST = 20
"""How many benchmark problems, the nearest, a problem is compared with."""
_SEEDS = range(3)
"""Seeds of the attempts at a question.

The next is tried while replies do not follow the schema.
"""
_MOST_CHARACTERS = 12_000
"""Characters of a statement that the model is shown.

What is longer ends in a table or a long example.
"""
_RESTATE = """\
State the task of the programming problem below in one to three plain English sentences, \
as a textbook
would: what is given, and what has to be computed. \
Leave out story, names, input and output format, limits and examples.
Answer with one JSON object and nothing else: {"task": "..."}

Problem:
"""
_COMPARE = """\
Do the two programming problems below set the same task? \
They do if a program for one becomes a program
for the other by changing how it reads its input and writes its answer; \
story, language, names, limits and formats do
not matter. They do not if one is a part, a harder version or a sequel of the other, \
or asks another question of the
same data. Answer with one JSON object and nothing else: {"reason": "...", "is_same": true or false}
"""


class Restatement(Record):
    """A model's reply: a task without its story."""

    task: str


class Comparison(Record):
    """A model's reply: whether two problems set the same task."""

    reason: str
    is_same: bool


@dataclass(frozen=True, slots=True)
class TaskIndex:
    """The benchmarks' problems, searchable by the words of their tasks as a model restates them."""

    problems: tuple[Candidate, ...]
    rarity: dict[str, float]
    """Word -> logarithm of (1 + number of problems) / (number of problems with this word)."""
    owners: dict[str, list[tuple[int, float]]]
    """Word -> the problems that have it: index in `problems`, and weight of the word (`_weigh`)."""

    def find_nearest(self, task: str) -> list[Candidate]:
        """Return the benchmark problems that share most rare words with this task, the nearest
        first."""
        scores: defaultdict[int, float] = defaultdict(float)
        for word, weight in _weigh(task, self.rarity).items():
            for number, other_weight in self.owners[word]:
                scores[number] += weight * other_weight
        # Only these are asked about: a question a pair of problems would cost too much.
        nearest = nlargest(
            NUM_NEAREST,
            scores,
            key=lambda number: scores[number],
        )
        return [self.problems[number] for number in nearest]


def index_tasks(benchmark: Iterable[Candidate], model: Endpoint) -> TaskIndex:
    """Index the benchmarks' problems by their restated tasks; asks the model once per problem."""
    # In one order, whatever the threads do: the index must be the same.
    problems = sorted(benchmark, key=lambda problem: problem.id)
    restate_one = partial(restate, model=model)
    with ThreadPoolExecutor(model.settings.concurrency) as threads:
        tasks = list(threads.map(restate_one, problems))
    rarity = _measure_rarity(tasks)
    owners: dict[str, list[tuple[int, float]]] = {}
    for number, task in enumerate(tasks):
        weights = _weigh(task, rarity)
        for word, weight in weights.items():
            owners.setdefault(word, []).append((number, weight))
    return TaskIndex(tuple(problems), rarity, owners)


def _measure_rarity(tasks: Sequence[str]) -> dict[str, float]:
    """Return how rare each word is (see `TaskIndex.rarity`)."""
    num_tasks: Counter[str] = Counter()
    for task in tasks:
        num_tasks.update(set(words(task)))
    rarity = {}
    for word, count in num_tasks.items():
        # One more, so that a word of every task still weighs something.
        rarity[word] = math.log((1 + len(tasks)) / count)
    return rarity


def _weigh(
    text: str,
    rarity: dict[str, float],
) -> dict[str, float]:
    """Return the weights (TF-IDF) of the words of a text that `rarity` knows.

    Their squares add up to 1.
    """
    weights = {}
    for word, count in Counter(words(text)).items():
        if word in rarity:
            weights[word] = rarity[word] * (1 + math.log(count))
    # Of a text without such words there is nothing to divide.
    length = math.hypot(*weights.values()) or 1.0
    return {word: weight / length for word, weight in weights.items()}


def restate(problem: Candidate, model: Endpoint) -> str:
    """Return a problem's task without its story.

    If the model does not follow the schema, return the statement itself.
    """
    prompt = f"{_RESTATE}{_shorten(problem)}\n"
    reply = model.ask_again(prompt, Restatement, seeds=_SEEDS)
    return reply.task if reply else problem.statement


def _shorten(problem: Candidate) -> str:
    return problem.statement[:_MOST_CHARACTERS]


def _list_others(
    candidate: Candidate,
    index: TaskIndex,
    model: Endpoint,
) -> list[Candidate]:
    """Return the benchmark problems to ask about: those that behave like it, then the nearest."""
    suspects = find_suspects(candidate)
    others = [problem for problem in index.problems if problem.id in suspects]
    others += index.find_nearest(restate(candidate, model))
    # A suspect may be one of the nearest.
    return list({other.id: other for other in others}.values())


def find_same_task(
    candidate: Candidate,
    index: TaskIndex,
    model: Endpoint,
) -> tuple[list[Hit], int]:
    """Return the first benchmark problem that the model calls the same.

    And how many questions it did not answer.
    """
    num_unanswered = 0
    for other in _list_others(candidate, index, model):
        first = f"First problem:\n{_shorten(other)}\n"
        second = f"Second problem:\n{_shorten(candidate)}\n"
        prompt = f"{_COMPARE}\n{first}\n{second}"
        reply = model.ask_again(prompt, Comparison, seeds=_SEEDS)
        if reply is None:
            num_unanswered += 1
        # One is enough for a rejection, so the others are not asked about.
        elif reply.is_same:
            detail = f"{model.settings.model}: {reply.reason}"
            return [
                Hit(
                    other.id,
                    "model",
                    1.0,
                    detail,
                )
            ], num_unanswered
    return [], num_unanswered
