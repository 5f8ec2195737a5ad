"""What the load client says of itself is a row of the calibration table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from r8.lab.instruments.clients import CLIENT_HOST, calibrate_client
from r8.schema import CALIBRATION

if TYPE_CHECKING:
    from pathlib import Path


def test_the_clients_own_calibration_fits_its_table(tmp_path: Path) -> None:
    row = calibrate_client(tmp_path / "client.jsonl", 2, 3000)
    columns = {column.name: column for column in CALIBRATION.columns}
    assert set(row) <= set(columns)
    needed = {name for name, column in columns.items() if not column.nullable} - {"run_id"}
    assert {name for name in needed if row.get(name) is None} == set()
    assert row["host"] == CLIENT_HOST
