# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 The Bluebell authors
"""Bluebell for Python: for tests, notebooks and control programs.

Objects mirror the C API: Device, Pd, Mr, Cq, Qp. Memory of any writable buffer is registered in place: a NumPy
array, a bytearray, an array.array. A write with its completion takes tens of microseconds, so this module is not
for measurements.

    import bluebell
    bluebell.eal_init()
    dev = bluebell.Device('soft0')
    pd, cq = dev.pd(), dev.cq()

A call that fails raises OSError with the errno; the library's log has a line with advice. A queue belongs to the
thread that made it. An object keeps its parents alive, and close() destroys it before Python would.
"""

import ctypes
import enum
import errno
import os
import time
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

__all__ = ['Access', 'Cq', 'Device', 'Flags', 'Mr', 'Op', 'Pd', 'Qp', 'QpType', 'Status', 'Wc', 'WcOp', 'cause',
           'devices', 'eal_init', 'version']
VERSION = '@VERSION@'
LIBRARY = '@LIBRARY@'
ADDR_LEN = 28


class Access(enum.IntFlag):
    """Rights of a region or of a queue pair's peer."""
    LOCAL_WRITE = 1 << 0
    REMOTE_WRITE = 1 << 1
    REMOTE_READ = 1 << 2
    REMOTE_ATOMIC = 1 << 3
    ALL = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ | REMOTE_ATOMIC


class QpType(enum.IntEnum):
    RC = 0
    UC = 1


class Op(enum.IntEnum):
    """Operation of a send request."""
    WRITE = 0
    WRITE_IMM = 1
    SEND = 2
    SEND_IMM = 3
    READ = 4
    CMP_SWAP = 5
    FETCH_ADD = 6


class WcOp(enum.IntEnum):
    """Operation of a completion. The values are not those of Op."""
    SEND = 0
    WRITE = 1
    READ = 2
    CMP_SWAP = 3
    FETCH_ADD = 4
    NOP = 5
    RECV = 6
    RECV_WRITE_IMM = 7


class Flags(enum.IntFlag):
    """Flags of a send request."""
    NONE = 0
    FENCE = 1 << 7
    SOLICITED = 1 << 1
    SIGNALED = 1 << 3
    INLINE = 1 << 8


class Status(enum.IntEnum):
    """Status of a completion."""
    SUCCESS = 0
    LOC_LEN_ERR = 1
    LOC_QP_OP_ERR = 2
    LOC_PROT_ERR = 3
    WR_FLUSH_ERR = 4
    MW_BIND_ERR = 5
    BAD_RESP_ERR = 6
    LOC_ACCESS_ERR = 7
    REM_INV_REQ_ERR = 8
    REM_ACCESS_ERR = 9
    REM_OP_ERR = 10
    RETRY_EXC_ERR = 11
    RNR_RETRY_EXC_ERR = 12
    REM_ABORT_ERR = 13
    GENERAL_ERR = 14


class Wc(NamedTuple):
    """A completion. If status is an error, only wr_id, qpn and vendor_err are valid, too."""
    wr_id: int
    status: Status
    opcode: Optional[WcOp]  # None if status is an error
    byte_len: int           # valid for receives, READs and atomics
    imm: Optional[int]      # immediate data in network byte order; None without immediate data
    qpn: int
    src_qp: int             # valid for receives of datagrams
    vendor_err: int         # 0 unless status is an error


class _Wc(ctypes.Structure):
    _fields_ = [('wr_id', ctypes.c_uint64), ('qpn', ctypes.c_uint32), ('byte_len', ctypes.c_uint32),
                ('imm', ctypes.c_uint32), ('src_qp', ctypes.c_uint32), ('status', ctypes.c_uint8),
                ('opcode', ctypes.c_uint8), ('flags', ctypes.c_uint8), ('vendor_err', ctypes.c_uint8)]


