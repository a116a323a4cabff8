"""Change manifests of saved results, and their digests with them."""

import hashlib
import json
from pathlib import Path
from typing import Any


def canonical(tree: dict[str, Any]) -> bytes:
    """Write JSON as it is digested."""
    text = json.dumps(tree, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return text.encode()


def edit(folder: Path, change: dict[str, Any]) -> None:
    """Change keys of the manifest in a directory, and its digest."""
    path = folder / "manifest.json"
    manifest = json.loads(path.read_text(encoding="utf-8")) | change
    covered = {key: manifest[key] for key in manifest if key not in {"scenario", "manifest_sha256"}}
    manifest["manifest_sha256"] = hashlib.sha256(canonical(covered)).hexdigest()
    path.write_text(json.dumps(manifest), encoding="utf-8")
