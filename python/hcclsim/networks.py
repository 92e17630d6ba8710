"""The networks that come with hcclsim: their layers, parameters, gradients and kernels."""

from __future__ import annotations

from typing import Any

from . import options, records
from .experiments import call_with


def listing() -> records.Records:
    """A record per network: name, parameters, gradients."""
    return call_with(("models", "list"), [], {}).models


@options.of_command("models", "show")
def show(name: str, **keywords: Any) -> Any:
    """A network: layers; gradients=True its gradients in production order; kernels=True its kernels as launched."""
    return call_with(("models", "show"), [name], keywords)
