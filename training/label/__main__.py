"""``python -m training.label`` is ``interlock label``."""

import typer

from interlock.commands.label import label

if __name__ == "__main__":
    typer.run(label)
