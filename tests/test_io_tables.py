"""Tables from files of every kind, and what is found out about them."""

import gzip
import io
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from sparsistent.io.found import TableError
from sparsistent.io.tables import read_table

VALUES = np.array([[1.5, 2.0, -3.0], [4.0, 5.25, 6.0], [7.0, 8.0, 1e-3]])
NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(VALUES, columns=NAMES)


@pytest.fixture
def read_text(tmp_path):
    def read(text, **options):
        path = tmp_path / "table.csv"
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return read_table(str(path), **options)

    return read


def check(table, names=NAMES, values=VALUES):
    assert table.columns.tolist() == names
    np.testing.assert_array_equal(table.to_numpy(), values)
    assert table.to_numpy().dtype == np.float64


@pytest.mark.parametrize(
    ("delimiter", "name"),
    [(",", "commas"), ("\t", "tabs"), (";", "semicolons"), ("|", "bars"), (" ", "spaces")],
)
def test_the_delimiter_is_found_out(read_text, delimiter, name):
    table, found = read_text(FRAME.to_csv(index=False, sep=delimiter))
    check(table)
    assert found.sentence() == f"text separated by {name}, 3 rows, 3 columns"


def test_decimal_commas(read_text):
    table, found = read_text(FRAME.to_csv(index=False, sep=";", decimal=","))
    check(table)
    assert "decimal commas" in found.sentence()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_encodings(read_text, encoding):
    names = ["Größe", "b", "c"]
    text = FRAME.set_axis(names, axis=1).to_csv(index=False)
    table, found = read_text(text.encode(encoding))
    check(table, names)
    assert found.encoding == encoding.removesuffix("-sig")


def test_windows_lines_and_gzip(read_text):
    text = FRAME.to_csv(index=False, lineterminator="\r\n").encode()
    check(read_text(gzip.compress(text))[0])


def test_standard_input(monkeypatch):
    data = FRAME.to_csv(index=False).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data)))
    check(read_table("-")[0])


def test_no_header(read_text):
    table, found = read_text(FRAME.to_csv(index=False, header=False))
    check(table, ["x0", "x1", "x2"])
    assert "no names of columns" in found.sentence()
    table, _ = read_text("1990,1995\n1,2\n3,4\n", header=True)
    check(table, ["1990", "1995"], [[1, 2], [3, 4]])


@pytest.mark.parametrize("start", [0, 1])
def test_counted_names_are_a_header(read_text, start):
    names = [start, start + 1, start + 2]
    table, found = read_text(FRAME.set_axis(names, axis=1).to_csv())
    check(table, [str(name) for name in names])
    assert found.index == ""


@pytest.mark.parametrize(
    "text",
    [
        "subject,a,b\nAnna,1,2\nBert,3,4\n",
        "id,a,b\n17,1,2\n11,3,4\n",
        ",a,b\n0,1,2\n1,3,4\n",
        '"a" "b"\n"1" 1 2\n"2" 3 4\n',
        "a,b\nr1,1,2\nr2,3,4\n",
        "date,a,b\n2024-01-02,1,2\n2024-01-03,3,4\n",
        "Datum,a,b\n2.1.2024,1,2\n3.1.2024,3,4\n",
        "id,a,b\n1A,1,2\n2-4,3,4\n",
    ],
)
def test_names_of_rows_are_found_out(read_text, text):
    table, found = read_text(text)
    check(table, ["a", "b"], [[1, 2], [3, 4]])
    assert found.index is not None
    assert "row names in" in found.sentence()


def test_names_of_rows_can_be_denied(read_text):
    table, found = read_text("id,a\n3,1\n4,2\n", index=False)
    check(table, ["id", "a"], [[3, 1], [4, 2]])
    assert found.index is None


def test_missing_values_are_counted_by_how_they_are_written(read_text):
    table, found = read_text("a,b,c\n1,NA,3\n.,5,6\n7,,NA\n4,5,6\n")
    assert found.missing == {"NA": 2, ".": 1, "": 1}
    assert table.isna().to_numpy().sum() == 4
    assert "4 missing values written as 'NA', '.', ''" in found.sentence()
    table, found = read_text("a,b\n1,-999\n3,4\n5,6\n", na=["-999"])
    assert found.missing == {"-999": 1}


