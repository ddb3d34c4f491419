# SPDX-License-Identifier: BSD-3-Clause
"""Endpoint file of dpdk-telemetry-exporter.py: metrics of programs that use Bluebell.

The exporter loads each file of its folder telemetry-endpoints, and calls info() and metrics(). It puts
"dpdk_bluebell_" before each name (DPDK 24.07 and later: usertools/dpdk-telemetry-exporter.py).
"""

# At most this number of queue pairs, and of CQs, of each device has metrics of its own.
MOST_QUEUES = 1000

# Fields of the replies: doc/guides/tools/telemetry.rst explains them.
DEVICE_GAUGES = {
    'pds': 'Protection domains.',
    'cqs': 'Completion queues.',
    'qps': 'Queue pairs.',
    'mrs': 'Memory regions that the program registered.',
    'umems': 'Umems that the program registered.',
    'channels': 'Event channels.',
}
MEMORY_GAUGES = {
    'bytes': 'Bytes of registered memory.',
    'heap': 'Registrations of the EAL heap.',
    'mempool': 'Registrations of mempools.',
    'retired': 'Registrations that wait for deregistration.',
}
QP_COUNTERS = {
    'posted': 'Sends posted.',
    'recv_posted': 'Receives posted.',
    'doorbells': 'Doorbells of the send queue.',
    'send_cqes': 'Completions of sends.',
    'queue_full': 'Posts that failed because the queue was full.',
    'errors': 'Completions with an error.',
    'retries': 'Requests repeated after a timeout or a lost packet (software device).',
    'rnr_retries': 'Requests repeated because the peer had no receive (software device).',
}
QP_GAUGES = {
    'sq_depth': 'Size of the send queue in WQEs.',
    'sq_outstanding': 'WQEs of the send queue that are not known to be complete.',
    'rq_depth': 'Size of the receive queue in WQEs.',
    'rq_outstanding': 'Receives that are posted and not complete.',
}
CQ_COUNTERS = {
    'cqes': 'Completions polled.',
    'errors': 'Completions with an error.',
    'purged': 'CQEs dropped because their queue pair was reset or destroyed.',
    'events': 'Events taken from the channel.',
}
CQ_GAUGES = {
    'depth': 'Size in CQEs.',
    'reserved': 'CQEs that are reserved for the attached queues.',
}
LOOP_COUNTERS = {
    'iterations': 'Iterations of the poll loop.',
    'idle_iterations': 'Iterations that found no work.',
    'completions': 'Completions passed to callbacks.',
    'work': 'Sum of the values that pollers returned.',
    'busy_cycles': 'Cycles of the TSC with work.',
    'idle_cycles': 'Cycles of the TSC without work.',
}

# Prefix of the metric's name, fields that increase, other fields.
KINDS = (
    ('device_', {}, DEVICE_GAUGES),
    ('memory_', {}, MEMORY_GAUGES),
    ('qp_', QP_COUNTERS, QP_GAUGES),
    ('cq_', CQ_COUNTERS, CQ_GAUGES),
    ('loop_', LOOP_COUNTERS, {}),
)


def info():
    """Returns {metric: (description, type)}."""
    found = {
        'qp_error_state': ('1 if the queue pair is in state ERR.', 'gauge'),
        'port_active': ('1 if the port is active.', 'gauge'),
        'port_mtu_bytes': ('Active MTU of the port.', 'gauge'),
        'roce_total': ('Requests, retries and errors of the device, by the label counter.', 'counter'),
        'roce_drops_total': ('Packets that the software device dropped, by the label reason.',
                             'counter'),
        'port_drops_total': ('Frames that the port of the software device dropped, by the label '
                             'reason.', 'counter'),
        'cm_drops_total': ('Messages of the communication manager that were dropped, by the label reason.',
                           'counter'),
    }
    for prefix, counters, gauges in KINDS:
        found.update({prefix + key + '_total': (text, 'counter') for key, text in counters.items()})
        found.update({prefix + key: (text, 'gauge') for key, text in gauges.items()})
    return found


def answer(sock, endpoint, parameters=None):
    """Returns the reply's fields; {} if the object is gone, or the program does not use Bluebell."""
    reply = sock.cmd(endpoint, parameters)
    return {} if not isinstance(reply, dict) or 'error' in reply else reply


def numbers(sock, endpoint, name, device=None):
    """Returns the numbers of a list, which may have several pages."""
    found, first = [], None
    while len(found) < MOST_QUEUES:
        parameters = [str(p) for p in (device, first) if p is not None]
        page = answer(sock, endpoint, ','.join(parameters) or None)
        found += page.get(name, [])
        first = page.get('next')
        if first is None:
            break
    return found[:MOST_QUEUES]


def of_kind(prefix, reply, labels):
    """Yields the metrics of one object."""
    for name, counters, gauges in KINDS:
        if name == prefix:
            yield from ((prefix + key + '_total', reply[key], labels) for key in counters if key in reply)
            yield from ((prefix + key, reply[key], labels) for key in gauges if key in reply)


def of_device(sock, device):
    labels = {'device': device}
    reply = answer(sock, '/bluebell/device/info', device)
    yield from of_kind('device_', reply, labels)
    for port in range(1, reply.get('ports', 0) + 1):
        here = dict(labels, port=port)
        if 'port%d_state' % port in reply:
            yield 'port_active', int(reply['port%d_state' % port] == 'ACTIVE'), here
        if 'port%d_active_mtu' % port in reply:
            yield 'port_mtu_bytes', reply['port%d_active_mtu' % port], here
    yield from of_kind('memory_', answer(sock, '/bluebell/mr/stats', device), labels)
    for endpoint, metric, label in (('/bluebell/roce/counters', 'roce_total', 'counter'),
                                    ('/bluebell/roce/drops', 'roce_drops_total', 'reason'),
                                    ('/bluebell/port/drops', 'port_drops_total', 'reason'),
                                    ('/bluebell/cm/drops', 'cm_drops_total', 'reason')):
        for key, value in answer(sock, endpoint, device).items():
            yield metric, value, dict(labels, **{label: key.removeprefix('drop_')})


def of_queues(sock, device):
    for qpn in numbers(sock, '/bluebell/qp/list', 'qps', device):
        reply = answer(sock, '/bluebell/qp/info', '%s,%d' % (device, qpn))
        labels = {'device': device, 'qpn': qpn}
        yield from of_kind('qp_', reply, labels)
        if 'state' in reply:
            yield 'qp_error_state', int(reply['state'] == 'ERR'), labels
    for cqn in numbers(sock, '/bluebell/cq/list', 'cqs', device):
        yield from of_kind('cq_', answer(sock, '/bluebell/cq/info', '%s,%d' % (device, cqn)),
                           {'device': device, 'cqn': cqn})


def metrics(sock):
    """Returns [(metric, value, labels)]."""
    found = []
    for device in sock.cmd('/bluebell/device/list') or []:
        found += of_device(sock, device)
        found += of_queues(sock, device)
    for number in numbers(sock, '/bluebell/loop/list', 'loops'):
        reply = answer(sock, '/bluebell/loop/info', number)
        found += of_kind('loop_', reply, {'loop': number, 'lcore': reply.get('lcore')})
    return found
