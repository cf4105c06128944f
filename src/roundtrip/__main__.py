"""`python -m roundtrip` is the command line."""

from roundtrip.cli import main

main()
