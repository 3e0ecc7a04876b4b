"""Keys and certificates for tests, made by the `openssl` program: an authority, and what it has signed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest


class Authority:
    def __init__(self, folder: Path) -> None:
        if shutil.which("openssl") is None:
            pytest.skip("the program openssl is not installed here")
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.certificate = folder / "authority.pem"
        self._key = folder / "authority.key"
        _openssl(
            *("req", "-x509", *_NEW_KEY, "-keyout", self._key, "-out", self.certificate),
            *("-days", "2", "-subj", "/CN=authority"),
        )

    def sign(self, name: str, *alternatives: str) -> Path:
        """A PEM file with a key and its certificate, for the names `DNS:…` and `IP:…`."""
        key, request, certificate = (self._folder / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        _openssl("req", *_NEW_KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
        extensions = self._folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName={','.join(alternatives)}\n" if alternatives else "")
        _openssl(
            *(
                "x509",
                "-req",
                "-in",
                request,
                "-CA",
                self.certificate,
                "-CAkey",
                self._key,
                "-CAcreateserial",
            ),
            *("-days", "2", "-extfile", extensions, "-out", certificate),
        )
        whole = self._folder / f"{name}.pem"
        whole.write_text(key.read_text() + certificate.read_text())
        return whole

    def locked(self, identity: Path, password: str) -> Path:
        """The same key and certificate, the key encrypted."""
        _, _, certificate = identity.read_text().partition("-----BEGIN CERTIFICATE")
        whole, locked = identity.with_suffix(".locked.pem"), identity.with_suffix(".locked.key")
        _openssl("pkey", "-in", identity, "-aes256", "-passout", f"pass:{password}", "-out", locked)
        whole.write_text(f"{locked.read_text()}-----BEGIN CERTIFICATE{certificate}")
        return whole


_NEW_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def _openssl(*arguments: str | Path) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=60)