def test_strange_names_are_kept(read_text):
    names = ["a,b", "two\nlines", 'quoted "x"', "=cmd()", "<b>", "ש", "🙂", "n" * 300]
    frame = pd.DataFrame(np.arange(24.0).reshape(3, 8), columns=names)
    check(read_text(frame.to_csv(index=False))[0], names, frame.to_numpy())


def test_a_delimiter_too_many(read_text):
    table, found = read_text("a,b,\n1,2,\n3,4,\n")
    check(table, ["a", "b"], [[1, 2], [3, 4]])
    assert "1 empty column left out" in found.sentence()


def test_columns_and_rows_are_chosen(read_text):
    text = FRAME.assign(group="x").to_csv(index=False)
    check(read_text(text, drop=["group"])[0])
    check(read_text(text, columns=["a,c"])[0], ["a", "c"], VALUES[:, [0, 2]])
    check(read_text(text, columns=["[ab]"], rows="1:")[0], ["a", "b"], VALUES[1:, :2])
    check(read_text(text, columns=["0:2"], rows=":2")[0], ["a", "b"], VALUES[:2, :2])
    twice = "a,b,a\n1,2,3\n4,5,6\n"
    check(read_text(twice, drop=["2:3"])[0], ["a", "b"], [[1, 2], [4, 5]])
    for options, message in [
        ({"columns": ["z"]}, "--columns names 'z', but .* has the columns 'a', 'b', 'c', 'group'"),
        ({"drop": ["*"]}, "no column of .* is left"),
        ({"rows": "first"}, "--rows must be positions such as 0:100"),
    ]:
        with pytest.raises(TableError, match=message):
            read_text(text, **options)


def test_a_table_on_its_side(read_text):
    table, _ = read_text("gene,s1,s2,s3\nA,1,2,3\nB,4,5,6\n", transpose=True)
    check(table, ["A", "B"], [[1, 4], [2, 5], [3, 6]])
    assert table.index.tolist() == ["s1", "s2", "s3"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty; expected a table"),
        (" \n\n", "is empty; expected a table"),
        ("a,b\n", "has a header and no rows"),
        ("a,b\n1,2\n", "has 1 row of values, and a graph needs at least 2"),
        ("a\n1\n2\n", "has one column of numbers"),
        ("a,b,a\n1,2,3\n4,5,6\n", "name 'a' twice, at positions 0 and 2 .* --drop 2:3"),
        ("a,b,k\n1,2,x\n4,5,x\n", r"column 'k' .* has 'x' in it instead of numbers.* --drop k$"),
        ("a,b\n1,2\n3,n.d.\n5,6\n", r"has 'n\.d\.' in it, which is no number; pass --na=n\.d\."),
        ("a,b\n1,2,3\n1,2\n", r"has 2 names .* in its first line and more values in others"),
        ("a,b\n" + "1,2\n" * 99 + "1,2,3\n", r"cannot be split into columns .*line 101"),
        ("a,b,c\n5%,1,2\n6%,2,3\n", "column 'a' .* has '5%' in it instead of numbers"),
        ('a,b,c\n"1,234",1,2\n"2,345",2,3\n', "column 'a' .* has '1,234' in it"),
        ("a;b\n1.234,5;2,0\n2.000,1;3,0\n", r"column 'a' .* has '1\.234,5' in it"),
        (b"a,b\n\0\0\0\0", "is neither text nor another kind of table"),
        (b"\x1f\x8bnonsense", "is compressed, but broken"),
        (",".join(map(str, range(1_000_000))) + "\n1,2\n", "has 1,000,000 columns"),
    ],
)
def test_what_is_no_table(read_text, text, message):
    with pytest.raises(TableError, match=message) as error:
        read_text(text)
    assert "\n" not in str(error.value)


def test_parquet_and_feather(tmp_path):
    named = FRAME.set_axis(["r1", "r2", "r3"]).rename_axis("who")
    for path, write in [("t.parquet", named.to_parquet), ("t.feather", FRAME.to_feather)]:
        write(tmp_path / path)
        check(read_table(str(tmp_path / path))[0])
    assert read_table(str(tmp_path / "t.parquet"))[1].index == "who"
    (tmp_path / "t.parquet").rename(tmp_path / "no_suffix")
    check(read_table(str(tmp_path / "no_suffix"))[0])
    with_gaps = FRAME.astype("Float64").assign(id=["x", "y", "z"])[["id", *NAMES]]
    with_gaps.loc[1, "b"] = pd.NA
    with_gaps.to_parquet(tmp_path / "gaps.parquet")
    table, found = read_table(str(tmp_path / "gaps.parquet"))
    assert table.isna().to_numpy().sum() == 1
    assert (found.index, found.sentence()[-15:]) == ("id", "1 missing value")


