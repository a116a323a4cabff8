"""What the results of all searches share: a manifest, tables, and how they are saved."""

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import polars as pl

from sojourn.scenario import Scenario
from sojourn.storage.saved import MAX_BYTES, Columns, Layout, Saved, scenario_text

# Keys of the manifests of all searches, and their types.
_FIELDS: dict[str, Any] = {
    "parameters": dict[str, Any],
    "paths": list[str],
    "replications": int,
    "seed": int,
}


class SearchResult:
    """The result of a search, which can be saved and loaded.

    Parameters
    ----------
    manifest
        Scenario, parameters, seeds and version.
    tables
        The tables by name.
    """

    # The name of the search: its manifest is `<kind>.json`.
    _KIND: ClassVar[str]
    # The tables, `<name>.parquet`, and the other files.
    _TABLES: ClassVar[tuple[str, ...]]
    _TEXTS: ClassVar[tuple[str, ...]] = ()
    # Keys of the manifest that identify a search.
    _IDENTITY: ClassVar[tuple[str, ...]]
    # Keys that only the manifest of this search has, and their types.
    _FIELDS: ClassVar[Mapping[str, Any]]

    def __init__(self, manifest: dict[str, Any], **tables: pl.DataFrame) -> None:
        self.manifest = manifest
        self._tables = tables

    @cached_property
    def scenario(self) -> Scenario:
        """The scenario of the search, without arms."""
        return Scenario.from_json(scenario_text(self.manifest))

    @classmethod
    def check(cls, directory: str | Path, manifest: Mapping[str, Any], *, force: bool) -> None:
        """Check, before a search, that its result can be saved.

        Parameters
        ----------
        directory
            The directory; it need not exist.
        manifest
            The manifest of the search.
        force
            Whether another result in the directory may be replaced.

        Raises
        ------
        ResultError
            The directory cannot be written, or contains other files or another result.
        """
        cls._layout().check(directory, manifest, force=force)

    def save(self, directory: str | Path, *, force: bool = False) -> None:
        """Write the result: a manifest, a Parquet file per frame, and the scenario that was found.

        The manifest is ``tune.json``, ``sensitivity.json`` or ``adversary.json``, and the scenario
        ``best.toml`` or ``worst.toml``.

        Parameters
        ----------
        directory
            The directory, created if needed.
        force
            Whether another result in the directory may be replaced.

        Raises
        ------
        ResultError
            The directory cannot be written, or contains other files or another result.
        """
        self._layout().save(directory, self.manifest, self._tables, self._texts(), force=force)

    @classmethod
    def load(cls, directory: str | Path, *, max_bytes: int = MAX_BYTES) -> Self:
        """Read a result that :meth:`save` wrote.

        Parameters
        ----------
        directory
            The directory.
        max_bytes
            Maximum memory of the tables in bytes.

        Returns
        -------
        result
            The result.

        Raises
        ------
        ResultError
            The directory contains no result of this search, or a damaged one, or its tables take
            more memory.
        """
        return cls._loaded(cls._layout().load(directory, max_bytes=max_bytes), Path(directory))

    @classmethod
    def _layout(cls) -> Layout:
        return Layout(
            kind=f"result of {cls._KIND}",
            manifest=f"{cls._KIND}.json",
            identity=cls._IDENTITY,
            fields={**_FIELDS, **cls._FIELDS},
            tables=cls._TABLES,
            columns=cls._columns,
            is_consistent=cls._is_consistent,
            texts=cls._TEXTS,
        )

    @classmethod
    def _columns(cls, manifest: dict[str, Any]) -> Mapping[str, Columns]:
        """Return the columns of the tables."""
        raise NotImplementedError

    @classmethod
    def _is_consistent(cls, _manifest: dict[str, Any]) -> bool:
        """Whether the values of a manifest agree with each other."""
        return True

    @classmethod
    def _loaded(cls, saved: Saved, _directory: Path) -> Self:
        return cls(saved.manifest, **saved.tables)

    def _texts(self) -> dict[str, str | None]:
        """Return the other files by name; None if the result has no such file."""
        return {}