class _Wr(ctypes.Structure):
    _fields_ = [('wr_id', ctypes.c_uint64), ('addr', ctypes.c_uint64), ('raddr', ctypes.c_uint64),
                ('compare_add', ctypes.c_uint64), ('swap', ctypes.c_uint64), ('opcode', ctypes.c_uint32),
                ('flags', ctypes.c_uint32), ('len', ctypes.c_uint32), ('lkey', ctypes.c_uint32),
                ('rkey', ctypes.c_uint32), ('imm', ctypes.c_uint32)]


_P = ctypes.c_void_p


class _Arg:
    """An unsigned argument of a call. ctypes would drop the high bits of a value that does not fit."""

    def __init__(self, kind: Any) -> None:
        self.kind, self.bits = kind, 8 * ctypes.sizeof(kind)

    def from_param(self, value: int) -> Any:
        if not 0 <= value < 1 << self.bits:
            raise OverflowError('%d does not fit into %d bits' % (value, self.bits))
        return self.kind(value)


_U8, _U32, _U64 = ctypes.c_uint8, ctypes.c_uint32, ctypes.c_uint64
_A8, _A32, _A64 = _Arg(_U8), _Arg(_U32), _Arg(_U64)


def _out(kind: Any) -> Any:
    return ctypes.POINTER(kind)


_CALLS = {
    'pybb_version': (ctypes.c_char_p, []),
    'pybb_eal_init': (ctypes.c_int, [ctypes.c_int, _out(ctypes.c_char_p)]),
    'pybb_dev_list': (ctypes.c_int, [_P, ctypes.c_uint]),
    'pybb_dev_field': (ctypes.c_int, [_P, ctypes.c_uint, _out(ctypes.c_char_p), _out(_U64)]),
    'pybb_port': (ctypes.c_int, [_P, _A32, _out(_U32), _out(_U32), _out(_U32)]),
    'pybb_gid': (ctypes.c_int, [_P, _A32]),
    'pybb_mr_keys': (ctypes.c_int, [_P, _out(_U64), _out(_U32), _out(_U32)]),
    'pybb_cq_create': (ctypes.c_int, [_P, _A32, _out(_P)]),
    'pybb_qp_create': (ctypes.c_int, [_P, _A32, _P, _P, _A32, _A32, _A32, _out(_P)]),
    'pybb_qp_addr': (ctypes.c_int, [_P, _A8, _A8, ctypes.c_char_p, _A32]),
    'pybb_qp_connect': (ctypes.c_int, [_P, _A8, _A8, _A32, ctypes.c_char_p, ctypes.c_char_p, _A32]),
    'pybb_post': (ctypes.c_int, [_P, _out(_Wr)]),
    'pybb_post_recv': (ctypes.c_int, [_P, _A64, _A64, _A32, _A32]),
    'pybb_ring': (None, [_P]),
    'pybb_qpn': (_U32, [_P]),
    'pybb_poll': (ctypes.c_int, [_P, _out(_Wc), _A32]),
    'pybb_cause': (ctypes.c_char_p, [_A8, _A8]),
    'bb_dev_open': (ctypes.c_int, [ctypes.c_char_p, _out(_P)]),
    'bb_dev_close': (ctypes.c_int, [_P]),
    'bb_pd_alloc': (ctypes.c_int, [_P, _out(_P)]),
    'bb_pd_free': (ctypes.c_int, [_P]),
    'bb_mr_reg': (ctypes.c_int, [_P, _P, ctypes.c_size_t, _A32, _out(_P)]),
    'bb_mr_dereg': (ctypes.c_int, [_P]),
    'bb_cq_destroy': (ctypes.c_int, [_P]),
    'bb_qp_destroy': (ctypes.c_int, [_P]),
}


