"""Goal: a sweep is the sum of its simulations, wherever and whenever its points are run. Method: single simulations and the
program beside it; a second call; failing points; Ctrl-C; a cluster of two processes, one of which is killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import imbrex
import pytest

WORKLOAD = "rw=randwrite,bs={bs},size=1GiB,number_ios=300"
DRIVE = "imr-1t+track-map"
GRID = {"bs": ["4k", "16k"], "interval": ["500", "2000"]}
WALL = "wall_seconds"


def rows(sweep):
    """The rows as dictionaries, without the wall clock."""
    table = sweep.table.to_dict()
    table.pop(WALL)
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


def test_a_point_is_the_simulation_alone(tmp_path):
    swept = imbrex.sweep(WORKLOAD, DRIVE, GRID, out=tmp_path, queue=[1, 4])
    assert (swept.points, swept.run, swept.failed) == (8, 8, 0)
    assert swept.parameters == ["bs", "interval", "queue"]
    page = Path(swept.page).read_text()
    assert "write latency, mean by bs" in page and swept._repr_html_().count("<svg") > 2
    for row in rows(swept):
        workload = WORKLOAD.replace("{bs}", row["bs"])
        drive = f"{DRIVE}:interval={row['interval']}"
        assert (row["workload"], row["drive"]) == (workload, drive)
        alone = imbrex.simulate(workload, drive, queue=int(row["queue"]), no_baseline=True).drives[0]
        assert row["write_p99_ns"] == alone["latency_ns"]["write"]["p99"]
        assert row["write_amplification"] == alone["write_amplification"]
        assert row["duration_ns"] == alone["duration_ns"]
    assert {row["bs_number"] for row in rows(swept)} == {4096.0, 16384.0}
    assert all(row["slowdown"] is None and row["write_mean_ratio"] is None for row in rows(swept)), "no baseline unless one is given"
    beside = imbrex.sweep(WORKLOAD.replace("{bs}", "4k"), DRIVE, out=tmp_path, baseline="imr-1t+conventional")
    assert rows(beside)[0]["slowdown"] >= 1 and rows(beside)[0]["drive"] == DRIVE


def test_a_sweep_of_many_points_ends(tmp_path):
    swept = imbrex.sweep("rw=write,bs=4k,size=1GiB,number_ios=20", DRIVE, {"interval": "1..600/1"}, out=tmp_path, jobs=2)
    assert (swept.run, swept.failed) == (600, 0)


def test_a_second_call_resumes_and_adds_and_errors_are_kept(tmp_path):
    with pytest.warns(UserWarning, match="1 of 2 points failed, the first of them: .*interval"):
        first = imbrex.sweep(WORKLOAD, DRIVE, {"bs": "4k", "interval": ["500", "never"]}, out=tmp_path)
    assert (first.points, first.run, first.failed) == (2, 2, 1)
    assert "interval" in rows(first)[1]["error"] and rows(first)[1]["completed"] is None
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "points").iterdir()}
    grid = {"bs": "4k", "interval": ["500", "never", "2000"]}
    second = imbrex.sweep(WORKLOAD, DRIVE, grid, out=tmp_path)
    assert (second.points, second.found, second.run, second.failed) == (3, 2, 1, 1)
    assert all(path.stat().st_mtime_ns == before for path, before in files.items()), "rows that are there stay"
    again = imbrex.sweep(WORKLOAD, DRIVE, grid, out=tmp_path, retry_failed=True)
    assert (again.found, again.run) == (2, 1)


def test_lost_data_is_in_the_rows_and_warned_of(tmp_path):
    writes = "rw=randwrite,bs=4k,size=64m,number_ios=400"
    with pytest.warns(UserWarning, match="live data was lost at 1 of 2 points, the first of them: caveat-1g: "):
        swept = imbrex.sweep(writes, [DRIVE, "caveat-1g"], out=tmp_path, check=True)
    assert (swept.damaged, swept.failed, len(swept)) == (1, 0, 2)
    assert swept.table["integrity"] == ["ok", "live_sectors_destroyed"]
    lost = imbrex.simulate(writes, "caveat-1g", no_baseline=True, check=True).drives[0]["integrity"]
    for name, value in lost.items():
        assert swept.table[f"integrity_{name}"] == [None, value]
    unchecked = imbrex.sweep(writes, [DRIVE, "caveat-1g"], out=tmp_path)
    assert unchecked.damaged == 0 and unchecked.table["integrity"] == [None, None]


def test_the_program_finds_the_rows_of_the_call(tmp_path, run_program):
    imbrex.sweep(WORKLOAD, DRIVE, GRID, out=tmp_path / "set", queue=[1, 4])
    spec = tmp_path / "spec.toml"
    spec.write_text(
        f'workloads = "{WORKLOAD}"\ndrives = "{DRIVE}"\n[parameters]\nbs = ["4k", "16k"]\n'
        'interval = "500..2000/x4"\n[options]\nqueue = [1, 4]\n'
    )
    done = json.loads(run_program("sweep", str(spec), "--out", str(tmp_path / "set"), "--json"))
    assert (done["points"], done["found"], done["run"]) == (8, 8, 0)
    done = json.loads(run_program("sweep", str(spec), "--json"))
    assert (done["run"], done["dataset"]) == (8, str(tmp_path / "spec/points"))
    ours, theirs = (rows_of(tmp_path / name / "points") for name in ("set", "spec"))
    assert ours == theirs


def rows_of(folder):
    polars = pytest.importorskip("polars")
    return polars.read_parquet(folder / "*.parquet").drop(WALL).sort("key").to_dicts()


def test_tables_are_swept_by_name(tmp_path, columns):
    pyarrow = pytest.importorskip("pyarrow")
    half = pyarrow.table(columns).slice(0, 1500)
    swept = imbrex.sweep({"whole": columns, "half": half}, DRIVE, {"interval": ["500", "2000"]}, out=tmp_path)
    assert [(row["workload"], row["completed"]) for row in rows(swept)] == [("whole", 3000)] * 2 + [("half", 1500)] * 2
    renamed = imbrex.sweep({"other": half}, DRIVE, {"interval": "500"}, out=tmp_path)
    assert renamed.found == 1, "a key is of the contents, not of the name"


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (lambda out: imbrex.sweep(WORKLOAD, DRIVE, {"interval": []}, out=out), ValueError, "interval: no values"),
        (lambda out: imbrex.sweep(WORKLOAD, DRIVE, {"interval": "9..1/1"}, out=out), ValueError, "interval = 9..1/1"),
        (lambda out: imbrex.sweep(WORKLOAD, DRIVE, {"interval": object()}, out=out), TypeError, "interval = <object"),
        (lambda out: imbrex.sweep("nothing", DRIVE, out=out), ValueError, "no built-in workload is called 'nothing'"),
        (lambda out: imbrex.sweep([], DRIVE, out=out), ValueError, "no workloads"),
        (lambda out: imbrex.sweep(WORKLOAD, DRIVE, ["bs"], out=out), TypeError, "parameters = .*expected a dictionary"),
        (lambda out: imbrex.sweep(WORKLOAD, DRIVE, out=out, jobs=0), ValueError, "jobs = 0: expected a whole number from 1"),
        (lambda out: imbrex.sweep(WORKLOAD, DRIVE, out=out, client=3), TypeError, "client = 3: expected a distributed.Client"),
        (lambda out: imbrex.sweep(WORKLOAD, [], out=out), ValueError, "no drives"),
        (lambda out: imbrex.sweep(WORKLOAD, DRIVE, out=out, qeue=1), TypeError, "no option is called 'qeue'"),
        (lambda out: imbrex.sweep(WORKLOAD, DRIVE, out=out, plans=True), TypeError, "no option is called 'plans'"),
        (lambda out: imbrex.sweep([{"time_ns": 1}, {}], DRIVE, out=out), TypeError, "2 tables without names"),
    ],
)
def test_what_cannot_be_swept_is_an_exception(tmp_path, call, error, said):
    with pytest.raises(error, match=said):
        call(tmp_path)


INTERRUPTED = """
import sys, imbrex
print("begun", flush=True)
swept = imbrex.sweep("rw=randwrite,bs=4k,size=10GiB,number_ios=40000", "imr-1t+track-map",
                     {"interval": f"1..400/1"}, out=sys.argv[1], progress=False)
