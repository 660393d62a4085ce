"""The filter of system calls: what it lets through, by reading it as the kernel does, and in a sandbox."""

import json
import os
import platform
import struct
import subprocess
import sys

import pytest

from isthmus.client.client import Client
from isthmus.host.confinement.sandbox import confine_command, explain_unavailable
from isthmus.host.confinement.seccomp import SYSCALL_TABLES, TERMINAL_INPUT, make_filter
from isthmus.host.model.entries import Sandbox
from isthmus.transports.command import Command

WHY = explain_unavailable() or ("" if make_filter() else "no filter for this machine")
REAL = pytest.mark.skipif(bool(WHY), reason=f"no sandbox here: {WHY}")

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
NEW_USER, NEW_NET, THREAD = 0x10000000, 0x40000000, 0x3D0F00


def judge(code, number, *arguments, architecture):
    """What the kernel does with a call: classic BPF, as far as the filter uses it."""
    data = struct.pack("=iIQ6Q", number, architecture, 0, *(*arguments, *[0] * 6)[:6])
    steps = [struct.unpack_from("=HBBI", code, at) for at in range(0, len(code), 8)]
    at = word = 0
    while True:
        operation, yes, no, value = steps[at]
        at += 1
        if operation == 0x20:
            (word,) = struct.unpack_from("=I", data, value)
        elif operation == 0x06:
            return value
        else:
            holds = {0x15: word == value, 0x35: word >= value, 0x45: bool(word & value)}
            at += yes if holds[operation] else no


@pytest.fixture(params=SYSCALL_TABLES)
def kernel(request):
    """A machine, and what becomes of a call on it."""
    machine, code = SYSCALL_TABLES[request.param], make_filter(request.param)

    def call(number, *arguments, architecture=machine.architecture):
        return judge(code, number, *arguments, architecture=architecture)

    return machine, call


@pytest.mark.covers("hostconfig.sandbox.calls")
def test_keyrings_tracing_and_the_kernels_own_settings_are_refused(kernel):
    """Ours: with EPERM, whatever the arguments are."""
    machine, call = kernel
    wanted = {"keyctl", "add_key", "request_key", "ptrace", "bpf", "userfaultfd", "mount", "setns"}

    assert wanted <= set(machine.refused)
    assert {0x50001} == {call(number) for number in machine.refused.values()}


@pytest.mark.covers("hostconfig.sandbox.calls")
def test_no_namespace_is_made_inside_of_a_sandbox(kernel):
    """Ours: threads and processes are; clone3, whose flags nobody can look at, is not there."""
    machine, call = kernel

    assert 0x50001 == call(machine.unshare, NEW_USER)
    assert 0x50001 == call(machine.clone, NEW_USER | 17)
    assert 0x50001 == call(machine.clone, NEW_NET)
    assert 0x50001 == call(machine.unshare, 0x80)
    assert 0x50000 | 38 == call(435)
    assert ALLOWED == call(machine.clone, THREAD)
    assert ALLOWED == call(machine.clone, 17 | 0x80)
    assert ALLOWED == call(machine.unshare, 0x400)


@pytest.mark.covers("hostconfig.sandbox.calls")
def test_nobody_types_into_the_terminal_outside(kernel):
    """Ours: only these two of ioctl; high bits of the number do not hide them."""
    machine, call = kernel

    assert {0x50001} == {call(machine.ioctl, 0, number) for number in TERMINAL_INPUT}
    assert 0x50001 == call(machine.ioctl, 0, TERMINAL_INPUT[0] | 1 << 32)
    assert ALLOWED == call(machine.ioctl, 0, 0x5401)


@pytest.mark.covers("hostconfig.sandbox.calls")
def test_no_second_table_of_calls_leads_around_it(kernel):
    """Ours: a program of another architecture ends, and x32 is not there."""
    machine, call = kernel

    assert KILLED == call(0, architecture=0x40000003)
    assert ALLOWED == call(0)
    if machine.second_table:
        assert 0x50000 | 38 == call(machine.refused["keyctl"] | 0x40000000)


def test_a_machine_whose_numbers_are_not_known_has_no_filter():
    """Ours: the numbers of another one would refuse the wrong calls."""
    assert b"" == make_filter("riscv64")


CALLS = """
import ctypes, json, os, subprocess, sys, threading
libc = ctypes.CDLL(None, use_errno=True)

def said(number, *arguments):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments))
    return ctypes.get_errno()

found = {name: said(*call) for name, call in json.loads(sys.argv[1]).items()}
thread = threading.Thread(target=lambda: found.update(thread=0))
thread.start(), thread.join()
found["process"] = subprocess.run(["true"]).returncode
found["nested"] = subprocess.run(
    ["unshare", "--user", "true"], stderr=subprocess.DEVNULL
).returncode
try:
    found["keys"] = open("/proc/keys").read()
except OSError:
    found["keys"] = ""
print(json.dumps(found))
"""


@REAL
@pytest.mark.covers("hostconfig.sandbox.calls")
def test_a_program_in_a_sandbox_is_refused_these_calls(tmp_path):
    """Ours: by the real kernel; threads and further processes go on."""
    machine = SYSCALL_TABLES[platform.machine()]
    calls = {name: [number, 0, 0, 0] for name, number in machine.refused.items()}
    del calls["reboot"]
    calls |= {
        "unshare": [machine.unshare, NEW_USER],
        "clone": [machine.clone, NEW_USER | 17, 0],
        "tiocsti": [machine.ioctl, 0, TERMINAL_INPUT[0], 0],
    }
    command = Command(sys.executable, "-I", "-c", CALLS, json.dumps(calls), cwd=str(tmp_path))
    inside = confine_command(command, Sandbox())
    argv, inherited = inside.prepare_launch()
    try:
        done = subprocess.run(
            argv, env=inside.environment(), capture_output=True, text=True, pass_fds=inherited, check=False
        )  # fmt: skip
    finally:
        for descriptor in inherited:
            os.close(descriptor)
    assert 0 == done.returncode, done.stderr
    found = json.loads(done.stdout)

    assert (0, 0, True) == (found.pop("thread"), found.pop("process"), found.pop("nested") != 0)
    assert not found.pop("keys")
    assert dict.fromkeys(calls, 1) == found


SERVER = """
from isthmus import Server
server = Server("inside")

@server.tool
async def ask() -> str:
    \"\"\"Ask the kernel for a key.\"\"\"
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall(NUMBER, 0, 0, 0, 0, 0)
    return f"errno {ctypes.get_errno()}"

server.run()
"""


@REAL
@pytest.mark.covers("hostconfig.sandbox.calls")
async def test_a_server_in_a_sandbox_has_the_filter_at_each_start(tmp_path):
    """Ours: what is handed over is read to its end, so that each launch gets its own."""
    number = SYSCALL_TABLES[platform.machine()].refused["keyctl"]
    (tmp_path / "server.py").write_text(SERVER.replace("NUMBER", str(number)))
    command = confine_command(Command(sys.executable, "server.py", cwd=str(tmp_path)), Sandbox())
    said = []
    for _ in range(2):
        async with Client(command) as client:
            said.append((await client.call_tool("ask")).text)
    _, inherited = command.prepare_launch()
    for descriptor in inherited:
        os.close(descriptor)

    assert ["errno 1"] * 2 == said
    assert 1 == len(inherited)
