"""NOTICES lists the contents of the binaries, and the version is defined in one place."""

import re
import subprocess
import sys

import godynamo
import native
import project_support

ROOT = project_support.ROOT


def test_notices_are_of_the_modules_that_are_linked():
    done = subprocess.run([sys.executable, "scripts/notices.py", "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_version_is_the_packages():
    assert native.package_version() == godynamo.__version__
    assert not re.search(r'^version = "', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
