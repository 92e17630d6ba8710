"""The networks that come with hcclsim: their layers, parameters, gradients and kernels."""

from __future__ import annotations

from typing import cast

from . import options, records, reports
from .experiments import call_with


def listing() -> records.Records[reports.KnownNetwork]:
    """A record per network: name, title, note."""
    return cast(reports.Listing, call_with(("models", "list"), [], {}, reports.Listing)).models


@options.of_command("models", "show")
def show(name: str, **keywords: object) -> reports.Network:
    """A network: layers; gradients=True its gradients in production order; kernels=True its kernels as launched."""
    return cast(reports.Network, call_with(("models", "show"), [name], keywords, reports.Network))
