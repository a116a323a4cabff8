"""Empty stores, in a folder and in a bucket."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from sojourn.storage.store import Store
from support import buckets
from support.buckets import Server


@pytest.fixture(scope="module")
def _server() -> Iterator[Server]:
    with buckets.server() as started:
        yield started


@pytest.fixture
def server(_server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server that the command finds by its environment."""
    for name, value in _server.environment.items():
        monkeypatch.setenv(name, value)
    yield _server
    _server.fault = None


@pytest.fixture(params=["folder", "bucket"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    """An empty store."""
    if request.param == "folder":
        return Store.at(f"{tmp_path / 'shared'}")
    request.getfixturevalue("server")
    return Store.at(f"s3://{buckets.BUCKET}/{tmp_path.name}/runs of us")