print(swept.is_stopped, swept.run, len(swept.table), len(swept), swept.points)
"""


def test_ctrl_c_keeps_the_rows_that_were_made(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    points = tmp_path / "points"
    until = time.monotonic() + 60
    while not list(points.glob("*.parquet")) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    said, complained = process.communicate(timeout=60)
    is_stopped, run, kept, length, of_grid = said.split()[1:]
    assert is_stopped == "True" and 0 < int(run) == int(kept) < 400, (said, complained)
    assert (length, of_grid) == (kept, "400"), "the length is that of the table"
    assert not [path for path in points.iterdir() if not path.name.endswith(".parquet")], "nothing half done is left"


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed")
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None)
    client = distributed.Client(cluster)
    yield client
    client.close()
    cluster.close()


def test_a_workload_is_sent_to_a_cluster_once(tmp_path, columns, cluster, monkeypatch):
    sent = []
    scatter = cluster.scatter
    monkeypatch.setattr(cluster, "scatter", lambda *given, **named: sent.append(given) or scatter(*given, **named))
    workloads = {"whole": columns, "half": {name: values[:1500] for name, values in columns.items()}}
    grid = {"interval": [str(500 + 100 * n) for n in range(6)]}
    swept = imbrex.sweep(workloads, DRIVE, grid, out=tmp_path, client=cluster, limit=200)
    assert (swept.run, swept.failed, len(sent)) == (12, 0, 2), "once a workload, not once a point"


def test_a_cluster_makes_the_same_rows_and_loses_none_with_a_worker(tmp_path, columns, cluster):
    workloads = {"table": columns}
    grid = {"interval": [str(500 + 100 * n) for n in range(20)] + ["never"]}
    here = imbrex.sweep(workloads, DRIVE, grid, out=tmp_path / "here", limit=2000)
    victims = []

    def kill_one(told):
        if not victims and told[0][1] >= 3:
            victims.append(next(iter(cluster.run(os.getpid).values())))
            os.kill(victims[0], signal.SIGKILL)

    there = imbrex.sweep(workloads, DRIVE, grid, out=tmp_path / "there", client=cluster, limit=2000, progress=kill_one)
    assert victims, "a worker was killed in the midst"
    assert rows(there) == rows(here)
    assert (there.points, there.run, there.failed, there.is_stopped) == (21, 21, 1, False)
    words = imbrex.sweep(WORKLOAD, DRIVE, GRID, out=tmp_path / "there", client=cluster)
    assert rows(words) == rows(imbrex.sweep(WORKLOAD, DRIVE, GRID, out=tmp_path / "here"))
    assert imbrex.sweep(WORKLOAD, DRIVE, GRID, out=tmp_path / "there", client=cluster).found == 4


def test_what_a_point_needs_travels_with_it_and_is_let_go(tmp_path, cluster, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.toml").write_text('name = "mine"\nbase = "cmr-7200"\n[mechanics]\nsettle_ns = 5000000\n')
    (tmp_path / "load.toml").write_text('rw = "randread"\nbs = "4k"\nsize = "1g"\nnumber_ios = 50\n')
    # The workers have files of these names in their folder, with other contents.
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.toml").write_text('name = "mine"\nbase = "cmr-7200"\n[mechanics]\nsettle_ns = 100000\n')
    (elsewhere / "load.toml").write_text('rw = "randread"\nbs = "4k"\nsize = "1g"\nnumber_ios = 20\n')
    (elsewhere / "demo").write_text("no trace\n")
    before = cluster.run(os.getcwd)
    cluster.run(os.chdir, str(elsewhere))
    try:
        # Each sweep keeps its rows in its own folder, so that both run every point.
        there = imbrex.sweep(["load.toml", "demo"], "mine.toml", out=tmp_path / "there", client=cluster, limit=100)
        here = imbrex.sweep(["load.toml", "demo"], "mine.toml", out=tmp_path / "here", limit=100)
    finally:
        for worker, folder in before.items():
            cluster.run(os.chdir, folder, workers=[worker])
    assert (there.run, there.failed) == (2, 0) and rows(there) == rows(here)
    assert there.table["completed"] == [50, 100]
    assert all(count == 0 for count in cluster.run(_held_there).values()), "workers hold no workload any more"


def _held_there():
    from imbrex import _dask

    return len(_dask._shipped)


def test_all_rows_are_one_table_after_a_parameter_was_added(tmp_path):
    import polars

    words = "rw=randwrite,bs=4k,size=1GiB,number_ios=100"
    imbrex.sweep(words, DRIVE, {"interval": ["500"]}, out=tmp_path)
    imbrex.sweep(words, DRIVE, {"interval": ["500"]}, out=tmp_path, queue=[1, 2])
    frame = polars.read_parquet(tmp_path / "sweep.parquet")
    assert len(frame) == 3 and frame["queue_number"].to_list() == [1.0, 2.0, None]
