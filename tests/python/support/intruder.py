"""Try to execute code in a scheduler or worker of Dask, without its key.

Run as a program of its own, with the number of a user and ports. Prints one line per port and
protocol.
"""

import asyncio
import os
import sys
from typing import Any

import cloudpickle
from distributed import Security
from distributed.core import rpc


def _uid() -> int:
    return os.getuid()


async def _attack(address: str, arguments: dict[str, Any]) -> str:
    remote = rpc(address, connection_args=arguments)
    try:
        reply = await asyncio.wait_for(
            remote.run_function(
                function=cloudpickle.dumps(_uid), args=cloudpickle.dumps(()), kwargs=b""
            )
            if await asyncio.wait_for(remote.identity(), 1)
            else None,
            3,
        )
    except Exception as error:  # noqa: BLE001 - any is a refusal
        return f"refused: {type(error).__name__}"
    else:
        return f"answered: {reply}"
    finally:
        await remote.close_rpc()


def main() -> None:
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    own = Security.temporary().get_connection_args("client")
    # Nobody listens there: this imports what that user may not be able to read.
    asyncio.run(_attack("tcp://127.0.0.1:1", {}))
    if (user := int(sys.argv[1])) != os.getuid():
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
    print("user", os.getuid())
    for port in sys.argv[2:]:
        for scheme, arguments in (("tcp", {}), ("tls", own)):
            said = asyncio.run(_attack(f"{scheme}://127.0.0.1:{port}", arguments))
            print(scheme, port, said, flush=True)
        said = asyncio.run(_http(port))
        print("http", port, said, flush=True)


async def _http(port: str) -> str:
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(100), 1)
    except (OSError, TimeoutError) as error:
        return f"refused: {type(error).__name__}"
    return f"answered: {answer!r}" if answer.startswith(b"HTTP") else "refused: not HTTP"


if __name__ == "__main__":
    main()