def _load() -> Any:
    lib = ctypes.CDLL(os.environ.get('BB_PYTHON_LIBRARY', LIBRARY))
    for name, (result, arguments) in _CALLS.items():
        call = getattr(lib, name)
        call.restype, call.argtypes = result, arguments
    have = lib.pybb_version().decode()
    if have != VERSION:
        raise ImportError('bluebell.py is of version %s, its library %s of %s' % (VERSION, LIBRARY, have))
    return lib


_lib = _load()


def _check(ret: int, call: str) -> int:
    if ret < 0:
        raise OSError(-ret, '%s: %s' % (call, os.strerror(-ret)))
    return ret


def version() -> str:
    return VERSION


def eal_init(args: Sequence[str] = ('--no-huge', '-m', '256', '--no-pci', '--no-shconf', '--no-telemetry')) -> None:
    """Starts DPDK's EAL. Call it once, before any other call. The default arguments need no hugepages and no root."""
    argv = [b'python'] + [arg.encode() for arg in args]
    _check(_lib.pybb_eal_init(len(argv), (ctypes.c_char_p * (len(argv) + 1))(*argv)), 'rte_eal_init')


def devices() -> List[str]:
    """Returns the names of the devices that Device() can open."""
    names = ctypes.create_string_buffer(64 * 64)
    n = _check(_lib.pybb_dev_list(names, 64), 'bb_dev_list')
    return [names.raw[i * 64:(i + 1) * 64].split(b'\0')[0].decode() for i in range(min(n, 64))]


def cause(wc: Wc) -> str:
    """Returns one sentence with the likely cause of a completion's error."""
    return _lib.pybb_cause(wc.status, wc.vendor_err).decode()


class _Object:
    """Owns an object of the C API."""
    _destroy = ''

    def __init__(self, parents: Sequence['_Object'], call: str, *args: Any) -> None:
        self._p: Optional[int] = None
        self._parents = tuple(parents)
        made = _P()
        plain = [arg._as_parameter_ if isinstance(arg, _Object) else arg for arg in args]
        _check(getattr(_lib, call)(*plain, ctypes.byref(made)), call)
        self._p = made.value

    @property
    def _as_parameter_(self) -> int:
        if self._p is None:
            raise ValueError('%s is closed' % type(self).__name__)
        return self._p

    def close(self) -> None:
        """Destroys the object. Raises OSError (EBUSY) and destroys nothing while the object has children."""
        if self._p is not None:
            _check(getattr(_lib, self._destroy)(self._p), self._destroy)
            self._p = None
            self._parents = ()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, '_p', None) is not None and _lib is not None:
            getattr(_lib, self._destroy)(self._p)


class Device(_Object):
    """A device by its name, for example 'soft0' or 'mlx5_0'; options follow a comma."""
    _destroy = 'bb_dev_close'

    def __init__(self, spec: str = 'soft0') -> None:
        super().__init__((), 'bb_dev_open', spec.encode())

    def query(self) -> Dict[str, int]:
        """Returns the capabilities of the device, by the field names of struct bb_dev_attr."""
        found: Dict[str, int] = {}
        name, value = ctypes.c_char_p(), _U64()
        while _check(_lib.pybb_dev_field(self, len(found), ctypes.byref(name), ctypes.byref(value)), 'bb_dev_query'):
            found[(name.value or b'').decode()] = value.value
        return found

    def port(self, number: int = 1) -> Dict[str, int]:
        """Returns the state of a port: active (0 or 1), active MTU in bytes, entries of the GID table."""
        active, mtu, gids = _U32(), _U32(), _U32()
        _check(_lib.pybb_port(self, number, ctypes.byref(active), ctypes.byref(mtu), ctypes.byref(gids)), 'bb_port_query')
        return {'active': active.value, 'mtu': mtu.value, 'gids': gids.value}

    def gid(self, port: int = 1) -> int:
        """Returns the index of the best GID of a port (bb_gid_choose())."""
        return _check(_lib.pybb_gid(self, port), 'bb_gid_choose')

    def pd(self) -> 'Pd':
        return Pd(self)

    def cq(self, depth: int = 256) -> 'Cq':
        return Cq(self, depth)


