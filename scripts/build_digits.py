"""Builds the example's data set: scikit-learn's copy of the UCI digits, as one image file per sample in one archive.

The source is `sklearn/datasets/data/digits.csv.gz` of any recent scikit-learn wheel. The bytes written depend on the
source alone (members sorted, every time stamp zero), so the checksum in DATA.md can be checked by anyone.

    pip download --no-deps scikit-learn && unzip -j scikit_learn-*.whl sklearn/datasets/data/digits.csv.gz
    python scripts/build_digits.py digits.csv.gz statemachines/examples/digits/digits.tar.gz
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path

SOURCE_SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
SIDE_PIXELS = 8
GREY_MAX = 16


def samples(csv: str) -> Iterator[tuple[str, bytes]]:
    """Yield each line of 64 grey values and a label as its path `<label>/<line number>.pgm` and its image."""
    for number, line in enumerate(csv.splitlines()):
        *pixels, label = (int(float(cell)) for cell in line.split(","))
        yield f"{label}/{number:05d}.pgm", pgm(bytes(pixels))


def pgm(pixels: bytes) -> bytes:
    """Return a binary portable grey map (netpbm format P5) of 8 x 8 pixels from 0 to 16."""
    if len(pixels) != SIDE_PIXELS**2 or max(pixels) > GREY_MAX:
        raise ValueError(f"a sample has {len(pixels)} pixels up to {max(pixels)}; expected 64 of 0 to {GREY_MAX}")
    return f"P5\n{SIDE_PIXELS} {SIDE_PIXELS}\n{GREY_MAX}\n".encode() + pixels


def archive(images: Iterator[tuple[str, bytes]]) -> bytes:
    """Return a .tar.gz of the images whose bytes depend on nothing but them."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=0) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as tar,
    ):
        for path, image in sorted(images):
            member = tarfile.TarInfo(path)
            member.size = len(image)
            tar.addfile(member, io.BytesIO(image))
    return packed.getvalue()


def main() -> int:
    """Build the archive and print its checksum; refuse a source that is not the one in DATA.md."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("source", type=Path, help="digits.csv.gz of scikit-learn")
    parser.add_argument("target", type=Path, help="the archive to write")
    given = parser.parse_args()
    source = given.source.read_bytes()
    if hashlib.sha256(source).hexdigest() != SOURCE_SHA256:
        print(f"{given.source} is not the file that DATA.md names (SHA-256 {SOURCE_SHA256})", file=sys.stderr)
        return 1
    packed = archive(samples(gzip.decompress(source).decode("ascii")))
    given.target.write_bytes(packed)
    print(f"{hashlib.sha256(packed).hexdigest()}  {given.target.name}  {len(packed)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
