import json
import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import project_support  # noqa: F401 (the build backend and scripts are importable before a test file is)

CONFTEST = Path(__file__).resolve().parent.parent / "conftest.py"


@pytest.fixture
def pytester_project(tmp_path):
    """Return a function that runs pytest on a given test file with the suite's conftest, and returns rows.json."""
    shutil.copy(CONFTEST, tmp_path / "conftest.py")
    record = tmp_path / "build" / "rows.json"

    def run(source, name="test_made.py", extra=()):
        (tmp_path / name).write_text(textwrap.dedent(source))
        environment = {**os.environ, "GODYNAMO_ROWS_FILE": str(record)}
        environment.pop("GODYNAMO_ROWS_COLLECT", None)
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "--strict-markers", "-p", "no:cacheprovider", *extra, name],
            cwd=tmp_path, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return json.loads(record.read_text())

    return run
