#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""hello_write in Python: one RDMA WRITE between two queue pairs of a device. usage: hello.py [DEVICE]"""

import sys

import bluebell


def main() -> int:
    bluebell.eal_init()
    source, target = bytearray(b'hello from the other queue pair'), bytearray(64)
    dev = bluebell.Device(sys.argv[1] if len(sys.argv) > 1 else 'soft0')
    pd, cq = dev.pd(), dev.cq()
    # Both buffers are registered where they are.
    src = pd.reg(source)
    dst = pd.reg(target, bluebell.Access.LOCAL_WRITE | bluebell.Access.REMOTE_WRITE)
    a, b = pd.qp(cq), pd.qp(cq)
    # Two programs would exchange the addresses, the region's address and its rkey over TCP.
    a.connect(b.addr())
    b.connect(a.addr())

    a.write(1, src, dst.addr, dst.rkey)
    a.ring()
    wc = cq.wait()
    if wc.status != bluebell.Status.SUCCESS:
        print('the write failed:', bluebell.cause(wc), file=sys.stderr)
        return 1
    print('write %d completed; the target\'s memory says: %s' % (wc.wr_id, target.rstrip(b'\0').decode()))
    return 0 if target.startswith(source) else 1


if __name__ == '__main__':
    sys.exit(main())
