"""The browser that checks our pages distinguishes a faulty page from a correct one."""

from __future__ import annotations

import struct

from browser import SCREENSHOTS, dom, open_page

PAGE = """<!doctype html><meta charset=utf-8><title>t</title>
<style>body { background: #fff } @media (prefers-color-scheme: dark) { body { background: #000 } }</style>
<p id=said>before</p><script>%s</script>"""


def write(directory, script):
    path = directory / "page.html"
    path.write_text(PAGE % script)
    return path


def test_a_page_without_fault_says_nothing_and_its_scripts_have_run(tmp_path):
    page = write(tmp_path, "setTimeout(() => document.querySelector('#said').textContent = location.hash, 500)")
    assert open_page(page) == []
    assert '<p id="said">#here</p>' in dom(page, fragment="here")


def test_console_messages_errors_and_the_network_are_told(tmp_path):
    page = write(tmp_path, 'console.error("one\\ntwo"); fetch("http://example.invalid/x"); missing()')
    told = open_page(page)
    assert any(m.startswith("one\ntwo (file://") for m in told), told
    assert any("missing is not defined" in m for m in told), told
    assert any("Failed to" in m for m in told), told


def test_a_script_of_the_test_runs_behind_the_page(tmp_path):
    page = write(tmp_path, "const greeting = 'hello'")
    assert '<p id="said">hello</p>' in dom(page, script="document.querySelector('#said').textContent = greeting")


def test_a_picture_has_the_size_asked_for_and_knows_light_from_dark(tmp_path):
    page = write(tmp_path, "")
    pictures = []
    for name, dark in (("light", False), ("dark", True)):
        target = SCREENSHOTS / f"browser-{name}.png"
        assert open_page(page, target, dark=dark, size=(640, 480)) == []
        pictures.append(target.read_bytes())
        assert struct.unpack(">II", pictures[-1][16:24]) == (640, 480)
    assert pictures[0] != pictures[1]
