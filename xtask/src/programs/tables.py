"""Each table of a results folder by several readers, which must agree."""

import sys
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow

print(f"version: polars {polars.__version__}, pandas {pandas.__version__}, pyarrow {pyarrow.__version__}, duckdb {duckdb.__version__}")
print("command: read_parquet and read_csv of every table of `spray sim --csv`")
rows = tables = 0
for file in sorted(Path(sys.argv[1]).rglob("*.parquet")):
    by_polars, by_pandas = polars.read_parquet(file), pandas.read_parquet(file)
    by_duckdb = duckdb.read_parquet(str(file))
    assert by_polars.columns == list(by_pandas.columns) == by_duckdb.columns, file
    assert len(by_polars) == len(by_pandas) == by_duckdb.shape[0], file
    csv = file.with_suffix(".csv")
    assert not csv.exists() or len(polars.read_csv(csv, infer_schema_length=None)) == len(by_polars), csv
    rows, tables = rows + len(by_polars), tables + 1
assert tables > 6, "a results folder has more tables"
print(f"result: {tables} tables with {rows} rows, the same by all four")
