"""Which pictures a statement cannot do without."""

import pytest

from microcoder.data.clean.flags import find_flags
from microcoder.data.filter.rules import check_quality
from microcoder.data.formats.candidates import Candidate

NEEDED = (
    "The token moves along the lines of the picture.",
    "The digits look like\nthe ones in the picture.\n\n![](segments.png)",
    "The mapping of digits to letters is shown in the figure below.",
    "Seats are labelled from 1 to 10 as shown in the figure above.",
    "The piece moves as indicated in the chess diagram below.\n\n<image>",
    "Consider the following algorithm to find the largest item:\n\n![](https://a.org/e.png)\n\nGo.",
    "The value of a word is defined as follows:\n\n<image>\n\nFind the largest.",
    "![](https://a.org/keys.png)\n\nYou have a keyboard as shown above.",
    "The cities are connected as in the following figure.",
    "Compute the area of the shaded region.\n\n![](region.png)",
    "The network is as follows.\n\n![](net.png)\n\nPrint the flow.",
    "See the image for the layout of the keyboard.\n\n![](keys.png)",
    "Pieces can be placed only in the following ways.\n\n![](ways.png)",
    "The points are those in the table below.\n\n![](table.png)",
    "The seven pieces have the shapes shown in Figure 1.\n\n![](pieces.png)",
    "The picture shows how the buttons are arranged.\n\n![](buttons.png)",
    "It looks like this: <image> where the numbers are the weights of the roads.",
    "One row of a keyboard like the image below.\n\nRules:\n\n- no digits\n- no signs",
    "The keyboard has rows as shown in the picture.\n\nThe keyboard:\n\n![](keys.png)\n\nGo.",
    "Moves are shown here:\nA knight moves as indicated in the diagram below:\n\nGo.\n\nOn.",
    "A station is shown in the figure below.",
)
"""Statements that leave something to a picture."""
DECORATED = (
    "![image](queue.jpg)\n\nOliver is a manager of a bank.",
    "Find the value of <image> for <image>.",
    "Here is an example of a tree:\n\n<image>\n\nFind its height.",
    "The curve is symmetric (see figure).\n\n![](curve.png)\n\n*Illustration of sample 1.*",
    "The figure below illustrates all eight possible moves.\n\n![](moves.png)",
    "Some valid and invalid cuts are shown in the figures below.",
    "## Example\n\nLet there be 5 cities, as in the figure below:\n\n![](sample.png)",
    "Compress the image of n by m pixels as in the following image format.",
    "![](logo.png)\n\nPrint the following numbers, as shown below.",
    "He draws a picture of all the cities.",
    "The output is as follows:\n\n![](screen.png)",
    "One such chart is in the following figure, for instance.",
    "The robot turns left (Figure 1).\n\n![](left.png)\n\nFigure 1: The robot in the sample.",
    "Find the area.\n\n![](sample.pdf)\n\n*Illustration of sample 1. It is the area of the shaded"
    "\nregion.*",
    "Pair up the players.\n\n![](2.png)\n\n*The diagram shows how 4 players are paired.*",
    "One row of a keyboard like the image below.\n\nIn the **keyboard**:\n\n- `qwe`\n- `as`",
    "The mapping of digits to letters is shown in the figure.\nThe mapping is:\n2 abc\n3 def\n",
    "A regular pentagon P is shown in the figure below.",
)
"""Statements that are whole without their pictures."""


def candidate(text: str) -> Candidate:
    rest = "\n\nYou are given n numbers. Find the largest sum of some of them, and print it."
    return Candidate(id="a", dataset="d", statement=f"{text}{rest}")


@pytest.mark.parametrize("text", NEEDED)
def test_a_picture_that_carries_meaning_is_needed(text: str) -> None:
    row = candidate(text)
    flagged = row.model_copy(update={"flags": find_flags(row)})
    found = check_quality(flagged)
    assert found is not None
    assert found[0] == "needs_image"


@pytest.mark.parametrize("text", DECORATED)
def test_other_pictures_are_not(text: str) -> None:
    assert "needs_image" not in find_flags(candidate(text))
