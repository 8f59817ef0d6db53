"""Folders from which videos may be added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from momentseek.api import Library
from momentseek.server.errors import documented
from momentseek.server.folders import MOST_LISTED, Budget, Folder, count_each, folder_of, is_folder, look, roots_of
from momentseek.server.service import Service, Serving

router = APIRouter(tags=["adding"])
FolderId = Annotated[str, InPath(max_length=64, description="An id from a list of folders.")]


class FolderOut(BaseModel):
    """A folder."""

    model_config = ConfigDict(
        json_schema_extra={"example": {"id": "5b1c09d2c0ffee42", "name": "Holiday", "videos": 12, "complete": True}}
    )
    id: str = Field(description="Made by the server; nothing can be read from it.")
    name: str
    videos: int = Field(description="Files in it and below that look like videos.")
    complete: bool = Field(description="Whether all were counted; if not, there are more than so many.")


class FoldersOut(BaseModel):
    """Folders."""

    folders: list[FolderOut]


class FolderDetails(FolderOut):
    """A folder, with what is above and in it."""

    parent: str | None = Field(description="The id of the folder above; null at the top.")
    folders: list[FolderOut]
    more: bool = Field(description="Whether it has folders that are not listed, because there are so many.")


@router.get("/folders", summary="Top folders")
async def folders(service: Serving) -> FoldersOut:
    """The folders the server was started with, or else those of the videos in the library."""

    def read(library: Library) -> FoldersOut:
        roots = list(service.settings.folders) or roots_of(video.path for video in library.videos())
        listed = [service.folders.mint(root, root) for root in roots if is_folder(root)]
        return FoldersOut(folders=_counted(listed, _budget(service)))

    return await service.listers.run(read)


@router.get("/folders/{id}", summary="One folder", responses=documented(404))
async def folder(service: Serving, id: FolderId) -> FolderDetails:
    """The folders in a folder."""

    def read(_: Library) -> FolderDetails:
        budget = _budget(service)
        found = folder_of(service.folders, id)
        above = service.folders.parent(found)
        here = look(found.path, budget)
        below = _counted(service.folders.below(found, here.folders[:MOST_LISTED]), budget.less(here.looked))
        whole = here.complete and len(here.folders) <= MOST_LISTED
        return FolderDetails(
            id=found.id,
            name=found.name,
            videos=here.videos + sum(one.videos for one in below),
            complete=whole and all(one.complete for one in below),
            parent=above.id if above else None,
            folders=below,
            more=not whole,
        )

    return await service.listers.run(read)


def _budget(service: Service) -> Budget:
    return Budget.of(service.settings.limits.listing_entries, service.settings.limits.listing_seconds)


def _counted(folders: Sequence[Folder], budget: Budget) -> list[FolderOut]:
    counts = count_each([one.path for one in folders], budget)
    return [
        FolderOut(id=one.id, name=one.name, videos=many.videos, complete=many.complete)
        for one, many in zip(folders, counts, strict=True)
    ]
