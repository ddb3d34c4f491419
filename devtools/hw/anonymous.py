# SPDX-License-Identifier: BSD-3-Clause
"""Removes names and addresses of a host from a report.

Each value that identifies the host becomes a word with a number, such as gid#1. The same value has the same
number in the whole report. In bytes, which are hexadecimal texts, such a value becomes zeros.
"""

import glob
import ipaddress
import os
import pwd
import re
import socket

# Names that many hosts have.
COMMON = re.compile(r'(root|localhost|lo|(mlx5|mlx4|rxe|siw|soft|irdma|bnxt_re)_?\d+|(eth|ib|en[ops]|docker|br|veth|'
                    r'bond)\w{0,8})$')
HEX = re.compile(r'([0-9a-f]{2}){8,}$')
PCI = re.compile(r'\b(?:[0-9a-fA-F]{4}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]\b')
COLONS = re.compile(r'(?<![\w:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,31}(?:\.\d+){0,3}(?![\w:])')
IPV4 = re.compile(r'(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])')
SERIAL = re.compile(r'\bMT\d{4}[A-Z]{1,2}\d{4,6}\b')
PATH = re.compile(r'(?<![\w./*#-])~?(?:/[\w.+@%,:=-]+)+/?')
KNOWN_PATHS = ('/dev/infiniband', '/proc/sys/', '/proc/self/', '/sys/class/infiniband', '/sys/fs/cgroup')
# Keys of facts that are needed as they are: versions look like addresses.
FACTS = {'kernel', 'fw_ver', 'hca_type', 'board_id', 'libibverbs', 'libmlx5', 'libdpdk', 'os', 'cpu',
         'bluebell', 'machine', 'dpdk', 'version'}


def lines(pattern):
    for path in glob.glob(pattern):
        try:
            with open(path, errors='replace') as f:
                yield f.read().strip()
        except OSError:
            pass


def known_secrets():
    """Returns [(kind, value)] of this host: words, and addresses as /sys prints them."""
    found = [('host', socket.gethostname()), ('host', os.uname().nodename),
             ('host', socket.gethostname().split('.')[0])]
    found += [('user', os.environ.get(name, '')) for name in ('USER', 'LOGNAME', 'SUDO_USER')]
    try:
        found.append(('user', pwd.getpwuid(os.getuid()).pw_name))
    except KeyError:
        pass
    found += [('serial', v) for v in lines('/etc/machine-id')]
    found += [('serial', v) for v in lines('/sys/class/dmi/id/*_serial')]
    found += [('serial', v) for v in lines('/sys/class/dmi/id/product_uuid')]
    for top in ('/sys/class/infiniband', '/sys/class/net'):
        found += [('device', os.path.basename(d)) for d in glob.glob(top + '/*')]
    found += [('mac', v) for v in lines('/sys/class/net/*/address')]
    found += [('gid', v) for v in lines('/sys/class/infiniband/*/ports/*/gids/*')]
    found += [('guid', v) for v in lines('/sys/class/infiniband/*/node_guid')]
    found += [('guid', v) for v in lines('/sys/class/infiniband/*/sys_image_guid')]
    found += [('host', v) for v in lines('/sys/class/infiniband/*/node_desc')]
    return found


def raw(value):
    """Returns the bytes of an address, None if the value is no address or a trivial one."""
    digits = re.sub(r'[:.-]', '', value)
    if ':' not in value or not re.fullmatch(r'([0-9a-fA-F]{2}){6,20}', digits):
        return None
    data = bytes.fromhex(digits)
    return data if len(set(data)) > 2 else None


class Anonymizer:
    def __init__(self, secrets):
        self.numbers = {}
        self.words = {}     # lower case: kind
        self.bytes = {}     # bytes: kind
        for kind, value in secrets:
            data = raw(value)
            if data is not None:
                self.bytes[data] = kind
                if len(data) == 16 and any(data[8:14]):
                    self.bytes[data[8:]] = 'guid'
            elif len(value) > 1 and not COMMON.match(value) and not re.fullmatch(r'[0:.\s-]*', value):
                self.words[value.lower()] = kind

    def number(self, kind, value):
        same = self.numbers.setdefault(kind, {})
        return '%s#%d' % (kind, same.setdefault(value.lower(), len(same) + 1))

    def secrets_of(self, text):
        """Replaces the known secrets, as words and as digits without separators."""
        for word in sorted(self.words, key=len, reverse=True):
            if word in text.lower():
                domain = r'(?:\.[\w-]+)*' if self.words[word] == 'host' else ''
                text = re.sub(r'(?<![A-Za-z0-9])%s%s(?![A-Za-z0-9])' % (re.escape(word), domain),
                              self.number(self.words[word], word), text, flags=re.I)
        for data in sorted(self.bytes, key=len, reverse=True):
            if data.hex() in text.lower():
                text = re.sub(data.hex(), self.number(self.bytes[data], data.hex()), text, flags=re.I)
        return text

    def address(self, match):
        """Replaces a text with colons, if it is an address."""
        value = match[0]
        groups = value.split(':')
        if all(len(g) == 2 for g in groups) and len(groups) in (6, 8, 20):
            return self.number('mac', value)
        if len(groups) == 4 and all(len(g) == 4 for g in groups):
            return self.number('guid', value)
        try:
            ip = ipaddress.IPv6Address(value)
        except ValueError:
            return value
        return value if int(ip) < 2 else self.number('gid', ip.exploded)

    def ipv4(self, match):
        try:
            ip = ipaddress.IPv4Address(match[0])
        except ValueError:
            return match[0]
        return match[0] if ip.is_loopback or int(ip) == 0 else self.number('ip', match[0])

    def path(self, match):
        return match[0] if match[0].startswith(KNOWN_PATHS) else self.number('path', match[0])

    def hexadecimal(self, text):
        data = bytes.fromhex(text)
        for secret in self.bytes:
            data = data.replace(secret, bytes(len(secret)))
        return data.hex()

    def text(self, text):
        if HEX.match(text):
            return self.hexadecimal(text)
        text = PCI.sub(lambda m: self.number('pci', m[0]), text)
        text = COLONS.sub(self.address, text)
        text = IPV4.sub(self.ipv4, text)
        text = SERIAL.sub(lambda m: self.number('serial', m[0]), text)
        return self.secrets_of(PATH.sub(self.path, text))

    def report(self, value, key=None):
        """Returns a copy of a report without the host's names and addresses."""
        if isinstance(value, dict):
            return {k: self.report(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [self.report(v, key) for v in value]
        if not isinstance(value, str):
            return value
        return self.secrets_of(value) if key in FACTS else self.text(value)
