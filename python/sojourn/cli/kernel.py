"""``sojourn kernel``: build the kernels in which ``--on linux-6.12`` runs."""

from typing import Annotated

import typer

from sojourn.arguments import Argument
from sojourn.cli.commands import Command, Group
from sojourn.cli.plans import command
from sojourn.cli.process import say
from sojourn.host import kernels
from sojourn.presentation.model import text_table
from sojourn.presentation.terminal import print_table

HEAD = ("place", "kernel", "deterministic", "modules", "directory")

kernel = typer.Typer(
    name="kernel",
    cls=Group,
    help="Build Linux kernels that run scenarios in virtual time.",
    no_args_is_help=True,
)


@kernel.command("build", cls=Command)
@command()
def build(
    *,
    source: Annotated[
        str,
        Argument(
            help="6.1 or 6.12, whose source Debian has; or a directory or .tar file with the "
            "source of a kernel. Source in a directory is not patched.",
            option="SOURCE",
        ),
    ] = "6.12",
    keep_source: Annotated[
        bool, Argument(help="Keep the source and the object files, to build modules.")
    ] = False,
    again: Annotated[bool, Argument(help="Build the kernel even if it exists.")] = False,
) -> int:
    """Build a User-Mode Linux, for runs with the queues and the TCP of the Linux kernel.

    The build takes about 5 minutes, and 2 GB of disk space until it ends. The kernel is saved in
    $SOJOURN_KERNELS, by default in sojourn/kernels in the user's cache directory. The source is
    downloaded as a Debian package. Nothing is installed, and root is not needed.
    """
    folder = kernels.default_folder()
    known = {one.version: one for one in kernels.built(folder)}
    if source in known and not again:
        print(f"linux-{source} exists in {known[source].folder}; --again builds it again")
        return 0
    done = kernels.build(source, folder, keep=keep_source, say=say)
    print(f"built Linux {done.release}; to use it: sojourn run FILE --on linux-{done.version}")
    return 0


@kernel.command("ls", cls=Command)
@command()
def list_() -> int:
    """List the kernels that have been built."""
    folder = kernels.default_folder()
    rows = [
        [
            f"linux-{one.version}",
            one.release,
            *("yes" if has else "no" for has in (one.seeded, one.modules)),
            str(one.folder),
        ]
        for one in kernels.built(folder)
    ]
    if rows:
        print_table(text_table(HEAD, rows, f"kernels in {folder}"))
    else:
        print(f"no kernel in {folder}; to build one: sojourn kernel build 6.12")
    return 0
