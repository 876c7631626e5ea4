"""Tables in files of a known layout: arrays, columns, sheets, annotated matrices.

Each reader takes a file's path and the name of the part of it that is the table, or None, and
returns a data frame and that name. None of them runs code that a file brings along: arrays of
Python objects, which would be unpickled, are refused.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsistent.io.found import TableError
from sparsistent.optional import optional_import

if TYPE_CHECKING:
    import pandas as pd

Reader = Callable[[Path, str | None], tuple["pd.DataFrame", str | None]]


def read_parquet(path: Path, part: str | None) -> tuple["pd.DataFrame", None]:
    """A Parquet file."""
    reader = optional_import("pyarrow.parquet", "reading Parquet", "cli")
    _reject_part(part, "Parquet")
    # A file by this name alone: a folder's name could say more, such as partitions.
    return reader.ParquetFile(path).read().to_pandas(), None


def read_feather(path: Path, part: str | None) -> tuple["pd.DataFrame", None]:
    """A Feather or Arrow file."""
    reader = optional_import("pyarrow.feather", "reading Feather", "cli")
    _reject_part(part, "Feather")
    return reader.read_table(path).to_pandas(), None


def read_excel(path: Path, part: str | None) -> tuple["pd.DataFrame", str]:
    """A sheet of an Excel file, the first one by default."""
    pd = optional_import("pandas", "reading a table")
    optional_import("openpyxl", "reading Excel", "files")
    with pd.ExcelFile(path, engine="openpyxl") as book:
        sheet = _chosen(part, book.sheet_names, "sheet") if part else book.sheet_names[0]
        rows = pd.read_excel(book, sheet_name=sheet, header=None)
    if rows.empty:
        raise TableError(f"the sheet {sheet!r} is empty; choose another one with --key")
    # Read as it is: names that occur twice would be numbered otherwise.
    table = rows.iloc[1:].reset_index(drop=True).infer_objects()
    table.columns = ["" if name != name else str(name) for name in rows.iloc[0]]
    return table, sheet


def read_npy(path: Path, part: str | None) -> tuple["pd.DataFrame", None]:
    """A NumPy array."""
    import numpy as np

    _reject_part(part, "NPY")
    return _frame(np.load(path, allow_pickle=False), None), None


def read_npz(path: Path, part: str | None) -> tuple["pd.DataFrame", str]:
    """An array of several that NumPy has saved, the only one of two dimensions by default."""
    import numpy as np

    with np.load(path, allow_pickle=False) as arrays:
        if part is None:
            shapes = {name: arrays[name].ndim for name in arrays.files}
            tables = [name for name, ndim in shapes.items() if ndim == 2]
            if len(tables) != 1:
                raise TableError(
                    f"it has {len(tables)} arrays of two dimensions among {list(shapes)}; choose "
                    "one with --key"
                )
            part = tables[0]
        array = arrays[_chosen(part, arrays.files, "array")]
        names = arrays["names"] if "names" in arrays.files and part != "names" else None
    return _frame(array, names), part


def read_h5ad(path: Path, part: str | None) -> tuple["pd.DataFrame", str]:
    """An annotated matrix: X, or one of its layers."""
    anndata = optional_import("anndata", "reading h5ad", "files")
    return _annotated(anndata.read_h5ad(path), part)


def read_zarr(path: Path, part: str | None) -> tuple["pd.DataFrame", str | None]:
    """An array or an annotated matrix in a Zarr folder."""
    zarr = optional_import("zarr", "reading Zarr", "files")
    store = zarr.open(str(path), mode="r")
    if hasattr(store, "shape"):
        _reject_part(part, "an array in Zarr")
        return _frame(store[:], None), None
    if store.attrs.get("encoding-type") == "anndata":
        anndata = optional_import("anndata", "reading an annotated matrix in Zarr", "files")
        return _annotated(anndata.read_zarr(str(path)), part)
    arrays = sorted(name for name, _ in store.arrays())
    if part is None and len(arrays) != 1:
        raise TableError(f"it has the arrays {arrays}; choose one with --key")
    part = _chosen(arrays[0] if part is None else part, arrays, "array")
    return _frame(store[part][:], None), part


READERS: dict[str, tuple[str, Reader]] = {
    ".parquet": ("Parquet", read_parquet),
    ".pq": ("Parquet", read_parquet),
    ".feather": ("Feather", read_feather),
    ".arrow": ("Feather", read_feather),
    ".xlsx": ("Excel", read_excel),
    ".npy": ("NPY", read_npy),
    ".npz": ("NPZ", read_npz),
    ".h5ad": ("h5ad", read_h5ad),
    ".zarr": ("Zarr", read_zarr),
}


def _annotated(data: Any, part: str | None) -> tuple["pd.DataFrame", str]:
    pd = optional_import("pandas", "reading a table")
    if part not in (None, "X"):
        values = data.layers[_chosen(part, list(data.layers), "layer")]
    elif data.X is None:
        raise TableError(f"it has no X; choose one of its layers {list(data.layers)} with --key")
    else:
        values = data.X
    dense = values.toarray() if hasattr(values, "toarray") else values
    return pd.DataFrame(dense, index=data.obs_names, columns=data.var_names), part or "X"


def _frame(array: Any, names: Any) -> "pd.DataFrame":
    """An array with names of columns where there are as many."""
    pd = optional_import("pandas", "reading a table")
    if array.dtype.names is not None:
        return pd.DataFrame({name: array[name] for name in array.dtype.names})
    if array.ndim != 2:
        raise TableError(
            f"it is an array of shape {array.shape}; expected two dimensions, a row for each sample"
        )
    p = array.shape[1]
    known = names is not None and names.shape == (p,)
    return pd.DataFrame(array, columns=list(names) if known else [f"x{k}" for k in range(p)])


def _chosen(part: str | None, parts: list[str], kind: str) -> str:
    if part not in parts:
        raise TableError(f"it has no {kind} {part!r}; choose one of {list(parts)} with --key")
    return part


def _reject_part(part: str | None, kind: str) -> None:
    if part is not None:
        raise TableError(f"{kind} has no parts; leave out --key")
