"""A bulk transfer over aioquic (pip install aioquic), for aioquic.toml.

``serve ADDRESS`` listens; ``send ADDRESS BYTES ALGORITHM`` sends and waits until all has arrived.
"""

from __future__ import annotations

import asyncio
import datetime
import ssl
import sys
from typing import Any

from aioquic.asyncio import connect, serve  # type: ignore[import-not-found]
from aioquic.quic.configuration import QuicConfiguration  # type: ignore[import-not-found]
from cryptography import x509  # type: ignore[import-not-found]
from cryptography.hazmat.primitives import hashes  # type: ignore[import-not-found]
from cryptography.hazmat.primitives.asymmetric import ec  # type: ignore[import-not-found]

PORT = 4433


def certified(configuration: Any) -> Any:
    """The configuration of a server with a certificate that it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "transfer")])
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name)
    builder = builder.public_key(key.public_key()).serial_number(1)
    builder = builder.not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
    configuration.certificate = builder.sign(key, hashes.SHA256())
    configuration.private_key = key
    return configuration


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Reads a stream to its end, and says so."""
    while await reader.read(1 << 16):
        pass
    writer.write(b"done")
    writer.write_eof()


async def listen(address: str) -> None:
    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.append(asyncio.ensure_future(answer(reader, writer)))

    tasks: list[asyncio.Future[None]] = []
    configuration = certified(QuicConfiguration(is_client=False, alpn_protocols=["transfer"]))
    await serve(address, PORT, configuration=configuration, stream_handler=accept)
    await asyncio.Event().wait()


async def send(address: str, size: int, algorithm: str) -> None:
    configuration = QuicConfiguration(
        alpn_protocols=["transfer"],
        verify_mode=ssl.CERT_NONE,
        congestion_control_algorithm=algorithm,
    )
    async with connect(address, PORT, configuration=configuration) as connection:
        reader, writer = await connection.create_stream()
        writer.write(bytes(size))
        writer.write_eof()
        await reader.read()


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        asyncio.run(listen(sys.argv[2]))
    else:
        asyncio.run(send(sys.argv[2], int(sys.argv[3]), sys.argv[4]))
