"""Rows of shared stores, and damage to them."""

from pathlib import Path

import obstore

import sojourn as sj
from sojourn.storage.objects import Bucket, Directory
from sojourn.storage.store import Rows, Store
from support.saved import ONE


def rows_of(store: Store, text: str = ONE) -> Rows:
    return store.rows_of(sj.Scenario.from_toml(text).checked)


def damage(store: Store, rows: Rows, name: str) -> None:
    """Replace a batch by one that differs in a byte, as no writer does."""
    objects = store._objects  # noqa: SLF001
    name = rows.prefix + name
    data = bytearray(objects.get(name) or b"")
    data[len(data) // 2] ^= 1
    if isinstance(objects, Directory):
        (Path(store.url) / name).write_bytes(data)
    elif isinstance(objects, Bucket):
        obstore.put(objects._store, name, bytes(data))  # noqa: SLF001
