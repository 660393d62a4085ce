"""Seccomp filter of a confined server: the system calls that it may not make, as a BPF program.

It takes away what a sandbox of namespaces does not confine: the kernel's keyrings, which no namespace
divides; namespaces of its own, in which a program has rights over parts of the kernel that nobody
else gives it; tracing; and typing into the terminal of whoever started it. A refused call fails with
``EPERM``, so that programs go on without it.
"""

import platform
from struct import pack

from msgspec import Struct

EPERM, ENOSYS = 1, 38

LOAD, JUMP_EQUAL, JUMP_GREATER_EQUAL, JUMP_ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
"""Operations of classic BPF: a word of the data, three jumps, and the end (linux/bpf_common.h)."""

CALL_NUMBER, ARCHITECTURE, FIRST_ARGUMENT, SECOND_ARGUMENT = 0, 4, 16, 24
"""Places in ``struct seccomp_data``, of arguments the lower half (linux/seccomp.h)."""

ALLOW, ERROR, KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
X32_BIT = 0x40000000  # numbers from here on are those of x32, a second table of the same calls

# all of linux/sched.h, but for the namespace of time: NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER …
CLONE_NAMESPACES = 0x7E020000
CLONE_NEWTIME = 0x80  # for ``clone`` the same bit belongs to a signal

# TIOCSTI types into a terminal, TIOCLINUX pastes (asm-generic/ioctls.h)
TERMINAL_INPUT = (0x5412, 0x541C)
CLONE3 = 435

# they have one number on every machine
COMMON_CALLS = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432,
    "fspick": 433, "pidfd_getfd": 438, "mount_setattr": 442,
}  # fmt: skip


class SyscallTable(Struct, frozen=True, kw_only=True):
    """The numbers of one kind of machine.

    Attributes:
        architecture: what the kernel calls it (linux/audit.h).
        refused: calls that are refused whatever their arguments.
        clone, unshare, ioctl: calls that are looked at.
        second_table: whether there is x32.
    """

    architecture: int
    refused: dict[str, int]
    clone: int
    unshare: int
    ioctl: int
    second_table: bool = False


SYSCALL_TABLES = {
    "x86_64": SyscallTable(
        architecture=0xC000003E,
        refused={
            "ptrace": 101, "syslog": 103, "pivot_root": 155, "acct": 163, "mount": 165,
            "umount2": 166, "swapon": 167, "swapoff": 168, "reboot": 169, "iopl": 172,
            "ioperm": 173, "init_module": 175, "delete_module": 176, "quotactl": 179,
            "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250,
            "perf_event_open": 298, "name_to_handle_at": 303, "open_by_handle_at": 304,
            "setns": 308, "process_vm_readv": 310, "process_vm_writev": 311, "finit_module": 313,
            "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323,
        },
        clone=56, unshare=272, ioctl=16, second_table=True,
    ),
    "aarch64": SyscallTable(
        architecture=0xC00000B7,
        refused={
            "umount2": 39, "mount": 40, "pivot_root": 41, "quotactl": 60, "acct": 89,
            "kexec_load": 104, "init_module": 105, "delete_module": 106, "syslog": 116,
            "ptrace": 117, "reboot": 142, "add_key": 217, "request_key": 218, "keyctl": 219,
            "swapon": 224, "swapoff": 225, "perf_event_open": 241, "name_to_handle_at": 264,
            "open_by_handle_at": 265, "setns": 268, "process_vm_readv": 270,
            "process_vm_writev": 271, "finit_module": 273, "bpf": 280, "userfaultfd": 282,
            "kexec_file_load": 294,
        },
        clone=220, unshare=97, ioctl=29,
    ),
}  # fmt: skip


def make_filter(machine: str = "") -> bytes:
    """The filter for a machine as ``bwrap --seccomp`` reads it; empty where its numbers are not known.

    Args:
        machine: as ``platform.machine()`` calls it; this one by default.
    """
    numbers = SYSCALL_TABLES.get(machine or platform.machine())
    if numbers is None:
        return b""
    code = [
        _pack_instruction(LOAD, ARCHITECTURE),
        _pack_instruction(JUMP_EQUAL, numbers.architecture, yes=1),
        _pack_instruction(
            RETURN, KILL_PROCESS
        ),  # a program of another kind would have other numbers
        _pack_instruction(LOAD, CALL_NUMBER),
    ]
    if numbers.second_table:
        code += [_pack_instruction(JUMP_GREATER_EQUAL, X32_BIT, no=1), _pack_refusal(ENOSYS)]
    for call in (*numbers.refused.values(), *COMMON_CALLS.values()):
        code += [_pack_instruction(JUMP_EQUAL, call, no=1), _pack_refusal(EPERM)]
    # its flags stand in memory, where no filter looks; who is told that it is not there uses clone
    code += [_pack_instruction(JUMP_EQUAL, CLONE3, no=1), _pack_refusal(ENOSYS)]
    for call, bits in (
        (numbers.unshare, CLONE_NAMESPACES | CLONE_NEWTIME),
        (numbers.clone, CLONE_NAMESPACES),
    ):
        code += [
            _pack_instruction(JUMP_EQUAL, call, no=4),
            _pack_instruction(LOAD, FIRST_ARGUMENT),
            _pack_instruction(JUMP_ANY_BIT, bits, no=1),
            _pack_refusal(EPERM),
            _pack_instruction(RETURN, ALLOW),
        ]
    code += [_pack_instruction(JUMP_EQUAL, numbers.ioctl, no=1 + 2 * len(TERMINAL_INPUT))]
    code += [_pack_instruction(LOAD, SECOND_ARGUMENT)]
    for number in TERMINAL_INPUT:
        code += [_pack_instruction(JUMP_EQUAL, number, no=1), _pack_refusal(EPERM)]
    return b"".join([*code, _pack_instruction(RETURN, ALLOW)])


def _pack_instruction(operation: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    """One instruction; ``yes`` and ``no`` are how many are left out after a jump."""
    return pack("=HBBI", operation, yes, no, value)


def _pack_refusal(error: int) -> bytes:
    return _pack_instruction(RETURN, ERROR | error)
