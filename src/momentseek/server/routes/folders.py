"""Folders from which videos may be added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.server.errors import error_responses
from momentseek.server.folders import (
    MAX_LISTED_FOLDERS,
    ListedFolder,
    ListingBudget,
    count_videos_each,
    find_folder,
    is_folder,
    list_folder,
    root_folders,
)
from momentseek.server.service import Service, ServiceParam

router = APIRouter(tags=["adding"])
FolderId = Annotated[str, InPath(max_length=64, description="An id from a list of folders.")]


class FolderOut(BaseModel):
    """A folder with the number of its videos."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"id": "5b1c09d2c0ffee42", "name": "Holiday", "videos": 12, "complete": True}}
    )
    id: str = Field(description="Made by the server; it contains no path.")
    name: str
    videos: int = Field(description="Number of files in it and below that look like videos.")
    complete: bool = Field(description="Whether all were counted; if not, there may be more.")


class FoldersOut(BaseModel):
    """A list of folders."""

    folders: list[FolderOut]


class FolderDetailsOut(FolderOut):
    """A folder with the folders above it and in it."""

    parent: str | None = Field(description="The id of the folder above; null at the top.")
    folders: list[FolderOut]
    more: bool = Field(description="Whether it has more folders than are listed.")


@router.get("/folders", summary="Top folders")
async def folders(service: ServiceParam) -> FoldersOut:
    """The folders that the server was started with, or else those of the videos in the library."""

    def read(library: Library) -> FoldersOut:
        roots = list(service.roots) or root_folders(video.path for video in library.videos())
        listed = [service.folders.mint(root, root) for root in roots if is_folder(root)]
        return FoldersOut(folders=_count_videos(listed, _listing_budget(service)))

    return await service.listers.run(read)


@router.get("/folders/{id}", summary="One folder", responses=error_responses(404))
async def folder(service: ServiceParam, id: FolderId) -> FolderDetailsOut:
    """The folders in a folder."""

    def read(_: Library) -> FolderDetailsOut:
        budget = _listing_budget(service)
        found = find_folder(service.folders, id)
        above = service.folders.parent(found)
        here = list_folder(found.path, budget)
        below = _count_videos(
            service.folders.below(found, here.folders[:MAX_LISTED_FOLDERS]), budget.less(here.examined)
        )
        whole = here.complete and len(here.folders) <= MAX_LISTED_FOLDERS
        return FolderDetailsOut(
            id=found.id,
            name=found.name,
            videos=here.videos + sum(one.videos for one in below),
            complete=whole and all(one.complete for one in below),
            parent=above.id if above else None,
            folders=below,
            more=not whole,
        )

    return await service.listers.run(read)


def _listing_budget(service: Service) -> ListingBudget:
    return ListingBudget.of(service.settings.limits.listing_entries, service.settings.limits.listing_seconds)


def _count_videos(folders: Sequence[ListedFolder], budget: ListingBudget) -> list[FolderOut]:
    counts = count_videos_each([one.path for one in folders], budget)
    return [
        FolderOut(id=one.id, name=one.name, videos=many.videos, complete=many.complete)
        for one, many in zip(folders, counts, strict=True)
    ]
