"""Opening the objects below an address, by what its scheme needs."""

from __future__ import annotations

from momentseek.storage.address import OBJECT_STORES, split_address
from momentseek.storage.objects import ObjectStore


def open_objects(address: str) -> ObjectStore:
    """The objects below an address; credentials come from the environment (``AWS_…``)."""
    scheme, _ = split_address(address)
    if scheme in OBJECT_STORES:
        from momentseek.storage.cloud_objects import CloudObjects

        return CloudObjects(address)
    from momentseek.storage.plain_objects import PlainObjects

    return PlainObjects(address)
