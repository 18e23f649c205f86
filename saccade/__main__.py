"""`python -m saccade`: the command line, for whoever has no `saccade` on the path."""

from saccade.cli import main

if __name__ == "__main__":
    main()
