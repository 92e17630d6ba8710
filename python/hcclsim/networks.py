"""The networks that come with hcclsim: their layers, parameters, gradients and kernels."""

from __future__ import annotations

from typing import cast

from . import options, records
from .experiments import call_with


def listing() -> records.Records[records.Record]:
    """A record per network: name, parameters, gradients."""
    return cast("records.Records[records.Record]", cast(records.Record, call_with(("models", "list"), [], {}))["models"])


@options.of_command("models", "show")
def show(name: str, **keywords: object) -> records.Record:
    """A network: layers; gradients=True its gradients in production order; kernels=True its kernels as launched."""
    return cast(records.Record, call_with(("models", "show"), [name], keywords))