def test_numpy(tmp_path):
    np.save(tmp_path / "t.npy", VALUES)
    check(read_table(str(tmp_path / "t.npy"))[0], ["x0", "x1", "x2"])
    np.savez(tmp_path / "t.npz", data=VALUES, names=np.array(NAMES))
    check(read_table(str(tmp_path / "t.npz"))[0])
    np.savez(tmp_path / "two.npz", a=VALUES, b=2 * VALUES)
    with pytest.raises(TableError, match=r"has 2 arrays of two dimensions .* with --key"):
        read_table(str(tmp_path / "two.npz"))
    check(read_table(str(tmp_path / "two.npz"), key="b")[0], ["x0", "x1", "x2"], 2 * VALUES)
    with pytest.raises(TableError, match=r"no array 'c'; choose one of \['a', 'b'\]"):
        read_table(str(tmp_path / "two.npz"), key="c")


class Payload:
    def __reduce__(self):
        return print, ("executed",)


@pytest.mark.parametrize("kind", ["pickle.npy", "objects.npy", "objects.npz"])
def test_nothing_is_unpickled(tmp_path, capsys, kind):
    path = tmp_path / kind
    objects = np.array([[Payload(), 1], [2, 3]], dtype=object)
    if kind == "pickle.npy":
        path.write_bytes(pickle.dumps(Payload()))
    elif kind == "objects.npy":
        np.save(path, objects)
    else:
        np.savez(path, objects)
    with pytest.raises(TableError, match=r"never unpickled because that can run code"):
        read_table(str(path))
    assert capsys.readouterr().out == ""


def test_excel(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        FRAME.assign(id=["x", "y", "z"])[["id", *NAMES]].to_excel(
            book, sheet_name="first", index=False
        )
        (2 * FRAME).to_excel(book, sheet_name="second", index=False)
    table, found = read_table(str(tmp_path / "t.xlsx"))
    check(table)
    assert (found.part, found.index) == ("first", "id")
    check(read_table(str(tmp_path / "t.xlsx"), key="second")[0], values=2 * VALUES)


@pytest.mark.filterwarnings("ignore")  # the packages warn about each other
def test_h5ad_and_zarr(tmp_path):
    import anndata
    import zarr

    # Not every version of anndata can write the text of newer versions of pandas.
    with pd.option_context("future.infer_string", False):
        data = anndata.AnnData(
            sparse.csr_matrix(VALUES),
            obs=pd.DataFrame(index=["s1", "s2", "s3"]),
            var=pd.DataFrame(index=NAMES),
            layers={"counts": 2 * VALUES},
        )
        data.write_h5ad(tmp_path / "t.h5ad")
        data.write_zarr(tmp_path / "t.zarr")
    zarr.save(str(tmp_path / "array.zarr"), VALUES)
    for name in ("t.h5ad", "t.zarr"):
        table, found = read_table(str(tmp_path / name))
        check(table)
        assert table.index.tolist() == ["s1", "s2", "s3"]
        assert found.part == "X"
        check(read_table(str(tmp_path / name), key="counts")[0], values=2 * VALUES)
        with pytest.raises(TableError, match="no layer 'raw'"):
            read_table(str(tmp_path / name), key="raw")
    check(read_table(str(tmp_path / "array.zarr"))[0], ["x0", "x1", "x2"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("suffix", ["parquet", "feather", "npy", "npz", "xlsx", "h5ad"])
def test_corrupt_files(tmp_path, suffix):
    path = tmp_path / f"t.{suffix}"
    path.write_bytes(b"PAR1 and then nothing that makes sense")
    with pytest.raises(TableError, match=rf"t\.{suffix} cannot be read as .*") as error:
        read_table(str(path))
    assert "\n" not in str(error.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(TableError, match="does not exist; check its name"):
        read_table(str(tmp_path / "t.csv"))
    with pytest.raises(TableError, match="is a folder; expected a file"):
        read_table(str(tmp_path))


def test_the_hash_is_that_of_the_file(tmp_path):
    import hashlib

    for name, write in [("t.csv", FRAME.to_csv), ("t.parquet", FRAME.to_parquet)]:
        write(tmp_path / name)
        expected = hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        assert read_table(str(tmp_path / name))[1].sha256 == expected
