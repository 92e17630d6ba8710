"""The networks that come with hcclsim: their layers, parameters, gradients and kernels."""

from __future__ import annotations

from typing import Any

from . import options, records
from .experiments import call_with, result_of


def listing() -> records.Records:
    """A record per network: name, parameters, gradients."""
    return result_of(call_with(("models", "list"), [], {}), records.Remarked, "models list")


@options.of_command("models", "show")
def show(name: str, **keywords: Any) -> Any:
    """A network: layers; gradients=True its gradients in production order; kernels=True its kernels as launched."""
    return result_of(call_with(("models", "show"), [name], keywords), records.Remarked, "models show")
