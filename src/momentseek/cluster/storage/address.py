"""Addresses of files elsewhere, and the file systems behind them."""

from __future__ import annotations

import os
from typing import Any

from momentseek.core.errors import MomentseekError, optional_module
from momentseek.library.location import split_address

OBJECT_STORES = ("s3", "gs", "az")
"""Opened by obstore; anything else by what fsspec itself knows."""
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS (the path of a service account's file)",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""What in the environment says who one is, by the scheme of an address."""


class UnreachableError(MomentseekError):
    """Storage that does not answer now; elsewhere, or later, it may."""


def open_file_system(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it; credentials come from the environment (AWS_…).

    ``AWS_ENDPOINT_URL`` names another server that speaks S3.
    """
    fsspec = optional_module("fsspec", "cluster")
    scheme, path = split_address(address)
    if scheme in OBJECT_STORES:
        return _open_object_store(scheme), path
    try:
        return fsspec.filesystem(scheme), path
    except (ValueError, ImportError, OSError) as e:  # OSError: hdfs:// without its library
        why = str(e).partition("\n")[0]
        raise MomentseekError(f"{address}: {scheme}:// cannot be opened here ({why}); use s3:// or a folder") from None


def _open_object_store(scheme: str) -> Any:
    store = optional_module("obstore.fsspec", "cluster")
    endpoint = os.environ.get("AWS_ENDPOINT_URL", "")
    options: dict[str, Any] = {"retry_config": {"max_retries": 2}}
    if scheme == "s3" and endpoint.startswith("http://"):
        options["client_options"] = {"allow_http": True}
    return store.FsspecStore(scheme, **options)


def explain(address: str, e: Exception) -> MomentseekError:
    """An error of a file system as one sentence."""
    text = " ".join(str(e).split())
    low = text.lower()
    if "169.254." in text:  # where a machine of a cloud would ask for some
        return _no_credentials(address)
    if isinstance(e, PermissionError) or "403" in text or "accessdenied" in low or "forbidden" in low or "401" in text:
        return MomentseekError(
            f"{address}: may not be read or written with these credentials; check the bucket's rights"
        )
    if isinstance(e, FileNotFoundError) or "404" in text or "not found" in low or "nosuchbucket" in low:
        return MomentseekError(f"{address}: is not there; check the bucket and the path")
    if "credential" in low or "account must be specified" in low:
        return _no_credentials(address)
    return UnreachableError(f"{address}: cannot be reached ({text[:160]}); check the network and the address")


def _no_credentials(address: str) -> MomentseekError:
    scheme = address.partition("://")[0]
    return MomentseekError(f"{address}: no credentials were found; set {CREDENTIALS.get(scheme, CREDENTIALS['s3'])}")
