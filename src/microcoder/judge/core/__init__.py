"""What every package uses: the types of the loop, and the files, recipes and errors around them.

Nothing here runs a program. Read `types.py` first, which has one type per hand-over of the
pipeline, and then along that way:

- `prompts`: problem -> prompt;
- `extract`: response -> program, with `answers` (where an answer begins and ends), `fences` (its
  blocks), `sketches` (what a block can be), `endings` (marks of the end);
- `signatures`: starter code -> how its function is called;
- `rewards`: verdict -> reward; `suspicions`: signs that the input is wrong;
- `config`, `extensions`: recipes, and the functions that they name;
- `records`, `files`, `digits`, `syntax`: reading and writing;
- `errors`, `machine`: the error tree, and the machine that this runs on.
"""