class Pd(_Object):
    """A protection domain."""
    _destroy = 'bb_pd_free'

    def __init__(self, device: Device) -> None:
        super().__init__((device,), 'bb_pd_alloc', device)
        self.device = device

    def reg(self, data: Any, access: Access = Access.LOCAL_WRITE) -> 'Mr':
        return Mr(self, data, access)

    def qp(self, send_cq: 'Cq', recv_cq: Optional['Cq'] = None, **options: int) -> 'Qp':
        return Qp(self, send_cq, recv_cq, **options)


class Mr(_Object):
    """A memory region over a writable, contiguous buffer. The buffer cannot be resized while it is registered."""
    _destroy = 'bb_mr_dereg'

    def __init__(self, pd: Pd, data: Any, access: Access = Access.LOCAL_WRITE) -> None:
        self._p = None
        view = memoryview(data)
        if view.readonly or not view.contiguous:
            raise ValueError('the buffer must be writable and contiguous')
        # While this array exists, the buffer's owner neither frees nor moves the buffer.
        self._memory = (ctypes.c_char * view.nbytes).from_buffer(data)
        self.length = view.nbytes
        super().__init__((pd,), 'bb_mr_reg', pd, ctypes.addressof(self._memory), view.nbytes, access)
        addr, lkey, rkey = _U64(), _U32(), _U32()
        _lib.pybb_mr_keys(self, ctypes.byref(addr), ctypes.byref(lkey), ctypes.byref(rkey))
        self.addr, self.lkey, self.rkey = addr.value, lkey.value, rkey.value

    def close(self) -> None:
        super().close()
        self._memory = None

    def at(self, offset: int, length: Optional[int] = None) -> Any:
        """Returns address and length of a part of the region."""
        _ = self._as_parameter_  # raises ValueError if the region is closed
        length = self.length - offset if length is None else length
        if offset < 0 or length < 0 or offset + length > self.length:
            raise IndexError('%d bytes at %d of a region of %d bytes' % (length, offset, self.length))
        return self.addr + offset, length


class Cq(_Object):
    """A completion queue."""
    _destroy = 'bb_cq_destroy'

    def __init__(self, device: Device, depth: int = 256) -> None:
        super().__init__((device,), 'pybb_cq_create', device, depth)
        self._wc = (_Wc * 64)()

    def poll(self, n: int = 64) -> List[Wc]:
        """Polls once. Returns at most @n completions, and never more than 64."""
        got = _lib.pybb_poll(self, self._wc, min(n, 64))
        return [Wc(w.wr_id, Status(w.status), None if w.status else WcOp(w.opcode), w.byte_len,
                   w.imm if w.flags & 1 else None, w.qpn, w.src_qp, w.vendor_err) for w in self._wc[:got]]

    def wait(self, timeout: float = 10.0) -> Wc:
        """Polls for the next completion. Raises TimeoutError after @timeout seconds."""
        end = time.monotonic() + timeout
        while True:
            got = self.poll(1)
            if got:
                return got[0]
            if time.monotonic() > end:
                raise TimeoutError('no completion within %g s' % timeout)


