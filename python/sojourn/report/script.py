"""The script of a page, and the policy that permits no other script.

A page contains the script itself. Its Content-Security-Policy has the SHA-256 of the script, so
that a browser runs neither a modified script nor one that a name in a scenario smuggles in
(Content Security Policy Level 3, section 2.3.1; W3C).
"""

import base64
import hashlib
from importlib import resources


def sorting() -> str:
    """Return the script that makes the tables of class ``sortable`` sortable."""
    return resources.files("sojourn.report").joinpath("sorting.js").read_text(encoding="utf-8")


def element(script: str) -> str:
    """Write the element of a script."""
    return f"<script>{script}</script>"


def security(script: str) -> str:
    """Write the Content-Security-Policy of a page that runs only this script.

    Examples
    --------
    >>> security("")
    "default-src 'none'; style-src 'unsafe-inline'"
    """
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    if not script:
        return policy
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"{policy}; script-src 'sha256-{digest}'"
