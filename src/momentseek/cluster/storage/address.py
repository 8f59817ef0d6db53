"""Addresses of remote files, and their file systems."""

from __future__ import annotations

import os
import re
from datetime import timedelta
from typing import Any

from momentseek.core.errors import LibraryError, MomentseekError, optional_module
from momentseek.library.location import split_address

OBJECT_STORES = ("s3", "gs", "az")
"""Schemes that obstore opens; fsspec opens all others."""
CREDENTIALS = {
    "s3": "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS (the path of a service account's file)",
    "az": "AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY",
}
"""Scheme of an address → environment variables with the credentials."""


CONNECT_SECONDS, READ_SECONDS, SEND_SECONDS = 2, 4, 30
"""Time limits in seconds: to connect, to receive the next bytes, and to get an upload confirmed."""
RETRIES = 2
RETRY_SECONDS = 5
"""A request that has taken this many seconds is not repeated, so a store that hangs costs about 8 seconds."""
ANSWER_SECONDS = 15
"""Time limit in seconds for the whole answer to a small request: a shard's state, or a list of objects."""
REQUEST_SECONDS = 24 * 3600
"""Time limit in seconds to fetch or send a file; files are large, so a transfer normally ends only by silence."""


class StoreUnreachableError(LibraryError):
    """The storage does not answer at the moment."""


def store_options(scheme: str, *, sending: bool = False, small: bool = False) -> dict[str, Any]:
    """Deadlines and retries of an object store's client, for obstore: to fetch files, to send, or for small answers."""
    read = SEND_SECONDS if sending else READ_SECONDS
    client: dict[str, Any] = {
        "connect_timeout": timedelta(seconds=CONNECT_SECONDS),
        "read_timeout": timedelta(seconds=read),
        "timeout": timedelta(seconds=ANSWER_SECONDS if small else REQUEST_SECONDS),
    }
    if scheme == "s3" and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://"):
        client["allow_http"] = True
    retry = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)}
    return {"retry_config": retry, "client_options": client}


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
    return optional_module("obstore.fsspec", "cluster").FsspecStore(scheme, **store_options(scheme))


def explain(address: str, e: Exception) -> MomentseekError:
    """Describe an error of a file system in one sentence."""
    text = " ".join(str(e).split())
    low = text.lower()
    if "nosuchbucket" in low or "no such bucket" in low:
        return MomentseekError(f"{address}: the bucket does not exist; check its name, or create it")
    if "169.254." in text:  # obstore then asks the cloud's metadata server
        return _no_credentials(address)
    if isinstance(e, PermissionError) or re.search(r"\b(401|403)\b|accessdenied|forbidden", low):
        return MomentseekError(
            f"{address}: may not be read or written with these credentials; check the bucket's rights"
        )
    if isinstance(e, FileNotFoundError) or re.search(r"\b404\b|not found", low):
        return MomentseekError(f"{address}: does not exist; check the bucket and the path")
    if "credential" in low or "account must be specified" in low:
        return _no_credentials(address)
    return StoreUnreachableError(f"{address}: cannot be reached ({text[:160]}); check the network and the address")


def _no_credentials(address: str) -> MomentseekError:
    scheme = address.partition("://")[0]
    return MomentseekError(f"{address}: no credentials were found; set {CREDENTIALS.get(scheme, CREDENTIALS['s3'])}")
