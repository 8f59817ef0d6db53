"""COCO's caption files, which have no videos or times: annotations (several captions per image) and results (one)."""

from __future__ import annotations

from typing import Any

from momentseek.core.errors import MomentseekError
from momentseek.core.moments.captions import CaptionTable
from momentseek.measuring.formats import checked, writers
from momentseek.measuring.formats.document import Document
from momentseek.measuring.formats.registry import Reading, Writing, register


def claims_annotations(document: Document) -> bool:
    """Whether a file is one object with a list of annotations that caption images."""
    if not document.is_json or not checked.has_keys(document.outline, "annotations"):
        return False
    annotations, images = document.outline["annotations"], document.outline.get("images", [])
    if not (isinstance(images, list) and isinstance(annotations, list) and annotations):
        return False
    return checked.has_keys(annotations[0], "image_id", "caption") and (not images or checked.has_keys(images[0], "id"))


def read_annotations(document: Document, reading: Reading) -> CaptionTable:
    """Read the captions of each image, in the order of ``images``; images without captions are kept."""
    content = checked.mapping(document)
    annotations = _objects(content, "annotations", document)
    listed = checked.ids(_objects(content, "images", document), "id", document) if "images" in content else []
    found: dict[str, list[str]] = {str(image): [] for image in listed}
    if len(found) < len(listed):
        raise MomentseekError(f"{document.path}: an image is listed more than once; keep one of them")
    texts = checked.strings(annotations, "caption", document)
    for image, text in zip(checked.ids(annotations, "image_id", document), texts, strict=True):
        if listed and str(image) not in found:
            raise MomentseekError(f"{document.path}: image {image} has a caption, but is not among its images")
        found.setdefault(str(image), []).append(text)
    return CaptionTable.from_groups(list(found), list(found.values()), source=str(document.path))


def _objects(content: dict[str, Any], key: str, document: Document) -> list[dict[str, Any]]:
    value = content.get(key)
    if not isinstance(value, list) or set(map(type, value)) - {dict}:
        checked.wrong(document, key, value, "a list of objects")
    return value


def write_annotations(table: CaptionTable, _: Writing) -> bytes:
    """Write annotations with all parts that COCO's own tools expect."""
    images = [writers.write_id(name) for name in table.query_ids]
    owners = [image for image, some in zip(images, table.groups(), strict=True) for _ in some]
    annotations = [
        {"image_id": image, "id": number, "caption": text}
        for number, (image, text) in enumerate(zip(owners, table.captions, strict=True))
    ]
    if not annotations:
        raise MomentseekError(f"{table.source}: there are no captions in it to write")
    content = {"info": {}, "licenses": [], "type": "captions", "images": [{"id": i} for i in images]}
    return writers.dump({**content, "annotations": annotations})


def read_results(document: Document, reading: Reading) -> CaptionTable:
    """Read one caption per image."""
    entries = checked.records(document)
    texts = checked.strings(entries, "caption", document)
    return CaptionTable.from_groups(
        checked.ids(entries, "image_id", document), [[text] for text in texts], source=str(document.path)
    )


def write_results(table: CaptionTable, _: Writing) -> bytes:
    """Write one caption per image; another number raises an error, because COCO's results have exactly one."""
    for name, some in zip(table.query_ids, table.groups(), strict=True):
        if len(some) != 1:
            raise MomentseekError(
                f"coco-results has exactly one caption per image, but {table.source} has {len(some) or 'none'} for "
                f"{name}; write coco-captions instead"
            )
    pairs = zip(table.query_ids, table.captions, strict=True)
    return writers.dump([{"image_id": writers.write_id(name), "caption": text} for name, text in pairs])


register("coco-captions", claims_annotations, read_annotations, write_annotations)
register("coco-results", None, read_results, write_results)
