"""Addresses of the schedulers of clusters in ``--on``."""

import re

from sojourn import _core

SCHEME = "dask"
_MAX_PORT = 65_535
_ADDRESS = re.compile(r"dask://([^/\s:]+|\[[0-9a-fA-F:]+\]):(\d{1,5})/?")


def address(text: str) -> str | None:
    """Read the address of the scheduler from the value of ``--on``.

    Examples
    --------
    >>> address("dask"), address("dask://head:8786")
    (None, 'tcp://head:8786')
    """
    if text == SCHEME:
        return None
    found = _ADDRESS.fullmatch(text)
    if found is None or not 0 < int(found[2]) <= _MAX_PORT:
        message = f"--on: {text}; expected dask or dask://HOST:PORT, such as dask://head:8786"
        raise _core.ScenarioError(message)
    return f"tcp://{found[1]}:{found[2]}"
