"""The app that `cdk` runs: one stack for each region."""

from __future__ import annotations

from aws_cdk import App

from infra.options import read_options
from infra.stack import HeadraceStack


def build(app: App) -> list[HeadraceStack]:
    """Add the stacks that the app's context asks for. Raises BadOption."""
    options = read_options(app.node)
    return [HeadraceStack(app, f"{options.stack}-{one.name}", options, one) for one in options.regions]


if __name__ == "__main__":
    the_app = App()
    build(the_app)
    the_app.synth()