class Qp(_Object):
    """A queue pair. The device sees a post only after ring()."""
    _destroy = 'bb_qp_destroy'

    def __init__(self, pd: Pd, send_cq: Cq, recv_cq: Optional[Cq] = None, *, type: QpType = QpType.RC,
                 sq_depth: int = 64, rq_depth: int = 64, max_inline: int = 64) -> None:
        recv_cq = recv_cq or send_cq
        super().__init__((pd, send_cq, recv_cq), 'pybb_qp_create', pd, type, send_cq, recv_cq, sq_depth, rq_depth,
                         max_inline)
        self.device = pd.device
        self._addr: Optional[bytes] = None
        self._path = (1, 0)
        self.qpn = _lib.pybb_qpn(self)

    def addr(self, port: int = 1, gid: Optional[int] = None) -> bytes:
        """Returns the address for the peer's connect(). Call it before connect(); later calls return the same bytes."""
        if self._addr is None:
            out = ctypes.create_string_buffer(ADDR_LEN)
            self._path = port, self.device.gid(port) if gid is None else gid
            _check(_lib.pybb_qp_addr(self, *self._path, out, ADDR_LEN), 'bb_qp_addr')
            self._addr = out.raw
        return self._addr

    def connect(self, peer: bytes, access: Access = Access.ALL & ~Access.LOCAL_WRITE) -> None:
        """Connects to the queue pair whose addr() returned the bytes @peer. @access: rights of the peer."""
        local = self.addr()
        _check(_lib.pybb_qp_connect(self, *self._path, access, local, peer, len(peer)), 'bb_qp_connect')

    def post(self, op: Op, wr_id: int, mr: Optional[Mr], offset: int = 0, length: Optional[int] = None, *,
             raddr: int = 0, rkey: int = 0, imm: int = 0, compare_add: int = 0, swap: int = 0,
             flags: Flags = Flags.SIGNALED) -> None:
        """Posts a request with one SGE, or with none if @mr is None. @imm is in network byte
        order. A request moves at most max_msg_size bytes of the device; 2^32 bytes or more raise OverflowError."""
        addr, size = mr.at(offset, length) if mr else (0, 0)
        # The operands of atomics may be negative, as they wrap.
        compare_add, swap = (v + (1 << 64) if -1 << 63 <= v < 0 else v for v in (compare_add, swap))
        values = wr_id, addr, raddr, compare_add, swap, op, flags, size, mr.lkey if mr else 0, rkey, imm
        wr = _Wr(*(_Arg(kind).from_param(value) for (_, kind), value in zip(_Wr._fields_, values)))
        _check(_lib.pybb_post(self, ctypes.byref(wr)), 'bb_qp_post_list')

    def write(self, wr_id: int, mr: Mr, raddr: int, rkey: int, offset: int = 0, length: Optional[int] = None,
              **more: Any) -> None:
        self.post(Op.WRITE, wr_id, mr, offset, length, raddr=raddr, rkey=rkey, **more)

    def read(self, wr_id: int, mr: Mr, raddr: int, rkey: int, offset: int = 0, length: Optional[int] = None,
             **more: Any) -> None:
        self.post(Op.READ, wr_id, mr, offset, length, raddr=raddr, rkey=rkey, **more)

    def send(self, wr_id: int, mr: Mr, offset: int = 0, length: Optional[int] = None, **more: Any) -> None:
        self.post(Op.SEND, wr_id, mr, offset, length, **more)

    def fetch_add(self, wr_id: int, mr: Mr, raddr: int, rkey: int, add: int, offset: int = 0, **more: Any) -> None:
        """Posts a FETCH_ADD. The old value is written to 8 bytes of @mr at @offset."""
        self.post(Op.FETCH_ADD, wr_id, mr, offset, 8, raddr=raddr, rkey=rkey, compare_add=add, **more)

    def cmp_swap(self, wr_id: int, mr: Mr, raddr: int, rkey: int, compare: int, swap: int, offset: int = 0,
                 **more: Any) -> None:
        self.post(Op.CMP_SWAP, wr_id, mr, offset, 8, raddr=raddr, rkey=rkey, compare_add=compare, swap=swap, **more)

    def recv(self, wr_id: int, mr: Mr, offset: int = 0, length: Optional[int] = None) -> None:
        addr, size = mr.at(offset, length)
        _check(_lib.pybb_post_recv(self, wr_id, addr, size, mr.lkey), 'bb_post_recv')

    def ring(self) -> None:
        """Passes all posted requests and receives to the device."""
        _lib.pybb_ring(self)
