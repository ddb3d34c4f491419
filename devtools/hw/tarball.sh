#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Makes an archive of hw-check with static programs, for a machine without a compiler or DPDK.
# usage: tarball.sh BUILD FILE     (devtools/hw-check --tarball makes the programs first)
set -eu
HERE=$(cd "$(dirname "$0")" && pwd)
TOP=$(cd "$HERE/../.." && pwd)
build=$1 out=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
to=$work/bluebell-hw-check
mkdir -p "$to/bin/lib" "$to/hw"

for program in hw_report conform testrdma bb_perf; do
  strip -o "$to/bin/$program" "$build/test/hw/$program-static"
  if ldd "$to/bin/$program" | grep -E 'librte_|libbluebell'; then
    echo "hw-check: $program needs the libraries above: install archives of DPDK (Debian: libdpdk-dev)" >&2
    exit 1
  fi
done
# Libraries that rdma-core and glibc do not bring.
ldd "$build/test/hw/testrdma-static" | sed -n 's/.* => \([^ ]*libisal[^ ]*\) .*/\1/p' | while read -r lib; do
  cp -L "$lib" "$to/bin/lib/"
done
cp "$HERE"/*.py "$TOP/doc/guides/evidence/hardware-status.rst" "$to/hw/"
cp "$TOP/LICENSE" "$TOP/devtools/hw/README.tarball" "$to/"
mv "$to/README.tarball" "$to/README"
git -C "$TOP" describe --always --dirty >"$to/hw/VERSION" 2>/dev/null || echo unknown >"$to/hw/VERSION"
pkg-config --modversion libdpdk >"$to/hw/DPDK"
cat >"$to/hw-check" <<'END'
#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
HERE=$(cd "$(dirname "$0")" && pwd)
exec python3 "$HERE/hw/check.py" --build "$HERE/bin" "$@"
END
chmod +x "$to/hw-check"
tar -C "$work" -czf "$out" bluebell-hw-check
echo "hw-check: $out, $(stat -c %s "$out") bytes. On the machine with the card: tar xf, then
  bluebell-hw-check/hw-check mlx5_0"
