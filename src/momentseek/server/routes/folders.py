"""Folders from which videos may be added."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from momentseek.search import Library
from momentseek.server.errors import ApiError, documented
from momentseek.server.folders import Folder, Folders, count_videos, roots_of
from momentseek.server.service import Serving

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
    complete: bool = Field(description="Whether all were counted; in a very large folder counting stops.")


class FoldersOut(BaseModel):
    """Folders."""

    folders: list[FolderOut]


class FolderDetails(FolderOut):
    """A folder, with what is above and in it."""

    parent: str | None = Field(description="The id of the folder above; null at the top.")
    folders: list[FolderOut]


@router.get("/folders", summary="Top folders")
async def folders(service: Serving) -> FoldersOut:
    """The folders the server was started with, or else those of the videos in the library."""

    def read(library: Library) -> FoldersOut:
        roots = list(service.settings.folders) or roots_of(video.path for video in library.videos())
        return FoldersOut(folders=[_out(service.folders.mint(root, root)) for root in roots if _there(root)])

    return await service.readers.run(read)


@router.get("/folders/{id}", summary="One folder", responses=documented(404))
async def folder(service: Serving, id: FolderId) -> FolderDetails:
    """The folders in a folder."""

    def read(_: Library) -> FolderDetails:
        known = service.folders
        found = folder_of(known, id)
        above = known.parent(found)
        below = [_out(one) for one in known.below(found)]
        return FolderDetails(**_out(found).model_dump(), parent=above.id if above else None, folders=below)

    return await service.readers.run(read)


def folder_of(known: Folders, id: str) -> Folder:
    """A folder by its id; 404 if none was listed under it."""
    found = known.get(id)
    if found is None:
        raise ApiError(404, "there is no such folder; ids are those that GET /api/v1/folders lists")
    return found


def _out(folder: Folder) -> FolderOut:
    videos, complete = count_videos(folder.path)
    return FolderOut(id=folder.id, name=folder.name, videos=videos, complete=complete)


def _there(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:
        return False
