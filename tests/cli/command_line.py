"""The command line, called in this process."""

from typer.testing import CliRunner

from roundtrip.cli import app


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    result = run(*arguments)
    assert result.exit_code == 0, result.stderr
    return result
